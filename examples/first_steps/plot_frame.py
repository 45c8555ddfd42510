"""
Tag tokens in a data frame
==========================

Tokens often come as a data frame: one token a row, with columns for the document, the token and its
label. In this example a tagger learns from such a frame, and its predictions become columns of the
frame, where pandas can count the errors.
"""

# %%
# Data
# ----
# The rows are the tokens of postal addresses. The labels are parts such as streets, numbers and
# cities, without the B- and I- of their chunks.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_frame.svg"

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skstruct import CRFTagger, SequenceBatch
from skstruct.datasets import load_addresses

addresses, labels = load_addresses(return_X_y=True)
frame = pd.DataFrame(
    {
        "address": np.repeat(np.arange(len(addresses)), [len(tokens) for tokens in addresses]),
        "token": [token for tokens in addresses for token in tokens],
        "label": [label.split("-")[-1] for sequence in labels for label in sequence],
    }
)
frame.head(8)

# %%
# Features are columns
# --------------------
# Strings become a feature for each value; bools and numbers are features themselves. pandas
# computes them for all rows at once. ``groupby(...).shift`` moves a column to the tokens
# before and after; where there is none, the value is missing and the token has no such feature.

frame["row"] = np.arange(len(frame))
frame["word"] = frame["token"].str.lower()
frame["ending"] = frame["word"].str[-3:]
frame["digits"] = frame["token"].str.isdigit()
frame["upper"] = frame["token"].str.isupper()
frame["word_before"] = frame.groupby("address")["word"].shift(1)
frame["word_after"] = frame.groupby("address")["word"].shift(-1)
columns = ["word", "ending", "digits", "upper", "word_before", "word_after"]

# %%
# Learn and predict
# -----------------
# ``SequenceBatch.from_frame`` puts the rows of a group together. The features of new tokens are
# those that the tagger knows, ``feature_names_in_``. ``SequenceBatch.to_frame`` returns predictions
# in the order of the rows. With ``group="row"`` each token is a sequence of its own, so that the
# tagger is a logistic regression.

train, test = frame[frame["address"] % 3 > 0], frame[frame["address"] % 3 == 0].copy()


def predict(group):
    X, y = SequenceBatch.from_frame(train, group, columns=columns, label="label")
    tagger = CRFTagger(l2=0.5).fit(X, y)
    known = tagger.feature_names_in_
    X_test = SequenceBatch.from_frame(test, group, columns=columns, feature_names=known)
    return SequenceBatch.to_frame(tagger.predict(X_test), test, group)["predicted"]


test["token by token"] = predict("row")
test["as sequences"] = predict("address")
test[["token", "label", "token by token", "as sequences"]].head(8)

# %%
# Count the errors
# ----------------
# The predictions are columns, so ``groupby`` counts the errors of each label.

names = ["token by token", "as sequences"]
errors = test[names].ne(test["label"], axis=0).groupby(test["label"]).sum()
errors = errors[errors.sum(axis=1) > 0].sort_values("token by token")

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.arange(len(errors))
ax.hlines(places, errors.min(axis=1), errors.max(axis=1), color="0.8", zorder=0)
for name, colour in zip(names, ("tab:orange", "tab:blue"), strict=True):
    share = test[name].eq(test["label"]).mean()
    ax.scatter(errors[name], places, color=colour, label=f"{name}: {share:.1%} of tokens right")
ax.set(yticks=places, yticklabels=errors.index, xlabel="wrong tokens of the test addresses")
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
