"""Probabilities of spans, and the spans chosen, against all labellings of a sequence."""

import tracemalloc
import warnings
from itertools import combinations, groupby, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    Span,
)
from skstruct.metrics import extract_chunks

SCHEMES = {
    "IOB1": ["O", "I-A", "B-A", "I-B"],
    "IOB2": ["O", "B-A", "I-A", "B-B", "I-B"],
    "IOBES": ["O", "B-A", "I-A", "E-A", "S-A"],
    "BILOU": ["O", "B-A", "I-A", "L-A", "U-A"],
    "without types": ["B", "I", "O"],
    "plain": ["author", "title", "O", "year"],
}
EVERYTHING = 10**6
# Kernels that no quick test needs take longer to compile than all that they do.
COMPILES = pytest.mark.slow


def fitted(labels, *, edges=False, constraint=None, seed=0, scale=1.0, **params):
    """A tagger with random weights, and a batch of short sequences."""
    rng = np.random.default_rng(seed)
    lengths = [4, 1, 0, 3, 2]
    n = sum(lengths)
    transition_X = rng.normal(size=(n, 2)) if edges else None
    batch = SequenceBatch.from_lengths(rng.normal(size=(n, 3)), lengths, transition_X=transition_X)
    y = [[labels[i % len(labels)] for i in range(length)] for length in lengths]
    one_each = SequenceBatch.from_lengths(
        np.zeros((len(labels), 3)),
        [1] * len(labels),
        transition_X=np.zeros((len(labels), 2)) if edges else None,
    )
    tagger = CRFTagger(max_iter=1, tol=1e9, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tagger.fit(one_each, [[label] for label in labels])
    for name in ("coef_", "transition_", "start_", "end_", "transition_coef_", "transition2_"):
        if hasattr(tagger, name):
            shape = getattr(tagger, name).shape
            setattr(tagger, name, scale * rng.normal(size=shape))
    if constraint is not None:
        for name in ("transition_", "start_", "end_"):
            allowed = getattr(constraint, name)
            setattr(tagger, name, np.where(allowed, getattr(tagger, name), -np.inf))
    return tagger, batch, y


def chunks(labels):
    """Chunks as the scores find them; runs of a label where labels have no prefixes."""
    if all(label[:1] in "BIESLUO" and label[1:2] in ("", "-") for label in labels):
        return [tuple(chunk) for chunk in extract_chunks(labels)]
    found, start = [], 0
    for label, run in groupby(labels):
        end = start + len(list(run))
        if label != "O":
            found.append((start, end, label))
        start = end
    return found


def probabilities_by_enumeration(tagger, X, known=None):
    """For each sequence, the probability of each span that is a chunk of some labelling."""
    result = []
    for labellings in tagger.predict_nbest(X, EVERYTHING, known=known):
        found = {}
        for labels, _, probability in labellings:
            for chunk in chunks(labels):
                found[chunk] = found.get(chunk, 0.0) + probability
        result.append(found)
    return result


def probabilities(tagger, X, known=None):
    batch, _, types, places, found = tagger._search_spans(X, known, least=0.0)
    result = [{} for _ in range(len(batch))]
    for (_, i, start, end, kind), p in zip(places.tolist(), found.tolist(), strict=True):
        result[i][start, end, types[kind]] = p
    return result


def assert_same_probabilities(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        likely = {span: p for span, p in other.items() if p > 1e-12}
        assert {span for span, p in one.items() if p > 1e-12} == likely.keys()
        for span, p in likely.items():
            assert_allclose(one[span], p, rtol=1e-8, atol=1e-12)


class Allowed:
    """Transitions and ends of some labels, of which half are forbidden."""

    def __init__(self, k, seed):
        rng = np.random.default_rng(seed)
        self.transition_ = rng.random((k, k)) < 0.6
        self.start_, self.end_ = rng.random((2, k)) < 0.8
        # One labelling of each length is possible.
        self.transition_[0, 0] = self.start_[0] = self.end_[0] = True


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "kind", ["dense", *(pytest.param(k, marks=COMPILES) for k in ("second order", "per token"))]
)
@pytest.mark.parametrize("scale", [1.0, 400.0])
@pytest.mark.parametrize("forbid", [False, True])
def test_probabilities_are_those_of_all_labellings(scheme, kind, scale, forbid):
    """A scale of 400 leaves the range of exp, where sums are taken in the log domain."""
    labels = SCHEMES[scheme]
    constraint = Allowed(len(labels), seed=3) if forbid else None
    tagger, X, _ = fitted(
        labels,
        edges=kind == "per token",
        constraint=constraint,
        scale=scale,
        order=2 if kind == "second order" else 1,
    )
    assert_same_probabilities(probabilities(tagger, X), probabilities_by_enumeration(tagger, X))


@pytest.mark.parametrize(
    "kind", ["dense", *(pytest.param(k, marks=COMPILES) for k in ("second order", "per token"))]
)
def test_probabilities_given_known_labels(kind):
    order = 2 if kind == "second order" else 1
    tagger, X, y = fitted(SCHEMES["IOB2"], edges=kind == "per token", order=order)
    known = [[label if t % 2 else None for t, label in enumerate(labels)] for labels in y]
    found = probabilities(tagger, X, known)
    assert_same_probabilities(found, probabilities_by_enumeration(tagger, X, known))


def test_many_labels():
    kinds = [f"T{i}" for i in range(32)]
    labels = ["O", *(f"{letter}-{kind}" for kind in kinds for letter in "BI")]
    tagger, X, _ = fitted(labels)
    rng = np.random.default_rng(1)
    few = rng.random(tagger.transition_.shape) < 0.03
    tagger.transition_ = np.where(few, tagger.transition_, 0.0)
    X = SequenceBatch.from_lengths(X.X[:3], [2, 1])
    assert_same_probabilities(probabilities(tagger, X), probabilities_by_enumeration(tagger, X))


@COMPILES
@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", "runs"])
@pytest.mark.parametrize("forbid", [False, True])
def test_listed_transitions(scheme, forbid):
    """More than a hundred labels, few of whose transitions have a weight, against a dense chain."""
    letters = {"IOB2": "BI", "IOBES": "BIES", "runs": " "}[scheme]
    kinds = [f"T{i:02}" for i in range(120 // len(letters))]
    labels = ["O", *(f"{letter}-{kind}".strip(" -") for kind in kinds for letter in letters)]
    tagger, X, _ = fitted(labels, scale=3.0)
    rng, k = np.random.default_rng(1), len(labels)
    few = rng.random((k, k)) < 0.02
    few |= [[i[1:] == j[1:] and i[0] in "BI" and j[0] in "IE" for j in labels] for i in labels]
    tagger.transition_ = np.where(few, tagger.transition_, -np.inf if forbid else 0.0)
    tagger.transition_[0] = 0.0
    found = probabilities(tagger, X)
    assert sum(p > 1e-12 for spans in found for p in spans.values()) > 100
    # With a weight of its own, each transition is in the matrix.
    tagger.transition_ = tagger.transition_ + 1e-13 * rng.random((k, k))
    assert_same_probabilities(found, probabilities(tagger, X))


def test_memory_for_all_spans_of_a_long_sequence_is_bounded():
    """At threshold 0, thousands of spans begin at each token."""
    labels = ["O", "B-A", "I-A"]
    tagger, X, _ = fitted(labels)
    for name in ("coef_", "transition_", "start_", "end_"):
        setattr(tagger, name, np.zeros(getattr(tagger, name).shape))
    tagger.transition_[1:, 2] = 3.0
    X = [np.zeros((3000, 3))]
    tracemalloc.start()
    (found,) = tagger.predict_spans(X, threshold=0.0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found
    assert most < 3e6


LONE = ["I-A", "I-B", "O"]


@pytest.mark.parametrize("labels", [SCHEMES["IOB2"], SCHEMES["plain"], LONE])
@given(seed=st.integers(0, 10**6), threshold=st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0]))
def test_no_other_set_of_spans_has_a_larger_sum(labels, seed, threshold):
    def can_follow(x, y):
        """Only labels that begin a chunk tell it from one of its type right before it."""
        return x[1] < y[0] or (x[1] == y[0] and ("B-A" in labels or x[2] != y[2]))

    tagger, X, _ = fitted(labels, seed=seed % 7)
    X = [X[i] for i in (0, 3)]
    known = probabilities(tagger, X)
    for spans, all_spans in zip(tagger.predict_spans(X, threshold=threshold), known, strict=True):
        candidates = [(*span, p) for span, p in all_spans.items() if p > threshold]
        best = 0.0
        for size in range(1, 5):
            for some in combinations(sorted(candidates), size):
                if all(can_follow(x, y) for x, y in pairwise(some)):
                    best = max(best, sum(p - threshold for *_, p in some))
        assert_allclose(sum(span.probability - threshold for span in spans), best, atol=1e-12)
        for before, after in pairwise(spans):
            assert before.end <= after.start
        for start, end, kind, p in spans:
            assert_allclose(p, all_spans[start, end, kind])


@pytest.mark.parametrize(
    "tagger",
    [
        CRFTagger(),
        SDCACRF(random_state=0),
        PerceptronTagger(random_state=0),
        MIRATagger(random_state=0),
        SAPOTagger(random_state=0),
        AROWTagger(random_state=0),
    ],
    ids=lambda tagger: type(tagger).__name__,
)
def test_every_tagger_has_them(tagger):
    words = [["in", "New", "York"], ["New", "York"], ["in", "a", "park"]]
    y = [["O", "B-LOC", "I-LOC"], ["B-LOC", "I-LOC"], ["O", "O", "O"]]
    X = [[{"word": word} for word in sentence] for sentence in words] * 5
    tagger.fit(X, y * 5)
    spans = tagger.predict_spans(X, threshold=0.01)
    assert all(isinstance(span, Span) for found in spans for span in found)
    assert_same_probabilities(probabilities(tagger, X), probabilities_by_enumeration(tagger, X))


def test_threads_give_the_same_bits():
    tagger, X, _ = fitted(SCHEMES["IOBES"])
    X = SequenceBatch.from_lengths(np.tile(X.X, (9, 1)), [4, 1, 0, 3, 2] * 9)
    alone = tagger.predict_spans(X, threshold=0.05)
    assert list(tagger.set_params(n_jobs=2).predict_spans(X, threshold=0.05)) == list(alone)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, np.nan, "0.5", None])
def test_thresholds_that_are_none(threshold):
    tagger, X, _ = fitted(SCHEMES["IOB2"])
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1"):
        tagger.predict_spans(X, threshold=threshold)


def test_labels_that_are_numbers():
    """Each run of a number is a chunk, also of zero."""
    tagger = CRFTagger(l2=0.1).fit([np.eye(2)[[0, 0, 1]]], [[0, 0, 1]])
    (found,) = tagger.predict_spans([np.eye(2)[[0, 0, 1]]])
    assert [tuple(span[:3]) for span in found] == [(0, 2, 0), (2, 3, 1)]
    names = CRFTagger(l2=0.1).fit([np.eye(2)[[0, 0, 1]]], [["a", "a", "b"]])
    (same,) = names.predict_spans([np.eye(2)[[0, 0, 1]]])
    assert [span.probability for span in same] == [span.probability for span in found]


def test_a_sequence_without_a_possible_labelling():
    constraint = Allowed(5, seed=0)
    constraint.transition_[:] = False
    tagger, X, _ = fitted(SCHEMES["IOB2"], constraint=constraint)
    with pytest.raises(ValueError, match="Sequence 0 has no possible labelling"):
        tagger.predict_spans(X)
