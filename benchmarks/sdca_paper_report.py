"""Tables of `sdca_paper.py`, put into the page of which `sdca_paper.md` is the text."""

from pathlib import Path

import numpy as np
from sdca_paper_figures import draw_figures
from sdca_paper_plan import GAP, MAIN, PRECISIONS, SCHEMES, SEEDS, SHARES, UNIFORM

# Shares of the objective.
LEVELS = (1e-2, 1e-4, 1e-6)
COSTS = {"updates": "updates / n", "calls": "oracle calls / n", "seconds": "seconds"}


class TaskResults:
    """The finished runs of a task, and the optimum as far as they know it."""

    def __init__(self, runs):
        self.name, self.task, self._runs = runs.name, runs.task, runs
        self.sizes = runs.problem.describe()
        runs.release()
        found = [curve for setting in all_settings() if (curve := runs.find(*setting))]
        self.best = min(curve["objective"].min() for curve in found)
        self.bound = max(np.nanmax(curve["dual"]) for curve in found)

    def curve(self, setting, seed=0):
        """A run by column, with shares of the optimum in place of values."""
        found = self._runs.find(setting, seed)
        if not found:
            return None
        n = self.sizes["sequences"]
        return {
            **found,
            "updates": found["updates"] / n,
            "calls": found["calls"] / n,
            "excess": (found["objective"] - self.best) / self.best,
            "gap": (found["objective"] - found["dual"]) / self.best,
            "estimate": found["estimate"] / self.best,
        }

    def cost(self, setting, level, *, of="excess", cost="updates", seed=0):
        """What it takes to get below a level, nan if it is not reached."""
        curve = self.curve(setting, seed)
        return np.nan if curve is None else crossing(curve[cost], curve[of], level)


def all_settings():
    for experiment in (MAIN, SCHEMES, SHARES, PRECISIONS):
        for setting in experiment.values():
            for seed in range(SEEDS if setting in (GAP, UNIFORM) else 1):
                yield setting, seed


def crossing(x, y, level):
    """Where a curve first is below a level, by its logarithm between the points."""
    below = np.flatnonzero(y <= level)
    if len(below) == 0:
        return np.nan
    i = below[0]
    if i == 0 or y[i] <= 0:
        return x[i]
    share = np.log(y[i - 1] / level) / np.log(y[i - 1] / y[i])
    return x[i - 1] + share * (x[i] - x[i - 1])


def write_report(all_runs, docs):
    """Write the page and its figures into the folder `docs`."""
    tasks = [TaskResults(runs) for runs in all_runs]
    draw_figures(tasks, docs / "images")
    page = (Path(__file__).parent / "sdca_paper.md").read_text(encoding="utf-8")
    for name, make in TABLES.items():
        page = page.replace(f"{{{{{name}}}}}", make(tasks))
    (docs / "benchmarks" / "sdca_paper.md").write_text(page, encoding="utf-8")


def epoch_seconds(curve):
    return np.median(np.diff(curve["seconds"]) / np.diff(curve["epoch"]))


def table(head, rows):
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(value, digits=1):
    return "-" if np.isnan(value) else f"{value:,.{digits}f}"


def size_table(tasks):
    rows = []
    for t in tasks:
        for title, sizes in ((t.task.title, t.sizes), (f"paper: {t.task.paper['name']}", None)):
            sizes = sizes or t.task.paper
            names = ("sequences", "tokens", "labels", "attributes", "at most")
            rows.append([title, *(f"{sizes[name]:,}" for name in names)])
    head = ["", "sequences (n)", "tokens", "labels", "attributes", "of them at a token, at most"]
    return table(head, rows)


def optimum_table(tasks):
    rows = []
    for t in tasks:
        known = (t.best - t.bound) / t.best
        rows.append([t.task.title, f"{t.best:,.4f}", f"{t.best - t.bound:.1g}", f"{known:.1g}"])
    return table(["", "objective", "certainly within", "as a share"], rows)


def method_table(cost):
    """What the methods take to come near the optimum."""

    def make(tasks):
        rows = []
        for title, setting in MAIN.items():
            if cost == "updates" and title == "L-BFGS":
                continue
            row = [title]
            for t in tasks:
                found = (t.cost(setting, level, cost=cost) for level in LEVELS)
                row.append(" / ".join(number(x) for x in found))
            rows.append(row)
        return table([COSTS[cost], *(t.task.title for t in tasks)], rows)

    return make


def gap_table(tasks):
    """Updates that gap sampling and uniform sampling need, over the seeds."""
    rows = []
    for t in tasks:
        for level in LEVELS:
            found = [
                np.array([t.cost(s, level, of="gap", seed=seed) for seed in range(SEEDS)])
                for s in (GAP, UNIFORM)
            ]
            both = np.isfinite(found[0]) & np.isfinite(found[1])
            if not both.any():
                continue
            values = [spread(part[both]) for part in found]
            ratio = found[0][both].sum() / found[1][both].sum()
            rows.append([t.task.title, f"{level:g}", *values, f"{ratio:.2f}", both.sum()])
    return table(["", "gap", "gap sampling", "uniform", "ratio", "seeds"], rows)


def spread(values):
    low, high = values.min(), values.max()
    return f"{values.mean():.1f} ({low:.1f}-{high:.1f})" if len(values) > 1 else f"{low:.1f}"


def setting_table(experiment, title, of="excess"):
    """Updates to come near the optimum, and where the last epoch is."""

    def make(tasks):
        kept = [t for t in tasks if all(t.curve(setting) for setting in experiment.values())]
        rows = []
        for name, setting in experiment.items():
            row = [name]
            for t in kept:
                found = [t.cost(setting, level, of=of) for level in LEVELS]
                row.append(" / ".join(number(x) for x in found))
            rows.append(row)
        return table([title, *(t.task.title for t in kept)], rows)

    return make


def time_table(tasks):
    """Milliseconds of an epoch by the precision of the line search."""
    kept = [t for t in tasks if all(t.curve(setting) for setting in PRECISIONS.values())]
    rows = []
    for name, setting in PRECISIONS.items():
        row = [name]
        for t in kept:
            curve = t.curve(setting)
            row.append(
                number(1000 * np.median(np.diff(curve["seconds"]) / np.diff(curve["epoch"])), 0)
            )
        rows.append(row)
    return table(["ms an epoch", *(t.task.title for t in kept)], rows)


def estimate_table(tasks):
    """The gap that SDCA estimates over the true one, after the first epoch."""
    rows = []
    for t in tasks:
        row = [t.task.title]
        for setting in (GAP, UNIFORM):
            curve = t.curve(setting)
            if curve is None:
                row += ["", ""]
                continue
            ratio, gap = (curve["estimate"] / curve["gap"])[1:], curve["gap"][1:]
            for kept in (gap >= LEVELS[-1], gap < LEVELS[-1]):
                found = f"{ratio[kept].min():.2f} - {ratio[kept].max():.2f}" if kept.any() else "-"
                row.append(found)
        rows.append(row)
    ranges = f"down to {LEVELS[-1]:g}", "below"
    head = ["gap as a share", *(f"gap sampling: {r}" for r in ranges)]
    return table([*head, *(f"uniform: {r}" for r in ranges)], rows)


def epoch_table(tasks):
    """Milliseconds of an epoch, and oracle calls for an update."""
    rows = []
    for title, setting in MAIN.items():
        row = [title]
        for t in tasks:
            curve = t.curve(setting)
            if curve is None:
                row.append("")
                continue
            calls = np.ptp(curve["calls"]) / np.ptp(curve["epoch"])
            row.append(f"{1000 * epoch_seconds(curve):,.0f} ({calls:.2f})")
        rows.append(row)
    return table(["ms (calls / n)", *(t.task.title for t in tasks)], rows)


TABLES = {
    "sizes": size_table,
    "optimum": optimum_table,
    **{f"methods by {cost}": method_table(cost) for cost in COSTS},
    "epochs": epoch_table,
    "gaps": gap_table,
    "schemes": setting_table(SCHEMES, "sampling"),
    "shares": setting_table(SHARES, "share of gap sampling"),
    "precisions": setting_table(PRECISIONS, "precision of the line search"),
    "precision times": time_table,
    "estimates": estimate_table,
}
