"""SAPO, step by step against a plain twin, and its limits: the perceptron and the CRF."""

import naive
import numpy as np
import pytest
from helpers.taggers import visiting_orders
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import online_problems

from skstruct import CRFTagger, PerceptronTagger, SAPOTagger, SequenceBatch
from skstruct.metrics import token_accuracy_score


@given(
    online_problems(),
    st.integers(1, 20),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["astar", "beam"]),
    st.sampled_from([(0.0, 1.0), (1.0, 0.8), (3.0, 1.0)]),
)
def test_every_step_is_the_twins(problem, n_best, average, intercept, search, l2_decay):
    batch, y, sample_weight = problem
    l2, decay = l2_decay
    tagger = SAPOTagger(
        n_best=n_best, l2=l2, learning_rate=0.11, decay=decay, search=search, beam_width=4**4,
        average=average, fit_intercept=intercept, warm_start=True, max_iter=2, tol=None,
    ).fit(batch, y)  # fmt: skip
    # From somewhere, where no two labellings score the same.
    start = scatter_weights(tagger)
    tagger.set_params(random_state=5).fit(batch, y, sample_weight)
    last, mean, loss = naive.sapo(
        list(batch), y, sample_weight, visiting_orders(len(y), 2, 5), weights=start,
        n_found=n_best, l2=l2, rate=0.11, decay=decay, intercept=intercept,
    )  # fmt: skip
    if tagger.n_iter_ < 2:
        return
    for found, expected in zip(naive.weights_of(tagger), mean if average else last, strict=True):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    assert_allclose(tagger.history_["loss"][-1], loss, rtol=1e-9, atol=1e-11)
    assert_allclose(tagger.history_["weight_norm"][-1], np.linalg.norm(last.coef), atol=1e-9)


def scatter_weights(tagger):
    """Give a tagger arbitrary weights; return them."""
    rng = np.random.default_rng(0)
    for name in ("coef_", "transition_", "intercept_", "start_", "end_"):
        weights = rng.normal(size=getattr(tagger, name).shape)
        # Without biases, a warm start begins without them.
        none = not tagger.fit_intercept and name in ("intercept_", "start_", "end_")
        setattr(tagger, name, 0.0 * weights if none else weights)
    return naive.weights_of(tagger)


@given(online_problems())
def test_all_labellings_make_it_a_step_against_the_crf_gradient(problem):
    batch, y, _ = problem
    X = next(i for i in range(len(y)) if y[i])
    first = SequenceBatch.from_lengths(batch[X], [len(y[X])])
    tagger = SAPOTagger(n_best=4**4, l2=0, learning_rate=0.5, max_iter=1, tol=None)
    tagger.fit(first, [y[X]])
    codes = np.searchsorted(tagger.classes_, y[X])
    start = naive.zero_weights(len(tagger.classes_), batch.n_features)
    gradient = naive.crf_gradient(batch[X], codes, start)
    for found, slope in zip(naive.weights_of(tagger), gradient, strict=True):
        assert_allclose(found, -0.5 * slope, atol=1e-12)


@given(online_problems(), st.integers(0, 2**31))
def test_the_best_labelling_alone_makes_it_a_perceptron(problem, seed):
    batch, y, _ = problem
    settings = {"average": False, "max_iter": 2, "tol": None, "random_state": seed}
    perceptron = PerceptronTagger(**settings).fit(batch, y)
    sapo = SAPOTagger(n_best=1, l2=0, learning_rate=1.0, decay=1.0, **settings).fit(batch, y)
    assert_array_equal(sapo.coef_, perceptron.coef_)
    assert_array_equal(sapo.transition_, perceptron.transition_)


def test_a_strong_penalty_survives_many_epochs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    # Shrinks by a factor of about e**-40 in every epoch.
    tagger = SAPOTagger(l2=50, learning_rate=0.8, decay=1.0, max_iter=40, tol=None, random_state=0)
    tagger.fit(X, y)
    twin = naive.sapo(
        list(X[:, None]), y[:, None], np.ones(60), visiting_orders(60, 40, 0),
        n_found=5, l2=50, rate=0.8,
        weights=naive.zero_weights(2, 4), decay=1.0, intercept=True,
    )[0]  # fmt: skip
    assert_allclose(tagger.coef_, twin.coef, rtol=1e-8, atol=1e-12)


def test_it_approaches_the_optimum_of_the_crf():
    rng = np.random.default_rng(1)
    lengths = rng.integers(2, 5, 60)
    X = SequenceBatch.from_lengths(rng.normal(size=(lengths.sum(), 5)), lengths)
    noisy = X.X @ rng.normal(size=(5, 3)) + rng.gumbel(size=(lengths.sum(), 3))
    y = [part.tolist() for part in np.split(noisy.argmax(axis=1), np.cumsum(lengths)[:-1])]
    crf = CRFTagger(
        l2=5, tol=1e-9, all_possible_states=True, all_possible_transitions=True
    ).fit(X, y)  # fmt: skip
    sapo = SAPOTagger(
        n_best=81, l2=5, learning_rate=0.1, decay=0.95, max_iter=150, tol=None, random_state=0
    ).fit(X, y)  # fmt: skip
    assert_allclose(sapo.coef_, crf.coef_, atol=0.01)
    assert_allclose(sapo.transition_, crf.transition_, atol=0.01)


@pytest.mark.usefixtures("values_without_limit")
def test_too_high_a_rate_is_an_error_and_leaves_the_estimator_alone():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)) * 1e200, rng.integers(2, size=20)
    tagger = SAPOTagger(learning_rate=1.0, l2=0, random_state=0).fit(X / 1e200, y)
    before = dict(tagger.__dict__)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="epoch 1"):
        tagger.fit(X * 1e100, y)
    assert tagger.__dict__ == before
    with pytest.raises(ValueError, match=r"learning_rate=1.0 times l2=30"):
        SAPOTagger(learning_rate=1.0, l2=30, random_state=0).fit(X / 1e200, y)


def test_partial_fit_learns_a_stream(addresses):
    X, y = addresses
    tagger = SAPOTagger(random_state=0, average=True)
    labels = sorted({label for sequence in y for label in sequence})
    for part in range(4):
        tagger.partial_fit(X[part::5], y[part::5], classes=labels)
    assert token_accuracy_score(y[4::5], tagger.predict(X[4::5])) > 0.7
