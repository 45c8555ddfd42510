"""Random cases that the tests of several kernels share."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skstruct import SequenceBatch

# Whole numbers are often equal, and their sums exact: ties are ties. The large ones leave the
# range of exp in both directions.
ELEMENTS = {
    "ties": st.integers(-2, 2).map(float),
    "moderate": st.floats(-5, 5),
    "large": st.integers(-800, 800).map(float),
}


@st.composite
def score_arrays(draw, min_length=0, kinds=tuple(ELEMENTS), forbid=True, forbid_labels=False):
    """Emission scores (length, n_labels) and transitions, of which some may be forbidden.

    With `forbid_labels`, so may be some labels of some tokens.

    At least one label sequence is allowed.
    """
    length = draw(st.integers(min_length, 5))
    n_labels = draw(st.integers(1, 4))
    scores = draw(arrays(float, (length, n_labels), elements=ELEMENTS[draw(kind_of(kinds))]))
    square = (n_labels, n_labels)
    transition = draw(arrays(float, square, elements=ELEMENTS[draw(kind_of(kinds))]))
    if forbid and draw(st.booleans()):
        transition[draw(arrays(bool, square))] = -np.inf
    if forbid_labels:
        scores[draw(arrays(bool, scores.shape))] = -np.inf
    reachable = np.ones(n_labels, bool)
    for t, row in enumerate(scores):
        if t > 0:
            reachable = (reachable[:, None] & (transition > -np.inf)).any(axis=0)
        reachable &= row > -np.inf
    assume(reachable.any())
    return scores, transition


def kind_of(kinds):
    return st.sampled_from(kinds)


@st.composite
def lengths(draw, min_tokens=0, max_sequences=6):
    """Lengths of a batch of sequences, some of them empty."""
    found = draw(st.lists(st.integers(0, 4), min_size=1, max_size=max_sequences))
    assume(sum(found) >= min_tokens)
    return found


@st.composite
def online_problems(draw):
    """A batch, its labels (each occurs), and sample weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = draw(lengths(min_tokens=4, max_sequences=8))
    n_labels = draw(st.integers(1, 4))
    n_features = draw(st.integers(1, 5))
    shape = (sum(found), n_features)
    X = rng.integers(-8, 9, shape) / 8 if draw(st.booleans()) else np.ones(shape)
    X = X * (rng.random(shape) < 0.6)
    y = rng.integers(n_labels, size=len(X))
    y[:n_labels] = np.arange(n_labels)
    cuts = np.cumsum(found)[:-1]
    y = [part.tolist() for part in np.split(y, cuts)]
    sample_weight = np.ones(len(found))
    if draw(st.booleans()):
        sample_weight = rng.choice([0.5, 1.0, 2.0], len(found))
    return SequenceBatch.from_lengths(X, found), y, sample_weight
