"""A fitted estimator that threads share."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import copy

import numpy as np
import pytest
from helpers.learners import RERANKERS, STACKED, TAGGERS

from skstruct import PerceptronTagger, SequenceVectorizer, TemplateVectorizer
from skstruct.crfsuite import CRF

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = [[{"word": word}, {"word": word[::-1], "n": 1.5}] for word in ("the", "cat", "dog", "new")] * 5
Y = [["A", "B"], ["B", "A"], ["A", "A"], ["C", "B"]] * 5
GROUPS = [[{"f0": 2.0, "f1": -1.0}, {"f1": 0.5}, {"f2": 1.0}]] * 10, [0, 1] * 5


def as_text(answer):
    return repr(np.asarray(answer, dtype=object).tolist())


def assert_shared(ask, expected):
    """Ask from several threads at once, which take turns every ten microseconds."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(lambda _: ask(), range(40))) == {expected}
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("name", TAGGERS)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_nbest", "predict_spans"])
def test_taggers(name, method):
    tagger = TAGGERS[name]().fit(X, Y)
    stored = pickle.loads(pickle.dumps(tagger))
    # Threads meet what the first prediction caches.
    assert_shared(lambda: as_text(getattr(stored, method)(X)), as_text(getattr(tagger, method)(X)))


def test_weights_that_a_portion_has_left_open():
    tagger = PerceptronTagger(random_state=0).partial_fit(X, Y)
    shared = copy(tagger)
    assert_shared(lambda: as_text(shared.coef_), as_text(tagger.coef_))


@pytest.mark.parametrize("name", RERANKERS)
def test_rerankers(name):
    reranker = RERANKERS[name]().fit(*GROUPS)
    assert_shared(
        lambda: as_text(reranker.decision_function(GROUPS[0])),
        as_text(reranker.decision_function(GROUPS[0])),
    )


def test_rerankers_of_taggers():
    model = STACKED().fit(X, Y)
    assert_shared(lambda: as_text(model.predict(X)), as_text(model.predict(X)))


def test_drop_in():
    crf = CRF(max_iterations=3).fit(X, Y)
    shared = pickle.loads(pickle.dumps(crf))
    assert_shared(
        lambda: as_text(shared.predict_marginals(X)) + str(shared.classes_),
        as_text(crf.predict_marginals(X)) + str(crf.classes_),
    )


@pytest.mark.parametrize("vectorizer", [SequenceVectorizer(), TemplateVectorizer("U0:%x[0,0]")])
def test_vectorizers(vectorizer):
    texts = [[token["word"] for token in x] for x in X]
    given = texts if isinstance(vectorizer, TemplateVectorizer) else X
    vectorizer.fit(given)

    def ask():
        batch = vectorizer.transform(given)
        return f"{batch.X.shape} {batch.X.indices.tolist()} {batch.X.data.tolist()}"

    assert_shared(ask, ask())
