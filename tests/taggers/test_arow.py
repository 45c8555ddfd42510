"""Adaptive regularisation of weights: every step against a plain twin, and beside CRFsuite."""

import ctypes
import sys
from typing import NamedTuple

import naive
import numpy as np
import pytest
from helpers.taggers import visiting_orders
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import online_problems

from skstruct import AROWTagger, SequenceBatch, crfsuite
from skstruct.crfsuite import read_model

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

WEIGHTS = ("coef_", "transition_", "transition_coef_", "intercept_", "start_", "end_")


class Token(NamedTuple):
    """Features of a token, and of the transition into it."""

    x: np.ndarray
    z: np.ndarray


def flat_features(tokens, labels, n_labels, intercept):
    """Feature vector of a whole labelling, and where its parts end."""
    n_features, n_pair_features = len(tokens[0].x), len(tokens[0].z)
    k = n_labels
    parts = [np.zeros((k, n_features)), np.zeros((k, k)), np.zeros((k, k, n_pair_features))]
    parts += [np.zeros(k) for _ in range(3)]
    for t, label in enumerate(labels):
        parts[0][label] += tokens[t].x
        parts[3][label] += intercept
        if t > 0:
            parts[1][labels[t - 1], label] += 1
            parts[2][labels[t - 1], label] += tokens[t].z
    parts[4][labels[0]] += intercept
    parts[5][labels[-1]] += intercept
    return parts


def flatten(parts):
    return np.concatenate([np.ravel(part) for part in parts])


class Twin:
    """The equations of the paper, with a diagonal covariance, over flat vectors.

    `find` lists candidates: by default all labellings, best first.
    """

    def __init__(self, n_labels, tokens, *, variance=1.0, gamma=1.0, intercept=True):
        self.n_labels, self.gamma, self.intercept = n_labels, gamma, intercept
        self.parts = flat_features(tokens, [0] * len(tokens), n_labels, intercept)
        size = len(flatten(self.parts))
        self.mean, self.variance = np.zeros(size), np.full(size, variance)
        self.loss = self.mistakes = 0
        # After each sequence.
        self.means = []

    def visit(self, tokens, gold, weight=1.0):
        if len(tokens) > 0:
            self.step(tokens, gold, weight)
            self.means.append(self.mean)

    def step(self, tokens, gold, weight):
        labels = max(
            naive.labellings(len(tokens), self.n_labels),
            key=lambda labels: self.mean @ self.flat(tokens, labels),
        )
        wrong = sum(a != b for a, b in zip(labels, gold, strict=True))
        if wrong == 0:
            return
        x = self.flat(tokens, gold) - self.flat(tokens, labels)
        loss = wrong - self.mean @ x
        r = self.gamma / weight
        self.mean = self.mean + loss / (x @ (self.variance * x) + r) * self.variance * x
        self.variance = 1 / (1 / self.variance + x**2 / r)
        self.loss, self.mistakes = self.loss + weight * loss, self.mistakes + wrong

    def flat(self, tokens, labels):
        return flatten(flat_features(tokens, labels, self.n_labels, self.intercept))

    def average(self):
        return self.weights(np.mean(self.means, axis=0))

    def weights(self, mean=None):
        sizes = np.cumsum([part.size for part in self.parts])[:-1]
        pieces = np.split(self.mean if mean is None else mean, sizes)
        return dict(
            zip(
                WEIGHTS,
                (p.reshape(s.shape) for p, s in zip(pieces, self.parts, strict=True)),
                strict=True,
            )
        )


def assert_weights(tagger, twin):
    expected_weights = twin.average() if tagger.average else twin.weights()
    for name, expected in expected_weights.items():
        if name in vars(tagger) or expected.size:
            found = getattr(tagger, name)
            assert_allclose(found, expected, rtol=1e-7, atol=1e-9, err_msg=name)


def tokens_of(batch):
    """Tokens of each sequence, with whatever features the batch has."""
    Z = batch.transition_X
    Z = np.zeros((batch.n_rows, 0)) if Z is None else np.asarray(Z)
    rows = [Token(x, z) for x, z in zip(np.asarray(batch.X), Z, strict=True)]
    return [rows[a:b] for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]


def noisy(batch, seed=0):
    """The batch with noise on its features, because a tie here is rounded to none there."""
    noise = np.random.default_rng(seed).normal(size=batch.X.shape)
    return SequenceBatch(batch.X + noise, batch.offsets)


def short_problem(seed, *, n_labels=3, transition_features=False):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, 12)
    X, Z = rng.normal(size=(lengths.sum(), 4)), rng.normal(size=(lengths.sum(), 2))
    X[rng.random(X.shape) < 0.3] = 0
    y = rng.integers(n_labels, size=len(X))
    y[:n_labels] = np.arange(n_labels)
    batch = SequenceBatch.from_lengths(X, lengths, transition_X=Z if transition_features else None)
    return batch, [part.tolist() for part in np.split(y, np.cumsum(lengths)[:-1])]


@given(
    online_problems(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.1, 1.0, 5.0]),
    st.sampled_from([0.2, 1.0, 4.0]),
    st.integers(1, 2),
)
def test_every_step_is_the_twins(problem, average, intercept, variance, gamma, n_epochs):
    batch, y, sample_weight = problem
    assume(max(map(len, y)) <= 5)
    batch = noisy(batch)
    tagger = AROWTagger(
        variance=variance, gamma=gamma, average=average, fit_intercept=intercept,
        max_iter=n_epochs, tol=None, random_state=5,
    ).fit(batch, y, sample_weight)  # fmt: skip
    tokens = tokens_of(batch)
    first = next(sequence for sequence in tokens if sequence)
    twin = Twin(len(tagger.classes_), first, variance=variance, gamma=gamma, intercept=intercept)
    for order in list(visiting_orders(len(y), n_epochs, 5))[: tagger.n_iter_]:
        twin.loss = twin.mistakes = 0
        for i in order:
            twin.visit(tokens[i], y[i], sample_weight[i])
    assert_weights(tagger, twin)
    assert_allclose(tagger.history_["loss"][-1], twin.loss, rtol=1e-7, atol=1e-9)
    assert tagger.history_["mistakes"][-1] * batch.n_rows == pytest.approx(twin.mistakes)
    norm = np.linalg.norm(twin.weights()["coef_"])
    assert tagger.history_["weight_norm"][-1] == pytest.approx(norm)


@pytest.mark.slow  # compiles a kernel for them
@pytest.mark.parametrize("seed", range(3))
def test_features_of_transitions_have_variances_too(seed):
    batch, y = short_problem(seed, transition_features=True)
    tagger = AROWTagger(gamma=1.0, average=False, max_iter=2, tol=None, shuffle=False)
    tagger.fit(batch, y)
    tokens = tokens_of(batch)
    twin = Twin(3, tokens[0])
    for _ in range(tagger.n_iter_):
        for sequence, labels in zip(tokens, y, strict=True):
            twin.visit(sequence, labels)
    assert_weights(tagger, twin)
    norm = np.linalg.norm(flatten([twin.weights()[name] for name in ("coef_", "transition_coef_")]))
    assert tagger.history_["weight_norm"][-1] == pytest.approx(norm)


def test_only_the_ratio_of_variance_and_gamma_matters():
    batch, y = short_problem(0)
    first, second = (
        AROWTagger(variance=0.5 * s, gamma=2.0 * s, max_iter=4, tol=None, random_state=0)
        for s in (1.0, 4.0)
    )
    assert_allclose(first.fit(batch, y).coef_, second.fit(batch, y).coef_, rtol=1e-12)
    third = AROWTagger(variance=2.0, gamma=2.0, max_iter=4, tol=None, random_state=0)
    assert not np.allclose(first.coef_, third.fit(batch, y).coef_)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("gamma", [1e-310, 1e-300, 1e300])
def test_weights_stay_finite_however_weak_the_regularisation(gamma, dense):
    """Variances shrink by rates up to the inverse of `gamma`, which may be infinite."""
    batch, y = short_problem(0)
    if dense:
        vectors = np.random.default_rng(0).standard_normal((batch.n_rows, 40))
        batch = SequenceBatch.hstack([batch, SequenceBatch(vectors, batch.offsets)])
    tagger = AROWTagger(gamma=gamma, average=False, max_iter=3, tol=None, random_state=0)
    weights = tagger.fit(batch, y).coef_
    assert np.isfinite(weights).all()
    assert tagger.history_["weight_norm"][-1] == pytest.approx(np.linalg.norm(weights), rel=1e-5)


def test_shards_average_weights_and_variances():
    batch, y = short_problem(1)
    tagger = AROWTagger(
        gamma=1.0, average=False, n_jobs=2, max_iter=3, tol=None, shuffle=False
    ).fit(batch, y)
    assert tagger.n_iter_ == 3
    tokens = tokens_of(batch)
    shards = [Twin(3, tokens[0]) for _ in range(2)]
    for _ in range(3):
        for i, (sequence, labels) in enumerate(zip(tokens, y, strict=True)):
            shards[i % 2].visit(sequence, labels)
        mean = (shards[0].mean + shards[1].mean) / 2
        variance = (shards[0].variance + shards[1].variance) / 2
        for shard in shards:
            shard.mean, shard.variance = mean, variance
    assert_weights(tagger, shards[0])


def test_portions_keep_the_variances():
    batch, y = short_problem(2)
    whole = AROWTagger(max_iter=2, tol=None, shuffle=False).fit(batch, y)
    assert whole.n_iter_ == 2
    portions = AROWTagger(shuffle=False)
    for part in (slice(0, 5), slice(5, None)) * 2:
        portions.partial_fit(batch[part], y[part], classes=[0, 1, 2])
    for name in set(WEIGHTS) - {"transition_coef_"}:
        assert_allclose(getattr(portions, name), getattr(whole, name), rtol=1e-12, err_msg=name)


@pytest.mark.usefixtures("values_without_limit")
def test_a_portion_that_fails_leaves_the_variances():
    batch, y = short_problem(2)
    tagger, other = (
        AROWTagger(shuffle=False).partial_fit(batch, y, classes=[0, 1, 2]) for _ in range(2)
    )
    huge = SequenceBatch(np.full(batch.X.shape, 1e200) * np.sign(batch.X), batch.offsets)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="infinite or NaN"):
        tagger.partial_fit(huge, y)
    for found, expected in zip(tagger._state.variance, other._state.variance, strict=True):
        assert_array_equal(found, expected)
    tagger.partial_fit(batch, y)
    assert_array_equal(tagger.coef_, other.partial_fit(batch, y).coef_)


# ------------------------------------------------------------------------------- beside CRFsuite


def order_of_crfsuite(n, n_epochs, seed):
    """The orders in which CRFsuite visits the sequences, from the C library's random numbers."""
    libc = ctypes.CDLL(None)
    libc.srand(seed)
    order = np.arange(n)
    for _ in range(n_epochs):
        for i in range(n):
            j = libc.rand() % n
            order[i], order[j] = order[j], order[i]
        yield order.copy()


def train_with_crfsuite(algorithm, params, X, y, seed, path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    if sys.platform != "linux":
        pytest.skip("CRFsuite's order is known where its C library is")
    trainer = pycrfsuite.Trainer(algorithm, params, verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    ctypes.CDLL(None).srand(seed)
    trainer.train(str(path))
    return read_model(path), trainer.logparser.iterations


class InOrder:
    """Random state that shuffles into the given orders, one after the other."""

    def __init__(self, orders):
        self._orders = iter(orders)

    def shuffle(self, order):
        order[:] = next(self._orders)


def feature_sequences(seed, n=25):
    """Feature dicts with real values, some of them negative, and labels in no special order."""
    rng = np.random.default_rng(seed)
    names = ["z", "b", "c", "a", "d"]
    X = [
        [
            {f: round(float(rng.normal()), 3) for f in names if rng.random() < 0.6}
            for _ in range(rng.integers(1, 6))
        ]
        for _ in range(n)
    ]
    return X, [[str(rng.choice(["N", "A", "V"])) for _ in tokens] for tokens in X]


@pytest.mark.parametrize(
    ("algorithm", "params"),
    [
        ("arow", {}),
        ("arow", {"variance": 0.5, "gamma": 2.0, "feature.possible_states": True}),
        ("arow", {"feature.minfreq": 2, "feature.possible_transitions": True}),
        ("ap", {}),
        ("ap", {"feature.possible_states": True, "feature.possible_transitions": True}),
        ("ap", {"epsilon": 0.45}),
        ("pa", {}),
        ("pa", {"type": 0, "error_sensitive": False}),
        ("pa", {"type": 0, "averaging": False}),
        ("pa", {"type": 1, "c": 0.1, "feature.minfreq": 1}),
        ("pa", {"type": 2, "c": 0.3, "error_sensitive": False, "averaging": False}),
        ("pa", {"type": 2, "epsilon": 3.0}),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_weights_are_crfsuites(algorithm, params, seed, tmp_path, monkeypatch):
    X, y = feature_sequences(seed)
    params = {"max_iterations": 6, **params}
    theirs, iterations = train_with_crfsuite(algorithm, params, X, y, 7, tmp_path / "model")
    orders = InOrder(order_of_crfsuite(len(X), 6, 7))
    monkeypatch.setattr("skstruct.learning.online.check_random_state", lambda seed: orders)
    trainer = crfsuite.Trainer(algorithm, params, verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    trainer.train(tmp_path / "ours")
    ours = read_model(tmp_path / "ours")
    assert list(ours.classes_) == list(theirs.classes_)
    assert list(ours.feature_names_in_) == list(theirs.feature_names_in_)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(ours.transition_, theirs.transition_, rtol=1e-9, atol=1e-12)
    assert len(trainer.logparser.iterations) == len(iterations)
    for mine, other in zip(trainer.logparser.iterations, iterations, strict=True):
        assert mine["num"] == other["num"]
        assert mine["loss"] == pytest.approx(other["loss"], abs=2e-6)
