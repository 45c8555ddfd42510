"""Estimators that a thread fits while another asks them: the old model answers, or the new."""

import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy, deepcopy

import numpy as np
import pytest
import skops.io
from helpers.learners import RERANKERS, STACKED, TAGGERS

from skstruct import CRFTagger, PerceptronTagger, SequenceVectorizer, TemplateVectorizer
from skstruct.crfsuite import CRF, write_model
from skstruct.inspection import feature_weights, transition_weights
from skstruct.streams import fit_stream
from skstruct.taggers.online import _Deferred

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def frequent_switches():
    """Let threads take turns every ten microseconds."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def sequences(words, labels, seed):
    """Feature dicts and labels of which every word and label occurs."""
    rng = np.random.default_rng(seed)
    found = [*words, *rng.choice(words, 20)]
    X = [[{"word": str(a)}, {"word": str(b), "n": 1.5}] for a, b in zip(found, found, strict=True)]
    y = [[str(rng.choice(labels)), str(rng.choice(labels))] for _ in X]
    y[: len(labels)] = [[label, label] for label in labels]
    return X, y


# Models with other numbers of features and of labels, and words that both know.
DATA = [
    sequences(["the", "cat", "dog"], ["A", "B"], 0),
    sequences(["the", "cat", *map(str, range(40))], ["C", "D", "E", "F"], 1),
]
QUESTION = [[{"word": "the"}, {"word": "cat", "n": 0.5}], [{"word": "dog"}]] * 10


def groups(seed, n_features):
    rng = np.random.default_rng(seed)
    X = [[{f"f{rng.integers(n_features)}": 1.0 + k} for k in range(3)] for _ in range(20)]
    return X, rng.integers(0, 3, 20).tolist()


GROUPS = [groups(0, 3), groups(1, 30)]
CANDIDATES = [[{"f0": 2.0, "f1": -1.0}, {"f1": 0.5}, {"f2": 1.0}]] * 10


def as_text(answer):
    return repr(np.asarray(answer, dtype=object).tolist())


@contextmanager
def in_a_thread(work):
    """Let a thread work; yield a function that tells whether it is still at it."""
    errors = []

    def run():
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread.is_alive
    finally:
        thread.join()
    assert not errors, errors[0]


def assert_old_or_new(estimator, tasks, ask, n_fits=10):
    """Fit to two tasks in turn, while this thread asks."""
    expected, seen = [ask(estimator.fit(*task)) for task in tasks[::-1]], []
    assert expected[0] != expected[1]

    def fit():
        for i in range(n_fits):
            estimator.fit(*tasks[i % 2 - 1])

    with in_a_thread(fit) as is_fitting:
        while is_fitting():
            seen.append(ask(estimator))
    assert set(seen) <= set(expected)


@pytest.mark.parametrize("name", TAGGERS)
def test_taggers(name):
    assert_old_or_new(TAGGERS[name](), DATA, lambda t: as_text(t.predict_proba(QUESTION)))


@pytest.mark.parametrize("method", ["predict", "predict_nbest", "score"])
def test_methods_of_taggers(method):
    more = {"score": [[["A", "B"], ["A"]] * 10]}.get(method, [])

    def ask(tagger):
        return as_text(getattr(tagger, method)(QUESTION, *more))

    assert_old_or_new(CRFTagger(max_iter=4), DATA, ask)


@pytest.mark.parametrize("name", RERANKERS)
@pytest.mark.parametrize("method", ["decision_function", "predict_proba"])
def test_rerankers(name, method):
    def ask(reranker):
        return as_text([scores.tolist() for scores in getattr(reranker, method)(CANDIDATES)])

    assert_old_or_new(RERANKERS[name](), GROUPS, ask)


def test_rerankers_of_taggers():
    assert_old_or_new(STACKED(), DATA, lambda model: as_text(model.predict(QUESTION)), n_fits=4)


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda crf: as_text(crf.predict_marginals(QUESTION)),
        lambda crf: repr(sorted(crf.state_features_.items())),
        lambda crf: repr(crf.classes_),
    ],
)
def test_drop_in(algorithm, ask):
    assert_old_or_new(CRF(algorithm=algorithm, max_iterations=3), DATA, ask, n_fits=6)


@pytest.mark.parametrize("vectorizer", [SequenceVectorizer(), TemplateVectorizer("U0:%x[0,0]")])
def test_vectorizers(vectorizer):
    tasks, question = [(X,) for X, _ in DATA], QUESTION
    if isinstance(vectorizer, TemplateVectorizer):
        tasks = [([[t["word"] for t in x] for x in X],) for (X,) in tasks]
        question = [["the", "dog"], ["cat"]] * 20

    def ask(vectorizer):
        batch = vectorizer.transform(question)
        return f"{batch.X.shape} {batch.X.indices.tolist()} {batch.X.data.tolist()}"

    assert_old_or_new(vectorizer, tasks, ask, n_fits=60)


def test_portions():
    """While a portion is learnt, weights are those before or after it, never some of both."""
    X, y = DATA[1]
    portions = [(X[i::7], y[i::7]) for i in range(7)] * 4
    classes = sorted({label for labels in y for label in labels})

    def learn(tagger):
        for portion in portions:
            tagger.partial_fit(*portion, classes=classes)
            yield

    def ask(tagger):
        return as_text(tagger.predict_proba(QUESTION))

    one, other = (CRFTagger(solver="sgd", average=True, random_state=0) for _ in range(2))
    expected, seen, steps = [ask(one) for _ in learn(one)], [], learn(other)
    next(steps)
    with in_a_thread(lambda: list(steps)) as is_learning:
        while is_learning():
            seen.append(ask(other))
    places = [expected.index(answer) for answer in seen]
    assert places == sorted(places)
    assert ask(other) == expected[-1]


def test_other_threads_predict_what_a_portion_is_read_from():
    """Learning from labels that they predict, one by one."""
    X, y = DATA[0]
    tagger, twin = (PerceptronTagger(random_state=0).partial_fit(X, y) for _ in range(2))
    with ThreadPoolExecutor(1) as pool:
        labels = (pool.submit(tagger.predict, [x]).result(timeout=60)[0] for x in X)
        tagger.partial_fit(iter(X), labels)
    assert as_text(tagger.coef_) == as_text(twin.partial_fit(X, twin.predict(X).tolist()).coef_)


def test_a_portion_that_is_learnt_while_another_is_read_counts_too():
    X, y = DATA[0]
    tagger, twin = (PerceptronTagger(random_state=0).partial_fit(X, y) for _ in range(2))

    def reading():
        with in_a_thread(lambda: tagger.partial_fit(X[:9], y[:9])):
            pass
        yield from X

    assert tagger.partial_fit(reading(), y).n_iter_ == 3
    expected = twin.partial_fit(X[:9], y[:9]).partial_fit(X, y)
    assert as_text(tagger.coef_) == as_text(expected.coef_)


def test_a_fit_while_a_portion_is_read():
    X, y = DATA[0]
    tagger, twin = (PerceptronTagger(random_state=0).partial_fit(X, y) for _ in range(2))

    def reading():
        with in_a_thread(lambda: tagger.fit(*DATA[1])):
            pass
        yield from X

    tagger.partial_fit(reading(), y)
    assert as_text(tagger.predict(QUESTION)) == as_text(twin.partial_fit(X, y).predict(QUESTION))


def before_line(nth, work):
    """Trace function: before a line that computes weights, do what another thread might do."""
    codes = {f.__code__ for f in (_Deferred.__get__, PerceptronTagger._compute_weights)}
    lines = []

    def trace(frame, event, argument):
        if event == "line" and frame.f_code in codes:
            lines.append(frame.f_lineno)
            if len(lines) == nth:
                sys.settrace(None)
                work()
        return trace

    return trace


@pytest.mark.parametrize("nth", range(2, 11))
def test_weights_that_are_computed_while_others_are_learnt(nth):
    X, y = DATA[0]
    tagger, twin = (PerceptronTagger(random_state=0).partial_fit(X, y) for _ in range(2))
    other = X, [["B", "A"]] * len(X)
    old, new = as_text(copy(twin).coef_), as_text(twin.partial_fit(*other).coef_)
    assert old != new
    before = sys.gettrace()
    sys.settrace(before_line(nth, lambda: tagger.partial_fit(*other)))
    try:
        seen = as_text(tagger.coef_)
    finally:
        sys.settrace(before)
    assert tagger.n_iter_ == 2
    assert seen in (old, new)
    assert as_text(tagger.coef_) == new


@pytest.mark.parametrize("read", [feature_weights, transition_weights])
def test_tables_of_weights(read):
    pytest.importorskip("pandas")
    assert_old_or_new(CRFTagger(max_iter=4), DATA, lambda tagger: read(tagger).to_csv(), n_fits=30)


def test_model_files(tmp_path):
    def ask(tagger):
        write_model(tagger, tmp_path / "model")
        return (tmp_path / "model").read_bytes()

    assert_old_or_new(CRFTagger(max_iter=4, fit_intercept=False), DATA, ask, n_fits=30)


def learn_and_fork(tagger, ask):
    """Return True if a child answers that is forked while another thread learns."""
    inside = threading.Event()

    def learn():
        with tagger._turn:
            inside.set()
            time.sleep(0.2)

    with in_a_thread(learn):
        inside.wait()
        pid = os.fork()
        if not pid:
            signal.alarm(20)
            ask()
            os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork.")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_portions_are_learnt():
    """The child has no thread that would ever give the weights free."""
    X, y = DATA[0]
    taggers = [PerceptronTagger(random_state=0).partial_fit(X, y) for _ in range(2)]
    # This thread does not wait for itself.
    with taggers[1]._turn:
        assert learn_and_fork(taggers[0], lambda: [tagger.predict(X) for tagger in taggers])
    assert learn_and_fork(taggers[0], lambda: taggers[0].partial_fit(X, y).predict(X))


@pytest.mark.parametrize("make", [pickle.dumps, deepcopy, copy, skops.io.dumps])
def test_copies_while_portions_are_learnt(make):
    """A copy has the weights after some portion, never those in the midst of one."""
    X, y = DATA[1]
    X, y = X * 5, y * 5

    def learn(tagger):
        for _ in range(30):
            tagger.partial_fit(X, y)
            yield as_text(tagger.coef_)

    def read(made):
        if isinstance(made, bytes) and made[:2] == b"PK":
            return skops.io.loads(made, trusted=skops.io.get_untrusted_types(data=made))
        return pickle.loads(made) if isinstance(made, bytes) else made

    one, other = (PerceptronTagger(random_state=0) for _ in range(2))
    expected, made, steps = list(learn(one)), [], learn(other)
    next(steps)
    with in_a_thread(lambda: list(steps)) as is_learning:
        while is_learning():
            made.append(make(other))
    assert {as_text(read(one).coef_) for one in made} <= set(expected)


def test_streams_with_a_validation_set():
    """Weights that a round forgets are still those of who reads them."""
    X, y = DATA[1]
    tagger = CRFTagger(solver="sgd", random_state=0).partial_fit(X, y)

    def stream():
        fit_stream(tagger, lambda epoch: [(X, y)] * 3, n_epochs=8, X_val=X, y_val=y, patience=8)

    with in_a_thread(stream) as is_learning:
        while is_learning():
            for proba in tagger.predict_proba(QUESTION):
                np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_a_fit_that_fails_is_not_seen():
    X, y = DATA[0]
    tagger = CRFTagger().fit(X, y)
    expected = as_text(tagger.predict_proba(QUESTION))

    def fail():
        for _ in range(30):
            with pytest.raises(ValueError, match="Sequence 1, token 0"):
                tagger.fit([*X[:1], [{"word": np.nan}]], [*y[:1], ["Z"]])

    with in_a_thread(fail) as is_failing:
        while is_failing():
            assert as_text(tagger.predict_proba(QUESTION)) == expected
