"""Tables and figures from the finished runs of `rerank.py`."""

import numpy as np

TITLES = {
    "atis": "Speech: ATIS, word error rate",
    "librispeech": "Speech: LibriSpeech other, word error rate",
    "parse": "Parsing: Wall Street Journal, bracket F1",
    "translation": "Translation: French to English, BLEU",
    "conll2000": "Chunking: CoNLL-2000, chunk F1",
    "conll2002-esp": "Spanish names: CoNLL-2002, chunk F1",
    "jnlpba": "Bio-entities: JNLPBA, chunk F1",
}
LOSS_NAMES = {"hinge": "hinge", "logistic": "logistic", "log": "log", "bayes_risk": "Bayes risk"}
N_SWAPS = 1000
NOTES = """\
Settings are those that do best on the development set; scores are on the test set. "NNZ" counts
the non-zero weights of the model that predicts. Marks are for differences that are significant
at p < 0.05 in a paired randomisation test over test groups (1,000 swaps):
**a** from the baseline, which takes the first candidate, **p** from the perceptron,
**0** from the same without regularisation, **s** from SGD with the same loss. "VRDA, sparse" has
the fewest weights of those that do as well as the perceptron on the development set.
"""


class Task:
    """Runs of a task, and how to compare them."""

    def __init__(self, name, runs, splits, definition):
        _, self.metric, self.key, self.higher = definition
        self.name, self.runs, self.test = name, runs, splits["test"]
        self.splits = splits

    def find(self, system, **wanted):
        """Runs of a system with the given parameters."""
        return [
            run
            for run in self.runs
            if run["system"] == system
            and all(run["parameters"].get(k) == v for k, v in wanted.items())
        ]

    def best(self, runs):
        """The run that does best on the development set, of several the smallest."""
        sign = -1 if self.higher else 1
        return min(runs, key=lambda r: (sign * r["dev"][self.key], r["nnz"]), default=None)

    def sparsest(self, runs, other):
        """The run with the fewest weights of those that do as well as another in development."""
        sign = -1 if self.higher else 1
        good = [r for r in runs if sign * r["dev"][self.key] <= sign * other["dev"][self.key]]
        return min(good, key=lambda r: r["nnz"], default=None)

    def score(self, run):
        return run["test"][self.key]

    def of_choice(self, chosen):
        return self.metric(self.test.chosen_stats(chosen).sum(axis=0))

    def first(self):
        return np.zeros(len(self.test.batch), int)

    def p_value(self, chosen_a, chosen_b):
        """Paired randomisation test of the difference of two corpus scores, two-sided."""
        a = self.test.chosen_stats(np.asarray(chosen_a)).astype(float)
        b = self.test.chosen_stats(np.asarray(chosen_b)).astype(float)
        total, difference = a + b, a - b

        def gap(first):
            return self.metric(first)[self.key] - self.metric(total.sum(axis=0) - first)[self.key]

        observed = abs(gap(a.sum(axis=0)))
        rng = np.random.default_rng(0)
        swaps = rng.random((N_SWAPS, len(a))) < 0.5
        firsts = a.sum(axis=0) - swaps @ difference
        hits = sum(abs(gap(first)) >= observed - 1e-12 for first in firsts)
        return (hits + 1) / (N_SWAPS + 1)

    def mark(self, run, other, letter):
        if run is None or other is None or run is other:
            return ""
        chosen = other if isinstance(other, np.ndarray) else other["test_chosen"]
        return f" {letter}" if self.p_value(run["test_chosen"], chosen) < 0.05 else ""


def write_report(finished, splits, definitions, docs):
    """Write ``reranking_results.md`` and its figures into the folder `docs`."""
    images = docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    parts = ["# Reranking: measurements", NOTES]
    for name, runs in finished.items():
        task = Task(name, runs, splits[name], definitions[name])
        parts += [f"## {TITLES[name]}", sizes(task), main_table(task), budget_table(task)]
        for loss in LOSS_NAMES:
            parts.append(sparsity_table(task, loss))
        parts += [loss_table(task), prediction_table(task)]
        parts += figures(task, images)
        print(name, "done", flush=True)
    text = "\n\n".join(part for part in parts if part)
    (docs / "reranking_results.md").write_text(text + "\n", encoding="utf-8")


def sizes(task):
    lines = []
    for name, split in task.splits.items():
        lines.append(f"{name} {len(split.batch):,} groups, {split.batch.n_rows:,} candidates")
    return f"{'; '.join(lines)}; {task.test.batch.n_features:,} features."


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def cells(task, scores):
    return [f"{value:.2f}" for value in scores.values()]


def setting(run):
    """What was chosen for a run, in short."""
    short = {"learning_rate": "rate", "max_iter": "epochs", "prediction": ""}
    words = []
    for key, value in run["parameters"].items():
        if key == "average":
            value = "average" if value else "last"
            key = "prediction"
        if key == "loss" or (key == "l1" and value == 0):
            continue
        words.append(f"{short.get(key, key)} {value}".strip())
    return ", ".join(words)


def main_table(task):
    """The paper's Table 1."""
    perceptron = task.best(task.find("Perceptron"))
    first, oracle = task.of_choice(task.first()), task.of_choice(task.test.oracle())
    rows = [["Baseline", "", *cells(task, first), "", ""]]
    chosen = [("Perceptron", perceptron)]
    for system in ("SGD", "TG", "VRDA"):
        for loss, title in LOSS_NAMES.items():
            chosen.append((f"{system} ({title})", task.best(task.find(system, loss=loss))))
    chosen.append(("VRDA, sparse", task.sparsest(task.find("VRDA"), perceptron)))
    for title, run in chosen:
        if run is not None:
            marks = task.mark(run, task.first(), "a") + task.mark(run, perceptron, "p")
            score, *more = cells(task, run["test"])
            dev = f"{run['dev'][task.key]:.2f}"
            row = [title, dev, score + bold(marks), *more, f"{run['nnz']:,}", setting(run)]
            rows.append(row)
    rows.append(["Oracle", "", *cells(task, oracle), "", ""])
    head = ["", f"{task.key}, dev", *first, "NNZ", "setting"]
    return "### All systems (Table 1)\n\n" + table(head, rows)


def bold(marks):
    return f" **{marks.strip()}**" if marks else ""


def sparsity_table(task, loss):
    """The paper's Tables 2 and 4: what regularisation costs and saves."""
    free = task.best(task.find("VRDA", loss=loss, l1=0.0, prediction="last"))
    if free is None:
        return ""
    rows = []
    for l1 in sorted({run["parameters"]["l1"] for run in task.find("VRDA", loss=loss)}):
        row = [f"{l1:g}"]
        for prediction in ("last", "average"):
            free = task.best(task.find("VRDA", loss=loss, l1=0.0, prediction=prediction))
            run = task.best(task.find("VRDA", loss=loss, l1=l1, prediction=prediction))
            mark = bold(task.mark(run, free, "0"))
            row += [f"{task.score(run):.2f}{mark}", f"{run['nnz']:,}"]
        rows.append(row)
    head = ["l1", f"last: {task.key}", "NNZ", f"average: {task.key}", "NNZ"]
    title = f"### Regularisation of VRDA with the {LOSS_NAMES[loss]} loss (Tables 2 and 4)"
    return f"{title}\n\n{table(head, rows)}"


def loss_table(task):
    """The paper's Table 3: losses, SGD against VRDA."""
    rows = []
    for loss, title in LOSS_NAMES.items():
        sgd, vrda = (task.best(task.find(s, loss=loss)) for s in ("SGD", "VRDA"))
        if sgd is None or vrda is None:
            return ""
        marks = task.mark(vrda, task.first(), "a") + task.mark(vrda, sgd, "s")
        sgd_marks = task.mark(sgd, task.first(), "a")
        rows.append(
            [
                title,
                f"{task.score(sgd):.2f}{bold(sgd_marks)}",
                f"{task.score(vrda):.2f}{bold(marks)}",
            ]
        )
    return "### Losses (Table 3)\n\n" + table(["loss", "SGD", "VRDA"], rows)


def prediction_table(task):
    """The three ways to predict, with everything else the same."""
    rows = []
    for vote in task.find("VRDA", prediction="vote"):
        others = []
        for prediction in ("last", "average"):
            same = {**vote["parameters"], "prediction": prediction}
            others += task.find("VRDA", **same)
        if len(others) == 2:
            loss, l1 = vote["parameters"]["loss"], vote["parameters"]["l1"]
            scores = []
            for run in (*others, vote):
                scores += [f"{run['dev'][task.key]:.2f}", f"{task.score(run):.2f}"]
            rows.append([LOSS_NAMES[loss], f"{l1:g}", *scores])
    if not rows:
        return ""
    head = ["loss", "l1", "last: dev", "test", "average: dev", "test", "vote: dev", "test"]
    return "### Predicting by the last weights, their average, or a vote\n\n" + table(head, rows)


def budget_table(task):
    """How well the best model does that has a given share of the perceptron's weights at most."""
    perceptron = task.best(task.find("Perceptron"))
    rows = []
    for title, share in (("all", 1), ("a half", 1 / 2), ("a tenth", 1 / 10), ("a 30th", 1 / 30)):
        row = [title]
        for system in ("VRDA", "TG"):
            runs = [r for r in task.find(system) if 0 < r["nnz"] <= share * perceptron["nnz"]]
            run = task.best(runs)
            if run is None:
                row += ["", "", ""]
                continue
            p = task.p_value(run["test_chosen"], perceptron["test_chosen"])
            loss = LOSS_NAMES[run["parameters"]["loss"]]
            row += [f"{task.score(run):.2f} ({loss})", f"{run['nnz']:,}", f"{p:.3f}"]
        rows.append(row)
    text = (
        "### By the number of weights\n\nThe best on the development set of those with at most so "
        f"many of the perceptron's {perceptron['nnz']:,} weights; p of the difference from the "
        f"perceptron's {task.score(perceptron):.2f}.\n\n"
    )
    return text + table(["weights", "VRDA", "NNZ", "p", "TG", "NNZ", "p"], rows)


def figures(task, images):
    """Score by number of weights (Figures 3, 4, 7 and 8); weights and mistakes (5 and 6)."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "skstruct"
    parts = []
    losses = ("hinge", "logistic") if task.key != "bleu" else ("bayes_risk", "log")
    for loss in losses:
        path = images / f"rerank-{task.name}-{loss}.svg"
        draw_sparsity(task, loss, path)
        parts.append(f"![{task.key} by number of weights, {loss} loss](images/{path.name})")
    path = images / f"rerank-{task.name}-training.svg"
    draw_training(task, path)
    parts.append(f"![Weights and mistakes during training](images/{path.name})")
    return parts


def save_figure(figure, path):
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


def draw_sparsity(task, loss, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3))
    axes = figure.subplots()
    for system, marker, options in (("VRDA", "o", {"prediction": "last"}), ("TG", "x", {})):
        runs = task.find(system, loss=loss, **options)
        axes.plot(
            [r["nnz"] for r in runs], [task.score(r) for r in runs], marker, label=system, ms=5
        )
    axes.set(xscale="log", xlabel="non-zero weights", ylabel=task.key, title=f"{loss} loss")
    axes.legend()
    save_figure(figure, path)


def draw_training(task, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3))
    left, right = figure.subplots(1, 2)
    runs = [("perceptron", r) for r in task.find("Perceptron", average=False, max_iter=10)]
    for l1 in (0.0, 1e-4, 1e-3, 5e-3):
        found = task.find("VRDA", loss="hinge", l1=l1, max_iter=10, prediction="last")
        runs += [(f"VRDA, l1 = {l1:g}", run) for run in found]
    for label, run in runs:
        epochs = np.arange(1, len(run["mistakes_history"]) + 1)
        left.plot(epochs, run["nnz_history"], ".-", label=label)
        right.plot(epochs, np.cumsum(run["mistakes_history"]), ".-", label=label)
    left.set(xlabel="epoch", ylabel="non-zero weights", yscale="log")
    right.set(xlabel="epoch", ylabel="mistakes so far")
    right.legend(fontsize="small")
    figure.tight_layout()
    save_figure(figure, path)
