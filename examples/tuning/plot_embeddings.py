"""
Combine word vectors with sparse features
=========================================

Labels are expensive, and vectors of words are not: they come from text without labels. This example
makes some of the user's own text, and takes others that somebody else has made. It combines them
with the sparse features of a tagger trained on few labelled addresses.
"""

# %%
# Vectors from your own text
# --------------------------
# :class:`~skstruct.WordClusters` counts the neighbours of each word in text without labels, here in
# the addresses, and reduces the counts to a vector. Words that are used alike get similar vectors.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_embeddings.svg"

import importlib.util
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import Pipeline

from skstruct import (
    CRFTagger,
    EmbeddingVectorizer,
    SequenceUnion,
    TemplateVectorizer,
    WordClusters,
)
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score

addresses, labels = load_addresses(return_X_y=True)
own = WordClusters(n_components=20, random_state=0).fit(addresses).vectors_


def similar(vectors, word):
    """Other words whose vectors are nearest to a word's."""
    nearest = sorted(vectors, key=lambda other: -vectors[other] @ vectors[word])
    return ", ".join(nearest[1:6])


for word in ("street", "4", "wellington"):
    print(f"{word}: {similar(own, word)}")

# %%
# Vectors of a language model
# ---------------------------
# The package ``wordllama`` brings the table of a small language model along, 16 MB of vectors of
# pieces of words. A word gets the mean of its pieces, of length one. If the package is not
# installed, with ``tokenizers`` and ``safetensors``, this part is left out.

pretrained = None
if all(map(importlib.util.find_spec, ("wordllama", "tokenizers", "safetensors"))):
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(importlib.util.find_spec("wordllama").origin).parent
    (table,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(next((folder / "tokenizers").glob("*.json"))))
    words = sorted({word.lower() for tokens in addresses for word in tokens})
    pieces = tokenizer.encode_batch(words, add_special_tokens=False)
    rows = np.array([table[word.ids].astype(np.float32).mean(axis=0) for word in pieces])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    pretrained = dict(zip(words, rows, strict=True))
    for word in ("street", "4", "wellington"):
        print(f"{word}: {similar(pretrained, word)}")

# %%
# Feature union
# -------------
# A union passes the same tokens to each of its transformers, and puts their columns side by side.
# ``offsets`` adds the vectors of both neighbours. The penalty ``l2`` applies to all weights, so the
# effective penalty depends on the scale of the features. Vectors get theirs by a rule, and
# ``transformer_weights`` changes it.

templates = ["U0:%x[0,0|lower]", "U1:%x[-1,0|lower]", "U2:%x[1,0|lower]", "U3:%x[0,0|shape]"]


def make_model(vectors, scale):
    """Tagger with words and shapes as features, and word vectors if there are any."""
    parts = [("words", TemplateVectorizer(templates))]
    if vectors is not None:
        lookup = EmbeddingVectorizer(vectors, normalize=str.lower, offsets=(-1, 0, 1))
        parts.append(("vectors", lookup))
    weights = None if vectors is None else {"vectors": scale}
    features = SequenceUnion(parts, transformer_weights=weights)
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


def f1(vectors, scale, size, seed):
    drawn = np.random.default_rng(seed).permutation(rest)[:size]
    model = make_model(vectors, scale).fit(take(addresses, drawn), take(labels, drawn))
    return chunk_f1_score(take(labels, test), model.predict(take(addresses, test)))


sizes = [15, 30, 60, 120, 240, 438]
models = {
    "words and shapes": (None, 1),
    "and vectors of the addresses": (own, 1),
    "the same, three times as long": (own, 3),
}
if pretrained is not None:
    models["and vectors of a language model"] = pretrained, 1
curves = {
    name: [[f1(*model, size, seed) for seed in range(3)] for size in sizes]
    for name, model in models.items()
}

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, scores in curves.items():
    middle = np.mean(scores, axis=1)
    ax.plot(sizes, middle, marker="o", label=name)
    ax.fill_between(sizes, np.min(scores, axis=1), np.max(scores, axis=1), alpha=0.15)
    print(f"{name}: {', '.join(f'{100 * score:.1f}' for score in middle)}")
ax.set(xscale="log", xlabel="training addresses", ylabel="chunk F1 on the test set")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend(frameon=False)
ax.grid(alpha=0.3)
plt.show()

# %%
# The vectors of so little text gain about one point of F1 from 240 addresses on, and lose about as
# much with fewer than 60. Those of the language model gain up to four from 30 addresses on, and
# lose one with 15. Three times as long, vectors cost up to five points with few addresses, because
# the penalty hardly restrains their weights. The scale is the parameter
# ``features__transformer_weights`` in :class:`~sklearn.model_selection.GridSearchCV`. The guide has
# :doc:`files of vectors and hidden states of a transformer </guide/vectors>`.
