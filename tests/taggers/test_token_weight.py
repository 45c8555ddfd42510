"""Weights of tokens: changes against a plain twin, and where they are weights of sequences."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from helpers.learners import TAGGERS, labelled_sequences
from helpers.learnt import learnt_by
from helpers.marks import compiled
from helpers.taggers import object_array, visiting_orders
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skstruct import (
    CRFTagger,
    CRFTaggerCV,
    MIRATagger,
    PerceptronTagger,
    SequenceBatch,
    SequenceVectorizer,
    decoding,
)
from skstruct.chain.dense import Dense
from skstruct.chain.listed import Listed
from skstruct.input.training_set import TrainingSet, as_rows, read_token_weights
from skstruct.learning import online
from skstruct.learning.monitor import token_accuracy
from skstruct.metrics import token_accuracy_score, token_accuracy_scorer
from skstruct.taggers.prediction import weights_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_LABELS, N_FEATURES = 3, 4
NAMES = "coef_", "intercept_", "start_", "end_", "transition_", "transition2_", "transition_coef_"
LEARNERS = {
    "perceptron": partial(PerceptronTagger, random_state=0, max_iter=3, tol=None),
    "MIRA": partial(MIRATagger, random_state=0, max_iter=3, tol=None),
}


def task(seed=0, *, n_sequences=14, with_transitions=False):
    """Batch of real values, labels, and weights of tokens, some of them zero."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, n_sequences)
    n_rows = lengths.sum()
    transition_X = rng.normal(size=(n_rows, 2)) if with_transitions else None
    X = rng.normal(size=(n_rows, N_FEATURES))
    batch = SequenceBatch(X, np.r_[0, np.cumsum(lengths)], transition_X=transition_X)
    cuts = np.cumsum(lengths)[:-1]
    y = [part.tolist() for part in np.split(rng.integers(N_LABELS, size=n_rows), cuts)]
    weights = np.split(rng.choice([0, 0.3, 1, 2.5], size=n_rows), cuts)
    weights[0] = np.ones(lengths[0])
    return batch, y, weights


# ----------------------------------------------------------------------------------- the plain twin


def parts_of(x, z, labels, weights, order):
    """Name, place, value and weight of everything that a labelling has."""
    for t, label in enumerate(labels):
        for f, value in enumerate(x[t]):
            yield "coef_", (label, f), value, weights[t]
        yield "intercept_", label, 1, weights[t]
        if t > 0:
            least, pair = min(weights[max(t - order, 0) : t + 1]), (labels[t - 1], label)
            yield "transition_", pair, 1, least
            for f, value in enumerate(z[t]):
                yield "transition_coef_", (*pair, f), value, least
        if t > 1 and order == 2:
            yield "transition2_", tuple(labels[t - 2 : t + 1]), 1, least
    yield "start_", labels[0], 1, weights[0]
    yield "end_", labels[-1], 1, weights[-1]


def vector_of(parts, shapes, *, weighted):
    found = {name: np.zeros(shape) for name, shape in shapes.items()}
    for name, place, value, weight in parts:
        found[name][place] += value * weight if weighted else value
    return np.concatenate([part.ravel() for part in found.values()])


def twin(tagger, start, batch, y, weights, orders):
    """Weights after each step: a perceptron, or MIRA, whose changes are scaled token by token."""
    shapes = {name: part.shape for name, part in start.items()}
    now = np.concatenate([part.ravel() for part in start.values()])
    total, n = np.zeros_like(now), 0
    for i in [i for order in orders for i in order]:
        if not np.any(weights[i]):
            continue
        x = batch[i]
        z = np.zeros((len(x), 0)) if batch.transition_X is None else batch[i : i + 1].transition_X

        def features(labels, *, weighted, i=i, x=x, z=z):
            parts = parts_of(x, z, labels, weights[i], tagger.order)
            return vector_of(parts, shapes, weighted=weighted)

        ranked = sorted(
            product(range(N_LABELS), repeat=len(x)),
            key=lambda labels: -now @ features(labels, weighted=False),
        )
        gold = features(y[i], weighted=False), features(y[i], weighted=True)
        found = ranked[: getattr(tagger, "n_best", 1)]
        plain = np.array([gold[0] - features(labels, weighted=False) for labels in found])
        scaled = np.array([gold[1] - features(labels, weighted=True) for labels in found])
        cost = np.array([sum(np.not_equal(labels, y[i])) for labels in found])
        now = now + multipliers(tagger, plain, cost - plain @ now, cost) @ scaled
        total, n = total + now, n + 1
    found = total / n if tagger.average else now
    cuts = np.cumsum([np.prod(shape, dtype=int) for shape in shapes.values()])[:-1]
    return dict(zip(shapes, np.split(found, cuts), strict=True))


def multipliers(tagger, plain, missing, cost):
    if not hasattr(tagger, "C"):
        return np.ones(1)
    found, missing = np.zeros(len(cost)), np.where(cost > 0, missing, 0)
    for _ in range(3000 if missing.max() > 0 else 0):
        for k in np.flatnonzero(cost > 0):
            gap = missing[k] - plain[k] @ plain.T @ found
            found[k] = np.clip(found[k] + gap / (plain[k] @ plain[k]), 0, tagger.C)
    return found


CASES = [
    (PerceptronTagger(average=False), False),
    (PerceptronTagger(), False),
    pytest.param(PerceptronTagger(order=2), False, marks=pytest.mark.slow),  # compiles for it
    (PerceptronTagger(average=False), True),
    (MIRATagger(average=False), False),
    (MIRATagger(n_best=3, C=0.5), False),
]


@pytest.mark.parametrize(("tagger", "with_transitions"), CASES)
def test_changes_are_the_twins(tagger, with_transitions):
    batch, y, weights = task(1, with_transitions=with_transitions)
    # Zero weights would leave it to ties what is predicted.
    tagger = clone(tagger).set_params(max_iter=1, tol=None, random_state=0, warm_start=True)
    average = tagger.average
    tagger.set_params(average=False).fit(batch, y).set_params(average=average, max_iter=2)
    start = {name: getattr(tagger, name).copy() for name in NAMES if hasattr(tagger, name)}
    tagger.fit(batch, y, weights)
    # Sequences without a weight are not there.
    kept = [i for i, row in enumerate(weights) if np.any(row)]
    orders = [[kept[i] for i in order] for order in visiting_orders(len(kept), 2, 0)]
    expected = twin(tagger, start, batch, y, weights, orders)
    for name, part in expected.items():
        assert_allclose(getattr(tagger, name).ravel(), part, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.slow  # compiles each learner for them
@pytest.mark.parametrize("name", LEARNERS)
def test_many_labels(name, monkeypatch):
    """Large label sets list their transitions, and learn the same."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.arange(160) % 130).reshape(40, 4)
    X = SequenceBatch.from_lengths(rng.normal(size=(160, 6)), [4] * 40)
    weights = rng.choice([0.0, 0.5, 1.0], size=(40, 4))
    found, lists = LEARNERS[name](), []

    def list_transitions(*given):
        lists.append(decoding.list_transitions(*given))
        return lists[-1]

    monkeypatch.setattr(online, "list_transitions", list_transitions)
    found.fit(X, y, weights)
    assert lists
    assert all(isinstance(edges, Listed) for edges in lists)
    monkeypatch.setattr(online, "list_transitions", lambda transition, _: Dense(transition))
    other = LEARNERS[name]().fit(X, y, weights)
    assert_allclose(found.transition_, other.transition_, rtol=1e-9, atol=1e-9)
    assert_allclose(found.coef_, other.coef_, rtol=1e-9, atol=1e-9)


# ----------------------------------------------------------------------------- what they amount to

OPTIONS = {
    "shards": {"n_jobs": 2},
    "stopped": {"early_stopping": True},
    "pieces": {"structure_alpha": 1.5},
    "second order": {"order": 2},
    "balanced": {"class_weight": "balanced"},
    "costs": {"label_cost": {"missed": 1.0}},
}


@pytest.mark.parametrize(
    "option", [compiled(name) if name == "second order" else name for name in OPTIONS]
)
@pytest.mark.parametrize("name", LEARNERS)
def test_equal_weights_are_those_of_the_sequence(name, option):
    X, y = labelled_sequences(24)
    y = [["O" if label == "A" else f"B-{label}" for label in labels] for labels in y]
    X[5], y[5] = [], []
    of_sequences = np.random.default_rng(0).choice([0.0, 0.7, 1.0, 3.0], len(X))
    of_tokens = [np.full(len(x), w) for x, w in zip(X, of_sequences, strict=True)]
    one, other = (LEARNERS[name](**OPTIONS[option]) for _ in range(2))
    # A sequence without tokens has no weight to read.
    of_sequences[5] = 1.0
    assert learnt_by(one.fit(X, y, of_tokens)) == learnt_by(other.fit(X, y, of_sequences))


@pytest.mark.parametrize(
    "options", [{}, compiled({"order": 2}), {"average": False, "structure_alpha": 2}]
)
def test_labels_of_tokens_without_a_weight_are_not_learnt(options):
    batch, y, weights = task(5, n_sequences=30)
    others = [
        [(label + (weight == 0)) % N_LABELS for label, weight in zip(labels, row, strict=True)]
        for labels, row in zip(y, weights, strict=True)
    ]
    assert others != y
    one, other = (LEARNERS["perceptron"](**options) for _ in range(2))
    one.fit(batch, y, weights), other.fit(batch, others, weights)
    assert np.abs(one.coef_).max() > 0
    for name in NAMES:
        if hasattr(one, name):
            assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=0)


@pytest.mark.parametrize("name", LEARNERS)
def test_shards_learn_with_them(name):
    batch, y, weights = task(6, n_sequences=16)
    weights = [np.maximum(row, 0.1) for row in weights]
    options = {"average": False, "shuffle": False, "max_iter": 1}
    found = LEARNERS[name](n_jobs=2, **options).fit(batch, y, weights)
    halves = [
        LEARNERS[name](**options).partial_fit(
            batch[s::2], y[s::2], range(N_LABELS), sample_weight=weights[s::2]
        )
        for s in (0, 1)
    ]
    expected = np.mean([half.coef_ for half in halves], axis=0)
    assert_allclose(found.coef_, expected, rtol=1e-9, atol=1e-12)


def test_partial_fit_is_an_epoch():
    batch, y, weights = task(7)
    one = LEARNERS["perceptron"](max_iter=1).fit(batch, y, weights)
    other = LEARNERS["perceptron"]().partial_fit(batch, y, sample_weight=weights)
    assert_allclose(one.coef_, other.coef_, rtol=1e-12, atol=1e-14)


def test_accuracy_on_held_out_sequences_weights_their_tokens():
    batch, y, weights = task(8)
    tagger = LEARNERS["perceptron"]().fit(batch, y)
    of_sequences, factors = read_token_weights(weights, batch.lengths)
    labels = np.concatenate(y).astype(np.int32)
    data = TrainingSet(as_rows(batch.X), batch.offsets, labels, of_sequences, factors)
    correct = np.concatenate(tagger.predict(batch)) == labels
    expected = np.average(correct, weights=np.concatenate(weights))
    assert 0 < expected < 1
    assert token_accuracy(tagger._chain(), data, None) == pytest.approx(expected)
    part = data.take([2, 0, 9])
    assert_allclose(part.weight_of_tokens(), np.concatenate([weights[i] for i in (2, 0, 9)]))
    assert weights_of(tagger._chain()).keys() <= set(NAMES)


@pytest.mark.parametrize("name", LEARNERS)
def test_forms(name):
    batch, y, weights = task(9)
    learnt = learnt_by(LEARNERS[name]().fit(batch, y, weights))
    series = [pd.Series(row, index=range(5, 5 + len(row))) for row in weights]
    column = pd.Series(object_array(weights), index=range(len(weights), 0, -1))
    lists = [list(row) for row in weights]
    for form in (object_array(weights), lists, tuple(weights), series, column):
        assert learnt_by(LEARNERS[name]().fit(batch, y, form)) == learnt
    X, y = np.random.default_rng(0).normal(size=(6, 3, 2)), [[0, 1, 2]] * 6
    grid = np.arange(18.0).reshape(6, 3)
    one, other = (LEARNERS[name]().fit(X, y, form) for form in (grid, list(grid)))
    assert learnt_by(one) == learnt_by(other)
    with pytest.raises(ValueError, match=r"one weight for each sequence, got \(6, 1\)"):
        LEARNERS[name]().fit(X, y, grid[:, :1])


# ----------------------------------------------------------------------------- scikit-learn, errors


@pytest.mark.parametrize("routing", [False, True])
def test_in_cross_validation_and_pipelines(routing):
    X, y = labelled_sequences(24)
    rng = np.random.default_rng(0)
    weights = [rng.choice([0.0, 1.0, 4.0], len(x)) for x in X]
    weights[0][:] = 1
    with config_context(enable_metadata_routing=routing):
        tagger, scorer = LEARNERS["perceptron"](), token_accuracy_scorer
        if routing:
            tagger.set_fit_request(sample_weight=True)
            scorer = make_scorer(token_accuracy_score).set_score_request(sample_weight=False)
        model = make_pipeline(SequenceVectorizer(), tagger) if routing else tagger
        given = {"params": {"sample_weight": weights}, "scoring": scorer, "error_score": "raise"}
        scores = cross_val_score(model, X, y, cv=KFold(3), **given)
    expected = []
    for train, test in KFold(3).split(X):
        chosen = ([part[i] for i in train] for part in (X, y, weights))
        learner = LEARNERS["perceptron"]().fit(*chosen)
        found = learner.predict([X[i] for i in test])
        expected.append(token_accuracy_score([y[i] for i in test], found))
    assert_allclose(scores, expected)


@pytest.mark.parametrize("name", sorted(TAGGERS.keys() - LEARNERS.keys()))
def test_others_say_what_takes_them(name):
    batch, y, weights = task()
    with pytest.raises(ValueError, match="PerceptronTagger and MIRATagger take weights of tokens"):
        TAGGERS[name]().fit(batch, y, weights)


def test_conditional_random_fields_say_what_to_take_instead():
    batch, y, weights = task()
    for tagger in (CRFTagger(), CRFTaggerCV()):
        with pytest.raises(ValueError, match=r"With label_cost, .* None in place of a"):
            tagger.fit(batch, y, weights)
    with pytest.raises(ValueError, match=r"X_val, y_val: sample_weight_val has weights of tokens"):
        LEARNERS["MIRA"]().fit(batch, y, X_val=batch, y_val=y, sample_weight_val=weights)
    with pytest.raises(ValueError, match="sample_weight has weights of tokens; pass one for each"):
        LEARNERS["MIRA"]().fit(batch, y).score(batch, y, weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[1.0, 1.0], [1.0]], "weights of 2 sequences, but there are 3"),
        ([[1.0, 1.0], [1.0], [1.0]], r"sample_weight\[2\] must have shape \(2,\), one weight for"),
        ([[1.0, 1.0], [1.0], 1.0], r"sample_weight\[2\] must have shape \(2,\), one weight for"),
        (
            [[1.0, 1.0], [1.0], [1.0, -1]],
            "Sequence 2, token 1: sample_weight is -1.0; wei",
        ),
        ([[1.0, np.nan], [1.0], [1.0, 1]], "Sequence 0, token 1: sample_weight is nan"),
        ([[1.0, "a"], [1.0], [1.0, 1]], r"sample_weight\[0\] must be numbers, got \[1.0, 'a'\]"),
        ([[1e308, 1.5e308], [1.0], [1.0, 1]], "adds up to infinity"),
        ([[0, 0], [0], [0, 0]], "Sample weights must contain at least one non-zero number"),
    ],
)
def test_weights_that_are_none(weights, message):
    X, y = [[["a"], ["b"]], [["a"]], [["b"], ["a"]]], [["A", "B"], ["A"], ["B", "A"]]
    with pytest.raises(ValueError, match=message):
        LEARNERS["perceptron"]().fit(X, y, weights)
