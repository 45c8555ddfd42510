"""Labels of several annotators: a CRF that weighs them, beside majority vote, in simulation.

    python -m benchmarks.annotators
    python -m benchmarks.annotators --only conll2002-esp --seeds 1
    python -m benchmarks.annotators --write

Each of 500 training sentences is labelled by three simulated people. One is careful, one careless,
one takes chunks of one type for those of another, and one misses half of all chunks; in a second
crowd, another one copies most of what the careless one has written. The labels are put together by
majority vote; by the model of Dawid and Skene, a matrix of confusions for each annotator; and by
`AnnotatorCRF`, which has a CRF for the right labels beside these. Finished runs are kept in
``benchmarks/results/annotators``.
"""

from pathlib import Path

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import choose, columns, load_quick
from benchmarks.common.report import machine, mean_and_deviation, table
from benchmarks.common.runs import Records

SIZE, TEST, SEEDS = 500, 1_000, 3
PER_SENTENCE, COPIED = 3, 0.8
# Shares of the chunks that are changed at random, left out, or given to another type.
KINDS = {
    "careful": {"changed": 0.05},
    "careless": {"changed": 0.35},
    "biased": {"changed": 0.05, "other type": 0.7},
    "missing": {"left out": 0.5},
}
CROWDS = {
    "four kinds": ("careful", "careless", "biased", "missing"),
    "one copies": ("careful", "careless", "copy", "biased", "missing"),
}


def load_all_addresses():
    """The packaged addresses."""
    from skstruct.datasets import load_addresses

    X, y = load_addresses(return_X_y=True)
    return {"train": (X[:400], y[:400]), "test": (X[400:], y[400:])}


TASKS = {
    "conll2000": columns("conll2000", train="train", test="test"),
    "conll2002-esp": columns("conll2002-esp", train="train", test="testb"),
    "conll2002-ned": columns("conll2002-ned", train="train", test="testb"),
    "jnlpba": columns("jnlpba", train="train", test="test"),
    "addresses": load_all_addresses,
}
QUICK = {"addresses": load_quick}
MAJORITY = "majority vote"
METHODS = (MAJORITY, "Dawid and Skene", "AnnotatorCRF", "right labels")


class Runs(Records):
    """Finished runs."""

    names = ("corpus", "crowd", "seed")


# --------------------------------------------------------------------------------------- the crowd


def annotate(y, kind, types, rng):
    """Labels that an annotator of a kind gives; `types` are sorted, the commonest first."""
    from skstruct.datasets import spans_to_labels
    from skstruct.metrics import extract_chunks

    shares = KINDS[kind]
    changed, left_out, biased = (shares.get(k, 0) for k in ("changed", "left out", "other type"))
    found = []
    for labels in y:
        spans = []
        for start, end, name in extract_chunks(labels):
            draw = rng.random()
            if name == types[1 % len(types)] and rng.random() < biased:
                name = types[0]
            elif draw < left_out:
                continue
            elif draw < changed:
                which = rng.integers(3)
                if which == 0:
                    continue
                if which == 1:
                    name = types[rng.integers(len(types))]
                elif end - start > 1:
                    end -= 1
                elif start > (spans[-1][1] if spans else 0):
                    start -= 1
            spans.append((start, end, name))
        found.append(spans_to_labels(spans, [(t, t + 1) for t in range(len(labels))]))
    return found


def make_crowd(y, members, rng):
    """Labels of all sentences by each member, and who has labelled which (n_sentences, n_members).

    A copy has the labels of the member before for most of the sentences.
    """
    from collections import Counter

    from skstruct.metrics import extract_chunks

    counted = Counter(chunk[2] for labels in y for chunk in extract_chunks(labels))
    types = [name for name, _ in counted.most_common()]
    given = []
    for kind in members:
        if kind == "copy":
            own = annotate(y, "careless", types, rng)
            pairs = zip(given[-1], own, strict=True)
            given.append([a if rng.random() < COPIED else b for a, b in pairs])
        else:
            given.append(annotate(y, kind, types, rng))
    order = rng.random((len(y), len(members))).argsort(axis=1)
    return given, order < PER_SENTENCE


def codes_of(given, present, labels):
    """Codes of what each member says of each token, -1 where nothing."""
    number = {label: code for code, label in enumerate(labels)}
    return np.array(
        [
            [
                number[label] if here else -1
                for sentence, here in zip(of_member, mask, strict=True)
                for label in sentence
            ]
            for of_member, mask in zip(given, present.T, strict=True)
        ]
    )


# -------------------------------------------------------------------------- putting labels together


def votes_of(codes, n_labels):
    """Number of votes for each label of each token."""
    return sum(codes[:, :, None] == np.arange(n_labels)).astype(float)


def dawid_skene(codes, n_labels):
    """Codes of the labels that the model of Dawid and Skene finds, token by token."""
    from skstruct.learning.crowd import Answers
    from skstruct.learning.crowd import dawid_skene as learn

    annotators, rows = np.nonzero(codes >= 0)
    shape = codes.shape[1], len(codes), n_labels
    answers = Answers.of(rows, annotators, codes[annotators, rows], shape)
    prior = np.eye(n_labels) + 1 / n_labels
    return learn(answers, np.ones(codes.shape[1]), prior).argmax(axis=1)


def in_sentences(codes, batch, labels):
    """Label sequences of codes of tokens."""
    names = [labels[code] for code in codes]
    return [names[a:b] for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]


def new_tagger():
    """The CRF of the other methods, with the weights that `AnnotatorCRF` has."""
    from skstruct import CRFTagger

    every = {"all_possible_states": True, "all_possible_transitions": True}
    return CRFTagger(max_iter=100, **every)


def make_run(parts, crowd, seed):
    """F1 of the test set by each method, and of the labels that it has put together."""
    from skstruct import AnnotatorCRF, SequenceBatch, WordVectorizer
    from skstruct.metrics import chunk_f1_score

    rng = np.random.default_rng(seed)
    X, y = choose(parts["train"], SIZE, rng)
    X_test, y_test = (some[:TEST] for some in parts["test"])
    vectorizer = WordVectorizer()
    batches = vectorizer.fit_transform(words_of(X)), vectorizer.transform(words_of(X_test))
    batch, test = (SequenceBatch(one.X, one.offsets) for one in batches)
    y = in_iob2(y)
    given, present = make_crowd(y, CROWDS[crowd], rng)
    labels = sorted({label for of_member in (y, *given) for one in of_member for label in one})
    codes = codes_of(given, present, labels)
    votes = votes_of(codes, len(labels))
    # Ties are broken by chance.
    majority = (votes + 0.5 * rng.random(votes.shape)).argmax(axis=1)
    aggregated = {
        MAJORITY: majority,
        "Dawid and Skene": dawid_skene(codes, len(labels)),
    }
    taggers = {
        name: new_tagger().fit(batch, in_sentences(found, batch, labels))
        for name, found in aggregated.items()
    }
    labellings = [
        [one if here else None for one, here in zip(of_sentence, mask, strict=True)]
        for *of_sentence, mask in zip(*given, present, strict=True)
    ]
    taggers["AnnotatorCRF"] = AnnotatorCRF().fit(batch, labellings)
    taggers["right labels"] = new_tagger().fit(batch, y)
    return {
        name: float(chunk_f1_score(y_test, tagger.predict(test)))
        for name, tagger in taggers.items()
    }


def words_of(X):
    """Words of sentences whose tokens may have tags."""
    return [[token if isinstance(token, str) else token[0] for token in tokens] for tokens in X]


def in_iob2(y):
    """Labels in the scheme that the crowd writes."""
    from skstruct.datasets import convert_labels

    return convert_labels(list(y), target="IOB2").labels


# -------------------------------------------------------------------------------------- the report


def write_report(runs, report):
    """Write F1 of all methods, and what they gain over majority vote."""
    cells = {}
    for run in runs:
        cells.setdefault((run["corpus"], run["crowd"]), []).append(run["f1"])
    scores, gains = [], []
    for cell, found in cells.items():
        f1 = {name: 100 * np.array([run[name] for run in found]) for name in METHODS}
        scores.append([*cell, *(mean_and_deviation(f1[name], ".1f") for name in METHODS)])
        others = [name for name in METHODS if name != MAJORITY]
        differences = (f1[name] - f1[MAJORITY] for name in others)
        gains.append([*cell, *(mean_and_deviation(values, ".1f") for values in differences)])
    n_seeds = min(map(len, cells.values()))
    note = f"{n_seeds} seeds, means and standard deviations. {machine()}"
    head = ["", "crowd"]
    report.write("scores", table([*head, *METHODS], scores, left=(0, 1)), note)
    report.write("gains", table([*head, *others], gains, left=(0, 1)), note)


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), help="only these corpora")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"default {SEEDS}")
    parser.add_argument("--write", action="store_true", help="only write tables of finished runs")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    arguments = parse(parser)
    tasks = QUICK if arguments.quick else TASKS
    crowds = list(CROWDS)[:1] if arguments.quick else list(CROWDS)
    n_seeds = 0 if arguments.write else 1 if arguments.quick else arguments.seeds
    with results_folder("annotators", arguments) as folder:
        runs = Runs(folder / "runs.jsonl")
        for seed in range(n_seeds):
            for corpus in arguments.only or list(tasks):
                parts = tasks[corpus]()
                for crowd in crowds:
                    key = {"corpus": corpus, "crowd": crowd, "seed": seed}
                    if runs.find(**key) is None:
                        found = make_run(parts, crowd, seed)
                        print(runs.add({**key, "f1": found}), flush=True)
        with open_report("annotators", arguments) as report:
            write_report(runs, report)


if __name__ == "__main__":
    main()
