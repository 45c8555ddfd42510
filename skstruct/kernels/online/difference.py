"""Differences between labellings, as the rules of the online learners fill them in."""

from skstruct.kernels._jit import lean_jit
from skstruct.kernels.chain.scores import add_transition


@lean_jit
def clear_difference(length, difference):
    """Fill in no change."""
    for t in range(length):
        for j in range(difference.shape[1]):
            difference[t, j] = 0.0


@lean_jit
def add_contrast(gold, labels, weight, difference, transition_difference):
    """Add ``weight`` times the features of the gold labelling less those of another one.

    Where the two agree nothing is added, not even an error of rounding: a token with a
    difference of exactly zero costs nothing.
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
    """Number of tokens that are labelled wrongly."""
    wrong = 0
    for t in range(gold.shape[0]):
        wrong += gold[t] != predicted[t]
    return wrong
