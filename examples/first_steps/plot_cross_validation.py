"""
Cross-validate a tagger in two lines
====================================

A function computes the features of a token. Two lines then load labelled addresses and
cross-validate a tagger, like any other estimator of scikit-learn.
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_cross_validation.svg"

import matplotlib.pyplot as plt
from sklearn.model_selection import cross_val_score

from skstruct import CRFTagger, PerceptronTagger, SAPOTagger
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_scorer


def features(tokens):
    """Features of each token: the word, its suffix, and the words before and after."""
    padded = ["", *tokens, ""]
    return [
        {"word": word, "ending": word[-2:], "before": padded[i], "after": padded[i + 2]}
        for i, word in enumerate(tokens)
    ]


# %%
# The scores are the F1 of the components of an address, on five parts of the data.

X, y = load_addresses(return_X_y=True)
print(cross_val_score(CRFTagger(l2=0.1), list(map(features, X)), y, scoring=chunk_f1_scorer))

# %%
# All taggers have the same interface. A line connects the scores on the same part: parts differ as
# much as taggers do, so compare taggers on the same parts.

dicts = list(map(features, X))
taggers = [CRFTagger(l2=0.1), SAPOTagger(random_state=0), PerceptronTagger(random_state=0)]
scores = [cross_val_score(tagger, dicts, y, scoring=chunk_f1_scorer) for tagger in taggers]

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for part, found in enumerate(zip(*scores, strict=True), 1):
    axes.plot(range(len(taggers)), [100 * score for score in found], "o-", label=f"part {part}")
means = [100 * found.mean() for found in scores]
axes.plot(range(len(taggers)), means, "k_", ms=40, mew=3, label="mean")
axes.set_xticks(range(len(taggers)), [type(tagger).__name__ for tagger in taggers])
axes.set(
    ylabel="F1 of components, %", xlim=(-0.4, 2.4), title="Three taggers on the same five parts"
)
axes.spines[["top", "right"]].set_visible(False)
figure.legend(loc="outside right center", frameon=False, markerscale=0.6)
plt.show()
