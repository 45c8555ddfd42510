"""Vectors beside words: time, memory and F1, and how their scale was chosen.

    python -m benchmarks.vectors
    python -m benchmarks.vectors --quick

Vectors are the static table of the package wordllama: means of the pieces of a word, of unit
length. Install it with `pip install wordllama tokenizers safetensors`. Hidden states are those of
`benchmarks.common.states`, measured where its packages are installed. A quick run draws vectors at
random. `--only` measures one part.

Fits take turns in one process, and a figure is a ratio of seconds of the processor, so that other
programs on the machine disturb it little. Memory is the peak of a process of its own.
"""

import importlib.util
import json
import warnings
from itertools import chain
from itertools import product as product_of
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import data_folder, load_quick, read_columns
from benchmarks.common.processes import peak_memory, run_child, seconds_of
from benchmarks.common.report import machine, mean_and_deviation, table
from benchmarks.common.states import PACKAGE, encode
from benchmarks.which_tagger.corpora import read_addresses
from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    EmbeddingVectorizer,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SequenceUnion,
    SpanTaggerCV,
    VectorScaler,
    WordVectorizer,
)
from skstruct.metrics import chunk_f1_score, token_accuracy_score

SIZE, OFFSETS = 256, (-1, 0, 1)
STATES = 384
CORPORA = ("conll2000", "ud-english-ewt", "jnlpba")
# Mean squared lengths that are tried for vectors at three offsets.
SCALES = (0.5, 1, 2, 4, 8)
PARTS = ("fits", "dense", "memory", "crfsuite", "sentence", "scale", "scores", "states")
N_DRAWS = 3
LEARNERS = {
    "`CRFTagger()`": CRFTagger(),
    "`PerceptronTagger`, 5 epochs": PerceptronTagger(max_iter=5, tol=None, random_state=0),
    "`MIRATagger`, 5 epochs": MIRATagger(max_iter=5, tol=None, random_state=0),
    "`AROWTagger`, 5 epochs": AROWTagger(max_iter=5, random_state=0),
    "`SAPOTagger`, 5 epochs": SAPOTagger(max_iter=5, tol=None, random_state=0),
    '`CRFTagger(solver="sgd")`, 5 epochs': CRFTagger(
        solver="sgd", max_iter=5, tol=None, random_state=0
    ),
    '`CRFTagger(solver="sag")`, 5 epochs': CRFTagger(solver="sag", max_iter=5, random_state=0),
    '`CRFTagger(solver="oeg")`, 5 epochs': CRFTagger(solver="oeg", max_iter=5, random_state=0),
    "`SDCACRF`, 5 epochs": SDCACRF(max_iter=5, random_state=0),
}


# Data


def read(name, part):
    """Words and labels of a part of a corpus; of packaged addresses for None."""
    if name is None:
        X, y = load_quick()[part]
    elif name == "addresses":
        X, y = read_addresses()[part]
    else:
        X, y = read_columns(data_folder() / name, {part: part}, 1)[part]
    return [[token if isinstance(token, str) else token[0] for token in s] for s in X], list(y)


def share_of(pair, share, seed=0):
    """A random share of the sentences, and the others."""
    X, y = pair
    order = np.random.default_rng(seed).permutation(len(X))
    cut = int(share * len(X))
    return [([X[i] for i in part], [y[i] for i in part]) for part in (order[:cut], order[cut:])]


def random_vectors(words, n=SIZE):
    """Vectors that mean nothing, for times."""
    words = sorted(set(words))
    rows = np.random.default_rng(0).normal(size=(len(words), n)).astype(np.float32) / np.sqrt(n)
    return dict(zip(words, rows, strict=True))


def static_vectors(words):
    """Vectors of words from the table of wordllama: means of their pieces, of unit length."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(importlib.util.find_spec("wordllama").origin).parent
    (pieces,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(next((folder / "tokenizers").glob("*.json"))))
    words, found = sorted(set(words)), {}
    for word, encoded in zip(
        words, tokenizer.encode_batch(words, add_special_tokens=False), strict=True
    ):
        vector = pieces[encoded.ids].astype(np.float32).mean(axis=0)
        length = np.linalg.norm(vector)
        if length > 0:
            found[word] = vector / length
    return found


def words_of(*parts):
    """All words of some sentences."""
    return set(chain.from_iterable(chain.from_iterable(parts)))


def lookup(vectors, scale="auto"):
    """Vectors of a word and of both neighbours."""
    return EmbeddingVectorizer(vectors, offsets=OFFSETS, scale=scale)


def both(vectors, **options):
    """Words beside vectors."""
    return SequenceUnion([("words", WordVectorizer(**options)), ("vectors", lookup(vectors))])


# Time and memory


def fitted(tagger, X, y):
    """Seconds of the processor of a fit, and the tagger."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = process_time()
        tagger.fit(X, y)
    return process_time() - start, tagger


def measure_fits(name, share, vectors_for, repeat):
    """Rows of learners: seconds with words, and how many times as long it takes with vectors."""
    (X, y), _ = share_of(read(name, "train"), share)
    vectors = vectors_for(words_of(X))
    words, vectors = WordVectorizer().fit_transform(X), lookup(vectors).fit_transform(X)
    inputs = {"words": words, "both": SequenceBatch.hstack([words, vectors])}
    rows = []
    for title, tagger in LEARNERS.items():
        seconds = {kind: [] for kind in inputs}
        n_iter = {}
        for turn in range(repeat + 1):
            for kind, batch in inputs.items():
                taken, done = fitted(tagger, batch, y)
                n_iter[kind] = int(done.n_iter_)
                # The first fit compiles, or reads compiled code.
                if turn > 0:
                    seconds[kind].append(taken)
        ratio = median(b / a for a, b in zip(*seconds.values(), strict=True))
        iterations = f"{n_iter['words']} / {n_iter['both']}"
        rows.append([title, f"{min(seconds['words']):.2f}", f"{ratio:.1f}", iterations])
    note = f"{len(X):,} sentences, {words.n_rows:,} tokens, {words.n_features:,} features of words"
    return rows, note


def measure_dense(n_rows, n_labels, repeat):
    """Rows of learners: an epoch over dense vectors, in multiples of one product."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, STATES)).astype(np.float32)
    lengths = [20] * (n_rows // 20)
    batch, weights = SequenceBatch.from_lengths(X, lengths), rng.normal(size=(STATES, n_labels))
    y = [rng.integers(n_labels, size=20).tolist() for _ in lengths]
    double = X.astype(np.float64)
    with threadpool_limits(1):
        product = min(seconds_of(lambda: double @ weights, 1, process_time) for _ in range(20))
    rows = []
    for title, tagger in LEARNERS.items():
        best, made = {}, {}
        # The first turn compiles, or reads compiled code.
        for turn, n in product_of(range(repeat + 1), (2, 7)):
            seconds, done = fitted(clone(tagger).set_params(max_iter=n), batch, y)
            made[n], best[n] = done.n_iter_, min(seconds, best.get(n, seconds) if turn > 1 else 1e9)
        # Of the difference, what is done once is no part.
        epoch = (best[7] - best[2]) / max(made[7] - made[2], 1)
        rows.append([title.partition(",")[0], f"{1e3 * epoch:.0f}", f"{epoch / product:.1f}"])
    return rows, f"{n_rows:,} tokens, {STATES} numbers each in float32, {n_labels} labels"


def measure_memory(kind, name, n_sentences, vectors_for):
    """Memory of a fit to words, or to words and vectors, and of the table and the scores, in MiB.

    In this process. Code and data are loaded before.
    """
    X, y = (part[:n_sentences] for part in read(name, "train"))
    vectors = vectors_for(words_of(X))
    features = WordVectorizer() if kind == "words" else both(vectors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_pipeline(clone(features), CRFTagger(max_iter=2)).fit(X[:20], y[:20])
        before = peak_memory()
        model = make_pipeline(features, CRFTagger(max_iter=20)).fit(X, y)
    n_labels, n_tokens = len(model[-1].classes_), sum(map(len, X))
    table = 4 * SIZE * len(vectors) / 2**20
    return [peak_memory() - before, table, 8 * n_labels * n_tokens / 2**20, len(X), n_tokens]


def measure_one(system, name, n_sentences):
    """Seconds, iterations and memory of a fit to words and vectors, in this process."""
    X, y = (part[:n_sentences] for part in read(name, "train"))
    vectors = random_vectors(words_of(X))
    before, start = peak_memory(), perf_counter()
    if system == "skstruct":
        tagger = make_pipeline(both(vectors), CRFTagger(max_iter=50)).fit(X, y)
        n_iter = int(tagger[-1].n_iter_)
    else:
        from sklearn_crfsuite import CRF

        def features(sentence):
            around = ["", *sentence, ""]
            return [
                {f"w{place}:{word}": 1.0 for place, word in enumerate(around[t : t + 3])}
                | {
                    f"v{place}:{n}": float(x)
                    for place, word in enumerate(around[t : t + 3])
                    if word in vectors
                    for n, x in enumerate(vectors[word])
                }
                for t in range(len(sentence))
            ]

        # By default it drops features whose values add up to less than zero.
        crf = CRF(algorithm="lbfgs", min_freq=-1e9, c1=0, c2=0.5, max_iterations=50)
        crf.fit([features(sentence) for sentence in X], y)
        n_iter = int(crf.training_log_.last_iteration["num"])
    return [perf_counter() - start, n_iter, peak_memory() - before]


def measure_sentence(name, vectors_for, n_calls):
    """Rows of microseconds that one sentence of 24 tokens takes, and its parts."""
    X, y = (part[:300] for part in read(name, "train"))
    tagger = make_pipeline(both(vectors_for(words_of(X))), CRFTagger(max_iter=3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tagger.fit(X, y)
    sentence = [list(chain.from_iterable(X))[:24]]
    union, last = tagger
    words, vectors = (step for _, step in union.transformer_list)
    batch = union.transform(sentence)
    calls = {
        "`Pipeline.predict`": lambda: tagger.predict(sentence),
        "`SequenceUnion.transform`": lambda: union.transform(sentence),
        "`WordVectorizer.transform`": lambda: words.transform(sentence),
        "`EmbeddingVectorizer.transform`": lambda: vectors.transform(sentence),
        "`CRFTagger.predict`": lambda: last.predict(batch),
    }
    times = {title: float("inf") for title in calls}
    for _ in range(n_calls):
        for title, call in calls.items():
            start = perf_counter()
            call()
            times[title] = min(times[title], perf_counter() - start)
    return [[title, f"{1e6 * seconds:.0f}"] for title, seconds in times.items()]


# Scores


def scorer_of(name):
    """F1 of chunks, or accuracy for parts of speech."""
    return token_accuracy_score if name == "ud-english-ewt" else chunk_f1_score


def measure_scale(name, share, vectors_for):
    """Row of scores on held-out training sentences, by the mean squared length of vectors."""
    learnt, rest = share_of(read(name, "train"), share)
    held, _ = share_of(rest, min(1.0, 1500 / max(len(rest[0]), 1)))
    vectors = vectors_for(words_of(learnt[0], held[0]))
    steps = WordVectorizer(), lookup(vectors)
    of_words, of_vectors = ([s.fit_transform(learnt[0]), s.transform(held[0])] for s in steps)
    found = []
    for size in SCALES:
        factor = np.sqrt(size / 2)
        X, held_X = (
            SequenceBatch.hstack([words, vectors * factor])
            for words, vectors in zip(of_words, of_vectors, strict=True)
        )
        _, tagger = fitted(CRFTagger(), X, learnt[1])
        found.append(100 * scorer_of(name)(held[1], tagger.predict(held_X)))
    best = SCALES[int(np.argmax(found))]
    return [f"{name or 'addresses'}, {share:.0%}", *(f"{score:.2f}" for score in found), best]


def measure_scores(name, share, vectors_for):
    """Row of scores on the test set, by what goes in."""
    X, y = share_of(read(name, "train"), share)[0]
    X_test, y_test = read(name, "test")
    vectors = vectors_for(words_of(X, X_test))
    score = scorer_of(name)
    models = {
        "words": WordVectorizer(),
        "vectors": lookup(vectors),
        "both": both(vectors),
        "both, statistics": both(vectors, label_statistics=True),
    }
    row = []
    for features in models.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make_pipeline(features, CRFTagger()).fit(X, y)
            row.append(f"{100 * score(y_test, model.predict(X_test)):.2f}")
    if score is chunk_f1_score:
        features = both(vectors, label_statistics=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tagger = SpanTaggerCV(CRFTagger()).fit(features.fit_transform(X, y), y)
        row.append(f"{100 * score(y_test, tagger.predict(features.transform(X_test))):.2f}")
    else:
        row.append("")
    return [f"{name or 'addresses'}, {share:.0%}", *row]


def on_states(states, tagger, **options):
    """Model of words and of the states of a transformer."""
    of_states = make_pipeline(states, VectorScaler())
    words = WordVectorizer(**options)
    return make_pipeline(SequenceUnion([("words", words), ("states", of_states)]), tagger)


def label_by_softmax(states, X, y, X_test):
    """Labels of tokens one by one, by the states alone."""
    scaler = make_pipeline(states, VectorScaler())
    tagger = CRFTagger().fit(scaler.fit_transform(X).X, np.concatenate(y))
    predicted = tagger.predict(scaler.transform(X_test).X)
    return np.split(predicted, np.cumsum(list(map(len, X_test)))[:-1])


def measure_states(name, share):
    """Row of scores on the test set, by what goes in beside the hidden states of a transformer."""
    X_test, y_test = read(name, "test")
    draws = [share_of(read(name, "train"), share, seed)[0] for seed in range(N_DRAWS)]
    draws = draws if share < 1 else draws[:1]
    states, score = encode(X_test, *(X for X, _ in draws)), scorer_of(name)
    alone = make_pipeline(states, VectorScaler(), CRFTagger())
    models = {
        "words": make_pipeline(WordVectorizer(), CRFTagger()),
        "softmax of states": None,
        "states": alone,
        "words and states": on_states(states, CRFTagger()),
        "the same, SAPO": on_states(states, SAPOTagger(random_state=0)),
        "and statistics": on_states(states, CRFTagger(), label_statistics=True),
    }
    if score is chunk_f1_score:
        spans = on_states(states, CRFTagger(), label_statistics=True)
        models["and spans"] = SpanTaggerCV(spans, cv=3)
    found = {step: [] for step in models}
    for (X, y), (step, model) in product_of(draws, models.items()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if model is None:
                predicted = label_by_softmax(states, X, y, X_test)
            else:
                predicted = clone(model).fit(X, y).predict(X_test)
        found[step].append(100 * score(y_test, predicted))
        print(name, share, step, f"{found[step][-1]:.2f}", flush=True)
    return {"": f"{name}, {share:.0%}", **{k: mean_and_deviation(v) for k, v in found.items()}}


def write_states(report, rows):
    """Write the table of scores with hidden states."""
    head = max(rows, key=len)
    cells = [[row.get(column, "") for column in head] for row in rows]
    report.write("states", table(list(head), cells), machine())


def write_speed(report, arguments, vectors_for, corpus):
    """Write the tables of time and memory."""
    quick, repeat = arguments.quick, arguments.repeat
    wanted = PARTS if arguments.only is None else (arguments.only,)
    if "fits" in wanted:
        rows, note = measure_fits(corpus, 1.0 if quick else 0.1, vectors_for, repeat)
        head = ["learner", "words, s", "with vectors, times", "iterations"]
        report.write("fits", table(head, rows), f"{note}. {machine()}")
    if "dense" in wanted:
        rows, note = measure_dense(200 if quick else 20_000, 13, repeat)
        head = ["learner", "epoch, ms", "in products"]
        report.write("dense", table(head, rows), f"{note}. {machine()}")
    if "sentence" in wanted:
        rows = measure_sentence(corpus, vectors_for, 3 if quick else 500)
        report.write("sentence", table(["call", "microseconds"], rows), machine())
    if "memory" in wanted:
        options = ["--quick"] if quick else []
        (words, *sizes), (more, *_) = (
            run_child("vectors", "--system", kind, *options) for kind in ("words", "both")
        )
        of_table, scores, n_sentences, n_tokens = sizes
        rows = [[f"{size:,.0f}" for size in (words, more, more - words, of_table, scores)]]
        head = ["words, MiB", "with vectors, MiB", "difference", "table", "scores"]
        note = f"{n_sentences:,} sentences, {n_tokens:,} tokens. {machine()}"
        report.write("memory", table(head, rows), note)
    if "crfsuite" in wanted and importlib.util.find_spec("sklearn_crfsuite"):
        rows = []
        for system in ("skstruct", "sklearn-crfsuite"):
            options = ("--system", system, *(["--quick"] if quick else []))
            seconds, n_iter, memory = run_child("vectors", *options)
            rows.append([system, f"{seconds:.1f}", n_iter, f"{memory:,.0f}"])
        head = ["system", "seconds", "iterations", "memory, MiB"]
        report.write("crfsuite", table(head, rows), machine())


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__, repeat=3)
    parser.add_argument("--only", choices=PARTS, help="measure one part")
    parser.add_argument("--system", help="one fit in this process")
    parser.add_argument("--corpora", nargs="+", default=CORPORA, help="for scale and scores")
    parser.add_argument("--shares", nargs="+", type=float, default=(0.05, 0.2))
    arguments = parse(parser)
    quick = arguments.quick
    corpus, vectors_for = ("conll2000", static_vectors)
    corpora, shares = arguments.corpora, arguments.shares
    if quick:
        corpus, vectors_for, corpora, shares = None, random_vectors, [None], [0.5]
    if arguments.system in ("words", "both"):
        print(json.dumps(measure_memory(arguments.system, corpus, 4000, vectors_for)))
        return
    if arguments.system:
        print(json.dumps(measure_one(arguments.system, corpus, 20 if quick else 200)))
        return
    wanted = PARTS if arguments.only is None else (arguments.only,)
    with open_report("vectors", arguments) as report:
        write_speed(report, arguments, vectors_for, corpus)
        if "scale" in wanted:
            rows = [measure_scale(name, share, vectors_for) for name in corpora for share in shares]
            head = ["corpus, share", *(f"{size:g}" for size in SCALES), "best"]
            report.write("scale", table(head, rows), machine())
        if "scores" in wanted:
            rows = [measure_scores(name, s, vectors_for) for name in corpora for s in shares]
            head = ["corpus, share", "words", "vectors", "both", "both, statistics", "spans"]
            report.write("scores", table(head, rows), machine())
        if "states" in wanted and not quick and importlib.util.find_spec(PACKAGE):
            chosen = [(name, share) for name in corpora for share in shares]
            rows = [measure_states(*one) for one in (*chosen, ("addresses", 1.0))]
            write_states(report, rows)


if __name__ == "__main__":
    main()
