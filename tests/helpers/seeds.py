"""A seed for what draws from numpy's global generator."""

from contextlib import contextmanager

import numpy as np


@contextmanager
def global_seed(seed=0):
    """Seed the generator that `random_state=None` stands for, as scikit-learn's checks need it."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
