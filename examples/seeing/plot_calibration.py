"""
Check what probabilities are worth
==================================

A probability of 0.9 should be right nine times out of ten. A CRF is trained to give probabilities;
how good they are depends on the penalty. Look at them before you set a threshold; or let held-out
data choose it, for a share of missed chunks that you name.
"""

# %%
# Three taggers
# -------------
# Parts of postal addresses, from attributes of each token. A small penalty fits the training data
# closely and makes a tagger too sure of itself. A perceptron is not trained for probabilities at
# all.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_calibration.svg"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skstruct import ConformalTagger, CRFTagger, PerceptronTagger, WordVectorizer
from skstruct.datasets import load_addresses
from skstruct.inspection import CalibrationDisplay

X, y = load_addresses(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
taggers = {
    "CRF, l2 = 0.0001": CRFTagger(l2=0.0001),
    "CRF, l2 = 0.3": CRFTagger(l2=0.3),
    "perceptron": PerceptronTagger(random_state=0),
}
models = {
    name: make_pipeline(WordVectorizer(), tagger).fit(X_train, y_train)
    for name, tagger in taggers.items()
}

# %%
# Reliability curves
# ------------------
# Tokens are sorted into bins by the probability of their most probable label. On the diagonal,
# probabilities are what they say; below it, the tagger is too sure of itself. The same can be asked
# of whole sequences, whose probabilities are the products of many.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True)
for ax, of in zip(axes, ("token", "sequence"), strict=True):
    for name, model in models.items():
        CalibrationDisplay.from_estimator(
            model, X_test, y_test, of=of, n_bins=6, strategy="quantile", name=name, ax=ax
        )
    ax.set(title=f"probability of a {of}", xlabel="mean probability", ylabel="share that is right")
    ax.legend(fontsize=8)
fig.tight_layout()
plt.show()

# %%
# A threshold
# -----------
# Sequences that are left to a person: those whose labelling is less probable than a threshold. With
# good probabilities, the rest has about as many mistakes as the threshold allows.

model = models["CRF, l2 = 0.3"]
vectorizer, tagger = model
best = [labellings[0] for labellings in tagger.predict_nbest(vectorizer.transform(X_test), 1)]
probability = np.array([labelling.probability for labelling in best])
right = np.array([b.labels == list(gold) for b, gold in zip(best, y_test, strict=True)])
for threshold in (0.0, 0.5, 0.8, 0.95):
    kept = probability >= threshold
    print(
        f"at least {threshold:.0%}: {kept.mean():4.0%} of the addresses are kept, "
        f"{right[kept].mean():.0%} of these are right throughout"
    )

# %%
# A promise
# ---------
# Even good probabilities do not say how many parts of addresses a threshold misses. Held-out
# addresses do. :class:`~skstruct.ConformalTagger` takes the largest threshold that misses at most a
# share `alpha` there, and as many parts of new addresses on average. Ten random halves of the other
# addresses calibrate and test. All three taggers miss what they may, whatever their probabilities
# are worth; the one that orders spans best has the fewest candidates.

alphas, n_halves = [0.1, 0.15, 0.2, 0.3, 0.4], 10
missed = {name: np.zeros((len(alphas), n_halves)) for name in models}
candidates = {name: np.zeros((len(alphas), n_halves)) for name in models}
for half in range(n_halves):
    X_held, X_new, y_held, y_new = train_test_split(
        X_test, y_test, test_size=0.5, random_state=half
    )
    for name, model in models.items():
        tagger = ConformalTagger(FrozenEstimator(model), risk="missed_by_sequence")
        for row, alpha in enumerate(alphas):
            tagger.set_params(alpha=alpha).fit(X_held, y_held)
            measures = tagger.measure(X_new, y_new)
            missed[name][row, half] = measures["missed_by_sequence"]
            candidates[name][row, half] = measures["candidates"]

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.plot([0, 0.42], [0, 0.42], color="grey", linestyle=":", label="as promised")
for name in models:
    middle, spread = missed[name].mean(axis=1), missed[name].std(axis=1)
    left.errorbar(alphas, middle, spread, marker="o", capsize=3, label=name)
    right.plot(alphas, candidates[name].mean(axis=1), marker="o", label=name)
left.set(xlabel="alpha", ylabel="share missed in an address", title="missed")
right.set(xlabel="alpha", ylabel="candidates for each part", title="to look at")
left.legend(fontsize=8)
plt.show()

# %%
# Another source
# --------------
# Addresses without commas, in small letters, come from elsewhere: nothing is promised for them.

tagger = ConformalTagger(FrozenEstimator(models["CRF, l2 = 0.3"]), risk="missed_by_sequence")
tagger.set_params(alpha=0.1).fit(X_held, y_held)
kept = [[i for i, word in enumerate(address) if word.isalnum()] for address in X_new]
X_other = [[address[i].lower() for i in which] for address, which in zip(X_new, kept, strict=True)]
y_other = [[labels[i] for i in which] for labels, which in zip(y_new, kept, strict=True)]
for title, *data in (("the same source", X_new, y_new), ("another source", X_other, y_other)):
    measures = tagger.measure(*data)
    print(
        f"{title}: missed {measures['missed_by_sequence']:.3f} by address, "
        f"{measures['missed']:.3f} of all parts"
    )
