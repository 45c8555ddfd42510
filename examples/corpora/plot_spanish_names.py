"""
Find names in Spanish text
==========================

The shared task of CoNLL-2002 is to find persons, organisations, locations and other names in
newspaper text. A conditional random field with an elastic net is the standard tagger for it. A
randomised search tunes its two penalties.

The corpus is not part of the package. :func:`~skstruct.datasets.fetch_conll2002` looks for it in
the folder of the environment variable ``SKSTRUCT_DATA``, and downloads it otherwise. Without the
corpus this example stops with a message, and this page shows no output.
"""

# %%
# Data and features
# -----------------
# To keep this example short, it learns from the first 4,000 of the 8,323 training sentences. The
# words are all that is used of a token. :class:`~skstruct.WordVectorizer` makes features of
# them: neighbours, prefixes, suffixes and shapes.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_spanish_names.svg"

import matplotlib.pyplot as plt
from scipy.stats import loguniform
from sklearn.model_selection import RandomizedSearchCV

from skstruct import CRFTagger, WordVectorizer
from skstruct.datasets import fetch_conll2002
from skstruct.inspection import TaggedText
from skstruct.metrics import chunk_f1_scorer, chunk_report

try:
    train, test = (fetch_conll2002(subset=subset) for subset in ("train", "testb"))
except OSError as error:
    print(f"Skipped: the corpus is not available. {error}")
    raise SystemExit from None

words, words_test = (
    [[token[0] for token in sentence] for sentence in part.data] for part in (train, test)
)
vectorizer = WordVectorizer()
X, X_test = vectorizer.fit_transform(words[:4000]), vectorizer.transform(words_test)
print(f"{X.n_rows:,} tokens, {X.n_features:,} features")

# %%
# Search
# ------
# ``l1`` makes weights zero, and so the model small; ``l2`` makes them small. Both are drawn from a
# logarithmic scale. 600 sentences are enough to see where good settings are. ``tol`` stops each fit
# within 1 % of its minimum, which is close enough to compare settings.

search = RandomizedSearchCV(
    CRFTagger(tol=1e-2),
    {"l1": loguniform(0.01, 3), "l2": loguniform(0.01, 3)},
    n_iter=10,
    scoring=chunk_f1_scorer,
    cv=2,
    random_state=0,
).fit(X[:600], train.target[:600])
best = search.best_params_
print(f"best: l1 = {best['l1']:.3f}, l2 = {best['l2']:.3f}, F1 = {search.best_score_:.3f}")

fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
results = search.cv_results_
points = ax.scatter(
    results["param_l1"], results["param_l2"], c=results["mean_test_score"], s=160, cmap="viridis"
)
ax.scatter(best["l1"], best["l2"], s=420, facecolors="none", edgecolors="tab:red", linewidths=2)
ax.set(xscale="log", yscale="log", xlabel="l1", ylabel="l2", title="chunk F1 in cross-validation")
fig.colorbar(points)
plt.show()

# %%
# Test set
# --------
# The best setting learns from all 4,000 sentences. More sentences need no other penalty, since the
# penalty is weighed against the sum over all of them.

tagger = CRFTagger(**best, tol=1e-2).fit(X, train.target[:4000])
predicted = tagger.predict(X_test)
print(chunk_report(test.target, predicted, digits=3))
n_weights = int((tagger.coef_ != 0).sum())
print(f"{n_weights:,} of {tagger.coef_.shape[0] * tagger.coef_.shape[1]:,} weights are not zero")

# %%
# Names with the tagger's probabilities, which appear when the mouse is over a word:

TaggedText.from_estimator(tagger, X_test[:6], tokens=words_test[:6])
