"""Memory of the driver of L-BFGS: made-up features in many partitions, which workers make."""

import json
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask
import numpy as np
import psutil
import scipy.sparse as sp
from distributed import Client
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.report import table
from benchmarks.distributed.partitions import evaluations
from skstruct import CRFTagger, SequenceBatch
from skstruct.dask import DaskTagger

N_LABELS, LENGTH, FEATURES_OF_TOKEN, ITERATIONS = 4, 20, 16, 12
SIZES = {"n_features": 1_500_000, "n_tokens": 20_000}  # tokens of a partition
QUICK_SIZES = {"n_features": 2_000, "n_tokens": 200}
PARTITIONS, QUICK_PARTITIONS = (2, 64), (2,)
EVERY = 0.01


def make_partition(number, n_features, n_tokens):
    """Sequences of tokens whose features are as frequent as words are, and random labels."""
    rng = np.random.default_rng(number)
    # Few features are frequent, and many are rare: as the power -2/3 of their number.
    ranks = n_features * rng.random((n_tokens, FEATURES_OF_TOKEN)) ** 3
    columns = np.sort(ranks.astype(np.int32), axis=1)
    indptr = np.arange(n_tokens + 1) * FEATURES_OF_TOKEN
    X = sp.csr_array((np.ones(columns.size), columns.ravel(), indptr), (n_tokens, n_features))
    X.sum_duplicates()
    lengths = np.full(n_tokens // LENGTH, LENGTH)
    # A feature has few labels, as words do.
    labels = (columns[:, 0] + rng.integers(0, 2, n_tokens)) % N_LABELS
    y = np.split(labels.astype(str).astype(object), np.cumsum(lengths)[:-1])
    return SequenceBatch.from_lengths(X, lengths), y


@contextmanager
def peak_of_this_process():
    """Context with a list that gets the bytes by which the resident set has grown at most."""
    process, found, over = psutil.Process(), [], threading.Event()
    before = process.memory_info().rss
    peak = before

    def watch():
        nonlocal peak
        while not over.wait(EVERY):
            peak = max(peak, process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
        found.append(peak - before)


def measure(client, n, sizes):
    """Time and memory of a fit on the driver."""
    parts = [dask.delayed(make_partition, nout=2)(i, **sizes) for i in range(n)]
    tagger = DaskTagger(CRFTagger(max_iter=ITERATIONS), client=client)
    with warnings.catch_warnings(), peak_of_this_process() as found, evaluations() as (_, known):
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger.fit(*zip(*parts, strict=True))
    positions, size = known[0]
    share = 100 * sum(map(len, positions)) / (n * size)
    return [n, f"{size:,}", f"{share:.1f}", f"{found[0] / 2**20:,.0f}", f"{found[0] / size:.0f}"]


@contextmanager
def cluster_of_processes():
    """Address of a scheduler that is, like its two workers, a process of its own."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as processes:
        file = Path(folder) / "scheduler.json"
        here = ["--scheduler-file", str(file), "--dashboard-address", ":0"]
        nodes = [["scheduler", "--port", "0"], *[["worker", "--nthreads", "1"]] * 2]
        for name, *options in nodes:
            command = [sys.executable, "-m", "dask", name, *options, *here]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            processes.callback(process.wait)
            processes.callback(process.terminate)
            while not file.exists():
                if process.poll() is not None:
                    raise SystemExit(f"No Dask {name}: {' '.join(command)} has ended.")
                time.sleep(EVERY)
        yield json.loads(file.read_text())["address"]


def report_memory(report, *, quick):
    """Write the memory of the driver by the number of partitions."""
    sizes = QUICK_SIZES if quick else SIZES
    rows = []
    with cluster_of_processes() as address, Client(address, direct_to_workers=True) as client:
        client.wait_for_workers(2)
        # Code that the driver needs, whatever the size of the model.
        measure(client, 2, QUICK_SIZES)
        for n in QUICK_PARTITIONS if quick else PARTITIONS:
            rows.append(measure(client, n, sizes))
            print(*rows[-1], flush=True)
    head = ["partitions", "weights", "of a partition, %", "driver, MiB", "bytes a weight"]
    report.write("memory", table(head, rows))
