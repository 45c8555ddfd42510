"""What is in memory at the same time: tokens on the workers, weights and results on the driver."""

import threading
import time
import weakref

import pytest
from helpers.learners import labelled_sequences
from helpers.shards import OneProcess, cut
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skstruct import CRFTagger, PerceptronTagger
from skstruct.dask import DaskTagger, mixing, sums
from skstruct.dask.cluster import Cluster
from skstruct.dask.learning import learn
from skstruct.learning.monitor import Monitor

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

X, Y = labelled_sequences(40)
N_PARTS, N_THREADS = 20, 2
PARTS = cut(X, Y, N_PARTS)
TAGGER = PerceptronTagger(max_iter=2, tol=None, random_state=0)


@pytest.fixture(scope="module")
def client():
    """Workers that are threads of this process, so that a test sees their objects."""
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.Client(n_workers=N_THREADS, set_as_default=False, **options) as client:
        yield client


def learnt_here(parts, workers):
    tagger = clone(TAGGER)
    tagger._keep(learn(tagger, workers, parts, None, None, Monitor, "float64"))
    return tagger


class Watch:
    """Counts objects that are alive."""

    def __init__(self):
        self._lock = threading.Lock()
        self.start()

    def start(self):
        self._references, self.most, self.n_seen = [], 0, 0

    def see(self, value):
        with self._lock:
            self.n_seen += 1
            self._references.append(weakref.ref(value))
            self._references = [ref for ref in self._references if ref() is not None]
            self.most = max(self.most, len(self._references))
        return value

    def alive(self):
        return sum(ref() is not None for ref in self._references)

    def ends(self, patience=10):
        """Return True if nothing is alive any more; workers hear late of what nobody needs."""
        end = time.monotonic() + patience
        while self.alive() and time.monotonic() < end:
            time.sleep(0.01)
        return not self.alive()


class Tokens(list):
    """A list that can be watched."""


loaded = Watch()


def load(number):
    tokens, labels = PARTS[number]
    return loaded.see(Tokens(tokens)), labels


@pytest.mark.parametrize("as_bags", [False, True])
def test_tokens_are_let_go_when_their_partition_has_been_read(client, as_bags):
    """A thread loads a few ahead while it waits for the scheduler, however many there are."""
    loaded.start()
    parts = [dask.delayed(load, nout=2)(number) for number in range(N_PARTS)]
    x, y = zip(*parts, strict=True)
    if as_bags:
        x, y = (dask.bag.from_delayed(list(column)) for column in (x, y))
    model = DaskTagger(TAGGER, client=client).fit(x, y)
    # Dask loads twice what a bag of X and one of y have in common.
    n_loads = N_PARTS * (2 if as_bags else 1)
    assert loaded.n_seen == n_loads
    assert loaded.most <= 4 * N_THREADS
    assert loaded.ends()
    assert_array_equal(model.estimator_.coef_, learnt_here(PARTS, OneProcess()).coef_)
    model.score(x, y)
    assert loaded.n_seen == 2 * n_loads
    assert loaded.most <= 4 * N_THREADS


def test_the_driver_mixes_results_one_by_one():
    """It has the weights that it sends to one shard, and the result of another."""
    sent, returned = Watch(), Watch()

    class Watched(OneProcess):
        def iterate(self, function, shards, shared=None):
            if function is not mixing.learn_alone:
                yield from super().iterate(function, shards, shared)
                return
            sending = ((part, see(chain, sent), i) for part, chain, i in shards)
            for result in super().iterate(function, sending, shared):
                see(result.chain, returned)
                yield result
                del result

    def see(chain, watch):
        watch.see(chain.weights)
        return chain

    expected = learnt_here(PARTS, OneProcess())
    found = learnt_here(PARTS, Watched())
    assert sent.n_seen == returned.n_seen == 2 * N_PARTS
    assert sent.most <= 2
    assert returned.most <= 2
    assert sent.alive() == returned.alive() == 0
    assert_array_equal(found.coef_, expected.coef_)


def test_the_driver_adds_sums_a_few_at_a_time():
    """However many shards there are, few have weights or sums on the driver at the same time."""
    sent, returned = Watch(), Watch()

    class Watched(OneProcess):
        def iterate(self, function, shards, shared=None, *, together=1, direct=False):
            if function is not sums.evaluate:
                yield from super().iterate(function, shards, shared, together=together)
                return
            sending = ((part, sent.see(weights), *more) for part, weights, *more in shards)
            for result in super().iterate(function, sending, shared, together=together):
                returned.see(result[1])
                yield result
                del result

    def learnt(workers):
        tagger = CRFTagger(tol=1e-6)
        tagger._keep(learn(tagger, workers, PARTS, None, None, Monitor, "float64"))
        return tagger

    expected, found = learnt(OneProcess()), learnt(Watched())
    assert sent.n_seen == returned.n_seen >= 10 * N_PARTS
    assert sent.most <= 2
    assert returned.most <= 2
    assert sent.alive() == returned.alive() == 0
    assert_array_equal(found.coef_, expected.coef_)
    assert_array_equal(found.history_["objective"], expected.history_["objective"])


# The verb


def square(number, shared):
    if number < 0:
        raise ValueError(f"{number} is negative")
    if number > 100:
        raise OSError(f"{number} is too large")
    return number**2 + shared


def asked_for(numbers, asked):
    for number in numbers:
        asked.append(number)
        yield (number,)


def test_results_in_the_order_of_shards(client):
    asked, results = [], []
    workers = Cluster(client, 0)
    for result in workers.iterate(square, asked_for(range(20), asked), 7):
        results.append(result)
        # No more than this many arguments and results are on their way.
        assert len(asked) - len(results) < 2 * N_THREADS
    assert results == workers.map(square, [(number,) for number in range(20)], 7)
    assert results == [number**2 + 7 for number in range(20)]
    assert list(workers.iterate(square, [], 7)) == []


@pytest.mark.parametrize("together", [2, 3, 50])
def test_results_a_few_at_a_time(client, together):
    asked, results = [], []
    workers, numbers = Cluster(client, 0), [(number,) for number in range(21)]
    for result in workers.iterate(square, asked_for(range(21), asked), 7, together=together):
        results.append(result)
        assert len(asked) - len(results) < max(2 * N_THREADS, 2 * together)
    assert results == workers.map(square, numbers, 7)
    kept = workers.map(square, iter(numbers), 7, keep=True)
    assert client.gather(kept) == results
    with pytest.raises(ValueError, match=r"^Partition 11: -1 is negative$"):
        list(workers.iterate(square, [*numbers[:11], (-1,), (3,)], 0, together=together))
    with pytest.raises(ValueError, match=r"^Partition 11: -1 is negative$"):
        workers.map(square, iter([*numbers[:11], (-1,), (3,)]), 0)


def test_errors_of_single_results_name_the_partition(client):
    asked, results = [], []
    workers = Cluster(client, 0)
    with pytest.raises(ValueError, match=r"^Partition 5: -1 is negative$"):
        results.extend(workers.iterate(square, asked_for([*range(5), -1, *range(90)], asked), 0))
    assert len(asked) <= 5 + 2 * N_THREADS
    with pytest.raises(OSError, match="101 is too large") as raised:
        list(workers.iterate(square, [(1,), (2,), (3,), (101,)], 0))
    assert raised.value.__notes__ == ["This happened in partition 3."]
