"""Time and memory of fits with vectors, beside words alone and beside sklearn-crfsuite."""

import warnings
from itertools import chain
from itertools import product as product_of
from statistics import median
from time import perf_counter, process_time

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks.common.processes import peak_memory, seconds_of
from benchmarks.vectors.data import (
    SIZE,
    both,
    fitted,
    lookup,
    of_commonest,
    random_vectors,
    read,
    share_of,
    words_of,
)
from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    WordVectorizer,
)

STATES = 384
# Numbers of a token, of which what an epoch costs besides is measured.
FEW_NUMBERS = 8
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


def measure_fits(name, share, vectors_for, repeat):
    """Rows of learners: seconds with words, and how many times as long it takes with vectors.

    First with 13 labels, then with all.
    """
    (X, y), _ = share_of(read(name, "train"), share)
    vectors = vectors_for(words_of(X))
    words, vectors = WordVectorizer().fit_transform(X), lookup(vectors).fit_transform(X)
    inputs = {"words": words, "both": SequenceBatch.hstack([words, vectors])}
    of_labels = [of_commonest(y), y]
    rows = []
    for title, tagger in LEARNERS.items():
        fewer, every = (_beside_words(tagger, inputs, labels, repeat) for labels in of_labels)
        rows.append([title, *fewer, every[1], every[2]])
    n_labels = [len(words_of(labels)) for labels in of_labels]
    note = f"{len(X):,} sentences, {words.n_rows:,} tokens, {words.n_features:,} features of words"
    return rows, n_labels, note


def _beside_words(tagger, inputs, y, repeat):
    """Seconds with words, how many times as long it takes with vectors, and iterations."""
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
    return f"{min(seconds['words']):.2f}", f"{ratio:.1f}", iterations


def measure_dense(n_rows, n_labels, repeat):
    """Rows of learners: an epoch over dense vectors, in multiples of one product.

    The last column has the part that vectors take: what an epoch costs more than with few numbers.
    """
    rng = np.random.default_rng(0)
    lengths = [20] * (n_rows // 20)
    y = [rng.integers(n_labels, size=20).tolist() for _ in lengths]
    wide, narrow = (
        SequenceBatch.from_lengths(rng.normal(size=(n_rows, size)).astype(np.float32), lengths)
        for size in (STATES, FEW_NUMBERS)
    )
    double, weights = wide.X.astype(np.float64), rng.normal(size=(STATES, n_labels))
    with threadpool_limits(1):
        product = min(seconds_of(lambda: double @ weights, 1, process_time) for _ in range(20))
    rows = []
    for title, tagger in LEARNERS.items():
        epoch, without = _epochs(tagger, [wide, narrow], y, repeat)
        in_products = (f"{seconds / product:.1f}" for seconds in (epoch, epoch - without))
        rows.append([title.partition(",")[0], f"{1e3 * epoch:.0f}", *in_products])
    return rows, f"{n_rows:,} tokens, {STATES} numbers each in float32, {n_labels} labels"


def _epochs(tagger, batches, y, repeat):
    """Seconds of an epoch over each batch; what is done once in a fit is no part."""
    best, made = {}, {}
    # The first turn compiles, or reads compiled code.
    for turn, n, (b, batch) in product_of(range(repeat + 1), (2, 7), enumerate(batches)):
        seconds, done = fitted(clone(tagger).set_params(max_iter=n), batch, y)
        made[b, n] = done.n_iter_
        best[b, n] = min(seconds, best.get((b, n), np.inf) if turn > 1 else np.inf)
    return [
        (best[b, 7] - best[b, 2]) / max(made[b, 7] - made[b, 2], 1) for b in range(len(batches))
    ]


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
    """Rows of microseconds that one sentence of 24 tokens takes, 13 labels, and its parts."""
    X, y = (part[:300] for part in read(name, "train"))
    y = of_commonest(y)
    alone = make_pipeline(WordVectorizer(), CRFTagger(max_iter=3))
    tagger = make_pipeline(both(vectors_for(words_of(X))), CRFTagger(max_iter=3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tagger.fit(X, y)
        alone.fit(X, y)
    sentence = [list(chain.from_iterable(X))[:24]]
    union, last = tagger
    words, vectors = (step for _, step in union.transformer_list)
    batch = union.transform(sentence)
    calls = {
        "`Pipeline.predict`, words alone": lambda: alone.predict(sentence),
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
