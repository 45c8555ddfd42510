"""
Learn from a stream
===================

A file that is larger than memory is read in batches. The tagger learns each batch once and
forgets it: its score on held-out data grows with what it has seen, and its memory stays flat.
"""

# %%
# A stream
# --------
# :func:`~skstruct.datasets.iter_conll` reads a file one sequence after the other. Here the packaged
# addresses, several times over and each time in another order, stand for a large file.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_stream.svg"

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skstruct import HashingTemplateVectorizer, PerceptronTagger
from skstruct.datasets import iter_conll, load_addresses, write_conll
from skstruct.metrics import chunk_f1_score
from skstruct.streams import fit_stream

X, y = load_addresses(return_X_y=True)
train, test = slice(0, 430), slice(430, None)
rng = np.random.default_rng(0)
order = np.concatenate([rng.permutation(430) for _ in range(20)])
path = Path(tempfile.mkdtemp()) / "large.txt"
write_conll(path, [X[i] for i in order], [y[i] for i in order])
print(f"{len(order):,} addresses in a file of {path.stat().st_size / 1e6:.1f} MB")

# %%
# Batches
# -------
# Hashed features need no vocabulary, so nothing grows with the text. ``classes`` names all labels
# that may come. :func:`~skstruct.streams.fit_stream` learns the batches of an epoch one after the
# other, and scores the tagger after each round, here a single batch. The scorer also takes note of
# the memory.

vectorizer = HashingTemplateVectorizer(
    ["U0:%x[0,0|lower]", "U1:%x[-1,0|lower]", "U2:%x[1,0|lower]", "U3:%x[0,0|suffix3]",
     "U4:%x[0,0|shape]"],
    n_features=2**16,
)  # fmt: skip
megabytes = []


def score(tagger, X, y):
    megabytes.append(tracemalloc.get_traced_memory()[0] / 1e6)
    return chunk_f1_score(y, tagger.predict(X))


tracemalloc.start()
tagger = fit_stream(
    PerceptronTagger(random_state=0),
    lambda epoch: iter_conll(path, batch_size=215),
    vectorizer=vectorizer,
    classes=sorted({label for labels in y for label in labels}),
    round_size=1,
    X_val=X[test],
    y_val=y[test],
    scoring=score,
)
tracemalloc.stop()
scores = tagger.history_["validation_score"]
print(f"F1 {scores[0]:.2f} after the first batch, {scores[-1]:.2f} after the last")

# %%
# Score and memory
# ----------------

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
tokens = tagger.history_["tokens"]
left.plot(tokens, scores, marker=".")
left.set(xlabel="tokens seen", ylabel="F1 on held-out addresses", title="score")
right.plot(tokens, megabytes, marker=".", color="tab:orange")
right.set(xlabel="tokens seen", ylabel="MB", title="memory", ylim=(0, 1.3 * max(megabytes)))
fig.tight_layout()
plt.show()
