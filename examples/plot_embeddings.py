"""
Word vectors beside other features
==================================

Labels are dear and text is cheap. Here, vectors of words are made of addresses without labels, by
the company that words keep, and put beside the features of a tagger that has few addresses with
labels.
"""

# %%
# Vectors from unlabelled text
# ----------------------------
# For each word, count the words up to two places before and after it, weigh the counts by how
# surprising they are (positive pointwise mutual information), and keep 20 dimensions. Vectors that
# come ready-made, of much more text, would take this place.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction import DictVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

from skstruct import CRFTagger, EmbeddingVectorizer, SequenceUnion, TemplateVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score

addresses, labels = load_addresses(return_X_y=True)

company = {}
for tokens in addresses:
    padded = ["", "", *(token.lower() for token in tokens), "", ""]
    for place, word in enumerate(padded[2:-2], start=2):
        counts = company.setdefault(word, {})
        for distance in (-2, -1, 1, 2):
            neighbour = f"{distance} {padded[place + distance]}"
            counts[neighbour] = counts.get(neighbour, 0) + 1

counts = DictVectorizer().fit_transform(company.values()).tocoo()
of_word, of_neighbour = counts.sum(axis=1).A1, counts.sum(axis=0).A1
expected = of_word[counts.row] * of_neighbour[counts.col] / counts.sum()
counts.data = np.maximum(np.log(counts.data / expected), 0)
rows = normalize(TruncatedSVD(20, random_state=0).fit_transform(counts.tocsr()))
vectors = dict(zip(company, rows, strict=True))

for word in ("street", "4", "wellington"):
    similar = sorted(vectors, key=lambda other: -vectors[other] @ vectors[word])[1:6]
    print(f"{word}: {', '.join(similar)}")

# %%
# Side by side
# ------------
# A union gives each of its transformers the same tokens, and puts the columns that they make next
# to each other. ``offsets`` adds the vectors of both neighbours. The vectors, like all else, are
# penalised by ``l2``; how much depends on their scale, which ``transformer_weights`` sets.

templates = ["U0:%x[0,0|lower]", "U1:%x[-1,0|lower]", "U2:%x[1,0|lower]", "U3:%x[0,0|shape]"]


def make_model(scale):
    """A tagger of words and shapes; with a scale, also of vectors."""
    parts = [("words", TemplateVectorizer(templates))]
    if scale:
        lookup = EmbeddingVectorizer(vectors, normalize=str.lower, offsets=(-1, 0, 1))
        parts.append(("vectors", lookup))
    features = SequenceUnion(parts, transformer_weights={"vectors": scale} if scale else None)
    return Pipeline([("features", features), ("tagger", CRFTagger(l2=0.1, tol=1e-3))])


# %%
# With few labels
# ---------------
# A hundred addresses are kept for the test. From the others, some are drawn to be learnt from,
# three times for each number.

order = np.random.default_rng(0).permutation(len(addresses))
test, rest = order[:100], order[100:]


def take(sequences, numbers):
    return [sequences[i] for i in numbers]


def f1(scale, size, seed):
    drawn = np.random.default_rng(seed).permutation(rest)[:size]
    model = make_model(scale).fit(take(addresses, drawn), take(labels, drawn))
    return chunk_f1_score(take(labels, test), model.predict(take(addresses, test)))


sizes = [15, 30, 60, 120, 240, 438]
scales = {"words and their shapes": 0, "and vectors": 1, "and vectors, three times as large": 3}
curves = {
    name: [[f1(scale, size, seed) for seed in range(3)] for size in sizes]
    for name, scale in scales.items()
}

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, scores in curves.items():
    middle = np.mean(scores, axis=1)
    ax.plot(sizes, middle, marker="o", label=name)
    ax.fill_between(sizes, np.min(scores, axis=1), np.max(scores, axis=1), alpha=0.15)
ax.set(xscale="log", xlabel="addresses with labels", ylabel="F1 of chunks on test")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend(frameon=False)
ax.grid(alpha=0.3)
plt.show()

# %%
# Vectors of so little text gain one to four points of F1 where labels are few, and nothing where
# there are many. Three times as large, they do harm: the penalty then hardly restrains their
# weights. So their scale is a parameter worth searching for: ``features__transformer_weights`` in
# :class:`~sklearn.model_selection.GridSearchCV`.
