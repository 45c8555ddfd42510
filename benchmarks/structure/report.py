"""Tables and the figure of the corpora that have all their runs."""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common.report import corrected, mean_and_deviation, table
from benchmarks.common.runs import write_runs
from benchmarks.structure.plan import COMPARISONS, FIGURES, LEARNERS, LENGTHS, OPTIONAL, WHOLE

EDGES = {False: "tokens", True: "tokens and edges"}
# Share of a score that a learner may be below the last one of whole sequences, in per cent.
NEAR = 0.5
N_COLUMNS = 3
# Relative change of the objective in an epoch.
CHANGE = 0.05
# Learners with an objective.
SETTLE = ("CRF", "CRF, averaged", "SAPO")
# Table 1 of the paper: benchmark system and structure regularisation, by the corpora here.
PAPER = {
    "ud-english-ewt": ("POS tagging", 97.33, 97.36),
    "brown-pos": ("POS tagging", 97.33, 97.36),
    "jnlpba": ("Bio-NER", 72.28, 72.43),
    "wordseg-as": ("Word segmentation", 97.19, 97.50),
}


class Results:
    """The records of a corpus."""

    def __init__(self, name, corpus, records, n_seeds):
        self.name, self.task, self.n_seeds = name, corpus.task, n_seeds
        self._records = records
        self.short = corpus.task.title.rpartition(", ")[2]
        self.corrected = {}  # p by learner and comparison

    def find(self, kind, **head):
        return self._records.find(kind=kind, corpus=self.name, **head)

    def length(self, learner, edges):
        return self.find("choice", learner=learner, edges=edges)["chosen"]

    def runs(self, learner, edges, length):
        """Runs on the test set, by seed."""
        head = {"learner": learner, "edges": edges, "length": length, "part": "test"}
        return [self.find("run", seed=seed, **head) for seed in range(self.n_seeds)]

    def whole(self, learner, edges):
        """Run of a learner without seeds; None if it is not made."""
        head = {"learner": learner, "edges": edges, "length": None, "part": "test", "seed": 0}
        return self.find("run", **head)

    def dev(self, learner, edges, length):
        head = {"learner": learner, "edges": edges, "length": length}
        return self.find("run", part="dev", seed=0, **head)

    def test(self, learner, what):
        """Difference and p of a comparison; p is corrected once `correct` has seen all tests."""
        found = self.find("test", learner=learner, what=what)
        return found and {**found, "p": self.corrected.get((learner, what), found["p"])}

    @property
    def systems(self):
        return [(learner, edges) for learner in self.learners for edges in EDGES]

    @property
    def learners(self):
        """Learners with all their runs, and those that must have them."""
        return [name for name in LEARNERS if name not in OPTIONAL or self.has(name)]

    @property
    def complete(self):
        """True if all runs and tests of all learners are at hand, but for optional ones."""
        return all(map(self.has, self.learners))

    def has(self, learner):
        """True if all runs and tests of a learner are at hand."""
        for edges in EDGES:
            if not self.find("choice", learner=learner, edges=edges):
                return False
            for length in {None, self.length(learner, edges)}:
                if None in self.runs(learner, edges, length):
                    return False
        return all(
            self.test(learner, what) or not self.differ(learner, what) for what in COMPARISONS
        )

    def differ(self, learner, what):
        """True if the two sides of a comparison are different systems."""
        sides = [
            (edges, self.length(learner, edges) if cut else None)
            for edges, cut in COMPARISONS[what]
        ]
        return sides[0] != sides[1]

    def best(self, cut):
        """Learner, edges and length with the best score on the development set."""
        tried = [
            (self.dev(*system, length)["score"][-1], *system, length)
            for system in self.systems
            for length in ({self.length(*system)} if cut else {None})
        ]
        return max(tried, key=lambda found: found[0])[1:]


def write_report(records, corpora, report, *, n_seeds):
    """Write tables and figure, and the records of the corpora that have all runs."""
    results = [
        found
        for name, corpus in corpora.items()
        if records.find(kind="sizes", corpus=name)
        and (found := Results(name, corpus, records, n_seeds)).complete
    ]
    correct(results)
    for name, make in TABLES.items():
        report.write(name, make(results))
    report.save_figure("lengths", draw_lengths(results))
    names = {found.name for found in results}
    write_runs(report.folder / "runs.jsonl", [r for r in records if r["corpus"] in names])


def correct(results):
    """Correct the p of all tests of all corpora."""
    tests = {
        (r, learner, what): found["p"]
        for r in results
        for learner in r.learners
        for what in COMPARISONS
        if (found := r.test(learner, what))
    }
    for (r, *key), p in corrected(tests).items():
        r.corrected[tuple(key)] = p


def size_table(results):
    rows = []
    for r in results:
        found = r.find("sizes")
        counts = (f"{found[name]:,}" for name in ("train", "dev", "test"))
        more = (f"{found[name]:,}" for name in ("labels", "features", "edge_features"))
        rows.append([r.task.title, *counts, f"{found['mean']:.1f}", *more, r.task.measure])
    names = ["train", "dev", "test", "mean length", "labels", "features", "edge features", "score"]
    return table(["", *names], rows)


def score_table(results):
    """Scores of whole sequences and of pieces."""
    rows = []
    for r in results:
        for learner, edges in r.systems:
            length = r.length(learner, edges)
            row = [r.short, learner, EDGES[edges], show(r.runs(learner, edges, None))]
            if length is None:
                rows.append([*row, "no cut", "", "", ""])
                continue
            test = r.test(learner, "pieces with edges" if edges else "pieces")
            rows.append([*row, length, show(r.runs(learner, edges, length)), *difference(test)])
        for learner in WHOLE:
            for edges in EDGES:
                run = r.whole(learner, edges)
                if run:
                    rows.append([r.short, learner, EDGES[edges], f"{run['score'][0]:.2f}"])
                    rows[-1] += 4 * [""]
    head = ["", "", "features of", "whole", "n'", "pieces", "difference", "p"]
    return table(head, rows, left=(0, 1, 2))


def edge_table(results):
    """Gain of edge features, and of edge features and pieces together."""
    rows = []
    for r in results:
        for learner in r.learners:
            row = [r.short, learner, show(r.runs(learner, False, None))]
            rows.append([*row, *difference(r.test(learner, "edges"))])
            cut = r.length(learner, True) is not None
            rows[-1] += difference(r.test(learner, "edges and pieces") if cut else None)
    head = ["", "", "tokens, whole", "edges", "p", "edges and pieces", "p"]
    return table(head, rows, left=(0, 1))


def length_table(results):
    """Development score by the mean length of the pieces."""
    rows = []
    for r in results:
        for learner, edges in r.systems:
            found = [f"{r.dev(learner, edges, n)['score'][-1]:.2f}" for n in lengths_of(r)]
            rows.append([r.short, learner, EDGES[edges], *found])
    head = ["", "", "features of", *("no cut" if n is None else f"n' = {n}" for n in LENGTHS)]
    return table(head[: len(rows[0])] if rows else head, rows, left=(0, 1, 2))


def time_table(results):
    """Seconds of an epoch of whole sequences, and the ratio to it of the pieces."""
    rows = []
    for r in results:
        for learner, edges in r.systems:
            seconds = [np.median(r.dev(learner, edges, n)["time"]) for n in lengths_of(r)]
            ratios = (f"{s / seconds[0]:.2f}" for s in seconds[1:])
            rows.append([r.short, learner, EDGES[edges], f"{seconds[0]:.2f}", *ratios])
    head = ["", "", "features of", "s, no cut", *(f"n' = {n}" for n in LENGTHS[1:])]
    return table(head[: len(rows[0])] if rows else head, rows, left=(0, 1, 2))


def convergence_table(results):
    """Epochs and seconds to a score, and to a small change of the objective."""
    rows = []
    for r in results:
        for learner, edges in r.systems:
            length = r.length(learner, edges)
            if length is None:
                continue
            sides = [r.runs(learner, edges, n) for n in (None, length)]
            target = np.mean([run["score"][-1] for run in sides[0]]) - NEAR
            row = [r.short, learner, EDGES[edges], length]
            row += (cost(runs, lambda run, target=target: reaches(run, target)) for runs in sides)
            if learner in SETTLE:
                row += (cost(runs, settles) for runs in sides)
            else:
                row += ["", ""]
            rows.append(row)
    head = ["", "", "features of", "n'", "score: whole", "pieces", "objective: whole", "pieces"]
    return table(head, rows, left=(0, 1, 2))


def figures_table(results):
    """Test score and seconds of training by the length of pieces."""
    rows = []
    for r in results:
        lengths = lengths_of(r)
        for learner, edges in r.systems:
            if learner in (*FIGURES, *OPTIONAL):
                cells = [figure_cell(r, learner, edges, n) for n in lengths]
                if learner in OPTIONAL or all(cells):
                    rows.append([r.short, learner, EDGES[edges], *cells])
        for learner in WHOLE:
            for edges in EDGES:
                run = r.whole(learner, edges)
                if run:
                    cell = f"{run['score'][0]:.2f}, {run['time'][0]:.1f} s"
                    blank = [""] * (len(lengths) - 1)
                    rows.append([r.short, learner, EDGES[edges], cell, *blank])
    head = ["", "", "features of", "no cut", *(f"n' = {n}" for n in LENGTHS[1:])]
    return table(head[: len(rows[0])] if rows else head, rows, left=(0, 1, 2))


def figure_cell(r, learner, edges, length):
    """Test score and seconds of training; empty where runs are missing."""
    runs = r.runs(learner, edges, length)
    if None in runs:
        return ""
    # Of runs that were made one after the other, so that they can be compared.
    seconds = np.median(r.dev(learner, edges, length)["time"])
    return f"{show(runs)}, {training(runs, seconds)}"


def training(runs, seconds):
    """Seconds until the objective settles; without one, of all epochs."""
    settled = [settles(run) if run["learner"] in SETTLE else len(run["time"]) for run in runs]
    n_open = settled.count(None)
    return f"{n_open} of {len(runs)} never" if n_open else f"{np.mean(settled) * seconds:.1f} s"


def reaches(run, target):
    """Number of epochs until the score of a run is at least `target`; None if it never is."""
    return next((i for i, found in enumerate(run["score"], 1) if found >= target), None)


def settles(run):
    """Number of epochs until the objective changes by a small share of itself."""
    loss = np.array(run["loss"])
    change = np.abs(np.diff(loss)) / loss[:-1]
    return next((i for i, found in enumerate(change, 2) if found < CHANGE), None)


def cost(runs, count):
    """Mean number of epochs that runs take, and of seconds of the processor."""
    epochs = [count(run) for run in runs]
    if None in epochs:
        return f"{sum(found is None for found in epochs)} of {len(runs)} never"
    seconds = np.median(np.min([run["time"] for run in runs], axis=0))
    return f"{np.mean(epochs):.1f} ({np.mean(epochs) * seconds:.1f} s)"


def paper_table(results):
    """Table 1 of the paper, beside the best here by the development set."""
    rows = []
    for r in results:
        if r.name in PAPER:
            task, benchmark, published = PAPER[r.name]
            row = [task, f"{benchmark:.2f}", f"{published:.2f}", r.short]
            for cut in (False, True):
                learner, edges, length = r.best(cut)
                what = [
                    learner,
                    *(["edges"] if edges else []),
                    *([] if not cut else ["no cut"] if length is None else [f"n' = {length}"]),
                ]
                row.append(
                    f"{show(r.runs(learner, edges, length))} ({', '.join(filter(None, what))})"
                )
            rows.append(row)
    head = ["", "paper: benchmark", "paper: pieces", "here", "best, whole", "best, pieces"]
    return table(head, rows, left=(0, 3))


def lengths_of(r):
    """Lengths that were tried."""
    learner, edges = r.systems[0]
    return [n for n in LENGTHS if r.dev(learner, edges, n)]


def show(runs):
    return mean_and_deviation([run["score"][-1] for run in runs])


def difference(test):
    if test is None:
        return ["", ""]
    p = "< 0.001" if test["p"] < 0.001 else f"{test['p']:.3f}"
    return [f"{test['difference']:+.2f}", p]


def draw_lengths(results):
    """Change of the development score by the length of pieces, a panel for each corpus."""
    n_columns = max(1, min(N_COLUMNS, len(results)))
    n_rows = max(1, -(-len(results) // n_columns))
    figure = Figure(figsize=(3.3 * n_columns + 2, 2.9 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis in axes[len(results) :]:
        axis.set_axis_off()
    palette = ("#0072b2", "#000000", "#888888", "#d55e00", "#009e73")
    colors = dict(zip(LEARNERS, palette, strict=True))
    for axis, r in zip(axes, results, strict=False):
        lengths = lengths_of(r)
        for learner, edges in r.systems:
            scores = np.array([r.dev(learner, edges, n)["score"][-1] for n in lengths])
            style = {"color": colors[learner], "ls": "-" if edges else ":", "marker": "o", "ms": 3}
            title = f"{learner}, {EDGES[edges]}"
            axis.plot(lengths[1:], scores[1:] - scores[0], label=title, **style)
        axis.axhline(0, color="gray", lw=1, ls="--")
        axis.set(title=r.short, xlabel="n', mean length of pieces")
        axis.set_ylabel(f"{r.task.measure}, change")
        axis.spines[["top", "right"]].set_visible(False)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", frameon=False, fontsize=8)
    return figure


TABLES = {
    "sizes": size_table,
    "scores": score_table,
    "edges": edge_table,
    "lengths": length_table,
    "times": time_table,
    "convergence": convergence_table,
    "figures": figures_table,
    "paper": paper_table,
}
