"""What the benchmarks share: corpora, features, processes, and reports."""
