"""Releases of packages, which have to be the same on all workers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import skstruct

__all__ = ["installed_releases"]

# Packages whose release can change the bits of a result.
_PACKAGES = ("skstruct", "numpy", "numba")


def installed_releases():
    """Releases of the packages whose release can change the bits of a result."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    found["skstruct"] = skstruct.__version__
    return found
