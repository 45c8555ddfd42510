"""Rerankers on real n-best lists: the tables and figures of the VRDA paper, run again.

    python benchmarks/rerank.py run atis parse --data DIR
    python benchmarks/rerank.py report
    python benchmarks/rerank.py scale

`run` tries all systems with all settings on the development set and the test set and keeps every
finished one as a line of JSON in the results folder; started again, it goes on where it stopped.
`report` chooses settings by the development set and writes tables and figures into the docs.
`scale` measures the training on a million candidates with a million features.
"""

import argparse
import json
import os
import resource
import time
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from rerank_features import TASKS, load_task
from rerank_report import write_report
from rerank_taggers import TAGGER_TASKS

from skstruct import SequenceBatch
from skstruct.rerank import VRDAReranker
from skstruct.rerank_baselines import PerceptronReranker, SGDReranker, TruncatedGradientReranker

HERE = Path(__file__).parent
SYSTEMS = {
    "Perceptron": PerceptronReranker,
    "SGD": SGDReranker,
    "TG": TruncatedGradientReranker,
    "VRDA": VRDAReranker,
}
LOSSES = ("hinge", "logistic", "log", "bayes_risk")
L1 = (0.0, 1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3)
# Where the first column is the score of a system that the candidates come from.
FIXED = {"translation": {"baseline": 0}}
# How far weights get: the proximal strengths that are tried with each loss, and rates for SGD.
ETAS = {"hinge": (1.0,), "logistic": (1.0,), "log": (0.3, 1.0), "bayes_risk": (0.03, 0.1)}
EPOCHS = {"hinge": (3, 10), "logistic": (10,), "log": (3, 10), "bayes_risk": (10,)}
RATES = {"hinge": (0.1, 1.0), "logistic": (0.1, 1.0), "log": (0.1, 1.0), "bayes_risk": (1.0, 10.0)}


# Tasks with many groups, for which fewer settings have to do.
LARGE = ("conll2000", "jnlpba")


def few_settings():
    """Runs of a large task."""
    yield "Perceptron", {"average": True, "max_iter": 10}
    for loss in LOSSES:
        rate, eta = RATES[loss][-1], ETAS[loss][-1]
        yield "SGD", {"loss": loss, "learning_rate": rate, "max_iter": 10}
        for l1, prediction in product((0.0, *L1[2::2]), ("last", "average")):
            options = {"loss": loss, "eta": eta, "max_iter": 10, "l1": l1}
            yield "VRDA", {**options, "prediction": prediction}
        for gravity in (1e-4, 1e-3):
            options = {"loss": loss, "learning_rate": rate, "max_iter": 10}
            yield "TG", {**options, "gravity": gravity, "period": 10}


def settings(task):
    """All runs of a task: system and parameters, the quick ones first."""
    if task in LARGE:
        yield from few_settings()
        return
    for average, n in product((True, False), (2, 5, 10)):
        yield "Perceptron", {"average": average, "max_iter": n}
    for loss in LOSSES:
        for rate, n in product(RATES[loss], (3, 10)):
            yield "SGD", {"loss": loss, "learning_rate": rate, "max_iter": n}
    for loss in LOSSES:
        for eta, n, l1 in product(ETAS[loss], EPOCHS[loss], L1):
            for prediction in ("last", "average"):
                options = {"loss": loss, "eta": eta, "max_iter": n, "l1": l1}
                yield "VRDA", {**options, "prediction": prediction}
    for loss in LOSSES:
        for rate, gravity, period in product(RATES[loss], (1e-5, 1e-4, 1e-3, 1e-2), (10, 100)):
            options = {"loss": loss, "learning_rate": rate, "max_iter": 10}
            yield "TG", {**options, "gravity": gravity, "period": period}
    # Voting takes long where there are many mistakes; the other two at the same for comparison.
    long = task == "parse"
    for loss in ("hinge", "log") if long else LOSSES:
        for l1 in (0.0, 1e-3) if long else (0.0, 1e-4, 1e-3):
            options = {"loss": loss, "eta": ETAS[loss][-1], "max_iter": 1 if long else 3, "l1": l1}
            for prediction in ("last", "average", "vote"):
                yield "VRDA", {**options, "prediction": prediction}


def run_task(task, data, results):
    """Make all runs of a task that the results folder does not have."""
    metric = {**TASKS, **TAGGER_TASKS}[task][1]
    splits = load_task(task, data, results, {**TASKS, **TAGGER_TASKS})
    X, costs = splits["train"].teaching()
    fixed = FIXED.get(task, {})
    path = results / f"{task}.jsonl"
    done = {run_key(run) for run in read_runs(path)}
    with path.open("a", encoding="utf-8") as file:
        for system, parameters in settings(task):
            run = {"system": system, "parameters": parameters}
            if run_key(run) in done:
                continue
            done.add(run_key(run))
            start = time.perf_counter()
            model = SYSTEMS[system](random_state=0, **fixed, **parameters).fit(X, costs)
            run["time"] = time.perf_counter() - start
            run["nnz"] = int(np.count_nonzero(model.coef_))
            for name in ("mistakes", "nnz"):
                run[f"{name}_history"] = model.history_[name].tolist()
            for name in ("dev", "test"):
                chosen = model.predict(splits[name].batch)
                run[name] = metric(splits[name].chosen_stats(chosen).sum(axis=0))
                run[f"{name}_chosen"] = chosen.tolist()
            file.write(json.dumps(run) + "\n")
            file.flush()
            print(task, system, parameters, run["dev"], run["test"], run["nnz"], flush=True)


def run_key(run):
    return json.dumps([run["system"], run["parameters"]], sort_keys=True)


def read_runs(path):
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def scale(n_rows=1_000_000, n_features=1_000_000, per_row=20):
    """Time and memory of an epoch on many candidates."""
    rng = np.random.default_rng(0)
    columns = (rng.zipf(1.3, size=(n_rows, per_row)) - 1) % n_features
    X = sp.csr_matrix(
        (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, per_row)),
        shape=(n_rows, n_features),
    )
    batch = SequenceBatch.from_lengths(X, np.full(n_rows // 50, 50))
    costs = (rng.normal(size=n_rows) - X @ rng.normal(size=n_features)).reshape(-1, 50)
    VRDAReranker(max_iter=1).fit(batch[:10], costs[:10])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for prediction in ("last", "average"):
        model = VRDAReranker(max_iter=5, l1=1e-4, prediction=prediction, random_state=0)
        model.fit(batch, costs)
        seconds = np.median(np.diff(model.history_["time"]))
        growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
        size = (batch.X.data.nbytes + batch.X.indices.nbytes + batch.X.indptr.nbytes) / 2**20
        print(
            f"{prediction}: {batch.X.nnz:,} non-zeros ({size:.0f} MiB), {seconds:.2f} s an epoch, "
            f"{model.n_mistakes_:,} mistakes, peak memory grew by {growth:.0f} MiB"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["run", "report", "scale"])
    parser.add_argument("tasks", nargs="*", default=[], help="by default all")
    parser.add_argument("--data", default=os.environ.get("SKSTRUCT_DATA"))
    parser.add_argument("--results", type=Path, default=HERE / "results" / "rerank")
    parser.add_argument("--docs", type=Path, default=HERE.parent / "docs")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    known = {**TASKS, **TAGGER_TASKS}
    tasks = arguments.tasks or list(known)
    if arguments.action == "scale":
        scale()
    elif arguments.action == "report":
        finished = {t: read_runs(arguments.results / f"{t}.jsonl") for t in tasks}
        finished = {t: runs for t, runs in finished.items() if runs}
        splits = {t: load_task(t, arguments.data, arguments.results, known) for t in finished}
        write_report(finished, splits, known, arguments.docs)
    else:
        for task in tasks:
            run_task(task, arguments.data, arguments.results)


if __name__ == "__main__":
    main()
