"""Helpers of the tests of several taggers."""

import naive
import numpy as np
from numpy.testing import assert_allclose


def assert_same_weights(tagger, other, **tolerance):
    """Compare the weights of two fitted taggers, to the last bit unless there is a tolerance."""
    for a, b in zip(naive.weights_of(tagger), naive.weights_of(other), strict=True):
        assert_allclose(a, b, **(tolerance or {"rtol": 0}))


def object_array(items):
    """1-D array of the items, which numpy would stack where they are equally long."""
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array


def visiting_orders(n, n_epochs, seed):
    """The orders in which a tagger with this random state visits the sequences."""
    rng = np.random.RandomState(seed)
    for _ in range(n_epochs):
        order = np.arange(n)
        rng.shuffle(order)
        yield order
