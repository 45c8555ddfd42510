"""What all online learners share: epochs, stopping, holding out, `partial_fit`."""

import os
import subprocess
import sys
import warnings

import joblib
import naive
import numpy as np
import pytest
from helpers.seeds import global_seed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skstruct import AROWTagger, CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger, SequenceBatch
from skstruct.taggers.online import OnlineTagger
from skstruct.taggers.perceptron import Mistakes

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

WEIGHTS = ("coef_", "transition_", "intercept_", "start_", "end_")
# Those with a parameter `average`.
AVERAGING = [
    PerceptronTagger(),
    MIRATagger(n_best=2, C=0.1),
    SAPOTagger(l2=2.0, decay=0.7),
    CRFTagger(solver="sgd", l2=2.0, decay=0.7),
]
LEARNERS = [*AVERAGING, AROWTagger(gamma=2.0)]


@pytest.fixture(scope="module")
def noisy():
    """Sequences whose labels only half depend on the features, which are multiples of 1/8."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 60)
    X = rng.integers(-8, 9, (lengths.sum(), 5)) / 8
    y = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(len(X), 3)), axis=1)
    y = [part.tolist() for part in np.split(y, np.cumsum(lengths)[:-1])]
    return SequenceBatch.from_lengths(X, lengths), y


def assert_same_fit(a, b):
    for name in WEIGHTS:
        assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.n_iter_ == b.n_iter_
    for name in a.history_.keys() - {"time"}:
        assert_array_equal(a.history_[name], b.history_[name])


def stopping_epoch(merit, tol, patience):
    """Epoch, from 1, after which there was no improvement for long enough."""
    best, since = -np.inf, 0
    for epoch, m in enumerate(merit, start=1):
        since = 0 if m > best + tol else since + 1
        best = max(best, m)
        if since == patience:
            return epoch
    return None


# --------------------------------------------------------------------------------- random numbers


@pytest.mark.parametrize("params", [{}, {"average": False}, {"early_stopping": True}])
def test_the_same_random_state_gives_the_same_bits(noisy, params):
    first, second = (
        PerceptronTagger(max_iter=5, tol=None, random_state=3, **params).fit(*noisy)
        for _ in range(2)
    )
    assert_same_fit(first, second)
    third = PerceptronTagger(max_iter=5, tol=None, random_state=4, **params).fit(*noisy)
    assert not np.array_equal(first.coef_, third.coef_)


def test_epochs_differ_in_order_only_when_shuffled(noisy):
    X, y = noisy
    fixed = [PerceptronTagger(shuffle=False, max_iter=3, tol=None, random_state=s) for s in (0, 1)]
    assert_same_fit(*(tagger.fit(X, y) for tagger in fixed))
    backwards = PerceptronTagger(shuffle=False, max_iter=3, tol=None).fit(X[::-1], y[::-1])
    assert not np.array_equal(fixed[0].coef_, backwards.coef_)


# ---------------------------------------------------------------------------------------- stopping


@pytest.mark.parametrize(("tol", "n_iter_no_change"), [(0.0, 2), (1e-2, 3), (0.2, 1)])
def test_stops_when_mistakes_no_longer_fall(noisy, tol, n_iter_no_change):
    tagger = PerceptronTagger(
        tol=tol, n_iter_no_change=n_iter_no_change, max_iter=200, random_state=0
    ).fit(*noisy)
    expected = stopping_epoch(-tagger.history_["mistakes"], tol, n_iter_no_change)
    assert tagger.n_iter_ == expected < 200
    assert {len(column) for column in tagger.history_.values()} == {expected}
    assert_array_equal(tagger.history_["epoch"], np.arange(1, expected + 1))


def test_warns_when_max_iter_is_too_small(noisy):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        tagger = PerceptronTagger(max_iter=2, random_state=0).fit(*noisy)
    assert tagger.n_iter_ == 2


def test_without_tol_max_iter_is_what_was_asked_for(noisy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PerceptronTagger(max_iter=30, tol=None, random_state=0).fit(*noisy).n_iter_ == 30


# ------------------------------------------------------------------------------------ holding out


def held_out(n, fraction, seed):
    """The generator of a tagger after it chose the part to hold out; what is held and kept."""
    rng = np.random.RandomState(seed)
    order = rng.permutation(n)
    n_held = max(1, round(fraction * n))
    return rng, np.sort(order[:n_held]), np.sort(order[n_held:])


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("fraction", [0.1, 0.4])
def test_early_stopping_keeps_the_best_epoch(noisy, average, fraction):
    X, y = noisy
    tagger = PerceptronTagger(
        average=average,
        early_stopping=True,
        validation_fraction=fraction,
        max_iter=60,
        n_iter_no_change=4,
        tol=0.0,
        random_state=7,
    ).fit(X, y)
    rng, held, kept = held_out(len(y), fraction, 7)
    matrices = list(X)
    twin = naive.Perceptron(3, 5)
    accuracies, chains = [], []
    for _ in range(tagger.n_iter_):
        order = np.arange(len(kept))
        rng.shuffle(order)
        twin.epoch(matrices, y, kept[order])
        current = twin.average() if average else twin.weights
        chains.append(naive.Weights(*(part.copy() for part in current)))
        accuracies.append(
            naive.token_accuracy([matrices[i] for i in held], [y[i] for i in held], chains[-1])
        )
    assert_allclose(tagger.history_["validation_score"], accuracies)
    assert tagger.n_iter_ == stopping_epoch(accuracies, 0.0, 4)
    best = int(np.argmax(accuracies))
    assert best < tagger.n_iter_ - 1
    for found, part in zip(naive.weights_of(tagger), chains[best], strict=True):
        assert_allclose(found, part, rtol=1e-12, atol=1e-12)


def test_held_out_accuracy_is_weighted(noisy):
    X, y = noisy
    weight = np.random.default_rng(0).choice([0.0, 1.0, 5.0], len(y))
    tagger = PerceptronTagger(
        early_stopping=True, validation_fraction=0.4, max_iter=1, tol=None, random_state=0
    ).fit(X, y, weight)
    counting = np.flatnonzero(weight)
    _, held, _ = held_out(len(counting), 0.4, 0)
    held = counting[held]
    expected = tagger.score(X[held], [y[i] for i in held], weight[held])
    assert_allclose(tagger.history_["validation_score"], expected)


# --------------------------------------------------------------------------- beginning and going on


def test_fit_begins_anew(noisy):
    X, y = noisy
    fresh = PerceptronTagger(max_iter=3, tol=None, random_state=0).fit(X, y)
    used = PerceptronTagger(max_iter=3, tol=None, random_state=0)
    used.fit([[["a"], ["b"]]], [["x", "y"]])
    used.partial_fit([[["a"]]], [["y"]])
    assert_same_fit(used.fit(X, y), fresh)
    assert used.classes_.tolist() == [0, 1, 2]
    assert not hasattr(used, "vectorizer_")


def test_warm_start_from_separating_weights_changes_nothing(addresses):
    X, y = addresses[0][:40], addresses[1][:40]
    tagger = PerceptronTagger(average=False, warm_start=True, tol=None, random_state=0).fit(X, y)
    assert tagger.history_["mistakes"][-1] == 0
    before = [getattr(tagger, name).copy() for name in WEIGHTS]
    tagger.fit(X, y)
    assert tagger.n_iter_ == 1
    for name, weights in zip(WEIGHTS, before, strict=True):
        assert_array_equal(getattr(tagger, name), weights)


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_a_tagger_may_do_without_parameters(noisy, learn):
    class PlainPerceptron(OnlineTagger):
        def _learner(self, model):
            def merit(history):
                return -history["mistakes"][-1]

            return self._online_learner(model, lambda _: Mistakes(model.cost), merit=merit)

    X, y = noisy
    plain, ours = PlainPerceptron(), PerceptronTagger(average=False)
    for tagger in (plain, ours):
        with global_seed():
            getattr(tagger, learn)(X, y)
    assert plain.get_params() == {}
    assert_array_equal(plain.coef_, ours.coef_)


def test_partial_fit_after_fit_goes_on_from_its_weights(noisy):
    X, y = noisy
    tagger = PerceptronTagger(average=False, max_iter=3, tol=None, random_state=0)
    tagger.partial_fit(X[:9], y[:9]).fit(X, y)
    twin = naive.Perceptron(3, 5, weights=naive.weights_of(tagger))
    order = np.arange(len(y))
    np.random.RandomState(0).shuffle(order)
    twin.epoch(list(X), y, order)
    tagger.partial_fit(X, y)
    for found, part in zip(naive.weights_of(tagger), twin.weights, strict=True):
        assert_array_equal(found, part)
    assert tagger.n_iter_ == 4


def test_weights_do_not_change_behind_the_back(noisy):
    """What was read from a tagger stays as it is while the tagger learns on."""
    X, y = noisy
    for average in (False, True):
        tagger = PerceptronTagger(average=average, random_state=0).partial_fit(X[:30], y[:30])
        coef, before = tagger.coef_, tagger.coef_.copy()
        tagger.partial_fit(X[30:], y[30:])
        assert_array_equal(coef, before)
        assert not np.array_equal(tagger.coef_, before)


def test_partial_fit_takes_all_classes_at_first():
    X, y = [[["a"], ["b"]], [["c"]]], [["x", "y"], ["z"]]
    tagger = PerceptronTagger(random_state=0)
    tagger.partial_fit(X[:1], y[:1], classes=["z", "y", "x"])
    assert tagger.classes_.tolist() == ["x", "y", "z"]
    assert tagger.coef_.shape == (3, 2)
    tagger.partial_fit(X[1:], y[1:])
    tagger.partial_fit(X[1:], y[1:], classes=["x", "y", "z"])
    assert tagger.n_iter_ == 3
    assert tagger.classes_.tolist() == ["x", "y", "z"]


def test_partial_fit_without_classes_takes_those_that_occur():
    tagger = PerceptronTagger().partial_fit([[["a"], ["b"]]], [["x", "y"]])
    assert tagger.classes_.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ("xy", "classes is 'xy'; expected a list"),
        (3, "classes is 3; expected a list"),
        (["x", "y", None], "classes has None; expected all labels"),
        ([None, "x", "y"], "classes has None"),
        (["x", "y", float("nan")], "classes has nan"),
        (["x", "y", 1], "classes has 1"),
        (np.array([0.0, np.nan]), "classes has nan"),
    ],
)
def test_classes_that_are_none(classes, message):
    with pytest.raises(ValueError, match=message):
        PerceptronTagger().partial_fit([[["a"], ["b"]]], [["x", "y"]], classes=classes)


def test_partial_fit_ignores_features_that_come_later():
    tagger = PerceptronTagger(random_state=0).partial_fit([[["a"], ["b"]]], [["x", "y"]])
    tagger.partial_fit([[["new"], ["a"]]], [["y", "x"]])
    assert tagger.feature_names_in_.tolist() == ["a", "b"]
    assert tagger.coef_.shape == (2, 2)


# ------------------------------------------------------------------------------- side by side


def mean_of(parts, weights=None):
    return naive.Weights(
        *(np.average(p, axis=0, weights=weights) for p in zip(*parts, strict=True))
    )


def set_weights(tagger, weights):
    for name, part in zip(WEIGHTS, weights, strict=True):
        setattr(tagger, name, part)


def learn_apart(learner, X, y, sample_weight, n_shards, n_epochs):
    """Weights and their average by taggers that learn alone, epoch by epoch, and are then mixed."""
    counting = np.flatnonzero(sample_weight * X.lengths > 0)
    tagger = clone(learner).set_params(
        warm_start=True, max_iter=1, tol=None, shuffle=False, n_jobs=None
    )
    tagger.fit(X, y)
    mixed = naive.zero_weights(*tagger.coef_.shape)
    l2, rate, averages, counts = getattr(learner, "l2", 0.0), 0.1, [], []
    for _ in range(n_epochs):
        results = []
        for s in range(n_shards):
            part = counting[s::n_shards]
            if hasattr(learner, "l2"):
                # The penalty is divided among the shards.
                share = len(part) / np.count_nonzero(sample_weight)
                tagger.set_params(l2=l2 * share, learning_rate=rate)
            for average, found in ((False, results), (True, averages)):
                set_weights(tagger, mixed)
                tagger.set_params(average=average)
                tagger.fit(X[part], [y[i] for i in part], sample_weight[part])
                found.append(naive.weights_of(tagger))
            counts.append(len(part))
        mixed = mean_of(results)
        rate *= getattr(learner, "decay", 1.0)
    return mixed, mean_of(averages, counts)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("learner", AVERAGING, ids=lambda learner: type(learner).__name__)
def test_shards_are_mixed_after_every_epoch(noisy, learner, n_jobs, average):
    X, y = noisy
    matrices = [*X, X[0][:0]]
    X, y = SequenceBatch.from_sequences(matrices), [*y, []]
    sample_weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(y))
    mixed, averaged = learn_apart(learner, X, y, sample_weight, n_jobs, 3)
    tagger = clone(learner).set_params(
        average=average, max_iter=3, tol=None, shuffle=False, n_jobs=n_jobs
    )
    tagger.fit(X, y, sample_weight)
    expected = averaged if average else mixed
    for found, part in zip(naive.weights_of(tagger), expected, strict=True):
        assert_allclose(found, part, rtol=1e-9, atol=1e-11)
    norm = tagger.history_["weight_norm"][-1]
    assert_allclose(norm, np.linalg.norm(mixed.coef), rtol=1e-9)


def test_shards_visit_in_the_order_that_was_drawn(noisy):
    X, y = noisy
    matrices = list(X)
    tagger = PerceptronTagger(max_iter=3, tol=None, random_state=3, n_jobs=2).fit(X, y)
    rng, weights, total = np.random.RandomState(3), naive.zero_weights(3, 5), 0.0
    for epoch in range(3):
        order = np.arange(len(y))
        rng.shuffle(order)
        twins = [naive.Perceptron(3, 5, weights=weights) for _ in range(2)]
        notes = [twins[s].epoch(matrices, y, order[order % 2 == s]) for s in range(2)]
        weights = mean_of([twin.weights for twin in twins])
        total = total + sum(twin.total.coef for twin in twins)
        mistakes, loss = np.sum(notes, axis=0)
        assert_allclose(tagger.history_["mistakes"][epoch], mistakes / X.n_rows)
        assert_allclose(tagger.history_["loss"][epoch], loss, rtol=1e-9)
    assert_allclose(tagger.coef_, total / (3 * len(y)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("params", [{}, {"mini_length": 2.5}, {"early_stopping": True}])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_the_same_number_of_shards_gives_the_same_bits(noisy, learner, params):
    params = {"max_iter": 4, "tol": None, "random_state": 3, **params}
    one, two, three = (
        clone(learner).set_params(**params, n_jobs=n_jobs) for n_jobs in (None, 2, 3)
    )
    fits = [tagger.fit(*noisy) for tagger in (one, two, three)]
    for a, b in ((one, two), (two, three)):
        assert not np.array_equal(a.coef_, b.coef_)
    for tagger in fits:
        assert_same_fit(tagger, clone(tagger).fit(*noisy))
    assert_same_fit(one, clone(one).set_params(n_jobs=1).fit(*noisy))
    # However many threads it is given.
    with joblib.parallel_config(n_jobs=2):
        assert_same_fit(one, clone(one).fit(*noisy))


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_shards_are_the_same_wherever_they_are_learnt(noisy, learner, backend):
    tagger = clone(learner).set_params(max_iter=4, tol=None, random_state=3, n_jobs=2)
    fit = joblib.delayed(clone(tagger).fit)
    tagger.fit(*noisy)
    for other in joblib.Parallel(2, backend=backend)([fit(*noisy)] * 2):
        assert_same_fit(tagger, other)


def test_more_shards_than_sequences(noisy):
    X, y = noisy
    three, many = (
        PerceptronTagger(max_iter=2, tol=None, random_state=0, n_jobs=n_jobs).fit(X[:3], y[:3])
        for n_jobs in (3, 50)
    )
    # Shares of three and of fifty shards round differently.
    for name in WEIGHTS:
        assert_allclose(getattr(three, name), getattr(many, name), rtol=1e-14, atol=1e-14)


def test_shards_begin_with_the_weights_of_a_warm_start(noisy):
    X, y = noisy
    tagger = SAPOTagger(
        l2=0, learning_rate=1e-300, warm_start=True, max_iter=2, tol=None, n_jobs=2, random_state=0
    ).fit(X, y)
    tagger.coef_ = np.random.default_rng(0).normal(size=tagger.coef_.shape)
    before = tagger.coef_.copy()
    assert_allclose(tagger.fit(X, y).coef_, before, rtol=1e-15)


def test_partial_fit_does_not_divide_its_portion(noisy):
    one, two = (
        PerceptronTagger(random_state=0, n_jobs=n_jobs).partial_fit(*noisy) for n_jobs in (1, 2)
    )
    assert_same_fit(one, two)


def test_shards_learn(addresses):
    X, y = addresses
    for learner in LEARNERS:
        tagger = clone(learner).set_params(n_jobs=4, max_iter=20, tol=None, random_state=0)
        if hasattr(tagger, "l2"):
            tagger.set_params(l2=0.1, decay=0.95)
        assert tagger.fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.75


# ------------------------------------------------------------------------------ what overflows


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("learner", AVERAGING, ids=lambda learner: type(learner).__name__)
@pytest.mark.usefixtures("values_without_limit")
def test_weights_that_overflow_are_an_error(noisy, learner, n_jobs, average):
    """Values so large that their squares are infinite, in place of a rate that is too high."""
    X, y = noisy
    tagger = clone(learner).set_params(
        average=average, n_jobs=n_jobs, max_iter=3, tol=None, random_state=0
    )
    tagger.fit(X, y)
    before = dict(tagger.__dict__)
    large = SequenceBatch(X.X * 1e200, X.offsets)
    with np.errstate(all="ignore"):
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=r"infinite or NaN in epoch [1-4]: scale the feat"):
                getattr(tagger, method)(large, y)
            assert tagger.__dict__ == before
            assert_array_equal(tagger.coef_, before["coef_"])


@pytest.mark.parametrize("kind", [SAPOTagger, lambda **params: CRFTagger(solver="sgd", **params)])
def test_a_rate_that_is_too_high_is_named(noisy, kind):
    X, y = noisy
    tagger = kind(learning_rate=1e300, l2=0, max_iter=10, tol=None, random_state=0)
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match=r"in epoch 1: .* learning rate"),
    ):
        tagger.fit(X, y)
    assert not hasattr(tagger, "coef_")


FIT_IN_A_PROCESS = """
import numpy as np
from skstruct import CRFTagger
rng = np.random.default_rng(0)
X = [1.0 * (rng.random((n, 30)) < 0.3) for n in rng.integers(1, 12, 60)]
y = [rng.integers(0, 22, len(x)).tolist() for x in X]
tagger = CRFTagger(solver="sgd", average=True, max_iter=5, tol=None, random_state=0).fit(X, y)
print(tagger.coef_.tobytes().hex())
"""


@pytest.mark.slow
def test_a_process_that_compiles_gives_the_same_bits_as_one_that_need_not(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", FIT_IN_A_PROCESS]
    cold, warm = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert len(cold) > 1000
    assert cold == warm
