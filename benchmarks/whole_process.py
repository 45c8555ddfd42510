"""From text to labels beside sklearn-crfsuite and python-crfsuite: whole processes, in turn.

Every run is a process of its own that reads a corpus as plain text columns, makes features, trains
and tags the test set. All systems have the same features: the 19 templates of text chunking on
CoNLL-2000, and those of sklearn-crfsuite's tutorial on the Spanish part of CoNLL-2002.

- sklearn-crfsuite makes a dict for each token, as its tutorial does;
- python-crfsuite is given lists of attribute strings;
- `CRFTagger` and our quickest learner, the averaged perceptron on the one corpus and MIRA on the
  other, are given the matrix of a `TemplateVectorizer`.

CRFsuite trains until its own L-BFGS stops, `CRFTagger` until its objective is at least as low, and
the quickest learner for as many epochs as it takes to tag the test set at least as well as
CRFsuite's model does (the median of the seeds 0, 1 and 2; the one that is run is 0). These epochs
were counted on the test set: they answer how long it takes to come as far as CRFsuite, and say
nothing of which of the two is better.

    python benchmarks/whole_process.py --repeat 3

writes the table to docs/benchmarks/whole_process.md. The corpora are downloaded, or read from the
folder that SKSTRUCT_DATA names. Needs the extra `bench`.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from conll2000 import Clock, peak_memory, read_corpus, seconds_of, write_sentences

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "whole_process.md"


def outside(t, length):
    """What stands for a token outside of the sentence, as in CRF++; None for one inside."""
    if t < 0:
        return f"_B{t}"
    return f"_B+{t - length + 1}" if t >= length else None


# Text chunking. ------------------------------------------------------------------------------

PLACES = [
    *([(offset, 0)] for offset in (-2, -1, 0, 1, 2)),
    [(-1, 0), (0, 0)],
    [(0, 0), (1, 0)],
    *([(offset, 1)] for offset in (-2, -1, 0, 1, 2)),
    *([(offset, 1), (offset + 1, 1)] for offset in (-2, -1, 0, 1)),
    *([(offset, 1), (offset + 1, 1), (offset + 2, 1)] for offset in (-2, -1, 0)),
]
CHUNKING_TEMPLATE = [
    f"U{i:02}:" + "/".join(f"%x[{row},{column}]" for row, column in places)
    for i, places in enumerate(PLACES)
]


def chunking_features(sentence, t):
    """Names and values of the features of a token."""
    for i, places in enumerate(PLACES):
        values = []
        for row, column in places:
            edge = outside(t + row, len(sentence))
            values.append(edge or sentence[t + row][column])
        yield f"U{i:02}", "/".join(values)


# Named entities. -----------------------------------------------------------------------------

SPELLING = {"isupper": str.isupper, "istitle": str.istitle, "isdigit": str.isdigit}
FUNCTIONS = {
    **{name: lambda word, test=test: test(word) or None for name, test in SPELLING.items()},
    "all": lambda word: "bias",
}
ENTITY_TEMPLATE = [
    "U:%x[0,0|all]",
    "Ulower:%x[0,0|lower]",
    "Usuffix3:%x[0,0|suffix3]",
    "Usuffix2:%x[0,0|suffix2]",
    *(f"U{name}:%x[0,0|{name}]" for name in SPELLING),
    "Utag:%x[0,1]",
    "Utag2:%x[0,1|prefix2]",
    *(
        f"U{row:+}{name}:%x[{row},{source}]"
        for row in (-1, 1)
        for name, source in (
            ("lower", "0|lower"),
            ("istitle", "0|istitle"),
            ("isupper", "0|isupper"),
            ("tag", "1"),
            ("tag2", "1|prefix2"),
        )
    ),
]


def entity_features(sentence, t):
    """Names and values of the features of a token."""
    word, tag = sentence[t]
    yield "U", "bias"
    yield "Ulower", word.lower()
    yield "Usuffix3", word[-3:]
    yield "Usuffix2", word[-2:]
    for name, test in SPELLING.items():
        if test(word):
            yield f"U{name}", "True"
    yield "Utag", tag
    yield "Utag2", tag[:2]
    for row in (-1, 1):
        edge = outside(t + row, len(sentence))
        word, tag = (edge, edge) if edge else sentence[t + row]
        yield f"U{row:+}lower", edge or word.lower()
        yield f"U{row:+}tag", tag
        yield f"U{row:+}tag2", edge or tag[:2]
        for name in ("istitle", "isupper"):
            if edge or SPELLING[name](word):
                yield f"U{row:+}{name}", edge or "True"


def feature_dicts(features, sentence):
    return [dict(features(sentence, t)) for t in range(len(sentence))]


def feature_strings(features, sentence):
    return [
        [f"{name}:{value}" for name, value in features(sentence, t)] for t in range(len(sentence))
    ]


# With these `tol`, `CRFTagger` stops soon after it has passed CRFsuite's last objective, and with
# these epochs the quickest learner has passed its F1. The page has both.
TASKS = {
    "conll2000": {
        "title": "Chunking, CoNLL-2000",
        "features": chunking_features,
        "template": CHUNKING_TEMPLATE,
        "functions": None,
        "c2": 1.0,
        "tol": 1e-4,
        "quickest": ("PerceptronTagger", 6),
    },
    "conll2002-esp": {
        "title": "Named entities, CoNLL-2002 Spanish",
        "features": entity_features,
        "template": ENTITY_TEMPLATE,
        "functions": FUNCTIONS,
        "c2": 1.0,
        "tol": 3e-4,
        "quickest": ("MIRATagger", 12),
    },
}


def run_sklearn_crfsuite(task, folder, clock):
    import sklearn_crfsuite

    clock.lap("import")
    (X, y), (X_test, y_test) = read_corpus(folder / "train"), read_corpus(folder / "test")
    clock.lap("read")
    dicts = [feature_dicts(task["features"], sentence) for sentence in X]
    clock.lap("features")
    crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0.0, c2=task["c2"]).fit(dicts, y)
    clock.lap("train")

    def tag():
        return crf.predict([feature_dicts(task["features"], sentence) for sentence in X_test])

    predicted = tag()
    clock.lap("tag")
    return tag, y_test, predicted, crf.training_log_.last_iteration["loss"]


def run_python_crfsuite(task, folder, clock):
    import pycrfsuite

    clock.lap("import")
    (X, y), (X_test, y_test) = read_corpus(folder / "train"), read_corpus(folder / "test")
    clock.lap("read")
    params = {"c1": 0.0, "c2": task["c2"]}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=params, verbose=False)
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(feature_strings(task["features"], sentence), labels)
    clock.lap("features")
    with tempfile.NamedTemporaryFile(suffix=".crfsuite") as model:
        trainer.train(model.name)
        clock.lap("train")
        tagger = pycrfsuite.Tagger()
        tagger.open(model.name)

    def tag():
        return [tagger.tag(feature_strings(task["features"], sentence)) for sentence in X_test]

    predicted = tag()
    clock.lap("tag")
    return tag, y_test, predicted, trainer.logparser.last_iteration["loss"]


def run_skstruct(estimator, task, folder, clock):
    import skstruct
    from skstruct.datasets import read_conll

    n_threads, n_epochs = 2, None
    if estimator is None:
        n_threads, (estimator, n_epochs) = 1, task["quickest"]
    kind, vectorizer_kind = getattr(skstruct, estimator), skstruct.TemplateVectorizer

    clock.lap("import")
    (X, y), (X_test, y_test) = (read_conll(folder / part) for part in ("train", "test"))
    clock.lap("read")
    vectorizer = vectorizer_kind(
        task["template"], functions=task["functions"], dtype="float32", n_jobs=n_threads
    )
    batch = vectorizer.fit_transform(X)
    clock.lap("features")
    if n_epochs is None:
        tagger = kind(l2=2 * task["c2"], fit_intercept=False, tol=task["tol"], n_jobs=n_threads)
    else:
        tagger = kind(max_iter=n_epochs, tol=None, random_state=0)
    tagger.fit(batch, y)
    clock.lap("train")

    def tag():
        return tagger.predict(vectorizer.transform(X_test))

    predicted = tag()
    clock.lap("tag")
    objective = tagger.history_["objective"][-1] if n_epochs is None else None
    return tag, y_test, predicted, objective


SYSTEMS = {
    "sklearn-crfsuite": run_sklearn_crfsuite,
    "python-crfsuite": run_python_crfsuite,
    "CRFTagger, 2 threads": partial(run_skstruct, "CRFTagger"),
    "quickest learner": partial(run_skstruct, None),
}
OURS = list(SYSTEMS)[2:]


def run_one(task, system, folder):
    """Run one system in this process and print what it took."""
    clock = Clock()
    tag, y_test, predicted, objective = SYSTEMS[system](TASKS[task], folder, clock)
    result = {
        **clock.seconds,
        "whole": sum(clock.seconds.values()),
        "memory": peak_memory(),
        "tokens per second": sum(map(len, y_test)) / seconds_of(tag),
        "objective": objective,
    }
    from skstruct.metrics import chunk_f1_score

    print(json.dumps({**result, "f1": chunk_f1_score(y_test, predicted)}))


def write_corpora(folder):
    """Write the corpora as plain text, so that no run pays for finding them."""
    from skstruct.datasets import fetch_conll2000, fetch_conll2002

    fetchers = {
        "conll2000": (fetch_conll2000, "test"),
        "conll2002-esp": (partial(fetch_conll2002, language="esp"), "testb"),
    }
    for task, (fetch, test) in fetchers.items():
        (folder / task).mkdir()
        for part, subset in (("train", "train"), ("test", test)):
            write_sentences(*fetch(subset=subset, return_X_y=True), folder / task / part)


def run_all(repeat, folder):
    """Let the systems take turns in fresh processes; a first turn of ours fills the cache."""
    write_corpora(folder)
    results = {task: {system: [] for system in SYSTEMS} for task in TASKS}
    for turn in range(repeat + 1):
        for task in TASKS:
            for system in SYSTEMS if turn else OURS:
                command = [sys.executable, __file__, "--run", task, system]
                command += ["--folder", str(folder / task)]
                run = subprocess.run(command, check=True, capture_output=True, text=True)
                if turn:
                    results[task][system].append(json.loads(run.stdout.splitlines()[-1]))
                    print(turn, task, system, results[task][system][-1], flush=True)
    return results


ROWS = {
    "import, s": ("import", "{:.2f}"),
    "read, s": ("read", "{:.2f}"),
    "features, s": ("features", "{:.2f}"),
    "train, s": ("train", "{:.2f}"),
    "tag with features, s": ("tag", "{:.2f}"),
    "whole process, s": ("whole", "{:.2f}"),
    "final objective": ("objective", "{:,.2f}"),
    "chunk F1 on test, %": ("f1", "{:.2%}"),
    "tokens to labels, tokens/s": ("tokens per second", "{:,.0f}"),
    "peak memory, MB": ("memory", "{:.0f}"),
}


def table(results):
    """Medians of one task, and the ratios of runs of the same turn."""
    yield "| | " + " | ".join(SYSTEMS) + " |"
    yield "|---|" + "---:|" * len(SYSTEMS)
    for title, (key, form) in ROWS.items():
        values = [[run[key] for run in results[system]] for system in SYSTEMS]
        cells = ["" if None in v else form.format(statistics.median(v)) for v in values]
        yield f"| {title} | " + " | ".join(cells) + " |"
    yield ""
    yield "How many times faster, and how much smaller, in the same turn (median, and range):"
    yield ""
    yield "| | than | whole process | features | tokens to labels | memory |"
    yield "|---|---|---:|---:|---:|---:|"
    for ours in OURS:
        for other in list(SYSTEMS)[:2]:
            cells = []
            for key in ("whole", "features", "tokens per second", "memory"):
                pairs = zip(results[ours], results[other], strict=True)
                ratios = [b[key] / a[key] for a, b in pairs]
                if key == "tokens per second":
                    ratios = [1 / ratio for ratio in ratios]
                span = f"({min(ratios):.1f}-{max(ratios):.1f})"
                cells.append(f"{statistics.median(ratios):.1f} {span}")
            yield f"| {ours} | {other} | " + " | ".join(cells) + " |"


def write_page(results, path):
    n_turns = len(next(iter(next(iter(results.values())).values())))
    lines = [
        "# From text to labels",
        "",
        "Whole processes with the same features: from columns of plain text to the labels of the",
        f"test set. Medians of {n_turns} runs in turn. Written by `benchmarks/whole_process.py`,",
        "whose text says what is measured.",
    ]
    for task, result in results.items():
        kind, n_epochs = TASKS[task]["quickest"]
        lines += ["", f"## {TASKS[task]['title']}", ""]
        lines += [f"The quickest learner is `{kind}` with {n_epochs} epochs.", "", *table(result)]
    lines += ["", f"Python {platform.python_version()}, {platform.machine()}, two processors."]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="turns (default 3)")
    parser.add_argument("--run", nargs=2, metavar=("TASK", "SYSTEM"), help="only this, once")
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the table")
    arguments = parser.parse_args()
    if arguments.run:
        run_one(*arguments.run, arguments.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_page(run_all(arguments.repeat, Path(folder)), arguments.page)


if __name__ == "__main__":
    main()
