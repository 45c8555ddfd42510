"""
Chunk English sentences
=======================

The shared task of CoNLL-2000 is to find the noun phrases, verb phrases and other chunks of English
sentences. It is a standard benchmark of sequence taggers.

The corpus is not part of the package. :func:`~skstruct.datasets.fetch_conll2000` looks for it in
the folder of the environment variable ``SKSTRUCT_DATA``, and downloads it otherwise. Without the
corpus this example stops with a message, and this page shows no output.
"""

# %%
# Data
# ----
# A token is a word with its part-of-speech tag.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_chunking.svg"

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV

from skstruct import CRFTagger, PerceptronTagger
from skstruct.datasets import fetch_conll2000
from skstruct.metrics import chunk_f1_score, chunk_f1_scorer, chunk_report

try:
    train, test = fetch_conll2000(subset="train"), fetch_conll2000(subset="test")
except OSError as error:
    print(f"Skipped: the corpus is not available. {error}")
    raise SystemExit from None

for (word, tag), label in zip(train.data[0][:9], train.target[0][:9], strict=True):
    print(f"{word:12} {tag:5} {label}")

# %%
# Features
# --------
# A token can also be a list of attribute strings. Here the attributes are the words and
# part-of-speech tags around the token, alone and in pairs.


def attributes(sentence, i):
    found = []
    for offset in (-2, -1, 0, 1, 2):
        if 0 <= i + offset < len(sentence):
            word, tag = sentence[i + offset]
            found += [f"word[{offset}]={word.lower()}", f"tag[{offset}]={tag}"]
    for offset in (-1, 0):
        if 0 <= i + offset < len(sentence) - 1:
            (word, tag), (next_word, next_tag) = sentence[i + offset : i + offset + 2]
            found += [
                f"words[{offset}]={word.lower()}|{next_word.lower()}",
                f"tags[{offset}]={tag}|{next_tag}",
            ]
    return found


def extract_attributes(sentences):
    return [[attributes(sentence, i) for i in range(len(sentence))] for sentence in sentences]


X_train, y_train = extract_attributes(train.data[:2000]), train.target[:2000]
X_test, y_test = extract_attributes(test.data), test.target
print(*X_train[0][1], sep="\n")

# %%
# Tune, train, evaluate
# ---------------------
# To keep this example short, it uses the first 2,000 of the 8,936 training sentences, and tunes the
# penalty on 800 of them. The score of the shared task is chunk F1.

search = GridSearchCV(CRFTagger(), {"l2": [0.1, 0.3, 1, 3]}, scoring=chunk_f1_scorer, cv=3)
search.fit(X_train[:800], y_train[:800])
for l2, f1 in zip(search.param_grid["l2"], search.cv_results_["mean_test_score"], strict=True):
    print(f"l2 = {l2:<4} F1 = {f1:.3f}")

crf = CRFTagger(**search.best_params_).fit(X_train, y_train)
print()
print(chunk_report(y_test, crf.predict(X_test), digits=3))

# %%
# Learning curves
# ---------------
# F1 still grows at 2,000 training sentences, so all 8,936 sentences give better taggers.

sizes = [100, 200, 400, 800, 1400, 2000]
taggers = {"CRF": CRFTagger(**search.best_params_), "perceptron": PerceptronTagger(random_state=0)}

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, tagger), marker in zip(taggers.items(), "os", strict=True):
    scores = [
        chunk_f1_score(y_test, tagger.fit(X_train[:size], y_train[:size]).predict(X_test))
        for size in sizes
    ]
    ax.plot(sizes, scores, marker=marker, label=name)
ax.set_xscale("log")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.set(xlabel="training sentences", ylabel="chunk F1 on the test set")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
