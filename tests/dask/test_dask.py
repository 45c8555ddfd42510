"""`DaskTagger` on a cluster of two processes, and what it refuses."""

import gc
import os
import pickle
import re
import signal
import threading
import time
import warnings
import weakref
from contextlib import closing
from functools import partial
from itertools import chain, count

import numpy as np
import pytest
import skops.io
from helpers.learners import labelled_sequences
from helpers.shards import OneProcess, cut
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator

import skstruct
from skstruct import (
    AROWTagger,
    CRFTagger,
    EmbeddingVectorizer,
    HashingTemplateVectorizer,
    LabelStatistics,
    PerceptronTagger,
    SequenceBatch,
    SequenceVectorizer,
    TemplateVectorizer,
    WordVectorizer,
)
from skstruct.dask import DaskTagger
from skstruct.dask.cluster import Cluster, DirectCalls
from skstruct.dask.learning import learn
from skstruct.learning.monitor import Monitor
from skstruct.metrics import token_accuracy_score
from skstruct.utils.progress import has_callbacks

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
bag = pytest.importorskip("dask.bag")
distributed = pytest.importorskip("distributed")

X, Y = labelled_sequences(40)
N_SHARDS = 3
# Seconds within which a worker that has died is replaced, on a busy machine.
PATIENCE = 300
LEARNT = ("classes_", "coef_", "transition_", "intercept_", "start_", "end_")


@pytest.fixture(scope="module")
def client():
    """A client whose calls are tasks; those that go straight to the workers have tests below."""
    options = {"dashboard_address": ":0", "threads_per_worker": 1}
    with (
        # A local cluster gives up a worker that has not come back within 15 seconds.
        dask.config.set({"distributed.deploy.lost-worker-timeout": PATIENCE}),
        distributed.LocalCluster(n_workers=2, **options) as cluster,
        distributed.Client(cluster, direct_to_workers=False) as client,
    ):
        yield client


def delayed_parts(X, y, n_shards=N_SHARDS):
    """Lists of delayed X and y, cut as threads would."""
    columns = zip(*cut(X, y, n_shards), strict=True)
    return [[dask.delayed(part, traverse=False) for part in column] for column in columns]


def as_bag(parts):
    return bag.from_delayed(parts)


def assert_same_bits(tagger, other):
    for name in LEARNT:
        assert_array_equal(getattr(tagger, name), getattr(other, name), err_msg=name)
    assert_array_equal(tagger.history_["objective"], other.history_["objective"])


@pytest.fixture(scope="module")
def expected():
    return CRFTagger(tol=1e-6, n_jobs=N_SHARDS).fit(X, Y)


@pytest.mark.parametrize("kind", ["bags", "delayed", "futures"])
def test_bits_are_those_of_threads(client, expected, kind):
    parts = delayed_parts(X, Y)
    if kind == "bags":
        parts = map(as_bag, parts)
    elif kind == "futures":
        parts = map(client.compute, parts)
    tagger = DaskTagger(CRFTagger(tol=1e-6), client=client).fit(*parts)
    assert_same_bits(tagger.estimator_, expected)
    assert tagger.classes_.tolist() == expected.classes_.tolist()
    assert tagger.estimator_.predict(X).tolist() == expected.predict(X).tolist()


def test_bits_do_not_depend_on_workers(expected):
    options = {"processes": False, "dashboard_address": ":0"}
    with distributed.Client(n_workers=1, threads_per_worker=2, **options):
        # The client that was made last is found.
        tagger = DaskTagger(CRFTagger(tol=1e-6)).fit(*delayed_parts(X, Y))
    assert_same_bits(tagger.estimator_, expected)


def test_answers_are_lazy(client, expected):
    x, y = delayed_parts(X, Y)
    x.insert(1, dask.delayed([]))
    y.insert(1, dask.delayed([]))
    tagger = DaskTagger(CRFTagger(tol=1e-6), client=client).fit(x, y)
    answers = tagger.predict(as_bag(x))
    assert isinstance(answers, bag.Bag)
    assert answers.compute() == expected.predict(X).tolist()
    answers = tagger.predict_proba(x)
    assert len(answers) == N_SHARDS + 1
    found = chain.from_iterable(dask.compute(*answers))
    for ours, theirs in zip(found, expected.predict_proba(X), strict=True):
        assert_array_equal(ours, theirs)
    assert tagger.score(x, as_bag(y)) == token_accuracy_score(Y, expected.predict(X))


def test_score_leaves_out_unknown_labels(client):
    tagger = DaskTagger(CRFTagger(), client=client).fit(*delayed_parts(X, Y))
    labels = [[None, *sequence[1:]] for sequence in Y]
    score = tagger.score(*delayed_parts(X, labels))
    assert_allclose(score, tagger.estimator_.score(X, labels))
    with pytest.raises(ValueError, match="no known labels"):
        tagger.score(*delayed_parts(X, [[None] * len(sequence) for sequence in Y]))


def test_vectorizers(client):
    words = [[f"{token['word']}" for token in tokens] for tokens in X]
    template = ["U0:%x[0,0]", "U1:%x[-1,0]"]
    for vectorizer in (
        HashingTemplateVectorizer(template, n_features=50),
        TemplateVectorizer(template, min_freq=3),
        FrozenEstimator(TemplateVectorizer(template).fit(words[:5])),
    ):
        tagger = DaskTagger(CRFTagger(tol=1e-6), vectorizer=vectorizer, client=client)
        tagger.fit(*delayed_parts(words, Y), X_val=words[:5], y_val=Y[:5])
        if isinstance(vectorizer, TemplateVectorizer):
            vectorizer.fit(words)
        batch = vectorizer.transform(words)
        assert (tagger.vectorizer_.transform(words).X != batch.X).nnz == 0
        expected = CRFTagger(tol=1e-6, n_jobs=N_SHARDS)
        expected.fit(batch, Y, X_val=batch[:5], y_val=Y[:5])
        assert_same_bits(tagger.estimator_, expected)
        score = expected.history_["validation_score"]
        assert_array_equal(tagger.estimator_.history_["validation_score"], score)
        answers = dask.compute(*tagger.predict(delayed_parts(words, Y)[0]))
        assert list(chain.from_iterable(answers)) == expected.predict(batch).tolist()


def test_label_statistics(client):
    """Partitions are folds: each gets the statistics of the others, and new text those of all."""
    words = [[f"{token['word']}" for token in tokens] for tokens in X]
    parts = delayed_parts(words, Y)
    sizes = [len(part) for part in dask.compute(*parts[0])]
    ends = np.cumsum(sizes)
    folds = [
        (np.r_[: end - size, end : len(X)], np.r_[end - size : end])
        for size, end in zip(sizes, ends, strict=True)
    ]
    tagger = DaskTagger(
        CRFTagger(tol=1e-6), vectorizer=WordVectorizer(label_statistics=True), client=client
    ).fit(*parts)
    expected = WordVectorizer(label_statistics=LabelStatistics(cv=folds))
    batch = expected.fit_transform(words, Y)
    found = tagger.vectorizer_
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    assert (found.transform(words).X != expected.transform(words).X).nnz == 0
    assert_same_bits(tagger.estimator_, CRFTagger(tol=1e-6, n_jobs=N_SHARDS).fit(batch, Y))
    # A single partition is divided itself.
    perceptron = PerceptronTagger(max_iter=1, tol=None, random_state=0)
    tagger = DaskTagger(perceptron, vectorizer=WordVectorizer(label_statistics=True), client=client)
    tagger.fit([dask.delayed(words)], [dask.delayed(Y)])
    alone = WordVectorizer(label_statistics=True).fit(words, Y)
    names = alone.get_feature_names_out().tolist()
    assert tagger.vectorizer_.get_feature_names_out().tolist() == names


def test_partitions_that_are_batches(client):
    batch = SequenceVectorizer(min_freq=4).fit_transform(X)
    tagger = DaskTagger(CRFTagger(tol=1e-6), client=client).fit(*delayed_parts(batch, Y))
    expected = CRFTagger(tol=1e-6, n_jobs=N_SHARDS).fit(batch, Y)
    assert_same_bits(tagger.estimator_, expected)
    assert isinstance(batch, SequenceBatch)


def test_single_precision(client, expected):
    tagger = DaskTagger(CRFTagger(tol=1e-4), client=client, transport_dtype="float32")
    objective = tagger.fit(*delayed_parts(X, Y)).estimator_.history_["objective"]
    assert_allclose(objective[-1], expected.history_["objective"][-1], rtol=3e-4)


@pytest.mark.parametrize("tagger", [PerceptronTagger(), CRFTagger(solver="sgd")], ids=str)
def test_online_learners(client, tagger):
    """The bits are those of shards that learn one after the other in this process."""
    tagger = clone(tagger).set_params(max_iter=3, tol=None, random_state=0)
    found = DaskTagger(tagger, client=client).fit(*delayed_parts(X, Y)).estimator_
    expected, parts = clone(tagger), cut(X, Y, N_SHARDS)
    expected._keep(learn(expected, OneProcess(), parts, None, None, Monitor, "float64"))
    for name in LEARNT:
        assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.predict(X).tolist() == expected.predict(X).tolist()


def test_progress_and_warnings(client, capsys):
    tagger = DaskTagger(CRFTagger(max_iter=2, tol=0, verbose=1), client=client)
    with pytest.warns(ConvergenceWarning, match="Did not converge after 2 iterations"):
        tagger.fit(*delayed_parts(X, Y))
    assert "CRFTagger: finished, 2 epochs" in capsys.readouterr().out


class EpochCounter:
    """A callback of scikit-learn that cannot leave its process."""

    def __init__(self):
        self.n_epochs, self.lock = 0, threading.Lock()

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.n_epochs += context.task_name == "epoch"


@pytest.mark.skipif(not has_callbacks(), reason="scikit-learn before 1.9")
@pytest.mark.parametrize(
    "tagger", [CRFTagger(tol=1e-3), PerceptronTagger(max_iter=4, tol=None, random_state=0)], ids=str
)
def test_callbacks_stay_with_the_driver(client, tmp_path, tagger):
    counter, path = EpochCounter(), tmp_path / "model.skops"
    tagger = clone(tagger).set_callbacks(counter)
    model = DaskTagger(tagger, client=client, checkpoint=path, checkpoint_period=2)
    n_iter = model.fit(*delayed_parts(X, Y)).estimator_.n_iter_
    # An epoch has begun before L-BFGS knows that it is done.
    assert 2 <= n_iter <= counter.n_epochs <= n_iter + 1
    types = skops.io.get_untrusted_types(file=path)
    assert 0 < skops.io.load(path, trusted=types).estimator_.n_iter_ <= counter.n_epochs


def test_copies_have_the_same_cluster(client):
    tagger = DaskTagger(CRFTagger(l2=0.5), client=client, max_retries=1)
    copy = clone(tagger)
    assert copy.client is client
    assert copy.estimator is not tagger.estimator
    assert copy.get_params()["estimator__l2"] == 0.5
    assert pickle.loads(pickle.dumps(tagger)).client is None
    with pytest.raises(NotFittedError):
        tagger.predict(delayed_parts(X, Y)[0])


# Errors


def fail_once(path, value):
    if not os.path.exists(path):
        with open(path, "w"):
            pass
        raise OSError("The disk is away.")
    return value


def test_errors_name_the_partition(client):
    x, y = delayed_parts(X, Y)
    y[1], y[2] = (dask.delayed([[*Y[0], "A"]]) for _ in range(2))
    x[1] = x[2] = dask.delayed(X[:1])
    n = len(Y[0])
    message = f"Partition 1: Sequence 0 has {n} tokens, but {n + 1} labels"
    with pytest.raises(ValueError, match=message):
        DaskTagger(CRFTagger(), client=client).fit(x, y)


@pytest.mark.parametrize("make", [list, as_bag])
def test_errors_of_predictions_name_the_partition(client, make):
    tagger = DaskTagger(CRFTagger(max_iter=1), client=client)
    with warnings.catch_warnings(action="ignore"):
        tagger.fit(*delayed_parts(X, Y))
    x, y = delayed_parts(X, Y)
    answers = tagger.predict(make([*x, dask.delayed([[3]], traverse=False)]))
    with pytest.raises(ValueError, match=r"^Partition 3: X has 1 features"):
        dask.compute(*answers if make is list else [answers])
    with pytest.raises(ValueError, match=r"^Partition 3: y is 3; expected a list of sequences"):
        tagger.score([*x, dask.delayed(X[:1])], [*y, dask.delayed(3)])


def test_a_validation_set_of_dask_is_refused(client):
    x, y = delayed_parts(X, Y)
    tagger = DaskTagger(CRFTagger(), client=client)
    for X_val, y_val, name in ((as_bag(x), Y, "X_val"), (X, y, "y_val"), (X, y[0], "y_val")):
        with pytest.raises(ValueError, match=f"^{name} is .* Compute them first"):
            tagger.fit(x, y, X_val=X_val, y_val=y_val)


def test_a_task_that_fails_is_repeated(client, expected, tmp_path):
    x, y = delayed_parts(X, Y)
    x = [dask.delayed(fail_once)(str(tmp_path / str(i)), part) for i, part in enumerate(x)]
    tagger = DaskTagger(CRFTagger(tol=1e-6), client=client).fit(x, y)
    assert_same_bits(tagger.estimator_, expected)
    x = [dask.delayed(fail_once)(str(tmp_path / f"again{i}"), part) for i, part in enumerate(x)]
    with pytest.raises(OSError, match="away") as raised:
        DaskTagger(CRFTagger(), client=client, max_retries=0).fit(x, y)
    assert re.fullmatch(r"This happened in partition \d\.", raised.value.__notes__[-1])


def test_versions_must_agree(client, monkeypatch):
    monkeypatch.setattr(skstruct, "__version__", "0.0.0")
    message = r"Worker tcp://\S+ has skstruct \S+, and this process 0\.0\.0"
    with pytest.raises(RuntimeError, match=message):
        DaskTagger(CRFTagger(), client=client).fit(*delayed_parts(X, Y))


@pytest.mark.parametrize(
    ("tagger", "message"),
    [
        (DaskTagger(AROWTagger()), "SAPOTagger, not AROWTagger"),
        (DaskTagger(SequenceVectorizer()), "'estimator' parameter"),
        (DaskTagger(CRFTagger(solver="sag")), r"not CRFTagger\(solver='sag'\)"),
        (DaskTagger(CRFTagger(class_weight="balanced")), "class_weight='balanced'"),
        (DaskTagger(CRFTagger(early_stopping=True)), "early_stopping .* validation set"),
        (DaskTagger(CRFTagger(l2=-1)), "'l2' parameter"),
        (DaskTagger(CRFTagger(), vectorizer=EmbeddingVectorizer({})), "not fitted yet"),
        (
            DaskTagger(CRFTagger(), vectorizer=TemplateVectorizer(min_freq=0)),
            "'min_freq' parameter",
        ),
        (DaskTagger(CRFTagger(), checkpoint_period=0), "'checkpoint_period' parameter"),
        (DaskTagger(CRFTagger(), transport_dtype="float16"), "'transport_dtype' parameter"),
    ],
)
def test_what_cannot_be_learnt_is_refused(tagger, message):
    with pytest.raises(ValueError, match=message):
        tagger.fit(*delayed_parts(X, Y))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, Y, r"X\[0\] is .* Expected a dask bag, or a list of delayed"),
        ("words", Y, "X is 'words'"),
        ([], [], "X has no partition"),
        (delayed_parts(X, Y)[0], delayed_parts(X, Y)[1][:2], "X has 3 partitions, but y has 2"),
    ],
)
def test_what_is_not_a_collection_is_refused(client, x, y, message):
    with pytest.raises(ValueError, match=message):
        DaskTagger(CRFTagger(), client=client).fit(x, y)


def test_a_client_is_needed(monkeypatch):
    with pytest.raises(ValueError, match=r"client must be a distributed\.Client, got 'x'"):
        DaskTagger(CRFTagger(), client="x").fit(*delayed_parts(X, Y))

    def none():
        raise ValueError

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(ValueError, match="found no client"):
        DaskTagger(CRFTagger()).fit(*delayed_parts(X, Y))


# Workers that die


def kill_workers(client, n):
    for pid in list(client.run(os.getpid).values())[:n]:
        os.kill(pid, signal.SIGKILL)


def watch_calls(monkeypatch, on_call):
    """Let a function know of each call of a verb of the cluster, by its number."""
    n_calls = count(1)
    for name in ("map", "iterate"):
        verb = getattr(Cluster, name)

        def call(*arguments, verb=verb, **more):
            on_call(next(n_calls))
            return verb(*arguments, **more)

        monkeypatch.setattr(Cluster, name, call)


# The fourth call counts, the ninth evaluates the objective.
@pytest.mark.parametrize(("when", "call"), [("before", 4), ("during", 9), ("after", 9)])
def test_a_killed_worker_changes_nothing(client, expected, monkeypatch, when, call):
    client.wait_for_workers(2, timeout=PATIENCE)
    calls, killed, gather = [], [], Cluster._gather

    def kill(moment):
        if (moment, calls[-1]) == (when, call) and not killed:
            killed.append(moment)
            kill_workers(client, 1)

    def on_call(number):
        calls.append(number)
        kill("before")

    def gather_and_kill(cluster, futures, *number):
        kill("during")
        results = gather(cluster, futures, *number)
        kill("after")
        return results

    watch_calls(monkeypatch, on_call)
    monkeypatch.setattr(Cluster, "_gather", gather_and_kill)
    tagger = DaskTagger(CRFTagger(tol=1e-6), client=client).fit(*delayed_parts(X, Y))
    assert killed == [when]
    assert len(calls) > call
    assert_same_bits(tagger.estimator_, expected)


def test_a_worker_killed_while_weights_are_mixed_changes_nothing(client, monkeypatch):
    client.wait_for_workers(2, timeout=PATIENCE)
    tagger, parts = PerceptronTagger(max_iter=3, tol=None, random_state=0), cut(X, Y, N_SHARDS)
    taken, gather = [], Cluster._gather

    def gather_and_kill(cluster, futures, *number):
        # Results that are taken one by one have a number.
        taken.extend(number)
        if number and len(taken) == N_SHARDS + 2:
            kill_workers(client, 1)
        return gather(cluster, futures, *number)

    monkeypatch.setattr(Cluster, "_gather", gather_and_kill)
    found = DaskTagger(tagger, client=client).fit(*delayed_parts(X, Y)).estimator_
    assert taken == 3 * list(range(N_SHARDS))
    expected = clone(tagger)
    expected._keep(learn(expected, OneProcess(), parts, None, None, Monitor, "float64"))
    for name in LEARNT:
        assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


# Calls past the scheduler


@pytest.fixture
def straight(client):
    """A client that talks to the workers, and the numbers of shards of its calls."""
    address = client.scheduler.address
    options = {"direct_to_workers": True, "set_as_default": False}
    with distributed.Client(address, **options) as straight:
        yield straight


@pytest.fixture
def asked(monkeypatch):
    found, ask = [], DirectCalls.start

    def watched(lines, call, first, shards):
        answers = ask(lines, call, first, shards)
        found.append(len(shards))
        return answers

    monkeypatch.setattr(DirectCalls, "start", watched)
    return found


def test_evaluations_go_past_the_scheduler(client, straight, asked, expected, monkeypatch):
    client.wait_for_workers(2, timeout=PATIENCE)
    options = {"set_as_default": False}
    with distributed.Client(client.scheduler.address, **options) as unsaid:
        for of_user in (unsaid, straight):
            asked.clear()
            model = DaskTagger(CRFTagger(tol=1e-6), client=of_user).fit(*delayed_parts(X, Y))
            assert sum(asked) >= N_SHARDS * model.estimator_.n_iter_
            assert_same_bits(model.estimator_, expected)
        # Workers that may be out of reach.
        asked.clear()
        monkeypatch.setattr("distributed.comm.addressing.get_address_host", lambda _: "192.0.2.255")
        for of_user in (unsaid, client):
            model = DaskTagger(CRFTagger(tol=1e-6), client=of_user).fit(*delayed_parts(X, Y))
            assert_same_bits(model.estimator_, expected)
        assert not asked


def test_what_was_sent_is_let_go_of(client, straight):
    """Without the garbage collector, which rarely looks at what is large."""
    client.wait_for_workers(2, timeout=PATIENCE)
    vectors = [np.zeros(3) for _ in range(4)]
    gone = [weakref.ref(vector) for vector in vectors]
    with closing(Cluster(straight, max_retries=0)) as workers:
        kept = workers.map(keep_number, [(i,) for i in range(4)], keep=True)
        shards = zip(kept, vectors, strict=True)
        gc.disable()
        try:
            found = list(workers.iterate(sum_with, shards, direct=True))
            del vectors, shards
            assert [ref() for ref in gone] == [None] * 4
        finally:
            gc.enable()
    assert found == [0, 3, 6, 9]


def sum_with(kept, vector, shared):
    return float(np.sum(vector + kept))


def test_a_worker_killed_between_direct_calls_changes_nothing(
    client, straight, asked, expected, monkeypatch
):
    client.wait_for_workers(2, timeout=PATIENCE)
    call, ask = 6, DirectCalls.start

    def ask_and_kill(lines, *arguments):
        answers = ask(lines, *arguments)
        if len(asked) == call:
            kill_workers(client, 1)
        return answers

    monkeypatch.setattr(DirectCalls, "start", ask_and_kill)
    model = DaskTagger(CRFTagger(tol=1e-6), client=straight).fit(*delayed_parts(X, Y))
    # Tasks from then on.
    assert call <= len(asked) <= call + 3 < model.estimator_.n_iter_
    assert_same_bits(model.estimator_, expected)


def fail_once_on(path, kept, vector, shared):
    if kept == 1 and not os.path.exists(path):
        open(path, "w").close()
        raise OSError("once")
    if vector < 0:
        raise ValueError(f"{vector} is negative")
    return kept + vector


def test_direct_calls_that_fail_become_tasks(client, straight, asked, tmp_path):
    client.wait_for_workers(2, timeout=PATIENCE)
    workers = Cluster(straight, max_retries=0)
    kept = workers.map(keep_number, [(i,) for i in range(3)], keep=True)
    function = partial(fail_once_on, str(tmp_path / "once"))
    function.__name__ = "fail_once_on"

    def call(*vectors):
        shards = zip(kept, vectors, strict=True)
        return list(workers.iterate(function, shards, together=2, direct=True))

    assert call(10, 20, 30) == [10, 21, 32]
    assert asked
    asked.clear()
    assert call(10, 20, 30) == [10, 21, 32]
    assert not asked
    workers = Cluster(straight, max_retries=0)
    with pytest.raises(ValueError, match=r"^Partition 1: -1 is negative$"):
        call(1, -1, -2)
    assert asked


def keep_number(number, shared):
    return number


def test_scattered_partitions_that_are_lost(client, monkeypatch):
    client.wait_for_workers(2, timeout=PATIENCE)
    x, y = (client.scatter(list(column)) for column in zip(*cut(X, Y, N_SHARDS), strict=True))

    def on_call(number):
        if number == 9:
            kill_workers(client, 2)

    watch_calls(monkeypatch, on_call)
    start = time.monotonic()
    with (
        pytest.warns(UserWarning, match="6 of the partitions were scattered"),
        pytest.raises(RuntimeError, match=r"Partition \d: its data were lost with a worker"),
    ):
        DaskTagger(CRFTagger(tol=1e-6), client=client).fit(x, y)
    assert time.monotonic() - start < 60


def wait_for(path):
    """Keep a worker busy until a file is there, or the test has failed."""
    deadline = time.monotonic() + 40
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.02)
    return X[:1], Y[:1]


def test_ctrl_c_cancels_what_the_workers_do(tmp_path):
    options = {"processes": False, "dashboard_address": ":0", "set_as_default": False}
    with distributed.Client(n_workers=1, threads_per_worker=2, **options) as client:
        model = DaskTagger(PerceptronTagger(random_state=0), client=client)
        before = vars(model.fit(*delayed_parts(X, Y))).copy()
        gate = tmp_path / "gate"
        parts = [dask.delayed(wait_for, nout=2)(str(gate)) for _ in range(2)]
        main = threading.main_thread().ident
        threading.Timer(1, signal.pthread_kill, [main, signal.SIGINT]).start()
        interrupted, handler = False, signal.getsignal(signal.SIGINT)
        # Ignored where the tests run in the background of a shell.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            model.fit(*zip(*parts, strict=True))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            signal.signal(signal.SIGINT, handler)
        assert interrupted
        assert vars(model) == before
        deadline = time.monotonic() + 20
        while tasks := client.run_on_scheduler(keys_of_tasks):
            assert time.monotonic() < deadline, tasks
            time.sleep(0.05)
        # Python cannot stop what a worker's thread is in the middle of.
        gate.touch()
        model.fit(*delayed_parts(X, Y))
    assert_array_equal(model.estimator_.coef_, before["estimator_"].coef_)


def keys_of_tasks(dask_scheduler):
    return [str(key) for key in dask_scheduler.tasks]


# Fits that go on


@pytest.mark.parametrize(
    ("tagger", "period", "epoch"),
    [(CRFTagger(tol=1e-6), 4, 8), (PerceptronTagger(max_iter=7, random_state=0), 3, 6)],
)
def test_a_checkpoint_survives_the_driver(client, tmp_path, monkeypatch, tagger, period, epoch):
    """A fit that ends in the middle leaves what a shorter fit would have learnt."""
    client.wait_for_workers(2, timeout=PATIENCE)
    path = tmp_path / "model.skops"
    tagger = clone(tagger).set_params(warm_start=True)
    calls, report = [], Monitor.report

    def report_and_end(monitor, learnt):
        calls.append(monitor.history["epoch"][-1])
        if calls[-1] == epoch + 1:
            raise KeyboardInterrupt
        return report(monitor, learnt)

    model = DaskTagger(tagger, client=client, checkpoint=path, checkpoint_period=period)
    monkeypatch.setattr(Monitor, "report", report_and_end)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*delayed_parts(X, Y))
    monkeypatch.undo()
    types = skops.io.get_untrusted_types(file=path)
    assert all(name.startswith("skstruct.") for name in types)
    stored = skops.io.load(path, trusted=types)
    shorter = DaskTagger(clone(tagger).set_params(max_iter=epoch), client=client)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        shorter.fit(*delayed_parts(X, Y))
    assert stored.estimator_.n_iter_ == epoch
    for name in LEARNT:
        expected = getattr(shorter.estimator_, name)
        assert_array_equal(getattr(stored.estimator_, name), expected, err_msg=name)
    assert stored.estimator_.predict(X).tolist() == shorter.estimator_.predict(X).tolist()
    stored.set_params(client=client, checkpoint=None)
    if isinstance(tagger, CRFTagger):
        fresh = DaskTagger(tagger, client=client).fit(*delayed_parts(X, Y)).estimator_
        found = stored.fit(*delayed_parts(X, Y)).estimator_
        objective = shorter.estimator_.history_["objective"][-1]
        assert_allclose(found.history_["objective"][0], objective, rtol=1e-12)
        assert_allclose(found.history_["objective"][-1], fresh.history_["objective"][-1], rtol=2e-6)
        assert found.n_iter_ < fresh.n_iter_


def end_process(driver):
    if os.getpid() != driver:
        os.kill(os.getpid(), signal.SIGKILL)
    return X[:1], Y[:1]


def test_a_partition_that_kills_its_workers(client):
    client.wait_for_workers(2, timeout=PATIENCE)
    x, y = delayed_parts(X, Y)
    x[1], y[1] = dask.delayed(end_process, nout=2)(os.getpid())
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"Partition \d: 4 workers died one after the other"):
        DaskTagger(CRFTagger(), client=client).fit(x, y)
    assert time.monotonic() - start < PATIENCE
