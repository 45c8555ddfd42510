"""Differences between labellings, as the rules of the online learners fill them in."""

from skstruct.chain.protocol import add_edge, state_of
from skstruct.kernels._jit import lean_jit


@lean_jit
def clear_difference(length, difference):
    """Set the differences to zero."""
    for t in range(length):
        for j in range(difference.shape[1]):
            difference[t, j] = 0.0


@lean_jit
def add_contrast(edges, gold, labels, weight, difference, counts):
    """Add ``weight`` times the gold labelling less another one to differences and counts.

    Where both agree nothing is added, so rounding leaves no trace: tokens with a difference of
    exactly zero are skipped later.
    """
    for t in range(gold.shape[0]):
        if labels[t] != gold[t]:
            difference[t, gold[t]] += weight
            difference[t, labels[t]] -= weight
    for t in range(1, gold.shape[0]):
        before, right = state_of(edges, gold, t - 1), state_of(edges, gold, t)
        before_that, wrong = state_of(edges, labels, t - 1), state_of(edges, labels, t)
        if right != wrong or before != before_that:
            add_edge(edges, counts, t, before, right, weight)
            add_edge(edges, counts, t, before_that, wrong, -weight)


@lean_jit
def count_wrong(gold, predicted):
    """Number of wrongly labelled tokens."""
    wrong = 0
    for t in range(gold.shape[0]):
        wrong += gold[t] != predicted[t]
    return wrong
