"""Every kind of chain, every programme and every constraint, against the list of all labellings.

What a scheme allows is not read off transitions here: it is every way of writing chunks in it.
"""

import warnings
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from helpers.lists import list_from
from helpers.marks import compiled
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from skstruct import CRFTagger, SequenceBatch

# Prefixes of a chunk of one token, and of the first, the other and the last tokens of a longer one.
PREFIXES = {
    "IOB2": "BBII",
    "IOE2": "EIIE",
    "IOBES": "SBIE",
    "BILOU": "UBIL",
    "BMES": "SBME",
}
TYPES = ("A", "B")
ALLOWED = np.array([[True, False, True], [True, True, False], [False, True, True]])
CONSTRAINTS = (None, "IOB1", "IOE1", *PREFIXES, "runs", ALLOWED)
CHAINS = {
    "dense": {},
    "listed": {},
    "per token": {},
    "second order": {"order": 2},
}
LENGTHS = (3, 1, 2, 3, 0, 3, 2, 3)
L2, EVERYTHING, N_FEATURES, N_EDGES = 0.3, 10**4, 2, 2


def chunkings(length, start=0):
    """All lists of chunks (start, end, type) that do not overlap."""
    yield []
    for first, end in combinations_with_replacement(range(start, length + 1), 2):
        for kind in TYPES if first < end else ():
            for rest in chunkings(length, end):
                yield [(first, end, kind), *rest]


def written(chunks, length, scheme):
    """The labels of some chunks."""
    labels = ["O"] * length
    for n, (start, end, kind) in enumerate(chunks):
        if scheme in PREFIXES:
            one, first, other, last = PREFIXES[scheme]
            prefixes = one if end - start == 1 else first + other * (end - start - 2) + last
        else:
            # A prefix of its own only where a chunk touches another one of its type.
            prefixes = list("I" * (end - start))
            before = n > 0 and chunks[n - 1][1:] == (start, kind)
            after = n + 1 < len(chunks) and chunks[n + 1][::2] == (end, kind)
            if scheme == "IOB1" and before:
                prefixes[0] = "B"
            if scheme == "IOE1" and after:
                prefixes[-1] = "E"
        labels[start:end] = [f"{prefix}-{kind}" for prefix in prefixes]
    return tuple(labels)


def possible(length, constraint):
    """All labellings that a constraint allows."""
    if isinstance(constraint, str) and constraint != "runs":
        return sorted({written(chunks, length, constraint) for chunks in chunkings(length)})
    every = product("abc", repeat=length)
    if constraint is None or isinstance(constraint, str):
        return list(every)
    return [
        labels
        for labels in every
        if all(constraint["abc".index(i), "abc".index(j)] for i, j in pairwise(labels))
    ]


def make_batch(rng, edges):
    n = sum(LENGTHS)
    transition_X = rng.normal(size=(n, N_EDGES)) if edges else None
    X = rng.normal(size=(n, N_FEATURES))
    return SequenceBatch.from_lengths(X, LENGTHS, transition_X=transition_X)


def features(batch, i, labels, n_labels, names):
    """How often each weight counts in the score of a labelling of a sequence."""
    k, a = n_labels, batch.offsets[i]
    shapes = {"coef_": (k, N_FEATURES), "transition_": (k, k), "transition2_": (k, k, k)}
    shapes["transition_coef_"] = (k, k, N_EDGES)
    count = {name: np.zeros(shapes.get(name, k)) for name in names}
    for t, j in enumerate(labels):
        count["coef_"][j] += batch.X[a + t]
        count["intercept_"][j] += 1
        if t > 0:
            count["transition_"][labels[t - 1], j] += 1
        if t > 0 and "transition_coef_" in count:
            count["transition_coef_"][labels[t - 1], j] += batch.transition_X[a + t]
        if t > 1 and "transition2_" in count:
            count["transition2_"][labels[t - 2], labels[t - 1], j] += 1
    if len(labels):
        count["start_"][labels[0]] += 1
        count["end_"][labels[-1]] += 1
    return np.concatenate([count[name].ravel() for name in names])


class Fitted:
    """A tagger at its optimum, and the labellings of the sequences that it has learnt from."""

    def __init__(self, chain, constraint):
        rng = np.random.default_rng(0)
        self.batch = make_batch(rng, chain == "per token")
        every = [possible(length, constraint) for length in LENGTHS]
        self.y = [labellings[rng.integers(len(labellings))] for labellings in every]
        self.tagger = CRFTagger(
            l2=L2,
            tol=1e-12,
            max_iter=10**4,
            all_possible_states=True,
            all_possible_transitions=True,
            constraint=constraint,
            **CHAINS[chain],
        )
        with warnings.catch_warnings():
            # Few chunks, or none, are found by so small a model.
            warnings.simplefilter("ignore", UserWarning)
            self.tagger.fit(self.batch, [list(labels) for labels in self.y])
        classes = self.tagger.classes_.tolist()
        self.labellings = [
            [[classes.index(label) for label in labels] for labels in labellings
             if set(labels) <= set(classes)]
            for labellings in every
        ]  # fmt: skip
        names = ["coef_", "transition_", "intercept_", "start_", "end_"]
        names += [n for n in ("transition_coef_", "transition2_") if hasattr(self.tagger, n)]
        # Weights of minus infinity are of no labelling that is possible.
        parts = [np.nan_to_num(getattr(self.tagger, name), neginf=0.0).ravel() for name in names]
        self.weights = np.concatenate(parts)
        self.counts = [
            np.array([features(self.batch, i, labels, len(classes), names) for labels in found])
            for i, found in enumerate(self.labellings)
        ]
        self.scores = [counts @ self.weights for counts in self.counts]
        self.classes = self.tagger.classes_

    def gold(self, i):
        labels = np.searchsorted(self.classes, self.y[i]).tolist()
        return self.labellings[i].index(labels)


@pytest.fixture(params=["dense", "per token", *map(compiled, ("listed", "second order"))])
def chain(request, monkeypatch):
    if request.param == "listed":
        list_from(monkeypatch, 0)
    return request.param


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_programmes_agree_with_all_labellings(chain, constraint):
    fitted = Fitted(chain, constraint)
    tagger, batch = fitted.tagger, fitted.batch
    gradient, value = L2 * fitted.weights, L2 / 2 * fitted.weights @ fitted.weights
    proba, best = tagger.predict_proba(batch), tagger.predict(batch)
    exact = tagger.predict_nbest(batch, EVERYTHING)
    beam = tagger.predict_nbest(batch, 5, search="beam", beam_width=EVERYTHING)
    for i, (found, scores) in enumerate(zip(fitted.labellings, fitted.scores, strict=True)):
        log_z = logsumexp(scores)
        p = np.exp(scores - log_z)
        # The sums: counts of pairs and triples are in the gradient, which is zero at the optimum.
        gradient += p @ fitted.counts[i] - fitted.counts[i][fitted.gold(i)]
        value += log_z - scores[fitted.gold(i)]
        marginals = np.zeros((LENGTHS[i], len(fitted.classes)))
        for labels, q in zip(found, p, strict=True):
            marginals[np.arange(LENGTHS[i]), labels] += q
        assert_allclose(proba[i], marginals, atol=1e-9)
        # The searches.
        order = np.argsort(-scores, kind="stable")
        named = [tuple(fitted.classes[found[n]]) for n in order]
        assert tuple(best[i]) == named[0]
        assert [tuple(one.labels) for one in beam[i]] == named[:5]
        assert len(exact[i]) == len(found)
        assert {tuple(one.labels) for one in exact[i]} == set(named)
        assert_allclose([one.score for one in exact[i]], scores[order], rtol=1e-9, atol=1e-9)
        assert_allclose([one.probability for one in exact[i]], p[order], rtol=1e-9)
    assert_allclose(tagger.history_["objective"][-1], value, rtol=1e-9)
    assert_allclose(gradient, 0, atol=1e-3)
