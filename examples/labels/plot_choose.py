"""
Label what helps most
=====================

Labels cost time. A tagger that has learnt from a few addresses can say which others it is unsure
of. This example labels 50 addresses, then five times 10 more, and compares choice by the tagger
with random choice. The labels are there; they are hidden until an address is chosen.
"""

# %%
# Addresses without labels
# ------------------------
# A pool of addresses, and others to test on.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_choose.svg"

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, WordVectorizer, predict_spans
from skstruct.datasets import (
    find_tokens,
    labels_to_spans,
    load_addresses,
    read_annotations,
    spans_to_labels,
    write_annotations,
)
from skstruct.metrics import chunk_f1_score
from skstruct.model_selection import choose_sequences

X, y = load_addresses(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
texts = [" ".join(tokens) for tokens in X]
offsets = [find_tokens(text, tokens) for text, tokens in zip(texts, X, strict=True)]

# %%
# Tasks for an annotation tool
# ----------------------------
# Chosen addresses are written with the chunks that the tagger suggests. Somebody corrects them in
# the tool; here, the hidden labels play that part. Read back too soon, they are left out, with a
# warning: nobody has reviewed them.

model = make_pipeline(WordVectorizer(), CRFTagger()).fit(X[:50], y[:50])
numbers, scores = choose_sequences(model, X[50:], 3)
chosen = [50 + int(i) for i in numbers]
for i, score in zip(chosen, scores, strict=True):
    print(f"{score:.2f}  {texts[i]}")

with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    path = Path(folder) / "tasks.json"
    suggested = [
        [(offsets[i][a][0], offsets[i][b - 1][1], kind, p) for a, b, kind, p in spans]
        for i, spans in zip(chosen, predict_spans(model, [X[i] for i in chosen]), strict=True)
    ]
    tasks = [texts[i] for i in chosen]
    write_annotations(path, tasks, format="label-studio", predictions=suggested)
    print(read_annotations(path))
    print(str(caught[-1].message).partition(": ")[2])


# %%
# A round of labelling
# --------------------
# What somebody has answered is written by the tool and read back as labels of the same tokens.


def answer(chosen):
    """Label addresses as a person would, by way of a file of the tool."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.json"
        spans = [labels_to_spans(y[i], offsets[i]) for i in chosen]
        write_annotations(path, [texts[i] for i in chosen], spans, format="label-studio")
        _, spans = read_annotations(path)
    return [spans_to_labels(found, offsets[i]) for i, found in zip(chosen, spans, strict=True)]


def five_rounds(strategy, seed):
    """F1 after each round."""
    labelled = np.random.default_rng(seed).permutation(len(X))[:50].tolist()
    labels, f1, n_tokens = answer(labelled), [], []
    for _ in range(6):
        model = make_pipeline(WordVectorizer(), CRFTagger()).fit([X[i] for i in labelled], labels)
        f1.append(chunk_f1_score(y_test, model.predict(X_test)))
        n_tokens.append(sum(len(X[i]) for i in labelled))
        left = [i for i in range(len(X)) if i not in labelled]
        numbers, _ = choose_sequences(
            model, [X[i] for i in left], 10, strategy=strategy, random_state=seed
        )
        chosen = [left[i] for i in numbers]
        labelled, labels = labelled + chosen, labels + answer(chosen)
    return n_tokens, f1


# %%
# Result
# ------
# Two starts for each strategy. The number of tokens counts, not that of addresses: a strategy
# that takes the longest ones asks for more work.

fig, ax = plt.subplots(layout="constrained")
for strategy, color in (("random", "grey"), ("spans", "tab:blue"), ("margin", "tab:orange")):
    runs = np.array([five_rounds(strategy, seed) for seed in range(2)])
    for n_tokens, f1 in runs:
        ax.plot(n_tokens, f1, color=color, alpha=0.3)
    n_tokens, f1 = runs.mean(axis=0)
    ax.plot(n_tokens, f1, color=color, marker="o", label=strategy)
    print(f"{strategy:7} {n_tokens[-1]:5.0f} tokens, F1 {f1[-1]:.3f}")
ax.set(xlabel="labelled tokens", ylabel="chunk F1 on the test addresses")
ax.legend(frameon=False)
plt.show()
