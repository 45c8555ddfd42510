"""Second order beside first order, edge features and reranking, on test sets.

    python -m benchmarks.second_order
    python -m benchmarks.second_order --only conll2002-esp --learners Perceptron CRF
    python -m benchmarks.second_order --write

Each learner is trained with the chains of `SYSTEMS`, on labels in IOB2 and in IOBES, constrained to
their scheme. Its parameters and its number of epochs are chosen on development data, for each chain
and scheme by itself. Then it learns from the whole training set, with each seed, and labels the
test set. Every finished run is added at once to a file in the results folder, and is not made
again; neither are those that came with the repository. `--write` makes the tables and the file of
records that the repository keeps.
"""

import json
import time
from functools import cached_property, partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.common.commandline import (
    GENERATED,
    make_parser,
    open_report,
    parse,
    results_folder,
)
from benchmarks.common.report import machine, table
from benchmarks.common.runs import Records, read_runs, write_runs
from benchmarks.common.significance import compare_seeds
from benchmarks.structure.corpora import CHARACTER_EDGES, TAG_EDGES, WORD_EDGES, without_edges
from benchmarks.which_tagger import corpora
from benchmarks.which_tagger.corpora import F1, split
from skstruct import (
    CRFTagger,
    MIRATagger,
    NBestReranker,
    PerceptronTagger,
    SAPOTagger,
    TemplateVectorizer,
)
from skstruct.datasets import spans_to_labels
from skstruct.metrics import (
    chunk_f1_score,
    extract_chunks,
    token_accuracy_score,
)

NAME = "second_order"
SEEDS, EPOCHS, N_BEST, LEVEL = 3, 8, 10, 0.05
SCHEMES = ("IOB2", "IOBES")
FIRST, SECOND, EDGES, RERANKED = "first order", "second order", "edges", "reranked"
SYSTEMS = (FIRST, SECOND, EDGES, RERANKED)
BEST = "best"  # in place of a scheme: the one that is better on development data
# Class, values to choose from, and the systems that are tried.
LEARNERS = {
    "Perceptron": (PerceptronTagger, {}, SYSTEMS),
    "SAPO": (SAPOTagger, {}, (FIRST, SECOND)),
    "MIRA": (MIRATagger, {"C": [0.1, 1.0]}, (FIRST, SECOND)),
    "CRF": (CRFTagger, {"l2": [0.03, 0.3]}, (FIRST, SECOND, EDGES)),
}
NAMES = [
    "addresses",
    "wordseg-as",
    "conll2002-esp",
    "conll2002-ned",
    "ud-english-ewt",
    "conll2000",
    "jnlpba",
]
EDGE_LINES = {"wordseg-as": CHARACTER_EDGES, "conll2000": TAG_EDGES}


class SecondOrderRecords(Records):
    """Finished runs, choices of parameters, tests, and sizes of corpora."""

    names = ("kind", "corpus", "scheme", "learner", "system", "seed")


class Runs:
    """A way to make the runs on a corpus."""

    def __init__(self, name, corpus, records, cache, *, epochs=EPOCHS, seeds=SEEDS):
        self.name, self.corpus, self.records, self.cache = name, corpus, records, cache
        self.epochs, self.seeds = epochs, seeds
        self.is_f1, self._written = corpus.measure == F1, {}

    def make_all(self, learners, systems):
        """Choose parameters, make the runs on the test set, and compare them with first order."""
        for learner, scheme in product(learners, schemes_of(self.corpus)):
            for system in LEARNERS[learner][2]:
                if system in systems:
                    for seed in range(self.n_seeds(learner)):
                        self.run(scheme, learner, system, seed)
                    if system != FIRST:
                        self.compare(scheme, learner, system)
        if self.is_f1 and SECOND in systems:
            for learner in learners:
                self.compare_best(learner)

    @cached_property
    def batches(self):
        """Batches with edge features, by part."""
        lines = [*self.corpus.template, *EDGE_LINES.get(self.name, WORD_EDGES)]
        vectorizer = TemplateVectorizer(lines).fit(self._parts["train"][0])
        return {part: vectorizer.transform(X) for part, (X, _) in self._parts.items()}

    @cached_property
    def _parts(self):
        parts = split(self.corpus.read())
        if not self.records.find(kind="sizes", corpus=self.name):
            (X, y), (X_test, _) = parts["train"], parts["test"]
            sizes = {"sequences": len(X), "tokens": sum(map(len, X)), "test": len(X_test)}
            labels = [len({a for x in written(y, s) for a in x}) for s in schemes_of(self.corpus)]
            self.records.add({"kind": "sizes", "corpus": self.name, **sizes, "labels": labels})
        return parts

    def labels(self, scheme, part):
        """Labels of a part, written in a scheme."""
        if (scheme, part) not in self._written:
            self._written[scheme, part] = written(self._parts[part][1], scheme)
        return self._written[scheme, part]

    def run(self, scheme, learner, system, seed):
        """A run on the test set, made now unless it is finished."""
        head = self._head("run", scheme, learner, system, seed)
        known = self.records.find(**head)
        if known is None:
            found = self._learn(scheme, learner, system, seed)
            known = self.records.add({**head, **found})
            print(time.strftime("%H:%M:%S"), *head.values(), found, flush=True)
        return known

    def _learn(self, scheme, learner, system, seed):
        """Results of a run; what it predicts is kept in the cache."""
        parameters = self.choose(scheme, learner, system)["parameters"]
        model = self._model(scheme, learner, system, parameters, seed)
        seconds = self._fit(model, system, "train", self.labels(scheme, "train"))
        predicted = model.predict(self._inputs(system, "test"))
        self._keep(self._head("run", scheme, learner, system, seed), model.classes_, predicted)
        score = self._score(self.labels(scheme, "test"), predicted)
        return {"score": score, "seconds": seconds, "n_iter": getattr(model, "n_iter_", None)}

    def choose(self, scheme, learner, system):
        """Parameters and number of epochs by the score on the development set."""
        head = self._head("choice", scheme, learner, system)
        known = self.records.find(**head)
        if known is None:
            if system == RERANKED:
                # The tagger is that of first order.
                parameters = self.choose(scheme, learner, FIRST)["parameters"]
                tried = [(self._dev_scores(scheme, learner, system, parameters)[-1], parameters)]
            else:
                tried = self._try_all(scheme, learner, system)
            score, parameters = max(tried, key=lambda pair: pair[0])
            known = self.records.add({**head, "parameters": parameters, "score": score})
            print(time.strftime("%H:%M:%S"), *head.values(), parameters, score, flush=True)
        return known

    def _try_all(self, scheme, learner, system):
        """Scores on the development set, with the parameters."""
        grid = LEARNERS[learner][1]
        tried = []
        for values in product(*grid.values()):
            parameters = dict(zip(grid, values, strict=True))
            scores = self._dev_scores(scheme, learner, system, parameters)
            if learner == "CRF":
                tried.append((scores[-1], parameters))
            else:
                tried += [(s, {**parameters, "max_iter": n}) for n, s in enumerate(scores, 1)]
        return tried

    def _dev_scores(self, scheme, learner, system, parameters):
        """Scores on the development set: of a fit, or of an online tagger after every epoch."""
        y, y_dev = self.labels(scheme, "fit"), self.labels(scheme, "dev")
        X, X_dev = self._inputs(system, "fit"), self._inputs(system, "dev")
        if learner == "CRF" or system == RERANKED:
            model = self._model(scheme, learner, system, parameters, 0).fit(X, y)
            return [self._score(y_dev, model.predict(X_dev))]
        # A generator, so that each epoch has an order of its own.
        drawn, scores = np.random.RandomState(0), []
        tagger = self._model(scheme, learner, system, parameters, drawn)
        classes = sorted({label for labels in y for label in labels})
        for _ in range(self.epochs):
            tagger.partial_fit(X, y, classes=classes)
            scores.append(self._score(y_dev, tagger.predict(X_dev)))
        return scores

    def _model(self, scheme, learner, system, parameters, seed):
        options = {**parameters, "constraint": scheme, "random_state": seed}
        if learner != "CRF":
            options["tol"] = None
        tagger = LEARNERS[learner][0](order=2 if system == SECOND else 1, **options)
        if system != RERANKED:
            return tagger
        cost = "chunk_f1" if self.is_f1 else "hamming"
        return NBestReranker(tagger, n_best=N_BEST, features="labels", cost=cost)

    def _inputs(self, system, part):
        batch = self.batches[part]
        return batch if system == EDGES else without_edges(batch)

    def _fit(self, model, system, part, y):
        """Fit; return the seconds of the processor, without loading compiled code."""
        X = self._inputs(system, part)
        start = process_time()
        model.fit(X, y)
        return process_time() - start

    def _score(self, y_true, y_pred):
        metric = chunk_f1_score if self.is_f1 else token_accuracy_score
        return round(100 * metric(y_true, y_pred), 3)

    def compare(self, scheme, learner, system):
        """Test the difference from first order, with each pair of seeds."""
        head = self._head("test", scheme, learner, system)
        self._test(head, (scheme, system), (scheme, FIRST))

    def compare_best(self, learner):
        """Test second order against first, each in the scheme that is better on development data.

        Where both are best in the same scheme, `compare` has tested that.
        """
        sides = [(self.best_scheme(learner, system), system) for system in (SECOND, FIRST)]
        if sides[0][0] != sides[1][0]:
            self._test(self._head("test", BEST, learner, SECOND), *sides)

    def best_scheme(self, learner, system):
        return max(SCHEMES, key=lambda scheme: self.choose(scheme, learner, system)["score"])

    def n_seeds(self, learner):
        """The optimum of a CRF needs no seed."""
        return 1 if learner == "CRF" else self.seeds

    def _test(self, head, *sides):
        """Test the difference of two systems, given with their schemes."""
        known = self.records.find(**head)
        if known is None:
            seeds, learner = range(self.n_seeds(head["learner"])), head["learner"]
            # In one scheme: the chunks stay the same.
            scheme = SCHEMES[0] if self.is_f1 else None
            labels = [
                [written(self._predictions(s, learner, system, seed), scheme) for seed in seeds]
                for s, system in sides
            ]
            test = compare_seeds(self.labels(scheme, "test"), *labels, self.corpus.measure)
            found = {"difference": 100 * test.difference, "p": test.p}
            self.records.add({**head, **found})
            print(time.strftime("%H:%M:%S"), *head.values(), found, flush=True)

    def _head(self, kind, scheme, learner, system, seed=None):
        values = (kind, self.name, scheme, learner, system, seed)
        return dict(zip(SecondOrderRecords.names, values, strict=True))

    def _path(self, head):
        name = sha256(json.dumps(list(head.values())).encode()).hexdigest()
        return self.cache / f"{name[:24]}.npz"

    def _keep(self, head, classes, predicted):
        self.cache.mkdir(parents=True, exist_ok=True)
        codes = np.searchsorted(classes, np.concatenate([list(labels) for labels in predicted]))
        np.savez_compressed(
            self._path(head), classes=classes.astype(str), codes=codes.astype(np.int16)
        )

    def _predictions(self, scheme, learner, system, seed):
        path = self._path(self._head("run", scheme, learner, system, seed))
        if not path.exists():
            # The run came with the repository, which has no predictions.
            self._learn(scheme, learner, system, seed)
        kept = np.load(path)
        ends = np.cumsum([len(labels) for labels in self.labels(scheme, "test")])[:-1]
        return [part.tolist() for part in np.split(kept["classes"][kept["codes"]], ends)]


def written(y, scheme):
    """Label sequences in a scheme; without a scheme, as they are."""
    if scheme is None:
        return [[str(label) for label in labels] for labels in y]
    return [written_anew(labels, scheme) for labels in y]


def written_anew(labels, scheme):
    # The words of a segmentation are chunks without a type.
    typed = [label if "-" in label or label == "O" else f"{label}-W" for label in map(str, labels)]
    places = [(t, t + 1) for t in range(len(typed))]
    return spans_to_labels(extract_chunks(typed), places, scheme=scheme)


def schemes_of(corpus):
    """Schemes that labels are written in; None stands for labels of tokens, which have none."""
    return SCHEMES if corpus.measure == F1 else (None,)


# Tables. ------------------------------------------------------------------------------------------


class Results:
    """Content of the tables: the finished runs of the corpora, and tests corrected by Holm."""

    def __init__(self, records, known, seeds):
        self.records, self.corpora, self.seeds = records, known, seeds
        tests = [record for record in records if record["kind"] == "test"]
        keys = [tuple(t[name] for name in SecondOrderRecords.names[1:-1]) for t in tests]
        self.corrected = dict(zip(keys, holm([t["p"] for t in tests]), strict=True))

    def lines(self):
        """Title of the corpus, its name, scheme and learner of each line with a test."""
        for name, corpus in self.corpora.items():
            for scheme, learner in product(schemes_of(corpus), LEARNERS):
                if self.find("test", name, scheme, learner, SECOND):
                    yield corpus.title, name, scheme, learner

    def find(self, kind, *entries):
        """The record of these entries."""
        return self.records.find(
            kind=kind, **dict(zip(SecondOrderRecords.names[1:], entries, strict=False))
        )

    def runs(self, name, scheme, learner, system):
        """Runs of all seeds."""
        n_seeds = 1 if learner == "CRF" else self.seeds
        return [self.find("run", name, scheme, learner, system, seed) for seed in range(n_seeds)]

    def score(self, *entries):
        """Mean test score over the seeds, with the standard deviation."""
        scores = [run["score"] for run in self.runs(*entries)]
        spread = f" ± {np.std(scores, ddof=1):.2f}" if len(scores) > 1 else ""
        return f"{np.mean(scores):.2f}{spread}"

    def gain(self, *entries):
        """Gain over first order and its corrected p; empty where nothing was tested."""
        test = self.find("test", *entries)
        return [f"{test['difference']:+.2f}", show_p(self.corrected[entries])] if test else ["", ""]

    def best(self, name, learner, system):
        """Scheme that is better on development data; None where one of them was not run."""
        choices = {s: self.find("choice", name, s, learner, system) for s in SCHEMES}
        if None in choices.values():
            return None
        return max(SCHEMES, key=lambda scheme: choices[scheme]["score"])

    def seconds(self, *entries):
        """Least processor seconds of a fit."""
        return min(run["seconds"] for run in self.runs(*entries))


def holm(pvalues):
    """p values corrected for their number, by Holm's method."""
    pvalues = np.asarray(pvalues)
    order = np.argsort(pvalues, kind="stable")
    stepped = np.maximum.accumulate(pvalues[order] * np.arange(len(order), 0, -1))
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def show_p(p):
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def size_table(r):
    rows = []
    for name, corpus in r.corpora.items():
        sizes = r.records.find(kind="sizes", corpus=name)
        if sizes:
            labels = " / ".join(map(str, sizes["labels"]))
            numbers = (f"{sizes[key]:,}" for key in ("sequences", "tokens", "test"))
            measure = "F1" if corpus.measure == F1 else "accuracy"
            rows.append([corpus.title, measure, *numbers, labels])
    head = ["", "score", "training sequences", "tokens", "test sequences", "labels"]
    return [table(head, rows, left=(0, 1))]


def order_table(r):
    rows = []
    for title, *entries in r.lines():
        dev = [r.find("choice", *entries, system)["score"] for system in (FIRST, SECOND)]
        scores = [r.score(*entries, system) for system in (FIRST, SECOND)]
        raw = show_p(r.find("test", *entries, SECOND)["p"])
        gain, corrected = r.gain(*entries, SECOND)
        row = [title, entries[1] or "", entries[2], f"{dev[0]:.2f}", f"{dev[1] - dev[0]:+.2f}"]
        rows.append([*row, *scores, gain, raw, corrected])
    head = ["", "", "", "first order, dev", "gain, dev", "first order, test", "second order, test"]
    return [table([*head, "gain, test", "p", "p, corrected"], rows, left=(0, 1, 2))]


def best_table(r):
    rows = []
    for (name, corpus), learner in product(r.corpora.items(), LEARNERS):
        schemes = [r.best(name, learner, system) for system in (FIRST, SECOND)]
        if corpus.measure != F1 or None in schemes:
            continue
        scheme = schemes[0] if schemes[0] == schemes[1] else BEST
        if r.find("test", name, scheme, learner, SECOND):
            cells = [
                [s, r.score(name, s, learner, system)]
                for s, system in zip(schemes, (FIRST, SECOND), strict=True)
            ]
            gain = r.gain(name, scheme, learner, SECOND)
            rows.append([corpus.title, learner, *cells[0], *cells[1], *gain])
    head = ["", "", "scheme", FIRST, "scheme", SECOND, "gain", "p, corrected"]
    return [table(head, rows, left=(0, 1, 2, 4))]


def alternative_table(r):
    lines = [
        (title, entries)
        for title, *entries in r.lines()
        if any(r.find("test", *entries, system) for system in (EDGES, RERANKED))
    ]
    tested = [s for s in SYSTEMS[1:] if any(r.find("test", *entries, s) for _, entries in lines)]
    rows = [
        [title, entries[1] or "", entries[2], r.score(*entries, FIRST)]
        + [cell for system in tested for cell in r.gain(*entries, system)]
        for title, entries in lines
    ]
    head = ["", "", "", FIRST, *(cell for system in tested for cell in (system, "p"))]
    return [table(head, rows, left=(0, 1, 2))]


def time_table(r):
    rows = []
    for title, *entries in r.lines():
        row = [title, entries[1] or "", entries[2]]
        for system in LEARNERS[entries[2]][2][:3]:
            if not r.find("test", *entries, system) and system != FIRST:
                continue
            epochs = r.runs(*entries, system)[0]["n_iter"]
            row += [f"{r.seconds(*entries, system):.2f}", epochs]
        per_epoch = [
            r.seconds(*entries, system) / r.runs(*entries, system)[0]["n_iter"]
            for system in (FIRST, SECOND)
        ]
        row = [*row[:7], f"{per_epoch[1] / per_epoch[0]:.1f}", *row[7:]]
        rows.append([*row, *[""] * (10 - len(row))])
    head = ["", "", "", "first order, s", "epochs", "second order, s", "epochs"]
    head += ["times as long an epoch", "edges, s", "epochs"]
    note = f"Least processor seconds of the seeds; of a CRF, iterations of L-BFGS. {machine()}"
    return [table(head, rows, left=(0, 1, 2)), note]


def choice_table(r):
    rows = []
    for title, *entries in r.lines():
        chosen = [r.find("choice", *entries, system)["parameters"] for system in (FIRST, SECOND)]
        shown = [", ".join(f"`{k}={v}`" for k, v in found.items()) for found in chosen]
        rows.append([title, entries[1] or "", entries[2], *shown])
    return [table(["", "", "", FIRST, SECOND], rows, left=(0, 1, 2, 3, 4))]


def count_table(r):
    """Numbers of tests that found a difference, by system and learner."""
    rows = []
    for system, learner in product(SYSTEMS[1:], LEARNERS):
        tests = {
            key: r.find("test", *key)["difference"]
            for key in r.corrected
            if key[2:] == (learner, system) and key[1] != BEST
        }
        if tests:
            found = [d for key, d in tests.items() if r.corrected[key] < LEVEL]
            better, worse = sum(d > 0 for d in found), sum(d < 0 for d in found)
            range_ = f"{min(tests.values()):+.2f} to {max(tests.values()):+.2f}"
            rows.append([system, learner, len(tests), better, worse, range_])
    head = ["", "", "tests", "better", "worse", "differences"]
    note = f"{len(r.corrected)} tests; better and worse at p < {LEVEL}, corrected by Holm's method."
    return [table(head, rows, left=(0, 1)), note]


TABLES = {
    "sizes": size_table,
    "counts": count_table,
    "orders": order_table,
    "best": best_table,
    "alternatives": alternative_table,
    "seconds": time_table,
    "chosen": choice_table,
}


def write_report(records, known, report, seeds):
    """Write the tables, and beside them the records."""
    results = Results(records, known, seeds)
    for name, make in TABLES.items():
        report.write(name, *make(results))
    write_runs(report.folder / "runs.jsonl", records)


def main():
    """Make runs, or write the report."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--learners", nargs="*", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    arguments = parse(parser)
    known = {name: corpora.CORPORA[name] for name in NAMES}
    quick = {"addresses": corpora.QUICK_CORPORA["addresses"]}
    with results_folder(NAME, arguments) as folder:
        kept = [] if arguments.quick else read_runs(GENERATED / NAME / "runs.jsonl")
        records = SecondOrderRecords(folder / "runs.jsonl", kept)
        make = partial(Runs, records=records, cache=folder / "cache")
        if arguments.quick:
            make("addresses", quick["addresses"], epochs=2, seeds=2).make_all(LEARNERS, SYSTEMS)
        elif not arguments.write:
            for name in arguments.only:
                make(name, known[name]).make_all(arguments.learners, arguments.systems)
        if arguments.quick or arguments.write:
            with open_report(NAME, arguments) as report:
                shown, seeds = (quick, 2) if arguments.quick else (known, SEEDS)
                write_report(records, shown, report, seeds)


if __name__ == "__main__":
    main()
