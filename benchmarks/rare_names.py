"""F1 of names where examples are few: the best labelling, spans chosen for F1, and costs.

    python -m benchmarks.rare_names
    python -m benchmarks.rare_names --only jnlpba 0.02 0.05
    python -m benchmarks.rare_names --write

Learns from 2 to 100 % of the training sentences of CoNLL-2002 (Spanish, Dutch) and JNLPBA, drawn at
random, and finds the names of the test set. `l2`, the threshold of spans and the cost of a missed
name are chosen on the drawn sentences alone, by cross-validation; from 30 % on, by one fifth of
them. Finished runs are kept in ``benchmarks/results``, cheap ones are made first, and `--only`
names a corpus and maybe shares. `--write` makes the tables of those that are complete.
"""

import base64
import tempfile
import warnings
import zlib
from functools import cached_property
from itertools import product
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, ShuffleSplit

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import TWO_FILES, columns, load_quick
from benchmarks.common.features import NEIGHBOUR_SHAPES, SPELLING, WORDS
from benchmarks.common.report import corrected, machine, mean_and_deviation, table
from benchmarks.common.runs import Records
from skstruct import CRFTagger, SAPOTagger, SequenceBatch, TemplateVectorizer
from skstruct.metrics.chunks import count_chunks_of_sequences, extract_chunks

NAME = "rare_names"
SHARES, SEEDS = (0.02, 0.05, 0.1, 0.3, 1.0), 5
# Shares of the table that the page "Which tagger?" shows.
SUMMARY = (0.05, 1.0)
# From this share on, one part of the sentences is held out for all choices.
HOLD_OUT_FROM = 0.3
L2, COSTS = (0.03, 0.1, 0.3, 1.0), (1.0, 2.0, 4.0)
THRESHOLDS = np.linspace(0.05, 0.95, 19)
N_SWAPS = 1999
TUTORIAL = {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "feature.possible_transitions": True}
BEST, SPANS = "best labelling", "spans"


TITLES = {
    "conll2002-esp": "Spanish",
    "conll2002-ned": "Dutch",
    "jnlpba": "JNLPBA",
    "addresses": "Addresses",
}
CORPORA = {
    "conll2002-esp": columns("conll2002-esp", train="train", test="testb"),
    "conll2002-ned": columns("conll2002-ned", train="train", test="testb"),
    "jnlpba": columns("jnlpba", **TWO_FILES),
}


class Part(NamedTuple):
    """Sentences with features and labels."""

    X: SequenceBatch
    y: list

    def take(self, which):
        """Select sentences."""
        return Part(self.X[which], [self.y[i] for i in which])


class Corpus:
    """Training and test part of a corpus, with features."""

    def __init__(self, read):
        self._read = read

    @cached_property
    def parts(self):
        """The parts, with a column for each attribute of the training part."""
        parts = self._read()
        vectorizer = TemplateVectorizer(WORDS + SPELLING + NEIGHBOUR_SHAPES).fit(parts["train"][0])
        return {name: Part(vectorizer.transform(X), list(y)) for name, (X, y) in parts.items()}

    def draw(self, share, seed):
        """A share of the training sentences, and the test set, with the features of the former."""
        train, test = self.parts["train"], self.parts["test"]
        n = len(train.y)
        chosen = np.random.default_rng(seed).permutation(n)[: round(share * n)]
        drawn = train.take(np.sort(chosen))
        used = np.unique(drawn.X.X.indices)
        return tuple(
            Part(SequenceBatch(part.X.X[:, used], part.X.offsets), part.y) for part in (drawn, test)
        )


# -------------------------------------------------------------------------------- what is learnt


class Answers:
    """Chunks that a fitted tagger finds in a part: counts of correct, predicted and true ones."""

    def __init__(self, tagger, part):
        self.labelling = count_chunks_of_sequences(part.y, tagger.predict(part.X), "conlleval")
        *_, types, self._places, _ = tagger._chosen_spans(part.X, THRESHOLDS)
        true = [set(extract_chunks(labels)) for labels in part.y]
        self._is_true = np.array(
            [(a, b, types[kind]) in true[i] for _, i, a, b, kind in self._places.tolist()], bool
        )

    def spans(self, threshold):
        """Counts of the spans chosen at a threshold, for each sentence."""
        chosen = self._places[:, 0] == np.searchsorted(THRESHOLDS, threshold)
        counts = self.labelling.copy()
        for column, which in enumerate((chosen & self._is_true, chosen)):
            counts[:, column] = np.bincount(self._places[which, 1], minlength=len(counts))
        return counts


def f1(counts):
    """F1 of summed counts, in per cent."""
    correct, predicted, true = np.moveaxis(np.asarray(counts), -1, 0)
    return 200 * correct / np.maximum(predicted + true, 1)


class Chooser:
    """Scores of taggers on drawn sentences that they have not learnt from."""

    def __init__(self, part, share, seed):
        n = len(part.y)
        if share < HOLD_OUT_FROM:
            folds = KFold(3, shuffle=True, random_state=seed)
        else:
            folds = ShuffleSplit(1, test_size=0.2, random_state=seed)
        self._part, self._folds, self._known = part, list(folds.split(np.zeros(n))), {}

    def scores(self, make, *key):
        """F1 of the best labelling, and of spans at each threshold, of ``make(*key)``."""
        if (make, key) not in self._known:
            of_labelling, of_spans = 0, 0
            for learn, rest in self._folds:
                learn, rest = self._part.take(learn), self._part.take(rest)
                found = Answers(make(*key).fit(learn.X, learn.y), rest)
                of_labelling = of_labelling + found.labelling.sum(axis=0)
                of_spans = of_spans + np.array([found.spans(t).sum(axis=0) for t in THRESHOLDS])
            self._known[make, key] = f1(of_labelling), f1(of_spans)
        return self._known[make, key]

    def best(self, make, keys, kind):
        """The key with the best score, and its threshold."""

        def score(key):
            of_labelling, of_spans = self.scores(make, *key)
            return of_labelling if kind == BEST else of_spans.max()

        key = max(keys, key=score)
        return key, float(THRESHOLDS[np.argmax(self.scores(make, *key)[1])])


def make_crf(l2, cost):
    """A CRF with a cost of missed names, or none."""
    return CRFTagger(l2=l2, label_cost={"missed": cost} if cost else None)


def make_sapo():
    """SAPO with its defaults."""
    return SAPOTagger(random_state=0)


def run_crf(drawn, test, share, seed):
    """Yield each way to use a CRF: title, what was chosen, and counts on the test set."""
    chooser, fitted = Chooser(drawn, share, seed), {}

    def answers(*key):
        if key not in fitted:
            fitted[key] = Answers(make_crf(*key).fit(drawn.X, drawn.y), test)
        return fitted[key]

    default = 1.0, 0.0
    _, threshold = chooser.best(make_crf, [default], SPANS)
    yield "CRFTagger", {}, answers(*default).labelling
    yield "CRFTagger, spans", {"threshold": threshold}, answers(*default).spans(threshold)
    penalties = [(l2, 0.0) for l2 in L2]
    for kind, end in ((BEST, ""), (SPANS, ", spans")):
        plain, threshold = chooser.best(make_crf, penalties, kind)
        costly = [plain, *((plain[0], cost) for cost in COSTS)]
        for title, found in (("CRFTagger, l2", [plain]), ("CRFTagger, l2, cost", costly)):
            key, threshold = chooser.best(make_crf, found, kind)
            chosen = {"l2": key[0], "cost": key[1]}
            if kind == BEST:
                yield title, chosen, answers(*key).labelling
            else:
                chosen["threshold"] = threshold
                yield title + end, chosen, answers(*key).spans(threshold)


def run_sapo(drawn, test, share, seed):
    """Yield the two ways to use SAPO."""
    _, threshold = Chooser(drawn, share, seed).best(make_sapo, [()], SPANS)
    answers = Answers(make_sapo().fit(drawn.X, drawn.y), test)
    yield "SAPOTagger", {}, answers.labelling
    yield "SAPOTagger, spans", {"threshold": threshold}, answers.spans(threshold)


def run_crfsuite(drawn, test, share, seed):
    """Yield CRFsuite with its defaults and with the penalties of sklearn-crfsuite's tutorial."""
    import pycrfsuite

    for title, parameters in (("CRFsuite", {}), ("CRFsuite, tutorial", TUTORIAL)):
        trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=parameters, verbose=False)
        for items, labels in zip(as_strings(drawn.X), drawn.y, strict=True):
            trainer.append(items, labels)
        with tempfile.TemporaryDirectory() as folder:
            trainer.train(f"{folder}/model")
            tagger = pycrfsuite.Tagger()
            tagger.open(f"{folder}/model")
            predicted = [tagger.tag(items) for items in as_strings(test.X)]
            tagger.close()
        yield title, {}, count_chunks_of_sequences(test.y, predicted, "conlleval")


def as_strings(batch):
    """Yield the attribute strings of each sentence."""
    indptr, indices = batch.X.indptr.tolist(), list(map(str, batch.X.indices.tolist()))
    for a, b in zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True):
        yield [indices[indptr[t] : indptr[t + 1]] for t in range(a, b)]


GROUPS = {
    run_crf: (
        *("CRFTagger", "CRFTagger, spans", "CRFTagger, l2", "CRFTagger, l2, cost"),
        *("CRFTagger, l2, spans", "CRFTagger, l2, cost, spans"),
    ),
    run_sapo: ("SAPOTagger", "SAPOTagger, spans"),
    run_crfsuite: ("CRFsuite", "CRFsuite, tutorial"),
}
# In the order of the tables.
SYSTEMS = [system for group in (run_crfsuite, run_sapo, run_crf) for system in GROUPS[group]]
EVERYTHING = "CRFTagger, l2, cost, spans"
# Titles, where they are not that of the system, and pairs of systems: others are compared with the
# best labelling of the same tagger.
COMPARED = [
    ("", "SAPOTagger, spans", "SAPOTagger"),
    ("", "CRFTagger, spans", "CRFTagger"),
    *(("", f"CRFTagger, l2, {how}", "CRFTagger, l2") for how in ("cost", "spans", "cost, spans")),
    *((f"{EVERYTHING}, beside {other}", EVERYTHING, other) for other in ("CRFTagger", "CRFsuite")),
]


# --------------------------------------------------------------------------------------- the runs


class RareRecords(Records):
    """Finished runs."""

    names = ("corpus", "share", "seed", "system")

    def counts(self, corpus, share, system, seeds):
        """Counts of each sentence of the test set, by seed; None where a run is missing."""
        runs = [self.find(corpus=corpus, share=share, seed=s, system=system) for s in seeds]
        return None if None in runs else np.array([unpack(run["counts"]) for run in runs])


def pack(counts):
    """Counts of sentences as a string."""
    return base64.b64encode(zlib.compress(np.asarray(counts, "<u1").tobytes(), 9)).decode()


def unpack(text):
    """Counts of sentences, shape (n_sentences, 3)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<u1").reshape(-1, 3).astype(int)


def seeds_of(share, n_seeds):
    """Seeds of a share: all sentences are the same with each."""
    return range(1 if share == 1 else n_seeds)


def make_runs(records, corpora, chosen, n_seeds):
    """Make the runs that are missing of corpora and shares, the smallest shares first."""
    corpora = {name: Corpus(read) for name, read in corpora.items()}
    for share in sorted({share for _, share in chosen}):
        for seed in seeds_of(share, n_seeds):
            for name in corpora:
                if (name, share) in chosen:
                    make_cell(records, name, corpora[name], share, seed)


def make_cell(records, name, corpus, share, seed):
    """Make the runs of a corpus, a share and a seed, unless they are finished."""
    head, data = {"corpus": name, "share": share, "seed": seed}, None
    for group, systems in GROUPS.items():
        if all(records.find(**head, system=system) for system in systems):
            continue
        data = data or corpus.draw(share, seed)
        start = process_time()
        for system, found, counts in group(*data, share, seed):
            score = float(f1(counts.sum(axis=0)))
            record = {**head, "system": system, "chosen": found, "f1": score}
            records.add({**record, "counts": pack(counts), "machine": machine()})
            print(f"{name}, {share:.0%}, seed {seed}, {system}: {score:.2f} {found}", flush=True)
        print(f"{process_time() - start:.0f} s", flush=True)


# ------------------------------------------------------------------------------------- the report


def permuted_p(counts, others, seed=0):
    """Two-sided p of the difference of two systems, with sentences swapped with all their seeds.

    The difference is that of the mean F1 over the seeds; counts have the shape (n_seeds,
    n_sentences, 3).
    """
    rng, shift = np.random.default_rng(seed), others - counts
    found = abs(float(np.mean(f1(counts.sum(axis=1)) - f1(others.sum(axis=1)))))
    n_as_large = 0
    for _ in range(N_SWAPS):
        swapped = rng.random(counts.shape[1]) < 0.5
        moved = shift[:, swapped].sum(axis=1)
        first, second = counts.sum(axis=1) + moved, others.sum(axis=1) - moved
        n_as_large += abs(np.mean(f1(first) - f1(second))) >= found - 1e-9
    return (1 + n_as_large) / (1 + N_SWAPS)


def write_report(records, corpora, shares, n_seeds, report):
    """Write the tables of all corpora, with the shares that are complete."""
    complete = {}
    for place in product(corpora, shares):
        seeds = seeds_of(place[1], n_seeds)
        found = {system: records.counts(*place, system, seeds) for system in SYSTEMS}
        if all(counts is not None for counts in found.values()):
            complete[place] = found
    if not complete:
        raise SystemExit("No share of a corpus is complete.")
    p = corrected(
        {
            (place, *pair): permuted_p(found[pair[0]], found[pair[1]])
            for place, found in complete.items()
            for _, *pair in COMPARED
        }
    )
    scores, gains = [], []
    for name in corpora:
        places = [place for place in complete if place[0] == name]
        if places:
            title, head = f"### {TITLES[name]}", ["", *(f"{share:.0%}" for _, share in places)]
            rows = [[s, *(mean_score(complete[place][s]) for place in places)] for s in SYSTEMS]
            scores += [title, table(head, rows)]
            rows = [
                [
                    words or system,
                    *(
                        f"{gain(complete[place], system, other):+.2f} "
                        f"({p[place, system, other]:.4f})"
                        for place in places
                    ),
                ]
                for words, system, other in COMPARED
            ]
            gains += [title, table(head, rows)]
    report.write("scores", *scores, machines(records))
    report.write("gains", *gains)
    chosen = [choices(records, *place, seeds_of(place[1], n_seeds)) for place in complete]
    head = ["", "share", "`l2`", "cost", "threshold", "with default `l2`"]
    report.write("chosen", table(head, chosen, left=(0,)))
    places = [place for place in complete if place[1] in SUMMARY]
    head = ["", *(f"{TITLES[name]}, {share:.0%}" for name, share in places)]
    rows = [[s, *(f"{mean_f1(complete[place][s]):.2f}" for place in places)] for s in SYSTEMS]
    report.write("summary", table(head, rows))


def mean_f1(counts):
    """Mean F1 over the seeds."""
    return f1(counts.sum(axis=1)).mean()


def mean_score(counts):
    """Mean F1, with the standard deviation over the seeds."""
    return mean_and_deviation(f1(counts.sum(axis=1)))


def gain(found, system, other):
    """Difference of the mean F1 of two systems."""
    return mean_f1(found[system]) - mean_f1(found[other])


def choices(records, name, share, seeds):
    """Row of what was chosen by the seeds, for the CRF with everything."""

    def values(system, key):
        found = [
            records.find(corpus=name, share=share, seed=s, system=system)["chosen"][key]
            for s in seeds
        ]
        low, high = min(found), max(found)
        return f"{low:g}" if low == high else f"{low:g} to {high:g}"

    all_of_it = [values(EVERYTHING, key) for key in ("l2", "cost", "threshold")]
    return [TITLES[name], f"{share:.0%}", *all_of_it, values("CRFTagger, spans", "threshold")]


def machines(records):
    """Sentence on the machines."""
    return " ".join(sorted({record["machine"] for record in records}))


def selection(only, corpora, shares):
    """Pairs of a corpus and a share, as chosen by the options `--only`."""
    return {
        (name, share)
        for name, *found in only or [[name] for name in corpora]
        for share in (map(float, found) if found else shares)
    }


def main():
    """Make runs, or write the report."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", action="append", metavar=("CORPUS", "SHARE"))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    arguments = parse(parser)
    # That a tagger finds no names is what is measured.
    warnings.filterwarnings("ignore", "Predictions for .* hold .* chunks", UserWarning)
    if arguments.quick:
        corpora, shares, n_seeds = {"addresses": load_quick}, (0.5, 1.0), 2
    else:
        corpora, shares, n_seeds = CORPORA, SHARES, SEEDS
    with results_folder(NAME, arguments) as folder:
        records = RareRecords(folder / "runs.jsonl")
        if arguments.quick or not arguments.write:
            make_runs(records, corpora, selection(arguments.only, corpora, shares), n_seeds)
        if arguments.quick or arguments.write:
            with open_report(NAME, arguments) as report:
                write_report(records, corpora, shares, n_seeds, report)


if __name__ == "__main__":
    main()
