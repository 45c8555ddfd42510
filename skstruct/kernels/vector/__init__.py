"""Arithmetic on rows of numbers at vector speed."""
