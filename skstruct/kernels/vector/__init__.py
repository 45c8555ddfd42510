"""Vectorised arithmetic on rows of numbers."""
