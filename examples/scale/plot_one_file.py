"""
One file that tags
==================

A trained tagger needs neither numba nor scikit-learn. :mod:`skstruct.export` writes it to one file
of Python or JavaScript, which is smaller than the stored model and answers without a package.
"""

# %%
# Train and export
# ----------------
# Rare features are left out, and so are those whose weight is zero: what is left is small.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_one_file.svg"

import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import skops.io
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, WordVectorizer
from skstruct.datasets import load_addresses
from skstruct.export import write_javascript, write_python

X, y = load_addresses(return_X_y=True)
tagger = make_pipeline(WordVectorizer(min_freq=2), CRFTagger(l1=0.05, l2=0.1)).fit(X, y)

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "parser.py"
sizes = {
    "skops": len(skops.io.dumps(tagger)),
    "Python, float64": write_python(tagger, path, dtype="float64"),
    "JavaScript": write_javascript(tagger, path.with_suffix(".mjs")),
    "Python": write_python(tagger, path),
}
for name, size in sizes.items():
    print(f"{name:16} {size / 1000:6,.0f} kB")

# %%
# Tag with the file
# -----------------
# Another process, which may import nothing but the standard library, tags a line of text.

command = [sys.executable, "-I", path, "--spans"]
address = "Apt 5 , 41 Harbour Road , Wellington 6011"
print(subprocess.run(command, input=address, capture_output=True, text=True, check=True).stdout)

# %%
# The same labels
# ---------------
# In single precision, probabilities differ from the seventh digit on.

parser = runpy.run_path(str(path))
labels = tagger.predict(X)
same = sum(parser["tag"](tokens) == found for tokens, found in zip(X, labels, strict=True))
print(f"{same} of {len(X)} addresses have the same labels")

tokens = address.split()
exact, found = tagger.predict_proba([tokens])[0], parser["probabilities"](tokens)
difference = max(
    abs(p - by_label[label])
    for row, by_label in zip(exact, found, strict=True)
    for p, label in zip(row, tagger.classes_, strict=True)
)
print(f"Largest difference of a probability: {difference:.0e}")

# %%
# What the file says about an address whose city is unknown.

unknown = [word if word != "Wellington" else "Xyzzy" for word in tokens]
proba = parser["probabilities"](unknown)
best = [max(by_label, key=by_label.get) for by_label in proba]

fig, ax = plt.subplots(figsize=(9, 3), layout="constrained")
ax.bar(range(len(unknown)), [p[label] for p, label in zip(proba, best, strict=True)])
ax.set_xticks(
    range(len(unknown)), [f"{word}\n{label}" for word, label in zip(unknown, best, strict=True)]
)
ax.tick_params(axis="x", labelsize=8)
ax.set(ylabel="probability of the label", ylim=(0, 1.02))
ax.spines[["top", "right"]].set_visible(False)
plt.show()

folder.cleanup()
