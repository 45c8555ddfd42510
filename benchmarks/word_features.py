"""Scores of the ready-made features on test sets, with a CRF.

    python -m benchmarks.word_features

`WordVectorizer` with its defaults and `CRFTagger`, on phrase chunking (CoNLL-2000), Spanish
named entities (CoNLL-2002) and English parts of speech (EWT). The strength of the penalty is
chosen on a development set: that of the corpus, or for CoNLL-2000 the last fifth of the training
set. The test set is used once. Finished tasks are kept in ``benchmarks/results``.
"""

from pathlib import Path
from time import process_time

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import TWO_FILES, columns, load_quick
from benchmarks.common.report import machine, table
from benchmarks.common.runs import append_run, read_runs
from skstruct import CRFTagger, WordVectorizer
from skstruct.metrics import chunk_f1_score, token_accuracy_score

PENALTIES = (0.2, 0.5, 1.0)


def read_chunking():
    """CoNLL-2000, with the last fifth of the training set as development set."""
    parts = columns("conll2000", 2, **TWO_FILES)()
    X, y = parts["train"]
    first = len(X) * 4 // 5
    dev = {"learn": (X[:first], y[:first]), "dev": (X[first:], y[first:])}
    return {**dev, **parts}


def read_quick():
    """Packaged addresses, a fifth of the training set for development."""
    parts = load_quick()
    X, y = parts["train"]
    return {"train": (X, y), "dev": (X[60:], y[60:]), "test": parts["test"]}


ENTITIES = (chunk_f1_score, "chunk F1")
WORDS = (token_accuracy_score, "accuracy")
TASKS = {
    "CoNLL-2000, chunks, words and tags": (read_chunking, *ENTITIES),
    "CoNLL-2002 Spanish, names, words": (
        columns("conll2002-esp", train="train", dev="testa", test="testb"),
        *ENTITIES,
    ),
    "EWT, parts of speech, words": (
        columns("ud-english-ewt", dev="dev", **TWO_FILES),
        *WORDS,
    ),
}
QUICK = {"addresses": (read_quick, *ENTITIES)}


def fit(part, l2):
    """Vectoriser and tagger, fitted, with the seconds that each took."""
    start = process_time()
    vectorizer = WordVectorizer()
    batch = vectorizer.fit_transform(part[0])
    middle = process_time()
    tagger = CRFTagger(l2=l2).fit(batch, part[1])
    return vectorizer, tagger, middle - start, process_time() - middle


def score(fitted, part, metric):
    """Score of a part of a corpus."""
    vectorizer, tagger, *_ = fitted
    return metric(part[1], tagger.predict(vectorizer.transform(part[0])))


def run(read, metric, name):
    """Row of the table without its title."""
    parts = read()
    scores = {}
    for l2 in PENALTIES:
        scores[l2] = score(fit(parts.get("learn", parts["train"]), l2), parts["dev"], metric)
        print(l2, scores[l2], flush=True)
    best = max(scores, key=scores.get)
    fitted = fit(parts["train"], best)
    final = score(fitted, parts["test"], metric)
    vectorizer, _, making, learning = fitted
    return [
        name,
        best,
        f"{100 * scores[best]:.2f}",
        f"{100 * final:.2f}",
        f"{vectorizer.n_features_:,}",
        f"{making:.1f}",
        f"{learning:.0f}",
    ]


def main():
    """Run all tasks, and write the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--results", type=Path, help="folder of finished tasks")
    arguments = parse(parser)
    rows = []
    with results_folder("word_features", arguments) as folder:
        finished = {row[0]: row for row in read_runs(folder / "rows.jsonl")}
        for title, task in (QUICK if arguments.quick else TASKS).items():
            if title not in finished:
                append_run(folder / "rows.jsonl", finished.setdefault(title, [title, *run(*task)]))
            rows.append(finished[title])
            print(rows[-1], flush=True)
    head = ["task", "score", "`l2`", "dev", "test", "features", "vectorise, s", "train, s"]
    with open_report("word_features", arguments) as report:
        note = f"Seconds are those of processors, and rough. {machine()}"
        report.write("scores", table(head, rows, left=(0, 1)), note)


if __name__ == "__main__":
    main()
