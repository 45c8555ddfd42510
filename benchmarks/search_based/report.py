"""Tables of the runs."""

import numpy as np

from benchmarks.common.processes import n_swaps
from benchmarks.common.report import mean_and_deviation, table
from benchmarks.search_based.figures import draw_figures
from benchmarks.search_based.plan import EPOCHS, MINI_LENGTHS, MIRA_STEPS, N_BEST, main_systems
from benchmarks.search_based.tasks import score_of_counts

N_SWAPS = 5000
LEVEL = 0.01


class Result:
    """The finished runs of one setting of a task: an entry for each seed."""

    def __init__(self, runs, n_sentences=None):
        self.runs = runs
        self.epoch = runs[0]["epoch"] if runs else []
        self.scores = np.array([run["score"] for run in runs])
        self.last = self.scores[:, -1] if runs else np.empty(0)

    def __bool__(self):
        return bool(self.runs)

    def counts(self):
        """Counts of each test sentence that the score is made of, as means over the seeds."""
        return np.mean([run["counts"] for run in self.runs], axis=0)

    def curve(self, name):
        """Mean over the seeds, by epoch."""
        return np.mean([run[name] for run in self.runs], axis=0)

    def seconds(self):
        """Time of an epoch: median over epochs of the least disturbed seed."""
        return np.median(np.min([run["time"] for run in self.runs], axis=0))

    def text(self, marks=""):
        """Mean score with its deviation, and marks; empty without runs."""
        bold = f" **{marks}**" if marks else ""
        return mean_and_deviation(self.last) + bold if self else ""


class TaskResults:
    """The finished runs of a task, by experiment."""

    def __init__(self, runs):
        self.name, self.task = runs.name, runs.task
        self.chosen = chosen = runs.tune()
        self.chosen_length = runs.tune_cut(chosen)
        self.splits = runs.splits
        self.systems = {
            title: Result(runs.final(system, parameters))
            for title, system, parameters in main_systems(chosen)
        }
        self.lbfgs = Result(runs.final("lbfgs", {"l2": chosen["crf"]["l2"]}))
        self.by_n = {n: Result(runs.final("sapo", {"n_best": n, **chosen["sapo"]})) for n in N_BEST}
        self.steps = {
            title: Result(runs.final("mira", {"n_best": 5, "average": True, **options}))
            for title, options in MIRA_STEPS.items()
        }
        self.cut = {
            title: {
                length: Result(runs.final(system, cut_parameters(fixed, length)))
                for length in (None, *MINI_LENGTHS)
            }
            for title, system, fixed in (
                ("CRF", "crf", chosen["crf"]),
                ("Perc-Avg", "perceptron", {"average": True}),
            )
        }


def cut_parameters(fixed, length):
    return fixed if length is None else {**fixed, "mini_length": length}


def p_value(a, b):
    """Paired randomisation test over test sentences, two-sided, of two scores.

    The counts of the two systems on a sentence are swapped or not, at random.
    """
    a, b = a.counts(), b.counts()
    total, difference = (a + b).sum(axis=0), a - b
    observed = abs(score_of_counts(a) - score_of_counts(b))
    rng, n = np.random.default_rng(0), n_swaps(N_SWAPS)
    first = np.empty((n, 3))
    for s in range(n):
        first[s] = a.sum(axis=0) - difference[rng.random(len(a)) < 0.5].sum(axis=0)
    gaps = np.abs(score_of_counts(first[:, None]) - score_of_counts((total - first)[:, None]))
    return (np.sum(gaps >= observed - 1e-12) + 1) / (n + 1)


def write_report(all_runs, report):
    """Write all tables and figures."""
    tasks = [TaskResults(runs) for runs in all_runs]
    draw_figures(tasks, report)
    for name, make in TABLES.items():
        report.write(name, make(tasks))


def titles(tasks):
    """Head of a table with a column for each task, named by its corpus."""
    return ["", *(t.task.title.rpartition(", ")[2] for t in tasks)]


def size_table(tasks):
    """Sizes of the parts of each task."""
    rows = []
    for t in tasks:
        train = t.splits["train"]
        n_labels = len({label for labels in train.y for label in labels})
        sizes = [f"{len(t.splits[part].X):,}" for part in ("train", "dev", "test")]
        length = f"{train.X.n_rows / len(train.X):.1f}"
        described = [length, n_labels, f"{train.X.n_features:,}", t.task.measure]
        rows.append([t.task.title, *sizes, *described])
    head = ["", "to learn from", "dev", "test", "mean length", "labels", "features", "score"]
    return table(head, rows)


def setting_table(tasks):
    """Settings chosen on the development sets."""
    rows = []
    for t in tasks:
        row = [t.task.title]
        for system in ("sapo", "crf"):
            row += [f"{t.chosen[system]['learning_rate']:g}", f"{t.chosen[system]['l2']:g}"]
        lengths = [t.chosen_length[system] for system in ("crf", "perceptron")]
        rows.append([*row, f"{t.chosen['mira']['C']:g}", *(n or "no cut" for n in lengths)])
    head = ["", "SAPO: rate", "l2", "CRF: rate", "l2", "MIRA: C", "CRF: n'", "perceptron: n'"]
    return table(head, rows)


def score_table(tasks):
    rows = []
    for title in tasks[0].systems:
        row = [title]
        for t in tasks:
            result, sapo, crf = t.systems[title], t.systems["SAPO"], t.systems["CRF"]
            row.append(result.text(mark(result, sapo, "s") + mark(result, crf, "c")))
        rows.append(row)
    rows.append(["CRF by L-BFGS", *(t.lbfgs.text() for t in tasks)])
    return table(titles(tasks), rows)


def mark(result, other, letter):
    if not result or not other or result is other:
        return ""
    return letter if p_value(result, other) < LEVEL else ""


def duel_table(tasks):
    """SAPO against the CRF."""
    rows = []
    for t in tasks:
        sapo, crf = t.systems["SAPO"], t.systems["CRF"]
        if not sapo or not crf:
            continue
        difference = sapo.last.mean() - crf.last.mean()
        p = p_value(sapo, crf)
        speed = crf.seconds() / sapo.seconds()
        row = [
            f"{t.task.title}, {t.task.measure}",
            sapo.text(),
            crf.text(),
            f"{difference:+.2f}",
            f"{p:.3f}",
        ]
        rows.append([*row, f"{speed:.1f}"])
    head = ["", "SAPO", "CRF", "difference", "p", "CRF's epoch over SAPO's"]
    return table(head, rows)


def step_table(tasks):
    """N-best MIRA by how its step is found."""
    rows = []
    for title in MIRA_STEPS:
        rows.append([title, *(t.steps[title].text() for t in tasks)])
    return table(titles(tasks), rows)


def table_of_systems(tasks, cell):
    """Table with a text for the results of each system and task, blank without runs."""
    rows = []
    for title in tasks[0].systems:
        found = [t.systems[title] for t in tasks]
        rows.append([title, *(cell(result) if result else "" for result in found)])
    return table(titles(tasks), rows)


def divergence_table(tasks):
    """Epoch at which the mean curve is highest, and how far below it the last epoch is."""

    def cell(result):
        curve = result.curve("score")
        best = int(np.argmax(curve))
        return f"{best + 1}: {curve[-1] - curve[best]:+.2f}"

    return table_of_systems(tasks, cell)


def mistake_table(tasks):
    """Share of the training tokens that are labelled wrongly in the last epoch."""
    return table_of_systems(tasks, lambda result: f"{100 * result.curve('mistakes')[-1]:.2f}")


def weight_table(tasks):
    """Size of the weights, and their growth in the second half of the epochs."""

    def cell(result):
        curve = result.curve("magnitude")
        return f"{curve[-1]:.2g} (x {curve[-1] / curve[EPOCHS // 2 - 1]:.2f})"

    return table_of_systems(tasks, cell)


def time_table(tasks):
    """Milliseconds of an epoch, and relative to the naive perceptron."""
    rows = []
    for title in tasks[0].systems:
        row = [title]
        for t in tasks:
            result, least = t.systems[title], t.systems["Perc-Naive"]
            if not result or not least:
                row.append("")
                continue
            ratio = result.seconds() / least.seconds()
            row.append(f"{1000 * result.seconds():,.0f} ({ratio:.1f})")
        rows.append(row)
    return table(titles(tasks), rows)


def n_table(tasks):
    """Scores and times of SAPO by the number of labellings."""
    rows = []
    for n in N_BEST:
        found = [(t.by_n[n], t.by_n[5]) for t in tasks]
        rows.append([f"n = {n}", *(r.text(mark(r, five, "5")) for r, five in found)])
    rows.append(["CRF", *(t.systems["CRF"].text() for t in tasks)])
    for n in N_BEST:
        row = [f"epoch at n = {n}, ms"]
        row += [f"{1000 * t.by_n[n].seconds():,.0f}" if t.by_n[n] else "" for t in tasks]
        rows.append(row)
    return table(titles(tasks), rows)


def cut_table(title):
    """Maker of the table of scores by mean length of the pieces, with relative times."""

    def make(tasks):
        rows = []
        for length in (*MINI_LENGTHS, None):
            row = ["no cut" if length is None else f"n' = {length}"]
            for t in tasks:
                result, whole = t.cut[title][length], t.cut[title][None]
                if not result or not whole:
                    row.append("")
                    continue
                ratio = result.seconds() / whole.seconds()
                row.append(f"{result.text(mark(result, whole, 'w'))} ({ratio:.2f})")
            rows.append(row)
        return table(titles(tasks), rows)

    return make


def chosen_cut_table(tasks):
    """Structure regularisation with the length chosen on the development set."""
    rows = []
    for t in tasks:
        row = [t.task.title]
        for title, system in (("CRF", "crf"), ("Perc-Avg", "perceptron")):
            length = t.chosen_length[system]
            cut, whole = t.cut[title][length], t.cut[title][None]
            if not cut or not whole or length is None:
                row += ["no cut", "", ""]
                continue
            difference = cut.last.mean() - whole.last.mean()
            row += [f"n' = {length}", f"{difference:+.2f}", f"{p_value(cut, whole):.3f}"]
        rows.append(row)
    head = ["", "CRF", "difference", "p", "Perc-Avg", "difference", "p"]
    return table(head, rows)


TABLES = {
    "sizes": size_table,
    "settings": setting_table,
    "scores": score_table,
    "duel": duel_table,
    "steps": step_table,
    "divergence": divergence_table,
    "mistakes": mistake_table,
    "weights": weight_table,
    "times": time_table,
    "n": n_table,
    "cut_crf": cut_table("CRF"),
    "cut_perceptron": cut_table("Perc-Avg"),
    "cut_chosen": chosen_cut_table,
}
