"""
Tag while another thread fits
=============================

A service answers requests while it learns from new data. It learns on a copy, which then replaces
the old tagger: until then the old weights answer. Requests that make no sense get an error that
says why, and change nothing.
"""

# %%
# A tagger that learns anew while it is asked
# -------------------------------------------
# One thread asks for the label of a token, again and again. Another one fits a copy of the tagger
# on more data, and puts it in its place.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_service.svg"

import threading
import time
from textwrap import fill

import matplotlib.pyplot as plt
from sklearn.base import clone

from skstruct import CRFTagger
from skstruct.datasets import load_addresses

sentences, y = load_addresses(return_X_y=True)


def features(tokens):
    """Features of each token: the word, the one before, and whether it is a number."""
    before = ["", *tokens]
    return [
        {"word": word, "before": before[t], "digits": word.isdigit()}
        for t, word in enumerate(tokens)
    ]


X = [features(tokens) for tokens in sentences]
tagger = CRFTagger(l2=0.1).fit(X[:40], y[:40])
request, answers, done = X[40], [], threading.Event()
# The first call of a process loads the compiled kernels.
tagger.predict_proba([request])


def serve():
    """Ask for the probability of the label of the first token."""
    while not done.is_set():
        found = tagger.predict_proba([request])[0][0].max()
        answers.append((time.perf_counter() - begin, found))


begin = time.perf_counter()
thread = threading.Thread(target=serve)
thread.start()
time.sleep(0.05)
begin_of_fit = time.perf_counter() - begin
tagger = clone(tagger).fit(X, y)
end_of_fit = time.perf_counter() - begin
time.sleep(0.05)
done.set()
thread.join()
print(f"{len(answers)} answers, of which {len({p for _, p in answers})} differ")

fig, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
seconds, probabilities = zip(*answers, strict=True)
ax.plot(seconds, probabilities, ".", markersize=3)
ax.axvspan(begin_of_fit, end_of_fit, alpha=0.15, label="fit")
ax.set(xlabel="seconds", ylabel="probability of the label", ylim=(0, 1.02))
ax.legend()
plt.show()

# %%
# Requests that make no sense
# ---------------------------
# The message names the sequence, the token and what is wrong. A service can pass it on.

indent = {"initial_indent": "    ", "subsequent_indent": "    "}
for bad in (
    [[{"word": "Rue"}, {"size": float("nan")}]],
    [[{"word": "Rue"}, "Rivoli"]],
    [["Rue", "de", "Rivoli"]],
    [],
):
    try:
        tagger.predict(bad)
    except ValueError as error:
        print(f"{bad!r}\n{fill(str(error), 90, **indent)}\n")
