"""Seconds to the optimum of a CRF beside python-crfsuite: whole processes, in turn.

CRFsuite trains until its own L-BFGS stops. `CRFTagger` has the same weights and the same objective,
and its seconds are those of `fit` up to the first iterate that is not above CRFsuite's last one.
`SDCACRF` has a weight for every combination of a feature and a label, another objective therefore;
its seconds are those of the whole `fit`, until its duality gap is certified to be within a
thousandth of the objective. All are given the same attribute strings.

    python benchmarks/crf_optimum.py --repeat 3
    python benchmarks/crf_optimum.py --repeat 1 jnlpba

Finished runs are kept in the results folder, and are not made again. The page
docs/benchmarks/crf_optimum.md is written of whatever there is. The corpora are downloaded, or read
from the folder that SKSTRUCT_DATA names, where JNLPBA has to be. Needs the extra `bench`.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from itertools import groupby
from pathlib import Path

from conll2000 import Clock, peak_memory
from whole_process import chunking_features, entity_features, feature_strings, outside

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks" / "crf_optimum.md"
RESULTS = HERE / "results" / "crf_optimum.jsonl"
C2 = 1.0
CERTIFIED = 1e-3


def shape(word):
    """Kinds of characters, without repetitions."""

    def kind(c):
        if c.isalpha():
            return "A" if c.isupper() else "a"
        return "0" if c.isdigit() else c

    return "".join(c for c, _ in groupby(map(kind, word)))


def word_features(sentence, t):
    """Names and values of the features of a token of biomedical text, without its tag."""
    near = [outside(t + row, len(sentence)) or sentence[t + row][0].lower() for row in range(-2, 3)]
    yield "U", "bias"
    for row, word in zip(range(-2, 3), near, strict=True):
        yield f"U{row:+}", word
    yield "U-1/0", f"{near[1]}/{near[2]}"
    yield "U0/1", f"{near[2]}/{near[3]}"
    word = sentence[t][0]
    for n in range(1, 5):
        yield f"Uprefix{n}", word[:n]
        yield f"Usuffix{n}", word[-n:]
    for row in (-1, 0, 1):
        yield f"Ushape{row:+}", outside(t + row, len(sentence)) or shape(sentence[t + row][0])


def read_conll2000():
    from skstruct.datasets import fetch_conll2000

    return [fetch_conll2000(subset=part, return_X_y=True) for part in ("train", "test")]


def read_conll2002(language):
    from skstruct.datasets import fetch_conll2002

    return [
        fetch_conll2002(language=language, subset=part, return_X_y=True)
        for part in ("train", "testb")
    ]


def read_jnlpba():
    from skstruct.datasets import read_conll

    folder = Path(os.environ["SKSTRUCT_DATA"]) / "jnlpba"
    return [
        read_conll(folder / f"{part}.txt.gz", separator="\t", columns=[0])
        for part in ("train", "test")
    ]


TASKS = {
    "conll2000": ("Chunking, CoNLL-2000", read_conll2000, chunking_features),
    "conll2002-ned": (
        "Named entities, CoNLL-2002 Dutch", partial(read_conll2002, "ned"), entity_features,
    ),
    "conll2002-esp": (
        "Named entities, CoNLL-2002 Spanish", partial(read_conll2002, "esp"), entity_features,
    ),
    "jnlpba": ("Biomedical entities, JNLPBA", read_jnlpba, word_features),
}  # fmt: skip


def run_crfsuite(train, test, target, clock):
    import pycrfsuite

    params = {"c1": 0.0, "c2": C2}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=params, verbose=False)
    for strings, labels in zip(*train, strict=True):
        trainer.append(strings, labels)
    clock.lap("features")
    with tempfile.NamedTemporaryFile(suffix=".crfsuite") as model:
        trainer.train(model.name)
        clock.lap("train")
        tagger = pycrfsuite.Tagger()
        tagger.open(model.name)
        predicted = [tagger.tag(strings) for strings in test[0]]
    iterations = trainer.logparser.iterations
    result = {"objective": iterations[-1]["loss"], "iterations": len(iterations)}
    return predicted, {**result, "seconds": clock.seconds["train"]}


def run_skstruct(make_tagger, train, test, target, clock):
    import skstruct

    vectorizer = skstruct.SequenceVectorizer()
    batch, tagger = vectorizer.fit_transform(train[0]), make_tagger(skstruct)
    clock.lap("features")
    tagger.fit(batch, train[1])
    clock.lap("train")
    predicted = tagger.predict(vectorizer.transform(test[0]))
    history, seconds = tagger.history_, clock.seconds["train"]
    result = {"objective": float(history["objective"][-1]), "iterations": int(tagger.n_iter_)}
    if hasattr(tagger, "duality_gap_"):
        result["gap"] = tagger.duality_gap_ / result["objective"]
    else:
        reached = int((history["objective"] <= target).argmax())
        if history["objective"][reached] <= target:
            result = {"objective": float(history["objective"][reached]), "iterations": reached}
            seconds += history["time"][reached] - history["time"][-1]
        else:
            seconds = float("nan")
    return predicted, {**result, "seconds": float(seconds)}


def crf_tagger(n_jobs, library):
    return library.CRFTagger(l2=2 * C2, fit_intercept=False, tol=1e-5, n_jobs=n_jobs)


def sdca_crf(n_jobs, library):
    return library.SDCACRF(
        l2=2 * C2, fit_intercept=False, tol=CERTIFIED, random_state=0, n_jobs=n_jobs
    )


SYSTEMS = {
    "CRFsuite": run_crfsuite,
    "CRFTagger, 1 thread": partial(run_skstruct, partial(crf_tagger, 1)),
    "CRFTagger, 2 threads": partial(run_skstruct, partial(crf_tagger, 2)),
    "SDCACRF, 1 thread": partial(run_skstruct, partial(sdca_crf, 1)),
    "SDCACRF, 2 threads": partial(run_skstruct, partial(sdca_crf, 2)),
}


def run_one(task, system, target):
    """Run one system in this process and print what it took."""
    _, read, features = TASKS[task]
    train, test = (([feature_strings(features, sentence) for sentence in X], y) for X, y in read())
    clock = Clock()
    predicted, result = SYSTEMS[system](train, test, target, clock)
    memory = peak_memory()
    from skstruct.metrics import chunk_f1_score

    f1 = chunk_f1_score(test[1], predicted)
    print(json.dumps({**result, "memory": memory, "f1": f1}))


def run_all(tasks, repeat, path):
    """Let the systems take turns in fresh processes; the first one of ours fills the cache."""
    done = read_results(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for turn in range(repeat):
        for task in tasks:
            target = "inf"
            for system in SYSTEMS:
                key = (task, system, turn)
                if key not in done:
                    command = [sys.executable, __file__, "--run", task, system, target]
                    if turn == 0 and system != "CRFsuite":
                        subprocess.run(command, check=True, capture_output=True)
                    run = subprocess.run(command, check=True, capture_output=True, text=True)
                    done[key] = json.loads(run.stdout.splitlines()[-1])
                    entry = {"task": task, "system": system, "turn": turn, **done[key]}
                    print(entry, flush=True)
                    with path.open("a") as file:
                        file.write(json.dumps(entry) + "\n")
                if system == "CRFsuite":
                    target = str(done[key]["objective"])
    return done


def read_results(path):
    """Finished runs by task, system and turn."""
    if not path.exists():
        return {}
    runs = map(json.loads, path.read_text().splitlines())
    return {(run["task"], run["system"], run["turn"]): run for run in runs}


ROWS = {
    "seconds": ("seconds", "{:.1f}"),
    "objective there": ("objective", "{:,.2f}"),
    "certified gap, relative": ("gap", "{:.1e}"),
    "iterations or epochs": ("iterations", "{:.0f}"),
    "chunk F1 on test, %": ("f1", "{:.2%}"),
    "peak memory, MB": ("memory", "{:.0f}"),
}


def table(runs):
    """Medians of one task by system, and the ratios of runs of the same turn."""
    yield "| | " + " | ".join(SYSTEMS) + " |"
    yield "|---|" + "---:|" * len(SYSTEMS)
    for title, (key, form) in ROWS.items():
        cells = []
        for system in SYSTEMS:
            values = [run[key] for run in runs[system].values() if key in run]
            cells.append(form.format(statistics.median(values)) if values else "")
        yield f"| {title} | " + " | ".join(cells) + " |"
    cells = []
    for system in SYSTEMS:
        ratios = [
            runs["CRFsuite"][turn]["seconds"] / run["seconds"]
            for turn, run in runs[system].items()
            if turn in runs["CRFsuite"]
        ]
        cells.append(f"{statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})")
    yield "| times faster than CRFsuite | " + " | ".join(cells) + " |"


def write_page(done, path):
    lines = [
        "# To the optimum of a CRF",
        "",
        "Seconds of training, beside python-crfsuite and with the same attribute strings, c2 = 1:",
        "`CRFTagger` to CRFsuite's own last objective, `SDCACRF`, which has more weights and so",
        f"another objective, to a certified gap of {CERTIFIED:g}. Medians over the turns, and",
        "ratios within a turn (median, and range). Memory counts the attribute strings, too.",
        "Written by `benchmarks/crf_optimum.py`, whose text says what is measured.",
    ]
    for task, (title, *_) in TASKS.items():
        runs = {system: {} for system in SYSTEMS}
        for (name, system, turn), run in done.items():
            if name == task:
                runs[system][turn] = run
        if all(runs.values()):
            turns = len(runs["CRFsuite"])
            lines += ["", f"## {title}", "", f"{turns} turn{'s' * (turns > 1)}.", "", *table(runs)]
    lines += ["", f"Python {platform.python_version()}, {platform.machine()}, two processors."]
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=[], help="by default all")
    parser.add_argument("--repeat", type=int, default=3, help="turns (default 3)")
    parser.add_argument("--run", nargs=3, metavar=("TASK", "SYSTEM", "TARGET"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the tables")
    arguments = parser.parse_args()
    if arguments.run:
        task, system, target = arguments.run
        run_one(task, system, float(target))
        return
    tasks = arguments.tasks or list(TASKS)
    write_page(run_all(tasks, arguments.repeat, arguments.results), arguments.page)


if __name__ == "__main__":
    main()
