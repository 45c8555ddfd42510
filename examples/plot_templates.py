"""
Choose features by cross-validation
===================================

A feature template is a parameter like any other: here, five of them compete on the labelling of
addresses. :class:`~skstruct.TemplateVectorizer` makes the features straight of the
tokens.
"""

# %%
# The templates
# -------------
# Each line makes one feature of every token: ``%x[-1,0]`` is the token before, column 0 (here, a
# token has but one), and ``|shape`` a function of it. The text around becomes part of the name. A
# line with ``B`` instead of ``U`` is about two labels in a row: how well they go together where a
# token is seen.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, TemplateVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_scorer

word = ["U00:%x[0,0|lower]"]
with_transitions = [*word, "B10:%x[0,0|shape]"]
neighbours = [*word, "U01:%x[-1,0|lower]", "U02:%x[1,0|lower]"]
spelling = [
    *neighbours,
    "U10:%x[0,0|shape]",
    "U11:%x[-1,0|shape]",
    "U12:%x[1,0|shape]",
    "U13:%x[0,0|lower|suffix2]",
]
templates = {
    "the word": word,
    "and label pairs by its spelling": with_transitions,
    "the word and its neighbours": neighbours,
    "and their spelling": spelling,
    "the ready template": None,
}

addresses, labels = load_addresses(return_X_y=True)
vectorizer = TemplateVectorizer(spelling)
batch = vectorizer.fit_transform(addresses)
print(" ".join(addresses[0]))
print(batch)

# %%
# What the third token is described by:

for name in vectorizer.inverse_transform(batch[:1])[0][2]:
    print(name)

# %%
# The competition
# ---------------
# Vectoriser and tagger form a pipeline, so that each fold learns its features from its own
# training part.

pipeline = make_pipeline(TemplateVectorizer(), CRFTagger(l2=0.1, tol=1e-2))
search = GridSearchCV(
    pipeline,
    {"templatevectorizer__template": list(templates.values())},
    scoring=chunk_f1_scorer,
    cv=KFold(5, shuffle=True, random_state=0),
).fit(addresses, labels)

scores = search.cv_results_["mean_test_score"]
deviations = search.cv_results_["std_test_score"]
places = np.arange(len(templates))[::-1]
fig, ax = plt.subplots(figsize=(7, 3.0), layout="constrained")
ax.errorbar(scores, places, xerr=deviations, fmt="o", capsize=3)
ax.set(yticks=places, yticklabels=templates, xlabel="chunk F1, mean and deviation of 5 folds")
ax.set_ylim(-0.5, len(templates) - 0.5)
ax.grid(axis="x", alpha=0.4)
plt.show()

# %%
# What the best one looks at
# --------------------------
# Names are made when they are asked for, in the order of the columns.

best_vectorizer, tagger = search.best_estimator_
names = best_vectorizer.get_feature_names_out()
for label in ("B-STREET", "B-CITY", "B-POSTCODE"):
    weights = tagger.coef_[list(tagger.classes_).index(label)]
    strongest = weights.argsort()[::-1][:4]
    print(f"{label:10}", "   ".join(f"{names[k]} {weights[k]:+.2f}" for k in strongest))
