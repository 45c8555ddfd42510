"""
Recognise noisy handwritten numbers
===================================

A noisy digit can be ambiguous by itself, but not in context: a 1 or a 7 after "4 5 6" is probably a
7. A classifier sees one image at a time; a conditional random field decodes the whole number.

The features in this example are dense: each sequence is a matrix of pixels.
"""

# %%
# Data
# ----
# Each sequence is a number of some kind: a year, a date, a time of day, a phone number, a price, or
# a count up or down. Each digit is a noisy image of 8 x 8 pixels. No image occurs in both the
# training and the test numbers.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_digit_sequences.svg"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skstruct import CRFTagger
from skstruct.datasets import load_digit_sequences
from skstruct.inspection import TransitionDisplay

train = load_digit_sequences(n_sequences=1000, subset="train", noise=5)
test = load_digit_sequences(n_sequences=1000, subset="test", noise=5)
X_train, y_train = [images / 16 for images in train.data], train.target
X_test, y_test = [images / 16 for images in test.data], test.target

print(f"{len(X_train)} numbers; the first is a {train.kind[0]} of shape {X_train[0].shape}")

# %%
# Comparison with a classifier
# ----------------------------
# On sequences of length one, a CRF is logistic regression with ``C = 1 / l2``, except that it also
# penalises the biases. So the comparison is fair: same features, same penalty, tuned by
# cross-validation for both. The CRF only adds transition weights.

strengths = [3, 10, 30]
crf = GridSearchCV(CRFTagger(), {"l2": strengths}, cv=3).fit(X_train, y_train)

alone = GridSearchCV(
    LogisticRegression(max_iter=1000), {"C": [1 / l2 for l2 in strengths]}, cv=3
).fit(np.concatenate(X_train), np.concatenate(y_train))

truth = np.concatenate(y_test)
by_crf = np.concatenate(crf.predict(X_test))
by_alone = alone.predict(np.concatenate(X_test))

print(f"accuracy of logistic regression: {np.mean(by_alone == truth):.3f}")
print(f"accuracy of the CRF:             {np.mean(by_crf == truth):.3f}")

# %%
# The gain depends on the kind of number. Context helps most in counts, where each digit follows
# from the previous one. It misleads in prices, whose digits are mostly random: the model does not
# know the kind of number, and applies what it has learnt from phone numbers and counts.

kind = np.repeat(test.kind, [len(y) for y in y_test])
kinds = sorted(set(test.kind), key=lambda k: np.mean((by_crf == truth)[kind == k]))
height = 0.36

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for shift, name, predicted, color in (
    (height / 2, "CRF", by_crf, "C0"),
    (-height / 2, "logistic regression", by_alone, "0.7"),
):
    share = [np.mean((predicted == truth)[kind == k]) for k in kinds]
    bars = ax.barh(np.arange(len(kinds)) + shift, share, height, color=color, label=name)
    ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=9)
ax.set_yticks(range(len(kinds)), kinds)
ax.tick_params(axis="y", length=0)
ax.set(xlim=(0, 1), xlabel="accuracy")
ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=2)
ax.spines[["top", "right", "left"]].set_visible(False)

# %%
# A single number
# ---------------
# Of the test numbers that the CRF recognises without error, this is the one with the most errors of
# the classifier.

predicted = crf.predict(X_test)
errors = np.array([np.sum(alone.predict(X) != y) for X, y in zip(X_test, y_test, strict=True)])
solved = np.array([np.array_equal(p, y) for p, y in zip(predicted, y_test, strict=True)])
chosen = np.argmax(errors * solved)
readings = {"classifier": alone.predict(X_test[chosen]), "CRF": predicted[chosen]}

fig, axes = plt.subplots(1, len(y_test[chosen]), figsize=(9, 1.9))
fig.subplots_adjust(left=0.12, right=0.99, top=0.8, bottom=0.4, wspace=0.1)
for t, ax in enumerate(axes):
    ax.imshow(X_test[chosen][t].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
    for y, (name, digits) in zip((-0.35, -0.85), readings.items(), strict=True):
        color = "black" if digits[t] == y_test[chosen][t] else "C3"
        ax.text(0.5, y, str(digits[t]), transform=ax.transAxes, ha="center", size=15, color=color)
        if t == 0:
            ax.text(-0.2, y, name, transform=ax.transAxes, ha="right", size=10)
fig.suptitle(f"A {test.kind[chosen]}; errors are red", size=11)

# %%
# Transition weights
# ------------------
# The stripes above and below the diagonal are counts up and down. The pair 5, 5 is the middle of
# phone numbers.

TransitionDisplay.from_estimator(crf)
plt.show()
