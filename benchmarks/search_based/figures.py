"""Figures: a panel for each task."""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.search_based.plan import MINI_LENGTHS, N_BEST

N_COLUMNS = 4
STYLES = {
    "SAPO": ("#d55e00", "-", 2.0),
    "CRF": ("#000000", "-", 1.4),
    "SAPO, averaged": ("#e69f00", "--", 1.4),
    "CRF, averaged": ("#777777", "--", 1.1),
    "Perc-Naive": ("#56b4e9", ":", 1.1),
    "Perc-Avg": ("#0072b2", "-", 1.1),
    "MIRA-Naive": ("#66c2a5", ":", 1.1),
    "MIRA-Avg": ("#009e73", "-", 1.1),
    "MIRA-Nbest-Naive": ("#cc79a7", ":", 1.1),
    "MIRA-Nbest-Avg": ("#9b4f96", "-", 1.1),
    "MIRA-Nbest-Avg, C chosen": ("#9b4f96", "--", 1.1),
}


def draw_figures(tasks, report):
    """Draw all figures into the report."""
    figures = {
        "scores": (draw_scores, "epoch"),
        "weights": (draw_weights, "epoch"),
        "n": (draw_n, "n"),
        "cut": (draw_cut, "n', mean length of the pieces"),
    }
    for name, (draw, xlabel) in figures.items():
        report.save_figure(name, panels(tasks, draw, xlabel))


def panels(tasks, draw, xlabel):
    """Grid with a panel for each task, and the legend in a panel of its own."""
    n_rows = len(tasks) // N_COLUMNS + 1
    figure = Figure(figsize=(11, 2.9 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, N_COLUMNS, squeeze=False).ravel()
    for axis in axes[len(tasks) :]:
        axis.set_axis_off()
    for axis, task in zip(axes, tasks, strict=False):
        draw(axis, task)
        axis.set_title(task.task.title, fontsize="medium")
        axis.set_xlabel(xlabel, fontsize="small")
        axis.tick_params(labelsize="small")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    handles, labels = axes[0].get_legend_handles_labels()
    axes[len(tasks)].legend(handles, labels, loc="center", frameon=False, fontsize="medium")
    return figure


def draw_scores(axis, task):
    """Mean score by epoch; the first epochs may lie below the panel."""
    shown = []
    for title, result in task.systems.items():
        if not result:
            continue
        color, line, width = STYLES[title]
        curve = result.curve("score")
        axis.plot(result.epoch, curve, line, color=color, lw=width, label=title)
        shown.append(curve)
    late = np.concatenate([curve[3:] for curve in shown])
    low, high = np.percentile(late, 3), late.max()
    axis.set_ylim(low - 0.25 * (high - low), high + 0.08 * (high - low))
    axis.set_ylabel(f"{task.task.measure}, %", fontsize="small")


def draw_weights(axis, task):
    """Mean absolute weight of the weights that predict."""
    for title, result in task.systems.items():
        if result:
            color, line, width = STYLES[title]
            curve = result.curve("magnitude")
            axis.plot(result.epoch, curve, line, color=color, lw=width, label=title)
    axis.set(yscale="log")
    axis.set_ylabel("mean |w|", fontsize="small")


def draw_n(axis, task):
    """Score after the last epoch by n, with the spread of the seeds."""
    results = [(n, result) for n, result in task.by_n.items() if result]
    bar(axis, results, "SAPO", STYLES["SAPO"][0])
    level(axis, task.systems["CRF"], "CRF", STYLES["CRF"][0])
    level(axis, task.systems["Perc-Avg"], "Perc-Avg", STYLES["Perc-Avg"][0])
    axis.set(xscale="log")
    axis.set_xticks(N_BEST, [str(n) for n in N_BEST])
    axis.minorticks_off()
    axis.set_ylabel(f"{task.task.measure}, %", fontsize="small")


def draw_cut(axis, task):
    """Change of the score by cutting sequences into pieces, with the spread of the seeds."""
    for title, results in task.cut.items():
        whole = results[None]
        found = [(n, results[n]) for n in MINI_LENGTHS if results[n]]
        if whole and found:
            bar(axis, found, title, STYLES[title][0], base=whole.last.mean())
    axis.axhline(0, color="gray", lw=1, ls="--", label="no cut")
    axis.set_ylabel(f"{task.task.measure}, change", fontsize="small")


def bar(axis, results, title, color, base=0.0):
    places = [place for place, _ in results]
    means = [result.last.mean() - base for _, result in results]
    spreads = [result.last.std(ddof=1) if len(result.last) > 1 else 0 for _, result in results]
    axis.errorbar(places, means, yerr=spreads, fmt="o-", ms=4, capsize=2, color=color, label=title)


def level(axis, result, title, color):
    if result:
        axis.axhline(result.last.mean(), color=color, lw=1.1, ls="--", label=title)
