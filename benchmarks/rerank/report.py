"""Tables of the finished runs."""

from itertools import chain

from benchmarks.common.report import earlier_rows, table
from benchmarks.common.runs import write_compressed
from benchmarks.rerank.compare import LOSS_NAMES, PREDICTIONS, SHARES
from benchmarks.rerank.figures import draw_figures
from benchmarks.rerank.plan import folds_of, kept_name

TITLES = {
    "atis": "Speech: ATIS, word error rate",
    "parse": "Parsing: Wall Street Journal, bracket F1",
    "translation": "Translation: French to English, BLEU",
    "translation-exchanged": "Translation, sets exchanged, BLEU",
    "librispeech": "Speech: LibriSpeech, word error rate",
    "conll2000": "Chunking: CoNLL-2000, chunk F1",
    "conll2002-esp": "Spanish names: CoNLL-2002, chunk F1",
    "jnlpba": "Bio-entities: JNLPBA, chunk F1",
    "addresses": "Chunking: addresses, chunk F1",
}


def write_report(tasks, scale, report):
    """Write the summary, the table of large training sets, and tables and runs of each task."""
    report.write("summary", summary(tasks, earlier_rows(report.folder / "summary.md")))
    if scale:
        report.write("scale", scale_table(scale))
    for task in tasks:
        parts = [sizes(task), main_table(task), budget_table(task)]
        parts += [sparsity_table(task, loss) for loss in task.losses]
        parts += [loss_table(task), prediction_table(task), *draw_figures(task, report)]
        report.write(task.name, *(part for part in parts if part))
        for fold, found in zip(folds_of(task.name), task.folds, strict=True):
            write_compressed(report.folder / kept_name(fold), chain(*found.values()))


def sizes(task):
    """Line on the sizes of the splits."""
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


def summary(tasks, rows):
    """The main comparison: `rows` of an earlier report, by title, and new ones for the tasks."""
    for task in tasks:
        row = [TITLES[task.name], shown(task, task.first), with_weights(task.perceptron)]
        for share in (1, 1 / 10):
            choice = task.within("VRDA", share)
            p = task.p_value(choice, task.perceptron)
            row += [with_weights(choice), f"{p:.3f}"]
        rows[row[0]] = [*row, shown(task, task.fixed("oracle"))]
    vrda = ["VRDA", "p", "VRDA, a tenth of the weights", "p"]
    head = ["", "baseline", "perceptron", *vrda, "oracle"]
    return table(head, [rows[title] for title in TITLES.values() if title in rows])


def shown(task, stats):
    return f"{task.metric(stats[0].sum(axis=0))[task.key]:.2f}"


def with_weights(choice):
    return f"{choice.show()} ({choice.nnz:,.0f})"


def scale_table(lines):
    """Time and memory of training on many candidates."""
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
    return table(head, rows, left=(0, 1))


def setting(choice):
    """Parameters of a choice, in short."""
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
    for system in ("SGD", "TG"):
        for loss, title in task.losses.items():
            chosen.append((f"{system} ({title})", task.best(system, loss=loss)))
    for loss, title in task.losses.items():
        for prediction, choice in task.by_prediction(loss=loss).items():
            chosen.append((f"VRDA, {prediction} ({title})", choice))
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
    return "### All systems (Table 1)\n\n" + table(head, rows, left=(0, len(head) - 1))


def fixed_row(title, task, stats):
    score, *more = (f"{value:.2f}" for value in task.metric(stats[0].sum(axis=0)).values())
    return [title, "", score, "", *more, "", ""]


def bold(marks):
    return f" **{marks.strip()}**" if marks else ""


def sparsity_table(task, loss):
    """The paper's Tables 2 and 4: scores and numbers of weights by threshold."""
    free = task.by_prediction(loss=loss, l1=0.0)
    thresholds = sorted({choice.parameters["l1"] for choice in task.find("VRDA", loss=loss)})
    if len(thresholds) < 3:
        return ""
    rows = []
    for l1 in thresholds:
        row, found = [f"{l1:g}"], task.by_prediction(loss=loss, l1=l1)
        for prediction, without in free.items():
            choice = found.get(prediction)
            if choice is None:
                row += ["", ""]
            else:
                mark = bold(task.mark(choice, without, "0")) if l1 else ""
                row += [f"{choice.show()}{mark}", f"{choice.nnz:,.0f}"]
        rows.append(row)
    head = ["l1"]
    for prediction in free:
        head += [f"{prediction}: {task.key}", "NNZ"]
    title = f"### Regularisation of VRDA with the {LOSS_NAMES[loss]} loss (Tables 2 and 4)"
    return f"{title}\n\n{table(head, rows)}"


def loss_table(task):
    """The paper's Table 3: losses, SGD against VRDA."""
    rows = []
    for loss, title in task.losses.items():
        sgd, vrda = task.best("SGD", loss=loss), task.best("VRDA", loss=loss)
        marks = task.mark(vrda, task.first, "a") + task.mark(vrda, sgd, "s")
        sgd_marks = task.mark(sgd, task.first, "a")
        rows.append([title, f"{sgd.show()}{bold(sgd_marks)}", f"{vrda.show()}{bold(marks)}"])
    return "### Losses (Table 3)\n\n" + table(["loss", "SGD", "VRDA"], rows)


def prediction_table(task):
    """The three ways to predict: each with settings of its own, and with everything else equal."""
    rows = []
    for loss, title in task.losses.items():
        choices = task.by_prediction(loss=loss)
        if "vote" in choices:
            rows.append(prediction_row(task, f"{title}, each its own", choices))
    losses = list(LOSS_NAMES)

    def in_order(choice):
        parameters = choice.parameters
        return losses.index(parameters["loss"]), parameters["l1"], parameters["max_iter"]

    for vote in sorted(task.find("VRDA", prediction="vote"), key=in_order):
        found = (task.find("VRDA", **{**vote.parameters, "prediction": p}) for p in PREDICTIONS)
        choices = {p: choice[0] for p, choice in zip(PREDICTIONS, found, strict=True) if choice}
        if len(choices) == len(PREDICTIONS):
            title = f"{LOSS_NAMES[vote.parameters['loss']]}, epochs {vote.parameters['max_iter']}"
            rows.append(prediction_row(task, f"{title}, l1 {vote.parameters['l1']:g}", choices))
    if not rows:
        return ""
    head = ["loss and settings"]
    for prediction in PREDICTIONS:
        head += [f"{prediction}: dev", "test"] + ["p"] * (prediction != "vote")
    title = "### Predicting by the last weights, their average, or a vote"
    return f"{title}\n\n{table([*head, 's, vote', 'orders'], rows)}"


def prediction_row(task, title, choices):
    """Row of a table of predictors; p is of the difference from the vote."""
    *others, vote = task.with_same_orders([choices[p] for p in PREDICTIONS])
    row = [title]
    for choice in others:
        row += [f"{choice.dev:.2f}", choice.show(), f"{task.p_value(choice, vote):.3f}"]
    row += [f"{vote.dev:.2f}", vote.show(), vote.seconds("test")]
    return [*row, len(vote.scores)]


def budget_table(task):
    """The best models with at most a share of the perceptron's weights."""
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
        f"### By the number of weights\n\nThe perceptron has {perceptron.nnz:,.0f} weights and a "
        f"score of {perceptron.show()}.\n\n"
    )
    columns = ["NNZ", "p", "setting"]
    return text + table(["weights", "VRDA", *columns, "TG", *columns], rows, left=(0, 4, 8))
