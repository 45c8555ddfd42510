"""Sequences as tensors: vocabularies of words, characters and tags, and batches by length."""

import re
from collections import Counter

import numpy as np
import torch

# Longer words are cut.
LONGEST = 25
# Batches that are sorted by length together.
SORTED = 20
# Codes of padding and of what training did not have.
PADDING, UNKNOWN = 0, 1
# Probability that training takes a word it has once for an unknown one.
FORGOTTEN = 0.5


def normalise(word):
    """Lower case, digits alike; the characters keep both."""
    return re.sub(r"\d", "#", word.lower())


class TokenEncoder:
    """Words, characters and tags of a training set, numbered.

    A token is a tuple of a word and of any number of tags, the same for all tokens.
    """

    def __init__(self, X):
        words, *tags = zip(*(token for tokens in X for token in tokens), strict=True)
        counts = Counter(map(normalise, words))
        self.words = number(counts)
        self.characters = number({character for word in words for character in word})
        self.tags = [number(set(column)) for column in tags]
        self._once = np.zeros(2 + len(counts), bool)
        self._once[[self.words[word] for word, count in counts.items() if count == 1]] = True

    @property
    def tables(self):
        """All vocabularies."""
        return [self.words, self.characters, *self.tags]

    def encode(self, X):
        """Arrays with codes of words, rows of the table of spellings, and tags; that table."""
        columns, forms = [list(zip(*tokens, strict=True)) for tokens in X], {}
        rows = [[forms.setdefault(word, len(forms)) for word in words] for words, *_ in columns]
        codes = np.array([self.words.get(normalise(form), UNKNOWN) for form in forms], int)
        spellings = np.full((len(forms), LONGEST), PADDING)
        for row, form in enumerate(forms):
            found = [self.characters.get(character, UNKNOWN) for character in form[:LONGEST]]
            spellings[row, : len(found)] = found
        tags = [self._encode_tags(found) for _, *found in columns]
        arrays = [np.column_stack([codes[x], x, *t]) for x, t in zip(rows, tags, strict=True)]
        return arrays, spellings

    def _encode_tags(self, columns):
        """Codes of the tags of a sequence, for each column."""
        pairs = zip(self.tags, columns, strict=True)
        return [[table.get(tag, UNKNOWN) for tag in column] for table, column in pairs]

    def tensors(self, padded, spellings, rng=None):
        """Inputs of the network; with a generator, some rare words are unknown."""
        words, forms, tags = padded[:, :, 0], padded[:, :, 1], padded[:, :, 2:]
        if rng is not None:
            forgotten = self._once[words] & (rng.random(words.shape) < FORGOTTEN)
            words = np.where(forgotten, UNKNOWN, words)
        # Each spelling once, and no wider than it has to be.
        kept, places = np.unique(forms, return_inverse=True)
        spellings = spellings[kept]
        spellings = spellings[:, : max(1, np.count_nonzero(spellings.any(axis=0)))]
        places = places.reshape(words.shape)
        found = (words, places, spellings, tags)
        return tuple(torch.from_numpy(np.ascontiguousarray(a)) for a in found)


class NumberEncoder:
    """Rows of numbers, as they are."""

    tables = ()

    def __init__(self, X):
        self.n_columns = X[0].shape[1]

    def encode(self, X):
        """The arrays; there are no spellings."""
        return [np.asarray(x, np.float32) for x in X], None

    def tensors(self, padded, spellings=None, rng=None):
        """Inputs of the network."""
        return (torch.from_numpy(padded),)


def number(found):
    """Codes of things, after padding and unknown."""
    return {thing: code for code, thing in enumerate(sorted(found), start=2)}


def pad(arrays):
    """One array of sequences, zero behind their ends, and the mask of their tokens."""
    lengths = np.array([len(array) for array in arrays])
    padded = np.zeros((len(arrays), lengths.max(), *arrays[0].shape[1:]), arrays[0].dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded, torch.from_numpy(np.arange(lengths.max()) < lengths[:, None])


def batches_by_length(lengths, size, rng):
    """Places of the sequences of each batch: similar lengths, otherwise random."""
    order = rng.permutation(len(lengths))
    batches = []
    for first in range(0, len(order), SORTED * size):
        part = order[first : first + SORTED * size]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches += [part[a : a + size] for a in range(0, len(part), size)]
    return [batches[i] for i in rng.permutation(len(batches))]
