"""
Tune a search-based tagger
==========================

:class:`~skstruct.SAPOTagger` looks at the few best labellings of each sequence. Three numbers
matter: how many it looks at (``n_best``), how strong the penalty of the weights is (``l2``), and
into how short pieces the sequences are cut while it learns (``mini_length``, structure
regularisation). Here a grid search chooses them, in a pipeline that starts from plain tokens.
"""

# %%
# Pipeline and grid
# -----------------
# The data are addresses, to be taken apart into street, city and the like. A template makes the
# features; see :doc:`plot_templates` for its format.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import Pipeline

from skstruct import MIRATagger, PerceptronTagger, SAPOTagger, TemplateVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score, chunk_f1_scorer

addresses, labels = load_addresses(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(addresses, labels, random_state=0)
print(f"{len(X_train)} addresses to learn from, {len(X_test)} to test on")
print(" ".join(f"{token}/{label}" for token, label in zip(X_train[0], y_train[0], strict=True)))

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
# Every fold learns its features from its own training part. ``max_iter`` with ``tol=None`` gives
# all settings the same number of epochs.

folds = KFold(3, shuffle=True, random_state=0)
search = GridSearchCV(pipeline, grid, scoring=chunk_f1_scorer, cv=folds).fit(X_train, y_train)
print(search.best_params_)
print(f"F1 in cross-validation {search.best_score_:.3f}")
print(f"F1 on the test set     {chunk_f1_score(y_test, search.predict(X_test)):.3f}")

# %%
# What matters
# ------------
# Each panel shows one of the three numbers, with the others left as the search chose them. The
# bars are standard errors over the folds. A difference that is smaller than these is no reason to
# prefer one setting to another.

results = search.cv_results_
errors = results["std_test_score"] / np.sqrt(folds.get_n_splits())
fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, grid.items(), strict=True):
    others = {key: value for key, value in search.best_params_.items() if key != name}
    rows = [results["params"].index({**others, name: value}) for value in values]
    places = np.arange(len(values))
    ax.errorbar(places, results["mean_test_score"][rows], yerr=errors[rows], fmt="o-", capsize=3)
    ax.set_xticks(places, ["no cut" if value is None else str(value) for value in values])
    ax.set_xlabel(name.removeprefix("tagger__"))
    ax.grid(axis="y", alpha=0.4)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("F1 of chunks in cross-validation")
plt.show()

# %%
# Beside the other online taggers
# -------------------------------
# The same features, learnt by the perceptron and by MIRA, which have no penalty to tune.

batch = pipeline["vectorizer"].fit_transform(X_train)
test_batch = pipeline["vectorizer"].transform(X_test)
for tagger in (PerceptronTagger(), MIRATagger(), MIRATagger(n_best=5), search.best_estimator_[-1]):
    tagger.set_params(max_iter=10, tol=None, random_state=0).fit(batch, y_train)
    f1 = chunk_f1_score(y_test, tagger.predict(test_batch))
    mean_weight = np.abs(tagger.coef_).mean()
    print(f"{tagger!s:70.70} F1 {f1:.3f}   mean |w| {mean_weight:.3f}")

# %%
# What SAPO has learnt is a distribution among the few labellings that it looked at. Among all of
# them, the best one of a tagger that looked at few has next to no probability, because nothing
# pushed the many others down. So ask for the probabilities among the labellings found:

tagger, vectorizer = search.best_estimator_["tagger"], search.best_estimator_["vectorizer"]
address = "Flat 2 Rose Cottage , 7 Church Lane , Leeds"
batch = vectorizer.transform([address.split()])
for labelling in tagger.predict_nbest(batch, n_best=3, normalize="n_best")[0]:
    print(f"{labelling.probability:.2f}  {' '.join(labelling.labels)}")
print(f"among all: {tagger.predict_nbest(batch, n_best=1)[0][0].probability:.0e}")
