"""F1 with hidden states, with static vectors, and with vectors from text of one's own.

Finished runs are kept in ``benchmarks/results/vectors``, and so are the states of sentences.
"""

import warnings
from functools import cache
from itertools import chain, product
from time import process_time
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

from benchmarks.common.commandline import GENERATED
from benchmarks.common.report import corrected, machine, table
from benchmarks.common.runs import Records, read_runs
from benchmarks.common.significance import compare_seeds
from benchmarks.common.states import encode
from benchmarks.vectors.data import (
    OFFSETS,
    lookup,
    random_vectors,
    share_of,
    static_vectors,
    words_of,
)
from benchmarks.what_goes_in import as_words, machines, score
from benchmarks.which_tagger.child import pack_mistakes, unpack_mistakes
from benchmarks.which_tagger.corpora import ACCURACY, CORPORA, QUICK_CORPORA
from benchmarks.which_tagger.plan import TaggerRecords
from skstruct import (
    CRFTagger,
    EmbeddingVectorizer,
    SAPOTagger,
    SequenceUnion,
    SpanTaggerCV,
    VectorScaler,
    WordClusters,
    WordVectorizer,
)
from skstruct.metrics import chunk_f1_score, token_accuracy_score

N_DRAWS = 3
# Swaps of a test, of which this page has hundreds.
N_SWAPS = 1999
SOFTMAX, SPANS = "softmax of states", "and spans"
# Steps of each table, each with the one that it is compared with.
STEPS = {
    "states": {
        "words": None,
        SOFTMAX: None,
        "states": SOFTMAX,
        "words and states": "words",
        "the same, SAPO": "words and states",
        "and statistics": "words and states",
        SPANS: "and statistics",
    },
    "static": {
        "words": None,
        "vectors": "words",
        "words and vectors": "words",
        "and statistics": "words and vectors",
        SPANS: "and statistics",
    },
    "own_text": {
        "words": None,
        "words and clusters": "words",
        "words and vectors": "words",
        "and statistics": "words and vectors",
        SPANS: "and statistics",
    },
}
# Corpora of each table, and shares of their sentences; all of JNLPBA's take more than an hour.
SHARES = {
    "states": {
        "addresses": (1.0,),
        "conll2000": (0.05, 0.2, 1.0),
        "ud-english-ewt": (0.05, 0.2, 1.0),
        "jnlpba": (0.05, 0.2, 1.0),
    },
    "own_text": {"conll2002-esp": (0.05, 0.2, 1.0), "conll2002-ned": (0.05, 0.2, 1.0)},
}
SHARES["static"] = SHARES["states"]
QUICK_SHARES = {
    "states": {"addresses": (0.5, 1.0)},
    "static": {"addresses": (0.5,)},
    "own_text": {"addresses": (0.5,)},
}


class Row(NamedTuple):
    """A row of a table."""

    table: str
    corpus: str
    share: float

    @property
    def steps(self):
        """Steps. Parts of speech have no spans."""
        found = STEPS[self.table].items()
        of_tokens = CORPORA[self.corpus].measure == ACCURACY
        return {step: other for step, other in found if not (of_tokens and step == SPANS)}

    @property
    def title(self):
        """What stands in its first column."""
        return f"{CORPORA[self.corpus].title}, {self.share:.0%}"


def choose_rows(quick, corpora=None, shares=None):
    """Rows, of all or of some corpora and shares; the quickest come first."""
    rows = [
        Row(table, corpus, share)
        for table, found in (QUICK_SHARES if quick else SHARES).items()
        for corpus, given in found.items()
        for share in given
        if (corpora is None or corpus in corpora) and (shares is None or share in shares)
    ]
    return sorted(rows, key=lambda row: (row.corpus != "addresses", row.share))


class RowRecords(Records):
    """Finished runs."""

    names = ("table", "corpus", "share", "seed", "step")


def seeds_of(share):
    """Seeds of the draws: there is one draw of all sentences."""
    return range(1 if share == 1 else N_DRAWS)


@cache
def read_words(name, quick):
    """Parts of a corpus, with words as tokens."""
    corpus = (QUICK_CORPORA if quick else CORPORA)[name]
    return {part: as_words(pair) for part, pair in corpus.read().items()}


def draw(row, seed, quick):
    """Training sentences of a draw."""
    return share_of(read_words(row.corpus, quick)["train"], row.share, seed)[0]


# Models


def beside_words(vectors, tagger, **options):
    """Model of words beside vectors."""
    words = WordVectorizer(**options)
    return make_pipeline(SequenceUnion([("words", words), ("vectors", vectors)]), tagger)


def make(step, vectors, clusters=None):
    """The model of a step; `vectors` is a transformer."""
    if step == "words":
        return make_pipeline(WordVectorizer(), CRFTagger())
    if step == "words and clusters":
        return make_pipeline(WordVectorizer(clusters=clusters), CRFTagger())
    if step in ("states", "vectors"):
        return make_pipeline(vectors, CRFTagger())
    if step == "the same, SAPO":
        return beside_words(vectors, SAPOTagger(random_state=0))
    model = beside_words(vectors, CRFTagger(), label_statistics=step.startswith("and "))
    return SpanTaggerCV(model, cv=3) if step == SPANS else model


def label_by_softmax(vectors, X, y, X_test):
    """Labels of tokens one by one, by vectors alone."""
    tagger = CRFTagger().fit(vectors.fit_transform(X).X, np.concatenate(y))
    predicted = tagger.predict(vectors.transform(X_test).X)
    return np.split(predicted, np.cumsum(list(map(len, X_test)))[:-1])


def random_states(X):
    """States that mean nothing."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(len(tokens), 32)).astype(np.float32) for tokens in X]


@cache
def own_clusters(name, quick):
    """Clusters and vectors of words, from the training sentences without their labels."""
    return WordClusters(random_state=0).fit(read_words(name, quick)["train"][0])


def vectors_for(row, folder, quick):
    """Transformer to the vectors of the draws of a row, and clusters of words, if any."""
    if row.table == "own_text":
        found = own_clusters(row.corpus, quick)
        vectors = EmbeddingVectorizer(found.vectors_, offsets=OFFSETS, normalize=str.lower)
        return vectors, found.clusters_
    if row.table == "static":
        parts = read_words(row.corpus, quick).values()
        make_vectors = random_vectors if quick else static_vectors
        return lookup(make_vectors(words_of(*(X for X, _ in parts)))), None
    if quick:
        states = FunctionTransformer(random_states)
    else:
        drawn = [draw(row, seed, quick)[0] for seed in seeds_of(row.share)]
        sentences = chain(read_words(row.corpus, quick)["test"][0], *drawn)
        states = encode(folder / "states" / row.corpus, sentences)
    return make_pipeline(states, VectorScaler()), None


# Runs


def score_of(name, y_true, y_pred):
    """F1, or accuracy for parts of speech, in per cent."""
    measure = token_accuracy_score if CORPORA[name].measure == ACCURACY else chunk_f1_score
    return 100 * float(measure(y_true, y_pred))


def make_run(name, step, drawn, vectors, clusters, test):
    """Fit a step, and score it."""
    start = process_time()
    if step == SOFTMAX:
        predicted = label_by_softmax(vectors, *drawn, test[0])
    else:
        predicted = make(step, clone(vectors), clusters).fit(*drawn).predict(test[0])
    predicted = list(map(list, predicted))
    return {
        "score": score_of(name, test[1], predicted),
        "seconds": round(process_time() - start, 1),
        "mistakes": pack_mistakes(test[1], predicted),
    }


def make_runs(records, rows, folder, quick):
    """Make the runs of some rows that are missing."""
    for row in rows:
        heads = [
            {**row._asdict(), "seed": seed, "step": step}
            for seed, step in product(seeds_of(row.share), row.steps)
        ]
        missing = [head for head in heads if not records.find(**head)]
        if not missing:
            continue
        vectors, clusters = vectors_for(row, folder, quick)
        test = read_words(row.corpus, quick)["test"]
        for head in missing:
            drawn = draw(row, head["seed"], quick)
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore")
                run = make_run(row.corpus, head["step"], drawn, vectors, clusters, test)
            records.add({**head, **run, "machine": machine()})
            print(*head.values(), f"{run['score']:.2f}, {run['seconds']} s", flush=True)


# Report


def complete_rows(records, rows):
    """Runs by step, of the rows that have all their runs."""
    found = {
        row: {
            step: [
                records.find(**row._asdict(), seed=seed, step=step) for seed in seeds_of(row.share)
            ]
            for step in row.steps
        }
        for row in rows
    }
    return {row: runs for row, runs in found.items() if None not in chain(*runs.values())}


def test_steps(rows, quick):
    """Corrected p of each step against the one that it is compared with, on the same draws."""
    tests = {}
    for row, runs in rows.items():
        y_test = read_words(row.corpus, quick)["test"][1]
        labels = {
            step: [unpack_mistakes(run["mistakes"], y_test) for run in found]
            for step, found in runs.items()
        }
        for step, other in row.steps.items():
            if other is not None:
                sides = y_test, labels[step], labels[other]
                options = {"paired": True, "n_resamples": N_SWAPS}
                found = compare_seeds(*sides, CORPORA[row.corpus].measure, **options)
                tests[row, step] = found.p
    return corrected(tests)


def spacy_scores(row, records):
    """Scores of spaCy without vectors, where all sentences were learnt from."""
    runs = records.runs_of(row.corpus, "spaCy") if row.share == 1 else ()
    return {"spaCy": [run["score"] for run in runs]} if runs else {}


def write_report(records, rows, report, quick):
    """Write the tables of the scores, and of what each step gains."""
    every = complete_rows(records, rows)
    p = test_steps(every, quick)
    others = [] if quick else read_runs(GENERATED / "which_tagger" / "runs.jsonl")
    others = TaggerRecords(records.path.with_name("which_tagger.jsonl"), others)
    for name, steps in STEPS.items():
        of_table = {row: runs for row, runs in every.items() if row.table == name}
        shown = [*steps, *(["spaCy"] if name == "states" else [])]
        compared = {step: other for step, other in steps.items() if other is not None}
        scores, gains = [], []
        for row, runs in of_table.items():
            found = {step: [run["score"] for run in some] for step, some in runs.items()}
            if name == "states":
                found |= spacy_scores(row, others)
            scores.append([row.title, *map(score, map(found.get, shown))])
            pairs = compared.items()
            gains.append(
                [row.title, *(gain_of(found, *pair, p.get((row, pair[0]))) for pair in pairs)]
            )
        if of_table:
            report.write(name, table(["", *shown], scores), machines(of_table))
            report.write(f"{name}_gains", table(["", *compared], gains))


def gain_of(found, step, other, p):
    """Text on what a step gains, with its p; blank where it has no runs."""
    if step not in found:
        return ""
    return f"{np.mean(found[step]) - np.mean(found[other]):+.2f} ({p:.3f})"
