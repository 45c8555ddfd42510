"""Data that others change while they are read: right for some state of them, or an error.

In place of another thread, which would meet the moment only sometimes, a trace function changes the
data between any two instructions of the package. This runs in a process of its own, because reading
lengths and contents at different moments crashes it.
"""

import json
import subprocess
import sys
import warnings
from collections import Counter, OrderedDict, UserDict
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import skstruct
from skstruct import (
    EmbeddingVectorizer,
    NBestReranker,
    PerceptronReranker,
    PerceptronTagger,
    SequenceVectorizer,
    TemplateVectorizer,
    crfsuite,
)
from skstruct.input.formats import Format, encode_labels
from skstruct.metrics import token_accuracy_score
from skstruct.model_selection import StratifiedSequenceKFold

PACKAGE = str(Path(skstruct.__file__).parent)
# Reads of each case; few of those that learn or decode, which have many instructions.
MANY, FEW = 15, 4
N_WORDS, N_SEQUENCES, N_TOKENS = 6, 3, 8
CLASSES = ["A", "B", "C"]
# In an order that tells nothing about the next label.
WORDS = [
    [f"w{n}" for n in np.random.default_rng(i).integers(N_WORDS, size=N_TOKENS)]
    for i in range(N_SEQUENCES)
]
LABELS = [[CLASSES[int(word[1:]) % 3] for word in sequence] for sequence in WORDS]

# Kinds of tokens: how to make one of a word; the attributes that it has then, and the name of
# another one; how to add this, and how to take it away.
TOKENS = {
    "dicts": (
        lambda word: {"word": word, "title": False},
        lambda word: {f"word:{word}": 1, "title": 0},
        "new",
        lambda token: token.update(new=True),
        lambda token: token.pop("new"),
    ),
    "dicts of numbers": (
        lambda word: {"word": word, "length": 2.5},
        lambda word: {f"word:{word}": 1, "length": 2.5},
        "new",
        lambda token: token.update(new=1),
        lambda token: token.pop("new"),
    ),
    "ordered dicts": (
        lambda word: OrderedDict(word=word),
        lambda word: {f"word:{word}": 1},
        "new",
        lambda token: token.update(new=True),
        lambda token: token.pop("new"),
    ),
    "mappings": (
        lambda word: UserDict(word=word),
        lambda word: {f"word:{word}": 1},
        "new",
        lambda token: token.update(new=True),
        lambda token: token.pop("new"),
    ),
    "lists": (
        lambda word: [word],
        lambda word: {word: 1},
        "new",
        lambda token: token.append("new"),
        list.pop,
    ),
    "sets": (
        lambda word: {word},
        lambda word: {word: 1},
        "new",
        lambda token: token.add("new"),
        lambda token: token.discard("new"),
    ),
    "nested dicts": (
        lambda word: {"next": {"word": word}},
        lambda word: {f"next:word:{word}": 1},
        "next:new",
        lambda token: token["next"].update(new=True),
        lambda token: token["next"].pop("new"),
    ),
    "nested lists": (
        lambda word: {"next": [word]},
        lambda word: {f"next:{word}": 1},
        "next:new",
        lambda token: token["next"].append(b"new"),
        lambda token: token["next"].pop(),
    ),
    "nested sets": (
        lambda word: {"next": {word}},
        lambda word: {f"next:{word}": 1},
        "next:new",
        lambda token: token["next"].add("new"),
        lambda token: token["next"].discard("new"),
    ),
}


class Changing:
    """Parts of data that change: ``step()`` changes one of them or undoes it, or does nothing."""

    def __init__(self, parts, change, undo):
        self._parts, self._steps = list(parts), (change, undo)
        self._changed = [0] * len(self._parts)
        self._random = np.random.default_rng(0)

    def step(self, *_):
        i = int(self._random.integers(2 * len(self._parts)))
        if i >= len(self._parts):
            return
        self._steps[self._changed[i]](self._parts[i])
        self._changed[i] ^= 1

    def _trace(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        self.step()
        return self._trace

    @contextmanager
    def between_instructions(self):
        """Change the data between any two instructions of the package, or not."""
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(None)


def rows_are(batch, names, states):
    """Return True if each row is that of one of the states, arrays with a column for each name."""
    X = batch.X
    if not X.indptr[-1] == len(X.indices) == len(X.data):
        return False
    if not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
        return False
    if not set(names) >= set(batch.feature_names):
        return False
    rows = np.zeros_like(states[0])
    rows[:, [names.index(name) for name in batch.feature_names]] = X.toarray()
    return bool(np.any([np.all(rows == state, axis=1) for state in states], axis=0).all())


def make_tokens(kind):
    """Make sequences of tokens, which others may change."""
    make, *_ = TOKENS[kind]
    return [list(map(make, sequence)) for sequence in WORDS]


def states_of(kind):
    """Names of the attributes, and the values of all tokens before and after they change."""
    _, attributes, new, *_ = TOKENS[kind]
    values = list(map(attributes, chain.from_iterable(WORDS)))
    names = [*dict.fromkeys(chain.from_iterable(values)), new]
    before = np.array([[float(value.get(name, 0)) for name in names] for value in values])
    after = before.copy()
    after[:, -1] = 1
    return names, (before, after)


def tokens(kind):
    """Matrices of tokens of a kind that change."""
    *_, change, undo = TOKENS[kind]
    X, known, states = make_tokens(kind), make_tokens(kind), states_of(kind)
    change(known[0][0])
    vectorizer, new = SequenceVectorizer().fit(known), SequenceVectorizer()
    yield Changing(chain.from_iterable(X), change, undo)
    yield "transform", lambda: rows_are(vectorizer.transform(X), *states)
    yield "fit", lambda: rows_are(new.fit_transform(X), *states)
    yield "items", lambda: len(crfsuite.ItemSequence(X[0]).items()) == N_TOKENS


def learnt(kind):
    """Fits and predictions while tokens of a kind change."""
    *_, change, undo = TOKENS[kind]
    X, known = make_tokens(kind), make_tokens(kind)
    tagger = PerceptronTagger(random_state=0).fit(known, LABELS)
    crf, new = (crfsuite.CRF(max_iterations=n) for n in (5, 2))
    crf.fit(known, LABELS)
    # To them, the attribute that comes and goes is unknown.
    expected, of_crf = tagger.predict(known).tolist(), crf.predict(known).tolist()
    yield Changing(chain.from_iterable(X), change, undo)
    yield "predict", lambda: tagger.predict(X * 3).tolist() == expected * 3
    yield "predict, few", lambda: tagger.predict(X).tolist() == expected
    yield "fit", lambda: clone(tagger).fit(X, LABELS).score(known, LABELS) > 0.5
    yield "drop-in, predict", lambda: crf.predict(X * 3).tolist() == of_crf * 3
    yield "drop-in, one", lambda: crf.predict_single(X[0]) == of_crf[0]
    yield "drop-in, fit", lambda: new.fit(X, LABELS).score(known, LABELS) > 0.5


def sequences():
    """Sequences that grow and shrink."""
    X, more = make_tokens("dicts"), {"word": "w0"}
    tagger = PerceptronTagger(random_state=0).fit(X, LABELS)
    states = [tagger.predict([s + end for s in X]).tolist() for end in ([], [more])]

    def right(X):
        found = tagger.predict(X).tolist()
        return all(map(tuple.__contains__, zip(*states, strict=True), found))

    yield Changing(X, lambda sequence: sequence.append(more), list.pop)
    yield "predict", lambda: right(X + [[more]] * 9)
    yield "few", lambda: right(X)
    yield "fit", lambda: clone(tagger).fit(X, LABELS).score(X, LABELS) > 0


def one_token():
    """Sequences that are empty from time to time, and their numbers."""
    X, numbers = [[{"word": "w0"}]] * 2, [[[1.0, 2.0]]]
    tagger = PerceptronTagger(random_state=0).fit(make_tokens("dicts"), LABELS)
    of_numbers = PerceptronTagger(random_state=0).fit(numbers * 2, [["A"], ["B"]])
    kept = []
    yield Changing(
        [X[0], numbers[0]],
        lambda sequence: kept.append(sequence.pop()),
        lambda sequence: sequence.append({"word": "w0"} if sequence is X[0] else [1.0, 2.0]),
    )
    yield "dicts", lambda: set(map(len, tagger.predict(X))) <= {0, 1}
    yield "numbers", lambda: len(of_numbers.predict(numbers)[0]) <= 1


def batches():
    """Sequences that change places."""
    X = make_tokens("dicts") * 5
    tagger = PerceptronTagger(random_state=0).fit(X, LABELS * 5)
    crf = crfsuite.CRF(max_iterations=5).fit(X, LABELS * 5)
    labels, of_crf = tagger.predict(X).tolist(), crf.predict(X).tolist()
    yield Changing([X], lambda X: X.append(X.pop(0)), lambda X: X.insert(0, X.pop()))
    yield "predict", lambda: tagger.predict(X).tolist() in [labels, labels[1:] + labels[:1]]
    yield "drop-in", lambda: crf.predict(X).tolist() in [of_crf, of_crf[1:] + of_crf[:1]]


def labels():
    """Labels that come and go."""
    y = [list(sequence) for sequence in LABELS]
    batch = SequenceVectorizer().fit_transform(make_tokens("dicts"))
    codes = [CLASSES.index(name) for sequence in LABELS for name in sequence]
    yield Changing(y[1:2], lambda sequence: sequence.append("A"), list.pop)
    yield "encode", lambda: encode_labels(y, batch, Format.TOKENS)[1].tolist() == codes
    yield "score", lambda: token_accuracy_score(y, LABELS) == 1


def columns():
    """Columns of tokens that come and go."""
    X = [[[word, "tag"] for word in sequence] for sequence in WORDS]
    vectorizer = TemplateVectorizer("U:%x[0,0]").fit(X)
    usual = joblib.hash(vectorizer.transform(X))
    first, last = X[1][0], X[1][-1]
    yield Changing(
        [first, last],
        lambda token: token.append("more") if token is first else token.pop(),
        lambda token: token.append("tag") if token is last else token.pop(),
    )
    yield "template", lambda: joblib.hash(vectorizer.transform(X)) == usual


def tokens_of_columns():
    """Tokens of columns that come and go."""
    X, more = [[(word, "tag") for word in sequence] for sequence in WORDS], ("w0", "tag")
    vectorizer = TemplateVectorizer("U:%x[0,0]").fit(X)
    states = [joblib.hash(vectorizer.transform([*X[:2], X[2] + end])) for end in ([], [more])]
    yield Changing(X[2:], lambda sequence: sequence.append(more), list.pop)
    yield "template", lambda: joblib.hash(vectorizer.transform(X)) in states


def word_keys():
    """Keys that word vectors are looked up by, and that come and go."""
    X = make_tokens("dicts")
    vectors = {f"w{n}": [float(n)] for n in range(N_WORDS)}
    vectorizer = EmbeddingVectorizer(vectors, column="word").fit(X)
    usual = vectorizer.transform(X).X.copy()

    def hide(token):
        token["hidden"] = token.pop("word")

    def show(token):
        token["word"] = token.pop("hidden")

    yield Changing(X[1][:1], hide, show)
    yield "vectors", lambda: np.array_equal(vectorizer.transform(X).X, usual)


def costs():
    """Costs of candidates that come and go."""
    X, y = make_tokens("dicts"), [[float(n) for n in range(N_TOKENS)] for _ in WORDS]
    oracles = [0] * N_SEQUENCES
    reranker = PerceptronReranker(random_state=0, max_iter=2)
    yield Changing([y, oracles], lambda y: y.append(y[0]), list.pop)
    yield "costs", lambda: len(reranker.fit(X, y).coef_) > 0
    yield "oracles", lambda: len(reranker.fit(X, oracles).coef_) > 0


def folds():
    """Sequences and labels that come and go, of which folds are made."""
    X, y = make_tokens("dicts") * 2, LABELS * 2
    tagger = PerceptronTagger(random_state=0, max_iter=1)
    reranker = PerceptronReranker(random_state=0, max_iter=1)
    stacked = NBestReranker(tagger, reranker, cv=2, n_best=2)
    folds = StratifiedSequenceKFold(2)
    yield Changing([X, y], lambda sequences: sequences.append(sequences[0]), list.pop)
    yield "reranker, fit", lambda: len(stacked.fit(X, y).predict(X)) >= len(LABELS)
    yield "reranker, predict", lambda: len(stacked.predict(X)) - len(LABELS * 2) in (0, 1)
    yield "folds", lambda: sum(len(test) for _, test in folds.split(X, y)) >= len(LABELS)


def shared():
    """Threads that share a drop-in, each with a sequence of its own."""
    X = make_tokens("dicts")
    crf = crfsuite.CRF(max_iterations=10).fit(X, LABELS)
    tagger, short = crf.tagger_, X[0][:3]
    expected, certain = crf.predict_single(short), crf.predict_marginals_single(short)
    yield Changing(
        [X[1], X[2][:5]],
        tagger.set,
        lambda other: tagger.set(other + other),
    )
    yield "labels", lambda: crf.predict_single(short) == expected
    yield "marginals", lambda: crf.predict_marginals_single(short) == certain


OTHERS = (
    sequences, one_token, batches, labels, columns, tokens_of_columns, word_keys, costs, folds,
    shared,
)  # fmt: skip
GROUPS = {
    **{kind: partial(tokens, kind) for kind in TOKENS},
    **{f"{kind}, learnt": partial(learnt, kind) for kind in ("dicts", "lists")},
    **{group.__name__.replace("_", " "): group for group in OTHERS},
}


def n_reads(group):
    return FEW if group.endswith("learnt") or group in ("costs", "folds", "shared") else MANY


def outcomes(read, changing, n_reads):
    """Count what comes of a function that is called again and again."""
    with suppress(ValueError):
        # Loads kernels.
        read()
    found = Counter()
    for _ in range(n_reads):
        try:
            with changing.between_instructions():
                found["right" if read() else "wrong"] += 1
        except ValueError:
            found["error"] += 1
    return found


def main(groups):
    """Write a line of outcomes for each case of some groups."""
    warnings.simplefilter("ignore")
    for group in groups:
        changing, *cases = GROUPS[group]()
        for name, read in cases:
            counts = outcomes(read, changing, n_reads(group))
            print(group, name, json.dumps(counts), sep="\t", flush=True)


@pytest.fixture(scope="module")
def lines():
    """What the process says about each group of cases, and how it ends."""
    run = [sys.executable, __file__]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    found = {}
    for line in done.stdout.splitlines():
        group, name, counts = line.split("\t")
        found.setdefault(group, {})[name] = json.loads(counts)
    return found, f"exit code {done.returncode}: {done.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_data_that_change_while_they_are_read(lines, group):
    found, end = lines
    assert group in found, end
    for name, counts in found[group].items():
        assert "wrong" not in counts, (name, counts)
        # Tokens are copied at one moment, and there is nothing to refuse.
        if group in TOKENS or group.endswith("learnt"):
            assert counts == {"right": n_reads(group)}, (name, counts)
    assert "exit code 0" in end or group != list(found)[-1], end


if __name__ == "__main__":
    main(sys.argv[1:] or GROUPS)
