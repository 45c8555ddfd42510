"""What the reports of benchmarks share: the correction of p for the number of tests."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

# Behind all others, so that the package under test stays the one that is installed.
sys.path.append(str(Path(__file__).parents[2]))
pytest.importorskip("benchmarks")
from benchmarks.common.report import corrected


def naive(pvalues):
    """Benjamini and Hochberg: the least n p / rank over all p that are as large or larger."""
    n = len(pvalues)
    ordered = sorted(pvalues)
    return [
        min(min(1.0, n * q / rank) for rank, q in enumerate(ordered, 1) if q >= p) for p in pvalues
    ]


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_false_discovery_rate(n):
    rng = np.random.default_rng(n)
    tests = {f"test {i}": p for i, p in enumerate(rng.choice(np.geomspace(0.0005, 1, 30), n))}
    found = corrected(tests)
    assert list(found) == list(tests)
    assert_allclose(list(found.values()), naive(list(tests.values())))


def test_no_tests_need_no_correction():
    assert corrected({}) == {}
