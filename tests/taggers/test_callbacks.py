"""scikit-learn's callbacks: its own on every tagger and reranker, wherever that is fitted."""

import pickle
from copy import copy

import numpy as np
import pytest
from helpers.learners import RERANKERS, STACKED, TAGGERS, groups_of_candidates, labelled_sequences
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skstruct import (
    CRFTagger,
    EmbeddingVectorizer,
    PerceptronTagger,
    SequenceVectorizer,
    TemplateVectorizer,
    VRDAReranker,
)
from skstruct.crfsuite import CRF
from skstruct.metrics import token_accuracy_score, token_accuracy_scorer
from skstruct.utils import progress as callbacks
from skstruct.utils.progress import has_callbacks

LEARNERS = {**TAGGERS, **RERANKERS}
needs_callbacks = pytest.mark.skipif(not has_callbacks(), reason="scikit-learn before 1.9")
needs_rich = pytest.mark.usefixtures("rich")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def rich():
    return pytest.importorskip("rich")


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param]


@pytest.fixture(params=[*LEARNERS, "NBestReranker"])
def any_learner(request):
    return {**LEARNERS, "NBestReranker": STACKED}[request.param]


def data_of(estimator):
    return groups_of_candidates() if hasattr(estimator, "rank") else labelled_sequences()


def scorer(estimator, X, y, **params):
    return {"score": estimator.score(X, y, **params)}


def monitor():
    from sklearn.callback import ScoringMonitor

    return ScoringMonitor(scoring=scorer)


def epochs_of(log):
    return [row["score"] for row in log.data if row["task_name"] == "epoch"]


class Recorder:
    """A callback that takes notes, and may stop."""

    def __init__(self, stop_after=None):
        self.notes, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.notes.append("setup")

    def teardown(self, estimator, context):
        self.notes.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.notes.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.notes.append(f"end {context.task_name}")
        return self.notes.count("end epoch") == self.stop_after


def weights_of(estimator):
    return [
        np.asarray(value).tobytes() for name, value in vars(estimator).items() if "coef" in name
    ]


# ------------------------------------------------------------------------------- scikit-learn's


@needs_callbacks
def test_scores_are_those_of_shorter_fits(learner):
    """What a callback gets after k epochs is what a fit of k epochs returns."""
    watched, log = learner(), monitor()
    X, y = data_of(watched)
    watched.set_callbacks(log).fit(X, y)
    scores = epochs_of(log.get_logs())
    assert len(scores) == watched.n_iter_
    for k, score in enumerate(scores, start=1):
        assert score == learner(max_iter=k).fit(X, y).score(X, y)
    fits = [row["score"] for row in log.get_logs().data if row["task_name"] == "fit"]
    assert fits == [watched.score(X, y)]


@needs_callbacks
def test_the_same_bits_with_callbacks(any_learner):
    plain, watched = any_learner(), any_learner()
    X, y = data_of(plain)
    plain.fit(X, y)
    watched.set_callbacks(monitor(), Recorder()).fit(X, y)
    assert weights_of(getattr(plain, "tagger_", plain)) == weights_of(
        getattr(watched, "tagger_", watched)
    )
    assert [str(p) for p in plain.predict(X)] == [str(p) for p in watched.predict(X)]


@needs_callbacks
@needs_rich
def test_progress_bar(any_learner, capsys):
    from sklearn.callback import ProgressBar

    estimator = any_learner()
    estimator.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(*data_of(estimator))
    out = capsys.readouterr().out
    assert f"{type(estimator).__name__} - fit" in out
    assert "100%" in out


@needs_callbacks
@needs_rich
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_inside_a_pipeline_and_a_search(any_learner, n_jobs, capsys):
    from sklearn.callback import ProgressBar

    estimator, log = any_learner(), monitor()
    X, y = data_of(estimator)
    if n_jobs == 2 and not isinstance(estimator, (CRFTagger, VRDAReranker)):
        pytest.skip("processes are the same for all")
    estimator.set_callbacks(log)
    model = estimator
    if not hasattr(estimator, "tagger"):
        model = Pipeline([("features", SequenceVectorizer()), ("learner", estimator)])
    grid = {"learner__verbose": [0]} if model is not estimator else {"n_best": [2, 3]}
    search = GridSearchCV(model, grid, cv=2, n_jobs=n_jobs)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, y)
    assert type(estimator).__name__ in capsys.readouterr().out
    rows = [row for row in log.get_logs().data if row["estimator_name"] == type(estimator).__name__]
    runs = {row["parent_task_id_path"] for row in rows if row["task_name"] == "epoch"}
    n_fits = 2 * len(next(iter(grid.values()))) + 1
    if hasattr(estimator, "tagger"):
        assert len([row for row in rows if row["task_name"] == "fit"]) == n_fits
    else:
        assert len(runs) == n_fits
        last = [row["score"] for row in rows if row["task_name"] == "fit"]
        assert search.score(X, y) in last


@needs_callbacks
@pytest.mark.filterwarnings("error:.*does not support callbacks")
@pytest.mark.parametrize(
    "vectorizer",
    [
        SequenceVectorizer(),
        EmbeddingVectorizer({"a": [1.0], "b": [2.0]}),
        TemplateVectorizer("U0:%x[0,0]"),
    ],
    ids=lambda vectorizer: type(vectorizer).__name__,
)
def test_vectorizers_are_one_task(vectorizer):
    class Propagated(Recorder):
        max_propagation_depth = None

        def on_fit_task_end(self, estimator, context):
            self.notes.append(f"end {context.task_name} of {context.estimator_name}")

    record = Propagated()
    tokens = ["a", "b"] if isinstance(vectorizer, EmbeddingVectorizer) else [["a"], ["b"]]
    plain = clone(vectorizer).fit_transform([tokens] * 3)
    model = Pipeline(
        [
            ("features", vectorizer),
            ("tagger", PerceptronTagger(max_iter=1, tol=None, random_state=0)),
        ]
    )
    model.set_callbacks(record).fit([tokens] * 3, [["A", "B"]] * 3)
    assert record.notes.count(f"end fit of {type(vectorizer).__name__}") == 1
    assert record.notes[-2:] == ["end fit of Pipeline", "teardown"]
    assert_array_equal(as_array(model[:-1].transform([tokens] * 3)), as_array(plain))


def as_array(batch):
    return batch.X.toarray() if hasattr(batch.X, "toarray") else batch.X


@needs_callbacks
def test_a_scorer_of_ours():
    from sklearn.callback import ScoringMonitor

    X, y = labelled_sequences()
    log = ScoringMonitor(scoring=token_accuracy_scorer)
    tagger = PerceptronTagger(max_iter=3, tol=None, random_state=0).set_callbacks(log)
    predicted = tagger.fit(X, y, sample_weight=np.arange(len(X))).predict(X)
    expected = token_accuracy_score(y, predicted, sample_weight=np.arange(len(X)))
    assert epochs_of(log.get_logs())[-1] == expected


# ------------------------------------------------------------------------------------ the tasks


@needs_callbacks
def test_order_of_the_tasks():
    record = Recorder()
    X, y = labelled_sequences()
    PerceptronTagger(max_iter=2, tol=None, random_state=0).set_callbacks(record).fit(X, y)
    epoch = ["begin epoch", "end epoch"]
    assert record.notes == ["setup", "begin fit", *epoch, *epoch, "end fit", "teardown"]


@needs_callbacks
def test_parts_of_a_reranked_tagger():
    record = Recorder()
    STACKED().set_callbacks(record).fit(*labelled_sequences())
    ends = [note.removeprefix("end ") for note in record.notes if note.startswith("end")]
    assert ends == ["fit-tagger", "fold", "fold", "cross-fit", "fit-reranker", "fit"]


@needs_callbacks
def test_a_callback_stops_the_fit(learner):
    estimator, short = learner(), learner(max_iter=2)
    X, y = data_of(estimator)
    estimator.set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert estimator.n_iter_ == 2
    assert weights_of(estimator) == weights_of(short.fit(X, y))


@needs_callbacks
def test_teardown_after_an_error(learner):
    """A progress bar that is not torn down would leave its thread running."""
    record = Recorder()
    estimator = learner().set_callbacks(record)
    with pytest.raises(ValueError, match=r"label|single candidate"):
        estimator.fit([[{"a": 1.0}]], [["b", "c"]])
    assert record.notes[-1] == "teardown"
    assert set(vars(estimator)) - set(vars(learner())) == {"_skl_callbacks"}


@needs_callbacks
def test_an_error_in_a_callback_leaves_the_estimator():
    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("no more")

    X, y = labelled_sequences()
    tagger = PerceptronTagger(max_iter=2, tol=None, random_state=0).fit(X, y)
    before = tagger.coef_.copy()
    with pytest.raises(RuntimeError, match="no more"):
        tagger.set_callbacks(Failing()).fit(X[:20], y[:20])
    assert np.array_equal(tagger.coef_, before)


@needs_callbacks
def test_a_second_fit_on_other_data():
    X, y = labelled_sequences()
    log = monitor()
    tagger = CRFTagger(max_iter=3, tol=0).fit(X, y).set_callbacks(log)
    X, y = X[:10], [[f"{label}{t % 2}" for t, label in enumerate(labels)] for labels in y[:10]]
    score = tagger.fit(X, y).score(X, y)
    assert epochs_of(log.get_logs())[-1] == score


@needs_callbacks
def test_baseline_scores_reach_the_scorer():
    X, y = groups_of_candidates()
    base = [np.arange(len(x), dtype=float) for x in X]
    log = monitor()
    reranker = VRDAReranker(max_iter=3, random_state=0).set_callbacks(log)
    reranker.fit(X, y, baseline_score=base)
    assert epochs_of(log.get_logs())[-1] == reranker.score(X, y, baseline_score=base)


@needs_callbacks
def test_copies_and_clones_keep_callbacks_and_storage_can_drop_them():
    record = Recorder()
    tagger = PerceptronTagger(max_iter=1, tol=None, random_state=0).set_callbacks(record)
    assert clone(tagger)._skl_callbacks == [record]
    assert copy(tagger)._skl_callbacks == [record]
    tagger.fit(*labelled_sequences())
    assert "_skl_callbacks" not in pickle.dumps(tagger.set_callbacks()).decode("latin-1")


@needs_callbacks
def test_an_iterator_is_left_to_the_fit():
    X, y = labelled_sequences()
    log = monitor()
    tagger = PerceptronTagger(max_iter=2, tol=None, random_state=0).set_callbacks(log)
    expected = clone(tagger).set_callbacks().fit(X, y)
    assert weights_of(tagger.fit(iter(X), y)) == weights_of(expected)
    assert all("score" not in row for row in log.get_logs().data)


@needs_callbacks
def test_only_callbacks_are_taken():
    with pytest.raises(TypeError, match="callbacks must be instances"):
        CRFTagger().set_callbacks(print)


# ------------------------------------------------------------------------------------ the drop-in


def drop_in(algorithm, max_iterations=4):
    return CRF(algorithm, max_iterations=max_iterations)


needs_algorithms = pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])


@needs_callbacks
@needs_algorithms
def test_scores_of_the_drop_in_are_those_of_shorter_fits(algorithm):
    X, y = labelled_sequences()
    log = monitor()
    crf = drop_in(algorithm).fit(X[:5], y[:5])
    # What it had learnt before, and has cached, plays no part.
    assert crf.num_attributes_ > 0
    crf.set_callbacks(log).fit(X, y)
    plain = drop_in(algorithm).fit(X, y)
    assert crf.state_features_ == plain.state_features_
    scores = epochs_of(log.get_logs())
    assert len(scores) == len(crf.training_log_.iterations) == 4
    for k, score in enumerate(scores, start=1):
        assert score == drop_in(algorithm, k).fit(X, y).score(X, y)
    fits = [row["score"] for row in log.get_logs().data if row["task_name"] == "fit"]
    assert fits == [crf.score(X, y)]


@needs_callbacks
@pytest.mark.parametrize("algorithm", ["lbfgs", "ap"])
def test_callbacks_get_the_model_of_the_drop_in(algorithm):
    found = []

    class Looking(Recorder):
        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if context.task_name == "epoch" and fitted_estimator is not None:
                found.append((fitted_estimator.classes_, fitted_estimator.transition_features_))

    X, y = labelled_sequences()
    drop_in(algorithm, 3).fit(X[:5], y[:5]).set_callbacks(Looking()).fit(X, y)
    expected = [drop_in(algorithm, k).fit(X, y) for k in (1, 2, 3)]
    assert found == [(crf.classes_, crf.transition_features_) for crf in expected]


@needs_callbacks
@needs_algorithms
def test_a_callback_stops_the_drop_in_and_no_limit_is_no_number(algorithm):
    X, y = labelled_sequences()
    record = Recorder(stop_after=2)
    crf = drop_in(algorithm, None).set_callbacks(record).fit(X, y)
    assert record.notes[:3] == ["setup", "begin fit", "begin epoch"]
    assert record.notes[-2:] == ["end fit", "teardown"]
    assert crf.state_features_ == drop_in(algorithm, 2).fit(X, y).state_features_
    assert set(vars(crf)) - set(vars(CRF())) <= {
        *("_skl_callbacks", "_estimator", "_labels", "training_log_"),
        *CRF._derived_state,
    }
    assert not hasattr(crf.estimator_, "_skl_callbacks")


@needs_callbacks
@needs_rich
def test_progress_bar_of_the_drop_in_alone_and_in_a_search(capsys):
    from sklearn.callback import ProgressBar

    X, y = labelled_sequences()
    drop_in("lbfgs").set_callbacks(ProgressBar()).fit(X, y)
    assert "CRF - fit" in capsys.readouterr().out
    log = monitor()
    search = GridSearchCV(drop_in("pa").set_callbacks(log), {"c": [0.5, 1.0]}, cv=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, y)
    assert "CRF - " in capsys.readouterr().out
    rows = [row for row in log.get_logs().data if row["estimator_name"] == "CRF"]
    assert len([row for row in rows if row["task_name"] == "epoch"]) == 4 * (2 * 2 + 1)


@needs_callbacks
def test_teardown_after_an_error_of_the_drop_in():
    record = Recorder()
    crf = drop_in("ap").set_callbacks(record)
    with pytest.raises(ValueError, match="label"):
        crf.fit([[{"a": 1.0}]], [["b", "c"]])
    assert record.notes[-1] == "teardown"
    assert set(vars(crf)) - set(vars(CRF())) == {"_skl_callbacks"}


# ---------------------------------------------------------------------------------- older releases


def test_older_releases_have_no_method(monkeypatch):
    monkeypatch.setattr(callbacks, "has_callbacks", lambda: False)
    for estimator in (CRFTagger(), VRDAReranker(random_state=0), STACKED(), drop_in("ap")):
        assert not hasattr(estimator, "set_callbacks")
        estimator.fit(*data_of(estimator))


@needs_callbacks
def test_newer_releases_have_it():
    for estimator in (CRFTagger(), VRDAReranker(), STACKED(), CRF()):
        assert hasattr(estimator, "set_callbacks")
