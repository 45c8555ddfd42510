"""How well wrong labels are found: three kinds of damage in five corpora.

    python -m benchmarks.label_errors
    python -m benchmarks.label_errors --only conll2002-esp
    python -m benchmarks.label_errors --write
    python -m benchmarks.label_errors --look conll2002-esp
    python -m benchmarks.label_errors --cleanlab conll2002-esp

Of the chunks of 1,000 sentences, 5 % are damaged: another type, another end, or no chunk at all.
The records of `find_label_errors` are compared with what was damaged; beside them are tokens by the
probability of their label, and sequences by the lowest of these, which is how cleanlab scores them
by default. Finished runs are kept in ``benchmarks/results/label_errors``. ``--cleanlab``, which
needs ``pip install cleanlab``, gives the same probabilities to cleanlab itself.
"""

from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import columns, load_quick
from benchmarks.common.report import machine, table
from benchmarks.common.runs import Records

SIZE, QUICK_SIZE, SHARE, FOLDS = 1_000, 100, 0.05, 5
FIRST = (50, 200)
KINDS = ("type", "boundary", "missing")


def load_all_addresses():
    """The packaged addresses."""
    from skstruct.datasets import load_addresses

    return {"train": load_addresses(return_X_y=True)}


TASKS = {
    "conll2000": columns("conll2000", train="train"),
    "conll2002-esp": columns("conll2002-esp", train="train"),
    "conll2002-ned": columns("conll2002-ned", train="train"),
    "jnlpba": columns("jnlpba", train="train"),
    "addresses": load_all_addresses,
}
QUICK = {"addresses": load_quick}


class Runs(Records):
    """Finished runs."""

    names = ("corpus", "kind")


def damage(y, kind, rng):
    """Labels of which some chunks are damaged, and the damaged places (sequence, start, end)."""
    from skstruct.datasets import convert_labels
    from skstruct.metrics import extract_chunks

    chunks = [(i, *chunk) for i, labels in enumerate(y) for chunk in extract_chunks(labels)]
    types = sorted({chunk[3] for chunk in chunks})
    chosen = rng.permutation(len(chunks))[: max(1, int(SHARE * len(chunks)))]
    ends = {(i, start): end for i, start, end, _ in chunks}
    damaged, places = [list(labels) for labels in y], []
    for i, start, end, name in (chunks[k] for k in np.sort(chosen)):
        new, stop = name, end
        if kind == "type" and len(types) > 1:
            new = types[rng.integers(len(types))]
            while new == name:
                new = types[rng.integers(len(types))]
        elif kind == "boundary":
            longer = end < len(y[i]) and (i, end) not in ends
            if not longer and end - start == 1:
                continue
            stop = end + 1 if longer else end - 1
        elif kind == "missing":
            new = None
        else:
            continue
        for t in range(start, max(end, stop)):
            inside = new is not None and t < stop
            damaged[i][t] = f"{'B' if t == start else 'I'}-{new}" if inside else "O"
        places.append((i, start, max(end, stop)))
    return convert_labels(damaged, source="IOB2", target="IOB2").labels, places


def in_iob2(y):
    """Labels in one scheme, of which damage can be told."""
    from skstruct.datasets import convert_labels

    return convert_labels(y, target="IOB2").labels


def new_model():
    """The tagger that has doubts."""
    from sklearn.pipeline import make_pipeline

    from skstruct import CRFTagger, WordVectorizer

    return make_pipeline(WordVectorizer(), CRFTagger(max_iter=50))


def of_other_folds(X, y):
    """Yield each sequence's number, labels and probabilities of them, by the other folds."""
    from sklearn.model_selection import KFold

    for train, test in KFold(FOLDS).split(X):
        model = new_model().fit([X[i] for i in train], [y[i] for i in train])
        proba = model.predict_proba([X[i] for i in test])
        for i, p in zip(test.tolist(), proba, strict=True):
            yield i, model.classes_.tolist(), p


def measure(X, y, kind):
    """Measures of one corpus and one kind of damage."""
    from skstruct.model_selection import find_label_errors

    y = in_iob2(y)
    damaged, places = damage(y, kind, np.random.default_rng(0))
    errors = find_label_errors(new_model(), X, damaged, cv=FOLDS)
    is_wrong = np.zeros(len(X), bool)
    is_wrong[[i for i, *_ in places]] = True
    of_sequences = np.ones(len(X))
    for error in reversed(errors):
        of_sequences[error.sequence] = np.nan_to_num(error.score, nan=1.0)
    plain, tokens = np.ones(len(X)), []
    for i, classes, p in of_other_folds(X, damaged):
        code = {label: k for k, label in enumerate(classes)}
        scores = [p[t, code[x]] if x in code else 1.0 for t, x in enumerate(damaged[i])]
        plain[i] = min(scores)
        tokens += [(score, i, t) for t, score in enumerate(scores)]
    inside = {(i, t) for i, start, end in places for t in range(start, end)}
    tokens = [(i, t) in inside for _, i, t in sorted(tokens)]
    met = [any((e.sequence, t) in inside for t in range(e.start, e.end)) for e in errors]
    right = [
        hit and list(y[e.sequence][e.start : e.end]) == e.suggested
        for e, hit in zip(errors, met, strict=True)
    ]
    n_spans = sum(label[0] == "B" for labels in damaged for label in labels)
    return {
        "damaged": len(places),
        "sequences": float(average_precision_score(is_wrong, -of_sequences)),
        "plain": float(average_precision_score(is_wrong, -plain)),
        "chance": float(is_wrong.mean()),
        "chance of a span": len(places) / max(1, n_spans),
        **{f"spans {n}": float(np.mean(met[:n])) for n in FIRST},
        **{f"right {n}": float(np.mean(right[:n])) for n in FIRST},
        **{f"tokens {n}": float(np.mean(tokens[:n])) for n in FIRST},
    }


def write_report(runs, report):
    """Write both tables."""
    sequences, spans = [], []
    for run in runs:
        head, found = [run["corpus"], run["kind"], run["damaged"]], run["found"]
        sequences.append([*head, *(f"{found[k]:.2f}" for k in ("sequences", "plain", "chance"))])
        keys = [f"{what} {n}" for n in FIRST for what in ("spans", "right", "tokens")]
        spans.append([*head, *(f"{found[key]:.2f}" for key in (*keys, "chance of a span"))])
    head = ["", "damage", "damaged"]
    note = f"{FOLDS} folds. {machine()}"
    names = ["by records", "by the lowest probability", "chance"]
    report.write("label_sequences", table([*head, *names], sequences, left=(0, 1)), note)
    names = [f"{what} {n}" for n in FIRST for what in ("first", "right of first", "tokens, first")]
    report.write("label_spans", table([*head, *names, "chance"], spans, left=(0, 1)), note)


def look(corpus, n_sentences=4_000, n_records=50):
    """Print the first records of a corpus as it is, to be read."""
    from sklearn.pipeline import make_pipeline

    from skstruct import CRFTagger, WordVectorizer
    from skstruct.model_selection import find_label_errors

    X, y = TASKS[corpus]()["train"]
    X = [[t if isinstance(t, str) else t[0] for t in tokens] for tokens in X[:n_sentences]]
    model = make_pipeline(WordVectorizer(), CRFTagger(max_iter=60))
    for error in find_label_errors(model, X, y[:n_sentences])[:n_records]:
        tokens, place = X[error.sequence], slice(error.start, error.end)
        before = tokens[max(0, error.start - 6) : error.start]
        after = tokens[error.end : error.end + 5]
        print(" ".join(error.given), "->", " ".join(error.suggested))
        print("   ", " ".join([*before, "[", *tokens[place], "]", *after]))


def compare_with_cleanlab(X, y):
    """Print average precisions by the lowest probability of a label, here and by cleanlab."""
    from cleanlab.token_classification.rank import get_label_quality_scores

    y = in_iob2(y)
    for kind in KINDS:
        damaged, places = damage(y, kind, np.random.default_rng(0))
        labels = sorted({label for one in damaged for label in one})
        code = {label: k for k, label in enumerate(labels)}
        codes = [[code[label] for label in one] for one in damaged]
        proba = [np.ones((len(x), len(labels))) for x in X]
        for i, classes, p in of_other_folds(X, damaged):
            # A label that a fold lacks has the probability one here, too.
            proba[i][:, [code[label] for label in classes]] = p
        pairs = zip(proba, codes, strict=True)
        ours = np.array([p[np.arange(len(one)), one].min() for p, one in pairs])
        theirs, _ = get_label_quality_scores(codes, proba)
        is_wrong = np.zeros(len(X), bool)
        is_wrong[[i for i, *_ in places]] = True
        found = (average_precision_score(is_wrong, -scores) for scores in (ours, theirs))
        print(
            kind, *(f"{score:.4f}" for score in found), f"apart {np.abs(ours - theirs).max():.1g}"
        )


def read_part(read, size):
    """Words and labels of some sentences of a corpus."""
    X, y = read()["train"]
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:size])
    X = [[t if isinstance(t, str) else t[0] for t in X[i]] for i in chosen]
    return X, [y[i] for i in chosen]


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__)
    parser.add_argument("--look", choices=list(TASKS), help="only print the first records of this")
    parser.add_argument("--cleanlab", choices=list(TASKS), help="only compare with cleanlab")
    parser.add_argument("--only", nargs="+", choices=list(TASKS), help="only these corpora")
    parser.add_argument("--write", action="store_true", help="only write tables of finished runs")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    arguments = parse(parser)
    if arguments.look:
        look(arguments.look)
        return
    if arguments.cleanlab:
        compare_with_cleanlab(*read_part(TASKS[arguments.cleanlab], SIZE))
        return
    tasks, size = (QUICK, QUICK_SIZE) if arguments.quick else (TASKS, SIZE)
    with results_folder("label_errors", arguments) as folder:
        runs = Runs(folder / "runs.jsonl")
        for corpus in () if arguments.write else arguments.only or list(tasks):
            X, y = read_part(tasks[corpus], size)
            for kind in KINDS:
                if runs.find(corpus=corpus, kind=kind) is None:
                    found = measure(X, y, kind)
                    record = {"corpus": corpus, "kind": kind, "damaged": found.pop("damaged")}
                    print(runs.add({**record, "found": found}), flush=True)
        with open_report("label_errors", arguments) as report:
            write_report(runs, report)


if __name__ == "__main__":
    main()
