"""Blocks: columns of a batch that every token has a number in, such as word vectors.

A kind of block is a file: `dense` is a matrix, `looked_up` a table of distinct vectors with the
numbers of its rows. `protocol` says what they have in common, and `rows` puts them beside sparse
columns.
"""
