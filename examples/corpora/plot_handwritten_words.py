"""
Read handwritten words
======================

Letters are easier to read in a word than alone. The words of Taskar et al. (2004) are black and
white pictures of letters; the label of each is one of 26. A chain that knows which letters follow
each other is compared with a classifier of single letters.
"""

# %%
# The data
# --------
# A token is a letter of 16 x 8 pixels, so a word of n letters is a matrix of shape (n, 128).

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_handwritten_words.svg"

import matplotlib.pyplot as plt
import numpy as np

from skstruct import CRFTagger, PerceptronTagger
from skstruct.datasets import fetch_ocr_letters

X, y = fetch_ocr_letters(return_X_y=True)
X_test, y_test = fetch_ocr_letters(subset="test", return_X_y=True)
print(f"{len(X)} words to learn from, {len(X_test)} to test")

# %%
# One letter, or a word
# ---------------------
# Sequences of length one have no transitions: `CRFTagger` is then a logistic regression. The
# perceptron reads whole words, too, and learns faster.


def alone(matrices):
    """Make a sequence of each letter."""
    return np.concatenate(matrices)


letters = CRFTagger(l2=10, tol=1e-3).fit(alone(X), np.concatenate(y))
words = CRFTagger(l2=10, tol=1e-3).fit(X, y)
perceptron = PerceptronTagger(max_iter=10, tol=None, random_state=0).fit(X, y)

scores = {
    "single letters": letters.score(alone(X_test), np.concatenate(y_test)),
    "words, perceptron": perceptron.score(X_test, y_test),
    "words, CRF": words.score(X_test, y_test),
}
for name, score in scores.items():
    print(f"{name:18} {score:.1%} of the letters are right")

# %%
# What the chain corrects
# -----------------------
# Words in which the chain has mended most. Above each letter stands what the classifier of single
# letters read, below it what the chain read.

by_letter = np.split(letters.predict(alone(X_test)), np.cumsum([len(x) for x in X_test])[:-1])
by_word = words.predict(X_test)
mended = [
    np.sum((np.array(a) != gold) & (np.array(b) == gold)) - np.sum(np.array(b) != gold)
    for a, b, gold in zip(by_letter, by_word, y_test, strict=True)
]
best = sorted(range(len(mended)), key=lambda i: -mended[i])
texts, chosen = set(), []
for i in best:
    if "".join(y_test[i]) not in texts:
        texts.add("".join(y_test[i]))
        chosen.append(i)
chosen = chosen[:5]

width = max(len(y_test[i]) for i in chosen)
fig, axes = plt.subplots(len(chosen), width, figsize=(0.6 * width, 1.35 * len(chosen)))
for ax in axes.flat:
    ax.axis("off")
for row, i in zip(axes, chosen, strict=True):
    letters_of_word = zip(X_test[i], by_letter[i], by_word[i], y_test[i], strict=True)
    for ax, (pixels, a, b, gold) in zip(row, letters_of_word, strict=False):
        ax.imshow(pixels.reshape(16, 8), cmap="Greys", aspect="auto")
        ax.set_title(a, color="black" if a == gold else "tab:red", fontsize=11)
        ax.text(3.5, 19.5, b, color="black" if b == gold else "tab:red", ha="center", fontsize=11)
fig.suptitle("read one by one (above), and as a word (below)", fontsize=11)
fig.subplots_adjust(hspace=0.9, wspace=0.1, top=0.87)
plt.show()
