"""F1 by the scale of static vectors."""

import numpy as np

from benchmarks.vectors.data import fitted, lookup, read, share_of, words_of
from skstruct import CRFTagger, SequenceBatch, WordVectorizer
from skstruct.metrics import chunk_f1_score, token_accuracy_score

# Mean squared lengths that are tried for vectors at three offsets.
SCALES = (0.5, 1, 2, 4, 8)


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
