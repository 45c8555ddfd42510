"""Taggers among scikit-learn's tools: pipelines, searches, scores, copies, metadata."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import seqeval.metrics
import sklearn_crfsuite.metrics
from helpers.seeds import global_seed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
    validation_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils._test_common import instance_generator
from sklearn.utils.estimator_checks import parametrize_with_checks

import skstruct
from skstruct import (
    SDCACRF,
    AnnotatorCRF,
    ConformalTagger,
    CRFTagger,
    CRFTaggerCV,
    EmbeddingVectorizer,
    HashingTemplateVectorizer,
    LabelStatistics,
    NBestReranker,
    PerceptronReranker,
    PerceptronTagger,
    SequenceBatch,
    SequenceUnion,
    SequenceVectorizer,
    SGDReranker,
    SpanTaggerCV,
    TemplateVectorizer,
    TokenTransformer,
    TruncatedGradientReranker,
    VectorScaler,
    VRDAReranker,
    WordClusters,
    WordVectorizer,
    crfsuite,
    dask,
    metrics,
)
from skstruct.taggers.base import BaseTagger

EXPORTED = [getattr(skstruct, name) for name in skstruct.__all__]
EVERY_TAGGER = [c() for c in EXPORTED if isinstance(c, type) and issubclass(c, BaseTagger)]
EVERY_TAGGER.append(crfsuite.OnlineCRF())
# All others; those whose X is never a matrix say so in their tags, and scikit-learn leaves them be.
OTHERS = [
    ConformalTagger(
        CRFTagger(), risk="missed_by_sequence", alpha=0.5, calibration=0.5, random_state=0
    ),
    EmbeddingVectorizer({"a": [1.0]}),
    HashingTemplateVectorizer("U:%x[0,0]"),
    LabelStatistics(),
    NBestReranker(CRFTagger()),
    PerceptronReranker(),
    SGDReranker(),
    SequenceUnion([("dicts", SequenceVectorizer())]),
    SequenceVectorizer(),
    SpanTaggerCV(CRFTagger()),
    TemplateVectorizer("U:%x[0,0]"),
    TokenTransformer(MaxAbsScaler()),
    TruncatedGradientReranker(),
    VectorScaler(),
    VRDAReranker(),
    WordClusters(),
    WordVectorizer(),
    crfsuite.CRF(),
    dask.DaskTagger(CRFTagger()),
]
TAGGERS = [CRFTagger(l2=0.5, tol=1e-3), PerceptronTagger(max_iter=5, tol=None, random_state=0)]


class CRFClassifier(ClassifierMixin, CRFTagger):
    """A tagger that says to scikit-learn that it is a classifier."""


class PerceptronClassifier(ClassifierMixin, PerceptronTagger):
    """A tagger that says to scikit-learn that it is a classifier."""


@pytest.fixture(params=TAGGERS, ids=lambda tagger: type(tagger).__name__)
def tagger(request):
    """An unfitted tagger."""
    return clone(request.param)


@pytest.fixture(scope="module")
def ragged(addresses):
    """Sequences of feature dicts of many lengths, and their labels."""
    tokens, labels = addresses
    return [[dict(a.split("=", 1) for a in token) for token in s] for s in tokens[:60]], labels[:60]


@pytest.fixture(scope="module")
def equal(addresses):
    """Sequences that happen to have one length."""
    chosen = [i for i, labels in enumerate(addresses[1]) if len(labels) == 9][:40]
    return [addresses[0][i] for i in chosen], [addresses[1][i] for i in chosen]


@pytest.fixture(params=["ragged", "equal"])
def data(request):
    """Both of them, one after the other."""
    return request.getfixturevalue(request.param)


def learnt(tagger):
    return [tagger.coef_, tagger.transition_, tagger.intercept_, tagger.start_, tagger.end_]


def assert_same_model(a, b):
    for ours, theirs in zip(learnt(a), learnt(b), strict=True):
        assert_array_equal(ours, theirs)


# scikit-learn's own checks


def expected_failures(estimator):
    """What fails for scikit-learn's stochastic learner may fail for ours.

    Learning from a sequence twice is not learning twice as much from it, but for the solvers
    that come to the minimum; the exponentiated gradient comes to within rounding of the dual only.
    """
    exact = isinstance(estimator, CRFTagger) and estimator.solver in ("lbfgs", "sag")
    if exact or isinstance(estimator, (SDCACRF, AnnotatorCRF, CRFTaggerCV, *map(type, OTHERS))):
        return {}
    failures = dict(instance_generator._get_expected_failed_checks(SGDClassifier()))
    if isinstance(estimator, PerceptronClassifier):
        # It passes with as many epochs as the check allows, see test_class_weight.
        failures["check_class_weight_classifiers"] = "stops while the average still moves"
    return failures


@parametrize_with_checks(
    [
        *EVERY_TAGGER,
        *OTHERS,
        CRFClassifier(),
        PerceptronClassifier(),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    with global_seed():
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        CRFTagger(solver="sgd"),
        CRFTagger(solver="sag", tol=1e-15, max_iter=3000),
        CRFTagger(solver="oeg"),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks_of_other_solvers(estimator, check):
    with global_seed():
        check(estimator)


def test_every_public_estimator_is_checked():
    modules = skstruct, crfsuite, dask
    public = {getattr(module, name) for module in modules for name in module.__all__}
    public = {c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)}
    assert public == {type(estimator) for estimator in (*EVERY_TAGGER, *OTHERS)}


def test_taggers_do_not_call_themselves_classifiers(tagger, ragged):
    """An integer cv would make scikit-learn stratify, which no list of label lists survives."""
    X, y = ragged
    assert not is_classifier(tagger)
    scores = cross_val_score(tagger, X, y, cv=3)
    assert scores.shape == (3,)
    by_hand = [
        clone(tagger)
        .fit([X[i] for i in train], [y[i] for i in train])
        .score([X[i] for i in test], [y[i] for i in test])
        for train, test in KFold(3).split(X)
    ]
    assert_allclose(scores, by_hand)
    kind = CRFClassifier if isinstance(tagger, CRFTagger) else PerceptronClassifier
    with pytest.raises(
        ValueError, match=r"inhomogeneous|legacy multi-label|Supported target types"
    ):
        cross_val_score(kind(**tagger.get_params()), X, y, cv=3, error_score="raise")


# Pipelines


def test_pipeline_is_the_same_as_the_tagger_alone(tagger, data):
    X, y = data
    alone = clone(tagger).fit(X, y)
    pipeline = make_pipeline(SequenceVectorizer(), tagger).fit(X, y)
    assert_same_model(pipeline[-1], alone)
    assert pipeline.predict(X).tolist() == alone.predict(X).tolist()
    assert_array_equal(
        np.concatenate(pipeline.predict_proba(X)), np.concatenate(alone.predict_proba(X))
    )
    assert pipeline.score(X, y) == alone.score(X, y)
    assert_array_equal(pipeline[-1].feature_names_in_, pipeline[0].get_feature_names_out())
    assert_array_equal(pipeline.classes_, alone.classes_)


def test_a_pipeline_has_copies_of_its_taggers_tags():
    class WeakTagger(CRFTagger):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.classifier_tags.poor_score = True
            return tags

    found = [
        get_tags(make_pipeline(SequenceVectorizer(), tagger)).classifier_tags
        for tagger in (WeakTagger(), CRFTagger())
    ]
    assert [(tags.poor_score, tags.multi_class) for tags in found] == [(True, True), (False, True)]
    own = get_tags(WeakTagger()).classifier_tags
    copied = copy.deepcopy(own)
    assert copied == own
    assert copied is not own


def test_pipeline_memory(tagger, ragged, tmp_path, monkeypatch):
    calls = []
    fit_transform = SequenceVectorizer.fit_transform
    monkeypatch.setattr(
        SequenceVectorizer,
        "fit_transform",
        lambda self, X, y=None: calls.append(self) or fit_transform(self, X, y),
    )
    X, y = ragged
    steps = [("vectorizer", SequenceVectorizer()), ("tagger", tagger)]
    memory = joblib.Memory(tmp_path, verbose=0)
    first = Pipeline([(name, clone(step)) for name, step in steps], memory=memory).fit(X, y)
    assert len(calls) == 1
    second = Pipeline([(name, clone(step)) for name, step in steps], memory=memory).fit(X, y)
    assert len(calls) == 1
    assert_same_model(first[-1], second[-1])
    assert second.predict(X).tolist() == first.predict(X).tolist()
    second.set_params(vectorizer__min_freq=2).fit(X, y)
    assert len(calls) == 2


# Model selection

GRIDS = {
    CRFTagger: {"vectorizer__min_freq": [1, 2], "tagger__l2": [0.1, 10.0]},
    PerceptronTagger: {"vectorizer__min_freq": [1, 2], "tagger__average": [True, False]},
}


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_grid_search(tagger, ragged, n_jobs):
    X, y = ragged
    pipeline = Pipeline([("vectorizer", SequenceVectorizer()), ("tagger", tagger)])
    scoring = metrics.chunk_f1_scorer
    search = GridSearchCV(pipeline, GRIDS[type(tagger)], cv=3, n_jobs=n_jobs, scoring=scoring)
    search.fit(X, y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    by_hand = cross_val_score(
        clone(pipeline).set_params(**search.best_params_), X, y, cv=3, scoring=scoring
    )
    assert_allclose(search.best_score_, by_hand.mean())
    best = clone(pipeline).set_params(**search.best_params_).fit(X, y)
    assert search.predict(X).tolist() == best.predict(X).tolist()
    assert search.score(X, y) == metrics.chunk_f1_score(y, best.predict(X))
    assert_array_equal(search.classes_, best.classes_)


def test_halving_grid_search(tagger, ragged):
    X, y = ragged
    pipeline = Pipeline([("vectorizer", SequenceVectorizer()), ("tagger", tagger)])
    search = HalvingGridSearchCV(
        pipeline,
        GRIDS[type(tagger)],
        cv=3,
        resource="n_samples",
        min_resources=20,
        random_state=0,
        error_score="raise",
    ).fit(X, y)
    assert search.n_resources_ == [20, 60]
    assert search.best_estimator_[-1].n_features_in_ == len(search.best_estimator_[0].vocabulary_)
    assert search.predict(X).shape == (60,)


def test_cross_validate_with_several_scorers(tagger, data):
    X, y = data
    scoring = {
        "chunks": metrics.chunk_f1_scorer,
        "tokens": metrics.token_accuracy_scorer,
        "sequences": metrics.sequence_accuracy_scorer,
        "crfsuite": make_scorer(sklearn_crfsuite.metrics.flat_accuracy_score),
        "seqeval": make_scorer(seqeval.metrics.f1_score),
    }
    results = cross_validate(
        tagger, X, y, cv=3, scoring=scoring, return_estimator=True, return_train_score=True
    )
    assert_allclose(results["test_chunks"], results["test_seqeval"])
    assert_allclose(results["test_tokens"], results["test_crfsuite"])
    for (_, test), estimator, score in zip(
        KFold(3).split(X), results["estimator"], results["test_tokens"], strict=True
    ):
        assert estimator.score([X[i] for i in test], [y[i] for i in test]) == score
    assert np.all(results["train_sequences"] >= results["test_sequences"])


def test_predictions_of_cross_validation_go_into_all_metrics(tagger, data):
    X, y = data
    predicted = cross_val_predict(tagger, X, y, cv=KFold(4))
    assert predicted.shape == (len(X),)
    assert list(map(len, predicted)) == list(map(len, y))
    for train, test in KFold(4).split(X):
        part = clone(tagger).fit([X[i] for i in train], [y[i] for i in train])
        assert predicted[test].tolist() == part.predict([X[i] for i in test]).tolist()
    flat_true, flat_pred = np.concatenate(y), np.concatenate(predicted)
    accuracy = np.mean(flat_true == flat_pred)
    assert_allclose(metrics.token_accuracy_score(y, predicted), accuracy)
    assert_allclose(sklearn_crfsuite.metrics.flat_accuracy_score(y, predicted), accuracy)
    assert_allclose(seqeval.metrics.accuracy_score(y, predicted), accuracy)
    assert_allclose(metrics.chunk_f1_score(y, predicted), seqeval.metrics.f1_score(y, predicted))
    whole = np.mean([t == p for t, p in zip(y, predicted, strict=True)])
    assert_allclose(metrics.sequence_accuracy_score(y, predicted), whole)
    labels = np.empty(len(y), dtype=object)
    labels[:] = y
    assert_allclose(sklearn_crfsuite.metrics.sequence_accuracy_score(labels, predicted), whole)
    assert "STREET" in metrics.chunk_report(y, predicted)
    assert "STREET" in seqeval.metrics.classification_report(y, predicted, zero_division=0)


def test_learning_and_validation_curves(tagger, ragged):
    X, y = ragged
    sizes, train, test = learning_curve(
        tagger, X, y, cv=3, train_sizes=[0.25, 1.0], shuffle=True, random_state=0
    )
    assert sizes.tolist() == [10, 40]
    assert train.shape == test.shape == (2, 3)
    assert test[1].mean() > test[0].mean()
    name = "l2" if isinstance(tagger, CRFTagger) else "max_iter"
    train, test = validation_curve(
        tagger, X, y, param_name=name, param_range=[1, 50], cv=3, scoring=metrics.chunk_f1_scorer
    )
    for i, value in enumerate([1, 50]):
        scores = cross_val_score(
            clone(tagger).set_params(**{name: value}), X, y, cv=3, scoring=metrics.chunk_f1_scorer
        )
        assert_allclose(test[i], scores)
    assert np.all((train >= 0) & (train <= 1))


@pytest.mark.parametrize(
    "make",
    [
        lambda X: SequenceVectorizer().fit_transform(X),
        lambda X: SequenceBatch.from_sequences(
            [m.toarray() for m in SequenceVectorizer().fit_transform(X)]
        ),
        lambda X: list(SequenceVectorizer().fit_transform(X)),
        lambda X: [m.toarray() for m in SequenceVectorizer().fit_transform(X)],
        lambda X: pd.Series(X),
        lambda X: tuple(X),
    ],
    ids=["batch", "dense batch", "sparse matrices", "matrices", "series", "tuple"],
)
def test_splitting_every_format(tagger, ragged, make):
    X, y = make(ragged[0][:30]), ragged[1][:30]
    cv = ShuffleSplit(2, test_size=0.3, random_state=0)
    scores = cross_val_score(tagger, X, y, cv=cv, error_score="raise")
    assert_allclose(scores, cross_val_score(tagger, list(X), y, cv=cv))
    labels = np.empty(30, dtype=object)
    labels[:] = y
    assert_allclose(cross_val_score(tagger, X, labels, cv=cv), scores)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    assert 0.2 < tagger.fit(train, y_train).score(test, y_test) <= 1


def test_splitting_grids_and_rows(tagger):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4, 3))
    y = np.where(X[:, :, 0] > 0, "p", "n")
    predicted = cross_val_predict(tagger, X, y, cv=3)
    assert predicted.shape == (60, 4)
    assert np.mean(predicted == y) > 0.8
    as_lists = cross_val_predict(tagger, list(X), y.tolist(), cv=3)
    assert predicted.tolist() == as_lists.tolist()
    for rows in (X[:, 0], sp.csr_matrix(X[:, 0]), pd.DataFrame(X[:, 0])):
        predicted = cross_val_predict(tagger, rows, y[:, 0], cv=3)
        assert predicted.shape == (60,)
        assert np.mean(predicted == y[:, 0]) > 0.8
        proba = cross_val_predict(tagger, rows, y[:, 0], cv=3, method="predict_proba")
        assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("scale", [1.0, -3.0])
def test_rows_are_classified_as_by_logistic_regression(scale):
    X, y = load_iris(return_X_y=True)
    X = scale * StandardScaler().fit_transform(X)
    reference = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10).fit(X, y)
    tagger = CRFTagger(l2=2.0, fit_intercept=False, tol=1e-12).fit(X, y)
    assert_allclose(tagger.coef_, reference.coef_, atol=1e-4)
    assert_allclose(tagger.predict_proba(X), reference.predict_proba(X), atol=1e-5)
    assert_array_equal(tagger.predict(X), reference.predict(X))
    assert tagger.score(X, y) == reference.score(X, y)


# Copies


@pytest.mark.parametrize(
    "duplicate",
    [
        lambda tagger, path: pickle.loads(pickle.dumps(tagger)),
        lambda tagger, path: copy.deepcopy(tagger),
        lambda tagger, path: joblib.load(joblib.dump(tagger, path / "tagger.joblib")[0]),
        lambda tagger, path: joblib.load(
            joblib.dump(tagger, path / "tagger.joblib")[0], mmap_mode="r"
        ),
    ],
    ids=["pickle", "deepcopy", "joblib", "joblib memory map"],
)
def test_copies_are_as_good_as_the_original(tagger, ragged, duplicate, tmp_path):
    X, y = ragged
    assert duplicate(tagger, tmp_path).get_params() == tagger.get_params()
    tagger.fit(X, y)
    other = duplicate(tagger, tmp_path)
    assert_same_model(other, tagger)
    assert vars(other).keys() == vars(tagger).keys()
    assert other.predict(X).tolist() == tagger.predict(X).tolist()
    assert other.predict_nbest(X[:3], 2).tolist() == tagger.predict_nbest(X[:3], 2).tolist()
    if hasattr(tagger, "partial_fit"):
        assert_same_model(other.partial_fit(X, y), tagger.partial_fit(X, y))
    assert_same_model(other.fit(X, y), tagger.fit(X, y))


def test_clone_keeps_parameters_and_forgets_the_rest(tagger, ragged):
    tagger.set_params(n_jobs=2)
    fresh = clone(tagger.fit(*ragged))
    assert fresh.get_params() == tagger.get_params()
    assert vars(fresh) == fresh.get_params()


def test_set_params_round_trip(tagger):
    params = tagger.get_params()
    changed = {name: not value for name, value in params.items() if isinstance(value, bool)}
    assert changed
    tagger.set_params(**changed)
    assert tagger.get_params() == {**params, **changed}
    with pytest.raises(ValueError, match="Invalid parameter 'colour' for estimator"):
        tagger.set_params(colour="red")


@pytest.mark.parametrize("fitted", [False, True])
def test_repr(tagger, ragged, fitted):
    if fitted:
        tagger.fit(*ragged)
    text = repr(tagger)
    assert text.startswith(type(tagger).__name__ + "(")
    assert ("l2=0.5" if isinstance(tagger, CRFTagger) else "max_iter=5") in text
    assert "n_jobs" not in text
    html = tagger._repr_html_()
    assert f"<span>{'Fitted' if fitted else 'Not fitted'}</span>" in html
    assert type(tagger).__name__ in html
    assert "SequenceVectorizer" in make_pipeline(SequenceVectorizer(), tagger)._repr_html_()


# Metadata


def spoilt(y):
    """Labels of which the second half is worthless, and weights that say so."""
    half = len(y) // 2
    weight = np.ones(len(y))
    weight[half:] = 0
    return [*y[:half], *(["O"] * len(sequence) for sequence in y[half:])], weight


def test_sample_weight_is_routed_to_fit_and_score(tagger, ragged):
    X, (y, weight) = ragged[0], spoilt(ragged[1])
    cv = ShuffleSplit(2, test_size=0.5, random_state=0)
    with config_context(enable_metadata_routing=True):
        weighted = clone(tagger).set_fit_request(sample_weight=True)
        weighted.set_score_request(sample_weight=True)
        result = cross_validate(weighted, X, y, cv=cv, params={"sample_weight": weight})
        half = clone(tagger).set_fit_request(sample_weight=True)
        half.set_score_request(sample_weight=False)
        unweighted = cross_validate(half, X, y, cv=cv, params={"sample_weight": weight})
    for i, (train, test) in enumerate(cv.split(X)):
        alone = clone(tagger).fit([X[j] for j in train], [y[j] for j in train], weight[train])
        part = [X[j] for j in test], [y[j] for j in test]
        assert result["test_score"][i] == alone.score(*part, sample_weight=weight[test])
        assert unweighted["test_score"][i] == alone.score(*part)
    assert np.all(result["test_score"] > unweighted["test_score"])


def test_sample_weight_goes_through_pipelines_and_searches(tagger, ragged):
    X, (y, weight) = ragged[0], spoilt(ragged[1])
    name = "l2" if isinstance(tagger, CRFTagger) else "max_iter"
    with config_context(enable_metadata_routing=True):
        weighted = clone(tagger).set_fit_request(sample_weight=True)
        pipeline = Pipeline([("vectorizer", SequenceVectorizer()), ("tagger", weighted)])
        scorer = make_scorer(metrics.token_accuracy_score).set_score_request(sample_weight=True)
        grid = {f"tagger__{name}": [1, 5]}
        # Weights of parts that are all zero would be refused.
        cv = KFold(2, shuffle=True, random_state=0)
        search = GridSearchCV(pipeline, grid, scoring=scorer, cv=cv, error_score="raise")
        search.fit(X, y, sample_weight=weight)
        best = search.best_estimator_
    alone = clone(tagger).set_params(**{name: search.best_params_[f"tagger__{name}"]})
    alone.fit(X, y, sample_weight=weight)
    # The vectoriser of a pipeline also has features of sequences that have no weight.
    columns = np.searchsorted(best[0].feature_names_, alone.feature_names_in_)
    assert_array_equal(best[-1].coef_[:, columns], alone.coef_)
    assert_array_equal(best[-1].transition_, alone.transition_)
    assert np.count_nonzero(best[-1].coef_) == np.count_nonzero(alone.coef_)


def test_requests_are_refused_where_routing_is_off(tagger):
    with pytest.raises(RuntimeError, match="metadata routing is enabled"):
        tagger.set_fit_request(sample_weight=True)


def test_sample_weight_is_how_often_a_sequence_counts(ragged):
    X, y = ragged
    weight = 1 + np.arange(len(X)) % 3
    repeated = np.repeat(np.arange(len(X)), weight)
    settings = {"tol": 1e-10, "l2": 1.0}
    weighted = CRFTagger(**settings).fit(X, y, sample_weight=weight)
    # The vectoriser of the whole, so that both have the same features.
    batch = weighted.vectorizer_.transform(X)
    counted = CRFTagger(**settings).fit(batch[repeated], [y[i] for i in repeated])
    assert_array_equal(counted.classes_, weighted.classes_)
    for ours, theirs in zip(learnt(weighted), learnt(counted), strict=True):
        assert_allclose(ours, theirs, atol=1e-4)


# Searches over a tagger's own parameters, on a batch that is made once


def test_searches_on_a_batch(tagger, ragged):
    X, y = ragged
    batch = SequenceVectorizer().fit_transform(X)
    name, values = ("l2", [0.1, 1.0]) if isinstance(tagger, CRFTagger) else ("max_iter", [1, 4])
    params = {"cv": 3, "scoring": metrics.chunk_f1_scorer, "error_score": "raise"}
    grid = GridSearchCV(tagger, {name: values}, **params).fit(batch, y)
    for value, score in zip(values, grid.cv_results_["mean_test_score"], strict=True):
        one = clone(tagger).set_params(**{name: value})
        expected = cross_val_score(one, batch, y, cv=3, scoring=metrics.chunk_f1_scorer).mean()
        assert_allclose(score, expected)
    drawn = RandomizedSearchCV(tagger, {name: values}, n_iter=2, random_state=0, **params)
    assert_allclose(drawn.fit(batch, y).best_score_, grid.best_score_)
    halving = HalvingGridSearchCV(
        tagger, {name: values}, factor=2, min_resources=20, random_state=0, **params
    ).fit(batch, y)
    assert halving.n_resources_ == [20, 40]
    assert halving.predict(batch).shape == grid.predict(batch).shape == (60,)


def test_optuna_on_a_batch(tagger, ragged):
    optuna = pytest.importorskip("optuna")
    X, y = ragged
    batch = SequenceVectorizer().fit_transform(X)
    name, values = ("l2", [0.1, 1.0]) if isinstance(tagger, CRFTagger) else ("max_iter", [1, 4])

    def score(value):
        one = clone(tagger).set_params(**{name: value})
        return cross_val_score(one, batch, y, cv=3, scoring=metrics.chunk_f1_scorer).mean()

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.GridSampler({name: values}, seed=0)
    )
    study.optimize(lambda trial: score(trial.suggest_categorical(name, values)))
    assert_allclose(study.best_value, max(map(score, values)))
