"""Experiments, and the runs that are finished."""

import time

import numpy as np

from benchmarks.common.runs import Records
from benchmarks.sdca_paper.learners import METHODS, Point
from benchmarks.sdca_paper.tasks import QUICK_TASKS, TASKS, load_problem

# A run ends where its gap is this share of the objective. L-BFGS, which gives the optimum, goes on
# for longer.
PRECISION = {"lbfgs": 1e-10}
LOWEST = 1e-8
LBFGS_STEPS = 1000
GAP, UNIFORM = ("sdca", {"sampling": "gap"}), ("sdca", {"sampling": "uniform"})
MAIN = {
    "L-BFGS": ("lbfgs", {}),
    "SDCA, gap": GAP,
    "SDCA, uniform": UNIFORM,
    "SAG-NUS": ("sag", {}),
    "SAG-NUS*": ("sag", {"skip_searches": True}),
    "OEG": ("oeg", {}),
}
SCHEMES = {
    "gap": GAP,
    "uniform": UNIFORM,
    **{
        title: ("sdca", {"sampling": scheme})
        for title, scheme in (
            ("importance", "importance"),
            ("gap x importance", "gap_importance"),
            ("max", "max"),
        )
    },
}
SHARES = {
    "0": UNIFORM,
    **{f"{share:g}": ("sdca", {**GAP[1], "nonuniformity": share}) for share in (0.2, 0.5)},
    "0.8": GAP,
    "1": ("sdca", {**GAP[1], "nonuniformity": 1.0}),
}
PRECISIONS = {
    "one step of Newton": ("sdca", {**GAP[1], "line_search_tol": 1.0}),
    **{f"{tol:g}": ("sdca", {**GAP[1], "line_search_tol": tol}) for tol in (1e-1, 1e-2)},
    "0.001": GAP,
    "1e-06": ("sdca", {**GAP[1], "line_search_tol": 1e-6}),
}
SMALLER = ("ocr", "conll2000", "conll2002-ned")  # all but Brown
# Experiments in their order: the tasks, and the most epochs (None: those of the task).
EXPERIMENTS = (
    (MAIN, tuple(TASKS), None),
    (PRECISIONS, tuple(TASKS), 60),
    (SCHEMES, SMALLER, 60),
    (SHARES, SMALLER[1:], 60),
)
QUICK_EXPERIMENTS = tuple((experiment, tuple(QUICK_TASKS), 5) for experiment, *_ in EXPERIMENTS)
# Settings of which the time is measured, and for how many epochs.
TIMED = [*MAIN.values(), *(setting for setting in PRECISIONS.values() if setting != GAP)]
TIMED_EPOCHS = 8
# Seeds for which gap and uniform sampling are compared.
SEEDS = 3


class TaskRecords(Records):
    """Finished runs of a task; those that only measure the time have no seed."""

    names = ("method", "parameters", "seed")


class Runs:
    """The finished runs of a task, and a way to make more; `kept` came with the repository."""

    def __init__(self, name, task, data, results, kept=()):
        self.name, self.task = name, task
        self.records = TaskRecords(results / f"{name}.jsonl", kept)
        self._source = name, task, data, results / "cache"
        self._problem = None

    def __len__(self):
        return sum("updates" in run for run in self.records)

    @property
    def problem(self):
        if self._problem is None:
            self._problem = load_problem(*self._source)
        return self._problem

    def release(self):
        """Release the training set."""
        self._problem = None

    def find(self, setting, seed=0):
        """Points of a finished run, by column; None if there is no such run."""
        run = self._get(setting, seed)
        return run and {name: np.array(run[name], float) for name in Point._fields}

    def seconds(self, setting):
        """Seconds to the first point of a curve, and of an epoch after it; None if not measured."""
        run = self._get(setting, None)
        return run and (run["first"], run["epoch"])

    def _get(self, setting, seed):
        method, parameters = setting
        return self.records.find(method=method, parameters=parameters, seed=seed)

    def measure(self, setting):
        """Measure these seconds; beside other work they would be too long."""
        method, parameters = setting
        points = list(METHODS[method](self.problem, 0, TIMED_EPOCHS, **parameters))
        run = {
            "method": method,
            "parameters": parameters,
            "seed": None,
            "first": points[0].seconds,
            "epoch": float(np.median(np.diff([point.seconds for point in points]))),
        }
        self.records.add(run)
        print(f"{self.name} {method} {parameters}: {run['first']:.3f}, {run['epoch']:.3f} s")

    def make(self, setting, seed=0, epochs=None):
        """Make a run, unless it is finished already."""
        if self._get(setting, seed) is not None:
            return
        method, parameters = setting
        start, points = time.process_time(), []
        epochs = LBFGS_STEPS if method == "lbfgs" else epochs or self.task.epochs
        for point in METHODS[method](self.problem, seed, epochs, **parameters):
            points.append(point)
            gap = point.objective - point.dual
            if gap <= PRECISION.get(method, LOWEST) * point.objective:
                break
            if time.process_time() - start > self.task.seconds:
                break
        columns = {
            name: [None if np.isnan(x) else x for x in column]
            for name, column in zip(Point._fields, zip(*points, strict=True), strict=True)
        }
        self.records.add({"method": method, "parameters": parameters, "seed": seed, **columns})
        last, spent = points[-1], time.process_time() - start
        print(
            f"{time.strftime('%H:%M:%S')} {self.name} {method} {parameters} seed {seed}: "
            f"{last.epoch} epochs, {last.objective:.6f}, gap {last.objective - last.dual:.2g}, "
            f"{last.seconds:.1f} s of {spent:.1f} s",
            flush=True,
        )


def warm_up(runs):
    """Compile or load what will be timed."""
    problem = runs.problem
    few = problem._replace(training_set=problem.training_set.take(np.arange(3)))
    for learn in METHODS.values():
        parameters = GAP[1] if learn is METHODS["sdca"] else {}
        list(learn(few, 0, 3, **parameters))
