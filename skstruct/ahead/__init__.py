"""Compilation ahead of time.

`warm` is the entry. It runs what `workload` lists, in several processes, so that all kernels are
compiled before they are needed; `build` does the same for the kernels that come with a wheel.
"""
