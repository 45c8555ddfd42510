"""Weights of sequences: those of weight zero are as if they were not there, to the last bit."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.learners import RERANKERS, TAGGERS, groups_of_candidates, labelled_sequences
from helpers.learnt import learnt_by
from helpers.marks import compiled

from skstruct import SDCACRF, CRFTagger, PerceptronTagger, SequenceBatch, VRDAReranker

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Beside every tagger the options that draw from sequences or count them.
LEARNERS = {
    **TAGGERS,
    "CRF, all": partial(
        TAGGERS["CRF"], all_possible_states=True, all_possible_transitions=True, min_freq=1
    ),
    "CRF, stopped": partial(TAGGERS["CRF"], early_stopping=True, random_state=0),
    "SGD, stopped": partial(TAGGERS["SGD"], early_stopping=True, average=True),
    "SGD, pieces": partial(TAGGERS["SGD"], mini_length=1.5),
    "SAPO, pieces": partial(TAGGERS["SAPO"], structure_alpha=1.5),
    "SAPO, beam": partial(TAGGERS["SAPO"], search="beam", n_best=2, beam_width=2),
    "perceptron, shards": partial(TAGGERS["perceptron"], n_jobs=2),
    "perceptron, in order": partial(TAGGERS["perceptron"], shuffle=False, tol=1e-3),
    "AROW, shards": partial(TAGGERS["AROW"], n_jobs=2),
    "SGD, balanced": partial(TAGGERS["SGD"], class_weight="balanced"),
    "MIRA, weighted": partial(TAGGERS["MIRA"], class_weight={"A": 2.0, "B": 0.5, "C": 1.0}),
    "SDCA, uniform": partial(SDCACRF, sampling="uniform", max_iter=3, random_state=0),
}
PARTIAL = [name for name, learn in LEARNERS.items() if hasattr(learn(), "partial_fit")]


def spread(kept, dropped):
    """A list of the elements of both, the dropped ones in between, and weights of all."""
    together, weight = [], []
    for i, item in enumerate(kept):
        if i % 3 == 0:
            together.append(dropped[i % len(dropped)])
            weight.append(0.0)
        together.append(item)
        weight.append(0.5 + i % 4)
    return [*together, dropped[0]], np.array([*weight, 0.0])


@pytest.fixture(scope="module")
def task():
    """Sequences, labels, weights; and the same with sequences of no weight, with labels and words
    of their own."""
    X, y = labelled_sequences(24)
    X[5], y[5] = [], []
    others = [[{"word": "a"}, {"word": "w1", "new": 1.0}], [], [{"word": "w2"}] * 7]
    labels = [["A", "Z"], [], ["B"] * 7]
    all_X, all_weight = spread(X, others)
    all_y, _ = spread(y, labels)
    return (X, y, all_weight[all_weight > 0]), (all_X, all_y, all_weight)


@pytest.mark.parametrize("name", LEARNERS)
def test_sequences_without_a_weight_are_as_if_they_were_not_there(name, task):
    (X, y, weight), (all_X, all_y, all_weight) = task
    expected = LEARNERS[name]().fit(X, y, weight)
    found = LEARNERS[name]().fit(all_X, all_y, all_weight)
    assert learnt_by(found) == learnt_by(expected)
    assert found.classes_.tolist() == ["A", "B", "C"]
    assert "new" not in found.feature_names_in_
    assert found.predict(all_X).tolist() == expected.predict(all_X).tolist()


@pytest.mark.parametrize("name", PARTIAL)
def test_partial_fit(name, task):
    (X, y, weight), (all_X, all_y, all_weight) = task
    one, other = LEARNERS[name](class_weight=None), LEARNERS[name](class_weight=None)
    for _ in range(2):
        one.partial_fit(X, y, sample_weight=weight)
        other.partial_fit(all_X, all_y, sample_weight=all_weight)
    for tagger in (one, other):
        assert tagger.coef_.any()
    assert learnt_by(one) == learnt_by(other)


@pytest.mark.parametrize("name", ["CRF", compiled("SDCA"), "perceptron"])
def test_labels_without_a_weight_need_not_be_known(name, task):
    (X, y, weight), (all_X, all_y, all_weight) = task
    one, other = (LEARNERS[name]().set_params(warm_start=True) for _ in range(2))
    for _ in range(2):
        one.fit(X, y, weight)
        other.fit(all_X, all_y, all_weight)
    assert learnt_by(one) == learnt_by(other)
    with pytest.raises(ValueError, match="label 'Z' is not among the classes"):
        other.fit(all_X, all_y)


def batches(dense, transitions, lengths):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(sum(lengths), 4)), rng.normal(size=(sum(lengths), 2))
    X = X if dense else sp.csr_matrix(X * (rng.random(X.shape) < 0.5))
    return SequenceBatch.from_lengths(X, lengths, transition_X=Z if transitions else None)


@pytest.mark.parametrize("name", ["CRF", "perceptron", compiled("SAPO"), compiled("SGD")])
@pytest.mark.parametrize("dense", [True, False])
def test_batches_with_features_of_transitions(name, dense):
    lengths = [3, 2, 0, 4, 1, 3, 2, 4, 3, 2]
    batch = batches(dense, True, lengths)
    y = [[*"ABCD"[:n]] for n in lengths]
    weight = np.array([1, 0, 0, 2, 1, 0.5, 1, 0, 1, 1.0])
    kept = np.flatnonzero(weight)
    expected = TAGGERS[name]().fit(batch[kept], [y[i] for i in kept], weight[kept])
    assert learnt_by(TAGGERS[name]().fit(batch, y, weight)) == learnt_by(expected)


@pytest.mark.parametrize("name", ["CRF", "SGD", "AROW"])
def test_rows_and_grids(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2, 3)), rng.integers(0, 3, (12, 2))
    y[[3, 7]] = 9
    weight = np.ones(12)
    weight[[3, 7, 11]] = 0
    kept = weight > 0
    for data, labels in ((X, y), (X[:, 0], y[:, 0]), (sp.csr_array(X[:, 0]), y[:, 0])):
        expected = TAGGERS[name]().fit(data[kept], labels[kept])
        found = TAGGERS[name]().fit(data, labels, weight)
        assert learnt_by(found) == learnt_by(expected)
        assert 9 not in found.classes_


@pytest.mark.parametrize("name", ["CRF", "SGD", "perceptron", "SDCA"])
def test_validation_sets(name, task):
    (X, y, weight), (all_X, all_y, all_weight) = task
    validation = {"X_val": X, "y_val": y, "sample_weight_val": weight}
    expected = TAGGERS[name]().fit(X, y, **validation)
    validation = {"X_val": all_X, "y_val": all_y, "sample_weight_val": all_weight}
    assert learnt_by(TAGGERS[name]().fit(X, y, **validation)) == learnt_by(expected)


@pytest.mark.parametrize("solver", ["lbfgs", compiled("sgd")])
def test_sequences_without_a_label_are_as_if_they_were_not_there(solver):
    """All labellings agree with what is known of them: they have no weight."""
    X, y = labelled_sequences(12)
    nothing = [[None] * len(labels) for labels in y[:3]]
    tagger = CRFTagger(solver=solver, max_iter=3, tol=0, random_state=0)
    partly = [[None, *labels[1:]] if len(labels) > 1 else labels for labels in y]
    expected = learnt_by(tagger.fit(X, partly))
    assert learnt_by(tagger.fit(X[:3] + X, nothing + partly)) == expected


def test_weights_of_classes_that_are_zero():
    """The classes stay, which have a name there; sequences that are left without a weight do not
    count."""
    X, y = labelled_sequences(12)
    only = [[{"word": "w1"}], [{"word": "w2"}]]
    for name in ("SGD", "CRF", "perceptron"):
        tagger = TAGGERS[name](class_weight={"A": 1.0, "B": 1.0, "C": 1.0, "Z": 0.0})
        found = tagger.fit([*X, *only], [*y, ["Z"], ["Z"]])
        assert found.classes_.tolist() == [*"ABCZ"]
        again = tagger.fit([*X, *only[:1]], [*y, ["Z"]])
        np.testing.assert_array_equal(found.coef_, again.coef_)


@pytest.mark.parametrize(
    "weights", [{"A": np.nan}, {"A": np.inf}, {"A": -1.0}, {"A": 10**400}, {"A": "1"}]
)
def test_weights_of_classes_must_be_finite(weights):
    X, y = labelled_sequences(6)
    for name in ("CRF", "perceptron"):
        tagger = TAGGERS[name](class_weight=weights)
        for method in (tagger.fit, getattr(tagger, "partial_fit", tagger.fit)):
            with pytest.raises(ValueError, match=r"class_weight has .* for 'A'; weights must be"):
                method(X, y)


def test_products_of_weights_must_be_finite():
    X, y = labelled_sequences(6)
    tagger = PerceptronTagger(class_weight={"A": 1e200, "B": 1e200, "C": 1e200})
    with pytest.raises(ValueError, match="Sequence 0: sample_weight times the mean of class_w"):
        tagger.fit(X, y, sample_weight=1e200)
    with pytest.raises(ValueError, match="adds up to infinity"):
        PerceptronTagger(class_weight="balanced").fit(X, y, sample_weight=1e307)


# -------------------------------------------------------------------------------- rerankers


@pytest.mark.parametrize("name", [*RERANKERS, "vote"])
@pytest.mark.parametrize("options", [{}, {"baseline": "f0"}])
def test_groups_without_a_weight_are_as_if_they_were_not_there(name, options):
    learn = {**RERANKERS, "vote": partial(VRDAReranker, prediction="vote", random_state=0)}[name]
    X, y = groups_of_candidates(20)
    # One with a single candidate, from which nothing could be learnt.
    others = [[{"f0": 2.0, "new": 1.0}], [{"f0": 1.0}, {"f1": 2.0}, {"f2": 3.0}]]
    costs = [np.array([1.0]), np.array([0.0, 1, 2])]
    all_X, all_weight = spread(X, others)
    all_y, _ = spread(y, costs)
    expected = learn(**options).fit(X, y, all_weight[all_weight > 0])
    found = learn(**options).fit(all_X, all_y, all_weight)
    assert learnt_by(found) == learnt_by(expected)
    assert found.predict(X).tolist() == expected.predict(X).tolist()


@pytest.mark.parametrize("name", RERANKERS)
def test_scores_of_a_baseline_go_with_their_groups(name):
    X, y = groups_of_candidates(12)
    base = [np.arange(len(group)) / 4.0 for group in X]
    weight = np.arange(12.0) % 3
    kept = np.flatnonzero(weight)
    expected = RERANKERS[name]().fit(
        [X[i] for i in kept], [y[i] for i in kept], weight[kept], [base[i] for i in kept]
    )
    assert learnt_by(RERANKERS[name]().fit(X, y, weight, base)) == learnt_by(expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
@pytest.mark.parametrize("name", RERANKERS)
def test_weights_of_groups_must_be_finite(name, bad):
    X, y = groups_of_candidates(4)
    fitted = RERANKERS[name]().fit(X, y)
    for call in (RERANKERS[name]().fit, fitted.score):
        with pytest.raises(ValueError, match=f"sample_weight is {bad}; weights must be finite"):
            call(X, y, bad)
        with pytest.raises(ValueError, match=rf"sample_weight\[2\] is {bad}; weights must be"):
            call(X, y, [1, 1, bad, 1])
