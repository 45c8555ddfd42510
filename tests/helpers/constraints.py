"""Labellings that a constraint allows, and data that obey one."""

from itertools import pairwise, product

import naive
import numpy as np

from skstruct import PerceptronTagger, SequenceBatch
from skstruct.input.constraints import Constraint, read_constraint

LETTERS = {
    **dict.fromkeys(["IOB1", "IOB2", "BIO"], "BI"),
    **dict.fromkeys(["IOE1", "IOE2"], "IE"),
    **dict.fromkeys(["IOBES", "BIOES"], "BIES"),
    "BILOU": "BILU",
    "BMES": "BMES",
}


def allows(possible, labels):
    """Whether a labelling is possible, token by token."""
    if not len(labels):
        return True
    ends = possible.start[labels[0]] and possible.end[labels[-1]]
    return bool(ends and all(possible.transition[i, j] for i, j in pairwise(labels)))


def possible_labellings(possible, length):
    found = naive.labellings(length, len(possible.start))
    return [labels for labels in found if allows(possible, labels)]


def random_possible(rng, n_labels, *, ends=True):
    """A constraint from which the first label alone can always escape."""
    transition = rng.random((n_labels, n_labels)) < 0.6
    start, end = (rng.random((2, n_labels)) < 0.7) | (not ends)
    transition[0] = start[0] = end[0] = True
    return Constraint(transition, start, end, "the constraint")


def random_sequences(rng, possible, lengths, n_features=3):
    """Matrices, and labels that are possible."""
    X = [rng.normal(size=(n, n_features)) for n in lengths]
    y = []
    for n in lengths:
        choices = possible_labellings(possible, n)
        y.append(list(choices[rng.integers(len(choices))]))
    return X, y


def scheme_data(scheme="IOB2", n_sequences=24, seed=0):
    """Matrices and labels of a scheme whose features say little, so that rules matter."""
    rng = np.random.default_rng(seed)
    classes = np.array(sorted(["O", *(f"{a}-{b}" for a, b in product(LETTERS[scheme], "XY"))]))
    possible = read_constraint(scheme, classes)
    X, y = random_sequences(rng, possible, rng.integers(1, 5, n_sequences))
    labels = [classes[sequence].tolist() for sequence in y]
    # All labels occur.
    every = [["O"], *([f"{LETTERS[scheme][-1]}-{kind}"] for kind in "XY")]
    if scheme in ("IOBES", "BIOES", "BILOU"):
        e = LETTERS[scheme][2]
        every += [[f"B-{kind}", f"I-{kind}", f"{e}-{kind}"] for kind in "XY"]
    else:
        every = [["O"], *([f"B-{kind}", f"I-{kind}"] for kind in "XY")]
        if scheme == "IOB1":
            every = [["O"], *([f"I-{kind}", f"B-{kind}"] for kind in "XY")]
    X += [rng.normal(size=(len(sequence), 3)) for sequence in every]
    return X, labels + every, classes, possible


def with_weights(rng, possible, *, edges=False):
    """A tagger with random weights, forbidden where `possible` says so, and its `Weights`."""
    k = len(possible.start)
    batch = SequenceBatch.from_lengths(
        rng.normal(size=(k, 2)), [1] * k, transition_X=rng.normal(size=(k, 2)) if edges else None
    )
    tagger = PerceptronTagger(max_iter=1, tol=None, random_state=0).fit(
        batch, [[j] for j in range(k)]
    )
    for name in ("coef_", "transition_", "intercept_", "start_", "end_"):
        setattr(tagger, name, 2 * rng.normal(size=getattr(tagger, name).shape))
    tagger.transition_[~possible.transition] = -np.inf
    tagger.start_[~possible.start] = -np.inf
    tagger.end_[~possible.end] = -np.inf
    if edges:
        tagger.transition_coef_ = rng.normal(size=(k, k, 2))
    return tagger, naive.weights_of(tagger)
