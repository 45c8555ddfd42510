"""Figures: curves of the runs."""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.sdca_paper.plan import GAP, MAIN, PRECISIONS, SCHEMES, SHARES, UNIFORM

COSTS = {"calls": "oracle calls / n", "updates": "updates / n", "seconds": "seconds"}
STYLES = {
    "SDCA, gap": ("#d55e00", "-", 1.9),
    "SDCA, uniform": ("#e69f00", "--", 1.4),
    "SAG-NUS": ("#0072b2", "-", 1.4),
    "SAG-NUS*": ("#56b4e9", "--", 1.4),
    "OEG": ("#009e73", "-", 1.4),
    "L-BFGS": ("#777777", ":", 1.4),
}
COLORS = ("#d55e00", "#000000", "#0072b2", "#009e73", "#cc79a7")
# Below this share of the optimum, rounding and the uncertainty of the optimum show.
FLOOR = 1e-8


def draw_figures(tasks, report, timed):
    """Draw all figures into the report, with costs in seconds if they were measured."""
    costs = {cost: label for cost, label in COSTS.items() if timed or cost != "seconds"}
    figures = {
        "methods": draw_methods(tasks, "excess", "objective above the optimum, as a share", costs),
        "gaps": draw_methods(tasks, "gap", "duality gap, as a share", costs),
        "settings": draw_settings(tasks),
        "estimates": draw_estimates(tasks),
    }
    for name, figure in figures.items():
        report.save_figure(name, figure)


def grid(n_rows, n_columns, width=3.3, height=2.5):
    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
        axis.tick_params(labelsize="small")
    return figure, axes


def plot(axis, x, y, **how):
    """A curve down to the floor and a little further, on a logarithmic scale."""
    above = np.flatnonzero(y > FLOOR)
    kept = (np.arange(len(y)) < above[-1] + 2) & (y > 0)
    axis.semilogy(x[kept], y[kept], **how)


def draw_methods(tasks, column, ylabel, costs):
    """A row for each task, a column for each measure of cost."""
    figure, axes = grid(len(tasks), len(costs))
    for row, t in zip(axes, tasks, strict=True):
        for axis, (cost, xlabel) in zip(row, costs.items(), strict=True):
            ends = []
            for title, setting in MAIN.items():
                curve = t.curve(setting)
                if curve is None or (cost == "updates" and title == "L-BFGS"):
                    continue
                color, line, width = STYLES[title]
                # The gap of gradients goes up and down; a bound that held once still holds.
                y = np.minimum.accumulate(curve[column]) if column == "gap" else curve[column]
                plot(axis, curve[cost], y, ls=line, color=color, lw=width, label=title)
                ends.append(curve[cost][-1] if title != "L-BFGS" else 0.0)
            # L-BFGS may go on beyond the panel.
            axis.set_xlim(0, max(ends))
            axis.set_ylim(FLOOR, 3)
            axis.set_xlabel(xlabel, fontsize="small")
        row[0].set_title(t.task.title, fontsize="medium", loc="left")
        row[0].set_ylabel(ylabel, fontsize="x-small")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


def draw_settings(tasks):
    """A row for each experiment on SDCA, a column for each task."""
    experiments = {
        "sampling": SCHEMES,
        "share of gap sampling": SHARES,
        "precision of the line search": PRECISIONS,
    }
    figure, axes = grid(len(experiments), len(tasks) + 1)
    for row, (title, experiment) in zip(axes, experiments.items(), strict=True):
        for axis, t in zip(row, tasks, strict=False):
            curves = {name: t.curve(setting) for name, setting in experiment.items()}
            if None in curves.values():
                axis.set_axis_off()
                continue
            for (name, curve), color in zip(curves.items(), COLORS, strict=True):
                plot(axis, curve["updates"], curve["excess"], color=color, lw=1.4, label=name)
            axis.set_ylim(FLOOR, 3)
            axis.set_xlabel("updates / n", fontsize="small")
            axis.set_ylabel("objective above the optimum", fontsize="x-small")
            axis.set_title(t.task.title, fontsize="small")
            handles, labels = axis.get_legend_handles_labels()
        row[-1].set_axis_off()
        row[-1].legend(handles, labels, loc="center left", frameon=False, title=title)
    return figure


def draw_estimates(tasks):
    """Estimated and true gap."""
    figure, axes = grid(1, len(tasks), height=2.8)
    for axis, t in zip(axes[0], tasks, strict=True):
        for setting, title, color in ((GAP, "gap", "#d55e00"), (UNIFORM, "uniform", "#0072b2")):
            curve = t.curve(setting)
            if curve is None:
                continue
            plot(axis, curve["updates"], curve["gap"], color=color, lw=1.6, label=f"{title}: true")
            plot(
                axis,
                curve["updates"],
                curve["estimate"],
                color=color,
                ls=":",
                lw=1.6,
                label=f"{title}: estimated",
            )
        axis.set_ylim(FLOOR, 10)
        axis.set_xlabel("updates / n", fontsize="small")
        axis.set_title(t.task.title, fontsize="medium")
    axes[0, 0].set_ylabel("duality gap, as a share", fontsize="small")
    axes[0, -1].legend(frameon=False, fontsize="small")
    return figure
