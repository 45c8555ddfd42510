"""
Learn from partial labels
=========================

Training sequences need not be labelled in full. In this example a conditional random field learns
from partially labelled sequences under the constraints of the label scheme, and predicts the
missing labels.
"""

# %%
# Data
# ----
# The tokens of postal addresses are labelled as streets, numbers, cities and so on in the IOB2
# scheme. None marks a missing label.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_partial_labels.svg"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skstruct import CRFTagger
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score, token_accuracy_score


def attributes(tokens, t):
    found = {
        "shape": "".join("9" if c.isdigit() else "x" for c in tokens[t][:5]),
        "ending": tokens[t][-3:].lower(),
    }
    for offset in (-1, 0, 1):
        if 0 <= t + offset < len(tokens):
            found[f"word[{offset}]"] = tokens[t + offset].lower()
    return found


addresses, labels = load_addresses(return_X_y=True)
X = [[attributes(tokens, t) for t in range(len(tokens))] for tokens in addresses]
X_train, X_test, y_train, y_test = train_test_split(X, labels, test_size=0.4, random_state=0)


def hide(y, share, rng):
    """Keep a random share of the labels, and the first occurrence of each label."""
    seen, found = set(), []
    for sequence in y:
        kept = [j if rng.random() < share or j not in seen else None for j in sequence]
        seen.update(kept)
        found.append(kept)
    return found


y_half = hide(y_train, 0.5, np.random.default_rng(0))
print(*y_half[4])

# %%
# Comparison of methods
# ---------------------
# There are three ways to handle missing labels: drop all sequences that are not fully labelled,
# treat unlabelled tokens as O, or maximise the marginal likelihood of the known labels. ``fit``
# does the last if y has None. For comparison, the same number of labels is spent on a part of the
# sequences, labelled in full. Each share of labels is drawn three times.


def f1(X, y):
    tagger = CRFTagger(l2=0.5, constraint="IOB2").fit(X, y)
    return chunk_f1_score(y_test, tagger.predict(X_test))


def as_outside(y):
    return [[label or "O" for label in sequence] for sequence in y]


shares = (0.2, 0.35, 0.5, 0.65, 0.8)
names = {
    "partial": "partial labels",
    "whole": "as many labels, full sequences",
    "as O": "missing labels treated as O",
    "complete": "partially labelled sequences dropped",
}
scores = {name: [] for name in names}
for share in shares:
    found = {name: [] for name in scores}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        partial = hide(y_train, share, rng)
        complete = [i for i, sequence in enumerate(partial) if None not in sequence]
        whole = rng.permutation(len(y_train))[: round(share * len(y_train))]
        found["partial"].append(f1(X_train, partial))
        found["whole"].append(f1([X_train[i] for i in whole], [y_train[i] for i in whole]))
        if len(complete) > 1:
            kept = [X_train[i] for i in complete], [y_train[i] for i in complete]
            found["complete"].append(f1(*kept))
        plain = CRFTagger(l2=0.5).fit(X_train, as_outside(partial))
        found["as O"].append(chunk_f1_score(y_test, plain.predict(X_test)))
    for name, values in found.items():
        scores[name].append(np.mean(values) if values else np.nan)
everything = f1(X_train, y_train)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), marker in zip(scores.items(), "oDs^", strict=True):
    ax.plot(shares, values, marker=marker, label=names[name])
ax.axhline(everything, color="0.5", linestyle="--", label="all labels")
ax.set(xlabel="share of known labels", ylabel="chunk F1 on the test set", ylim=(0, 1))
fig.legend(loc="outside upper center", ncols=2, frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Partial labels are worth about as much as the same number of labels in full sequences. Dropping
# partially labelled sequences, or treating missing labels as O, is much worse.
#
# Prediction of the missing labels
# --------------------------------
# The same tagger predicts the missing labels. ``known`` passes the known labels, and the constraint
# makes the predictions consistent with them.

tagger = CRFTagger(l2=0.5, constraint="IOB2").fit(X_train, y_half)


def accuracy_of_hidden(predicted):
    """Accuracy on the missing labels."""
    hidden = [
        [label if known is None else None for label, known in zip(*pair, strict=True)]
        for pair in zip(y_train, y_half, strict=True)
    ]
    return token_accuracy_score(hidden, predicted)


print(f"without known labels  {accuracy_of_hidden(tagger.predict(X_train)):.3f}")
print(f"with known labels     {accuracy_of_hidden(tagger.predict(X_train, known=y_half)):.3f}")
