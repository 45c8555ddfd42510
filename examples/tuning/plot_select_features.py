"""
Select features
===============

Transformers of scikit-learn take rows, and a tagger's features are rows, one for each token.
:class:`~skstruct.TokenTransformer` makes a step of them that knows sequences: scaling, selection,
and reduction of features, inside a pipeline and a search.
"""

# %%
# How many features does a parser of addresses need?
# --------------------------------------------------
# ``SelectKBest`` keeps the features that tell most about the labels of tokens, by their chi-squared
# statistic. It sees the labels, so it belongs inside the pipeline: each fold selects its own.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_select_features.svg"

import matplotlib.pyplot as plt
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, TokenTransformer, WordVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_scorer

X, y = load_addresses(return_X_y=True)
pipeline = make_pipeline(WordVectorizer(), TokenTransformer(SelectKBest(chi2)), CRFTagger())
numbers = [100, 200, 500, 1000, 2000, "all"]
search = GridSearchCV(
    pipeline,
    {"tokentransformer__transformer__k": numbers},
    scoring=chunk_f1_scorer,
    cv=3,
).fit(X, y)
for k, score in zip(numbers, search.cv_results_["mean_test_score"], strict=True):
    print(f"{k!s:>5} features: F1 {score:.3f}")

# %%
# The names of what is left
# -------------------------
# Names of features go through the steps, so that one sees what is left: here the words among the
# 200 best features. Fewer features make a smaller model; on these addresses, each has its worth.

model = pipeline.set_params(tokentransformer__transformer__k=200).fit(X, y)
names = model[:-1].get_feature_names_out()
print(*(name.removeprefix("Uword+0:") for name in names if name.startswith("Uword+0:")))

# %%
# F1 by the number of features
# ----------------------------

n_features = len(pipeline[0].get_feature_names_out())
sizes = [n_features if k == "all" else k for k in numbers]
mean, deviation = (search.cv_results_[f"{name}_test_score"] for name in ("mean", "std"))
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.errorbar(sizes, mean, deviation, marker="o", capsize=3)
axes.set(
    xscale="log",
    xlabel="features",
    ylabel="component F1",
    title="Mean and standard deviation of three folds",
)
axes.grid(alpha=0.3)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
