"""
Find wrong labels, or learn in spite of them
============================================

Annotators make mistakes, and labels projected from another source have more of them. This example
damages some labels and finds them again. Then it replaces more of them by random ones, and compares
how well taggers still find the components of postal addresses.
"""

# %%
# Data
# ----
# The addresses come with the package. A share of the training labels becomes wrong; the test labels
# stay as they are.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_wrong_labels.svg"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skstruct import AROWTagger, CRFTagger, PerceptronTagger, SequenceVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score, extract_chunks
from skstruct.model_selection import find_label_errors


def features(tokens):
    words = ["", "", *(token.lower() for token in tokens), "", ""]
    return [
        {
            "word": words[i + 2],
            "ends": [words[i + 2][-n:] for n in (1, 2, 3)],
            "begins": [words[i + 2][:n] for n in (1, 2, 3)],
            "around": [f"{offset}={words[i + 2 + offset]}" for offset in (-2, -1, 1, 2)],
            "digits": str(sum(c.isdigit() for c in token)),
            "capital": token[:1].isupper(),
        }
        for i, token in enumerate(tokens)
    ]


addresses, y = load_addresses(return_X_y=True)
X = SequenceVectorizer().fit_transform([features(tokens) for tokens in addresses])
train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0)
labels = sorted({label for row in y for label in row})


def with_wrong_labels(rows, share, seed):
    rng = np.random.default_rng(seed)
    return [
        [rng.choice(labels) if rng.random() < share else label for label in row] for row in rows
    ]


# %%
# Find them
# ---------
# In 30 training addresses, a component gets the type of another one. Each address is tagged by a
# tagger that has learnt from others, and the labels that this one doubts most come first.

clean = [y[i] for i in train]
damaged, places = [list(labels) for labels in clean], []
rng = np.random.default_rng(0)
kinds = sorted({label[2:] for label in labels if label != "O"})
for i in rng.permutation(len(clean))[:30].tolist():
    start, end, kind = extract_chunks(clean[i])[0]
    other = rng.choice([name for name in kinds if name != kind])
    damaged[i][start:end] = [f"{label[0]}-{other}" for label in clean[i][start:end]]
    places.append(i)

errors = find_label_errors(CRFTagger(), X[train], damaged)
for n in (10, 20, 40):
    found = len({error.sequence for error in errors[:n]} & set(places))
    print(f"{found} of the 30 damaged addresses are among the first {n} of {len(errors)} records")

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.axis("off")
renderer = fig.canvas.get_renderer()
for line, error in enumerate(errors[:10]):
    x, tokens = 0.0, addresses[train[error.sequence]]
    for t, token in enumerate(tokens):
        inside = error.start <= t < error.end
        color = ("tab:red" if error.sequence in places else "tab:orange") if inside else "black"
        text = ax.text(x, 1 - 0.1 * line, token, color=color, va="top", transform=ax.transAxes)
        box = text.get_window_extent(renderer).transformed(ax.transAxes.inverted())
        x = box.x1 + 0.01
    names = [" ".join(dict.fromkeys(a[2:] or a for a in x)) for x in error[3:5]]
    change = f"{names[0]}, better {names[1]}? ({error.score:.3f})"
    ax.text(
        0.02, 0.955 - 0.1 * line, change, color="grey", size=8, va="top", transform=ax.transAxes
    )
ax.set_title("Labels in doubt: damaged ones are red, others orange", fontsize=10)
plt.show()

# %%
# Learners
# --------
# AROW changes rare features much, and hardly those that many sequences have settled. A wrong label
# moves the weights of the rare features of its token, and nothing later contradicts them. The
# average over all sequences evens out single steps, and a larger `gamma` makes them smaller.

taggers = {
    "CRFTagger": CRFTagger(l2=1.0),
    "PerceptronTagger, averaged": PerceptronTagger(max_iter=5, tol=None, random_state=0),
    "AROWTagger, averaged": AROWTagger(max_iter=5, tol=None, random_state=0),
    "AROWTagger, gamma = 1, last weights": AROWTagger(
        gamma=1, average=False, max_iter=5, tol=None, random_state=0
    ),
    "PerceptronTagger, last weights": PerceptronTagger(
        average=False, max_iter=5, tol=None, random_state=0
    ),
}
shares = [0.0, 0.1, 0.2, 0.3]
f1 = {name: [] for name in taggers}
for share in shares:
    y_train = with_wrong_labels(clean, share, seed=0)
    for name, tagger in taggers.items():
        predicted = tagger.fit(X[train], y_train).predict(X[test])
        f1[name].append(chunk_f1_score([y[i] for i in test], predicted))

for name, scores in f1.items():
    print(f"{name:36}", *(f"{score:.2f}" for score in scores))

# %%
# Result
# ------
# Without wrong labels the taggers differ by some points. With a tenth of them wrong, what is not
# averaged loses much more. The conditional random field weighs all sequences at once, and its
# penalty keeps the weights of rare features small.

fig, ax = plt.subplots(layout="constrained")
for name, scores in f1.items():
    ax.plot(shares, scores, marker="o", label=name)
ax.set(xlabel="share of wrong labels in the training data", ylabel="chunk F1 on the test data")
ax.set_ylim(bottom=0)
ax.legend(frameon=False)
plt.show()
