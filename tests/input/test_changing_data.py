"""Data that others change while they are read: an answer or an error of Python's, and no crash.

In place of another thread, which would meet the moment only sometimes, a trace function changes the
data between any two instructions of the package. This runs in a process of its own, because reading
lengths and contents at different moments crashes it.
"""

import subprocess
import sys
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import skstruct
from skstruct import (
    PerceptronTagger,
    SequenceVectorizer,
    WordVectorizer,
    crfsuite,
)
from skstruct.input.formats import Format, encode_labels
from skstruct.metrics import token_accuracy_score

PACKAGE = str(Path(skstruct.__file__).parent)
# Reads of each case; few of those that learn or decode, which have many instructions.
MANY, FEW = 6, 2
WORDS = [[f"w{n}" for n in np.random.default_rng(i).integers(6, size=8)] for i in range(3)]
LABELS = [["ABC"[int(word[1:]) % 3] for word in sequence] for sequence in WORDS]

# Kinds of tokens: how to make one of a word, to add an attribute, and to take it away.
TOKENS = {
    "dicts": (
        lambda word: {"word": word, "title": False, "length": 2.5},
        lambda token: token.update(new=True),
        lambda token: token.pop("new"),
    ),
    "lists": (lambda word: [word], lambda token: token.append("new"), list.pop),
    "nested dicts": (
        lambda word: {"next": {"word": word}},
        lambda token: token["next"].update(new=True),
        lambda token: token["next"].pop("new"),
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


def make_tokens(kind="dicts"):
    """Make sequences of tokens, which others may change."""
    make, *_ = TOKENS[kind]
    return [list(map(make, sequence)) for sequence in WORDS]


def check(batch):
    """Kernels index with these arrays."""
    X = batch.X
    assert X.indptr[0] == 0
    assert X.indptr[-1] == len(X.indices) == len(X.data)
    assert np.all(np.diff(X.indptr) >= 0)
    assert 0 <= X.indices.min() <= X.indices.max() < X.shape[1]


def tokens(kind):
    """Tokens of a kind that change."""
    _, change, undo = TOKENS[kind]
    X, known = make_tokens(kind), make_tokens(kind)
    change(known[0][0])
    vectorizer, new = SequenceVectorizer().fit(known), SequenceVectorizer()
    tagger = PerceptronTagger(random_state=0).fit(known, LABELS)
    crf = crfsuite.CRF(max_iterations=2).fit(known, LABELS)
    yield Changing(chain.from_iterable(X), change, undo)
    yield MANY, lambda: check(vectorizer.transform(X))
    yield MANY, lambda: check(new.fit_transform(X))
    yield MANY, lambda: crfsuite.ItemSequence(X[0])
    yield FEW, lambda: tagger.predict(X * 3)
    yield FEW, lambda: tagger.predict_proba(X)
    yield FEW, lambda: clone(tagger).fit(X, LABELS)
    yield FEW, lambda: crf.predict_single(X[0])
    yield FEW, lambda: clone(crf).fit(X, LABELS)


def sequences():
    """Sequences that grow and shrink."""
    X, more = make_tokens(), {"word": "w0"}
    tagger = PerceptronTagger(random_state=0).fit(X, LABELS)
    yield Changing(X, lambda sequence: sequence.append(more), list.pop)
    yield MANY, lambda: tagger.predict(X + [[more]] * 9)
    yield MANY, lambda: tagger.predict(X)
    yield MANY, lambda: clone(tagger).fit(X, LABELS)


def labels():
    """Labels that come and go."""
    y = [list(sequence) for sequence in LABELS]
    batch = SequenceVectorizer().fit_transform(make_tokens())
    yield Changing(y[1:2], lambda sequence: sequence.append("A"), list.pop)
    yield MANY, lambda: encode_labels(y, batch, Format.TOKENS)
    yield MANY, lambda: token_accuracy_score(y, LABELS)


def fitted_again():
    """A tagger and a vectoriser whose attributes become those of another fit, and back."""
    small = make_tokens()
    large = [[{**token, f"more{i}": f"w{i}"} for i, token in enumerate(s * 9)] for s in small]
    taggers = [
        PerceptronTagger(random_state=0).fit(small, LABELS),
        PerceptronTagger(random_state=0).fit(
            large, [[*"DEF", *labels * 9][:72] for labels in LABELS]
        ),
    ]
    known = [[["C"]]]
    shared, vectorizer = PerceptronTagger(), SequenceVectorizer()
    by_words = [WordVectorizer().fit(words) for words in (WORDS, [["few"]])]
    words = WordVectorizer()

    def put(tagger):
        def change(_):
            shared.__dict__ = dict(vars(tagger))
            vectorizer.__dict__ = dict(vars(tagger.vectorizer_))
            words.__dict__ = dict(vars(by_words[tagger is taggers[1]]))

        return change

    put(taggers[0])(None)
    yield Changing([None], put(taggers[1]), put(taggers[0]))
    for X in (small, small * 30):
        yield FEW, partial(shared.predict, X)
        yield FEW, partial(shared.predict, X, [[None] * len(x) for x in X])
        yield FEW, partial(shared.predict, [x[:1] for x in X], known * len(X))
        yield FEW, partial(shared.predict_proba, X)
        yield FEW, partial(shared.predict_nbest, X)
        yield FEW, partial(shared.predict_spans, X)
        yield MANY, lambda X=X: check(vectorizer.transform(X))
    yield MANY, lambda: check(words.transform(WORDS))


ORDINARY = ValueError, LookupError, RuntimeError, TypeError, AttributeError
GROUPS = {
    **{kind: partial(tokens, kind) for kind in TOKENS},
    **{group.__name__: group for group in (sequences, labels, fitted_again)},
}


def main(groups):
    """Write a line for each group whose cases have all been read."""
    warnings.simplefilter("ignore")
    for group in groups:
        changing, *cases = GROUPS[group]()
        for n_reads, read in cases:
            with suppress(Exception):
                # Loads kernels.
                read()
            for _ in range(n_reads):
                with suppress(*ORDINARY), changing.between_instructions():
                    read()
        print(group, flush=True)


@pytest.fixture(scope="module")
def ended():
    """The groups that a process has gone through, and how it ended."""
    run = [sys.executable, __file__]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    return done.stdout.splitlines(), f"exit code {done.returncode}: {done.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_data_that_change_while_they_are_read(ended, group):
    groups, end = ended
    assert group in groups, end


if __name__ == "__main__":
    main(sys.argv[1:] or GROUPS)
