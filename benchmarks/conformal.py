"""Promises of `ConformalTagger` over 200 random splits of four corpora and of a group of persons.

    python -m benchmarks.conformal
    python -m benchmarks.conformal --only conll2002-esp

A tagger is trained once for each corpus, on 4,000 sentences. The probabilities of spans and of
labellings in sentences that it has not seen are kept in ``benchmarks/results/conformal``. Each
split chooses thresholds on one half of these sentences, as `ConformalTagger` does, and counts what
is missed in the other.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import betabinom

from benchmarks.common.cache import load_or_make
from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import columns, data_folder, load_quick
from benchmarks.common.report import machine, table

TRAINING, HELD_OUT = 4_000, 2_000
SPLITS, QUICK_SPLITS = 200, 20
ALPHAS = {
    "missed": (0.1, 0.05, 0.02),
    "missed_by_sequence": (0.1, 0.05, 0.02),
    "labelling": (0.2, 0.1, 0.05),
}
# Persons are few.
ALPHAS_OF_PERSONS = {"missed_by_sequence": (0.25, 0.05)}
MOST_LABELLINGS = 100


class Task(NamedTuple):
    """A corpus, read when it is needed, and what is known of it beforehand."""

    title: str
    read: object
    max_chunks: int = 20
    groups: object = None
    alphas: dict = ALPHAS


class Scored(NamedTuple):
    """What a tagger says of sequences that it has not seen."""

    chunks: object  # `Truth` of the true chunks
    labellings: object  # `Truth` of the true labellings
    candidates: np.ndarray  # (n, 2), sequence and probability of each span
    sets: np.ndarray  # (n_sequences, MOST_LABELLINGS), probabilities of the best labellings
    groups: np.ndarray


def read_persons():
    """Activities of persons: all of the training users, and the others as sequences held out."""
    from benchmarks.search_based.tasks import read_hapt

    parts = read_hapt(data_folder())
    (X, y), (X_test, y_test) = parts["dev"], parts["test"]
    return {"train": parts["train"], "test": ([*X, *X_test], [*y, *y_test])}


def read_users():
    """The person of each sequence that is held out."""
    from benchmarks.search_based.tasks import read_hapt_users

    users = read_hapt_users(data_folder())
    return np.array([*users["dev"], *users["test"]])


TASKS = {
    "conll2000": Task("chunks, English", columns("conll2000", train="train", test="test"), 40),
    "conll2002-esp": Task("names, Spanish", columns("conll2002-esp", train="train", test="testb")),
    "conll2002-ned": Task("names, Dutch", columns("conll2002-ned", train="train", test="testb")),
    "jnlpba": Task("names, biomedical", columns("jnlpba", train="train", test="test")),
    "hapt": Task(
        "activities, by person",
        read_persons,
        groups=read_users,
        alphas=ALPHAS_OF_PERSONS,
    ),
}
# `max_chunks` of the second table, at this `alpha`.
BOUNDS, ALPHA_OF_BOUNDS = (20, 10, 5), 0.05
QUICK_ALPHAS = dict.fromkeys(ALPHAS, (0.5,))
QUICK = {"addresses": Task("addresses", load_quick, alphas=QUICK_ALPHAS)}


def model_of(X, y):
    """Train a tagger, on words or on numbers."""
    from sklearn.pipeline import make_pipeline

    from skstruct import CRFTagger, WordVectorizer

    steps = [CRFTagger()] if isinstance(X[0], np.ndarray) else [WordVectorizer(), CRFTagger()]
    return make_pipeline(*steps).fit(X, y)


def words_of(X):
    """Words of sentences whose tokens may have tags."""
    if isinstance(X[0], np.ndarray):
        return X
    return [[token if isinstance(token, str) else token[0] for token in tokens] for tokens in X]


def scored(model, X, y, groups=None):
    """Probabilities of all that is true, and of all candidates: `Scored`."""
    from skstruct.conformal import FLOORS, ConformalTagger
    from skstruct.inspection.models import find_tagger

    numbers, truths = np.arange(len(X)), []
    for risk in ("missed", "labelling"):
        tagger = ConformalTagger(model, risk=risk, max_labellings=MOST_LABELLINGS)
        tagger.estimator_ = model
        truth = tagger._truth(X, y, numbers)
        if risk == "missed":
            # Below, candidates are too many to keep them all.
            truth.probabilities[truth.probabilities <= FLOORS[0]] = 0.0
        truths.append(truth)
    fitted = find_tagger(model)
    X = fitted.transform(X)
    *_, places, probabilities = fitted.tagger._search_spans(X, least=FLOORS[0])
    sets = np.zeros((len(y), MOST_LABELLINGS))
    for row, some in zip(sets, fitted.tagger.predict_nbest(X, MOST_LABELLINGS), strict=True):
        row[: len(some)] = [one.probability for one in some]
    groups = np.arange(len(y)) if groups is None else groups
    return Scored(*truths, np.column_stack([places[:, 1], probabilities]), sets, groups)


def score_task(task):
    """Train on a corpus and score what is held out."""
    parts = task.read()
    rng = np.random.default_rng(0)

    def some(part, size):
        X, y = parts[part]
        chosen = np.sort(rng.permutation(len(X))[:size])
        return words_of([X[i] for i in chosen]), [y[i] for i in chosen]

    if task.groups is not None:
        X, y = parts["test"]
        return scored(model_of(*parts["train"]), X, y, task.groups())
    model = model_of(*some("train", TRAINING))
    return scored(model, *some("test", HELD_OUT))


def measure_split(found, tagger, calibration, test):
    """Measures of one half, with the threshold of the other; those of its own threshold last."""
    is_whole = tagger.risk == "labelling"
    truth = found.labellings if is_whole else found.chunks
    in_calibration, in_test = (np.isin(found.groups, half) for half in (calibration, test))
    held_out = truth.select(in_calibration[truth.sequences])
    threshold = tagger._threshold(held_out, found.groups, "all")
    other = truth.select(in_test[truth.sequences])
    missed = other.probabilities < threshold
    _, owner = np.unique(found.groups[other.sequences], return_inverse=True)
    shares = np.bincount(owner, missed) / np.bincount(owner)
    if is_whole:
        sets = found.sets[in_test]
        return {
            "missed": float(shares.mean()),
            "size": float((sets >= threshold).sum(axis=1).mean()),
            "covered": int(len(shares) - missed.sum()),
        }
    rows = found.candidates[in_test[found.candidates[:, 0].astype(int)], 1]
    costs = missed if tagger.risk == "missed" else shares
    n_candidates = int((rows >= threshold).sum())
    _, of_held_out = np.unique(found.groups[held_out.sequences], return_inverse=True)
    own, plain = (
        own_threshold(some, of_some, tagger)
        for some, of_some in ((other, owner), (held_out, of_held_out))
    )
    n_own = max(1, int((rows >= own).sum()))
    return {
        "missed": float(costs.mean()),
        "missed chunks": int(missed.sum()),
        "chunks": len(missed),
        "by_sequence": float(shares.mean()),
        "size": n_candidates / len(missed),
        "ratio": n_candidates / n_own,
        "plain": int((rows >= plain).sum()) / n_own,
    }


def own_threshold(truth, owner, tagger):
    """The threshold that keeps `alpha` on these very sequences, and nothing for the next one."""
    weights = np.ones(len(owner)) / len(owner)
    if tagger.risk != "missed":
        weights = 1 / np.bincount(owner)[owner] / (owner.max() + 1)
    order = np.argsort(truth.probabilities)
    below = np.cumsum(weights[order]) - weights[order]
    return truth.probabilities[order][below <= tagger.alpha][-1]


def measure(found, task, risk, alpha, n_splits):
    """Measures of all splits; the message of an error where there is one."""
    from skstruct import ConformalTagger

    tagger = ConformalTagger(
        None, risk=risk, alpha=alpha, max_chunks=task.max_chunks, max_labellings=MOST_LABELLINGS
    )
    units = np.unique(found.groups)
    splits, half = [], len(units) // 2
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(units)
        try:
            splits.append(measure_split(found, tagger, order[:half], order[half:]))
        except ValueError as error:
            return str(error)
    return splits


def row_of(task, found, risk, alpha, splits):
    """Row of the table."""
    head = [task.title, risk, alpha]
    if isinstance(splits, str):
        smallest = splits.partition("smallest alpha that can be kept is ")[2].split(";")[0]
        note = f"refused: {smallest.rstrip('.')} at least" if smallest else "refused: too few"
        return [*head, note, *[""] * 6]
    missed = np.array([split["missed"] for split in splits])
    error = missed.std(ddof=1) / np.sqrt(len(missed))
    n = len(np.unique(found.groups)) // 2
    mean, least = missed.mean(), alpha - 2 / (n + 1)
    if risk == "missed":
        # A share of chunks in all, and not a mean of shares.
        mean = share_of_chunks(splits)
        least = alpha - 2 * (1 - alpha) * task.max_chunks * len(splits) / sum_of(splits, "chunks")
    verdict = "yes" if least - 3 * error <= mean <= alpha + 3 * error else "no"
    if risk == "labelling":
        m, rank = len(np.unique(found.groups)) - n, int(np.floor((n + 1) * alpha))
        low, high = betabinom(m, n + 1 - rank, rank).ppf([0.025, 0.975])
        inside = np.mean([low <= split["covered"] <= high for split in splits])
        more = ["", f"{inside:.0%}", ""]
    else:
        share = share_of_chunks(splits)
        if risk == "missed":
            share = sum_of(splits, "by_sequence") / len(splits)
        more = [f"{share:.3f}", median_of(splits, "ratio"), median_of(splits, "plain")]
    size = sum_of(splits, "size") / len(splits)
    return [*head, f"{mean:.4f} ± {error:.4f}", f"{least:.3f}", verdict, f"{size:.1f}", *more]


def median_of(splits, name):
    """Median of a measure over the splits, as text."""
    return f"{np.median([split[name] for split in splits]):.2f}"


def sum_of(splits, name):
    """Sum of a measure over the splits."""
    return sum(split[name] for split in splits)


def share_of_chunks(splits):
    """Share of all chunks that is missed."""
    return sum_of(splits, "missed chunks") / sum_of(splits, "chunks")


HEAD = [
    *(
        "",
        "risk",
        "alpha",
        "missed",
        "least",
        "kept",
        "size",
        "other share",
        "ratio or band",
        "uncorrected",
    ),
]


def row_of_bound(task, found, bound, n_splits):
    """Row of a corpus with another `max_chunks`."""
    alpha = ALPHA_OF_BOUNDS
    _, most = np.unique(found.chunks.sequences, return_counts=True)
    splits = measure(found, task._replace(max_chunks=bound), "missed", alpha, n_splits)
    head = [task.title, bound, int(most.max())]
    if isinstance(splits, str):
        return [*head, "refused", "", ""]
    size = sum_of(splits, "size") / len(splits)
    missed = f"{share_of_chunks(splits):.4f}"
    return [*head, missed, f"{size:.1f}", median_of(splits, "ratio")]


def shifted_rows(folder):
    """Rows of a threshold that is used on text of another source than that it was chosen on."""
    from sklearn.frozen import FrozenEstimator

    from skstruct import ConformalTagger

    read = columns("conll2002-esp", train="train", testa="testa", testb="testb")
    parts = {part: (words_of(X), y) for part, (X, y) in read().items()}
    X, y = parts["train"]
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:TRAINING])
    model = load_or_make(
        folder / "spanish.joblib", lambda: model_of([X[i] for i in chosen], [y[i] for i in chosen])
    )
    X, y = parts["testa"]
    tagger = ConformalTagger(FrozenEstimator(model), alpha=0.1, max_chunks=20).fit(X[::2], y[::2])
    others, labels = parts["testb"]
    sources = {
        "the other half of the same days": (X[1::2], y[1::2]),
        "other days": (others, labels),
        "other days, in small letters": ([[w.lower() for w in x] for x in others], labels),
        "other days, in capitals": ([[w.upper() for w in x] for x in others], labels),
    }
    rows = []
    for title, (X_new, y_new) in sources.items():
        measures = tagger.measure(X_new, y_new)
        rows.append([title, *(f"{value:.3f}" for value in measures.values())])
    return rows


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), help="only these corpora")
    parser.add_argument("--results", type=Path, help="folder of the scores")
    arguments = parse(parser)
    tasks = QUICK if arguments.quick else TASKS
    tasks = {name: tasks[name] for name in arguments.only or tasks}
    n_splits = QUICK_SPLITS if arguments.quick else SPLITS
    rows, of_bounds = [], []
    with results_folder("conformal", arguments) as folder:
        for name, task in tasks.items():
            make = partial(score_task, task)
            found = load_or_make(folder / f"{name}.joblib", make)
            for risk, alphas in task.alphas.items():
                for alpha in alphas:
                    splits = measure(found, task, risk, alpha, n_splits)
                    rows.append(row_of(task, found, risk, alpha, splits))
                    print(*rows[-1], sep="\t", flush=True)
            if "missed" in task.alphas:
                of_bounds += [row_of_bound(task, found, bound, n_splits) for bound in BOUNDS]
        with open_report("conformal", arguments) as report:
            note = f"{n_splits} splits. {machine()}"
            report.write("splits", table(HEAD, rows, left=(0, 1, 5)), note)
            head = ["", "max_chunks", "most chunks", "missed", "size", "ratio"]
            report.write("bounds", table(head, of_bounds), note)
            if not (arguments.quick or arguments.only):
                head = ["tested on", "missed", "missed, by sequence", "candidates a chunk"]
                report.write("sources", table(head, shifted_rows(folder)))


if __name__ == "__main__":
    main()
