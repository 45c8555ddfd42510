"""Test of the difference between two systems on the same sequences."""

from typing import NamedTuple

import numpy as np
from scipy.stats import permutation_test
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d

from skstruct.metrics.chunks import count_chunks_of_sequences
from skstruct.metrics.labels import as_list, compare_tokens, count_by_sequence, stack_both
from skstruct.utils.messages import check_choice
from skstruct.utils.persistence import set_module

# Most numbers that are in memory at once.
_AT_ONCE = 10_000_000


@set_module("skstruct.metrics")
class PairedTest(NamedTuple):
    """Result of `paired_permutation_test`.

    Attributes
    ----------
    difference : float
        Score of the first system minus the second's.
    pvalue : float
        Probability of a difference at least as large, in either direction, if the systems were
        interchangeable.
    """

    difference: float
    pvalue: float


@set_module("skstruct.metrics")
def paired_permutation_test(
    y_true,
    y_pred_1,
    y_pred_2,
    *,
    metric="chunk_f1",
    scheme="conlleval",
    groups=None,
    n_resamples=9999,
    random_state=None,
):
    """Test whether two systems differ in their score, by a permutation test over the sequences.

    Under the null hypothesis the two predictions for a sequence could be swapped. The test swaps
    them at random, each with probability one half, and counts how often the difference is at least
    as large as it was (approximate randomisation; Noreen, 1989; Yeh, 2000). It needs no assumption
    on how F1 is distributed, but sequences have to be independent. Sequences of one document or
    person are not: give `groups`, and whole groups are swapped.

    Parameters
    ----------
    y_true : label sequences, n_sequences of them
        Correct labels, in any form that the module accepts.
    y_pred_1, y_pred_2 : label sequences
        Predictions of the two systems for the same sequences.
    metric : {"chunk_f1", "token_accuracy", "sequence_accuracy"} or callable, default="chunk_f1"
        Score to compare; chunks of all types are counted together. A callable gets lists of correct
        and of predicted sequences and returns a number, never NaN; it is called twice for each
        resample.
    scheme : str, default="conlleval"
        Scheme of the labels of chunks; see :func:`extract_chunks`.
    groups : array-like of shape (n_sequences,), default=None
        Group of each sequence, such as its document or speaker. By default, each sequence is a
        group. With ``n`` groups, no p is below ``2 ** (1 - n)``.
    n_resamples : int, default=9999
        Number of random swaps. All swaps are tried if there are no more than that.
    random_state : int, RandomState instance or None, default=None
        Source of the swaps.

    Returns
    -------
    result : PairedTest
        ``difference`` and two-sided ``pvalue``.

    Raises
    ------
    ValueError
        If the sequences differ in number or lengths, there are fewer than two of them or of their
        groups, a label or option is invalid, or the metric is NaN.

    References
    ----------
    Alexander Yeh: More accurate tests for the statistical significance of result differences.
    COLING 2000.

    Examples
    --------
    >>> from skstruct.metrics import paired_permutation_test
    >>> y_true = [["B-NP", "I-NP"], ["O", "B-NP"], ["B-VP", "O"]] * 3
    >>> worse = [["B-NP", "B-NP"], ["O", "O"], ["B-VP", "O"]] * 3
    >>> result = paired_permutation_test(y_true, y_true, worse)
    >>> round(result.difference, 2), round(result.pvalue, 2)
    (0.67, 0.03)
    """
    if callable(metric):
        statistic, n = _of_labels(metric, y_true, y_pred_1, y_pred_2, groups)
        options = {"vectorized": False}
    else:
        check_choice("metric", metric, tuple(_METRICS))
        counts = [_METRICS[metric](y_true, y_pred, scheme) for y_pred in (y_pred_1, y_pred_2)]
        codes, n = _read_groups(groups, len(counts[0]))
        stacked = np.concatenate([_sum_by_group(of_system, codes, n) for of_system in counts])

        def statistic(first, second, axis):
            """Difference of the scores of summed counts, for many samples at once."""
            return _f1(stacked[first].sum(axis=-2)) - _f1(stacked[second].sum(axis=-2))

        options = {"vectorized": True, "batch": max(1, _AT_ONCE // (6 * n))}
    if n < 2:
        what = "y_true has one sequence" if groups is None else "groups has one group"
        raise ValueError(f"{what}, but the test needs two or more to swap.")
    result = permutation_test(
        (np.arange(n), np.arange(n, 2 * n)),
        statistic,
        permutation_type="samples",
        n_resamples=n_resamples,
        random_state=check_random_state(random_state),
        **options,
    )
    return PairedTest(float(result.statistic), float(result.pvalue))


def _read_groups(groups, n_sequences):
    """Code of the group of each sequence, and the number of groups."""
    if groups is None:
        return np.arange(n_sequences), n_sequences
    check_consistent_length(np.empty(n_sequences), groups)
    found, codes = np.unique(column_or_1d(groups), return_inverse=True)
    return codes, len(found)


def _sum_by_group(counts, codes, n_groups):
    sums = np.zeros((n_groups, counts.shape[1]), counts.dtype)
    np.add.at(sums, codes, counts)
    return sums


def _of_labels(metric, y_true, y_pred_1, y_pred_2, groups):
    """Difference of a metric as a function of the groups of two stacked systems."""
    pairs = [stack_both(y_true, y_pred) for y_pred in (y_pred_1, y_pred_2)]
    # An array says that each label is a sequence of its own.
    collect = np.array if any(side.flat for pair in pairs for side in pair) else list
    y_true, *predicted = (as_list(y) for y in (y_true, y_pred_1, y_pred_2))
    codes, n = _read_groups(groups, len(y_true))
    y_true = collect(y_true)

    def score(part):
        systems = (part // n)[codes].tolist()
        return metric(y_true, collect([predicted[s][i] for i, s in enumerate(systems)]))

    def difference(first, second):
        found = score(first) - score(second)
        # No difference is as large as NaN, which would pass for significant.
        if np.isnan(found):
            raise ValueError("The metric is NaN for a swap; let it always return a number.")
        return found

    return difference, n


def _f1(counts):
    """F1 of correct, predicted and true items; zero where there are none."""
    correct, predicted, true = np.moveaxis(counts, -1, 0)
    return 2 * correct / np.maximum(predicted + true, 1)


def _count_tokens(y_true, y_pred, scheme):
    """Count tokens, of which as many are predicted as are true: F1 is the accuracy."""
    hit, lengths, known = compare_tokens(y_true, y_pred, partial=True)
    n_hits, n = (count_by_sequence(mask, lengths) for mask in (hit & known, known))
    return np.column_stack([n_hits, n, n])


def _count_sequences(y_true, y_pred, scheme):
    n_hits, n, _ = _count_tokens(y_true, y_pred, scheme).T
    return np.column_stack([n_hits == n, np.ones((len(n), 2), int)])


_METRICS = {
    "chunk_f1": count_chunks_of_sequences,
    "token_accuracy": _count_tokens,
    "sequence_accuracy": _count_sequences,
}
