"""Decoding with labels that are known: against the list of the labellings that agree with them."""

import naive
import numpy as np
import pytest
from helpers.constraints import possible_labellings, random_possible, with_weights
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skstruct import CRFTagger, PerceptronTagger, SequenceBatch
from skstruct.chain.search import SEARCHES

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def agrees(labels, known):
    return all(k is None or k == label for label, k in zip(labels, known, strict=True))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.sampled_from(list(SEARCHES)),
    st.booleans(),
    st.booleans(),
)
def test_only_labellings_that_agree_count(seed, n_best, search, constrained, edges):
    rng = np.random.default_rng(seed)
    k = rng.integers(1, 5)
    possible = random_possible(rng, k)
    if not constrained:
        possible = possible._replace(
            transition=np.ones((k, k), bool), start=np.ones(k, bool), end=np.ones(k, bool)
        )
    tagger, weights = with_weights(rng, possible, edges=edges)
    lengths = [1, 2, 4]
    X, E = rng.normal(size=(sum(lengths), 2)), rng.normal(size=(sum(lengths), 2))
    batch = SequenceBatch.from_lengths(X, lengths, transition_X=E if edges else None)
    known = []
    for n in lengths:
        paths = possible_labellings(possible, n)
        path = paths[rng.integers(len(paths))]
        known.append([j if rng.random() < 0.4 else None for j in path])
    nbest = tagger.predict_nbest(batch, n_best, search=search, beam_width=4**5, known=known)
    first = tagger.predict(batch, known=known)
    proba = tagger.predict_proba(batch, known)
    for i, (a, n) in enumerate(zip(batch.offsets, lengths, strict=False)):
        scores = naive.emission_scores(X[a : a + n], weights)
        paths = [p for p in possible_labellings(possible, n) if agrees(p, known[i])]
        path_scores = []
        for path in paths:
            score = naive.path_score(scores, weights.transition, path)
            if edges:
                score += sum(
                    tagger.transition_coef_[path[t - 1], path[t]] @ E[a + t] for t in range(1, n)
                )
            path_scores.append(score)
        order = np.argsort(path_scores)[::-1]
        assert tuple(first[i]) == paths[order[0]]
        assert [tuple(found.labels) for found in nbest[i]] == [paths[m] for m in order[:n_best]]
        assert_allclose(
            [found.score for found in nbest[i]],
            [path_scores[m] for m in order[:n_best]],
            atol=1e-12,
        )
        p = np.exp(path_scores - np.logaddexp.reduce(path_scores))
        assert_allclose([found.probability for found in nbest[i]], p[order[:n_best]], atol=1e-12)
        expected = np.zeros((n, k))
        for path, weight in zip(paths, p, strict=True):
            expected[np.arange(n), list(path)] += weight
        assert_allclose(proba[i], expected, atol=1e-12)
        assert_array_equal(proba[i][expected == 0], 0)


@pytest.mark.parametrize("n_classes", [3, 40])
@pytest.mark.parametrize("values", [False, True])
def test_many_labels_and_features_of_one(n_classes, values):
    """Where scores are summed eight labels at a time, and where no values are stored."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 30)
    X = rng.random((lengths.sum(), 6)) < 0.5
    X = X * rng.normal(size=X.shape) if values else X.astype(float)
    y = rng.integers(n_classes, size=len(X))
    y[:n_classes] = np.arange(n_classes)
    batch = SequenceBatch.from_lengths(X, lengths)
    labels = [part.tolist() for part in np.split(y, np.cumsum(lengths)[:-1])]
    tagger = PerceptronTagger(max_iter=2, tol=None, random_state=0).fit(batch, labels)
    known = [[j if rng.random() < 0.5 else None for j in part] for part in labels]
    for found, wanted in zip(tagger.predict(batch, known), known, strict=True):
        assert agrees(found, wanted)
    # Everything known: nothing is left to decide, and nothing to be unsure of.
    assert tagger.predict(batch, labels).tolist() == labels
    proba = np.concatenate(tagger.predict_proba(batch, labels))
    assert_allclose(proba, np.eye(n_classes)[y], atol=1e-14)
    assert_array_equal(proba > 0, np.eye(n_classes)[y] > 0)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_nbest"])
def test_what_is_known_of_nothing_changes_nothing(method):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (3, 0, 1, 4)]
    y = [["A", "B", "A"], [], ["B"], ["C", "A", "B", "B"]]
    tagger = CRFTagger().fit(X, y)
    nothing = [[None] * len(labels) for labels in y]
    plain, same = getattr(tagger, method)(X), getattr(tagger, method)(X, known=nothing)
    for a, b in zip(plain, same, strict=True):
        if method == "predict_nbest":
            assert [c.labels for c in a] == [c.labels for c in b]
            assert_allclose([c[1:] for c in a], [c[1:] for c in b], atol=1e-12)
        elif method == "predict":
            assert a == b
        else:
            assert_allclose(a, b, atol=1e-12)
    assert getattr(tagger, method)([X[1]], known=[[]]).shape == (1,)


def test_every_form_of_y_will_do():
    rng = np.random.default_rng(0)
    grid, y = rng.normal(size=(6, 4, 3)), rng.integers(3, size=(6, 4))
    tagger = CRFTagger().fit(grid, y)
    known = np.full(y.shape, None)
    known[:, 1] = 2
    found = tagger.predict(grid, known)
    assert found.shape == y.shape
    assert_array_equal(found[:, 1], 2)
    rows, labels = grid[:, 0], np.array(["a", "b", "c"])[y[:, 0]]
    tagger = CRFTagger().fit(rows, labels)
    assert tagger.predict(rows, [None, "b", None, None, "c", "a"])[[1, 4, 5]].tolist() == [*"bca"]
    proba = tagger.predict_proba(rows, np.array([None, "b", None, None, "c", "a"]))
    assert proba[1].tolist() == [0, 1, 0]
    dicts = [[{"w": 1}, {"w": 2}], [{"w": 1}]]
    tagger = CRFTagger().fit(dicts, [["x", "y"], ["y"]])
    assert tagger.predict(dicts, (["y", None], ("x",))).tolist()[1] == ["x"]


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ([["A", None], ["A", "X", None]], "Sequence 1, token 1: label 'X' is not among the"),
        ([["A", None], ["A", 3, None]], "Sequence 1, token 1: label 3 is not a string"),
        ([[None, None], [None, 3, None]], "Sequence 1, token 1: label 3 is not among the classes"),
        ([["A"], ["A", "B", None]], "Sequence 0 has 2 tokens, but 1 labels"),
        ([["A", None]], "X has 2 sequences, but known has labels for 1"),
        ("AB", "known is 'AB'; expected a list of label sequences"),
        ([["A", np.nan], ["A", "B", None]], "label nan is neither .*; pass None where a label is"),
        (
            [[-100, 1], [None, -100, 1]],
            "-100 stands for no label; .* for unknown labels",
        ),
    ],
)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_nbest"])
def test_bad_known_labels_are_named(method, known, message):
    X, y = [np.ones((2, 1)), np.ones((3, 1))], [["A", "B"], ["B", "A", "A"]]
    tagger = CRFTagger().fit(X, y)
    with pytest.raises(ValueError, match=message):
        getattr(tagger, method)(X, known=known)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_nbest"])
def test_contradictions_to_the_constraint_are_named(method):
    X, y = [np.ones((3, 1))] * 2, [["B-X", "I-X", "O"], ["B-Y", "I-Y", "O"]]
    tagger = CRFTagger(constraint="IOB2").fit(X, y)
    predict = getattr(tagger, method)
    with pytest.raises(ValueError, match="Sequence 1, token 0: 'I-X' may not come first under"):
        predict(X, known=[["B-X", None, None], ["I-X", None, None]])
    with pytest.raises(ValueError, match="Sequence 1, token 2: 'I-X' may not follow 'O' under"):
        predict(X, known=[["B-X", None, None], [None, "O", "I-X"]])
    # Only together do these leave nothing between them.
    chain = CRFTagger(constraint=[[True, True, False], [False, True, True], [False, False, True]])
    chain.fit(X, [["a", "b", "c"], ["a", "a", "b"]])
    with pytest.raises(
        ValueError, match="Sequence 1 has no possible labelling that agrees with its known labels"
    ):
        getattr(chain, method)(X, known=[["a", None, "c"], ["c", None, "a"]])
    assert chain.predict(X, known=[["a", None, "c"], [None] * 3])[0] == ["a", "b", "c"]


def test_threads_make_no_difference():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (3, 1, 2, 4, 4)]
    y = [rng.integers(3, size=len(x)).tolist() for x in X]
    known = [[j if rng.random() < 0.5 else None for j in labels] for labels in y]
    tagger = CRFTagger().fit(X, y)
    one, two = tagger.predict_proba(X, known), tagger.set_params(n_jobs=2).predict_proba(X, known)
    for a, b in zip(one, two, strict=True):
        assert_array_equal(a, b)
