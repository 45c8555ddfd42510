"""
Choose a penalty along a path
=============================

How strong the penalty on the weights should be depends on the data: try many values. A grid search
learns from nothing for each of them, in each fold. :class:`~skstruct.CRFTaggerCV` goes from the
strongest penalty to the weakest, and finds each minimum from the ones before. It reads the features
once, and twenty values take hardly longer than five.
"""

# %%
# A path
# ------
# The task is to label the components of addresses. Folds are stratified by label.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_path.svg"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skstruct import CRFTaggerCV, WordVectorizer
from skstruct.datasets import load_addresses
from skstruct.inspection import PenaltyPathDisplay
from skstruct.metrics import chunk_f1_scorer
from skstruct.model_selection import StratifiedSequenceKFold

addresses, labels = load_addresses(return_X_y=True)
train, test, y_train, y_test = train_test_split(addresses, labels, random_state=0)
vectorizer = WordVectorizer().fit(train)
X_train, X_test = vectorizer.transform(train), vectorizer.transform(test)

folds = StratifiedSequenceKFold(5, shuffle=True, random_state=0)
tagger = CRFTaggerCV(np.geomspace(30, 0.001, 20), cv=folds, scoring=chunk_f1_scorer)
tagger.fit(X_train, y_train)
print(f"best l2 {tagger.l2_:.3f}, F1 in cross-validation {tagger.best_score_:.3f}")
print(f"F1 on the test set {tagger.score(X_test, y_test):.3f}")

# %%
# Scores along it
# ---------------
# The band is the standard deviation over the folds. Where the line is flat, the exact value does
# not matter. Where the best value is an end of the line, the search says so in a warning.

PenaltyPathDisplay.from_estimator(tagger)
plt.gca().set_ylabel("chunk F1, cross-validation")
plt.show()

# %%
# What the path saves
# -------------------
# ``cv_results_`` has the columns of a grid search, and for each fold the objective at the minimum
# and the number of iterations that led to it. A step takes few of them.

results = tagger.cv_results_
for l2, score, iterations in zip(
    results["param_l2"], results["mean_test_score"], results["split0_n_iter"], strict=True
):
    print(f"l2 {l2:7.3f}   mean F1 {score:.3f}   iterations in the first fold {iterations:3d}")
