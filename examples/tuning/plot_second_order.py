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


def scores_of_folds(**params):
    tagger = PerceptronTagger(**params, **settings)
    predicted = cross_val_predict(tagger, X, y, groups=groups, cv=GroupKFold(5))
    return [
        chunk_f1_score([y[i] for i in part], [predicted[i] for i in part])
        for part in (np.flatnonzero(groups == fold) for fold in range(5))
    ]


scores = {f"order={order}": scores_of_folds(order=order) for order in (1, 2)}

# %%
# Labels with more letters
# ------------------------
# The other way to say more about neighbours: ``learn_scheme="IOBES"`` learns first, inner, last and
# only tokens of a component apart, and answers in the labels of ``y``. It costs less than triples,
# and gains less here, where parts follow each other in a certain order.

scores["IOBES"] = scores_of_folds(learn_scheme="IOBES")
for title, values in scores.items():
    print(f"{title}: component F1 {np.mean(values):.3f}")

fig, ax = plt.subplots(figsize=(5, 3.5))
ax.plot(list(scores), np.array(list(scores.values())), "o-", color="0.7")
ax.plot(list(scores), [np.mean(values) for values in scores.values()], "o-", lw=3, label="mean")
ax.set(ylabel="component F1", title="Five folds")
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
