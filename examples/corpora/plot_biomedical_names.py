"""
Find names in biomedical text
=============================

Abstracts of biomedical papers are full of names: proteins, pieces of DNA and RNA, kinds of cells
and cell lines. To find them was the shared task of JNLPBA in 2004. The names are long, and new ones
appear in every paper. This example asks how well a tagger finds names that it has never seen.

The corpus is not part of the package. This example reads two column files, with a token and its
label in each line, from the folder ``jnlpba`` in the folder that the environment variable
``SKSTRUCT_DATA`` names. The shared task's own files, from the GENIA project, have these columns.
Without them this example stops with a message, and this page shows no output.
"""

# %%
# Data
# ----
# Half a million tokens. The labels are those of five types of names in IOB2.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_biomedical_names.svg"

import os
from collections import Counter, defaultdict
from pathlib import Path
from time import process_time

import matplotlib.pyplot as plt
import numpy as np

from skstruct import PerceptronTagger, WordVectorizer
from skstruct.datasets import read_conll
from skstruct.inspection import TaggedText
from skstruct.metrics import chunk_report, extract_chunks

folder = Path(os.environ.get("SKSTRUCT_DATA", "")) / "jnlpba"
try:
    words, labels = read_conll(folder / "train.txt.gz", columns=0, separator="\t")
    words_test, labels_test = read_conll(folder / "test.txt.gz", columns=0, separator="\t")
except OSError as error:
    print(f"Skipped: the corpus is not available. {error}")
    raise SystemExit from None

print(f"{len(words):,} sentences, {sum(map(len, words)):,} tokens to learn from")
print(f"{len(words_test):,} sentences, {sum(map(len, words_test)):,} tokens to test")

# %%
# Features and learning
# ---------------------
# Prefixes, suffixes and shapes tell much here: "-ase" is an enzyme, "IL-2" has the shape of a name.
# :class:`~skstruct.WordVectorizer` has them ready. The averaged perceptron then learns from the
# whole corpus in seconds.

# The first call of a process loads the compiled kernels: one that is not timed.
few = WordVectorizer().fit_transform(words[:10])
PerceptronTagger(max_iter=1, tol=None).fit(few, labels[:10])

start = process_time()
vectorizer = WordVectorizer()
X, X_test = vectorizer.fit_transform(words), vectorizer.transform(words_test)
print(f"{X.n_features:,} features in {process_time() - start:.1f} s of the processor")

start = process_time()
tagger = PerceptronTagger(max_iter=8, tol=None, random_state=0).fit(X, labels)
print(f"{tagger.n_iter_} epochs in {process_time() - start:.1f} s")

predicted = tagger.predict(X_test)
print(chunk_report(labels_test, predicted, digits=3))

# %%
# Names in their sentences
# ------------------------
# What the tagger finds in the first sentences of the test set:

TaggedText.from_predictions(words_test[:6], predicted[:6])

# %%
# Old names and new ones
# ----------------------
# A name of the test set is known if it occurs in the training set with the same type. More than
# four names in ten are new. The tagger has to find these by their parts and their surroundings.


def names_of(words, labels):
    """Names of each sentence: the place, the type and the text."""
    for tokens, sequence in zip(words, labels, strict=True):
        chunks = extract_chunks(sequence)
        yield {(a, b, kind): " ".join(tokens[a:b]).lower() for a, b, kind in chunks}


known = {(kind, text) for names in names_of(words, labels) for (_, _, kind), text in names.items()}
n_names, n_found = defaultdict(Counter), defaultdict(Counter)
for true, found in zip(
    names_of(words_test, labels_test), names_of(words_test, predicted), strict=True
):
    for place, text in true.items():
        is_known = (place[2], text) in known
        n_names[is_known][place[2]] += 1
        n_found[is_known][place[2]] += place in found

for is_known, group in ((True, "known"), (False, "new")):
    n, share = n_names[is_known].total(), n_found[is_known].total() / n_names[is_known].total()
    print(f"{group:5} names: {n:,}, of which {share:.1%} are found")

# %%
# The share found of each type. Numbers of names are at the right of the bars.

kinds = [kind for kind, _ in (n_names[True] + n_names[False]).most_common()][::-1]
places = np.arange(len(kinds))
fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
for shift, is_known, group, color in (
    (0.2, True, "known", "tab:blue"),
    (-0.2, False, "new", "tab:orange"),
):
    shares = [n_found[is_known][kind] / max(n_names[is_known][kind], 1) for kind in kinds]
    bars = ax.barh(places + shift, shares, height=0.38, label=group, color=color)
    ax.bar_label(bars, [f"{n_names[is_known][kind]:,}" for kind in kinds], padding=3)
ax.set_yticks(places, [kind.replace("_", " ") for kind in kinds])
ax.set(xlim=(0, 1), xlabel="share of names found", title="Names known from training, and new ones")
fig.legend(loc="outside lower center", ncols=2)
plt.show()
