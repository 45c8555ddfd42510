"""
Second order
============

A chain of first order scores pairs of neighbouring labels. With ``order=2``, a tagger scores
triples, too, and a label may depend on the two before it. Whether that helps depends on the data:
here it is tried on postal addresses, whose parts come in a certain order.
"""

# %%
# Data
# ----
# The package includes the addresses. ``B-NUMBER``, ``B-STREET``, ``I-STREET`` is a triple:
# the second token of a street still knows what came before the street.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_second_order.svg"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GroupKFold, cross_val_predict

from skstruct import PerceptronTagger
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score

addresses = load_addresses()


def token_features(tokens):
    words = ["", *(token.lower() for token in tokens), ""]
    return [
        {
            "word": words[i],
            "ends": [f"{words[i][:2]}-", f"-{words[i][-2:]}"],
            "digits": words[i].isdigit(),
            "before": words[i - 1],
            "after": words[i + 1],
        }
        for i in range(1, len(words) - 1)
    ]


X = [token_features(tokens) for tokens in addresses.data]
y = addresses.target

# %%
# First and second order
# ----------------------
# Both get the same features and as many epochs, and are judged by cross-validation. A CRF of second
# order learns much longer: its sums go through all triples of labels.

settings = {"constraint": "IOB2", "max_iter": 10, "tol": None, "random_state": 0}
groups = np.arange(len(X)) % 5
scores = {}
for order in (1, 2):
    tagger = PerceptronTagger(order=order, **settings)
    predicted = cross_val_predict(tagger, X, y, groups=groups, cv=GroupKFold(5))
    scores[order] = [
        chunk_f1_score([y[i] for i in part], [predicted[i] for i in part])
        for part in (np.flatnonzero(groups == fold) for fold in range(5))
    ]
    print(f"order={order}: component F1 {np.mean(scores[order]):.3f}")

fig, ax = plt.subplots(figsize=(5, 3.5))
ax.plot([1, 2], np.array([scores[1], scores[2]]), "o-", color="0.7")
ax.plot([1, 2], [np.mean(scores[order]) for order in (1, 2)], "o-", lw=3, label="mean")
ax.set(xticks=[1, 2], xlabel="order of the chain", ylabel="component F1", title="Five folds")
_ = ax.legend()

# %%
# What triples say
# ----------------
# The weight of a triple says how much its first label changes the score of the last pair.

tagger = PerceptronTagger(order=2, **settings).fit(X, y)
triples = tagger.transition2_
for place in np.argsort(-abs(triples), axis=None)[:8]:
    labels = tagger.classes_[list(np.unravel_index(place, triples.shape))]
    print(f"{triples.flat[place]:+.2f}  {' -> '.join(labels)}")
