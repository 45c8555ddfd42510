"""The CRF against CRFsuite, logistic regression and scipy, and against its own promises."""

import warnings
from itertools import pairwise

import joblib
import naive
import numpy as np
import pytest
import scipy.optimize
from helpers.taggers import assert_same_weights, visiting_orders
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from strategies import online_problems

from skstruct import CRFTagger, SAPOTagger, SequenceBatch, WordVectorizer
from skstruct.datasets import load_addresses

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


@pytest.fixture(scope="module")
def small():
    """Thirty short sequences of real-valued features, and labels that depend on them."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 30)
    X = rng.normal(size=(lengths.sum(), 4)) * (rng.random((lengths.sum(), 4)) < 0.7)
    y = np.argmax(X[:, :3] + rng.normal(size=(len(X), 3)), axis=1)
    cuts = np.cumsum(lengths)[:-1]
    batch = SequenceBatch.from_lengths(X, lengths)
    return batch, [part.tolist() for part in np.split(y, cuts)]


def everything(**params):
    """A tagger with a weight for every combination, which leaves nothing to the data."""
    return CRFTagger(all_possible_states=True, all_possible_transitions=True, **params)


def objective_of(tagger, X, y, sample_weight=None):
    return naive.crf_objective(list(X), y, naive.weights_of(tagger), tagger.l2, sample_weight)


# ------------------------------------------------------------------------------------- references


class CRFsuite:
    """python-crfsuite, trained to the optimum."""

    def __init__(self, X, y, path, *, l2, **params):
        pycrfsuite = pytest.importorskip("pycrfsuite")
        trainer = pycrfsuite.Trainer(verbose=False)
        for x, labels in zip(X, y, strict=True):
            trainer.append(x, labels)
        tight = {"epsilon": 1e-9, "delta": 1e-13, "max_iterations": 5000, "num_memories": 20}
        trainer.set_params({"c1": 0, "c2": l2 / 2, **tight, **params})
        trainer.train(str(path))
        self.n_weights = trainer.logparser.featgen_num_features
        self.objective = trainer.logparser.last_iteration["loss"]
        self._tagger = pycrfsuite.Tagger()
        self._tagger.open(str(path))

    def predict(self, X):
        return [self._tagger.tag(x) for x in X]

    def predict_proba(self, X, classes):
        marginals = []
        for x in X:
            self._tagger.set(x)
            marginals.append(
                [[self._tagger.marginal(c, t) for c in classes] for t in range(len(x))]
            )
        return marginals


def assert_equals_crfsuite(tagger, X, y, path, *, X_test=None, **params):
    X_test = X if X_test is None else X_test
    reference = CRFsuite(X, y, path, l2=tagger.l2, **params)
    tagger.fit(X, y)
    assert tagger.n_weights_ == reference.n_weights
    assert_allclose(tagger.history_["objective"][-1], reference.objective, rtol=1e-7, atol=2e-6)
    expected = reference.predict_proba(X_test, tagger.classes_)
    for found, marginals in zip(tagger.predict_proba(X_test), expected, strict=True):
        assert_allclose(found, marginals, atol=1e-4)
    assert tagger.predict(X_test).tolist() == reference.predict(X_test)


@pytest.mark.parametrize(
    ("min_freq", "all_states", "all_transitions"),
    [(0, False, False), (2, False, False), (0, True, True), (3, True, False)],
)
def test_crfsuite_on_attribute_strings(addresses, tmp_path, min_freq, all_states, all_transitions):
    X, y = addresses
    tagger = CRFTagger(
        l2=1.0,
        tol=1e-12,
        fit_intercept=False,
        min_freq=min_freq,
        all_possible_states=all_states,
        all_possible_transitions=all_transitions,
    )
    params = {
        "feature.minfreq": min_freq,
        "feature.possible_states": all_states,
        "feature.possible_transitions": all_transitions,
    }
    n = 60 if all_states else 150
    assert_equals_crfsuite(tagger, X[:n], y[:n], tmp_path / "model", X_test=X[n : n + 50], **params)


def test_crfsuite_on_feature_dicts(addresses, tmp_path):
    """Strings, numbers, and truth values of which the false ones are features, too."""
    X = [
        [
            {"word": token[0], "digit": token[3][6:].isdigit(), "length": len(token[0]) / 10}
            for token in x
        ]
        for x in addresses[0][:80]
    ]
    tagger = CRFTagger(l2=0.5, tol=1e-12, fit_intercept=False)
    assert_equals_crfsuite(tagger, X, addresses[1][:80], tmp_path / "model")


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_logistic_regression_on_sequences_of_length_one(C):
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    reference = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    tagger = everything(l2=1 / C, tol=1e-13, fit_intercept=False).fit(X, y)
    assert_allclose(tagger.coef_, reference.coef_, atol=1e-4 * np.abs(reference.coef_).max())
    assert_allclose(tagger.predict_proba(X), reference.predict_proba(X), atol=1e-5)
    assert_array_equal(tagger.predict(X), reference.predict(X))


def test_biases_of_a_single_token_are_one_bias_in_three():
    """All three biases always come together, as one feature would whose square is three."""
    X, y = load_iris(return_X_y=True)
    with_biases = everything(l2=1.0, tol=1e-13).fit(X, y)
    column = np.full((len(X), 1), np.sqrt(3))
    as_feature = everything(l2=1.0, tol=1e-13, fit_intercept=False).fit(np.hstack([X, column]), y)
    assert_allclose(with_biases.coef_, as_feature.coef_[:, :4], atol=1e-4)
    for bias in (with_biases.intercept_, with_biases.start_, with_biases.end_):
        assert_allclose(bias, as_feature.coef_[:, 4] / np.sqrt(3), atol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_other_weights_are_better(small, fit_intercept):
    """scipy, on the plain objective and with gradients from differences, comes to the same."""
    X, y = list(small[0])[:8], small[1][:8]
    tagger = everything(l2=0.8, tol=1e-13, fit_intercept=fit_intercept).fit(X, y)
    shapes = [(3, 4), (3, 3), *([(3,)] * 3 if fit_intercept else [])]
    cuts = np.cumsum([np.prod(shape) for shape in shapes])[:-1]

    def value(w):
        parts = [p.reshape(s) for p, s in zip(np.split(w, cuts), shapes, strict=True)]
        weights = naive.Weights(*parts, *(np.zeros(3) for _ in range(5 - len(parts))))
        return naive.crf_objective(X, y, weights, 0.8)

    start = np.concatenate([part.ravel() for part in naive.weights_of(tagger)[: len(shapes)]])
    best = scipy.optimize.minimize(value, np.zeros(start.size), method="BFGS", tol=1e-5)
    assert_allclose(best.fun, value(start), rtol=1e-8)
    assert_allclose(best.x, start, atol=1e-3)


# --------------------------------------------------------------------------- the optimisation


@pytest.mark.parametrize("sample_weight", [None, "random"])
def test_history_tells_the_objective(small, sample_weight):
    X, y = small
    if sample_weight == "random":
        sample_weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    tagger = CRFTagger(l2=0.3, tol=1e-10).fit(X, y, sample_weight)
    history = tagger.history_
    assert set(history) == {"epoch", "time", "objective", "bound", "gradient_norm", "weight_norm"}
    assert {len(column) for column in history.values()} == {tagger.n_iter_ + 1}
    assert_array_equal(history["epoch"], np.arange(tagger.n_iter_ + 1))
    assert np.all(np.diff(history["time"]) >= 0)
    assert np.all(np.diff(history["objective"]) <= 1e-12 * history["objective"][0])
    start = naive.crf_objective(list(X), y, naive.zero_weights(3, 4), 0.3, sample_weight)
    assert_allclose(history["objective"][0], start)
    assert_allclose(history["objective"][-1], objective_of(tagger, X, y, sample_weight))
    norm = np.sqrt(sum(np.sum(part**2) for part in naive.weights_of(tagger)))
    assert_allclose(history["weight_norm"][-1], norm)
    assert history["weight_norm"][0] == 0
    assert_allclose(history["bound"], history["gradient_norm"] ** 2 / (2 * 0.3))
    assert tagger.suboptimality_bound_ == history["bound"][-1]


@pytest.mark.parametrize("l2", [0.01, 1.0, 30.0])
def test_bound_is_true_all_the_way(small, l2):
    X, y = small
    history = CRFTagger(l2=l2, tol=1e-12).fit(X, y).history_
    minimum = history["objective"][-1] - history["bound"][-1]
    assert np.all(history["objective"] - history["bound"] <= minimum + 1e-9 * minimum)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_stops_when_within_tol_of_the_minimum(small, tol):
    X, y = small
    minimum = CRFTagger(l2=0.5, tol=1e-12).fit(X, y).history_["objective"][-1]
    tagger = CRFTagger(l2=0.5, tol=tol).fit(X, y)
    objective = tagger.history_["objective"][-1]
    assert objective - minimum <= tol * objective
    assert tagger.suboptimality_bound_ <= tol * objective
    # And no earlier iteration was known to be that good.
    known = tagger.history_["bound"] <= tol * tagger.history_["objective"]
    assert not np.any(known[:-1])


def test_warns_when_max_iter_is_too_small(small):
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        tagger = CRFTagger(l2=0.01, tol=1e-9, max_iter=3).fit(*small)
    assert tagger.n_iter_ == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CRFTagger(l2=0.01, tol=1e-9).fit(*small)


def test_the_limit_itself_is_enough(small):
    n_iter = CRFTagger(tol=1e-6).fit(*small).n_iter_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CRFTagger(tol=1e-6, max_iter=n_iter).fit(*small).n_iter_ == n_iter


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("l2", [0.1, 1e4])
def test_many_sequences_come_to_the_same_minimum(l2, scale):
    """Many sequences are begun in another way, which must not matter, whatever their scale."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 4, 600)
    X = scale * rng.normal(size=(lengths.sum(), 3))
    y = np.argmax(X + scale * rng.normal(size=X.shape), axis=1)
    y = [part.tolist() for part in np.split(y, np.cumsum(lengths)[:-1])]
    batch = SequenceBatch.from_lengths(X, lengths)
    params = {"l2": l2, "tol": 1e-7, "max_iter": 3000}
    many = everything(**params).fit(batch, y)
    # Half of them, and then all from there.
    matrices = list(batch)
    other = everything(warm_start=True, **params).fit(matrices[:300], y[:300]).fit(batch, y)
    objective = other.history_["objective"][-1]
    assert_allclose(many.history_["objective"][-1], objective, rtol=1e-6)
    zero = naive.crf_objective(matrices, y, naive.zero_weights(3, 3), l2)
    assert many.history_["objective"][0] <= zero * (1 + 1e-12)
    again = everything(**params).fit(batch, y)
    assert_same_weights(many, again, rtol=0, atol=0)


@pytest.mark.parametrize("shift", [-3.0, 3.0])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_dense_features_of_either_sign(small, l2, shift):
    """Every value the same way off zero; scipy tells the minimum, without penalty, too."""
    batch, y = small
    X = [x + shift for x in batch]
    tagger = everything(l2=l2, tol=1e-12, fit_intercept=False).fit(X, y)
    start = np.concatenate([tagger.coef_.ravel(), tagger.transition_.ravel()])

    def value(w):
        weights = naive.zero_weights(3, 4)
        weights.coef[:], weights.transition[:] = w[:12].reshape(3, 4), w[12:].reshape(3, 3)
        return naive.crf_objective(X, y, weights, l2)

    assert_allclose(tagger.history_["objective"][-1], value(start))
    # A local search that starts from the solution finds nothing better.
    better = scipy.optimize.minimize(value, start, method="BFGS", options={"maxiter": 3})
    assert better.fun >= value(start) * (1 - 1e-6)
    assert value(start) < value(np.zeros_like(start))


def test_no_penalty_on_labels_that_contradict_each_other():
    """The maximum of the likelihood is known: the shares of the labels."""
    X = [np.ones((1, 1))] * 10
    y = [["a"]] * 7 + [["b"]] * 3
    tagger = CRFTagger(l2=0.0, fit_intercept=False, tol=1e-12).fit(X, y)
    assert_allclose(tagger.predict_proba(X)[0], [[0.7, 0.3]], atol=1e-6)
    assert tagger.suboptimality_bound_ == np.inf


def test_no_penalty_on_separable_labels_ends():
    X, y = [np.eye(3)] * 5, [["a", "b", "c"]] * 5
    tagger = CRFTagger(l2=0.0, tol=1e-4).fit(X, y)
    assert tagger.history_["objective"][-1] < 1e-2
    assert tagger.predict(X).tolist() == y


# ------------------------------------------------------------------------------ sample weights


def test_weights_of_samples_are_repetitions(small):
    X, y = small
    repeats = np.random.default_rng(2).integers(1, 4, len(X))
    index = np.repeat(np.arange(len(X)), repeats)
    weighted = CRFTagger(tol=1e-13, min_freq=2).fit(X, y, repeats)
    repeated = CRFTagger(tol=1e-13, min_freq=2).fit(X[index], [y[i] for i in index])
    assert weighted.n_weights_ == repeated.n_weights_
    assert_same_weights(weighted, repeated, atol=1e-4)


def test_sequences_of_no_weight_do_not_matter(small):
    X, y = small
    weight = np.ones(len(X))
    weight[::3] = 0
    kept = np.flatnonzero(weight)
    weighted = CRFTagger(tol=1e-10).fit(X, y, weight)
    subset = CRFTagger(tol=1e-10).fit(X[kept], [y[i] for i in kept])
    assert weighted.n_weights_ == subset.n_weights_
    assert_same_weights(weighted, subset, rtol=0, atol=0)


def test_weights_scale_the_likelihood_against_the_penalty(small):
    X, y = small
    heavy = CRFTagger(l2=3.0, tol=1e-13).fit(X, y, np.full(len(X), 3.0))
    plain = CRFTagger(l2=1.0, tol=1e-13).fit(X, y)
    assert_same_weights(heavy, plain, atol=1e-4)


# -------------------------------------------------------------------------------------- the rest


def test_warm_start_continues(small):
    X, y = small
    tagger = CRFTagger(l2=0.1, tol=1e-8, warm_start=True).fit(X, y)
    cold, weights = tagger.n_iter_, naive.weights_of(tagger)
    tagger.fit(X, y)
    assert tagger.n_iter_ == 0
    for before, after in zip(weights, naive.weights_of(tagger), strict=True):
        assert_array_equal(before, after)
    tagger.set_params(l2=0.11).fit(X, y)
    assert 0 < tagger.n_iter_ < cold
    fresh = CRFTagger(l2=0.11, tol=1e-12).fit(X, y)
    tagger.set_params(tol=1e-12).fit(X, y)
    assert_same_weights(tagger, fresh, atol=1e-4)


@pytest.fixture(scope="module")
def many_tokens():
    """Enough tokens for the stochastic start."""
    X, y = load_addresses(return_X_y=True)
    return WordVectorizer().fit_transform(X), y


@pytest.mark.parametrize(
    "params",
    [{"l1": 0.05}, {"l2": 0.01}, {"solver": "sag", "l2": 0.05, "random_state": 0}],
    ids=["l1", "l2", "sag"],
)
@pytest.mark.parametrize("factor", [1e-5, 1e4])
def test_weights_times_a_number_are_penalties_divided_by_it(small, params, factor):
    X, y = small
    X = SequenceBatch(X.X / 100, X.offsets)
    params = {"l1": 0, "l2": 0, "tol": 1e-5, **params}
    if params.get("solver") == "sag":
        del params["l1"]
    scaled = {name: params[name] * factor for name in ("l1", "l2") if name in params}
    tagger = CRFTagger(**params).fit(X, y)
    other = CRFTagger(**{**params, **scaled}).fit(X, y, sample_weight=np.full(len(y), factor))
    assert other.n_iter_ <= 1.5 * tagger.n_iter_ + 5
    objective = tagger.history_["objective"][-1]
    assert other.history_["objective"][-1] / factor == pytest.approx(objective, rel=1e-4)


@pytest.mark.parametrize("params", [{}, {"order": 2}, {"l1": 0.1}, {"fit_intercept": False}])
def test_a_warm_start_goes_on_from_a_memory_map(small, params, tmp_path):
    X, y = small
    tagger = CRFTagger(l2=0.1, warm_start=True, **params).fit(X, y)
    (path, *_) = joblib.dump(tagger, tmp_path / "tagger.joblib")
    mapped = joblib.load(path, mmap_mode="r").fit(X, y)
    assert_array_equal(mapped.coef_, tagger.fit(X, y).coef_)


@pytest.mark.parametrize(("before", "l2"), [(1.0, 0.7), (0.3, 1.0), (10.0, 0.3), (0.1, 10.0)])
def test_a_warm_start_leads_to_the_same_minimum_in_fewer_steps(many_tokens, before, l2):
    X, y = many_tokens
    warm = CRFTagger(l2=before, warm_start=True).fit(X, y).set_params(l2=l2).fit(X, y)
    cold = CRFTagger(l2=l2).fit(X, y)
    # The ascent before the first iteration may leave a little more or less.
    assert warm.n_iter_ <= cold.n_iter_ + 1
    assert_allclose(warm.history_["objective"][-1], cold.history_["objective"][-1], rtol=1e-4)


def test_a_warm_start_with_other_data_is_no_longer_than_a_cold_one(many_tokens):
    X, y = many_tokens
    # Labels in another order have nothing to do with the first ones.
    other = [labels[::-1] for labels in y]
    warm = CRFTagger(l2=0.3, warm_start=True).fit(X, y).fit(X, other)
    cold = CRFTagger(l2=0.3).fit(X, other)
    assert warm.n_iter_ <= 1.2 * cold.n_iter_
    assert_allclose(warm.history_["objective"][-1], cold.history_["objective"][-1], rtol=1e-4)


def test_weights_of_another_l1_penalty_are_not_used(many_tokens):
    X, y = many_tokens
    cold = CRFTagger(l1=0.5, l2=0.1).fit(X, y)
    warm = CRFTagger(l1=1.0, l2=0.1, warm_start=True).fit(X, y).set_params(l1=0.5).fit(X, y)
    assert_same_weights(warm, cold)
    # With the same penalties, a fit goes on.
    stopped = CRFTagger(l1=0.5, l2=0.1, max_iter=cold.n_iter_ - 2, warm_start=True)
    with pytest.warns(ConvergenceWarning):
        stopped.fit(X, y)
    assert stopped.set_params(max_iter=1000).fit(X, y).n_iter_ < cold.n_iter_


def test_without_warm_start_nothing_is_left_of_the_last_fit(small):
    X, y = small
    tagger = CRFTagger().fit(X, y)
    expected = naive.weights_of(tagger)
    tagger.fit([[["a"], ["b"]]], [["x", "y"]])
    assert tagger.classes_.tolist() == ["x", "y"]
    tagger.fit(X, y)
    for before, after in zip(expected, naive.weights_of(tagger), strict=True):
        assert_array_equal(before, after)


def test_fits_are_the_same_to_the_last_bit(small):
    first, second = (CRFTagger(tol=1e-10).fit(*small) for _ in range(2))
    assert_same_weights(first, second, rtol=0, atol=0)
    assert_array_equal(first.history_["objective"], second.history_["objective"])


def test_only_what_was_seen_has_a_weight(small):
    X, y = small
    tagger = CRFTagger(tol=1e-6).fit(X, y)
    seen = {(a, b) for labels in y for a, b in pairwise(labels)}
    assert set(zip(*np.nonzero(tagger.transition_), strict=True)) == seen
    one_by_one = CRFTagger().fit([[["a"], ["b"]], [["b"], ["c"]]], [["x", "y"], ["x", "x"]])
    assert_array_equal(one_by_one.coef_ != 0, [[True, True, True], [False, True, False]])


@pytest.mark.parametrize("params", [{}, {"l2": 0.0}, {"fit_intercept": False}])
def test_one_label_only(params):
    X, y = [[["a"], ["b"]], [["b"]]], [["x", "x"], ["x"]]
    tagger = CRFTagger(**params).fit(X, y)
    assert tagger.predict(X).tolist() == y
    assert_array_equal(tagger.predict_proba(X)[0], [[1], [1]])
    assert tagger.history_["objective"][-1] == 0


def test_single_sequence():
    X, y = [[["a"], ["b"], ["a"]]], [["x", "y", "x"]]
    tagger = CRFTagger(l2=0.1).fit(X, y)
    assert tagger.predict(X).tolist() == y


def test_empty_sequences_do_not_matter(small):
    X, y = small
    matrices = list(X)
    with_empty = [matrices[0][:0], *matrices, matrices[0][:0]]
    tagger = CRFTagger(tol=1e-10).fit(with_empty, [[], *y, []])
    assert_same_weights(tagger, CRFTagger(tol=1e-10).fit(X, y), rtol=0, atol=0)


# ------------------------------------------------------------------------- stochastic descent


def sgd(**params):
    return CRFTagger(solver="sgd", **params)


@given(
    online_problems(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(0.0, 1.0), (1.0, 0.8), (3.0, 1.0)]),
)
def test_sgd_makes_the_twins_steps(problem, average, intercept, l2_decay):
    batch, y, sample_weight = problem
    (l2, decay), X = l2_decay, list(batch)
    tagger = sgd(
        l2=l2, learning_rate=0.11, decay=decay, average=average, fit_intercept=intercept,
        max_iter=2, tol=None, random_state=5,
    ).fit(batch, y, sample_weight)  # fmt: skip
    weights = naive.zero_weights(len(tagger.classes_), batch.n_features)
    total, n_seen, rate = [np.zeros_like(part) for part in weights], 0, 0.11
    for order in visiting_orders(len(y), 2, 5):
        loss = 0.0
        for i in order:
            if len(X[i]) == 0:
                continue
            loss += sample_weight[i] * naive.crf_objective([X[i]], [y[i]], weights, 0.0)
            gradient = naive.crf_gradient(X[i], y[i], weights)
            for k, (part, slope) in enumerate(zip(weights, gradient, strict=True)):
                if k < 2 or intercept:
                    part -= rate * sample_weight[i] * slope
                part *= 1 - rate * l2 / len(y)
                total[k] += part
            n_seen += 1
            rate *= decay ** (1 / len(y))
    if tagger.n_iter_ < 2:
        return
    expected = [part / n_seen for part in total] if average else weights
    for found, part in zip(naive.weights_of(tagger), expected, strict=True):
        assert_allclose(found, part, rtol=1e-9, atol=1e-11)
    assert_allclose(tagger.history_["loss"][-1], loss, rtol=1e-9, atol=1e-11)


@given(
    online_problems(), st.sampled_from([{}, {"average": True}, {"mini_length": 1.5}, {"n_jobs": 2}])
)
def test_sgd_is_sapo_with_all_labellings(problem, params):
    params = {"l2": 0.5, "max_iter": 3, "tol": None, "random_state": 0, **params}
    crf, sapo = sgd(**params).fit(*problem), SAPOTagger(n_best=4**4, **params).fit(*problem)
    assert_same_weights(crf, sapo, rtol=1e-9, atol=1e-12)
    assert_allclose(crf.history_["loss"], sapo.history_["loss"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_sgd_approaches_the_minimum(small, n_jobs):
    X, y = small
    minimum = everything(l2=2.0, tol=1e-9).fit(X, y)
    tagger = sgd(
        l2=2.0, decay=0.97, max_iter=300, tol=None, random_state=0, n_jobs=n_jobs
    ).fit(X, y)  # fmt: skip
    assert_allclose(objective_of(tagger, X, y), minimum.history_["objective"][-1], rtol=1e-4)
    assert_same_weights(tagger, minimum, atol=0.02)


def test_sgd_counts_tokens_whose_most_probable_label_is_wrong(small):
    X, y = small
    tagger = sgd(
        learning_rate=1e-12, l2=0, warm_start=True, max_iter=1, tol=None, random_state=0
    ).fit(X, y)
    rng = np.random.default_rng(0)
    tagger.coef_ = rng.normal(size=tagger.coef_.shape)
    # Some tokens have no features: without biases their labels would tie.
    tagger.intercept_ = rng.normal(size=tagger.intercept_.shape)
    wrong = np.concatenate(tagger.predict_proba(X)).argmax(axis=1) != np.concatenate(y)
    assert_allclose(tagger.fit(X, y).history_["mistakes"], [wrong.mean()])


def test_sgd_stops_when_the_loss_no_longer_falls(small):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger = sgd(tol=1e-2, n_iter_no_change=2, random_state=0).fit(*small)
    merit = -np.log(tagger.history_["loss"])
    assert tagger.n_iter_ < 200
    assert np.all(merit[-2:] <= merit[:-2].max() + 1e-2)
    with pytest.warns(ConvergenceWarning, match="max_iter=3") as record:
        sgd(max_iter=3, random_state=0).fit(*small)
    assert [warning.filename for warning in record] == [__file__]
    with pytest.warns(ConvergenceWarning, match="max_iter=3") as record:
        CRFTagger(max_iter=3, tol=0).fit(*small)
    assert [warning.filename for warning in record] == [__file__]


def test_sgd_early_stopping_keeps_the_best_epoch(small):
    X, y = small
    params = {"early_stopping": True, "validation_fraction": 0.4, "tol": None, "random_state": 0}
    tagger = sgd(max_iter=12, **params).fit(X, y)
    score = tagger.history_["validation_score"]
    assert score.shape == (12,)
    best = sgd(max_iter=int(score.argmax()) + 1, **params).fit(X, y)
    assert_same_weights(tagger, best, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("solver", "params"),
    [
        ("sgd", {"l1": 0.5}),
        ("sgd", {"min_freq": 2}),
        ("lbfgs", {"average": True}),
        ("lbfgs", {"structure_alpha": 2.0}),
        ("lbfgs", {"mini_length": 5}),
        ("lbfgs", {"tol": None}),
    ],
)
def test_what_a_solver_cannot_do_is_refused(small, solver, params):
    tagger = CRFTagger(solver=solver, max_iter=5000, random_state=0).fit(*small)
    before = tagger.__dict__ | params
    tagger.set_params(**params)
    for method in ("fit", "partial_fit") if solver == "sgd" else ("fit",):
        with pytest.raises(ValueError, match=f"{next(iter(params))}=.* needs solver="):
            getattr(tagger, method)(*small)
    assert tagger.__dict__ == before


def test_partial_fit_is_there_with_sgd_only(small):
    X, y = small
    tagger = CRFTagger()
    assert not hasattr(tagger, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit"):
        tagger.partial_fit(X, y)
    tagger.set_params(solver="sgd", shuffle=False, decay=1.0, l2=0)
    for start in range(0, len(y), 7):
        tagger.partial_fit(X[start : start + 7], y[start : start + 7], classes=[0, 1, 2])
    whole = sgd(shuffle=False, decay=1.0, l2=0, max_iter=1, tol=None).fit(X, y)
    assert_same_weights(tagger, whole, rtol=1e-12, atol=1e-14)


def test_solvers_may_take_turns(small):
    X, y = small
    tagger = CRFTagger(l2=0.5, warm_start=True, tol=1e-9, random_state=0).fit(X, y)
    minimum = naive.weights_of(tagger)
    # Steps of no length change nothing, whichever way they begin.
    still = {"solver": "sgd", "l2": 0, "learning_rate": 1e-300}
    tagger.set_params(max_iter=1, tol=None, **still).fit(X, y)
    for expected, found in zip(minimum, naive.weights_of(tagger), strict=True):
        assert_array_equal(found, expected)
    assert not hasattr(tagger, "suboptimality_bound_")
    assert "loss" in tagger.history_
    tagger.partial_fit(X, y)
    tagger.set_params(solver="lbfgs", l2=0.5, tol=1e-6, max_iter=100).fit(X, y)
    assert tagger.n_iter_ == 0
    assert tagger.suboptimality_bound_ >= 0
    assert "loss" not in tagger.history_
    # What was learnt before L-BFGS is not gone on with.
    tagger.set_params(**still, tol=None).partial_fit(X, y)
    for expected, found in zip(minimum, naive.weights_of(tagger), strict=True):
        assert_array_equal(found, expected)
    assert not hasattr(tagger, "n_weights_")


def test_sgd_has_a_weight_for_every_combination():
    X, y = [[["a"], ["b"]], [["b"]]], [["x", "y"], ["x"]]
    tagger = sgd(max_iter=1, tol=None, random_state=0).fit(X, y)
    assert np.all(tagger.coef_ != 0)
    assert np.all(tagger.transition_ != 0)


def test_absolute_penalty_is_crfsuites(addresses, tmp_path):
    X, y = addresses[0][:40], addresses[1][:40]
    tagger = CRFTagger(l1=0.5, l2=0.2, fit_intercept=False, tol=1e-9).fit(X, y)
    reference = CRFsuite(X, y, tmp_path / "model", l2=0.2, c1=0.5, max_iterations=1000)
    objective = tagger.history_["objective"][-1]
    assert_allclose(objective, reference.objective, rtol=1e-6)
    weights = np.concatenate([tagger.coef_.ravel(), tagger.transition_.ravel()])
    assert np.count_nonzero(weights) < tagger.n_weights_ / 2
    dense = [x.toarray() for x in tagger.vectorizer_.transform(X)]
    smooth = objective_of(tagger, dense, [np.searchsorted(tagger.classes_, part) for part in y])
    assert_allclose(objective, smooth + 0.5 * np.abs(weights).sum(), rtol=1e-10)
