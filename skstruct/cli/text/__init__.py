"""Annotated text: `documents` is the entry; `columns` and `jsonlines` read and write a format."""
