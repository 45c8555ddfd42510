"""Values and weights that are too large: right answers, or an error that says what to do."""

import math
import re
import warnings
from decimal import Decimal, localcontext
from itertools import pairwise, product
from time import process_time

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MaxAbsScaler

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    NBestReranker,
    PerceptronReranker,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SGDReranker,
    TruncatedGradientReranker,
    VRDAReranker,
)
from skstruct.crfsuite import CRF
from skstruct.crfsuite.trainer import Trainer
from skstruct.learning import online
from skstruct.learning.monitor import Monitor
from skstruct.streams import fit_stream

SHORT = {"max_iter": 20, "random_state": 0}
TAGGERS = {
    "lbfgs": CRFTagger(),
    "lbfgs-l1": CRFTagger(l1=0.1),
    "lbfgs-l1-alone": CRFTagger(l1=0.1, l2=0),
    "sgd": CRFTagger(solver="sgd", **SHORT),
    "sgd-average": CRFTagger(solver="sgd", average=True, **SHORT),
    "sag": CRFTagger(solver="sag", **SHORT),
    "oeg": CRFTagger(solver="oeg", **SHORT),
    "sdca": SDCACRF(**SHORT),
    "sdca-importance": SDCACRF(sampling="gap_importance", **SHORT),
    "perceptron": PerceptronTagger(**SHORT),
    "perceptron-shards": PerceptronTagger(n_jobs=2, average=False, **SHORT),
    "mira": MIRATagger(n_best=3, **SHORT),
    "sapo": SAPOTagger(**SHORT),
    "arow": AROWTagger(**SHORT),
}
RERANKERS = {
    **{
        f"{kind.__name__}-{loss}": kind(loss=loss, random_state=0)
        for kind in (VRDAReranker, SGDReranker, TruncatedGradientReranker)
        for loss in ("hinge", "logistic", "log", "bayes_risk")
    },
    "VRDAReranker-vote": VRDAReranker(prediction="vote", l1=0.01, random_state=0),
    "VRDAReranker-last": VRDAReranker(prediction="last", random_state=0),
    "PerceptronReranker": PerceptronReranker(random_state=0),
}
# What single precision can hold is learnt.
LEARNABLE, TOO_LARGE = [1e8, 3e38], [1e39, 1.7e308]
KINDS = ["alone", "beside", "many", "once"]
SCALING = "scale the features"

RNG = np.random.default_rng(0)
HINTS = RNG.choice([-1.0, 1.0], size=(10, 4))
NOISE = RNG.uniform(0.5, 1.0, size=HINTS.shape)
Y = [["A" if hint > 0 else "B" for hint in row] for row in HINTS]
CHOSEN = RNG.integers(0, 3, size=12)

every_tagger = pytest.mark.parametrize("name", TAGGERS)
every_reranker = pytest.mark.parametrize("name", RERANKERS)
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module", autouse=True)
def kernels():
    """Fits on ordinary data, so that kernels are compiled before anything is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for tagger in TAGGERS.values():
            clone(tagger).fit(sequences("alone", 2.0), Y)


def values(hints, noise, kind, value):
    """A hint that decides, and values of a size: alone, beside it, of many features, or once."""
    if kind == "alone":
        return value * hints[..., None]
    if kind == "beside":
        return np.stack([hints, value * noise], axis=-1)
    if kind == "many":
        return np.stack([value * hints, *[np.full(hints.shape, value)] * 5], axis=-1)
    once = np.zeros_like(hints)
    once[2, 1] = value
    return np.stack([hints, once], axis=-1)


def sequences(kind, value):
    return list(values(HINTS, NOISE, kind, value))


def groups(kind, value):
    hints = np.zeros((len(CHOSEN), 3))
    hints[np.arange(len(CHOSEN)), CHOSEN] = 1.0
    noise = np.random.default_rng(1).uniform(-1, 1, size=hints.shape)
    return list(values(hints, noise, kind, value))


def as_dicts(X):
    return [[{f"f{j}": float(v) for j, v in enumerate(token)} for token in x] for x in X]


def outcome(function):
    """Result of a call, and the texts of its warnings, none of which may be numpy's."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = function()
    assert not [str(w.message) for w in found if issubclass(w.category, RuntimeWarning)]
    return result, [str(w.message) for w in found]


def assert_can_be_used(tagger, X):
    """Weights are finite, and so are probabilities, or an error says why there are none."""
    for name in ("coef_", "transition_", "intercept_", "start_", "end_"):
        assert np.isfinite(getattr(tagger, name)).all()
    for column in (values for name, values in tagger.history_.items() if name != "bound"):
        assert not np.isinf(column).any()
    assert len(tagger.predict(X)) == len(X)
    try:
        proba = np.concatenate(list(tagger.predict_proba(X)))
    except ValueError as error:
        if SCALING not in str(error):
            raise
    else:
        assert_allclose(proba.sum(axis=1), 1, rtol=2e-6)


# -------------------------------------------------------------------------- values that are learnt


@every_kind
@every_tagger
def test_large_values_are_learnt_with_a_warning(name, kind):
    for value in LEARNABLE:
        X = sequences(kind, value)
        tagger, warned = outcome(lambda X=X: clone(TAGGERS[name]).fit(X, Y))
        assert_can_be_used(tagger, X)
        advice = [text for text in warned if SCALING in text]
        assert len(advice) == 1
        feature = {"alone": "0", "beside": "1", "many": "[0-5]", "once": "1"}[kind]
        assert re.match(f"Feature {feature} has values as large as", advice[0])
        # More iterations are no remedy.
        assert not any("Increase" in text for text in warned)


@every_kind
@every_reranker
def test_large_values_are_reranked_with_a_warning(name, kind):
    for value in LEARNABLE:
        X = groups(kind, value)
        reranker, warned = outcome(lambda X=X: clone(RERANKERS[name]).fit(X, CHOSEN))
        assert [SCALING in text for text in warned] == [True]
        assert np.isfinite(reranker.coef_).all()
        assert np.isfinite(np.concatenate(list(reranker.decision_function(X)))).all()
        proba = np.concatenate(list(reranker.predict_proba(X))).reshape(-1, 3)
        assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])
def test_the_drop_in_advises_to_scale_whatever_its_limit(algorithm):
    X = as_dicts(sequences("beside", 1e8))
    crf = CRF(algorithm=algorithm, max_iterations=5)
    _, warned = outcome(lambda: crf.fit(X, Y))
    assert ["Feature 'f1' has values as large as 1e+08" in text for text in warned] == [True]
    with pytest.raises(ValueError, match="Sequence 0, token 0: feature 'f1' is .*" + SCALING):
        crf.fit(as_dicts(sequences("beside", 1e200)), Y)


@pytest.mark.parametrize("method", ["partial_fit", "fit_stream"])
@pytest.mark.parametrize("name", ["sgd", "perceptron", "mira", "sapo", "arow"])
def test_portions_advise_to_scale(name, method):
    def learn(X):
        tagger = clone(TAGGERS[name])
        if method == "partial_fit":
            return tagger.partial_fit(X, Y)
        return fit_stream(tagger, lambda epoch: [(X, Y)] * 3, n_epochs=2)

    tagger, warned = outcome(lambda: learn(sequences("beside", 1e8)))
    assert_can_be_used(tagger, sequences("beside", 1e8))
    assert {text.partition(" has values")[0] for text in warned} == {"Feature 1"}
    with pytest.raises(ValueError, match="Sequence 0, token 0: feature 1 is .*" + SCALING):
        learn(sequences("beside", 1e200))


def test_features_are_named_where_they_have_names():
    dicts = [[{"hint": h, "height": 3e8} for h in row] for row in HINTS.tolist()]
    with pytest.warns(UserWarning, match="Feature 'height' has values as large as 3e\\+08"):
        CRFTagger().fit(dicts, Y)
    rows = np.stack([HINTS.ravel(), 1e8 * NOISE.ravel()], axis=1)
    batch = SequenceBatch(np.ones((40, 1)), np.arange(0, 41, 4), transition_X=rows)
    with pytest.warns(UserWarning, match="Transition feature 1 has values as large as 1e\\+08"):
        CRFTagger(max_iter=5).fit(batch, Y)


def test_scaled_features_are_learnt():
    X = sequences("beside", 1e8)
    scaled = MaxAbsScaler().fit_transform(np.concatenate(X)).reshape(np.shape(X))
    tagger, warned = outcome(lambda: CRFTagger().fit(list(scaled), Y))
    assert tagger.score(list(scaled), Y) == 1
    assert warned == []


@every_tagger
def test_ordinary_data_are_no_reason_for_advice(name):
    standardised = RNG.normal(size=(10, 4, 3))
    lengths = np.stack([HINTS, RNG.integers(1, 10_000, size=HINTS.shape)], axis=-1)
    text = [[[f"w={hint}", f"t={t}"] for t, hint in enumerate(row)] for row in HINTS]
    for X in (list(standardised), list(lengths), text):
        _, warned = outcome(lambda X=X: clone(TAGGERS[name]).fit(X, Y))
        assert not any("scale" in text for text in warned)


def test_iterations_that_would_not_help_are_not_advised():
    X = sequences("beside", 1.0)
    # Rounding ends the descent, long before a penalty counts.
    with pytest.warns(ConvergenceWarning, match="no step decreases the objective") as record:
        CRFTagger(l2=1e-100, tol=0).fit(X, Y)
    assert str(record[0].message).endswith(" Increase tol or l2.")
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2.*Increase max_iter, tol or l2"):
        CRFTagger(max_iter=2).fit(X, Y)


# ----------------------------------------------------------------------- values that are too large


@every_kind
@every_tagger
def test_values_beyond_range_are_named(name, kind):
    for value in TOO_LARGE:
        tagger = clone(TAGGERS[name])
        with pytest.raises(ValueError, match=SCALING) as caught:
            outcome(lambda tagger=tagger, value=value: tagger.fit(sequences(kind, value), Y))
        where = "Sequence 2, token 1: feature 1" if kind == "once" else "Sequence 0, token 0: fea"
        assert str(caught.value).startswith(where)
        assert not hasattr(tagger, "coef_")


@every_kind
@every_reranker
def test_values_beyond_range_are_named_by_group(name, kind):
    for value in TOO_LARGE:
        where = "Group 2, candidate 1: feature 1" if kind == "once" else "Group 0, candidate [012]"
        with pytest.raises(ValueError, match=f"{where}.*{SCALING}"):
            outcome(lambda value=value: clone(RERANKERS[name]).fit(groups(kind, value), CHOSEN))


def test_values_beyond_range_in_other_formats():
    X = sequences("once", 1e200)
    batch = SequenceBatch.from_sequences([sp.csr_matrix(x) for x in X])
    edges = SequenceBatch(np.ones((40, 1)), batch.offsets, transition_X=np.concatenate(X))
    for data in (np.stack(X), batch, as_dicts(X)):
        with pytest.raises(ValueError, match=r"Sequence 2, token 1: feature ('f)?1'? is 1e\+200"):
            PerceptronTagger().fit(data, Y)
    with pytest.raises(ValueError, match="Sequence 2, token 1: transition feature 1"):
        PerceptronTagger().fit(edges, Y)
    trainer = Trainer("ap", verbose=False)
    for x, labels in zip(as_dicts(X), Y, strict=True):
        trainer.append(x, labels)
    with pytest.raises(ValueError, match="Sequence 2, token 1: feature 'f1'"):
        trainer.train("")


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_nbest", "score"])
def test_predictions_of_values_beyond_range(method):
    X = sequences("beside", 1.0)
    for data in (X, as_dicts(X)):
        tagger = PerceptronTagger(random_state=0).fit(data, Y)
        huge = [x.copy() for x in X]
        huge[3][2, 0] = -1e200
        more = (huge if data is X else as_dicts(huge))[3:5]
        labels = (Y[3:5],) if method == "score" else ()
        name = "0" if data is X else "'f0'"
        with pytest.raises(ValueError, match=rf"Sequence 0, token 2: feature {name} is -1e\+200"):
            getattr(tagger, method)(more, *labels)


def test_predictions_of_the_drop_in():
    crf = CRF(max_iterations=5).fit(as_dicts(sequences("beside", 1.0)), Y)
    huge = as_dicts(sequences("beside", 1e200))
    for answer in (crf.predict, crf.predict_marginals):
        with pytest.raises(ValueError, match=SCALING):
            answer(huge)
    for answer in (crf.predict_single, crf.predict_marginals_single):
        with pytest.raises(ValueError, match=SCALING):
            answer(huge[0])


def test_scores_of_candidates_beyond_range():
    reranker = SGDReranker(random_state=0).fit(groups("beside", 1.0), CHOSEN)
    X = groups("beside", 1.7e308)
    reranker.coef_ = np.array([1e10, -1e10])
    for method in ("predict", "predict_proba", "decision_function", "rank"):
        with pytest.raises(
            ValueError, match="Group 0, candidate 0: the score is .*inf.*" + SCALING
        ):
            outcome(lambda method=method: getattr(reranker, method)(X))


def test_validation_sets_beyond_range():
    X = sequences("beside", 1.0)
    with pytest.raises(ValueError, match="X_val, y_val: Sequence 0, token 0: feature 1"):
        CRFTagger().fit(X, Y, X_val=sequences("beside", 1e200), y_val=Y)
    weight = np.where(np.arange(10) == 1, 1e200, 1.0)
    with pytest.raises(ValueError, match="X_val, y_val: Sequence 1 has the weight 1e"):
        CRFTagger().fit(X, Y, X_val=X, y_val=Y, sample_weight_val=weight)


def test_a_reranked_tagger():
    reranker = NBestReranker(PerceptronTagger(random_state=0), n_best=4, cv=2)
    with pytest.raises(ValueError, match=SCALING):
        reranker.fit(sequences("beside", 1e200), Y)


# -------------------------------------------------------------------------- weights and parameters


@every_tagger
def test_weights_of_sequences_beyond_range(name):
    X = sequences("beside", 1.0)
    for weight in (1e39, 1.7e308):
        one = np.where(np.arange(len(X)) == 3, weight, 1.0)
        with pytest.raises(ValueError, match=r"Sequence 3 has the weight .* too large"):
            outcome(lambda one=one: clone(TAGGERS[name]).fit(X, Y, sample_weight=one))
        weighted = clone(TAGGERS[name]).set_params(class_weight={"A": weight, "B": 1.0})
        with pytest.raises(ValueError, match=r"weight .* (too large|divide the weights)"):
            outcome(lambda weighted=weighted: weighted.fit(X, Y))


@every_reranker
def test_weights_of_groups_beyond_range(name):
    weight = np.where(np.arange(len(CHOSEN)) == 3, 1e200, 1.0)
    with pytest.raises(ValueError, match="Group 3 has the weight 1e\\+200, too large"):
        clone(RERANKERS[name]).fit(groups("alone", 1.0), CHOSEN, sample_weight=weight)


# ----------------------------------------------------------------------------------- probabilities


def exact_marginals(tagger, x):
    """Marginals from all labellings, with fifty digits."""
    with localcontext() as context:
        context.prec = 50
        emission = [
            [
                sum(Decimal(float(w)) * Decimal(float(v)) for w, v in zip(row, token, strict=True))
                + Decimal(float(b))
                for row, b in zip(tagger.coef_, tagger.intercept_, strict=True)
            ]
            for token in x
        ]
        for j in range(2):
            emission[0][j] += Decimal(float(tagger.start_[j]))
            emission[-1][j] += Decimal(float(tagger.end_[j]))
        scores = {}
        for labels in product(range(2), repeat=len(x)):
            score = sum(emission[t][label] for t, label in enumerate(labels))
            for a, b in pairwise(labels):
                score += Decimal(float(tagger.transition_[a, b]))
            scores[labels] = score
        highest = max(scores.values())
        share = {labels: (score - highest).exp() for labels, score in scores.items()}
        total = sum(share.values())
        return np.array(
            [
                [
                    float(sum(p for labels, p in share.items() if labels[t] == j) / total)
                    for j in range(2)
                ]
                for t in range(len(x))
            ]
        )


@pytest.mark.parametrize("size", [1e9, 1e11, 1e13])
def test_marginals_of_large_scores(size):
    """Rounding of scores far apart is corrected, as far as that goes."""
    x = sequences("beside", 1.0)[0]
    tagger = PerceptronTagger(random_state=0).fit(sequences("beside", 1.0), Y)
    tagger.coef_ = np.array([[0.3, size], [0.1, size]])
    tagger.transition_ = np.array([[0.0, -1e4], [0.5, 0.2]])
    proba = tagger.predict_proba([x])[0]
    assert_allclose(proba.sum(axis=1), 1, rtol=2e-6)
    assert_allclose(proba, exact_marginals(tagger, x), atol=20 * size * np.finfo(float).eps)


def test_probabilities_that_rounding_hides():
    X = sequences("beside", 1.0)
    tagger = PerceptronTagger(random_state=0).fit(X, Y)
    tagger.coef_ = np.array([[1.0, 1e20], [0.5, 1.1e20]])
    tagger.transition_ = np.array([[0.0, -1e5], [1e19, 3e19]])
    for method in ("predict_proba", "predict_nbest"):
        with pytest.raises(ValueError, match=r"Sequence 0 has scores so large .* lost in rounding"):
            getattr(tagger, method)(X)
    assert len(tagger.predict_nbest(X, normalize="n_best")) == len(X)
    assert np.concatenate(list(tagger.predict(X))).tolist() == ["B"] * 40


# ----------------------------------------------------------------------------------- endless loops


@pytest.mark.parametrize("l2", [1e4, 1e8])
def test_stochastic_average_gradient_with_a_strong_penalty(monkeypatch, l2):
    """Many sequences, whose steps together shrink the weights below every number."""
    # The objective is so flat that L-BFGS would leave its stochastic start as it is.
    monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 10**9)
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(2, 2)) for _ in range(1200)]
    y = [["A" if v > 0 else "B" for v in x[:, 0]] for x in X]
    same = {"all_possible_states": True, "all_possible_transitions": True, "tol": 1e-12}
    expected = CRFTagger(l2=l2, **same).fit(X, y)
    # Where there is nothing to gain, zero is as good.
    scale = np.abs(expected.coef_).max() or 1e-9
    found = CRFTagger(solver="sag", l2=l2, max_iter=10, tol=1e-10, random_state=0).fit(X, y)
    assert_allclose(found.coef_, expected.coef_, atol=1e-3 * scale)
    assert_allclose(found.transition_, expected.transition_, atol=1e-3 * scale)


@pytest.mark.parametrize("name", ["sgd", "perceptron", "mira", "sapo", "arow"])
@pytest.mark.parametrize("size", [5.5, 1e19])
def test_pieces_of_any_number_and_length(name, size):
    X = sequences("beside", 1.0)
    for parameter, same in (("structure_alpha", 4), ("mini_length", 4)):
        huge, known = (
            clone(TAGGERS[name]).set_params(**{parameter: value, "max_iter": 3}).fit(X, Y)
            for value in (size, same)
        )
        assert_array_equal(huge.coef_, known.coef_)
        assert_array_equal(huge.transition_, known.transition_)


def test_a_reranker_has_room_for_as_many_epochs_as_it_makes():
    """Mistakes are counted as they come."""
    X = groups("beside", 5.0)

    class Enough(Exception):
        pass

    epochs = []

    class Brief(VRDAReranker):
        def _epoch(self, groups, order, state):
            epochs.append(super()._epoch(groups, order, state)[0])
            if len(epochs) == 30:
                raise Enough
            return epochs[-1], 0

    for prediction in ("average", "vote", "last"):
        epochs.clear()
        brief = Brief(max_iter=10**18, prediction=prediction, random_state=0)
        with pytest.raises(Enough):
            brief.fit(X, CHOSEN)
        known = VRDAReranker(max_iter=30, prediction=prediction, random_state=0).fit(X, CHOSEN)
        assert [tally.mistakes for tally in epochs] == known.history_["mistakes"].tolist()
        assert known.votes_.sum() == known.n_mistakes_ + sum(
            len(CHOSEN) - tally.mistakes for tally in epochs
        )


def test_a_period_beyond_64_bits():
    rerankers = (
        TruncatedGradientReranker(period=period, random_state=0).fit(groups("beside", 1), CHOSEN)
        for period in (10**9, 10**30)
    )
    assert_array_equal(*(reranker.coef_ for reranker in rerankers))


@pytest.mark.parametrize("search", ["astar", "beam"])
def test_all_labellings_take_time_in_proportion(search):
    """Sorting them by insertion takes a quarter of a minute."""
    rng = np.random.default_rng(0)
    tagger = PerceptronTagger(random_state=0).fit(sequences("beside", 1.0), Y)
    x = rng.normal(size=(16, 2))
    # Compiles.
    tagger.predict_nbest([x[:2]], search=search)
    start = process_time()
    found = tagger.predict_nbest([x], 10**9, search=search, beam_width=10**9)[0]
    assert process_time() - start < 6
    assert len({tuple(labelling.labels) for labelling in found}) == 2**16
    assert math.isclose(sum(labelling.probability for labelling in found), 1, rel_tol=1e-6)
    assert all(a.score >= b.score for a, b in pairwise(found))


@pytest.mark.parametrize("kind", [MIRATagger, SAPOTagger])
@pytest.mark.parametrize(
    "parameters", [{"n_best": 10_000}, {"search": "beam", "beam_width": 10**6}]
)
def test_an_interrupt_need_not_wait_for_an_epoch_of_long_searches(kind, parameters, monkeypatch):
    """A kernel visits fewer sequences at a time where each takes long."""
    visited = []

    def epoch(rows, labels, samples, *others):
        visited.append(len(samples))
        return 0, 0.0

    monkeypatch.setattr(online, "online_epoch", epoch)
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(50, 2)) for _ in range(1000)]
    y = [rng.choice(["A", "B"], size=50).tolist() for _ in X]
    kind(max_iter=1, **parameters, random_state=0).fit(X, y)
    # Half a minute at most, at some milliseconds for each of the squared pairs.
    assert max(visited) <= 100
    visited.clear()
    kind(max_iter=1, random_state=0).fit(X, y)
    assert visited == [1000]


# --------------------------------------------------------------------------------------- histories


def test_histories_have_finite_numbers():
    history = Monitor()
    history.add(epoch=1, objective=None, bound=math.inf, updates=np.int64(3))
    assert np.isnan(history.arrays()["objective"])
    assert np.isinf(history.arrays()["bound"])
    for entry in ({"objective": math.nan}, {"bound": math.nan}, {"bound": -math.inf}):
        for more in (entry, {"loss": np.float64(math.inf)}):
            with pytest.raises(ValueError, match="infinite or NaN in epoch 2: scale the features"):
                Monitor().add(epoch=2, **more)


# ------------------------------------------------------------------------------------- warm starts


def objective_of(tagger, X, y):
    """Objective of the weights that predict, from all labellings."""
    parts = tagger.coef_, tagger.transition_, tagger.intercept_, tagger.start_, tagger.end_
    total = tagger.l2 / 2 * sum(np.square(part).sum() for part in parts)
    for x, labels in zip(X, y, strict=True):
        found = tagger.predict_nbest([x], 10**6)[0]
        total -= next(math.log(f.probability) for f in found if f.labels == labels)
    return total


@pytest.mark.parametrize("before", ["sag", "lbfgs", "sgd"])
@pytest.mark.parametrize("biases", [(True, False), (False, True), (True, True)])
def test_the_bound_after_a_warm_start_is_that_of_the_weights(before, biases):
    """Biases of an earlier fit are no part of a model without."""
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(3, 2)) for _ in range(12)]
    y = [rng.choice(["A", "A", "B"], size=3).tolist() for _ in X]
    every = {"all_possible_states": True, "all_possible_transitions": True}
    least = CRFTagger(tol=1e-12, fit_intercept=biases[1], **every).fit(X, y)
    tagger = CRFTagger(solver=before, fit_intercept=biases[0], warm_start=True, **SHORT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger.fit(X, y).set_params(solver="sag", fit_intercept=biases[1], max_iter=8).fit(X, y)
    value = objective_of(tagger, X, y)
    assert_allclose(tagger.history_["objective"][-1], value, rtol=1e-9)
    assert value - tagger.suboptimality_bound_ <= least.history_["objective"][-1] * (1 + 1e-9)
    assert biases[1] or not np.any([tagger.intercept_, tagger.start_, tagger.end_])
