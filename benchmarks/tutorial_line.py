"""The line of sklearn-crfsuite's tutorial, by sklearn-crfsuite and by the drop-in, in turn.

    python -m benchmarks.tutorial_line
    python -m benchmarks.tutorial_line --only conll2000 jnlpba --lines defaults --repeat 3
    python -m benchmarks.tutorial_line --write

    CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)

Two other lines stand beside it: the defaults, with which either system stops by a rule of its own,
and the tutorial's penalties with the same tolerance, `delta`, for both:

    CRF()
    CRF(c1=0.1, c2=0.1, delta=1e-4, all_possible_transitions=True)

Every run is a process of its own that reads a corpus as columns of plain text, makes the feature
dicts of the tutorial, fits and tags the test set. The program of the drop-in differs in its import
alone; it fits in two threads, as it does by default, or in a context of joblib, in one. Where a
corpus has no parts of speech, or they are what is predicted, their features are left out.

Where underthesea_core is installed, whose trainer is written in Rust and reads and writes models of
CRFsuite, it learns from the same attributes with the tutorial's line, too; so does chaine.

Every finished run is added at once to a file in the results folder, and is not made again.
`--write` makes the tables, and the file of runs that the repository keeps. Needs no extra but
`crfsuite`: imports of packages that neither system needs would count for both.
"""

import json
import tempfile
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
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
    TWO_FILES,
    columns,
    fetch_chunking,
    fetch_entities,
    load_quick,
    read_jnlpba,
    read_sentences,
    write_sentences,
)
from benchmarks.common.features import feature_dicts, shape, tutorial_features
from benchmarks.common.processes import Clock, n_swaps, run_child
from benchmarks.common.report import (
    corrected,
    machine,
    median,
    median_and_range,
    note_on_runs,
    ratios,
    table,
)
from benchmarks.common.runs import Records, read_runs, write_runs

NAME = "tutorial_line"
LINES = {
    "tutorial": {
        "algorithm": "lbfgs",
        "c1": 0.1,
        "c2": 0.1,
        "max_iterations": 100,
        "all_possible_transitions": True,
    },
    "defaults": {},
    "tolerance": {"c1": 0.1, "c2": 0.1, "delta": 1e-4, "all_possible_transitions": True},
}
TITLES = {
    "tutorial": "the tutorial's line",
    "defaults": "defaults",
    "tolerance": "same tolerance",
}
THEIRS, OURS = "sklearn-crfsuite", ("the drop-in, 2 threads", "the drop-in, 1 thread")
# Module, and the number of threads that joblib is told; None leaves it alone.
SYSTEMS = {
    THEIRS: ("sklearn_crfsuite", None),
    OURS[0]: ("skstruct.crfsuite", None),
    OURS[1]: ("skstruct.crfsuite", 1),
}
# Other trainers, with the tutorial's line alone, where they are installed. The first is in Rust.
PEERS = ("underthesea_core", "chaine")
F1, ACCURACY = "chunk_f1", "token_accuracy"


class Corpus(NamedTuple):
    """A corpus and its measure."""

    title: str
    read: object  # function that returns {"train": (X, y), "test": (X, y)}
    measure: str | None  # metric of `paired_permutation_test`; None without a test set of its own


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
    "ud-english-ewt": Corpus("English-EWT", columns("ud-english-ewt", **TWO_FILES), ACCURACY),
    "made-up-addresses": Corpus("Made-up addresses", read_made_up, F1),
    "addresses": Corpus("Shipped addresses", read_addresses, None),
}
QUICK_CORPORA = {"addresses": Corpus("Some addresses", load_quick, F1)}
# Not in the medians: one is made up, and fits of the other take less than a second.
LEFT_OUT = {"made-up-addresses", "addresses"}
# What is compared: an entry of the runs, and one of `OURS`.
COMPARED = {
    "fit": ("fit", 1),
    "fit, 1 thread": ("fit", 2),
    "process": ("whole", 1),
    "process, 1 thread": ("whole", 2),
}


class LineRecords(Records):
    """Runs, and tests of the difference in score."""

    names = ("corpus", "line", "system", "turn")


def run_one(line, system, folder, predictions):
    """Run one line by one system in this process, and write what it predicted."""
    clock = Clock(whole=True)
    library, n_threads = SYSTEMS[system]
    kind = import_module(library).CRF
    from joblib import parallel_config

    clock.lap("import")
    (X, y), (X_test, _) = (read_sentences(folder / part) for part in ("train", "test"))
    clock.lap("read")
    dicts = [feature_dicts(tutorial_features, sentence) for sentence in X]
    clock.lap("features")
    with parallel_config(n_jobs=n_threads):
        crf = kind(**LINES[line]).fit(dicts, y)
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


def attribute_strings(sentence):
    """The tutorial's features of a sentence as strings, as CRFsuite names its attributes."""
    return [
        [f"{k}:{v}" if isinstance(v, str) else k for k, v in token.items() if v]
        for token in feature_dicts(tutorial_features, sentence)
    ]


def fit_in_rust(X, y, *, c1, c2, max_iterations, **_):
    """Function that tags a sentence, after a fit by the trainer that is written in Rust."""
    from underthesea_core import CRFTagger, CRFTrainer

    penalties = {"l1_penalty": c1, "l2_penalty": c2}
    trainer = CRFTrainer(max_iterations=max_iterations, verbose=0, **penalties)
    return CRFTagger.from_model(trainer.train(X, y)).tag


def fit_chaine(X, y, *, algorithm="lbfgs", **parameters):
    """Function that tags a sentence, after a fit by chaine."""
    from chaine.crf import Model, Trainer

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.chaine")
        Trainer(algorithm, **parameters).train(X, y, model_filepath=path)
        return Model(path).predict_single


def run_peer(line, system, folder, predictions):
    """Do what `run_one` does by another trainer."""
    clock = Clock(whole=True)
    import_module(system)
    clock.lap("import")
    (X, y), (X_test, _) = (read_sentences(folder / part) for part in ("train", "test"))
    clock.lap("read")
    in_rust = system == PEERS[0]
    features = attribute_strings if in_rust else partial(feature_dicts, tutorial_features)
    prepared = list(map(features, X))
    clock.lap("features")
    tag = (fit_in_rust if in_rust else fit_chaine)(prepared, y, **LINES[line])
    clock.lap("fit")
    labels = [tag(features(sentence)) for sentence in X_test]
    clock.lap("tag")
    predictions.write_text(json.dumps(labels), encoding="utf-8")
    whole, memory = sum(clock.seconds.values()), clock.memory["fit"]
    return {**clock.seconds, "whole": whole, "memory": memory}


def compare(corpus, y_test, theirs, ours):
    """Scores on the test set, and whether they differ by more than chance."""
    from skstruct.metrics import paired_permutation_test

    test = partial(paired_permutation_test, y_test, metric=corpus.measure, random_state=0)
    found = test(ours, theirs, n_resamples=n_swaps(9999))
    # The difference from labels that are all right tells the score.
    score = 1 - test(y_test, ours, n_resamples=1).difference
    return {"score": score, "difference": found.difference, "pvalue": found.pvalue}


class Comparison:
    """The runs of one line on one corpus."""

    def __init__(self, records, name, corpus, line):
        self.records, self.name, self.corpus, self.line = records, name, corpus, line

    def head(self, system, turn):
        """What a record is found by."""
        return {"corpus": self.name, "line": self.line, "system": system, "turn": turn}

    def make(self, folder, repeat):
        """Make the missing runs, and test whether the scores differ; systems take turns."""
        systems = list(SYSTEMS)
        if self.line == "tutorial":
            systems += filter(find_spec, PEERS)
        heads = [self.head(system, turn) for turn in range(1, repeat + 1) for system in systems]
        missing = [head for head in heads if self.records.find(**head) is None]
        for system in OURS if missing else ():
            # Unmeasured, which fills the cache of compiled kernels.
            self._run(system, folder)
        for head in missing:
            found = self.records.add({**head, **self._run(head["system"], folder)})
            print(*head.values(), found["fit"], found.get("objective"), flush=True)
        if self.corpus.measure and not all(map(self.score, OURS)):
            _, y_test = read_sentences(folder / "test")
            others = [system for system in (*OURS, *PEERS) if self._predictions(system).exists()]
            theirs, *ours = (
                json.loads(self._predictions(system).read_text(encoding="utf-8"))
                for system in (THEIRS, *others)
            )
            for system, labels in zip(others, ours, strict=True):
                found = compare(self.corpus, y_test, theirs, labels)
                self.records.add({**self.head(f"score of {system}", 0), **found})

    def runs(self, systems=tuple(SYSTEMS)):
        """Runs of each system, in turn."""
        found = [r for r in self.records if (r["corpus"], r["line"]) == (self.name, self.line)]
        found.sort(key=lambda run: run["turn"])
        return [[run for run in found if run["system"] == system] for system in systems]

    def score(self, system):
        """Score of one of our systems, and its difference from theirs."""
        return self.records.find(**self.head(f"score of {system}", 0))

    def _predictions(self, system):
        folder = self.records.path.parent
        return folder / f"{self.name}, {self.line}, {system}.json"

    def _run(self, system, folder):
        where = "--folder", folder, "--predictions", self._predictions(system)
        return run_child(NAME, "--run", self.line, system, *where)


def make_runs(name, corpus, lines, records, repeat):
    """Make the missing runs of a corpus."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for part, pair in corpus.read().items():
            write_sentences(*pair, folder / part)
        for line in lines:
            Comparison(records, name, corpus, line).make(folder, repeat)


def write_report(records, corpora, report):
    """Write the tables of the corpora that have runs of all systems and lines."""
    made = {
        (name, line): Comparison(records, name, corpus, line)
        for name, corpus in corpora.items()
        for line in LINES
    }
    runs = {key: comparison.runs() for key, comparison in made.items()}
    names = [name for name in corpora if all(all(runs[name, line]) for line in LINES)]
    n_turns = {
        line: min(len(found) for name in names for found in runs[name, line]) for line in LINES
    }
    made = {key: comparison for key, comparison in made.items() if key[0] in names}
    runs = {key: [found[: n_turns[key[1]]] for found in runs[key]] for key in made}
    # By line and what is compared: ratios by corpus, turn by turn.
    faster = {
        (line, what): {
            name: ratios(runs[name, line][0], runs[name, line][i], key) for name in names
        }
        for line in LINES
        for what, (key, i) in COMPARED.items()
    }
    titles = {name: corpora[name].title for name in names}
    for line in LINES:
        head = ["", "tokens", f"{THEIRS}, s", "drop-in, s", "1 thread, s"]
        rows = [
            [
                titles[name],
                f"{runs[name, line][0][0]['tokens']:,}",
                *(f"{median(found, 'fit'):.2f}" for found in runs[name, line]),
                *(median_and_range(faster[line, what][name]) for what in COMPARED),
            ]
            for name in names
        ]
        rows += medians([faster[line, what] for what in COMPARED], 5)
        times = [f"times: {what}" for what in COMPARED]
        note = note_on_runs(n_turns[line])
        report.write(f"seconds_{line}", table([*head, *times], rows), note)
    columns = [(line, what) for line in LINES for what in list(COMPARED)[:3]]
    rows = [
        [titles[name], *(f"{np.median(faster[column][name]):.1f}" for column in columns)]
        for name in names
    ]
    rows += medians([faster[column] for column in columns], 1)
    if len(names) > 1:
        large = [np.concatenate(large_ones(faster[column])) for column in columns]
        ranges = (f"{values.min():.1f}-{values.max():.1f}" for values in large)
        rows.append(["Range over their turns", *ranges])
    head = ["", *(f"{TITLES[line]}: {what}" for line, what in columns)]
    speed = table(head, rows)
    report.write("speed", speed, machine())
    if corpora is CORPORA:
        # README has the tutorial's line alone.
        n_cells = len(COMPARED)
        head = ["", *(what for line, what in columns if line == "tutorial")]
        short = [row[:n_cells] for row in rows]
        peers = {name: peer_ratios(made[name, "tutorial"]) for name in names}
        if all(map(len, peers.values())):
            head.append(f"{PEERS[0]}: fit")
            found = [f"{np.median(values):.1f}" for values in peers.values()]
            large = np.median([np.median(values) for values in large_ones(peers)])
            for row, cell in zip(short, [*found, f"{large:.1f}", ""], strict=True):
                row.append(cell)
        report.write_into(ROOT / "README.md", "speed", table(head, short))
    write_results(made, runs, titles, report)
    write_peer(made, titles, report)


def peer_ratios(comparison):
    """How many times as fast as CRFsuite the trainer in Rust fits, turn by turn."""
    theirs, peer = comparison.runs((THEIRS, PEERS[0]))
    n_turns = min(len(theirs), len(peer))
    return ratios(theirs[:n_turns], peer[:n_turns], "fit") if n_turns else []


def write_peer(made, titles, report):
    """Write how fast other trainers are, of the corpora that they were run on."""
    rows = []
    for other, ((name, _), comparison) in product(PEERS, made.items()):
        found = comparison.runs((THEIRS, OURS[1], other))
        if not found[2]:
            continue
        n_turns = min(map(len, found))
        theirs, ours, peer = (runs[:n_turns] for runs in found)
        seconds = [f"{median(found, 'fit'):.2f}" for found in (theirs, peer, ours)]
        times = [
            median_and_range(ratios(theirs, found, key))
            for key, found in (("fit", peer), ("fit", ours), ("whole", peer), ("whole", ours))
        ]
        score = comparison.score(other)
        score = "" if score is None else f"{100 * score['difference']:+.2f}"
        rows.append([other, titles[name], *seconds, *times, score])
    if rows:
        head = ["", "", f"{THEIRS}, s", "its fit, s", "drop-in, 1 thread, s", "times: its fit"]
        head += ["drop-in's fit", "its process", "drop-in's process", "its score"]
        report.write("peer", table(head, rows, left=(0, 1)), machine())


def large_ones(column):
    """Ratios of the large corpora of real text; of all, if there is none."""
    found = [ratios for name, ratios in column.items() if name not in LEFT_OUT]
    return found or list(column.values())


def medians(columns, n_before):
    """A row with the median over the corpora, after `n_before` cells, if there are several."""
    if len(columns[0]) < 2:
        return []
    cells = [f"{np.median([np.median(v) for v in large_ones(column)]):.1f}" for column in columns]
    return [["Median of the large real corpora", *[""] * (n_before - 1), *cells]]


def write_results(made, runs, titles, report):
    """Write the tables of objectives, scores and memory."""
    objectives, scores, memory, tests = [], [], [], {}
    for (name, line), of_key in runs.items():
        start = [titles[name], TITLES[line]]
        theirs = of_key[0][0]
        for system, (ours, *_) in zip(OURS, of_key[1:], strict=True):
            share = ours["objective"] / theirs["objective"] - 1
            both = [f"{run['objective']:,.1f}" for run in (theirs, ours)]
            counts = [run["iterations"] for run in (theirs, ours)]
            objectives.append([*start, system, *both, f"{share:+.2%}", *counts, ours["end"]])
            score = made[name, line].score(system)
            if score is not None:
                both = [score["score"] - score["difference"], score["score"]]
                tests[name, line, system] = score["pvalue"]
                cells = [f"{value:.2%}" for value in both]
                cells += [f"{100 * score['difference']:+.2f}", f"{score['pvalue']:.3f}"]
                scores.append([*start, system, *cells])
        cells = [f"{median(found, 'memory'):.0f}" for found in of_key]
        more = median_and_range(ratios(of_key[1], of_key[0], "memory"), 2)
        memory.append([*start, *cells, more])
    head = ["", "", "", THEIRS, "drop-in", "difference", "iterations", "recorded steps", "end"]
    report.write("objectives", table(head, objectives, left=(0, 1, 2, 8)))
    for row, p in zip(scores, corrected(tests).values(), strict=True):
        row.append(f"{p:.3f}")
    head = ["", "", "", f"{THEIRS}, %", "drop-in, %", "difference", "p", "p, corrected"]
    report.write("scores", table(head, scores, left=(0, 1, 2)))
    head = ["", "", f"{THEIRS}, MB", "drop-in, MB", "1 thread, MB", "drop-in, times"]
    report.write("memory", table(head, memory, left=(0, 1)), machine())


def main():
    """Make runs, write the report, or run one of the systems in this process."""
    parser = make_parser(__doc__, repeat=5)
    parser.add_argument("--only", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--lines", nargs="+", choices=LINES, default=list(LINES))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    parser.add_argument("--run", nargs=2, metavar=("LINE", "SYSTEM"), help="only this, once")
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    parser.add_argument("--predictions", type=Path, help="file for the predicted labels of --run")
    arguments = parse(parser)
    if arguments.run:
        line, system = arguments.run
        where = arguments.folder, arguments.predictions
        run = (run_peer if system in PEERS else run_one)(line, system, *where)
        print(json.dumps(run))
        return
    with results_folder(NAME, arguments) as folder:
        kept = GENERATED / NAME / "runs.jsonl"
        records = LineRecords(folder / "runs.jsonl", read_runs(kept) if arguments.write else ())
        corpora = QUICK_CORPORA if arguments.quick else CORPORA
        if not arguments.write:
            for name in corpora if arguments.quick else arguments.only:
                make_runs(name, corpora[name], arguments.lines, records, arguments.repeat)
        if arguments.quick or arguments.write:
            with open_report(NAME, arguments) as report:
                write_report(records, corpora, report)
                write_runs(report.folder / "runs.jsonl", records)


if __name__ == "__main__":
    main()
