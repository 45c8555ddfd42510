"""
Learn from wrong labels
=======================

Annotators make mistakes, and labels projected from another source have more of them. This example
replaces labels of the training data by random ones, and compares how well taggers still find the
components of postal addresses.
"""

# %%
# Data
# ----
# The addresses come with the package. A share of the training labels becomes wrong; the test labels
# stay as they are.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_wrong_labels.svg"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skstruct import AROWTagger, CRFTagger, PerceptronTagger, SequenceVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score


def features(tokens):
    words = ["", "", *(token.lower() for token in tokens), "", ""]
    return [
        {
            "word": words[i + 2],
            "ends": [words[i + 2][-n:] for n in (1, 2, 3)],
            "begins": [words[i + 2][:n] for n in (1, 2, 3)],
            "around": [f"{offset}={words[i + 2 + offset]}" for offset in (-2, -1, 1, 2)],
            "digits": str(sum(c.isdigit() for c in token)),
            "capital": token[:1].isupper(),
        }
        for i, token in enumerate(tokens)
    ]


addresses, y = load_addresses(return_X_y=True)
X = SequenceVectorizer().fit_transform([features(tokens) for tokens in addresses])
train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0)
labels = sorted({label for row in y for label in row})


def with_wrong_labels(rows, share, seed):
    rng = np.random.default_rng(seed)
    return [
        [rng.choice(labels) if rng.random() < share else label for label in row] for row in rows
    ]


# %%
# Learners
# --------
# AROW changes rare features much, and hardly those that many sequences have settled. A wrong label
# moves the weights of the rare features of its token, and nothing later contradicts them. The
# average over all sequences evens out single steps, and a larger `gamma` makes them smaller.

taggers = {
    "CRFTagger": CRFTagger(l2=1.0),
    "PerceptronTagger, averaged": PerceptronTagger(max_iter=5, tol=None, random_state=0),
    "AROWTagger, averaged": AROWTagger(max_iter=5, tol=None, random_state=0),
    "AROWTagger, gamma = 1, last weights": AROWTagger(
        gamma=1, average=False, max_iter=5, tol=None, random_state=0
    ),
    "PerceptronTagger, last weights": PerceptronTagger(
        average=False, max_iter=5, tol=None, random_state=0
    ),
}
shares = [0.0, 0.1, 0.2, 0.3]
clean = [y[i] for i in train]
f1 = {name: [] for name in taggers}
for share in shares:
    y_train = with_wrong_labels(clean, share, seed=0)
    for name, tagger in taggers.items():
        predicted = tagger.fit(X[train], y_train).predict(X[test])
        f1[name].append(chunk_f1_score([y[i] for i in test], predicted))

for name, scores in f1.items():
    print(f"{name:36}", *(f"{score:.2f}" for score in scores))

# %%
# Result
# ------
# Without wrong labels the taggers differ by some points. With a tenth of them wrong, what is not
# averaged loses much more. The conditional random field weighs all sequences at once, and its
# penalty keeps the weights of rare features small.

fig, ax = plt.subplots(layout="constrained")
for name, scores in f1.items():
    ax.plot(shares, scores, marker="o", label=name)
ax.set(xlabel="share of wrong labels in the training data", ylabel="chunk F1 on the test data")
ax.set_ylim(bottom=0)
ax.legend(frameon=False)
plt.show()
