"""
From sklearn-crfsuite, by one line
==================================

A program that was written for sklearn-crfsuite goes on as it is, but for its import: here one that
labels the parts of addresses. Then its model goes to a file that CRFsuite reads, and comes back.
"""

# %%
# The line
# --------
# Instead of ``from sklearn_crfsuite import CRF``:

import tempfile
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skstruct.crfsuite import CRF, Tagger, read_model
from skstruct.datasets import load_addresses

# %%
# The program
# -----------
# Feature dicts as python-crfsuite knows them:


def features_of(address, t):
    word = address[t]
    features = {
        "word": word.lower(),
        "suffix": word[-2:],
        "shape": "".join("X" if c.isupper() else "9" if c.isdigit() else "x" for c in word[:4]),
        "digit": word.isdigit(),
    }
    if t == 0:
        features["first"] = True
    else:
        features["before"] = address[t - 1].lower()
    return features


addresses, labels = load_addresses(return_X_y=True)
X = [[features_of(address, t) for t in range(len(address))] for address in addresses]
X_train, X_test, y_train, y_test = X[:400], X[400:], labels[:400], labels[400:]

crf = CRF(
    algorithm="lbfgs",
    c2=0.1,
    max_iterations=100,
    all_possible_transitions=True,
)
crf.fit(X_train, y_train)
print(f"right tokens: {crf.score(X_test, y_test):.1%}")
print(" ".join(addresses[400]))
print(" ".join(crf.predict_single(X_test[0])))

# %%
# What is likely to follow what, as the tutorials print it:

for (before, after), weight in Counter(crf.transition_features_).most_common(5):
    print(f"{before:12} -> {after:12} {weight:.2f}")

# %%
# And as a picture, of the labels that are most frequent:

frequent = [label for label, _ in Counter(t for y in y_train for t in y).most_common(10)]
weights = np.array([[crf.transition_features_[a, b] for b in frequent] for a in frequent])
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
limit = np.abs(weights).max()
image = ax.imshow(weights, cmap="RdBu", vmin=-limit, vmax=limit)
ax.set_xticks(range(len(frequent)), frequent, rotation=90)
ax.set_yticks(range(len(frequent)), frequent)
ax.set_xlabel("label")
ax.set_ylabel("label before")
fig.colorbar(image, label="weight")
plt.show()

# %%
# The model file
# --------------
# It is the one that CRFsuite itself would write, and opens in any program that uses CRFsuite. Here
# our own stand-in for ``pycrfsuite.Tagger`` opens it, and then it becomes a
# :class:`~skstruct.CRFTagger`, which labels all addresses at once.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "addresses.crfsuite"
    path.write_bytes(Path(crf.modelfile.name).read_bytes())
    print(f"{path.stat().st_size:,} bytes")
    tagger = Tagger()
    with tagger.open(path):
        best = tagger.tag(X_test[0])
        print(f"probability of the best labels: {tagger.probability(best):.2f}")
    same = read_model(path)

print(same)
print(f"right tokens: {same.score(X_test, y_test):.1%}")
