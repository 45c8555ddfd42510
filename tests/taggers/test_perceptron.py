"""The perceptron, step by step against its plain twin.

Feature values, sample weights and therefore all weights are multiples of 1/64, so that both
compute without rounding, and a tie in one is a tie in the other.
"""

import naive
import numpy as np
import pytest
from helpers.taggers import visiting_orders
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import online_problems

from skstruct import PerceptronTagger, SequenceBatch

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def run_twin(
    batch, y, sample_weight, epoch_orders, *, fit_intercept=True, weights=None, average=False
):
    """The twin after all epochs, with its notes of every epoch."""
    matrices = list(batch)
    n_labels = max(max(labels, default=0) for labels in y) + 1
    twin = naive.Perceptron(
        n_labels, batch.n_features, fit_intercept=fit_intercept, weights=weights
    )
    history = {"mistakes": [], "loss": [], "weight_norm": []}
    for order in epoch_orders:
        wrong, loss = twin.epoch(matrices, y, order, sample_weight)
        history["mistakes"].append(wrong / batch.n_rows)
        history["loss"].append(loss)
        history["weight_norm"].append(np.linalg.norm(twin.weights.coef))
        counting = [i for i in range(len(y)) if y[i]]
        learnt = twin.average() if average else twin.weights
        X_counting, y_counting = [matrices[i] for i in counting], [y[i] for i in counting]
        if wrong == 0 and naive.token_accuracy(X_counting, y_counting, learnt) == 1:
            break
    return twin, history


def assert_weights(tagger, expected, **tolerance):
    for name, found, part in zip(expected._fields, naive.weights_of(tagger), expected, strict=True):
        assert_allclose(found, part, err_msg=name, **tolerance)


@given(online_problems(), st.booleans(), st.integers(1, 4), st.integers(0, 2**31))
def test_naive_weights_are_the_twins(problem, fit_intercept, n_epochs, seed):
    batch, y, weight = problem
    tagger = PerceptronTagger(
        average=False, fit_intercept=fit_intercept, max_iter=n_epochs, tol=None, random_state=seed
    ).fit(batch, y, weight)
    epoch_orders = visiting_orders(len(y), n_epochs, seed)
    twin, history = run_twin(batch, y, weight, epoch_orders, fit_intercept=fit_intercept)
    assert_weights(tagger, twin.weights, rtol=0, atol=0)
    assert_array_equal(tagger.history_["mistakes"], history["mistakes"])
    assert_allclose(tagger.history_["loss"], history["loss"], rtol=1e-12)
    assert_allclose(tagger.history_["weight_norm"], history["weight_norm"], rtol=1e-12)


@given(online_problems(), st.booleans(), st.integers(1, 4), st.integers(0, 2**31))
def test_averaged_weights_are_the_twins(problem, fit_intercept, n_epochs, seed):
    batch, y, weight = problem
    tagger = PerceptronTagger(
        fit_intercept=fit_intercept, max_iter=n_epochs, tol=None, random_state=seed
    ).fit(batch, y, weight)
    epoch_orders = visiting_orders(len(y), n_epochs, seed)
    twin, history = run_twin(
        batch, y, weight, epoch_orders, fit_intercept=fit_intercept, average=True
    )
    assert_weights(tagger, twin.average(), rtol=1e-12, atol=1e-12)
    assert_array_equal(tagger.history_["mistakes"], history["mistakes"])


@given(online_problems(), st.booleans(), st.integers(1, 3))
def test_without_shuffling_the_order_is_that_of_the_data(problem, average, n_epochs):
    batch, y, weight = problem
    tagger = PerceptronTagger(average=average, shuffle=False, max_iter=n_epochs, tol=None)
    tagger.fit(batch, y, weight)
    twin, _ = run_twin(batch, y, weight, [range(len(y))] * n_epochs, average=average)
    assert_weights(tagger, twin.average() if average else twin.weights, rtol=1e-12, atol=1e-12)


@given(online_problems(), st.booleans(), st.integers(0, 2**31))
def test_partial_fit_goes_on_where_it_was(problem, average, seed):
    batch, y, weight = problem
    n_labels = max(max(labels, default=0) for labels in y) + 1
    twin = naive.Perceptron(n_labels, batch.n_features)
    tagger = PerceptronTagger(average=average, random_state=np.random.RandomState(seed))
    rng = np.random.RandomState(seed)
    chunks = [np.arange(len(y)), *np.array_split(np.arange(len(y)), 2)]
    chunks = [c for c in chunks if np.any(weight[c] * batch[c].lengths > 0)]
    for n_calls, chunk in enumerate(chunks, start=1):
        tagger.partial_fit(batch[chunk], [y[i] for i in chunk], sample_weight=weight[chunk])
        order = np.arange(len(chunk))
        rng.shuffle(order)
        wrong, loss = twin.epoch(list(batch), y, chunk[order], weight)
        assert_weights(tagger, twin.average() if average else twin.weights, rtol=1e-12, atol=1e-12)
        assert tagger.n_iter_ == n_calls
        assert_array_equal(tagger.history_["mistakes"], [wrong / batch[chunk].n_rows])
        assert_allclose(tagger.history_["loss"], [loss], rtol=1e-12)


@given(online_problems(), st.booleans(), st.integers(0, 2**31))
def test_warm_start_goes_on_from_the_weights(problem, average, seed):
    batch, y, weight = problem
    tagger = PerceptronTagger(
        average=False, max_iter=2, tol=None, warm_start=True, random_state=seed
    ).fit(batch, y, weight)
    start = naive.Weights(*(part.copy() for part in naive.weights_of(tagger)))
    tagger.set_params(average=average).fit(batch, y, weight)
    twin, history = run_twin(
        batch, y, weight, visiting_orders(len(y), 2, seed), weights=start, average=average
    )
    assert_weights(tagger, twin.average() if average else twin.weights, rtol=1e-12, atol=1e-12)
    assert_array_equal(tagger.history_["mistakes"], history["mistakes"])
    assert_allclose(tagger.history_["weight_norm"], history["weight_norm"], rtol=1e-12)


def test_real_values_of_any_kind():
    """Rounding differs between twin and kernel, but hardly ever decides."""
    rng = np.random.default_rng(0)
    found = rng.integers(0, 7, 60)
    batch = SequenceBatch.from_lengths(rng.normal(size=(found.sum(), 6)), found)
    y = rng.integers(4, size=batch.n_rows)
    y = [part.tolist() for part in np.split(y, np.cumsum(found)[:-1])]
    weight = rng.uniform(0.5, 2, len(y))
    for average in (False, True):
        tagger = PerceptronTagger(average=average, max_iter=5, tol=None, random_state=1)
        tagger.fit(batch, y, weight)
        twin, history = run_twin(batch, y, weight, visiting_orders(len(y), 5, 1))
        expected = twin.average() if average else twin.weights
        assert_weights(tagger, expected, rtol=1e-9, atol=1e-9)
        assert_allclose(tagger.history_["loss"], history["loss"], rtol=1e-9)
        assert_allclose(tagger.history_["weight_norm"], history["weight_norm"], rtol=1e-9)


@pytest.mark.parametrize("n_labels", [3, 40])
def test_many_labels_of_which_few_change(n_labels):
    """Updates take another way where most labels are not concerned."""
    rng = np.random.default_rng(n_labels)
    found = rng.integers(1, 5, 30)
    batch = SequenceBatch.from_lengths(rng.integers(-4, 5, (found.sum(), 5)) / 4, found)
    y = rng.integers(n_labels, size=batch.n_rows)
    y[:n_labels] = np.arange(n_labels)
    y = [part.tolist() for part in np.split(y, np.cumsum(found)[:-1])]
    weight = np.ones(len(y))
    twin, _ = run_twin(batch, y, weight, visiting_orders(len(y), 3, 0))
    for average, expected in ((False, twin.weights), (True, twin.average())):
        tagger = PerceptronTagger(average=average, max_iter=3, tol=None, random_state=0)
        assert_weights(tagger.fit(batch, y), expected, rtol=1e-12, atol=1e-12)


def test_weight_norm_is_that_of_the_current_weights():
    """Also where the weights come back to about zero, whatever rounding did on the way."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = [np.array([[value]]) for value in rng.integers(-9, 10, 6) / 10]
        tagger = PerceptronTagger(
            average=False, fit_intercept=False, max_iter=5, tol=None, random_state=seed
        ).fit(X, [[0], [1], [1], [1], [1], [1]])
        norm = tagger.history_["weight_norm"]
        assert np.all(norm >= 0)
        assert_allclose(norm[-1], np.linalg.norm(tagger.coef_), atol=1e-7)


@pytest.mark.parametrize("average", [False, True])
def test_separable_sequences_are_learnt_without_mistakes(addresses, average):
    X, y = addresses[0][:100], addresses[1][:100]
    tagger = PerceptronTagger(average=average, max_iter=300, tol=None, random_state=0).fit(X, y)
    mistakes = tagger.history_["mistakes"]
    assert tagger.n_iter_ < 300
    assert mistakes[-1] == 0
    assert tagger.history_["loss"][-1] == 0
    assert tagger.predict(X).tolist() == y
    # Not an epoch more than that takes.
    tagger.set_params(max_iter=tagger.n_iter_ - 1).fit(X, y)
    assert mistakes[tagger.n_iter_ - 1] > 0 or tagger.predict(X).tolist() != y


@pytest.mark.parametrize("seed", [1, 5, 7])
def test_the_average_is_right_at_the_end_where_it_lags_behind(seed):
    rng = np.random.default_rng(seed)
    X, slope = rng.normal(size=(40, 5)), rng.normal(size=5)
    y = (X @ slope > 0).astype(int)
    X[0] *= 20
    params = {"max_iter": 100, "tol": None, "random_state": 0}
    separating = PerceptronTagger(average=False, **params).fit(X, y)
    averaged = PerceptronTagger(**params).fit(X, y)
    assert separating.n_iter_ < averaged.n_iter_ < 100
    assert separating.score(X, y) == averaged.score(X, y) == 1
    # From the first epoch without mistakes on there is nothing but averaging.
    mistakes = averaged.history_["mistakes"]
    assert_array_equal(mistakes == 0, np.arange(1, len(mistakes) + 1) >= separating.n_iter_)
    # An epoch earlier the average was not right yet.
    averaged.set_params(max_iter=averaged.n_iter_ - 1).fit(X, y)
    assert averaged.score(X, y) < 1


def test_the_average_is_waited_for_no_longer_than_other_improvements():
    rng = np.random.default_rng(6)
    X, slope = rng.normal(size=(40, 5)), rng.normal(size=5)
    y = (X @ slope > 0).astype(int)
    X[0] *= 20
    tagger = PerceptronTagger(tol=0.0, n_iter_no_change=6, max_iter=700, random_state=0).fit(X, y)
    mistakes = tagger.history_["mistakes"]
    assert mistakes[-1] == mistakes[-7] == mistakes.min()
    assert tagger.score(X, y) < 1


def test_no_bias_is_learnt_without_intercept(addresses):
    tagger = PerceptronTagger(fit_intercept=False, max_iter=2, tol=None, random_state=0)
    tagger.fit(addresses[0][:50], addresses[1][:50])
    for bias in (tagger.intercept_, tagger.start_, tagger.end_):
        assert_array_equal(bias, np.zeros(len(tagger.classes_)))
    assert np.any(tagger.transition_)
