"""The line of sklearn-crfsuite's tutorial, by sklearn-crfsuite and by the drop-in, in turn.

    python -m benchmarks.tutorial_line
    python -m benchmarks.tutorial_line --only conll2000 jnlpba --repeat 3
    python -m benchmarks.tutorial_line --write

    CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)

Every run is a process of its own that reads a corpus as columns of plain text, makes the feature
dicts of the tutorial, fits and tags the test set. The program of the drop-in differs in its import
alone; it fits in two threads, as it does by default, or in a context of joblib, in one. Where a
corpus has no parts of speech, or they are what is predicted, their features are left out.

Every finished run is added at once to a file in the results folder, and is not made again.
`--write` makes the tables, and the file of runs that the repository keeps. Needs the extra `bench`.
"""

import json
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.common.addresses import make_up_addresses
from benchmarks.common.commandline import (
    GENERATED,
    ROOT,
    make_parser,
    open_report,
    parse,
    results_folder,
)
from benchmarks.common.corpora import (
    data_folder,
    fetch_chunking,
    fetch_entities,
    load_quick,
    read_columns,
    read_jnlpba,
    read_sentences,
    write_sentences,
)
from benchmarks.common.features import feature_dicts, shape, tutorial_features
from benchmarks.common.processes import Clock, run_child
from benchmarks.common.report import machine, median, median_and_range, ratios, table
from benchmarks.common.runs import Records, read_runs

NAME = "tutorial_line"
LINE = {
    "algorithm": "lbfgs",
    "c1": 0.1,
    "c2": 0.1,
    "max_iterations": 100,
    "all_possible_transitions": True,
}
THEIRS, OURS = "sklearn-crfsuite", ("the drop-in, 2 threads", "the drop-in, 1 thread")
# Module, and the number of threads that joblib is told; None leaves it alone.
SYSTEMS = {
    THEIRS: ("sklearn_crfsuite", None),
    OURS[0]: ("skstruct.crfsuite", None),
    OURS[1]: ("skstruct.crfsuite", 1),
}
F1, ACCURACY = "chunk_f1", "token_accuracy"


class Corpus(NamedTuple):
    """A corpus and its measure."""

    title: str
    read: object  # function that returns {"train": (X, y), "test": (X, y)}
    measure: str | None  # metric of `paired_permutation_test`; None without a test set of its own


def read_words():
    """Words and universal parts of speech of English-EWT."""
    names = {"train": "train", "test": "test"}
    return read_columns(data_folder() / "ud-english-ewt", names, n_columns=1)


def read_made_up():
    """18,000 made-up addresses, and others for testing."""
    return {"train": make_up_addresses(18_000, 0), "test": make_up_addresses(2_000, 1)}


def read_addresses():
    """All addresses of the package; for tagging, made-up ones."""
    from skstruct.datasets import load_addresses

    X, y = load_addresses(return_X_y=True)
    tokens = [[(word, shape(word)) for word in address] for address in X]
    return {"train": (tokens, list(y)), "test": make_up_addresses(100, 1)}


CORPORA = {
    "conll2000": Corpus("CoNLL-2000", fetch_chunking, F1),
    "conll2002-esp": Corpus("CoNLL-2002 Spanish", partial(fetch_entities, "esp"), F1),
    "conll2002-ned": Corpus("CoNLL-2002 Dutch", partial(fetch_entities, "ned"), F1),
    "jnlpba": Corpus("JNLPBA", read_jnlpba, F1),
    "ud-english-ewt": Corpus("English-EWT", read_words, ACCURACY),
    "made-up-addresses": Corpus("Made-up addresses", read_made_up, F1),
    "addresses": Corpus("Shipped addresses", read_addresses, None),
}
QUICK_CORPORA = {"addresses": Corpus("Some addresses", load_quick, F1)}
# Not in the medians over corpora: its fits take less than a second.
SMALL = {"addresses"}


class LineRecords(Records):
    """Runs, and tests of the difference in score."""

    names = ("corpus", "system", "turn")


def run_one(system, folder, predictions):
    """Run one system in this process; return what it took, and write what it predicted."""
    clock = Clock()
    library, n_threads = SYSTEMS[system]
    kind = import_module(library).CRF
    from joblib import parallel_config

    clock.lap("import")
    (X, y), (X_test, _) = (read_sentences(folder / part) for part in ("train", "test"))
    clock.lap("read")
    dicts = [feature_dicts(tutorial_features, sentence) for sentence in X]
    clock.lap("features")
    with parallel_config(n_jobs=n_threads):
        crf = kind(**LINE).fit(dicts, y)
    clock.lap("fit")
    predicted = crf.predict([feature_dicts(tutorial_features, sentence) for sentence in X_test])
    clock.lap("tag")
    labels = [list(map(str, found)) for found in predicted]
    predictions.write_text(json.dumps(labels), encoding="utf-8")
    log = crf.training_log_
    return {
        **clock.seconds,
        "whole": sum(clock.seconds.values()),
        "memory": clock.memory["fit"],
        "objective": log.last_iteration["loss"],
        "iterations": len(log.iterations),
        "end": getattr(log, "stop_reason", ""),
        "sequences": len(y),
        "tokens": sum(map(len, y)),
    }


def compare(corpus, y_test, theirs, ours):
    """Scores on the test set, and whether they differ by more than chance."""
    from skstruct.metrics import paired_permutation_test

    test = partial(paired_permutation_test, y_test, metric=corpus.measure, random_state=0)
    found = test(ours, theirs)
    # The difference from labels that are all right tells the score.
    score = 1 - test(y_test, ours, n_resamples=1).difference
    return {"score": score, "difference": found.difference, "pvalue": found.pvalue}


def make_runs(name, corpus, records, repeat):
    """Make the missing runs of a corpus; systems take turns."""
    predictions = {system: records.path.parent / f"{name}, {system}.json" for system in SYSTEMS}
    missing = [
        (turn, system)
        for turn in range(1, repeat + 1)
        for system in SYSTEMS
        if records.find(corpus=name, system=system, turn=turn) is None
    ]
    compared = corpus.measure is None or all(
        records.find(corpus=name, system=f"score of {system}", turn=0) for system in OURS
    )
    if not missing and compared:
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for part, pair in corpus.read().items():
            write_sentences(*pair, folder / part)

        def run(system):
            where = "--folder", folder, "--predictions", predictions[system]
            return run_child(NAME, "--run", system, *where)

        for system in OURS if missing else ():
            # Unmeasured, which fills the cache of compiled kernels.
            run(system)
        for turn, system in missing:
            found = records.add({"corpus": name, "system": system, "turn": turn, **run(system)})
            print(name, turn, system, found["fit"], found["objective"], flush=True)
        if not compared:
            _, y_test = read_sentences(folder / "test")
            theirs, *ours = (
                json.loads(path.read_text(encoding="utf-8")) for path in predictions.values()
            )
            for system, labels in zip(OURS, ours, strict=True):
                found = compare(corpus, y_test, theirs, labels)
                records.add({"corpus": name, "system": f"score of {system}", "turn": 0, **found})


def runs_of(records, name, system):
    """Runs of a system on a corpus, in turn."""
    found = [r for r in records if r["corpus"] == name and r["system"] == system]
    return sorted(found, key=lambda run: run["turn"])


def write_report(records, corpora, report):
    """Write the tables of the corpora that have runs of all systems."""
    runs = {name: [runs_of(records, name, system) for system in SYSTEMS] for name in corpora}
    runs = {name: found for name, found in runs.items() if all(found)}
    n_turns = min(len(found) for of_corpus in runs.values() for found in of_corpus)
    runs = {name: [found[:n_turns] for found in of_corpus] for name, of_corpus in runs.items()}
    turns = "One run" if n_turns == 1 else f"Medians of {n_turns} runs"
    note = f"{turns} of each, in turn. {machine()}"
    seconds, objectives, memory, scores = [], [], [], []
    faster = {(key, i): [] for key in ("fit", "whole") for i in (1, 2)}
    for name, of_corpus in runs.items():
        title, theirs = corpora[name].title, of_corpus[0]
        row = [title, f"{theirs[0]['tokens']:,}"]
        row += [f"{median(found, 'fit'):.2f}" for found in of_corpus]
        for key in ("fit", "whole"):
            for i in (1, 2):
                found = ratios(theirs, of_corpus[i], key)
                row.append(median_and_range(found))
                if name not in SMALL:
                    faster[key, i].append(np.median(found))
        seconds.append(row)
        best = theirs[0]
        for system, found in zip(OURS, of_corpus[1:], strict=True):
            share = found[0]["objective"] / best["objective"] - 1
            row = [title, system, f"{best['objective']:,.1f}", f"{found[0]['objective']:,.1f}"]
            objectives.append([*row, f"{share:+.2%}", found[0]["iterations"], found[0]["end"]])
            score = records.find(corpus=name, system=f"score of {system}", turn=0)
            if score is not None:
                row = [title, system, f"{score['score'] - score['difference']:.2%}"]
                row += [f"{score['score']:.2%}", f"{100 * score['difference']:+.2f}"]
                scores.append([*row, f"{score['pvalue']:.3f}"])
        row = [title, *(f"{median(found, 'memory'):.0f}" for found in of_corpus)]
        memory.append([*row, median_and_range(ratios(of_corpus[1], theirs, "memory"), 2)])
    if len(faster["fit", 1]) > 1:
        medians = [f"{np.median(values):.1f}" for values in faster.values()]
        seconds.append(["Median of the corpora", "", "", "", "", *medians])
    times = ["fit", "fit, 1 thread", "process", "process, 1 thread"]
    head = ["", "tokens", f"{THEIRS}, s", "drop-in, s", "1 thread, s"]
    speed = table([*head, *(f"times: {what}" for what in times)], seconds)
    report.write("seconds", speed, note)
    if corpora is CORPORA:
        report.write_into(ROOT / "README.md", "speed", speed)
    head = ["", "", THEIRS, "drop-in", "difference", "recorded steps", "end of the fit"]
    report.write("objectives", table(head, objectives, left=(0, 1, 6)))
    head = ["", "", f"{THEIRS}, %", "drop-in, %", "difference", "p"]
    report.write("scores", table(head, scores, left=(0, 1)))
    head = ["", f"{THEIRS}, MB", "drop-in, MB", "1 thread, MB", "drop-in, times"]
    report.write("memory", table(head, memory), note)


def main():
    """Make runs, write the report, or run one of the systems in this process."""
    parser = make_parser(__doc__, repeat=5)
    parser.add_argument("--only", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    parser.add_argument("--run", choices=SYSTEMS, help="only this, once")
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    parser.add_argument("--predictions", type=Path, help="file for the predicted labels of --run")
    arguments = parse(parser)
    if arguments.run:
        print(json.dumps(run_one(arguments.run, arguments.folder, arguments.predictions)))
        return
    with results_folder(NAME, arguments) as folder:
        kept = GENERATED / NAME / "runs.jsonl"
        records = LineRecords(folder / "runs.jsonl", read_runs(kept) if arguments.write else ())
        corpora = QUICK_CORPORA if arguments.quick else CORPORA
        if not arguments.write:
            for name in corpora if arguments.quick else arguments.only:
                make_runs(name, corpora[name], records, arguments.repeat)
        if arguments.quick or arguments.write:
            with open_report(NAME, arguments) as report:
                write_report(records, corpora, report)
                lines = [json.dumps(record) + "\n" for record in records]
                (report.folder / "runs.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
