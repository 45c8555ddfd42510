"""The exponentiated gradient against distributions that are listed, and against the optimum."""

import naive
import numpy as np
import pytest
from helpers.objectives import as_weights, learnable_data, training_set
from numpy.testing import assert_allclose

from skstruct import CRFTagger
from skstruct.learning.oeg import ExponentiatedGradient
from skstruct.learning.solver import Model


def learner(X, y, sample_weight=None, **params):
    model = Model(X[0].shape[1], 1 + max(map(max, y)))
    data = training_set(X, y, sample_weight)
    return ExponentiatedGradient(data, model, **{"l2": 1.0, "fit_intercept": True, **params})


class Listed:
    """The dual of one small training set, with the probability of every labelling."""

    def __init__(self, X, y, l2, sample_weight):
        self.X, self.y, self.l2, self.s = X, y, l2, sample_weight
        self.n_labels = 1 + max(map(max, y))

    def scores(self, i, weights):
        emissions = naive.emission_scores(self.X[i], weights)
        paths = naive.labellings(len(self.X[i]), self.n_labels)
        return np.array([naive.path_score(emissions, weights.transition, p) for p in paths])

    def marginals(self, i, alpha):
        node = np.zeros((len(self.X[i]), self.n_labels))
        pairs = np.zeros((len(self.X[i]) - 1, self.n_labels, self.n_labels))
        for p, labels in zip(alpha, naive.labellings(*node.shape), strict=True):
            for t, label in enumerate(labels):
                node[t, label] += p
                if t > 0:
                    pairs[t - 1, labels[t - 1], label] += p
        return node, pairs

    def weights(self, alphas):
        marginals_of = [self.marginals(i, alpha) for i, alpha in enumerate(alphas)]
        return naive.conjugate_weights(self.X, self.y, marginals_of, self.s, self.l2)

    def value(self, alphas):
        entropy = sum(-s * np.sum(a * np.log(a)) for s, a in zip(self.s, alphas, strict=True))
        square = sum(np.sum(part**2) for part in self.weights(alphas))
        return entropy - self.l2 / 2 * square

    def step(self, alphas, i, eta):
        """The best of the steps ``eta, eta / 2, ...`` by which the dual grows."""
        scores = self.scores(i, self.weights(alphas))
        before = self.value(alphas)
        while True:
            log_alpha = np.log(alphas[i]) + eta * (scores - np.log(alphas[i]))
            changed = np.exp(log_alpha - np.logaddexp.reduce(log_alpha))
            following = [*alphas[:i], changed, *alphas[i + 1 :]]
            if self.value(following) >= before:
                return following, eta
            eta /= 2


@pytest.mark.parametrize("sample_weight", [[1.0, 1.0, 1.0, 1.0], [2.0, 0.5, 1.0, 3.0]])
@pytest.mark.parametrize("l2", [0.2, 2.0])
def test_steps_by_listing_all_labellings(sample_weight, l2):
    X, y = learnable_data([3, 1, 4, 2])
    oeg = learner(X, y, sample_weight, l2=l2)
    listed = Listed(X, y, l2, sample_weight)
    offsets = oeg._problem.offsets
    alphas = []
    for i in range(4):
        theta = oeg._state.node_theta[offsets[i] : offsets[i + 1]]
        logits = [
            naive.path_score(theta, np.zeros((3, 3)), labels)
            for labels in naive.labellings(*theta.shape)
        ]
        alphas.append(np.exp(logits - np.logaddexp.reduce(logits)))
    etas = np.full(4, 0.5)
    for i in [None, 2, 0, 3, 1, 2, 2, 0, 1, 3]:
        if i is not None:
            alphas, eta = listed.step(alphas, i, etas[i])
            etas[i] = min(1.0, 1.05 * eta) if eta == etas[i] else eta
            oeg.steps(np.array([i]))
        for found, part in zip(as_weights(oeg.chain()), listed.weights(alphas), strict=True):
            assert_allclose(found, part, atol=1e-9)
        assert_allclose(oeg.dual(), listed.value(alphas))
        assert_allclose(oeg._state.eta, etas)
    assert oeg.n_updates == 9
    assert oeg.n_oracle_calls >= 9


@pytest.mark.parametrize("lengths", [[3, 1, 4, 2], [1, 1, 1], [5] * 20])
def test_start_is_about_the_best_of_its_kind(lengths):
    X, y = learnable_data(lengths)
    oeg = learner(X, y, l2=0.5)
    found = oeg.dual()
    assert found > 0
    for share in np.geomspace(1e-9, 0.6, 100):
        oeg._start(share)
        assert oeg.dual() <= found + 0.1 * abs(found)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sample_weight", [None, "random"])
def test_reaches_the_optimum(sample_weight, fit_intercept):
    X, y = learnable_data(np.random.default_rng(0).integers(1, 6, 30).tolist())
    weight = np.ones(30)
    if sample_weight == "random":
        weight = np.random.default_rng(1).uniform(0.1, 3, 30)
    oeg = learner(X, y, weight, l2=0.5, fit_intercept=fit_intercept)
    random_state, duals = np.random.RandomState(0), []
    best = CRFTagger(
        l2=0.5,
        tol=1e-13,
        all_possible_states=True,
        all_possible_transitions=True,
        fit_intercept=fit_intercept,
    ).fit(X, y, weight)
    minimum = naive.crf_objective(X, y, naive.weights_of(best), 0.5, weight)
    for _ in range(300):
        oeg.epoch(random_state)
        duals.append(oeg.dual())
    assert np.all(np.diff(duals) >= -1e-9)
    assert np.all(np.array(duals) <= minimum * (1 + 1e-12))
    assert_allclose(duals[-1], minimum, rtol=1e-8)
    found = naive.crf_objective(X, y, as_weights(oeg.chain()), 0.5, weight)
    assert_allclose(found, minimum, rtol=1e-8)
    for ours, theirs in zip(as_weights(oeg.chain()), naive.weights_of(best), strict=True):
        assert_allclose(ours, theirs, atol=1e-3)
