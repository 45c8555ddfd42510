"""
Do more with few labels
=======================

Where labels are few, what goes into a tagger gains more than which tagger learns: what the labels
say about words in other sentences, classes of words from text without labels, and chunks above a
threshold in place of the best labelling. :doc:`/guide/few_sentences` explains the steps.
"""

# %%
# Few labels, more text
# ---------------------
# Up to 400 addresses have labels. All 400 are text for the classes, and the rest are for the test.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_few_labels.svg"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, LabelStatistics, SpanTaggerCV, WordClusters, WordVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score

X, y = load_addresses(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)

# %%
# Statistics of the labels
# ------------------------
# Beside each training token stands what the labels of *other* addresses say about its word: the
# commonest type, "!" if half of its occurrences or more have it, and how many there are at least.
# Words that occur nowhere else are "new", and so the tagger learns what to make of new words.

statistics = LabelStatistics()
for token, statistic in statistics.fit_transform(X_train, y_train)[1]:
    print(f"{token:12} {statistic}")

# %%
# Classes of words
# ----------------
# Words with the same neighbours, of 400 addresses, share a class. Its path in a tree has coarser
# classes as prefixes.

classes = WordClusters(32, min_count=2, random_state=0).fit(X_train).clusters_
for path in sorted(set(classes.values()))[:5]:
    print(f"{path:8} {' '.join([word for word in classes if classes[word] == path][:8])}")

# %%
# Step by step
# ------------

words = {"label_statistics": True}
steps = {
    "words": make_pipeline(WordVectorizer(), CRFTagger()),
    "and statistics": make_pipeline(WordVectorizer(**words), CRFTagger()),
    "and classes": make_pipeline(WordVectorizer(**words, clusters=classes), CRFTagger()),
}
steps["and chunks above a threshold"] = SpanTaggerCV(steps["and classes"], cv=3)

sizes, repeats = (50, 100, 200, 400), 3
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for title, model in steps.items():
    means = []
    for size in sizes:
        scores = []
        for seed in range(repeats):
            chosen = np.random.default_rng(seed).permutation(len(X_train))[:size]
            model.fit([X_train[i] for i in chosen], [y_train[i] for i in chosen])
            scores.append(chunk_f1_score(y_test, model.predict(X_test)))
        means.append(np.mean(scores))
    print(f"{title:30}", *(f"{score:.3f}" for score in means))
    axes.plot(sizes, means, ".-", label=title)
axes.set(
    xscale="log",
    xticks=sizes,
    xticklabels=sizes,
    xlabel="labelled addresses",
    ylabel="component F1",
    title=f"Means of {repeats} draws",
)
axes.minorticks_off()
axes.grid(alpha=0.3)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
