"""Differences between labellings, as the rules of the online learners fill them in."""

from skstruct.kernels._jit import lean_jit
from skstruct.kernels.chain.scores import add_transition


@lean_jit
def clear_difference(length, difference):
    """Set the differences to zero."""
    for t in range(length):
        for j in range(difference.shape[1]):
            difference[t, j] = 0.0


@lean_jit
def add_contrast(gold, labels, weight, difference, transition_difference):
    """Add ``weight`` times the gold labelling less another labelling to the differences.

    Where both agree nothing is added, so rounding leaves no trace: tokens with a difference of
    exactly zero are skipped later.
    """
    for t in range(gold.shape[0]):
        wrong = labels[t] != gold[t]
        if wrong:
            difference[t, gold[t]] += weight
            difference[t, labels[t]] -= weight
        if t > 0 and (wrong or labels[t - 1] != gold[t - 1]):
            add_transition(transition_difference, t, gold[t - 1], gold[t], weight)
            add_transition(transition_difference, t, labels[t - 1], labels[t], -weight)


@lean_jit
def count_wrong(gold, predicted):
    """Number of wrongly labelled tokens."""
    wrong = 0
    for t in range(gold.shape[0]):
        wrong += gold[t] != predicted[t]
    return wrong
