"""Tables of the runs."""

from types import SimpleNamespace

import numpy as np

from benchmarks.common.report import table
from benchmarks.common.runs import write_compressed
from benchmarks.sdca_paper.figures import draw_figures
from benchmarks.sdca_paper.plan import (
    GAP,
    MAIN,
    PRECISIONS,
    SCHEMES,
    SHARES,
    TIMED,
    UNIFORM,
)
from benchmarks.sdca_paper.tasks import COLUMNS

# Shares of the objective.
LEVELS = (1e-2, 1e-4, 1e-6)
COSTS = {"updates": "updates / n", "calls": "oracle calls / n", "seconds": "seconds"}


class TaskResults:
    """The finished runs of a task, with the best known bounds of the optimum."""

    def __init__(self, runs, seeds):
        self.name, self.task, self.seeds, self._runs = runs.name, runs.task, seeds, runs
        self.sizes = runs.problem.describe()
        runs.release()
        found = [curve for setting in all_settings(seeds) if (curve := runs.find(*setting))]
        self.best = min(curve["objective"].min() for curve in found)
        self.bound = max(np.nanmax(curve["dual"]) for curve in found)

    def curve(self, setting, seed=0):
        """A run by column, with values relative to the optimum."""
        found = self._runs.find(setting, seed)
        if not found:
            return None
        n, times = self.sizes["sequences"], self.times(setting)
        return {
            **found,
            "seconds": times[0] + times[1] * (found["epoch"] - found["epoch"][0]),
            "updates": found["updates"] / n,
            "calls": found["calls"] / n,
            "excess": (found["objective"] - self.best) / self.best,
            "gap": (found["objective"] - found["dual"]) / self.best,
            "estimate": found["estimate"] / self.best,
        }

    def times(self, setting):
        """Seconds to the first point, and of an epoch after it; NaN if they were not measured."""
        return self._runs.seconds(setting) or (np.nan, np.nan)

    def cost(self, setting, level, *, of="excess", cost="updates", seed=0):
        """Cost to get below a level; NaN if it is not reached."""
        curve = self.curve(setting, seed)
        return np.nan if curve is None else crossing(curve[cost], curve[of], level)

    def costs(self, setting, cost="updates"):
        """Text with the costs to get below all levels."""
        return " / ".join(number(self.cost(setting, level, cost=cost)) for level in LEVELS)

    def curves(self, setting):
        """The runs with all seeds that have one."""
        return [curve for seed in range(self.seeds) if (curve := self.curve(setting, seed))]


def all_settings(seeds):
    for experiment in (MAIN, SCHEMES, SHARES, PRECISIONS):
        for setting in experiment.values():
            for seed in range(seeds if setting in (GAP, UNIFORM) else 1):
                yield setting, seed


def crossing(x, y, level):
    """Place where a curve first falls below a level, interpolated in its logarithm."""
    below = np.flatnonzero(y <= level)
    if len(below) == 0:
        return np.nan
    i = below[0]
    if i == 0 or y[i] <= 0:
        return x[i]
    share = np.log(y[i - 1] / level) / np.log(y[i - 1] / y[i])
    return x[i - 1] + share * (x[i] - x[i - 1])


def write_report(all_runs, report, seeds):
    """Write all tables, figures and runs; those of times only where all times were measured."""
    tasks = [TaskResults(runs, seeds) for runs in all_runs]
    timed = not any(np.isnan(t.times(setting)).any() for t in tasks for setting in TIMED)
    draw_figures(tasks, report, timed)
    for name, make in (TABLES | TABLES_OF_TIMES if timed else TABLES).items():
        report.write(name, make(tasks))
    for runs in all_runs:
        write_compressed(report.folder / kept_name(runs.name), runs.records)


def kept_name(task):
    """Name of the file of finished runs that comes with the repository."""
    return f"{task}.jsonl.gz"


def number(value, digits=1):
    return "-" if np.isnan(value) else f"{value:,.{digits}f}"


def write_sizes(all_runs, report):
    """Write the table of sizes alone, which needs no runs."""
    tasks = []
    for runs in all_runs:
        tasks.append(SimpleNamespace(task=runs.task, sizes=runs.problem.describe()))
        runs.release()
    report.write("sizes", size_table(tasks))


def size_table(tasks):
    """Sizes of the tasks, and of their counterparts in the paper."""
    rows = []
    for t in tasks:
        paper = t.task.paper
        rows.append([t.task.title, *sizes_of(t.sizes)])
        if paper:
            rows.append([f"paper: {paper['name']}", *sizes_of(paper)])
    head = ["weights (d)", "sequences (n)", "tokens (N)", "labels (K)", "attributes (A)"]
    return table(["", *head, "at a token, at most (a)", "marginals, GiB"], rows)


def sizes_of(found):
    return [f"{found[c]:,.1f}" if c == "memory" else f"{found[c]:,}" for c in COLUMNS]


def optimum_table(tasks):
    rows = []
    for t in tasks:
        known = (t.best - t.bound) / t.best
        rows.append([t.task.title, f"{t.best:,.4f}", f"{t.best - t.bound:.1g}", f"{known:.1g}"])
    return table(["", "objective", "certainly within", "as a share"], rows)


def method_table(cost):
    """Maker of the table of what the methods cost on the way to the optimum."""

    def make(tasks):
        rows = []
        for title, setting in MAIN.items():
            if cost == "updates" and title == "L-BFGS":
                continue
            rows.append([title, *(t.costs(setting, cost=cost) for t in tasks)])
        return table([COSTS[cost], *(t.task.title for t in tasks)], rows)

    return make


def gap_table(tasks):
    """Updates with gap sampling and with uniform sampling, over the seeds."""
    rows = []
    for t in tasks:
        for level in LEVELS:
            found = [
                np.array([t.cost(s, level, of="gap", seed=seed) for seed in range(t.seeds)])
                for s in (GAP, UNIFORM)
            ]
            both = np.isfinite(found[0]) & np.isfinite(found[1])
            if not both.any():
                continue
            values = [spread(part[both]) for part in found]
            ratio = found[0][both].sum() / found[1][both].sum()
            rows.append([t.task.title, f"{level:g}", *values, f"{ratio:.2f}", both.sum()])
    return table(["", "gap", "gap sampling", "uniform", "ratio", "seeds"], rows)


def spread(values, digits=1):
    mean, low, high = (f"{f(values):.{digits}f}" for f in (np.mean, np.min, np.max))
    return f"{mean} ({low}-{high})" if len(values) > 1 else mean


def setting_table(experiment, title):
    """Maker of the table of the updates on the way to the optimum."""

    def make(tasks):
        kept = [t for t in tasks if all(t.curve(setting) for setting in experiment.values())]
        rows = []
        for name, setting in experiment.items():
            rows.append([name, *(t.costs(setting) for t in kept)])
        return table([title, *(t.task.title for t in kept)], rows)

    return make


def time_table(tasks):
    """Milliseconds of an epoch by the precision of the line search."""
    kept = [t for t in tasks if all(t.curve(setting) for setting in PRECISIONS.values())]
    rows = []
    for name, setting in PRECISIONS.items():
        rows.append([name, *(number(1000 * t.times(setting)[1], 0) for t in kept)])
    return table(["ms an epoch", *(t.task.title for t in kept)], rows)


def estimate_table(tasks):
    """Ratio of the estimated to the true gap of SDCA, after the first epoch, over the seeds."""
    rows = []
    for t in tasks:
        row = [t.task.title]
        for setting in (GAP, UNIFORM):
            curves = t.curves(setting)
            ratio, gap = (
                np.concatenate([values(curve)[1:] for curve in curves] or [[]])
                for values in (lambda c: c["estimate"] / c["gap"], lambda c: c["gap"])
            )
            for kept in (gap >= LEVELS[-1], gap < LEVELS[-1]):
                found = f"{ratio[kept].min():.2f} - {ratio[kept].max():.2f}" if kept.any() else "-"
                row.append(found)
            row.append(len(curves))
        rows.append(row)
    head = ["gap as a share"]
    for title in ("gap sampling", "uniform"):
        head += [f"{title}: down to {LEVELS[-1]:g}", f"{title}: below", "seeds"]
    return table(head, rows)


def stale_table(tasks):
    """Who has the gap at the last point of the runs, and how much of it the records miss."""
    rows = []
    for t in tasks:
        for setting, title in ((GAP, "gap"), (UNIFORM, "uniform")):
            curves = t.curves(setting)
            if not curves:
                continue
            last = {name: np.array([c[name][-1] for c in curves]) for name in curves[0]}
            cells = [f"{last['gap'].mean():.1g}", spread(last["estimate"] / last["gap"], 2)]
            cells += [spread(100 * last[name], 2) for name in ("carriers", "stale")]
            rows.append([t.task.title, title, f"{last['epoch'].mean():.0f}", *cells, len(curves)])
    head = ["", "sampling", "epochs", "gap as a share", "estimated / true"]
    head += ["sequences with 90% of the gap, %", "gap on stale records, %", "seeds"]
    return table(head, rows, left=(0, 1))


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
            row.append(f"{number(1000 * t.times(setting)[1], 0)} ({calls:.2f})")
        rows.append(row)
    return table(["ms (calls / n)", *(t.task.title for t in tasks)], rows)


TABLES = {
    "sizes": size_table,
    "optimum": optimum_table,
    "methods_by_updates": method_table("updates"),
    "methods_by_calls": method_table("calls"),
    "gaps": gap_table,
    "schemes": setting_table(SCHEMES, "sampling"),
    "shares": setting_table(SHARES, "share of gap sampling"),
    "precisions": setting_table(PRECISIONS, "precision of the line search"),
    "estimates": estimate_table,
    "stale": stale_table,
}
TABLES_OF_TIMES = {
    "methods_by_seconds": method_table("seconds"),
    "epochs": epoch_table,
    "precision_times": time_table,
}
