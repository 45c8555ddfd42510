"""
Find names that the best labelling leaves out
=============================================

With few examples, a tagger is seldom sure of a name. The best labelling then has none, although a
span may be a name with a probability of a third. A threshold tuned for F1 finds it, and so does a
tagger that has learnt with a cost of missed names.
"""

# %%
# Few and rare
# ------------
# A hundred addresses to learn from, and the rest to test. Of their parts, look for the flat or unit
# alone: every third address has one.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_spans.svg"

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, SpanTaggerCV, WordVectorizer, predict_spans
from skstruct.datasets import load_addresses
from skstruct.inspection import SpanThresholdDisplay
from skstruct.metrics import chunk_f1_score, chunk_f1_scorer

X, y = load_addresses(return_X_y=True)
y = [[label if label.endswith("UNIT") else "O" for label in labels] for labels in y]
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=100, random_state=0)
model = make_pipeline(WordVectorizer(), CRFTagger()).fit(X_train, y_train)
print(f"F1 of the best labelling: {chunk_f1_score(y_test, model.predict(X_test)):.3f}")

# %%
# Spans and their probabilities
# -----------------------------
# The probability that exactly these tokens are a chunk of this type. A low threshold shows what the
# best labelling has left out.

shown = 0
for tokens, spans in zip(X_test, predict_spans(model, X_test, threshold=0.2), strict=True):
    if shown < 5 and any(probability < 0.5 for *_, probability in spans):
        shown += 1
        for start, end, _, probability in spans:
            print(f"{probability:.2f}  {' '.join(tokens[start:end]):10}  in: {' '.join(tokens)}")

# %%
# A threshold for F1
# ------------------
# One cross-validation on the training set gives precision and recall at all thresholds.

tagger = SpanTaggerCV(model, cv=5, store_cv_results=True).fit(X_train, y_train)
print(f"threshold: {tagger.best_threshold_:.2f}")
print(f"F1 of spans above it: {tagger.score(X_test, y_test):.3f}")

# %%
# A cost of missed names
# ----------------------
# The other way is to learn for F1: "O" in place of a name gets a head start, which the name has to
# make up. Cross-validation chooses how large it is.

search = GridSearchCV(
    model,
    {"crftagger__label_cost": [None, *({"missed": cost} for cost in (0.5, 1, 2, 4))]},
    scoring=chunk_f1_scorer,
).fit(X_train, y_train)
print(f"label_cost: {search.best_params_['crftagger__label_cost']}")
print(f"F1 of the best labelling: {search.score(X_test, y_test):.3f}")

# %%
# Precision and recall
# --------------------

display = SpanThresholdDisplay.from_estimator(tagger, name="cross-validation")
display.ax_.set(xlim=(0, 1.02), ylim=(0, 1.02))
plt.show()
