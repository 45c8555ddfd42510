"""
Tag parts of speech from a million tokens
=========================================

The Brown corpus has a million tokens, each with one of 92 tags. Online learners such as the
averaged perceptron are made for this size: they learn from a sentence at a time, and a few passes
over the text are enough. Is so much text needed? The curve at the end says what each doubling of
the text is worth.

The corpus is not part of the package. This example reads two column files, with a word and its tag
in each line, from the folder ``brown-pos`` in the folder that the environment variable
``SKSTRUCT_DATA`` names. NLTK has the corpus, with finer tags, as ``brown.tagged_sents``;
:func:`~skstruct.datasets.write_conll` makes such files of it. Without them this example stops with
a message, and this page shows no output.
"""

# %%
# Data
# ----
# To keep this example short, it learns from an eighth of the text, taken evenly from all of it. The
# constant ``PART = 1`` takes all of it.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_parts_of_speech.svg"

import os
from pathlib import Path
from time import process_time

import matplotlib.pyplot as plt
import numpy as np

from skstruct import PerceptronTagger, TemplateVectorizer
from skstruct.datasets import read_conll

PART = 1 / 8

folder = Path(os.environ.get("SKSTRUCT_DATA", "")) / "brown-pos"
try:
    words, tags = read_conll(folder / "train.txt.gz", columns=0, separator="\t")
    words_test, tags_test = read_conll(folder / "test.txt.gz", columns=0, separator="\t")
except OSError as error:
    print(f"Skipped: the corpus is not available. {error}")
    raise SystemExit from None

step = round(1 / PART)
words, tags = words[::step], tags[::step]
print(f"{sum(map(len, words)):,} tokens to learn from, {sum(map(len, words_test)):,} to test")
print(*(f"{word}/{tag}" for word, tag in zip(words[0][:9], tags[0][:9], strict=True)))

# %%
# Features
# --------
# The words around, pairs of them, and what a new word shows: prefixes, suffixes and its shape.
# :class:`~skstruct.TemplateVectorizer` computes each for all different words once.

template = [
    *(f"U0{i:+}:%x[{i},0|lower]" for i in range(-2, 3)),
    "U1:%x[-1,0|lower]/%x[0,0|lower]",
    "U2:%x[0,0|lower]/%x[1,0|lower]",
    *(f"U3{n}:%x[0,0|lower|suffix{n}]" for n in range(1, 5)),
    *(f"U4{n}:%x[0,0|prefix{n}]" for n in range(1, 4)),
    "U5:%x[0,0|shape]",
]

# %%
# Learning
# --------
# Three passes over an eighth, a quarter, a half and all of the part. Half as many sentences are
# every other one. Words that did not occur in training are counted apart.

# The first call of a process loads the compiled kernels: one that is not timed.
few = TemplateVectorizer(template).fit_transform(words[:10])
PerceptronTagger(max_iter=1, tol=None).fit(few, tags[:10])

results = []
for step in (8, 4, 2, 1):
    start = process_time()
    X = (vectorizer := TemplateVectorizer(template, min_freq=2)).fit_transform(words[::step])
    X_test = vectorizer.transform(words_test)
    made = process_time()
    tagger = PerceptronTagger(max_iter=3, tol=None, random_state=0).fit(X, tags[::step])
    learnt = process_time()
    known = {word.lower() for sentence in words[::step] for word in sentence}
    new = np.array([word.lower() not in known for sentence in words_test for word in sentence])
    right = np.concatenate(tags_test) == np.concatenate(tagger.predict(X_test))
    results.append((X.n_rows, right.mean(), right[new].mean()))
    print(
        f"{X.n_rows:9,} tokens, {X.n_features:9,} features: accuracy {right.mean():.4f}, "
        f"of new words {right[new].mean():.4f}"
    )
    print(
        f"          {new.mean():.1%} of the words are new; "
        f"features {made - start:.1f} s, learning {learnt - made:.1f} s"
    )

# %%
# With ``PART = 1`` the last line is for all of the text: 1,066,418 tokens, 354,721 features, an
# accuracy of 0.9712, and 0.8472 of the 3.6 % of words that are new. It took 1.8 seconds of a
# processor to make the features, and 19.2 to learn from them; the whole example took 40.

# %%
# Accuracy by the size of the text
# --------------------------------
# Each doubling of the text is worth less than the one before. Words that did not occur in training
# stay hard, but there are ever fewer of them.

n_tokens, accuracies, of_new = zip(*results, strict=True)
fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
ax.plot(n_tokens, accuracies, "o-", lw=3, ms=9, label="all words")
ax.plot(n_tokens, of_new, "s-", lw=3, ms=9, label="words not in training")
ax.set_xscale("log", base=2)
ax.set_xticks(n_tokens, [f"{n / 1000:,.0f}k" for n in n_tokens])
ax.set(ylim=(None, 1), xlabel="tokens to learn from", ylabel="accuracy")
ax.set_title("Parts of speech: what more text is worth")
ax.grid(alpha=0.3)
ax.legend(loc="lower right")
plt.show()
