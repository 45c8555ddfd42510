"""What `sdca_paper.py` runs, and the runs that are finished."""

import json
import time

import numpy as np
from sdca_paper_learners import METHODS, Point
from sdca_paper_tasks import TASKS, load_problem

# A run ends where its gap is this share of the objective; that of L-BFGS, which the optimum is
# known by, goes on for longer.
PRECISION = {"lbfgs": 1e-10}
LOWEST = 1e-8
GAP, UNIFORM = ("sdca", {"sampling": "gap"}), ("sdca", {"sampling": "uniform"})
MAIN = {
    "L-BFGS": ("lbfgs", {}),
    "SDCA, gap": GAP,
    "SDCA, uniform": UNIFORM,
    "SAG-NUS": ("sag", {}),
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
SMALLER = ("ocr", "conll2000", "conll2002-ned")
# Which tasks an experiment is made on, in the order in which they are made, and for how many epochs
# at most; the main runs go on for as long as their tasks say.
EXPERIMENTS = (
    (MAIN, tuple(TASKS), None),
    (PRECISIONS, SMALLER, 60),
    (SCHEMES, SMALLER, 60),
    (SHARES, SMALLER[1:], 60),
)
# For how many seeds gap and uniform sampling are compared, on the smaller tasks.
SEEDS = 3


class Runs:
    """The finished runs of a task, and a way to make more."""

    def __init__(self, name, arguments):
        self.name, self.task = name, TASKS[name]
        self.path = arguments.results / f"{name}.jsonl"
        self._source = name, arguments.data, arguments.results / "cache"
        self._problem = None
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self._done = {run_key(run): run for run in map(json.loads, lines)}

    def __len__(self):
        return len(self._done)

    @property
    def problem(self):
        if self._problem is None:
            self._problem = load_problem(*self._source)
        return self._problem

    def release(self):
        """Let go of the training set."""
        self._problem = None

    def find(self, setting, seed=0):
        """The points of a finished run by column, None if there is none."""
        method, parameters = setting
        run = self._done.get(run_key({"method": method, "parameters": parameters, "seed": seed}))
        return run and {name: np.array(run[name], float) for name in Point._fields}

    def make(self, setting, seed=0, epochs=None):
        """Make a run, unless it is finished already."""
        method, parameters = setting
        head = {"method": method, "parameters": parameters, "seed": seed}
        if run_key(head) in self._done:
            return
        start, points = time.process_time(), []
        epochs = 1000 if method == "lbfgs" else epochs or self.task.epochs
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
        run = {**head, **columns}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run) + "\n")
        self._done[run_key(run)] = run
        last, spent = points[-1], time.process_time() - start
        print(
            f"{time.strftime('%H:%M:%S')} {self.name} {method} {parameters} seed {seed}: "
            f"{last.epoch} epochs, {last.objective:.6f}, gap {last.objective - last.dual:.2g}, "
            f"{last.seconds:.1f} s of {spent:.1f} s",
            flush=True,
        )


def run_key(run):
    return run["method"], json.dumps(run["parameters"], sort_keys=True), run["seed"]


def warm_up(runs):
    """Compile or load what is going to be timed."""
    problem = runs.problem
    few = problem._replace(training_set=problem.training_set.take(np.arange(3)))
    for learn in METHODS.values():
        parameters = GAP[1] if learn is METHODS["sdca"] else {}
        list(learn(few, 0, 3, **parameters))
