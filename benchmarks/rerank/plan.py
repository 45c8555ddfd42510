"""Systems, settings that are tried, and the runs that are finished."""

import time
from itertools import product

import numpy as np

from benchmarks.common.commandline import GENERATED
from benchmarks.common.runs import Records, read_runs
from benchmarks.rerank.data import load_task
from benchmarks.rerank.speech_and_translation import ATIS, LIBRISPEECH, TRANSLATION
from benchmarks.rerank.taggers import QUICK_TASKS, TAGGER_TASKS
from benchmarks.rerank.trees import PARSING
from skstruct import (
    PerceptronReranker,
    SGDReranker,
    TruncatedGradientReranker,
    VRDAReranker,
)

# By name; the folds of a task as "task/fold".
TASKS = {
    "atis": ATIS,
    "parse": PARSING,
    **TRANSLATION,
    **LIBRISPEECH,
    **TAGGER_TASKS,
    **QUICK_TASKS,
}
SYSTEMS = {
    "Perceptron": PerceptronReranker,
    "SGD": SGDReranker,
    "TG": TruncatedGradientReranker,
    "VRDA": VRDAReranker,
}
LOSSES = ("hinge", "logistic", "log", "bayes_risk")
L1 = (0.0, 1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3)
# Tasks whose first column is the score of the system that made the candidates.
FIXED = {task: {"baseline": 0} for task in TRANSLATION}
# Proximal strengths that are tried with each loss, epochs, and rates for SGD.
ETAS = {"hinge": (1.0,), "logistic": (1.0,), "log": (0.3, 1.0), "bayes_risk": (0.03, 0.1)}
EPOCHS = {"hinge": (3, 10), "logistic": (10,), "log": (3, 10), "bayes_risk": (10,)}
RATES = {"hinge": (0.1, 1.0), "logistic": (0.1, 1.0), "log": (0.1, 1.0), "bayes_risk": (1.0, 10.0)}

# Strengths between those of L1, where a model has about a tenth of the weights.
FINE_L1 = {
    "hinge": (1.5e-3, 2.5e-3, 3.5e-3),
    "logistic": (5e-4, 7e-4, 1.5e-3),
    "log": (1.5e-3, 2.5e-3, 3.5e-3),
    "bayes_risk": (2e-5, 3e-5, 5e-5),
}
# Tasks with fewer settings: those with many groups, and that of quick runs.
FEW_SETTINGS = ("conll2000", "jnlpba", "addresses")
# Tasks with few groups and mistakes, on which votes are quick.
SMALL = ("atis", *TRANSLATION, *LIBRISPEECH)
# Losses that are tried with a vote, and thresholds on small tasks. On trees, where a vote of ten
# epochs takes a minute, it is tried with these epochs alone, but with all thresholds.
VOTE_LOSSES = {**dict.fromkeys(SMALL, LOSSES), "parse": ("hinge", "logistic")}
VOTE_L1 = (0.0, 1e-4, 3e-4, 1e-3)


def few_settings(task):
    """Settings of a large task: system and parameters."""
    yield "Perceptron", {"average": True, "max_iter": 10}
    for loss in LOSSES:
        rate, eta = RATES[loss][-1], ETAS[loss][-1]
        yield "SGD", {"loss": loss, "learning_rate": rate, "max_iter": 10}
        options = {"loss": loss, "eta": eta, "max_iter": 10}
        for l1, prediction in product((0.0, *L1[2::2]), ("last", "average")):
            yield "VRDA", {**options, "l1": l1, "prediction": prediction}
        for l1 in (*L1[3:6:2], *FINE_L1[loss]):
            yield "VRDA", {**options, "l1": l1, "prediction": "last"}
        for gravity in (1e-4, 1e-3):
            options = {"loss": loss, "learning_rate": rate, "max_iter": 10}
            yield "TG", {**options, "gravity": gravity, "period": 10}
    yield from settings_of_prediction(task)


def settings(task):
    """All settings of a task: system and parameters, the quick ones first."""
    if task in FEW_SETTINGS:
        yield from few_settings(task)
        return
    for average, n in product((True, False), (2, 5, 10)):
        yield "Perceptron", {"average": average, "max_iter": n}
    for loss in LOSSES:
        for rate, n in product(RATES[loss], (3, 10)):
            yield "SGD", {"loss": loss, "learning_rate": rate, "max_iter": n}
    for loss in LOSSES:
        for eta, n in product(ETAS[loss], EPOCHS[loss]):
            options = {"loss": loss, "eta": eta, "max_iter": n}
            for l1, prediction in product(L1, ("last", "average")):
                yield "VRDA", {**options, "l1": l1, "prediction": prediction}
            for l1 in FINE_L1[loss]:
                yield "VRDA", {**options, "l1": l1, "prediction": "last"}
    for loss in LOSSES:
        for rate, gravity, period in product(RATES[loss], (1e-5, 1e-4, 1e-3, 1e-2), (10, 100)):
            options = {"loss": loss, "learning_rate": rate, "max_iter": 10}
            yield "TG", {**options, "gravity": gravity, "period": period}
    yield from settings_of_prediction(task)


def settings_of_prediction(task):
    """Settings with a vote, and those that differ from these only in how they predict."""
    if task in VOTE_LOSSES:
        for loss in VOTE_LOSSES[task]:
            strengths, epochs = VOTE_L1, EPOCHS[loss]
            if task not in SMALL:
                strengths, epochs = L1 + FINE_L1[loss], epochs[-1:]
            for l1, n, prediction in product(strengths, epochs, ("average", "vote")):
                options = {"loss": loss, "eta": ETAS[loss][-1], "max_iter": n, "l1": l1}
                yield "VRDA", {**options, "prediction": prediction}
        return
    for loss, prediction in product(("hinge", "log"), ("last", "average", "vote")):
        options = {"loss": loss, "eta": ETAS[loss][-1], "max_iter": 1, "l1": 0.0}
        yield "VRDA", {**options, "prediction": prediction}


class RerankRecords(Records):
    """Finished runs of a task."""

    names = ("system", "parameters", "order")


def run_task(task, wanted, data, results):
    """Make the wanted runs of a task that are not finished: pairs of order and setting."""
    splits = load_task(task, data, results, TASKS)
    lessons = splits["train"].teaching()
    records = finished_runs(task, results)
    for order, (system, parameters) in wanted:
        head = {"system": system, "parameters": parameters, "order": order}
        if records.find(**head) is None:
            found = measure(head, lessons, splits, FIXED.get(task, {}), TASKS[task].metric)
            run = records.add({**head, **found})
            print(task, order, system, parameters, run["dev"], run["test"], run["nnz"], flush=True)


def measure(run, lessons, splits, fixed, metric):
    """Fit a reranker and score its choices on the other sets; times are processor times."""
    X, costs = lessons
    model = SYSTEMS[run["system"]](random_state=run["order"], **fixed, **run["parameters"])
    start = time.process_time()
    model.fit(X, costs)
    found = {"time": time.process_time() - start, "nnz": int(np.count_nonzero(model.coef_))}
    for name in ("mistakes", "nnz"):
        found[f"{name}_history"] = model.history_[name].tolist()
    for name in ("dev", "test"):
        start = time.process_time()
        chosen = model.predict(splits[name].batch)
        found[f"{name}_time"] = time.process_time() - start
        found[name] = metric(splits[name].chosen_stats(chosen).sum(axis=0))
        found[f"{name}_chosen"] = chosen.tolist()
    return found


def finished_runs(task, results):
    """Runs that came with the repository, and those of the results folder."""
    kept = read_runs(GENERATED / "rerank" / kept_name(task))
    return RerankRecords(results / f"{task.replace('/', '-')}.jsonl", kept)


def kept_name(task):
    """File of the runs that the repository keeps, beside the tables."""
    return f"{task.replace('/', '-')}.jsonl.gz"


def folds_of(name):
    """Names of the folds of a task."""
    return [fold for fold in TASKS if fold.split("/")[0] == name]
