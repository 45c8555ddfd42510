"""The paired test against all swaps, and against the scores that it compares."""

from itertools import product

import numpy as np
import pytest

from skstruct.metrics import (
    chunk_f1_score,
    chunk_precision_score,
    paired_permutation_test,
    sequence_accuracy_score,
    token_accuracy_score,
)

SCORES = {
    "chunk_f1": chunk_f1_score,
    "token_accuracy": token_accuracy_score,
    "sequence_accuracy": sequence_accuracy_score,
}


def systems(n_sequences, seed=0):
    """Correct labels and two predictions, the first of which is better."""
    rng = np.random.default_rng(seed)
    labels = np.array(["O", "B-a", "I-a", "B-b"])
    y_true = [rng.choice(labels, size=n).tolist() for n in rng.integers(1, 6, size=n_sequences)]

    def corrupt(share):
        return [[label if rng.random() > share else "O" for label in row] for row in y_true]

    return y_true, corrupt(0.2), corrupt(0.6)


@pytest.mark.parametrize("groups", [None, ["b", "c", "a", "a", "c", "b", "b", "d"]])
@pytest.mark.parametrize("metric", SCORES)
def test_all_swaps_of_few_groups_are_tried(metric, groups):
    y_true, first, second = systems(8)
    score = SCORES[metric]
    differences = []
    units = groups or list(range(len(y_true)))
    for choice in product([False, True], repeat=len(set(units))):
        is_swapped = dict(zip(sorted(set(units)), choice, strict=True))
        swapped = [is_swapped[unit] for unit in units]
        pairs = [(b, a) if s else (a, b) for a, b, s in zip(first, second, swapped, strict=True)]
        one, two = zip(*pairs, strict=True)
        differences.append(score(y_true, list(one)) - score(y_true, list(two)))
    observed = score(y_true, first) - score(y_true, second)
    one_sided = min(
        np.mean(np.array(differences) >= observed - 1e-12),
        np.mean(np.array(differences) <= observed + 1e-12),
    )
    for name in (metric, score):
        result = paired_permutation_test(y_true, first, second, metric=name, groups=groups)
        assert result.difference == pytest.approx(observed)
        assert result.pvalue == pytest.approx(min(1.0, 2 * one_sided))


@pytest.mark.parametrize("metric", SCORES)
def test_a_large_difference_is_significant_and_none_is_not(metric):
    y_true, first, second = systems(200)
    given = {"metric": metric, "n_resamples": 999, "random_state": 0}
    assert paired_permutation_test(y_true, first, second, **given).pvalue < 0.01
    assert paired_permutation_test(y_true, first, first, **given) == (0.0, 1.0)
    one = paired_permutation_test(y_true, second, first, **given)
    assert one.difference < 0
    assert one == paired_permutation_test(y_true, second, first, **given)


def test_systems_that_are_interchangeable_are_rarely_told_apart():
    rng = np.random.default_rng(1)
    pvalues = []
    for seed in range(60):
        y_true, first, _ = systems(40, seed)
        _, second, _ = systems(40, seed)
        swap = rng.random(40) < 0.5
        noisy = [row if s else ["O"] * len(row) for row, s in zip(first, swap, strict=True)]
        other = [["O"] * len(row) if s else row for row, s in zip(second, swap, strict=True)]
        given = {"n_resamples": 199, "random_state": seed}
        pvalues.append(paired_permutation_test(y_true, noisy, other, **given).pvalue)
    assert np.mean(np.array(pvalues) <= 0.1) < 0.25


def test_unknown_labels_do_not_count():
    y_true = [["a", None], ["b", "b"]]
    result = paired_permutation_test(
        y_true, [["a", "x"], ["b", "b"]], [["a", "y"], ["a", "b"]], metric="token_accuracy"
    )
    assert result.difference == pytest.approx(1 / 3)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="metric must be one of"):
        paired_permutation_test([["O"]], [["O"]], [["O"]], metric="f1")
    with pytest.raises(ValueError, match="y_true has 2 sequences but y_pred has 1"):
        paired_permutation_test(
            [["O"], ["O"]], [["O"], ["O"]], [["O"]], metric=token_accuracy_score
        )
    with pytest.raises(ValueError, match=r"y_true .* y_pred"):
        paired_permutation_test([["O"], ["O"]], [["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match="y_true has one sequence, but the test needs two or more"):
        paired_permutation_test([["O"]], [["O"]], [["O"]])
    two = [["O"], ["B-a"]]
    with pytest.raises(ValueError, match="groups has one group, but the test needs two or more"):
        paired_permutation_test(two, two, two, groups=["a", "a"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        paired_permutation_test(two, two, two, groups=["a", "a", "b"])


def test_a_metric_that_is_not_a_number():
    def precision(y_true, y_pred):
        return chunk_precision_score(y_true, y_pred, zero_division=np.nan)

    y_true, y_pred = [["B-A"], ["O"]] * 3, [["B-A"], ["O"]] * 3
    nothing = [["O"], ["O"]] * 3
    for first in (y_pred, nothing):
        with pytest.raises(ValueError, match="The metric is NaN for a swap"):
            paired_permutation_test(y_true, first, nothing, metric=precision)


@pytest.mark.parametrize("metric", [*SCORES, chunk_f1_score, token_accuracy_score])
def test_labels_without_sequences(metric):
    y_true, first, second = ([label for row in y for label in row] for y in systems(5))
    with pytest.raises(ValueError, match="a list of sequences of labels is expected"):
        paired_permutation_test(y_true, first, second, metric=metric)
    given = {"metric": metric, "n_resamples": 99, "random_state": 0}
    expected = paired_permutation_test(
        *([[label] for label in labels] for labels in (y_true, first, second)), **given
    )
    arrays = map(np.array, (y_true, first, second))
    assert paired_permutation_test(*arrays, **given) == expected
