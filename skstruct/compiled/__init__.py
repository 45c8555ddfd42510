"""Compiled kernels: where they are found, and where they are kept.

`KernelCache` is what numba's dispatchers ask for compiled code. Everything that the code depends
on is part of the key it is filed under, so a key that is found always fits.
"""
