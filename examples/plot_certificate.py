"""
A tagger that says how good it is
=================================

Is a model finished learning? Most of the time one looks at a curve and guesses.
:class:`~skstruct.SDCACRF` knows: along with its weights it improves a lower bound that no weights
whatever can go below, and stops when the two have met.
"""

# %%
# The data
# --------
# Postal addresses, whose tokens are to be labelled as streets, numbers, cities and so on.

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV

from skstruct import SDCACRF, CRFTagger
from skstruct.datasets import load_addresses
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
# Two bounds that meet
# --------------------
# The upper curve is the objective of the weights so far, the lower one the dual objective. The
# optimum lies between the two at any time. With ``verify_every=1`` both are computed exactly after
# every epoch; without it only when it seems to be time to stop, which saves a pass over the data.

tagger = SDCACRF(l2=0.1, tol=1e-6, verify_every=1, random_state=0).fit(X, y)
history = tagger.history_

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(history["epoch"], history["dual"], history["objective"], alpha=0.15)
ax.plot(history["epoch"], history["objective"], marker="o", label="objective of the weights")
ax.plot(history["epoch"], history["dual"], marker="s", label="lower bound")
ax.set(xlabel="epochs", ylabel="objective", ylim=(0, None), xlim=(1, 12), xticks=range(1, 13))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

print(f"objective     {history['objective'][-1]:.5f}")
print(f"at most above {tagger.duality_gap_:.5f}")

# %%
# Another solver, run for long, comes to a number in between.

other = CRFTagger(l2=0.1, tol=1e-10, all_possible_states=True, all_possible_transitions=True)
print(f"L-BFGS        {other.fit(X, y).history_['objective'][-1]:.5f}")

# %%
# Whom to visit next
# ------------------
# Each update improves what is known of one address. The gap is a sum over the addresses, so it also
# says where there is still something to gain. Sampling in proportion to it spends no time on
# addresses that are settled.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for sampling, marker in zip(("gap", "uniform", "importance", "max"), "os^v", strict=True):
    settings = {"tol": 1e-5, "max_iter": 60, "verify_every": 1, "random_state": 0}
    history = SDCACRF(l2=0.1, sampling=sampling, **settings).fit(X, y).history_
    gap = history["gap"] / history["objective"]
    ax.plot(history["updates"], gap, marker=marker, markersize=4, label=sampling)
ax.set(xlabel="updates", ylabel="relative duality gap", yscale="log")
ax.legend(frameon=False, title="sampling")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Choosing the penalty
# --------------------
# The optimum does not depend on the way to it, so a search over ``l2`` and ``sampling`` should find
# that only the first matters to the score, and the second to the time.

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
