"""
Learn from a stream
===================

A file that is larger than memory is read in portions. The tagger learns each portion once and
forgets it: its score on held-out data grows with what it has seen, and its memory stays flat.
"""

# %%
# A stream
# --------
# :func:`~skstruct.datasets.iter_conll` reads a file one sequence after the other. Here the packaged
# addresses, several times over and each time in another order, stand for a large file.

import tempfile
import tracemalloc
from itertools import islice
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skstruct import HashingTemplateVectorizer, PerceptronTagger
from skstruct.datasets import iter_conll, load_addresses, write_conll
from skstruct.metrics import chunk_f1_score

X, y = load_addresses(return_X_y=True)
train, test = slice(0, 430), slice(430, None)
rng = np.random.default_rng(0)
order = np.concatenate([rng.permutation(430) for _ in range(20)])
path = Path(tempfile.mkdtemp()) / "large.txt"
write_conll(path, [X[i] for i in order], [y[i] for i in order])
print(f"{len(order):,} addresses in a file of {path.stat().st_size / 1e6:.1f} MB")

# %%
# Portions
# --------
# Hashed features need no vocabulary, so nothing grows with the text. ``classes`` names all labels
# that may come.

vectorizer = HashingTemplateVectorizer(
    ["U0:%x[0,0|lower]", "U1:%x[-1,0|lower]", "U2:%x[1,0|lower]", "U3:%x[0,0|suffix3]",
     "U4:%x[0,0|shape]"],
    n_features=2**16,
)  # fmt: skip
tagger = PerceptronTagger(random_state=0)
classes = sorted({label for labels in y for label in labels})
X_test = vectorizer.transform(X[test])

seen, scores, megabytes = [], [], []
tracemalloc.start()
stream = iter_conll(path)
while portion := list(islice(stream, 215)):
    tokens, labels = zip(*portion, strict=True)
    tagger.partial_fit(vectorizer.transform(tokens), list(labels), classes=classes)
    seen.append(len(tokens) + (seen[-1] if seen else 0))
    scores.append(chunk_f1_score(y[test], tagger.predict(X_test)))
    megabytes.append(tracemalloc.get_traced_memory()[0] / 1e6)
tracemalloc.stop()
print(f"F1 {scores[0]:.2f} after the first portion, {scores[-1]:.2f} after the last")

# %%
# Score and memory
# ----------------

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(seen, scores, marker=".")
left.set(xlabel="addresses seen", ylabel="F1 on held-out addresses", title="score")
right.plot(seen, megabytes, marker=".", color="tab:orange")
right.set(xlabel="addresses seen", ylabel="MB", title="memory", ylim=(0, 1.3 * max(megabytes)))
fig.tight_layout()
plt.show()
