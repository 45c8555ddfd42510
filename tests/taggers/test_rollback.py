"""Learning in portions: what a portion that fails leaves behind, and when weights are made."""

import copy
import pickle

import joblib
import naive
import numpy as np
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skstruct import AROWTagger, CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger, SequenceBatch
from skstruct.chain.dense import Chain
from skstruct.learning.epoch import N_PROGRESS, RATE, SCALE, SMALLEST_SCALE, OnlineState
from skstruct.learning.monitor import Monitor
from skstruct.learning.online import may_rescale
from skstruct.taggers.prediction import LEARNT

LEARNERS = [
    PerceptronTagger(),
    PerceptronTagger(average=False),
    MIRATagger(n_best=2, C=0.1),
    AROWTagger(),
    SAPOTagger(l2=2.0),
    SAPOTagger(l2=2.0, average=True),
    SAPOTagger(l2=99.9999, learning_rate=0.2, decay=1.0),  # the scale has to be renewed on the way
    CRFTagger(solver="sgd", l2=2.0),
]
N_PORTIONS = 8


@pytest.fixture(params=LEARNERS, ids=lambda learner: repr(learner).replace(" ", ""))
def learner(request):
    return clone(request.param).set_params(random_state=0)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(False, id="chains"),
        # Each learner is compiled for them.
        pytest.param(True, id="features of transitions", marks=pytest.mark.slow),
    ],
)
def data(request):
    """Portions of sequences, each of which has some of many features."""
    rng = np.random.default_rng(0)
    portions = []
    for _ in range(N_PORTIONS):
        lengths = rng.integers(0, 5, 20)
        shape = (lengths.sum(), 200)
        X = rng.integers(-8, 9, shape) / 8 * (rng.random(shape) < 0.02)
        X[:, 0] = 1
        observed = rng.integers(-4, 5, (len(X), 3)) / 4 if request.param else None
        y = rng.integers(3, size=len(X))
        labels = [part.tolist() for part in np.split(y, np.cumsum(lengths)[:-1])]
        portions.append((SequenceBatch.from_lengths(X, lengths, transition_X=observed), labels))
    return portions


def learn(tagger, portions):
    for X, y in portions:
        tagger.partial_fit(X, y, classes=[0, 1, 2])
    return tagger


def learnt(tagger):
    names = [name for name in LEARNT if hasattr(tagger, name)]
    return [np.array(getattr(tagger, name)) for name in names]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert_array_equal(a, b)


def too_large(portion):
    """The same sequences with values whose squares are infinite."""
    X, y = portion
    edges = None if X.transition_X is None else X.transition_X * 1e200
    return SequenceBatch(X.X * 1e200, X.offsets, transition_X=edges), y


# ----------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("reads", [False, True], ids=["weights not made", "weights made"])
@pytest.mark.usefixtures("values_without_limit")
def test_a_portion_that_fails_leaves_no_trace(learner, data, reads):
    expected = learn(clone(learner), data)
    before = learnt(learn(clone(learner), data[:4]))
    tagger = learn(learner, data[:4])
    if reads:
        _ = tagger.coef_
    attributes = dict(vars(tagger))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="infinite or NaN in epoch 5"):
        tagger.partial_fit(*too_large(data[4]))
    assert vars(tagger) == attributes
    assert_same(learnt(tagger), before)
    assert_same(learnt(learn(tagger, data[4:])), learnt(expected))
    assert tagger.n_iter_ == N_PORTIONS


def test_an_interrupted_portion_leaves_no_trace(learner, data, monkeypatch):
    expected = learn(clone(learner), data)
    before = learnt(learn(clone(learner), data[:4]))
    tagger = learn(learner, data[:4])
    attributes = dict(vars(tagger))
    with monkeypatch.context() as patched:

        def interrupt(self, **values):
            raise KeyboardInterrupt

        # Called when the weights have moved.
        patched.setattr(Monitor, "add", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tagger.partial_fit(*data[4])
    assert vars(tagger) == attributes
    assert_same(learnt(tagger), before)
    assert_same(learnt(learn(tagger, data[4:])), learnt(expected))


@pytest.mark.usefixtures("values_without_limit")
def test_a_first_portion_that_fails_leaves_no_trace(learner, data):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="infinite or NaN"):
        learner.partial_fit(*too_large(data[0]), classes=[0, 1, 2])
    assert vars(learner) == vars(clone(learner))


@given(
    st.floats(1e-3, 10), st.floats(0, 3000), st.integers(0, 300), st.floats(-99.9, 0),
)  # fmt: skip
def test_the_scale_is_renewed_only_where_it_was_foreseen(rate, l2, n_samples, log10_scale):
    progress = np.zeros(N_PROGRESS)
    progress[RATE], progress[SCALE] = rate, 10.0**log10_scale
    chain = Chain(np.zeros((1, 1)), np.zeros((1, 1)), *np.zeros((3, 1)))
    foreseen = may_rescale(OnlineState(chain, chain, progress), l2, n_samples)
    scale, lowest = progress[SCALE], np.inf
    for _ in range(n_samples if rate * l2 < n_samples else 0):
        # What the loop does to the scale; a rate that does not decay is the worst case.
        scale *= 1.0 - rate * l2 / n_samples
        lowest = min(lowest, scale)
    assert foreseen or lowest > SMALLEST_SCALE
    # Not simply always: ordinary settings never need it.
    if l2 * rate < 100 and n_samples > 2 * l2 * rate and log10_scale > -10:
        assert not foreseen


def test_more_samples_than_foreseen_shrink_less():
    """Sequences that are cut into pieces make more samples, of a smaller penalty each."""
    for a in (0.1, 5.0, 200.0):
        shrinkage = [n * np.log1p(-a / n) for n in range(int(a) + 1, 2000)]
        assert np.all(np.diff(shrinkage) > 0)


# ------------------------------------------------------------------------- when weights are made


def test_weights_are_made_when_they_are_asked_for(learner, data):
    tagger = learn(learner, data[:3])
    assert not vars(tagger).keys() & set(LEARNT)
    coef = tagger.coef_
    assert vars(tagger)["coef_"] is tagger.coef_ is coef
    kept = learnt(tagger)
    learn(tagger, data[3:])
    assert not np.array_equal(tagger.coef_, coef)
    assert_array_equal(coef, kept[0])
    edges = data[0][0].transition_X is not None
    assert hasattr(tagger, "transition_coef_") == edges
    if not edges:
        with pytest.raises(AttributeError, match="transition_coef_"):
            _ = tagger.transition_coef_


def test_reading_or_predicting_on_the_way_changes_nothing(learner, data):
    plain, read = learn(clone(learner), data), learner
    for portion in data:
        read.partial_fit(*portion, classes=[0, 1, 2]).predict(portion[0])
    assert_same(learnt(read), learnt(plain))


def test_what_was_set_by_hand_is_kept(data):
    tagger = learn(PerceptronTagger(random_state=0), data)
    expected = learnt(learn(clone(tagger), data))
    tagger.coef_ = np.zeros_like(expected[0])
    assert_array_equal(tagger.coef_, 0)
    assert_same(learnt(tagger)[1:], expected[1:])
    assert np.all(tagger.coef_ == 0)


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        lambda tagger: pickle.loads(pickle.dumps(tagger)),
        lambda tagger: joblib.Parallel(1)([joblib.delayed(copy.copy)(tagger)])[0],
        lambda tagger: skops.io.loads(
            skops.io.dumps(tagger), trusted=[f"skstruct.{type(tagger).__name__}"]
        ),
    ],
    ids=["copy", "deepcopy", "pickle", "joblib", "skops"],
)
def test_copies_go_their_own_way(learner, data, duplicate):
    expected = learn(clone(learner), data)
    tagger = learn(learner, data[:4])
    other = duplicate(tagger)
    half = learnt(duplicate(tagger))
    learn(tagger, data[4:])
    assert_same(learnt(other), half)
    assert_same(learnt(tagger), learnt(expected))
    assert_same(learnt(learn(other, data[4:])), learnt(expected))


def test_portions_make_the_weights_of_the_plain_loop(data):
    if data[0][0].transition_X is not None:
        pytest.skip("the twin has none")
    tagger = PerceptronTagger(shuffle=False)
    twin = naive.Perceptron(3, 200)
    for X, y in data:
        tagger.partial_fit(X, y, classes=[0, 1, 2])
        twin.epoch(list(X), y, np.arange(len(y)))
        for found, part in zip(naive.weights_of(tagger), twin.average(), strict=True):
            assert_allclose(found, part, rtol=1e-12, atol=1e-12)


def test_other_attributes_are_missing_as_before(data):
    tagger = learn(PerceptronTagger(random_state=0), data)
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = tagger.colour
    with pytest.raises(AttributeError, match="'CRFTagger' has no attribute") as caught:
        _ = CRFTagger().partial_fit
    assert "partial_fit needs solver='sgd'" in str(caught.value.__cause__)
