"""Tests of the difference between two systems, over the units that are independent."""

from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.common.processes import n_swaps
from skstruct.metrics import paired_permutation_test

# All swaps are tried of up to 15 units, this many at random of more.
MOST_ENUMERATED = 1 << 15
N_RESAMPLES = 20_000


class Comparison(NamedTuple):
    """Difference of two systems, its p, and the least p that so many units can have."""

    difference: float
    p: float
    smallest: float


def compare(y_true, y_pred, y_other, measure, groups=None, n_resamples=N_RESAMPLES):
    """Test a difference; `groups` are those of the sequences, such as speakers."""
    n_units = len(y_true) if groups is None else len(np.unique(groups))
    few = n_units <= MOST_ENUMERATED.bit_length() - 1
    n_resamples = n_swaps(MOST_ENUMERATED if few else n_resamples)
    test = paired_permutation_test(
        y_true,
        y_pred,
        y_other,
        metric=measure,
        groups=groups,
        n_resamples=n_resamples,
        random_state=0,
    )
    smallest = max(2.0 ** (1 - n_units), 2 / (n_resamples + 1))
    return Comparison(test.difference, test.pvalue, smallest)


def compare_seeds(y_true, runs, others, measure, groups=None, *, paired=False, **options):
    """Test the difference of two systems with seeds, given with the labels by each seed.

    It has to show with each pair of seeds: p is the largest of theirs, and 1 where they disagree
    about which system is better. With `paired`, runs are compared that have the same seed, such as
    one that drew the training set. Two settings of a learner that are the same pass as such: a test
    that swaps sentences with all their seeds takes what seeds do for a difference.
    """
    pairs = zip(runs, others, strict=True) if paired else product(runs, others)
    tests = [compare(y_true, *pair, measure, groups, **options) for pair in pairs]
    differences = np.array([test.difference for test in tests])
    agree = (differences > 0).all() or (differences < 0).all()
    p = max(test.p for test in tests) if agree else 1.0
    return Comparison(float(differences.mean()), p, tests[0].smallest)
