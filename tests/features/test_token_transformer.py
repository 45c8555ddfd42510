"""Transformers of scikit-learn on the rows of a batch."""

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import (
    RFE,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
    VarianceThreshold,
    chi2,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MaxAbsScaler, StandardScaler

from skstruct import CRFTagger, SequenceBatch, SequenceVectorizer, TokenTransformer

X = [
    [{"w": "a", "size": 1.5}, {"w": "b", "size": 900.0, "title": True}],
    [{"w": "b", "size": 3.0, "title": False}],
    [],
] * 10
Y = [["A", "B"], ["A"], []] * 10
TOKENS = [label for labels in Y for label in labels]
STEPS = {
    "scale": MaxAbsScaler(),
    "scale in place": MaxAbsScaler(copy=False),
    "standardise": StandardScaler(with_mean=False),
    "variance": VarianceThreshold(),
    "chi2": SelectKBest(chi2, k=2),
    "model": SelectFromModel(LogisticRegression()),
    "eliminate": RFE(LogisticRegression(), n_features_to_select=1),
    "svd": TruncatedSVD(2, random_state=0),
    "several": make_pipeline(MaxAbsScaler(), SelectKBest(chi2, k=2)),
}


@pytest.fixture
def batch():
    return SequenceVectorizer().fit_transform(X)


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


@pytest.mark.parametrize("name", STEPS)
def test_rows_are_those_of_the_transformer_on_stacked_tokens(name, batch):
    before = batch.X.toarray()
    expected = clone(STEPS[name]).fit(batch.X.copy(), TOKENS)
    step = TokenTransformer(STEPS[name]).fit(batch, Y)
    found = step.transform(batch)
    np.testing.assert_allclose(dense(found.X), dense(expected.transform(batch.X.copy())))
    np.testing.assert_array_equal(found.offsets, batch.offsets)
    names = expected.get_feature_names_out(batch.feature_names)
    assert found.feature_names.tolist() == list(names) == step.get_feature_names_out().tolist()
    np.testing.assert_array_equal(batch.X.toarray(), before)
    assert step.n_features_in_ == batch.n_features
    assert step.feature_names_in_.tolist() == batch.feature_names.tolist()
    # Stored and read again, it does the same.
    stored = skops.io.dumps(step)
    again = skops.io.loads(stored, trusted=skops.io.get_untrusted_types(data=stored))
    np.testing.assert_array_equal(dense(again.transform(batch[:2]).X), dense(found[:2].X))


@pytest.mark.parametrize("name", STEPS)
def test_pipelines_with_a_tagger(name):
    pipeline = make_pipeline(SequenceVectorizer(), TokenTransformer(STEPS[name]), CRFTagger(l2=0.1))
    pipeline.fit(X, Y)
    rows = pipeline[:2].transform(X)
    again = CRFTagger(l2=0.1).fit(rows, Y)
    assert pipeline.predict(X).tolist() == again.predict(rows).tolist()
    n_columns = len(pipeline[:-1].get_feature_names_out())
    assert pipeline[-1].n_features_in_ == rows.n_features == n_columns


def test_parameters_within_are_searched():
    pipeline = make_pipeline(SequenceVectorizer(), TokenTransformer(SelectKBest(chi2)), CRFTagger())
    grid = {"tokentransformer__transformer__k": [1, 3]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, Y)
    kept = search.best_estimator_[1].get_feature_names_out()
    assert len(kept) == search.best_params_["tokentransformer__transformer__k"]


def test_dense_batches_lists_of_matrices_and_cubes():
    cube = np.random.default_rng(0).normal(size=(4, 3, 2))
    expected = StandardScaler().fit_transform(cube.reshape(12, 2))
    for X in (cube, list(cube), SequenceBatch.from_sequences(cube)):
        found = TokenTransformer(StandardScaler(copy=False)).fit_transform(X)
        np.testing.assert_allclose(found.X, expected)
        assert found.lengths.tolist() == [3] * 4
        assert found.feature_names is None


def test_stored_zeros_and_transition_features_stay(batch):
    assert batch.keep_zeros
    found = TokenTransformer(MaxAbsScaler()).fit_transform(batch)
    assert found.X.nnz == batch.X.nnz > np.count_nonzero(batch.X.toarray())
    assert found.keep_zeros
    T = np.arange(batch.n_rows, dtype=float)[:, None]
    with_T = SequenceBatch(batch.X, batch.offsets, transition_X=T)
    found = TokenTransformer(MaxAbsScaler()).fit_transform(with_T)
    np.testing.assert_array_equal(found.transition_X, T)
    assert not found.keep_zeros


def test_unknown_labels_and_weights(batch):
    some = [[None if t else label for t, label in enumerate(labels)] for labels in Y]
    known = np.flatnonzero([label is not None for labels in some for label in labels])
    labels = [TOKENS[row] for row in known]
    expected = SelectKBest(chi2, k=2).fit(batch.X[known], labels).scores_
    step = TokenTransformer(SelectKBest(chi2, k=2)).fit(batch, some)
    np.testing.assert_array_equal(step.transformer_.scores_, expected)
    weight = np.arange(len(batch), dtype=float)
    expected = StandardScaler(with_mean=False)
    expected.fit(batch.X.copy(), sample_weight=np.repeat(weight, batch.lengths))
    step = TokenTransformer(StandardScaler(with_mean=False))
    step.fit(batch, sample_weight=weight)
    np.testing.assert_allclose(step.transformer_.scale_, expected.scale_)
    assert "sample_weight" in step.get_metadata_routing().fit.requests


def test_what_is_refused(batch):
    fitted = TokenTransformer(MaxAbsScaler()).fit(batch)
    for X, message in (
        (batch.X, "X is one matrix, whose rows are no sequences"),
        ([[{"a": 1}]], "put a vectoriser before TokenTransformer"),
        (SequenceBatch(batch.X[:, :2], batch.offsets), "has 2 features, but TokenTransformer"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.transform(X)
    with pytest.raises(ValueError, match="Sequence 1 has 1 tokens, but 2 labels"):
        fitted.fit(batch, [["A", "B"]] * 30)
    with pytest.raises(ValueError, match="y"):
        TokenTransformer(SelectKBest(chi2)).fit(batch)
    # A failed fit leaves it as it was.
    np.testing.assert_array_equal(fitted.transform(batch).X.max(axis=0).toarray(), 1)

    class Drops(MaxAbsScaler):
        def transform(self, X):
            return super().transform(X)[:-1]

    with pytest.raises(ValueError, match="Drops made 29 rows of 30; expected one for each token"):
        TokenTransformer(Drops()).fit(batch).transform(batch)


@pytest.mark.parametrize(
    "step",
    [
        MaxAbsScaler(),
        StandardScaler(with_mean=False),
        VarianceThreshold(),
        SelectKBest(chi2, k=2),
        TruncatedSVD(2),
        KBinsDiscretizer(),
        SelectFromModel(CRFTagger(max_iter=2)),
        RFE(CRFTagger(max_iter=2)),
        SequentialFeatureSelector(CRFTagger(max_iter=2)),
    ],
    ids=lambda step: type(step).__name__,
)
def test_transformers_alone_name_the_way(step):
    pipeline = make_pipeline(SequenceVectorizer(), step, CRFTagger(max_iter=2))
    with pytest.raises(ValueError, match=r"Wrap a transformer, .*TokenTransformer\(MaxAbsScaler"):
        pipeline.fit(X, Y)


def test_batches_are_no_arrays(batch):
    for call in (np.asarray, lambda b: BaggingClassifier(CRFTagger()).fit(b, Y)):
        with pytest.raises(ValueError, match="A SequenceBatch has sequences, where rows"):
            call(batch)
