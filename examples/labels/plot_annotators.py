"""
Learn from annotators who contradict each other
===============================================

Four people label addresses, three of them each. One is careful, one careless, one takes cities for
streets, and one misses half of what there is. Nobody tells the tagger who is who. This example
compares what it learns from majority vote with what it learns from all of them.
"""

# %%
# Four annotators
# ---------------
# They are simulated: each changes the right labels of the addresses, which come with the package,
# in a way of its own.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_annotators.svg"

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skstruct import AnnotatorCRF, CRFTagger, WordVectorizer
from skstruct.datasets import load_addresses, spans_to_labels
from skstruct.metrics import chunk_f1_score, extract_chunks

X, y = load_addresses(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
rng = np.random.default_rng(0)


def annotate(labels, *, changed=0.0, missed=0.0, confused=0.0):
    """Labels that a person gives, by the shares of the chunks with each mistake."""
    spans = []
    for start, end, kind in extract_chunks(labels):
        if rng.random() < missed:
            continue
        if rng.random() < changed:
            kind = str(rng.choice(["CITY", "STREET", "HOUSE"]))
        if kind == "CITY" and rng.random() < confused:
            kind = "STREET"
        spans.append((start, end, kind))
    return spans_to_labels(spans, [(t, t + 1) for t in range(len(labels))])


people = {
    "careful": {"changed": 0.05},
    "careless": {"changed": 0.4},
    "confused": {"changed": 0.05, "confused": 0.7},
    "hasty": {"missed": 0.5},
}
given = []
for labels in y:
    three = rng.choice(list(people), 3, replace=False)
    given.append({str(name): annotate(labels, **people[name]) for name in three})
print(" ".join(X[0]))
for name, labels in given[0].items():
    print(f"{name:9}", *labels)

# %%
# Majority vote, or all of them
# -----------------------------
# :class:`~skstruct.AnnotatorCRF` takes a dict of labellings for each sequence. It learns which
# labels are right and whom to believe, one from the other. ``consensus`` says what it takes for
# right in the training data.

vectorizer = WordVectorizer()
batch, test = vectorizer.fit_transform(X), vectorizer.transform(X_test)
majority = [
    [Counter(labels).most_common(1)[0][0] for labels in zip(*one.values(), strict=True)]
    for one in given
]
tagger = AnnotatorCRF().fit(batch, given)
consensus, _ = tagger.consensus(batch, given)
every = {"all_possible_states": True, "all_possible_transitions": True}
learnt = {"majority vote": majority, "consensus": consensus.tolist(), "right labels": y}
for name, labels in learnt.items():
    crf = CRFTagger(**every).fit(batch, labels)
    f1 = chunk_f1_score(y, labels), chunk_f1_score(y_test, crf.predict(test))
    print(f"{name:13} training labels {f1[0]:.3f}, CRFTagger on the test set {f1[1]:.3f}")
print(f"AnnotatorCRF on the test set {chunk_f1_score(y_test, tagger.predict(test)):.3f}")

# %%
# Who confuses what
# -----------------
# Each row is a right label, each column the one that the annotator gives. A perfect annotator has
# a dark diagonal, and whoever misses chunks a dark column "O".

shown = [label for label in tagger.classes_ if label.startswith("B-") or label == "O"]
where = np.searchsorted(tagger.classes_, shown)
fig, axes = plt.subplots(1, 4, figsize=(11, 4.4), sharey=True, layout="constrained")
for ax, name, confusion in zip(axes, tagger.annotators_, tagger.confusion_, strict=True):
    ax.imshow(confusion[np.ix_(where, where)], vmin=0, vmax=1, cmap="Blues")
    ax.set(title=name, xlabel="given label", xticks=range(len(shown)), yticks=range(len(shown)))
    ax.set_xticklabels(shown, rotation=90)
    ax.set_yticklabels(shown)
axes[0].set_ylabel("right label")
plt.show()
