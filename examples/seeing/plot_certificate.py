"""
Train a CRF with a certificate
==============================

Convergence is often judged by looking at a loss curve. :class:`~skstruct.SDCACRF` instead computes
a lower bound on the objective, and stops when the gap between the two is small enough.
"""

# %%
# Data
# ----
# The tokens of postal addresses are labelled as streets, numbers, cities and so on.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_certificate.svg"

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV

from skstruct import SDCACRF, CRFTagger
from skstruct.datasets import load_addresses
from skstruct.inspection import TrainingCurveDisplay
from skstruct.metrics import chunk_f1_scorer


def attributes(tokens, t):
    found = {"shape": "".join("9" if c.isdigit() else "x" for c in tokens[t][:5])}
    for offset in (-2, -1, 0, 1, 2):
        if 0 <= t + offset < len(tokens):
            found[f"word[{offset}]"] = tokens[t + offset].lower()
    return found


addresses = load_addresses()
X = [[attributes(tokens, t) for t in range(len(tokens))] for tokens in addresses.data]
y = addresses.target

# %%
# Upper and lower bound
# ---------------------
# The upper curve is the objective at the current weights, and the lower curve is the dual
# objective. The optimum always lies between the two. With ``verify_every=1`` both are computed
# exactly after every epoch. By default they are computed only when an estimate indicates
# convergence, which saves passes over the data.

tagger = SDCACRF(l2=0.1, tol=1e-6, verify_every=1, random_state=0).fit(X, y)
history = tagger.history_

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(history["epoch"], history["dual"], history["objective"], alpha=0.15)
ax.plot(history["epoch"], history["objective"], marker="o", label="objective")
ax.plot(history["epoch"], history["dual"], marker="s", label="lower bound")
ax.set(xlabel="epoch", ylabel="objective", ylim=(0, None), xlim=(0.8, 12.2), xticks=range(1, 13))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

print(f"objective    {history['objective'][-1]:.5f}")
print(f"duality gap  {tagger.duality_gap_:.5f}")

# %%
# The optimum found by another solver with a small tolerance lies between the two bounds.

other = CRFTagger(l2=0.1, tol=1e-10, all_possible_states=True, all_possible_transitions=True)
print(f"L-BFGS       {other.fit(X, y).history_['objective'][-1]:.5f}")

# %%
# Sampling
# --------
# Each update changes the dual variables of one address. The gap is a sum over addresses, so each
# term shows how much an update can gain. Sampling in proportion to these terms spends no time on
# addresses that have converged.

settings = {"l2": 0.1, "tol": 1e-5, "max_iter": 60, "verify_every": 1, "random_state": 0}
taggers = {
    sampling: SDCACRF(sampling=sampling, **settings).fit(X, y)
    for sampling in ("gap", "uniform", "importance", "max")
}
TrainingCurveDisplay.from_estimator(taggers, x="updates", y="relative_gap")
plt.show()

# %%
# Choice of the penalty
# ---------------------
# The optimum does not depend on the sampling scheme. So in a grid search only ``l2`` should affect
# the score; ``sampling`` affects the time.

search = GridSearchCV(
    SDCACRF(random_state=0),
    {"l2": [0.01, 0.03, 0.1, 1], "sampling": ["gap", "uniform"]},
    scoring=chunk_f1_scorer,
    cv=3,
).fit(X, y)
results = search.cv_results_
for parameters, f1, seconds in zip(
    results["params"], results["mean_test_score"], results["mean_fit_time"], strict=True
):
    print(f"{parameters['l2']:<5} {parameters['sampling']:8} F1 = {f1:.3f}  {seconds:.2f} s")

best = search.best_estimator_
print(f"best: l2={best.l2}, certified to {best.relative_duality_gap_:.1e} of the objective")
