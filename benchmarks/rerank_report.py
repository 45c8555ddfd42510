"""Tables and figures from the finished runs of `rerank.py`."""

import numpy as np
from rerank_compare import LOSS_NAMES, SHARES

TITLES = {
    "atis": "Speech: ATIS, word error rate",
    "librispeech": "Speech: LibriSpeech, word error rate",
    "parse": "Parsing: Wall Street Journal, bracket F1",
    "translation": "Translation: French to English, BLEU",
    "conll2000": "Chunking: CoNLL-2000, chunk F1",
    "conll2002-esp": "Spanish names: CoNLL-2002, chunk F1",
    "jnlpba": "Bio-entities: JNLPBA, chunk F1",
}
NOTES = """\
Settings are those that do best on the development set, and scores are on the test set, as the mean
over several orders of the training groups; after ± stands the standard deviation over these. Where
a score has none, it is of a single order. "s" are seconds of the processor for the test set.
"NNZ" counts the non-zero weights of the model that predicts. Differences are tested by a paired
randomisation test over test groups (1,000 swaps, two-sided), for which the counts of a group are
summed over the orders. Marks are for p < 0.05: **a** from the baseline, which takes the first
candidate, **0** from the same without regularisation, **s** from SGD with the same loss, **v** of
the average and the last predictor from the vote. "VRDA, sparse" has the fewest weights of those
that do as well as the perceptron on the development set.

On the smaller tasks every setting was run with all orders. On the others it was run with one, and
those that were best there, of each system and loss and for each number of weights, with the others:
among these, the mean decides.

The grid of thresholds was refined once, after a first round in which there was no setting with a
little less than a tenth of the perceptron's weights on some tasks. The several orders were added
when that round showed how much one order leaves to chance. The scores on the test sets were known
by then, but no setting was chosen by them.
"""


def write_report(tasks, scale, docs):
    """Write ``reranking_results.md`` and its figures into the folder `docs`."""
    images = docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    parts = ["# Reranking: measurements", NOTES, summary(tasks), scale_table(scale)]
    for task in tasks:
        parts += [f"## {TITLES[task.name]}", sizes(task), main_table(task), budget_table(task)]
        for loss in LOSS_NAMES:
            parts.append(sparsity_table(task, loss))
        parts += [loss_table(task), prediction_table(task)]
        parts += figures(task, images)
        print(task.name, "done", flush=True)
    text = "\n\n".join(part for part in parts if part)
    (docs / "reranking_results.md").write_text(text + "\n", encoding="utf-8")


def sizes(task):
    lines = []
    for name in ("train", "dev", "test"):
        batches = [splits[name].batch for splits in task.splits]
        n_groups, n_rows = sum(map(len, batches)), sum(batch.n_rows for batch in batches)
        lines.append(f"{name} {n_groups:,} groups, {n_rows:,} candidates")
    n_features = max(splits["test"].batch.n_features for splits in task.splits)
    text = f"{'; '.join(lines)}; {n_features:,} features"
    fewest, most = task.n_orders
    text += f"; {fewest} to {most} orders" if fewest < most else f"; {most} orders"
    if len(task.splits) > 1:
        text += f"; sums over {len(task.splits)} folds, in each of which settings are chosen anew"
    return f"{text}."


def summary(tasks):
    """The comparison that matters most, for all tasks."""
    rows = []
    for task in tasks:
        row = [TITLES[task.name], shown(task, task.first), with_weights(task.perceptron)]
        for share in (1, 1 / 10):
            choice = task.within("VRDA", share)
            p = task.p_value(choice, task.perceptron)
            row += [with_weights(choice), f"{p:.3f}"]
        rows.append([*row, shown(task, task.fixed("oracle"))])
    head = [
        "",
        "baseline",
        "perceptron",
        "VRDA",
        "p",
        "VRDA, a tenth of the weights",
        "p",
        "oracle",
    ]
    text = (
        "## Summary\n\nThe perceptron, and VRDA with at most as many weights and with at most a "
        "tenth of them; loss, threshold and the rest chosen on the development set. In brackets "
        "the number of weights; p of the difference from the perceptron.\n\n"
    )
    return text + table(head, rows)


def shown(task, stats):
    return f"{task.metric(stats[0].sum(axis=0))[task.key]:.2f}"


def with_weights(choice):
    return f"{choice.show()} ({choice.nnz:,.0f})"


def scale_table(lines):
    """Time and memory of training on a million candidates."""
    if not lines:
        return ""
    rows = [
        [
            f"{line['non_zeros']:,}",
            line["prediction"],
            f"{line['data_mib']:,.0f}",
            f"{line['peak_mib']:,.0f}",
            f"{line['seconds']:.2f}",
            f"{line['mistakes']:,}",
        ]
        for line in lines
    ]
    head = ["non-zeros", "prediction", "data, MiB", "peak, MiB", "s, fastest epoch", "mistakes"]
    text = (
        "## Size\n\nRandom groups of 50 candidates: 1,000,000 candidates with 1,000,000 features, "
        "five epochs with the log loss and a threshold of 1e-4, one thread. The peak is of the "
        "memory of the process, above what it had with everything imported and compiled: the "
        "data, which are read from a file, and all that learning takes. A dense matrix would take "
        "7.3 TiB.\n\n"
    )
    return text + table(head, rows)


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def setting(choice):
    """What was chosen for a run, in short."""
    if not choice.uniform:
        return "by fold"
    short = {"learning_rate": "rate", "max_iter": "epochs", "prediction": ""}
    words = []
    for key, value in choice.parameters.items():
        if key == "average":
            value = "average" if value else "last"
            key = "prediction"
        if key == "loss" or (key == "l1" and value == 0):
            continue
        words.append(f"{short.get(key, key)} {value}".strip())
    return ", ".join(words)


def main_table(task):
    """The paper's Table 1."""
    names = list(task.perceptron.all_scores)
    rows = [fixed_row("Baseline", task, task.first)]
    chosen = [("Perceptron", task.perceptron)]
    for system in ("SGD", "TG", "VRDA"):
        for loss, title in LOSS_NAMES.items():
            chosen.append((f"{system} ({title})", task.best(system, loss=loss)))
    chosen.append(("VRDA, sparse", task.sparse()))
    for title, choice in chosen:
        if choice is None:
            continue
        p = "" if choice is task.perceptron else f"{task.p_value(choice, task.perceptron):.3f}"
        marks = task.mark(choice, task.first, "a")
        more = [f"{choice.all_scores[name]:.2f}" for name in names[1:]]
        row = [title, f"{choice.dev:.2f}", choice.show() + bold(marks), p, *more]
        rows.append([*row, f"{choice.nnz:,.0f}", setting(choice)])
    rows.append(fixed_row("Oracle", task, task.fixed("oracle")))
    head = ["", f"{task.key}, dev", task.key, "p", *names[1:], "NNZ", "setting"]
    text = "### All systems (Table 1)\n\np is of the difference from the perceptron.\n\n"
    return text + table(head, rows)


def fixed_row(title, task, stats):
    score, *more = (f"{value:.2f}" for value in task.metric(stats[0].sum(axis=0)).values())
    return [title, "", score, "", *more, "", ""]


def bold(marks):
    return f" **{marks.strip()}**" if marks else ""


def sparsity_table(task, loss):
    """The paper's Tables 2 and 4: what regularisation costs and saves."""
    free = {p: task.best("VRDA", loss=loss, l1=0.0, prediction=p) for p in ("last", "average")}
    rows = []
    for l1 in sorted({choice.parameters["l1"] for choice in task.find("VRDA", loss=loss)}):
        row = [f"{l1:g}"]
        for prediction in ("last", "average"):
            choice = task.best("VRDA", loss=loss, l1=l1, prediction=prediction)
            if choice is None:
                row += ["", ""]
            else:
                mark = bold(task.mark(choice, free[prediction], "0"))
                if l1 == 0:
                    mark = ""
                row += [f"{choice.show()}{mark}", f"{choice.nnz:,.0f}"]
        rows.append(row)
    head = ["l1", f"last: {task.key}", "NNZ", f"average: {task.key}", "NNZ"]
    title = f"### Regularisation of VRDA with the {LOSS_NAMES[loss]} loss (Tables 2 and 4)"
    return f"{title}\n\n{table(head, rows)}"


def loss_table(task):
    """The paper's Table 3: losses, SGD against VRDA."""
    rows = []
    for loss, title in LOSS_NAMES.items():
        sgd, vrda = task.best("SGD", loss=loss), task.best("VRDA", loss=loss)
        marks = task.mark(vrda, task.first, "a") + task.mark(vrda, sgd, "s")
        sgd_marks = task.mark(sgd, task.first, "a")
        rows.append([title, f"{sgd.show()}{bold(sgd_marks)}", f"{vrda.show()}{bold(marks)}"])
    return "### Losses (Table 3)\n\n" + table(["loss", "SGD", "VRDA"], rows)


def prediction_table(task):
    """The three ways to predict, with everything else the same."""
    rows = []
    for vote in task.find("VRDA", prediction="vote"):
        choices = []
        for prediction in ("last", "average"):
            choices += task.find("VRDA", **{**vote.parameters, "prediction": prediction})
        if len(choices) < 2:
            continue
        row = [LOSS_NAMES[vote.parameters["loss"]], f"{vote.parameters['l1']:g}"]
        for choice in (*choices, vote):
            mark = bold(task.mark(choice, vote, "v"))
            row += [f"{choice.dev:.2f}", choice.show() + mark]
        rows.append([*row, choices[1].seconds("test"), vote.seconds("test")])
    if not rows:
        return ""
    head = ["loss", "l1", "last: dev", "test", "average: dev", "test", "vote: dev", "test"]
    title = "### Predicting by the last weights, their average, or a vote"
    return f"{title}\n\n{table([*head, 's, average', 's, vote'], rows)}"


def budget_table(task):
    """How well the best model does that has a given share of the perceptron's weights at most."""
    rows = []
    for title, share in SHARES.items():
        row = [title]
        for system in ("VRDA", "TG"):
            choice = task.within(system, share)
            if choice is None:
                row += ["", "", "", ""]
                continue
            loss = LOSS_NAMES[choice.parameters["loss"]] + ", " if choice.uniform else ""
            p = f"{task.p_value(choice, task.perceptron):.3f}"
            row += [choice.show(), f"{choice.nnz:,.0f}", p, loss + setting(choice)]
        rows.append(row)
    perceptron = task.perceptron
    text = (
        "### By the number of weights\n\nThe best on the development set of those with at most so "
        f"many of the perceptron's {perceptron.nnz:,.0f} weights; p of the difference from the "
        f"perceptron's {perceptron.show()}.\n\n"
    )
    columns = ["NNZ", "p", "setting"]
    return text + table(["weights", "VRDA", *columns, "TG", *columns], rows)


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
        axes.plot([r.nnz for r in runs], [r.score for r in runs], marker, label=system, ms=5)
    axes.set(xscale="log", xlabel="non-zero weights", ylabel=task.key, title=f"{loss} loss")
    axes.legend()
    save_figure(figure, path)


def draw_training(task, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3))
    left, right = figure.subplots(1, 2)
    # Averaged or not, its mistakes are those of the weights of the time.
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
    save_figure(figure, path)
