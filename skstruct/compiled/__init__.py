"""Compiled kernels: where they are found, and where they are kept.

`kernel` is the decorated function, `cache` what it asks for its machine code: first the `archive`
that came with the package, then the user's `folders`. Everything that the code depends on is part
of the key it is filed under (`keys`), so a key that is found always fits.
"""
