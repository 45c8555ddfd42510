"""
Learning from half of the labels
================================

Nobody has to label every token of a sequence. Here a conditional random field learns from sequences
of which only some tokens are labelled, respects the rules of the label scheme, and fills in what
was left out.
"""

# %%
# The data
# --------
# Postal addresses, whose tokens are labelled as streets, numbers, cities and so on in the IOB2
# scheme. None stands for a label that is not known.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skstruct import CRFTagger
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score, token_accuracy_score


def attributes(tokens, t):
    found = {
        "shape": "".join("9" if c.isdigit() else "x" for c in tokens[t][:5]),
        "ending": tokens[t][-3:].lower(),
    }
    for offset in (-1, 0, 1):
        if 0 <= t + offset < len(tokens):
            found[f"word[{offset}]"] = tokens[t + offset].lower()
    return found


addresses, labels = load_addresses(return_X_y=True)
X = [[attributes(tokens, t) for t in range(len(tokens))] for tokens in addresses]
X_train, X_test, y_train, y_test = train_test_split(X, labels, test_size=0.4, random_state=0)


def hide(y, share, rng):
    """Labels of which a share is known, the first of each kind among them."""
    seen, found = set(), []
    for sequence in y:
        kept = [j if rng.random() < share or j not in seen else None for j in sequence]
        seen.update(kept)
        found.append(kept)
    return found


y_half = hide(y_train, 0.5, np.random.default_rng(0))
print(y_half[4])

# %%
# What to do with half of the labels
# ----------------------------------
# One can leave out all sequences that are not labelled in full, or take unlabelled tokens for O. Or
# learn from what is known, and sum over what is not: this is what ``fit`` does where it finds None.
# For comparison, the same share of the sequences is labelled in full, which takes as many labels.
# The question is asked for several shares, each drawn three times.


def f1(X, y):
    tagger = CRFTagger(l2=0.5, constraint="IOB2").fit(X, y)
    return chunk_f1_score(y_test, tagger.predict(X_test))


def as_outside(y):
    return [[label or "O" for label in sequence] for sequence in y]


shares = (0.2, 0.35, 0.5, 0.65, 0.8)
names = {
    "partial": "learnt from what is known",
    "whole": "as many labels, in whole sequences",
    "as O": "unlabelled tokens taken for O",
    "complete": "sequences that happen to be complete",
}
scores = {name: [] for name in names}
for share in shares:
    found = {name: [] for name in scores}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        partial = hide(y_train, share, rng)
        complete = [i for i, sequence in enumerate(partial) if None not in sequence]
        whole = rng.permutation(len(y_train))[: round(share * len(y_train))]
        found["partial"].append(f1(X_train, partial))
        found["whole"].append(f1([X_train[i] for i in whole], [y_train[i] for i in whole]))
        if len(complete) > 1:
            kept = [X_train[i] for i in complete], [y_train[i] for i in complete]
            found["complete"].append(f1(*kept))
        plain = CRFTagger(l2=0.5).fit(X_train, as_outside(partial))
        found["as O"].append(chunk_f1_score(y_test, plain.predict(X_test)))
    for name, values in found.items():
        scores[name].append(np.mean(values) if values else np.nan)
everything = f1(X_train, y_train)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), marker in zip(scores.items(), "oDs^", strict=True):
    ax.plot(shares, values, marker=marker, label=names[name])
ax.axhline(everything, color="0.5", linestyle="--", label="all labels")
ax.set(xlabel="share of labels that are known", ylabel="chunk F1 on other addresses", ylim=(0, 1))
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What is known is worth about as much wherever it is, as long as it is not thrown away or mixed up
# with what is not known.
#
# Filling in the rest
# -------------------
# The same tagger labels the tokens that were left out. ``known`` tells it the others, and the
# constraint sees to it that they fit together.

tagger = CRFTagger(l2=0.5, constraint="IOB2").fit(X_train, y_half)


def accuracy_of_hidden(predicted):
    """Share of right labels among those that were hidden."""
    hidden = [
        [label if known is None else None for label, known in zip(*pair, strict=True)]
        for pair in zip(y_train, y_half, strict=True)
    ]
    return token_accuracy_score(hidden, predicted)


print(f"alone       {accuracy_of_hidden(tagger.predict(X_train)):.3f}")
print(f"with known  {accuracy_of_hidden(tagger.predict(X_train, known=y_half)):.3f}")
