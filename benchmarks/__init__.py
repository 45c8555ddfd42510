"""Measurements of skstruct; see README.md in this folder."""
