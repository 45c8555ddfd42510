"""Corpora, features, processes and reports that the benchmarks share."""
