"""Compiling kernels, finding them, and keeping them.

`jit` has the decorators, and `kernel` is the decorated function. It finds machine code by `cache`:
first in the `archive` that came with the package, then in the user's `folders`. Everything that the
code depends on is part of its key (`keys`), so that a cache hit always fits.

`lanes`, `rows` and `tables` are vectorised arithmetic that kernels of all rooms call.
"""
