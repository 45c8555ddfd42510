"""Learning from partly labelled sequences: marginal likelihoods by the list of all labellings."""

import pickle
import warnings

import naive
import numpy as np
import pytest
from helpers.constraints import allows, possible_labellings, random_possible, scheme_data
from helpers.marks import compiled
from helpers.objectives import crf_objective, evaluate, training_set
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
)
from skstruct.input.constraints import Constraint
from skstruct.learning.online import cut_sequences
from skstruct.metrics import chunk_f1_score, sequence_accuracy_score, token_accuracy_score

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

WEIGHTS = ("coef_", "transition_", "intercept_", "start_", "end_")
EVERY = {"all_possible_states": True, "all_possible_transitions": True}
# SGD is compiled for labels that are not known.
COMPILES = pytest.mark.slow
each_solver = pytest.mark.parametrize("solver", ["lbfgs", compiled("sgd")])


def hide(rng, y, share=0.5):
    """Labels of which some are not known."""
    return [[None if rng.random() < share else label for label in labels] for labels in y]


def random_data(rng, n_labels, lengths, *, share=0.5, n_features=3):
    X = [rng.normal(size=(n, n_features)) for n in lengths]
    y = hide(rng, [rng.integers(n_labels, size=n).tolist() for n in lengths], share)
    return X, y


def marginal_nll(x, labels, weights, possible, edge_score=None):
    """Negative logarithm of the probability of all labellings that agree."""
    scores = naive.emission_scores(x, weights)
    paths = possible_labellings(possible, len(x))
    values = np.array([naive.path_score(scores, weights.transition, path) for path in paths])
    if edge_score is not None:
        values += [edge_score(path) for path in paths]
    agree = [all(k is None or k == j for j, k in zip(path, labels, strict=True)) for path in paths]
    return np.logaddexp.reduce(values) - np.logaddexp.reduce(values[agree])


def everything(n_labels):
    ones = np.ones(n_labels, bool)
    return Constraint(np.ones((n_labels, n_labels), bool), ones, ones, "")


# ----------------------------------------------------------------------------------- the objective


@pytest.mark.parametrize("edges", [False, compiled(True)])
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.0, 0.3, 0.8]))
def test_value_and_gradient_are_those_of_the_list(edges, seed, constrained, share):
    rng = np.random.default_rng(seed)
    k, lengths = rng.integers(1, 5), rng.integers(1, 5, 4)
    possible = random_possible(rng, k) if constrained else everything(k)
    X = [rng.normal(size=(n, 2)) for n in lengths]
    y = []
    for n in lengths:
        paths = possible_labellings(possible, n)
        y.append(list(paths[rng.integers(len(paths))]))
    y = hide(rng, y, share)
    E = rng.normal(size=(lengths.sum(), 2)) if edges else None
    weight = rng.choice([0.5, 1.0, 2.0], 4)
    objective = crf_objective(
        training_set(X, y, weight, E), 2, k, 2, l2=0.5, **EVERY,
        possible=possible if constrained else None,
    )  # fmt: skip
    theta = rng.normal(size=objective.size)
    theta = objective.pack(objective.unpack(theta))
    chain = objective.unpack(theta)
    value, gradient = evaluate(objective, theta, n_jobs=2)
    weights = naive.Weights(chain.weights.T, *chain[1:5])
    expected, first = 0.25 * theta @ theta, 0
    for x, labels, s in zip(X, y, weight, strict=True):

        def edge_score(path, first=first):
            pairs = [path[t - 1] * k + path[t] for t in range(1, len(path))]
            tokens = E[first + 1 : first + len(path)]
            return sum(
                z @ chain.transition_weights[:, p] for z, p in zip(tokens, pairs, strict=True)
            )

        scored = edge_score if edges else None
        expected += s * marginal_nll(x, labels, weights, possible, scored)
        first += len(x)
    assert_allclose(value, expected, rtol=1e-11, atol=1e-11)
    step = 1e-6
    for i in rng.permutation(np.flatnonzero(theta))[:25]:
        up, down = theta.copy(), theta.copy()
        up[i] += step
        down[i] -= step
        slope = (evaluate(objective, up)[0] - evaluate(objective, down)[0]) / (2 * step)
        assert_allclose(gradient[i], slope, rtol=1e-5, atol=1e-6)
    assert_array_equal(gradient[theta == 0], 0)


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_extreme_weights(scale):
    """Beyond the linear domain, sums are taken over logarithms."""
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 3, [3, 4, 2])
    objective = crf_objective(training_set(X, y), 3, 3, l2=0.0, **EVERY)
    theta = scale * rng.normal(size=objective.size)
    chain = objective.unpack(theta)
    weights = naive.Weights(chain.weights.T, *chain[1:])
    expected = sum(
        marginal_nll(x, labels, weights, everything(3)) for x, labels in zip(X, y, strict=True)
    )
    assert_allclose(evaluate(objective, theta)[0], expected, rtol=1e-11, atol=1e-9)


def test_what_is_observed_is_what_has_a_label():
    X = [np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 1.0]])]
    y = [[0, None, 1]]
    observed = crf_objective(training_set(X, y), 3, 2, l2=1.0, fit_intercept=False)
    ones = observed.unpack(np.ones(observed.size))
    # Neither the second token's feature, nor a pair that it is part of.
    kept = observed.unpack(observed.pack(ones))
    assert kept.weights.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert not kept.transition.any()
    assert observed.n_weights == 3
    y = [[0, None, None]]
    every = crf_objective(training_set(X, y), 3, 2, l2=1.0, fit_intercept=False, **EVERY)
    # Features that no labelled token has take part, too.
    assert every.n_weights == 6 + 4
    assert crf_objective(training_set(X, y), 3, 2, l2=1.0, fit_intercept=False).n_weights == 1
    frequent = crf_objective(
        training_set(X * 2, [[0, None, 1], [0, 1, None]], np.array([1.0, 2.0])), 3, 2,
        l2=1.0, min_freq=2.5, fit_intercept=False,
    )  # fmt: skip
    kept = frequent.unpack(frequent.pack(ones._replace(weights=np.ones((3, 2)))))
    assert kept.weights.tolist() == [[1, 0], [0, 1], [0, 0]]


def test_pairs_with_features_are_observed_if_both_labels_are():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(4, 2))], [[0, 1, None, 1]]
    data = training_set(X, y, transition_X=np.ones((4, 1)))
    objective = crf_objective(data, 2, 2, 1, l2=1.0, fit_intercept=False)
    kept = objective.unpack(
        objective.pack(
            objective.unpack(np.ones(objective.size))._replace(transition_weights=np.ones((1, 4)))
        )
    )
    assert kept.transition_weights.tolist() == [[0, 1, 0, 0]]


# ---------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("l1", [0.0, 0.05])
def test_lbfgs_finds_a_point_that_nothing_near_improves(l1):
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 3, rng.integers(1, 6, 30))
    tagger = CRFTagger(tol=1e-8, l1=l1, **EVERY).fit(X, y)
    assert tagger.suboptimality_bound_ == np.inf
    assert np.isinf(tagger.history_["bound"]).all()
    assert np.all(np.diff(tagger.history_["objective"]) <= 1e-9)
    assert tagger.history_["objective"][-1] < tagger.history_["objective"][0]
    weights = naive.weights_of(tagger)
    value = sum(
        marginal_nll(x, labels, weights, everything(3)) for x, labels in zip(X, y, strict=True)
    )
    value += sum(l1 * np.abs(part).sum() + np.square(part).sum() / 2 for part in weights)
    assert_allclose(tagger.history_["objective"][-1], value, rtol=1e-10)
    if not l1:
        # From there scipy's optimiser gets no further.
        objective = crf_objective(training_set(X, y), 3, 3, l2=1.0, **EVERY)
        theta = objective.pack(tagger._chain())
        further = minimize(lambda t: evaluate(objective, t), theta, jac=True, method="L-BFGS-B")
        assert value - further.fun <= 1e-6 * value


def test_expectation_maximisation_goes_the_same_way():
    """Learning from all labellings that agree, weighted by their probabilities, time and again."""
    rng = np.random.default_rng(1)
    X, y = random_data(rng, 2, rng.integers(1, 4, 15))
    objective = crf_objective(training_set(X, y), 3, 2, l2=1.0, **EVERY)
    anything = everything(2)
    weights, values = naive.zero_weights(2, 3), []
    for _ in range(200):
        copies, labels, probabilities = [], [], []
        for x, known in zip(X, y, strict=True):
            scores = naive.emission_scores(x, weights)
            paths = [
                path
                for path in possible_labellings(anything, len(x))
                if all(k is None or k == j for j, k in zip(path, known, strict=True))
            ]
            values_of = [naive.path_score(scores, weights.transition, path) for path in paths]
            copies += [x] * len(paths)
            labels += [list(path) for path in paths]
            probabilities += np.exp(values_of - np.logaddexp.reduce(values_of)).tolist()
        tagger = CRFTagger(tol=1e-10, **EVERY).fit(copies, labels, sample_weight=probabilities)
        weights = naive.weights_of(tagger)
        values.append(evaluate(objective, objective.pack(tagger._chain()))[0])
        if len(values) > 1 and values[-2] - values[-1] < 1e-7:
            break
    assert np.all(np.diff(values) <= 1e-7)
    direct = CRFTagger(tol=1e-10, **EVERY).fit(X, y)
    assert_allclose(direct.history_["objective"][-1], values[-1], rtol=1e-4)
    assert values[-1] < evaluate(objective, np.zeros(objective.size))[0]


def test_sequences_of_one_token_without_label_say_nothing():
    rng = np.random.default_rng(1)
    X, y = random_data(rng, 2, [1] * 40, share=0.5)
    X, y = np.concatenate(X), [labels[0] for labels in y]
    tagger = CRFTagger(tol=1e-10, fit_intercept=False, **EVERY).fit(X, y)
    known = np.array([label is not None for label in y])
    # Two classes share one vector of weights there.
    plain = LogisticRegression(C=2, fit_intercept=False, tol=1e-10)
    plain.fit(X[known], [label for label in y if label is not None])
    assert_allclose(tagger.coef_[1] - tagger.coef_[0], plain.coef_[0], atol=1e-3)


@each_solver
def test_what_is_not_known_is_filled_in_by_its_neighbours(solver):
    """Only transitions tell the labels of every other token, of which none is labelled alike."""
    rng = np.random.default_rng(0)
    X, full = [], []
    for _ in range(200):
        labels = np.resize([0, 1, 2], 6 + rng.integers(3))
        labels = (labels + rng.integers(3)) % 3
        features = np.eye(3)[labels] * 1.0
        # The features of half of the tokens are wiped out.
        X.append(features * (rng.random(len(labels)) < 0.5)[:, None])
        full.append(labels.tolist())
    y = hide(rng, full, 0.6)
    tagger = CRFTagger(solver=solver, l2=0.1, random_state=0, max_iter=60, **(
        EVERY if solver == "lbfgs" else {}
    ))  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger.fit(X, y)
    guessed = token_accuracy_score(full, tagger.predict(X, known=y))
    assert guessed > 0.98
    # Sequences without any missing label are too few to learn anything from.
    assert sum(None not in labels for labels in y) < 10


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_without_unknown_labels_nothing_changes(solver):
    """The general kernel, forced, against the one for full labels."""
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 3, rng.integers(1, 6, 12), share=0.0)
    params = {"solver": solver, "max_iter": 4, "random_state": 0}
    if solver == "sgd":
        params |= {"tol": None, "shuffle": False}
    else:
        params |= EVERY
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = CRFTagger(**params).fit(X, y)
        # A sequence without any label says nothing, but makes the set a partly labelled one.
        same = CRFTagger(**params).fit([*X, np.zeros((2, 3))], [*y, [None, None]])
    if solver == "lbfgs":
        objective = crf_objective(training_set(X, y), 3, 3, l2=1.0, **EVERY)
        theta = rng.normal(size=objective.size)
        value, gradient = evaluate(objective, theta)
        objective.partial = True
        again, gradient_again = evaluate(objective, theta)
        assert_allclose(value, again, rtol=1e-12)
        assert_allclose(gradient, gradient_again, atol=1e-10)
        assert np.isfinite(plain.suboptimality_bound_)
    for attribute in WEIGHTS:
        assert_allclose(getattr(same, attribute), getattr(plain, attribute), atol=2e-2)


@COMPILES
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.booleans())
def test_every_step_of_stochastic_descent_is_the_twins(seed, average, intercept, constrained):
    rng = np.random.default_rng(seed)
    k, lengths = rng.integers(1, 4), rng.integers(1, 5, 4)
    possible = random_possible(rng, k, ends=False) if constrained else everything(k)
    X = [rng.normal(size=(n, 2)) for n in lengths]
    paths = [possible_labellings(possible, n) for n in lengths]
    y = hide(rng, [list(found[rng.integers(len(found))]) for found in paths], 0.4)
    assume({label for labels in y for label in labels} - {None} == set(range(k)))
    tagger = CRFTagger(
        solver="sgd", l2=0.5, learning_rate=0.3, decay=0.8, average=average, shuffle=False,
        fit_intercept=intercept, max_iter=2, tol=None,
        constraint=possible.transition if constrained else None,
    ).fit(X, y)  # fmt: skip
    weights = naive.zero_weights(k, 2)
    weights.transition[~possible.transition] = -np.inf
    total, n_seen, rate = naive.zero_weights(k, 2), 0, 0.3
    for _ in range(2):
        loss, n = 0.0, sum(any(label is not None for label in labels) for labels in y)
        for x, labels in zip(X, y, strict=True):
            if all(label is None for label in labels):
                continue
            loss += marginal_nll(x, labels, weights, possible)
            change = mean_features(x, labels, weights, possible)
            everything_ = mean_features(x, [None] * len(x), weights, possible)
            for name in naive.Weights._fields:
                if intercept or name in ("coef", "transition"):
                    part = getattr(weights, name)
                    part += rate * (getattr(change, name) - getattr(everything_, name))
            n_seen += 1
            for part, summed in zip(weights, total, strict=True):
                part *= 1 - rate * 0.5 / n
                summed += part
            rate *= 0.8 ** (1 / n)
    expected = [part / n_seen for part in total] if average else weights
    for found, wanted in zip(naive.weights_of(tagger), expected, strict=True):
        assert_allclose(found, wanted, atol=1e-9)
    assert_allclose(tagger.history_["loss"][-1], loss, atol=1e-9)


def mean_features(x, labels, weights, possible):
    """Mean of the features over the labellings that agree."""
    mean = naive.zero_weights(*weights.coef.shape)
    scores = naive.emission_scores(x, weights)
    paths = [
        path
        for path in possible_labellings(possible, len(x))
        if all(k is None or k == j for j, k in zip(path, labels, strict=True))
    ]
    values = np.array([naive.path_score(scores, weights.transition, path) for path in paths])
    for path, p in zip(paths, np.exp(values - np.logaddexp.reduce(values)), strict=True):
        for t, j in enumerate(path):
            mean.coef[j] += p * x[t]
            mean.intercept[j] += p
            if t > 0:
                mean.transition[path[t - 1], j] += p
        mean.start[path[0]] += p
        mean.end[path[-1]] += p
    return mean


@each_solver
def test_constraints_and_partial_labels_together(solver):
    X, y, classes, possible = scheme_data(n_sequences=60)
    rng = np.random.default_rng(0)
    # All labels have to be known somewhere.
    partial = [*hide(rng, y[:-3]), *y[-3:]]
    tagger = CRFTagger(solver=solver, constraint="IOB2", random_state=0).fit(X, partial)
    for labels, known in zip(tagger.predict(X, partial), partial, strict=True):
        assert allows(possible, np.searchsorted(classes, labels))
        assert all(k is None or k == j for j, k in zip(labels, known, strict=True))
    with pytest.raises(ValueError, match="Sequence 1, token 2: 'I-X' may not follow 'O' under"):
        tagger.fit([X[0], np.ones((3, 3))], [y[0], [None, "O", "I-X"]])
    chain = CRFTagger(solver=solver, constraint=[[True, False], [True, True]])
    with pytest.raises(ValueError, match="Sequence 1 has no possible labelling that agrees"):
        chain.fit([np.ones((2, 1)), np.ones((3, 1))], [["b", "a"], ["a", None, "b"]])


@COMPILES
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("early_stopping", [False, True])
def test_pieces_shards_and_early_stopping(average, early_stopping):
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 3, rng.integers(1, 6, 40))
    tagger = CRFTagger(
        solver="sgd", average=average, early_stopping=early_stopping, n_jobs=2, random_state=0,
        mini_length=2, max_iter=5, tol=None,
    ).fit(X, y)  # fmt: skip
    assert np.isfinite(tagger.coef_).all()
    if early_stopping:
        scores = tagger.history_["validation_score"]
        assert np.all((scores >= 0) & (scores <= 1))


@COMPILES
def test_pieces_without_labels_leave_the_weights_alone():
    X, y = [np.eye(4)], [[0, None, None, 1]]
    tagger = CRFTagger(
        solver="sgd", mini_length=1, max_iter=1, tol=None, l2=0, random_state=0
    ).fit(X, y)  # fmt: skip
    assert_allclose(tagger.coef_[:, 1:3], 0, atol=1e-15)
    assert (tagger.coef_[:, [0, 3]] != 0).all()
    pieces, _ = cut_sequences(np.array([0, 4]), np.random.RandomState(0), mini_length=1)
    assert len(pieces) == 4
    assert_allclose(tagger.history_["loss"], 2 * np.log(2), rtol=0.3)


@COMPILES
def test_early_stopping_looks_at_labelled_tokens_only():
    """The held-out labels that are known can all be right."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=(40, 5))
    X = [np.eye(2)[row] * 3 for row in labels]
    y = hide(rng, labels.tolist(), 0.5)
    for solver in ("sgd", "lbfgs"):
        tagger = CRFTagger(solver=solver, early_stopping=True, random_state=0, l2=0.1).fit(X, y)
        assert tagger.history_["validation_score"].max() == 1.0
    assert tagger.history_["validation_score"][-1] == 1.0


@pytest.mark.slow  # compiles the objective for it
@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_with_features_of_transitions(solver):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 30)
    X, y = random_data(rng, 3, lengths)
    edges = rng.normal(size=(lengths.sum(), 2))
    batch = SequenceBatch.from_lengths(np.concatenate(X), lengths, transition_X=edges)
    params = EVERY if solver == "lbfgs" else {"max_iter": 20, "tol": None, "random_state": 0}
    tagger = CRFTagger(solver=solver, **params).fit(batch, y)
    objective = crf_objective(training_set(X, y, transition_X=edges), 3, 3, 2, l2=1.0, **EVERY)
    zero = evaluate(objective, np.zeros(objective.size))[0]
    value, gradient = evaluate(objective, objective.pack(tagger._chain()))
    assert value < zero
    if solver == "lbfgs":
        assert np.abs(gradient).max() < 0.1
        assert_allclose(value, tagger.history_["objective"][-1], rtol=1e-10)


@COMPILES
def test_partial_fit_learns_from_partial_labels():
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 3, rng.integers(1, 6, 20))
    params = {"solver": "sgd", "shuffle": False, "max_iter": 2, "tol": None}
    whole = CRFTagger(**params).fit(X, y)
    tagger = CRFTagger(**params).partial_fit(X, y, classes=[0, 1, 2])
    tagger = pickle.loads(pickle.dumps(tagger)).partial_fit(X, y)
    for attribute in WEIGHTS:
        assert_allclose(getattr(tagger, attribute), getattr(whole, attribute), atol=1e-12)


@each_solver
def test_class_weights_are_means_over_the_labelled_tokens(solver):
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 2, rng.integers(2, 6, 20))
    params = {"solver": solver, "random_state": 0}
    weighted = CRFTagger(class_weight={0: 3.0, 1: 1.0}, **params).fit(X, y)
    factor = [
        np.mean([{0: 3.0, 1: 1.0}[label] for label in labels if label is not None] or [1.0])
        for labels in y
    ]
    same = CRFTagger(**params).fit(X, y, sample_weight=factor)
    assert_array_equal(weighted.coef_, same.coef_)


# -------------------------------------------------------------------------------------- the border


@each_solver
def test_every_form_of_y_will_do(solver):
    rng = np.random.default_rng(0)
    grid = rng.normal(size=(8, 4, 3))
    y = np.where(rng.random((8, 4)) < 0.5, None, rng.integers(3, size=(8, 4)).astype(object))
    params = {"solver": solver, "random_state": 0}
    tagger = CRFTagger(**params).fit(grid, y)
    assert tagger.classes_.dtype.kind == "i"
    assert tagger.predict(grid).shape == (8, 4)
    lists = CRFTagger(**params).fit(list(grid), y.tolist())
    assert_array_equal(lists.coef_, tagger.coef_)
    rows = CRFTagger(**params).fit(grid[:, 0], [None, "a", "b", None, "a", "b", "a", None])
    assert rows.classes_.tolist() == ["a", "b"]
    assert rows.predict(grid[:, 0]).shape == (8,)
    assert_array_equal(np.isin(rows.predict(grid[:, 0]), ["a", "b"]), True)


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
@pytest.mark.parametrize("y", [[[None, None], [None]], [[None, None], []]])
def test_no_label_at_all_is_an_error(solver, y):
    X = [np.ones((len(labels), 2)) for labels in y]
    with pytest.raises(ValueError, match="No token has a label"):
        CRFTagger(solver=solver).fit(X, y)


@each_solver
@pytest.mark.filterwarnings("error")
def test_one_class(solver):
    X, y = [np.ones((2, 2)), np.ones((3, 2))], [["A", None], [None] * 3]
    tagger = CRFTagger(solver=solver).fit(X, y)
    assert tagger.predict(X).tolist() == [["A"] * 2, ["A"] * 3]
    assert_allclose(np.concatenate(tagger.predict_proba(X)), 1)


@pytest.mark.parametrize(
    "tagger",
    [
        PerceptronTagger(),
        MIRATagger(),
        AROWTagger(),
        SAPOTagger(),
        SDCACRF(),
        CRFTagger(solver="crfsuite"),
        CRFTagger(solver="sag"),
        CRFTagger(solver="oeg"),
    ],
)
def test_others_refuse_unknown_labels(tagger):
    X, y = [np.ones((2, 1)), np.ones((3, 1))], [["A", "B"], ["A", None, "B"]]
    message = "Sequence 1, token 1 has no label; only CRFTagger with solver='lbfgs' or solver='sgd'"
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, y)
    assert not hasattr(tagger, "coef_")


def test_scores_leave_out_what_is_not_known():
    rng = np.random.default_rng(0)
    X, y = random_data(rng, 3, rng.integers(1, 6, 30))
    tagger = CRFTagger().fit(X, y)
    found = tagger.predict(X)
    pairs = [
        (k, j)
        for known, labels in zip(y, found, strict=True)
        for k, j in zip(known, labels, strict=True)
        if k is not None
    ]
    expected = np.mean([k == j for k, j in pairs])
    assert_allclose(tagger.score(X, y), expected)
    assert_allclose(token_accuracy_score(y, found), expected)
    weight = rng.random(30)
    owner = [i for i, known in enumerate(y) for k in known if k is not None]
    expected = np.average([k == j for k, j in pairs], weights=weight[owner])
    assert_allclose(tagger.score(X, y, weight), expected)
    assert np.isfinite(cross_val_score(CRFTagger(), X, y, cv=3, error_score="raise")).all()


def test_other_metrics_need_all_labels():
    y_true, y_pred = [["O", None]], [["O", "O"]]
    with pytest.raises(ValueError, match="y_true has no known labels"):
        token_accuracy_score([[None, None]], y_pred)
    with pytest.raises(ValueError, match=r"y_pred\[0\] has the label None"):
        token_accuracy_score(y_pred, y_true)
    for score in (chunk_f1_score, sequence_accuracy_score):
        with pytest.raises(ValueError, match=r"y_true\[0\] has the label None"):
            score(y_true, y_pred)
