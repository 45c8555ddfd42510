"""Addresses in any number, made up from those of the package."""

import random
from collections import defaultdict

from benchmarks.common.features import shape

# Share of the words that are invented.
INVENTED = 0.3
# A letter is drawn given so many before it.
MEMORY = 2
END = "\n"


def make_up_addresses(size, seed):
    """Addresses with pairs of word and shape for tokens, and their labels.

    Each has the components of a packaged address, in its order. A component is that of another
    address, with other digits and, in part, invented words.
    """
    from skstruct.datasets import load_addresses

    drawn = random.Random(seed)
    addresses = [split(*pair) for pair in zip(*load_addresses(return_X_y=True), strict=True)]
    pools, letters = defaultdict(list), defaultdict(list)
    for kind, tokens in (component for address in addresses for component in address):
        pools[kind].append(tokens)
        for word in (word for word, _ in tokens if word.isalpha()):
            learn_spelling(word, letters)
    X, y = [], []
    for _ in range(size):
        words, labels = [], []
        for kind, before in drawn.choice(addresses):
            # What is between components stays: separators.
            for word, label in before if kind == "O" else drawn.choice(pools[kind]):
                words.append(vary(word, letters, drawn))
                labels.append(label)
        X.append([(word, shape(word)) for word in words])
        y.append(labels)
    return X, y


def split(words, labels):
    """Components of an address as pairs of type and labelled words."""
    starts = [i for i, here in enumerate(labels) if here[0] != "I" or here[2:] != labels[i - 1][2:]]
    ends = [*starts[1:], len(words)]
    kinds = [labels[start].partition("-")[2] or "O" for start in starts]
    tokens = list(zip(words, labels, strict=True))
    return [(kind, tokens[a:b]) for kind, a, b in zip(kinds, starts, ends, strict=True)]


def learn_spelling(word, letters):
    """Note which letters follow which."""
    padded = " " * MEMORY + word.lower() + END
    for i in range(MEMORY, len(padded)):
        letters[padded[i - MEMORY : i]].append(padded[i])


def vary(word, letters, drawn):
    """The word with other digits, or another word in its case."""
    if any(map(str.isdigit, word)):
        return "".join(str(drawn.randrange(10)) if c.isdigit() else c for c in word)
    if not (len(word) > MEMORY and word.isalpha() and drawn.random() < INVENTED):
        return word
    spelt = " " * MEMORY
    while not spelt.endswith(END):
        spelt += drawn.choice(letters[spelt[-MEMORY:]])
    return spelt.strip().title() if word.istitle() else spelt.strip()
