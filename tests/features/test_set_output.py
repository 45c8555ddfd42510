"""Data frames as output: vectorisers return batches whatever scikit-learn is set to."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skstruct import (
    EmbeddingVectorizer,
    HashingTemplateVectorizer,
    PerceptronTagger,
    SequenceBatch,
    SequenceUnion,
    SequenceVectorizer,
    TemplateVectorizer,
    WordVectorizer,
)

VECTORS = {"the": [0.1, 0.2], "cat": [0.3, 0.4]}
VECTORIZERS = [
    SequenceVectorizer(),
    TemplateVectorizer("U00:%x[0,0]\nB01:%x[0,0]"),
    WordVectorizer(),
    HashingTemplateVectorizer("U00:%x[0,0]"),
    EmbeddingVectorizer(VECTORS),
    SequenceUnion(
        [
            ("words", TemplateVectorizer("U00:%x[0,0]")),
            ("vectors", EmbeddingVectorizer(VECTORS)),
        ]
    ),
    SequenceUnion([("vectors", EmbeddingVectorizer(VECTORS)), ("none", "drop")]),
]


def assert_same_batch(found, expected):
    assert isinstance(found, SequenceBatch)
    for a, b in ((found.X, expected.X), (found.transition_X, expected.transition_X)):
        assert type(a) is type(b)
        if a is not None:
            assert_array_equal(*(x.toarray() if sp.issparse(x) else np.asarray(x) for x in (a, b)))
    assert_array_equal(found.offsets, expected.offsets)


@pytest.mark.parametrize("output", ["pandas", "polars"])
@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=lambda v: type(v).__name__)
def test_output_stays_a_batch_when_data_frames_are_asked_for(vectorizer, output):
    """Tokens without their sequences would be of no use; polars need not be installed."""
    X = [["the", "cat"], ["a"]]
    if isinstance(vectorizer, SequenceVectorizer):
        X = [[{"word": token} for token in sequence] for sequence in X]
    expected = clone(vectorizer).fit_transform(X)
    y = [["DET", "NOUN"], ["DET"]]
    tagger = make_pipeline(clone(vectorizer), PerceptronTagger(random_state=0)).fit(X, y)
    with sklearn.config_context(transform_output=output):
        assert_same_batch(clone(vectorizer).fit_transform(X), expected)
        assert_same_batch(clone(vectorizer).fit(X).transform(X), expected)
        copy = clone(tagger).fit(X, y)
        assert_array_equal(copy[-1].coef_, tagger[-1].coef_)
        assert copy.predict(X).tolist() == tagger.predict(X).tolist()


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=lambda v: type(v).__name__)
def test_there_is_no_output_to_set(vectorizer):
    assert not hasattr(vectorizer, "set_output")
    with pytest.raises(AttributeError, match="returns batches: it has no attribute 'set_output'"):
        vectorizer.set_output(transform="pandas")
    pipeline = make_pipeline(clone(vectorizer), PerceptronTagger())
    with pytest.raises(ValueError, match="`set_output` is not available"):
        pipeline.set_output(transform="pandas")
