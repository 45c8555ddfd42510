"""
Parse postal addresses
======================

An address has components such as a recipient, a street, a city and a postcode, but their order and
spelling vary. A sequence tagger learns from examples to label each token with its component. It
uses features of the token, features of its neighbours, and the previous label.

This example covers feature extraction, training, evaluation, tuning, probabilities and weights.
"""

# %%
# Data
# ----
# The package includes the addresses. Each is a list of tokens, and each token has a label in the
# IOB2 scheme: ``B-`` begins a component, ``I-`` continues it, and ``O`` is outside all components.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_addresses.svg"

import re
from string import ascii_lowercase, ascii_uppercase, digits

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skstruct import CRFTagger, SequenceVectorizer, SpanTaggerCV, WordVectorizer
from skstruct.datasets import load_addresses
from skstruct.inspection import (
    FeatureWeightsDisplay,
    SequenceProbabilityDisplay,
    TransitionDisplay,
)
from skstruct.metrics import chunk_f1_score, chunk_f1_scorer, chunk_report

addresses = load_addresses()
X_train, X_test, y_train, y_test = train_test_split(
    addresses.data, addresses.target, test_size=0.3, random_state=0
)
print(f"{len(X_train)} training addresses, {len(X_test)} test addresses\n")
for token, label in zip(X_train[2], y_train[2], strict=True):
    print(f"{token:12} {label}")

# %%
# Words first
# -----------
# :class:`~skstruct.WordVectorizer` has ready-made features of words. Before you write your own, add
# what the labels say about words in other addresses (``label_statistics``), and predict the
# components above a threshold (:class:`~skstruct.SpanTaggerCV`).

words = make_pipeline(WordVectorizer(), CRFTagger())
statistics = make_pipeline(WordVectorizer(label_statistics=True), CRFTagger())
steps = {"words": words, "and statistics": statistics, "and spans": SpanTaggerCV(statistics)}
for title, tagger in steps.items():
    tagger.fit(X_train, y_train)
    print(f"{title:15} {chunk_f1_score(y_test, tagger.predict(X_test)):.3f}")

# %%
# Features of your own
# --------------------
# Each token is described by a dict of features. Strings and lists of strings become binary
# indicators, so no encoding is needed.


CLASSES = str.maketrans(ascii_uppercase + ascii_lowercase + digits, 26 * "X" + 26 * "x" + 10 * "d")


def shape(token):
    """Character classes, with runs of letters cut to two: "02633" is ddddd, "Lane" is Xxx."""
    return re.sub(r"([Xx])\1+", r"\1\1", token.translate(CLASSES))


def token_features(tokens, shapes, i):
    token = tokens[i].lower()
    features = {
        "word": token,
        "shape": shapes[i],
        "prefix": [token[:n] for n in (1, 2, 3)],
        "suffix": [token[-n:] for n in (1, 2, 3)],
        "tokens left": str(min(len(tokens) - 1 - i, 5)),
    }
    for offset in (-2, -1, 1, 2):
        if 0 <= i + offset < len(tokens):
            features[f"word[{offset:+}]"] = tokens[i + offset].lower()
            features[f"shape[{offset:+}]"] = shapes[i + offset]
    return features


def sequence_features(tokens):
    shapes = [shape(token) for token in tokens]
    return [token_features(tokens, shapes, i) for i in range(len(tokens))]


def extract_features(sequences):
    return [sequence_features(tokens) for tokens in sequences]


for name, value in sequence_features(X_train[2])[0].items():
    print(f"{name:12} {value}")

# %%
# Pipeline
# --------
# Taggers accept such dicts directly. Here the vectoriser is a step of its own, so that its
# parameters can be tuned, too.

crf = Pipeline(
    [
        ("features", FunctionTransformer(extract_features)),
        ("vectorizer", SequenceVectorizer()),
        ("tagger", CRFTagger()),
    ]
)
crf.fit(X_train, y_train)

# %%
# The report scores whole components. A component is correct if its first token, last token and type
# are correct.

print(chunk_report(y_test, crf.predict(X_test)))

# %%
# Any other tagger can take the CRF's place in the pipeline.
# :doc:`/benchmarks/which_tagger` compares them.

# %%
# Regularisation
# --------------
# ``l2`` is the strength of the penalty on the weights. It can be tuned by
# :class:`~sklearn.model_selection.GridSearchCV`, which works on sequences as it does on rows.
# Below, weak penalties have similar scores. In this case a good choice is the strongest penalty
# within one standard error of the best. Its weights are smaller, and its probabilities are less
# overconfident.


def strongest_of_the_best(results):
    mean, error = results["mean_test_score"], results["std_test_score"] / np.sqrt(5)
    best = np.argmax(mean)
    return np.flatnonzero(mean >= mean[best] - error[best])[-1]


strengths = np.logspace(-3, 1, 5)
search = GridSearchCV(
    crf, {"tagger__l2": strengths}, scoring=chunk_f1_scorer, cv=5, refit=strongest_of_the_best
)
search.fit(X_train, y_train)

mean = search.cv_results_["mean_test_score"]
error = search.cv_results_["std_test_score"] / np.sqrt(5)
chosen = search.best_params_["tagger__l2"]

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(strengths, mean - error, mean + error, color="C0", alpha=0.15, linewidth=0)
ax.semilogx(strengths, mean, "o-", color="C0", label="mean of 5 folds ± standard error")
ax.axvline(chosen, color="C1", linestyle="--", label=f"chosen: {chosen:.2g}")
ax.set(xlabel="l2", ylabel="component F1", title="F1 by strength of the penalty")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

model = search.best_estimator_
print(f"F1 on the test addresses: {chunk_f1_score(y_test, model.predict(X_test)):.3f}")

# %%
# Probabilities
# -------------
# ``predict_proba`` returns a probability for each label of each token. Here the confidence in an
# address is the probability of its least certain label.

predicted = model.predict(X_test)
confidence = np.array([proba.max(axis=1).min() for proba in model.predict_proba(X_test)])
correct = np.array([labels == truth for labels, truth in zip(predicted, y_test, strict=True)])

order = np.argsort(-confidence)
share = np.arange(1, len(order) + 1) / len(order)
accuracy = np.cumsum(correct[order]) / np.arange(1, len(order) + 1)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(share, accuracy, color="C0")
ax.set(
    xlabel="share of test addresses, most certain first",
    ylabel="addresses without errors",
    title="Accuracy on the most confident predictions",
    xlim=(0, 1),
    ylim=(0, 1.03),
)
ax.spines[["top", "right"]].set_visible(False)

# %%
# So confident predictions can be accepted, and the others can be reviewed. Here is one with little
# confidence. Each column shows the label probabilities of one token.

length = np.array([len(tokens) for tokens in X_test])
uncertain = np.argmin(np.where((length >= 7) & (length <= 12), confidence, np.inf))
SequenceProbabilityDisplay.from_estimator(model, X_test, y_test, index=uncertain)
plt.show()

# %%
# Weights
# -------
# The model is linear, with a weight for each feature and label, and for each pair of neighbouring
# labels. These are the features with the largest weights for three of the labels, and against them.

FeatureWeightsDisplay.from_estimator(
    model, labels=["B-POSTCODE", "B-STREET", "B-UNIT"], n_features=8
)
plt.show()

# %%
# The transition weights show the label scheme. The largest weights continue a component by an
# ``I-`` label of its own type. Label pairs that never occur in the training addresses have weight
# zero.

TransitionDisplay.from_estimator(model)
plt.show()
