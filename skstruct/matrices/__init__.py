"""Matrices of batches: what users bring is checked and brought to one form."""
