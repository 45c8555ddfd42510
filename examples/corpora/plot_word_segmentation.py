"""
Find the words in a text without spaces
=======================================

Chinese and Japanese are written without spaces, and so are hashtags and web addresses. To find the
words is a task for a sequence tagger whose tokens are characters. The text here is English, so that
every reader can judge: sentences of the CoNLL-2000 corpus with their spaces taken out. That makes a
million tokens.

The corpus is not part of the package. :func:`~skstruct.datasets.fetch_conll2000` looks for it in
the folder of the environment variable ``SKSTRUCT_DATA``, and downloads it otherwise. Without the
corpus this example stops with a message, and this page shows no output.
"""

# %%
# Characters
# ----------
# A character begins a word (B), ends it (E), is inside (I) or is a word alone (S).

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_word_segmentation.svg"

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skstruct import CRFTagger, PerceptronTagger, TemplateVectorizer
from skstruct.datasets import fetch_conll2000
from skstruct.metrics import chunk_f1_score

try:
    train, test = (fetch_conll2000(subset=subset).data for subset in ("train", "test"))
except OSError as error:
    print(f"Skipped: the corpus is not available. {error}")
    raise SystemExit from None


def spell(sentences):
    """Characters of sentences, and their labels."""
    texts, labels = [], []
    for sentence in sentences:
        words = [word.lower() for word, _ in sentence]
        texts.append(list("".join(words)))
        labels.append(
            [x for w in words for x in ("S" if len(w) == 1 else "B" + "I" * (len(w) - 2) + "E")]
        )
    return texts, labels


X_train, y_train = spell(train)
X_test, y_test = spell(test)
print(f"{sum(map(len, X_train)):,} characters to learn from, {sum(map(len, X_test)):,} to test")
print("".join(X_train[0][:60]), "".join(y_train[0][:60]), sep="\n")

# %%
# Features
# --------
# All strings of up to five characters around a place: the characters themselves, pairs, triples and
# so on. A vectoriser reads them from a template, with numbers in place of names at once.

template = [
    f"U{length}{first:+}:" + "/".join(f"%x[{first + i},0]" for i in range(length))
    for length in range(1, 6)
    for first in range(-length, 2)
]
# The first call of a process loads the compiled kernels: one that is not timed.
few = TemplateVectorizer(template).fit_transform(X_train[:10])

vectorizer = TemplateVectorizer(template, min_freq=2)
start = process_time()
batch, test_batch = vectorizer.fit_transform(X_train), vectorizer.transform(X_test)
seconds = process_time() - start
print(f"{len(template)} templates, {batch.n_features:,} features: {seconds:.1f} s of the processor")

# %%
# Learning
# --------
# Both taggers visit the sentences one by one, and learn a million tokens in seconds. The score of a
# segmentation is the F1 of its words: a word is right if it begins and ends at the right places.

taggers = {
    "perceptron": PerceptronTagger(max_iter=5, tol=None, random_state=0),
    "CRF, by SGD": CRFTagger(solver="sgd", l2=1, max_iter=5, tol=None, random_state=0),
}
for name, tagger in taggers.items():
    clone(tagger).fit(few, y_train[:10])
    start = process_time()
    tagger.fit(batch, y_train)
    seconds = process_time() - start
    f1 = chunk_f1_score(y_test, tagger.predict(test_batch), scheme="IOBES")
    print(f"{name:12} {seconds:5.1f} s   F1 of the words {f1:.3f}")

# %%
# Sentences that nobody wrote with spaces:

unspaced = ["structuredpredictionwiththefeaturesofcharacters", "themanwhosoldtheworldtobankers"]
texts = [list(text) for text in unspaced]
crf = taggers["CRF, by SGD"]
for text, labels in zip(unspaced, crf.predict(vectorizer.transform(texts)), strict=True):
    print("".join(c + " " * (label in "ES") for c, label in zip(text, labels, strict=True)))

# %%
# Where a word may end
# --------------------
# The probability of a word's end after each character is the sum of the marginals of E and S. Blue
# bars are true ends. The sentences are the test set's shortest ones with a mistake.

proba = crf.predict_proba(test_batch)
ends = [p[:, [list(crf.classes_).index(label) for label in "ES"]].sum(axis=1) for p in proba]
truth = [np.isin(labels, ["E", "S"]) for labels in y_test]
wrong = [i for i in range(len(ends)) if np.any((ends[i] > 0.5) != truth[i])]
shown = [i for i in sorted(wrong, key=lambda i: len(ends[i])) if len(ends[i]) > 30][:3]

fig, axes = plt.subplots(len(shown), 1, figsize=(9, 5), layout="constrained")
for ax, i in zip(axes, shown, strict=True):
    colors = np.where(truth[i], "tab:blue", "tab:orange")
    ax.bar(np.arange(len(ends[i])) + 0.5, ends[i], width=0.35, color=colors)
    ax.axhline(0.5, color="grey", linewidth=0.6)
    ax.set_xticks(range(len(ends[i])), X_test[i], family="monospace")
    ax.tick_params(axis="x", length=0)
    ax.set(ylim=(0, 1), yticks=[0, 1], xlim=(-0.5, len(ends[i])))
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_ylabel("probability of a word's end")
plt.show()
