"""Figures of the finished runs."""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.rerank.compare import PREDICTIONS


def draw_figures(task, report):
    """Draw the figures of a task; return the Markdown that shows them.

    They are the score by number of weights (Figures 3, 4, 7 and 8 of the paper), and weights and
    mistakes by epoch (5 and 6).
    """
    figures = {}
    for loss in ("hinge", "logistic") if task.key != "bleu" else ("bayes_risk", "log"):
        figures[loss] = f"{task.key} by number of weights, {loss} loss", draw_sparsity(task, loss)
    figures["training"] = "Weights and mistakes during training", draw_training(task)
    parts = []
    for name, (title, figure) in figures.items():
        report.save_figure(f"{task.name}-{name}", figure)
        parts.append(f"![{title}]({task.name}-{name}.svg)")
    return parts


def draw_sparsity(task, loss):
    """Score by number of weights of VRDA, by its ways to predict, and truncated gradient."""
    figure = Figure(figsize=(5.5, 3.2))
    axes = figure.subplots()
    found = {f"VRDA, {p}": task.find("VRDA", loss=loss, prediction=p) for p in PREDICTIONS}
    found["TG"] = task.find("TG", loss=loss)
    for marker, (label, runs) in zip("os^x", found.items(), strict=True):
        if runs:
            axes.plot([r.nnz for r in runs], [r.score for r in runs], marker, label=label, ms=5)
    axes.set(xscale="log", xlabel="non-zero weights", ylabel=task.key, title=f"{loss} loss")
    axes.legend(fontsize="small")
    return figure


def draw_training(task):
    """Numbers of weights and mistakes by epoch."""
    figure = Figure(figsize=(9, 3))
    left, right = figure.subplots(1, 2)
    # The mistakes of the averaged perceptron are those of its current weights, not of their mean.
    chosen = [("perceptron", choice) for choice in task.find("Perceptron", max_iter=10)[:1]]
    for l1 in (0.0, 1e-4, 1e-3, 5e-3):
        found = task.find("VRDA", loss="hinge", l1=l1, max_iter=10, prediction="last")
        chosen += [(f"VRDA, l1 = {l1:g}", choice) for choice in found]
    for label, choice in chosen:
        mistakes, nnz = (choice.first[f"{name}_history"] for name in ("mistakes", "nnz"))
        epochs = np.arange(1, len(mistakes) + 1)
        left.plot(epochs, nnz, ".-", label=label)
        right.plot(epochs, np.cumsum(mistakes), ".-", label=label)
    left.set(xlabel="epoch", ylabel="non-zero weights", yscale="log")
    right.set(xlabel="epoch", ylabel="mistakes so far")
    right.legend(fontsize="small")
    figure.tight_layout()
    return figure
