"""Parameters of tests."""

import pytest


def compiled(value):
    """A parameter for which kernels are compiled, which takes longer than a quick test may."""
    return pytest.param(value, marks=pytest.mark.slow)
