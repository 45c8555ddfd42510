"""Sentences, vectors of words, and the features that both become."""

import importlib.util
import warnings
from collections import Counter
from itertools import chain
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.common.corpora import data_folder, load_quick, read_columns
from benchmarks.which_tagger.corpora import read_addresses
from skstruct import EmbeddingVectorizer, SequenceUnion, WordVectorizer

SIZE, OFFSETS = 256, (-1, 0, 1)


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


def of_commonest(y, n=6):
    """The same labels, without chunks of other kinds than the commonest: 13 labels."""
    kinds = Counter(label[2:] for label in chain.from_iterable(y) if label != "O")
    kept = {kind for kind, _ in kinds.most_common(n)}
    return [[label if label[2:] in kept else "O" for label in labels] for labels in y]


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


def fitted(tagger, X, y):
    """Seconds of the processor of a fit, and the tagger."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = process_time()
        tagger.fit(X, y)
    return process_time() - start, tagger
