"""Inner products of weights and losses of sequences."""

import numpy as np
from threadpoolctl import threadpool_limits

from skstruct.utils.parallel import inner_product


def test_an_inner_product_does_not_depend_on_the_threads_of_blas():
    a, b = np.random.default_rng(0).normal(size=(2, 100_000))
    whole = inner_product(a, b)
    with threadpool_limits(1):
        assert inner_product(a, b) == whole
        np.testing.assert_allclose(whole, a @ b, rtol=1e-12)
    # Whole numbers, as weights and lengths of sequences may be.
    assert inner_product(np.arange(4), np.ones(4, bool)) == 6.0
