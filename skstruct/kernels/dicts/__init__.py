"""Kernels that read feature dicts."""
