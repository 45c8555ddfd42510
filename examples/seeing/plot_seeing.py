"""
See what a tagger does
======================

:mod:`skstruct.inspection` has pictures and tables of fitted taggers: how training went, which
labels are confused, what the probabilities are worth, and why a token got its label.
"""

# %%
# Taggers
# -------
# A CRF, learnt in two ways, and a perceptron label the tokens of postal addresses. A validation set
# is scored at every epoch.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_seeing.svg"

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from skstruct import SDCACRF, CRFTagger, PerceptronTagger
from skstruct.datasets import load_addresses
from skstruct.inspection import (
    CalibrationDisplay,
    ChunkConfusionDisplay,
    FeatureWeightsDisplay,
    LabelConfusionDisplay,
    TaggedText,
    TrainingCurveDisplay,
    TransitionDisplay,
    explain_labelling,
    explain_token,
    label_alternatives,
    smallest_label_change,
)


def attributes(tokens, t):
    token = tokens[t]
    found = {
        "word": token.lower(),
        "shape": "".join("9" if c.isdigit() else "X" if c.isupper() else "x" for c in token[:4]),
        "ending": token[-3:].lower(),
    }
    for offset in (-2, -1, 1, 2):
        if 0 <= t + offset < len(tokens):
            found[f"word[{offset:+}]"] = tokens[t + offset].lower()
    return found


texts, y = load_addresses(return_X_y=True)
texts_train, texts_test, y_train, y_test = train_test_split(texts, y, test_size=0.3, random_state=0)
X_train, X_test = (
    [[attributes(tokens, t) for t in range(len(tokens))] for tokens in part]
    for part in (texts_train, texts_test)
)
validation = {"X_val": X_test, "y_val": y_test}
crf = CRFTagger(l2=0.1).fit(X_train, y_train, **validation)
sdca = SDCACRF(l2=0.1, random_state=0).fit(X_train, y_train, **validation)
perceptron = PerceptronTagger(random_state=0).fit(X_train, y_train, **validation)

# %%
# Training curves
# ---------------
# ``TrainingCurveDisplay`` plots any column of ``history_``, of one estimator or of several. The
# first two learn the same model: L-BFGS and dual ascent get to the same minimum in different ways.

TrainingCurveDisplay.from_estimator(
    {"L-BFGS": crf, "dual ascent": sdca, "perceptron": perceptron},
    x="time",
    y=["validation_score", "relative_gap"],
)
plt.show()

# %%
# Confusion
# ---------
# Components that are found with the right tokens, but perhaps the wrong type, are compared by type.
# The others are counted as "(none)".

ChunkConfusionDisplay.from_estimator(crf, X_test, y_test)
plt.show()

# %%
# A confusion matrix of labels can be confined to some of them.

streets = ["O", "B-NUMBER", "B-STREET", "I-STREET", "B-RECIPIENT", "I-RECIPIENT"]
LabelConfusionDisplay.from_estimator(crf, X_test, y_test, labels=streets)
plt.show()

# %%
# Weights
# -------
# The features with the largest weights for a label, and against it.

FeatureWeightsDisplay.from_estimator(crf, labels=["B-POSTCODE", "B-STREET", "B-UNIT"])
plt.show()

# %%
# The weights of label pairs, here with those of first and last labels.

TransitionDisplay.from_estimator(crf, labels=streets, include_ends=True)
plt.show()

# %%
# Calibration
# -----------
# A CRF is trained for probabilities, and its curves are close to the diagonal, where probabilities
# are what they say. The scores of a perceptron are too large to be probabilities.

fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
bins = {"ax": ax, "strategy": "quantile"}
CalibrationDisplay.from_estimator(crf, X_test, y_test, n_bins=20, **bins)
CalibrationDisplay.from_estimator(crf, X_test, y_test, of="sequence", marker="^", **bins)
CalibrationDisplay.from_estimator(perceptron, X_test, y_test, n_bins=20, marker="o", **bins)
plt.show()

# %%
# Tagged texts
# ------------
# The probabilities of a token's labels appear when the mouse is over it; the line below a text has
# the probability of the whole, and opens a list of its best labellings. ``save`` writes a page.

TaggedText.from_estimator(crf, X_test[:8], tokens=texts_test[:8])

# %%
# Why this label?
# ---------------
# The score of a labelling is a sum of weights. These are the terms of the first address, the
# largest first.

table = explain_labelling(crf, X_test, index=0)
print(f"sum of all contributions: {table['contribution'].sum():.3f}")
print(f"score of the labelling:   {crf.predict_nbest(X_test[:1])[0][0].score:.3f}")
table.sort_values("contribution", ascending=False).head(8)

# %%
# Which label would have been next? A token of an address that the tagger got wrong:

predicted = crf.predict(X_test)
index, token = next(
    (i, t)
    for i, labels in enumerate(y_test)
    for t, label in enumerate(labels)
    if label != "O" and predicted[i][t] not in ("O", label)
)
print(*texts_test[index])
print(f"{texts_test[index][token]}: {predicted[index][token]}, correct {y_test[index][token]}")
label_alternatives(crf, X_test, index=index, token=token).drop(columns="labelling").head(4)

# %%
# What spoke for it, and what for the correct label: the terms in which the two labellings differ
# most.

correct = y_test[index][token]
explain_token(crf, X_test, index=index, token=token, label=correct).head(8)

# %%
# And what would have to change? The fewest features of the token without which it gets another
# label:

change = smallest_label_change(crf, X_test, index=index, token=token)
print(f"{change.label} -> {change.new_label}, without:\n")
print(change.removed.to_string(index=False))
