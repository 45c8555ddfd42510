"""Seconds to the optimum of a CRF beside python-crfsuite: whole processes, in turn.

    python -m benchmarks.crf_optimum
    python -m benchmarks.crf_optimum --repeat 1 jnlpba conll2000-l1

CRFsuite trains until its own L-BFGS stops. `CRFTagger` has the same weights and the same objective,
and its seconds are those of `fit` up to the first iterate that is not above CRFsuite's last one.
`SDCACRF` has a weight for every combination of a feature and a label, hence another objective; its
seconds are those of the whole `fit`, until its duality gap is certified to be within a thousandth
of the objective. All are given the same attribute strings.

Tasks that end in "-elastic-net" have the penalties of sklearn-crfsuite's tutorial, c1 = c2 = 0.1,
those that end in "-l1" c1 = 1 and c2 = 0, the others c2 = 1 alone. The tutorial stops after 100
iterations: how long CRFsuite takes for these, and `CRFTagger` for an objective that is as low, is
read off the same runs.

Finished runs are kept in the results folder, and are not made again. The report is about all that
are finished. JNLPBA has to be in the folder that SKSTRUCT_DATA names; the other corpora are
downloaded where they are not there. Needs the extra `bench`.
"""

import json
import tempfile
from functools import partial
from math import isnan
from pathlib import Path
from typing import NamedTuple

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import read_sentences, write_corpus
from benchmarks.common.crfsuite import open_trained
from benchmarks.common.features import (
    chunking_features,
    entity_features,
    feature_strings,
    word_features,
)
from benchmarks.common.processes import Clock, peak_memory, run_child
from benchmarks.common.report import median, median_and_range, note_on_runs, ratios, table
from benchmarks.common.runs import Records

CERTIFIED = 1e-3
# Of an objective that a run ended above.
NEVER = "not reached"
# Iterations of the tutorial.
FEW = 100
# Features of each corpus.
FEATURES = {
    "conll2000": chunking_features,
    "conll2002-ned": entity_features,
    "conll2002-esp": entity_features,
    "jnlpba": word_features,
    "addresses": chunking_features,
}


class Task(NamedTuple):
    """A corpus and the penalties."""

    corpus: str
    c1: float = 0.0
    c2: float = 1.0


TASKS = {
    **{corpus: Task(corpus) for corpus in FEATURES},
    **{
        f"{corpus}-{name}": Task(corpus, *penalties)
        for name, penalties in (("elastic-net", (0.1, 0.1)), ("l1", (1.0, 0.0)))
        for corpus in FEATURES
        if corpus != "jnlpba"
    },
}
QUICK = [name for name in TASKS if name.startswith("addresses")]


def run_crfsuite(task, train, test, targets, clock):
    """Predicted labels and results of python-crfsuite."""
    import pycrfsuite

    params = {"c1": task.c1, "c2": task.c2}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=params, verbose=False)
    for strings, labels in zip(*train, strict=True):
        trainer.append(strings, labels)
    clock.lap("features")
    tagger = open_trained(trainer, clock)
    predicted = [tagger.tag(strings) for strings in test[0]]
    iterations = trainer.logparser.iterations
    last, few = iterations[-1], iterations[:FEW]
    return predicted, {
        "objective": last["loss"],
        "iterations": len(iterations),
        "weights": last["active_features"],
        "seconds": clock.seconds["train"],
        "objective of few": few[-1]["loss"],
        "seconds of few": sum(iteration["time"] for iteration in few),
    }


def run_skstruct(make_tagger, task, train, test, targets, clock):
    """Predicted labels and results of an estimator of skstruct."""
    import skstruct

    vectorizer = skstruct.SequenceVectorizer()
    batch, tagger = vectorizer.fit_transform(train[0]), make_tagger(task, skstruct)
    clock.lap("features")
    tagger.fit(batch, train[1])
    clock.lap("train")
    predicted = tagger.predict(vectorizer.transform(test[0]))
    history, seconds = tagger.history_, clock.seconds["train"]
    results = {
        "objective": float(history["objective"][-1]),
        "iterations": int(tagger.n_iter_),
        "weights": int((tagger.coef_ != 0).sum() + (tagger.transition_ != 0).sum()),
        "whole fit": seconds,
        "last objective": float(history["objective"][-1]),
    }
    if hasattr(tagger, "duality_gap_"):
        gap = tagger.duality_gap_ / results["objective"]
        return predicted, {**results, "gap": gap, "seconds": seconds}
    for name, target in zip(("", " of few"), targets, strict=True):
        reached = int((history["objective"] <= target).argmax())
        results[f"seconds{name}"] = float("nan")
        if history["objective"][reached] <= target:
            later = history["time"][-1] - history["time"][reached]
            results[f"objective{name}"] = float(history["objective"][reached])
            results[f"iterations{name}"] = reached
            results[f"seconds{name}"] = float(seconds - later)
    return predicted, results


def crf_tagger(n_jobs, task, library):
    """The CRF with CRFsuite's weights and objective."""
    penalties = {"l1": task.c1, "l2": 2 * task.c2}
    return library.CRFTagger(**penalties, fit_intercept=False, tol=1e-5, n_jobs=n_jobs)


def sdca_crf(n_jobs, task, library):
    """The CRF with a certified gap."""
    return library.SDCACRF(
        l2=2 * task.c2, fit_intercept=False, tol=CERTIFIED, random_state=0, n_jobs=n_jobs
    )


SYSTEMS = {
    "CRFsuite": run_crfsuite,
    "CRFTagger, 1 thread": partial(run_skstruct, partial(crf_tagger, 1)),
    "CRFTagger, 2 threads": partial(run_skstruct, partial(crf_tagger, 2)),
    "SDCACRF, 1 thread": partial(run_skstruct, partial(sdca_crf, 1)),
    "SDCACRF, 2 threads": partial(run_skstruct, partial(sdca_crf, 2)),
}


def systems_of(task):
    """Names of the systems that are run on a task; `SDCACRF` has no L1 penalty."""
    return [name for name in SYSTEMS if not (TASKS[task].c1 and name.startswith("SDCACRF"))]


def run_one(task, system, targets, folder):
    """Run one system in this process; return what it took."""
    features = FEATURES[task.corpus]
    train, test = (
        ([feature_strings(features, sentence) for sentence in X], y)
        for X, y in (read_sentences(folder / part) for part in ("train", "test"))
    )
    clock = Clock()
    predicted, results = SYSTEMS[system](task, train, test, targets, clock)
    memory = peak_memory()
    from skstruct.metrics import chunk_f1_score

    return {**results, "memory": memory, "f1": chunk_f1_score(test[1], predicted)}


class OptimumRecords(Records):
    """Finished runs."""

    names = ("task", "system", "turn")


def run_task(task, repeat, records, *, warm):
    """Make the runs of a task that are not finished; the systems take turns."""
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(TASKS[task].corpus, Path(folder))
        for turn in range(repeat):
            targets = [float("inf")] * 2
            for system in systems_of(task):
                head = {"task": task, "system": system, "turn": turn}
                run = records.find(**head)
                if run is None:
                    options = ["--folder", folder, "--run", task, system, *targets]
                    if warm and turn == 0 and system != "CRFsuite":
                        run_child("crf_optimum", *options)
                    run = records.add({**head, **run_child("crf_optimum", *options)})
                    print(run, flush=True)
                if system == "CRFsuite":
                    targets = [run["objective"], run.get("objective of few", float("inf"))]


ROWS = {
    "seconds": ("seconds", "{:.1f}"),
    "objective there": ("objective", "{:,.2f}"),
    "certified gap, relative": ("gap", "{:.1e}"),
    "iterations or epochs": ("iterations", "{:.0f}"),
    "seconds to 100 iterations of CRFsuite": ("seconds of few", "{:.1f}"),
    "objective after the whole fit": ("last objective", "{:,.2f}"),
    "seconds of the whole fit": ("whole fit", "{:.1f}"),
    "weights that are not zero": ("weights", "{:,.0f}"),
    "chunk F1 on test, %": ("f1", "{:.2%}"),
    "peak memory, MB": ("memory", "{:.0f}"),
}


def _cell(value, form):
    if value is None:
        return ""
    return NEVER if isnan(value) else form.format(value)


def write_report(task, runs, report):
    """Write the medians of a task, and the ratios of runs of the same turn."""
    turns = min(map(len, runs.values()))
    if turns == 0:
        return
    runs = {system: found[:turns] for system, found in runs.items()}
    rows = []
    for title, (key, form) in ROWS.items():
        values = [median(found, key) for found in runs.values()]
        if any(v is not None for v in values):
            rows.append([title, *(_cell(v, form) for v in values)])
    for title, key in (
        ("times faster than CRFsuite", "seconds"),
        ("times faster than 100 iterations", "seconds of few"),
    ):
        if all(key in run for found in runs.values() for run in found):
            gains = (ratios(runs["CRFsuite"], found, key) for found in runs.values())
            rows.append([title, *(NEVER if isnan(sum(g)) else median_and_range(g) for g in gains)])
    report.write(task, table(["", *runs], rows), note_on_runs(turns))


def main():
    """Run the benchmark, or one of its systems in this process."""
    parser = make_parser(__doc__, repeat=3)
    parser.add_argument("tasks", nargs="*", default=[], help="by default all")
    parser.add_argument("--run", nargs=4, metavar=("TASK", "SYSTEM", "TARGET", "TARGET_OF_FEW"))
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    arguments = parse(parser)
    if arguments.run:
        task, system, *targets = arguments.run
        found = run_one(TASKS[task], system, list(map(float, targets)), arguments.folder)
        print(json.dumps(found))
        return
    known = QUICK if arguments.quick else [task for task in TASKS if task not in QUICK]
    with results_folder("crf_optimum", arguments) as folder:
        records = OptimumRecords(folder / "runs.jsonl")
        for task in arguments.tasks or known:
            run_task(task, arguments.repeat, records, warm=not arguments.quick)
        finished = sorted(records, key=lambda run: run["turn"])
    with open_report("crf_optimum", arguments) as report:
        for task in known:
            runs = {
                system: [r for r in finished if (r["task"], r["system"]) == (task, system)]
                for system in systems_of(task)
            }
            write_report(task, runs, report)


if __name__ == "__main__":
    main()
