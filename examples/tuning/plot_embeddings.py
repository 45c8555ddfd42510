"""
Combine word vectors with sparse features
=========================================

Labels are expensive, and unlabelled text is cheap. This example computes word vectors from the
contexts of words in unlabelled addresses. It combines them with the sparse features of a tagger
trained on few labelled addresses.
"""

# %%
# Vectors from unlabelled text
# ----------------------------
# For each word, count the words up to two positions before and after it, convert the counts to
# positive pointwise mutual information, and reduce them to 20 dimensions. In practice, use
# pretrained vectors from much more text.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_embeddings.svg"

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

contexts = {}
for tokens in addresses:
    padded = ["", "", *(token.lower() for token in tokens), "", ""]
    for position, word in enumerate(padded[2:-2], start=2):
        counts = contexts.setdefault(word, {})
        for distance in (-2, -1, 1, 2):
            neighbour = f"{distance} {padded[position + distance]}"
            counts[neighbour] = counts.get(neighbour, 0) + 1

counts = DictVectorizer().fit_transform(contexts.values()).tocoo()
of_word, of_neighbour = counts.sum(axis=1).A1, counts.sum(axis=0).A1
expected = of_word[counts.row] * of_neighbour[counts.col] / counts.sum()
counts.data = np.maximum(np.log(counts.data / expected), 0)
rows = normalize(TruncatedSVD(20, random_state=0).fit_transform(counts.tocsr()))
vectors = dict(zip(contexts, rows, strict=True))

for word in ("street", "4", "wellington"):
    similar = sorted(vectors, key=lambda other: -vectors[other] @ vectors[word])[1:6]
    print(f"{word}: {', '.join(similar)}")

# %%
# Feature union
# -------------
# A union passes the same tokens to each of its transformers, and concatenates their columns.
# ``offsets`` adds the vectors of both neighbours. The penalty ``l2`` applies to all weights, so the
# effective penalty depends on the scale of the features. Vectors get theirs by a rule, and
# ``transformer_weights`` changes it.

templates = ["U0:%x[0,0|lower]", "U1:%x[-1,0|lower]", "U2:%x[1,0|lower]", "U3:%x[0,0|shape]"]


def make_model(scale):
    """Tagger with words and shapes as features, and word vectors if `scale` is positive."""
    parts = [("words", TemplateVectorizer(templates))]
    if scale:
        lookup = EmbeddingVectorizer(vectors, normalize=str.lower, offsets=(-1, 0, 1))
        parts.append(("vectors", lookup))
    features = SequenceUnion(parts, transformer_weights={"vectors": scale} if scale else None)
    return Pipeline([("features", features), ("tagger", CRFTagger(l2=0.1, tol=1e-3))])


# %%
# Learning curves
# ---------------
# A hundred addresses are the test set. Training sets of different sizes are drawn from the others,
# three times for each size.

order = np.random.default_rng(0).permutation(len(addresses))
test, rest = order[:100], order[100:]


def take(sequences, numbers):
    return [sequences[i] for i in numbers]


def f1(scale, size, seed):
    drawn = np.random.default_rng(seed).permutation(rest)[:size]
    model = make_model(scale).fit(take(addresses, drawn), take(labels, drawn))
    return chunk_f1_score(take(labels, test), model.predict(take(addresses, test)))


sizes = [15, 30, 60, 120, 240, 438]
scales = {"words and shapes": 0, "with vectors": 1, "with vectors, three times as long": 3}
curves = {
    name: [[f1(scale, size, seed) for seed in range(3)] for size in sizes]
    for name, scale in scales.items()
}

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, scores in curves.items():
    middle = np.mean(scores, axis=1)
    ax.plot(sizes, middle, marker="o", label=name)
    ax.fill_between(sizes, np.min(scores, axis=1), np.max(scores, axis=1), alpha=0.15)
ax.set(xscale="log", xlabel="training addresses", ylabel="chunk F1 on the test set")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend(frameon=False)
ax.grid(alpha=0.3)
plt.show()

# %%
# Vectors from so little text gain up to three points of F1 with few labels, and nothing with many.
# Three times as long, they cost one to five points, because the penalty hardly restrains their
# weights. So tune the scale with other vectors: it is the parameter
# ``features__transformer_weights`` in :class:`~sklearn.model_selection.GridSearchCV`.
