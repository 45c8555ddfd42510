"""Figure: score by training time."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from benchmarks.which_tagger.systems import CHOSEN, CRFSUITE, NEURAL, PEERS, TUNED_NETWORKS

N_COLUMNS = 3
# The same colour where both libraries learn by the same rule.
COLORS = {
    "lbfgs": "#000000",
    "CRFTagger": "#000000",
    "CRF++": "#000000",
    "CRFTagger, L1": "#888888",
    "Wapiti": "#888888",
    "SDCACRF": "#d55e00",
    "l2sgd": "#cc79a7",
    "SAPOTagger": "#e69f00",
    "ap": "#0072b2",
    "PerceptronTagger": "#0072b2",
    "pa": "#009e73",
    "MIRATagger": "#009e73",
    "arow": "#56b4e9",
    "AROWTagger": "#56b4e9",
    "spaCy": "#a6761d",
    "Bi-LSTM": "#b58ad6",
    "Bi-LSTM-CRF": "#6a2fa0",
}
# Scores that are lower than the best by more than this many times the distance of the median from
# it are drawn at the lower edge.
SHOWN = 3.5


def style_of(system):
    """Keywords of the points of a system."""
    learner = system.removeprefix("CRFsuite ").removesuffix(", tuned")
    learner = learner.removesuffix(", same objective").removesuffix(", weights dropped")
    color = COLORS[learner]
    markers = {
        **dict.fromkeys(CRFSUITE, "s"),
        **dict.fromkeys(PEERS, "D"),
        **dict.fromkeys(NEURAL, "^"),
    }
    return {
        "marker": markers.get(system, "o"),
        "markeredgecolor": color,
        "markerfacecolor": "none" if system in (*CHOSEN, *TUNED_NETWORKS) else color,
        "ecolor": color,
    }


def draw_scores(found):
    """A panel for each corpus, and the legend beside or below."""
    n_columns = min(N_COLUMNS, len(found))
    n_rows = -(-len(found) // n_columns)
    # The legend needs some height.
    height = max(2.9 * n_rows, 4.5)
    figure = Figure(figsize=(3.6 * n_columns + 2.2, height), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis in axes[len(found) :]:
        axis.set_axis_off()
    shown = {}
    for axis, results in zip(axes, found, strict=False):
        shown.update(draw_corpus(axis, results))
    handles, names = list(shown.values()), list(shown)
    figure.legend(handles, names, loc="outside right center", frameon=False, fontsize="small")
    return figure


def draw_corpus(axis, results):
    """Draw the systems of a corpus; return what the legend shows."""
    scores = {name: outcome.values("score") for name, outcome in results.outcomes.items()}
    means = {name: values.mean() for name, values in scores.items()}
    spreads = {name: v.std(ddof=1) if len(v) > 1 else 0.0 for name, v in scores.items()}
    best, middle = max(means.values()), np.median(list(means.values()))
    low = max(min(means.values()), best - SHOWN * max(best - middle, 0.1))
    shown = {}
    for system, outcome in results.outcomes.items():
        shown[system] = axis.errorbar(
            outcome.median("seconds"),
            max(means[system], low),
            yerr=spreads[system] if means[system] >= low else 0.0,
            ls="none",
            ms=5,
            **style_of(system),
        )
    axis.set(xscale="log", xlabel="training, s")
    high = max(means[system] + spreads[system] for system in means)
    axis.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_title(results.corpus.title, fontsize="medium")
    axis.set_ylabel("F1, %" if results.corpus.measure == "chunk_f1" else "accuracy, %")
    axis.tick_params(labelsize="small")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
    return shown
