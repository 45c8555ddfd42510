"""Labels of several annotators: a CRF that weighs them, beside majority vote, in simulation.

    python -m benchmarks.annotators
    python -m benchmarks.annotators --only conll2002-esp --seeds 1
    python -m benchmarks.annotators --write

Each of 500 training sentences is labelled by three simulated people. One is careful, one careless,
one takes chunks of one type for those of another, and one misses half of all chunks; in a second
crowd, another one copies most of what the careless one has written. The labels are put together by
majority vote; by the model of Dawid and Skene, a matrix of confusions for each annotator; and by
the same with a CRF for the right labels (Rodrigues et al. 2014; Simpson and Gurevych 2019), learnt
by expectation maximisation. Finished runs are kept in ``benchmarks/results/annotators``.
"""

from copy import copy
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import choose, columns, load_quick
from benchmarks.common.report import machine, mean_and_deviation, table
from benchmarks.common.runs import Records

SIZE, TEST, SEEDS, ROUNDS, QUICK_ROUNDS = 500, 1_000, 3, 5, 1
LABELLINGS, PER_SENTENCE, COPIED = 5, 3, 0.8
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
METHODS = (MAJORITY, "Dawid and Skene", "CRF", "CRF of other folds", "right labels")


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


def confusions(codes, posterior):
    """Log of the confusions of each member, (n_members, n_labels, n_labels) from right to given.

    As if one more token of each label had been labelled rightly, and one at random.
    """
    k = posterior.shape[1]
    found = np.tile(np.eye(k) + 1 / k, (len(codes), 1, 1))
    for of_member, counts in zip(codes, found, strict=True):
        known = of_member >= 0
        np.add.at(counts.T, of_member[known], posterior[known])
    return np.log(found / found.sum(axis=2, keepdims=True))


def evidence(codes, log_confusions):
    """Log-likelihood of each right label of each token, by what the members say."""
    total = np.zeros((codes.shape[1], log_confusions.shape[1]))
    for of_member, confusion in zip(codes, log_confusions, strict=True):
        known = of_member >= 0
        total[known] += confusion.T[of_member[known]]
    return total


def dawid_skene(codes, n_labels, rounds):
    """Probabilities of the labels of each token, without a model of sentences."""
    posterior = votes_of(codes, n_labels)
    posterior /= posterior.sum(axis=1, keepdims=True)
    for _ in range(10 * rounds):
        prior = posterior.mean(axis=0) + 1e-9
        scores = np.log(prior) + evidence(codes, confusions(codes, posterior))
        posterior = np.exp(scores - scores.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def in_sentences(codes, batch, labels):
    """Label sequences of codes of tokens."""
    names = [labels[code] for code in codes]
    return [names[a:b] for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]


def with_evidence(tagger, batch, scores):
    """Tagger and batch with one feature more for each label: its score, of weight one."""
    from skstruct import SequenceBatch

    both = copy(tagger)
    both.coef_ = np.hstack([tagger.coef_, np.eye(len(tagger.classes_))])
    both.n_features_in_ = both.coef_.shape[1]
    return both, SequenceBatch(sp.hstack([batch.X, scores], format="csr"), batch.offsets)


def expect(tagger, batch, codes, log_confusions, labels):
    """Probabilities of the labels of each token, and the best labellings with their weights."""
    columns = [labels.index(label) for label in tagger.classes_]
    both, batch = with_evidence(tagger, batch, evidence(codes, log_confusions)[:, columns])
    posterior = np.zeros((codes.shape[1], len(labels)))
    posterior[:, columns] = np.concatenate(both.predict_proba(batch))
    return posterior, both.predict_nbest(batch, LABELLINGS, normalize="n_best")


def fit_weighted(batch, found):
    """CRF of several labellings of each sentence, weighted by their probabilities."""
    kept = [
        (i, one.labels, one.probability)
        for i, some in enumerate(found)
        for one in some
        if one.probability > 0.01
    ]
    numbers, y, weight = zip(*kept, strict=True)
    return new_tagger().fit(batch[np.array(numbers)], list(y), sample_weight=np.array(weight))


def new_tagger():
    """The CRF of all methods."""
    from skstruct import CRFTagger

    return CRFTagger(max_iter=100)


def learn_from_crowd(batch, codes, labels, rounds, n_folds):
    """CRF with a matrix of confusions for each member, by expectation maximisation.

    With several folds, the expectations of a sentence are by a CRF that has not learnt from it.
    """
    from skstruct import Labelling

    posterior = dawid_skene(codes, len(labels), rounds)
    start = in_sentences(posterior.argmax(axis=1), batch, labels)
    found = [[Labelling(one, 0.0, 1.0)] for one in start]
    everything = np.arange(len(batch))
    splits = [(everything, everything)]
    if n_folds > 1:
        splits = list(KFold(n_folds).split(everything))
    for _ in range(rounds):
        log_confusions, before = confusions(codes, posterior), list(found)
        for train, test in splits:
            tagger = fit_weighted(batch[train], [before[i] for i in train])
            # The sentences of a fold stand side by side.
            rows = slice(batch.offsets[test[0]], batch.offsets[test[-1] + 1])
            data = batch[test], codes[:, rows]
            posterior[rows], some = expect(tagger, *data, log_confusions, labels)
            for i, labellings in zip(test, some, strict=True):
                found[i] = labellings
    return fit_weighted(batch, found)


def make_run(parts, crowd, seed, rounds):
    """F1 of the test set by each method, and of the labels that it has put together."""
    from skstruct import SequenceBatch, WordVectorizer
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
        "Dawid and Skene": dawid_skene(codes, len(labels), rounds).argmax(axis=1),
    }
    taggers = {
        name: new_tagger().fit(batch, in_sentences(found, batch, labels))
        for name, found in aggregated.items()
    }
    taggers["CRF"] = learn_from_crowd(batch, codes, labels, rounds, 1)
    taggers["CRF of other folds"] = learn_from_crowd(batch, codes, labels, rounds, 5)
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
    tasks, rounds = (QUICK, QUICK_ROUNDS) if arguments.quick else (TASKS, ROUNDS)
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
                        found = make_run(parts, crowd, seed, rounds)
                        print(runs.add({**key, "f1": found}), flush=True)
        with open_report("annotators", arguments) as report:
            write_report(runs, report)


if __name__ == "__main__":
    main()
