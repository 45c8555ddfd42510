"""
Tune a search-based tagger
==========================

:class:`~skstruct.SAPOTagger` learns from the n best labellings of each sequence. It has three
important parameters: the number of labellings (``n_best``), the penalty on the weights (``l2``),
and the length of the pieces into which structure regularisation cuts the training sequences
(``mini_length``). This example tunes them by grid search, in a pipeline that starts from plain
tokens.
"""

# %%
# Pipeline and grid
# -----------------
# The task is to label the components of addresses, such as street and city. The features come from
# a template; see :doc:`plot_templates` for its format.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_search.svg"

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import Pipeline

from skstruct import MIRATagger, PerceptronTagger, SAPOTagger, TemplateVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score, chunk_f1_scorer

addresses, labels = load_addresses(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(addresses, labels, random_state=0)
print(f"{len(X_train)} training addresses, {len(X_test)} test addresses")
pairs = zip(X_train[0], y_train[0], strict=True)
print(fill(" ".join(f"{token}/{label}" for token, label in pairs), 95))

template = [
    *(f"U{i}:%x[{i - 1},0|lower]" for i in range(3)),
    *(f"U{i + 3}:%x[{i - 1},0|shape]" for i in range(3)),
    "U6:%x[0,0|lower|suffix2]",
]
pipeline = Pipeline(
    [
        ("vectorizer", TemplateVectorizer(template)),
        ("tagger", SAPOTagger(max_iter=10, tol=None, random_state=0)),
    ]
)
grid = {
    "tagger__n_best": [1, 2, 5, 10],
    "tagger__l2": [0.01, 0.1, 1],
    "tagger__mini_length": [1.5, 3.5, None],
}

# %%
# Search
# ------
# The vectoriser is fitted on the training part of each fold. ``max_iter`` with ``tol=None`` gives
# all settings the same number of epochs.

folds = KFold(3, shuffle=True, random_state=0)
search = GridSearchCV(pipeline, grid, scoring=chunk_f1_scorer, cv=folds).fit(X_train, y_train)
print(search.best_params_)
print(f"F1 in cross-validation {search.best_score_:.3f}")
print(f"F1 on the test set     {chunk_f1_score(y_test, search.predict(X_test)):.3f}")

# %%
# Effect of each parameter
# ------------------------
# Each panel varies one parameter and keeps the others at their best values. The bars are standard
# errors over the folds. Smaller differences are not significant.

results = search.cv_results_
errors = results["std_test_score"] / np.sqrt(folds.get_n_splits())
fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, grid.items(), strict=True):
    others = {key: value for key, value in search.best_params_.items() if key != name}
    rows = [results["params"].index({**others, name: value}) for value in values]
    positions = np.arange(len(values))
    ax.errorbar(positions, results["mean_test_score"][rows], yerr=errors[rows], fmt="o-", capsize=3)
    ax.set_xticks(positions, ["no cuts" if value is None else str(value) for value in values])
    ax.set_xlabel(name.removeprefix("tagger__"))
    ax.grid(axis="y", alpha=0.4)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("chunk F1, cross-validation")
plt.show()

# %%
# Comparison with other online taggers
# ------------------------------------
# The perceptron and MIRA use the same features, and have no penalty to tune.

batch = pipeline["vectorizer"].fit_transform(X_train)
test_batch = pipeline["vectorizer"].transform(X_test)
for tagger in (PerceptronTagger(), MIRATagger(), MIRATagger(n_best=5), search.best_estimator_[-1]):
    tagger.set_params(max_iter=10, tol=None, random_state=0).fit(batch, y_train)
    f1 = chunk_f1_score(y_test, tagger.predict(test_batch))
    mean_weight = np.abs(tagger.coef_).mean()
    print(f"{tagger!s:70.70} F1 {f1:.3f}   mean |w| {mean_weight:.3f}")

# %%
# SAPO learns a distribution over the n best labellings only. If ``n_best`` is small, the best
# labelling has a very small probability among all labellings, because training did not lower the
# scores of the others. So normalise over the labellings found:

tagger, vectorizer = search.best_estimator_["tagger"], search.best_estimator_["vectorizer"]
address = "Flat 2 Rose Cottage , 7 Church Lane , Leeds"
batch = vectorizer.transform([address.split()])
for labelling in tagger.predict_nbest(batch, n_best=3, normalize="n_best")[0]:
    print(f"{labelling.probability:.2f}  {' '.join(labelling.labels)}")
probability = tagger.predict_nbest(batch, n_best=1)[0][0].probability
print(f"probability of the best labelling among all labellings: {probability:.0e}")
