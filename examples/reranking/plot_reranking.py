"""
Rerank n-best lists
===================

A sequence tagger scores labels and pairs of neighbouring labels. It cannot learn that an address
has one street and one postcode, because it never sees whole labellings. A reranker does. It chooses
among the ten best labellings of the tagger, and can use any features of them.
"""

# %%
# Tagger
# ------
# The package includes the addresses. The token features are simple: the word, its prefix and
# suffix, and its neighbours.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_reranking.svg"

from collections import Counter
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skstruct import CRFTagger, NBestReranker, VRDAReranker
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score, extract_chunks, sequence_accuracy_score

addresses = load_addresses()


def token_features(tokens):
    words = ["", *(token.lower() for token in tokens), ""]
    return [
        {
            "word": words[i],
            "ends": [f"{words[i][:2]}-", f"-{words[i][-2:]}"],
            "digits": words[i].isdigit(),
            "capital": tokens[i - 1][0].isupper(),
            "before": words[i - 1],
            "after": words[i + 1],
        }
        for i in range(1, len(words) - 1)
    ]


X_train, X_test, y_train, y_test = train_test_split(
    [token_features(tokens) for tokens in addresses.data],
    addresses.target,
    test_size=0.3,
    random_state=0,
)
tagger = CRFTagger(l2=0.2).fit(X_train, y_train)


def report(name, model):
    predicted = model.predict(X_test)
    f1 = chunk_f1_score(y_test, predicted)
    share = sequence_accuracy_score(y_test, predicted)
    print(f"{name:24} component F1 {f1:.3f}, addresses without errors {share:.3f}")


report("tagger", tagger)

# %%
# The oracle accuracy is an upper bound for rerankers: the share of addresses whose gold labelling
# is among the n best.

lists = tagger.predict_nbest(X_test, n_best=10)
ranks = [
    next((rank for rank, found in enumerate(labellings) if found.labels == labels), None)
    for labellings, labels in zip(lists, y_test, strict=True)
]
for n_best in (1, 2, 5, 10):
    share = np.mean([rank is not None and rank < n_best for rank in ranks])
    print(f"oracle accuracy of {n_best:2} labellings: {share:.3f}")

# %%
# Features of labellings
# ----------------------
# A function computes the features of a labelling from tokens and labels. These features are
# repeated components, pairs of components, sequences of two and three components, and their
# lengths.


def labelling_features(tokens, labels):
    chunks = extract_chunks(labels)
    kinds = [kind for _, _, kind in chunks]
    features = Counter(f"{kind} repeated" for kind, n in Counter(kinds).items() if n > 1)
    features.update(f"{a} and {b}" for a in set(kinds) for b in set(kinds) if a < b)
    bounded = ["start", *kinds, "end"]
    features.update(f"{a}, {b}" for a, b in pairwise(bounded))
    features.update(", ".join(bounded[i : i + 3]) for i in range(len(kinds)))
    features.update(f"{kind} of length {b - a}" for a, b, kind in chunks)
    return features


# %%
# :class:`~skstruct.NBestReranker` trains the reranker on out-of-fold n-best lists: the lists of
# each fifth of the training set come from a tagger trained on the rest. The tagger's score is an
# additional feature.

reranked = NBestReranker(
    CRFTagger(l2=0.2),
    VRDAReranker(random_state=0),
    features=labelling_features,
    cost="chunk_f1",
).fit(X_train, y_train)
report("tagger", tagger)
report("with a reranker", reranked)

# %%
# Weights
# -------
# The reranker is a linear model with named weights.

weights = reranked.reranker_.coef_
names = reranked.reranker_.feature_names_in_
order = np.argsort(weights)
shown = np.concatenate([order[:12], order[-12:]])
figure, axes = plt.subplots(figsize=(7, 6))
axes.barh(names[shown], weights[shown], color=np.where(weights[shown] > 0, "C0", "C3"))
axes.set(title="Features with the smallest and largest weights", xlabel="weight")
figure.tight_layout()

# %%
# Sparsity
# --------
# VRDA sets a weight to zero if its mean gradient is at most `l1` in absolute value. With
# ``prediction="last"`` the model is the last predictor instead of the vote, which makes it sparser.

thresholds = [0.0, 0.002, 0.005, 0.01, 0.02]
for l1 in thresholds:
    small = NBestReranker(
        CRFTagger(l2=0.2),
        VRDAReranker(l1=l1, prediction="last", random_state=0),
        features=labelling_features,
        cost="chunk_f1",
        cv=3,
    ).fit(X_train, y_train)
    report(f"l1 = {l1}, {np.count_nonzero(small.reranker_.coef_)} weights", small)
