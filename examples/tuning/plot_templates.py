"""
Choose feature templates by cross-validation
============================================

The feature template is a parameter that can be tuned. This example compares five templates for
labelling addresses. :class:`~skstruct.TemplateVectorizer` computes the features directly from the
tokens.
"""

# %%
# Templates
# ---------
# Each line generates one feature per token. ``%x[-1,0]`` is column 0 of the previous token (tokens
# have only one column here), and ``|shape`` applies a function to it. The text around becomes part
# of the feature's name. A line with ``B`` instead of ``U`` generates transition features, which
# have a weight for every label pair.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_templates.svg"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, TemplateVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_scorer

word = ["U00:%x[0,0|lower]"]
with_transitions = [*word, "B10:%x[0,0|shape]"]
with_neighbours = [*word, "U01:%x[-1,0|lower]", "U02:%x[1,0|lower]"]
with_spelling = [
    *with_neighbours,
    "U10:%x[0,0|shape]",
    "U11:%x[-1,0|shape]",
    "U12:%x[1,0|shape]",
    "U13:%x[0,0|lower|suffix2]",
]
templates = {
    "word": word,
    "word, transitions by shape": with_transitions,
    "word and neighbours": with_neighbours,
    "word, neighbours, spelling": with_spelling,
    "default template": None,
}

addresses, labels = load_addresses(return_X_y=True)
vectorizer = TemplateVectorizer(with_spelling)
batch = vectorizer.fit_transform(addresses)
print(" ".join(addresses[0]))
print(batch)

# %%
# The features of the third token:

for name in vectorizer.inverse_transform(batch[:1])[0][2]:
    print(name)

# %%
# Comparison
# ----------
# Vectoriser and tagger form a pipeline, so the vectoriser is fitted on the training part of each
# fold.

pipeline = make_pipeline(TemplateVectorizer(), CRFTagger(l2=0.1, tol=1e-2))
search = GridSearchCV(
    pipeline,
    {"templatevectorizer__template": list(templates.values())},
    scoring=chunk_f1_scorer,
    cv=KFold(5, shuffle=True, random_state=0),
).fit(addresses, labels)

scores = search.cv_results_["mean_test_score"]
deviations = search.cv_results_["std_test_score"]
positions = np.arange(len(templates))[::-1]
fig, ax = plt.subplots(figsize=(7, 3.0), layout="constrained")
ax.errorbar(scores, positions, xerr=deviations, fmt="o", capsize=3)
ax.set(yticks=positions, yticklabels=templates, xlabel="chunk F1, mean ± std of 5 folds")
ax.set_ylim(-0.5, len(templates) - 0.5)
ax.grid(axis="x", alpha=0.4)
plt.show()

# %%
# Weights of the best template
# ----------------------------
# ``get_feature_names_out`` returns the names in the order of the columns.

best_vectorizer, tagger = search.best_estimator_
names = best_vectorizer.get_feature_names_out()
for label in ("B-STREET", "B-CITY", "B-POSTCODE"):
    weights = tagger.coef_[list(tagger.classes_).index(label)]
    strongest = weights.argsort()[::-1][:4]
    print(f"{label:10}", "   ".join(f"{names[k]} {weights[k]:+.2f}" for k in strongest))
