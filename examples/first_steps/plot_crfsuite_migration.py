"""
Migrate from sklearn-crfsuite
=============================

A program written for sklearn-crfsuite runs on skstruct after changing one import. This one labels
the components of addresses. It then writes its model to a file that CRFsuite can read, and reads it
back.
"""

# %%
# Import
# ------
# ``skstruct.crfsuite.CRF`` replaces ``sklearn_crfsuite.CRF``.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_crfsuite_migration.svg"

import tempfile
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt

from skstruct.crfsuite import CRF, Tagger, read_model
from skstruct.datasets import load_addresses
from skstruct.inspection import TransitionDisplay

# %%
# Training
# --------
# The features are dicts in python-crfsuite's format.


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
print(f"token accuracy: {crf.score(X_test, y_test):.1%}")
print(" ".join(addresses[400]))
print(" ".join(crf.predict_single(X_test[0])))

# %%
# The transitions with the largest weights, as in sklearn-crfsuite's tutorial:

for (before, after), weight in Counter(crf.transition_features_).most_common(5):
    print(f"{before:12} -> {after:12} {weight:.2f}")

# %%
# The transition weights of the ten most frequent labels:

frequent = [label for label, _ in Counter(t for y in y_train for t in y).most_common(10)]
TransitionDisplay.from_estimator(crf, labels=frequent)
plt.show()

# %%
# Model file
# ----------
# The file has CRFsuite's format, and any program that uses CRFsuite can open it. Here
# :class:`skstruct.crfsuite.Tagger`, the replacement for ``pycrfsuite.Tagger``, opens it. Then
# :func:`~skstruct.crfsuite.read_model` converts it to a :class:`~skstruct.CRFTagger`, which labels
# batches of addresses.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "addresses.crfsuite"
    path.write_bytes(Path(crf.modelfile.name).read_bytes())
    print(f"file size: {path.stat().st_size:,} bytes")
    tagger = Tagger()
    with tagger.open(path):
        best = tagger.tag(X_test[0])
        print(f"probability of the best labelling: {tagger.probability(best):.2f}")
    same = read_model(path)

print(same)
print(f"token accuracy: {same.score(X_test, y_test):.1%}")
