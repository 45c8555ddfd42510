"""Test error on the way to the optimum of a CRF, by epoch (Figure 7 of the SDCA paper).

    python -m benchmarks.sdca_test_error

SDCA with gap and with uniform sampling, SAG with non-uniform sampling, and OEG, on the training
sets of `benchmarks.sdca_paper`; of Brown's test set there are 2,000 sentences. An epoch is as many
updates as there are sequences. The error is the share of the test tokens with a wrong label.
"""

import warnings

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import TWO_FILES, choose, columns, data_folder, load_quick_digits
from benchmarks.common.processes import n_swaps
from benchmarks.common.report import table
from benchmarks.sdca_paper.tasks import QUICK_TASKS, TASKS
from benchmarks.search_based.tasks import read_ocr
from skstruct import SDCACRF, CRFTagger, SequenceBatch, TemplateVectorizer
from skstruct.metrics import paired_permutation_test

GAP = "SDCA, gap"
SYSTEMS = {
    GAP: (SDCACRF, {"sampling": "gap"}),
    "SDCA, uniform": (SDCACRF, {"sampling": "uniform"}),
    "SAG-NUS": (CRFTagger, {"solver": "sag"}),
    "OEG": (CRFTagger, {"solver": "oeg"}),
}
# All combinations of features and labels, as SDCA has them.
EVERY = {"all_possible_states": True, "all_possible_transitions": True}
COLORS = ("#d55e00", "#e69f00", "#0072b2", "#009e73")
EPOCHS, SHOWN, N_RESAMPLES = 15, (1, 2, 3, 5, 10, 15), 1999
TEST_SIZE = 2_000  # sequences, of a corpus that is cut


READERS = {
    "ocr": lambda: read_ocr(data_folder()),
    "conll2000": columns("conll2000", 2, **TWO_FILES),
    "conll2002-ned": columns("conll2002-ned", train="train", test="testb"),
    "brown-pos": columns("brown-pos", **TWO_FILES),
}
QUICK = {"digits": load_quick_digits}


def kept_sequences(part):
    """Sequences that are not empty, with labels as text."""
    kept = [(x, [str(label) for label in labels]) for x, labels in zip(*part, strict=True)]
    return tuple(zip(*((x, labels) for x, labels in kept if labels), strict=True))


class Problem:
    """Batches and labels of a training and a test set, without empty sequences."""

    def __init__(self, task, read):
        train, test = map(kept_sequences, map(read().get, ("train", "test")))
        if task.size:
            train = choose(train, task.size, np.random.default_rng(0))
            test = choose(test, TEST_SIZE, np.random.default_rng(0))
        (X, self.y), (X_test, self.y_test) = train, test
        if task.template:
            vectorizer = TemplateVectorizer(task.template, min_freq=task.min_freq)
            self.X, self.X_test = vectorizer.fit_transform(X), vectorizer.transform(X_test)
        else:
            self.X, self.X_test = (SequenceBatch.from_sequences(part) for part in (X, X_test))

    def run(self, system, seed, epochs):
        """Test error after each epoch, in per cent, and the labels after the last."""
        kind, parameters = SYSTEMS[system]
        more = EVERY if kind is CRFTagger else {}
        tagger = kind(l2=1.0, tol=0.0, max_iter=epochs, random_state=seed, **parameters, **more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            tagger.fit(self.X, self.y, X_val=self.X_test, y_val=self.y_test)
        right = tagger.history_["validation_score"][-epochs:]
        return 100 * (1 - right), tagger.predict(self.X_test)

    def p_value(self, a, b):
        """p of the difference of two systems; the seeds of a sentence are swapped together."""
        joined = [
            [np.concatenate(group) for group in zip(*versions, strict=True)]
            for versions in ([self.y_test] * len(a), a, b)
        ]
        options = {
            "metric": "token_accuracy",
            "n_resamples": n_swaps(N_RESAMPLES),
            "random_state": 0,
        }
        return paired_permutation_test(*joined, **options).pvalue


def measure(name, task, read, seeds, epochs):
    """Errors by system, seed and epoch, and p of the difference from gap sampling at the end."""
    problem, errors, labels = Problem(task, read), {}, {}
    for system in SYSTEMS:
        runs = [problem.run(system, seed, epochs) for seed in range(seeds)]
        errors[system], labels[system] = np.array([e for e, _ in runs]), [y for _, y in runs]
        print(name, system, errors[system].mean(axis=0).round(3), flush=True)
    others = [system for system in SYSTEMS if system != GAP]
    return errors, {other: problem.p_value(labels[GAP], labels[other]) for other in others}


def rows(found, epochs):
    """Rows of the table: mean error by epoch, then spread and p at the end."""
    for title, (errors, p_values) in found.items():
        for system, values in errors.items():
            mean = values.mean(axis=0)
            spread = f" ± {values[:, -1].std(ddof=1):.2f}" if len(values) > 1 else ""
            cells = [f"{mean[e - 1]:.2f}" for e in epochs]
            p = f"{p_values[system]:.3f}" if system in p_values else ""
            yield [title, system, *cells[:-1], cells[-1] + spread, p]


def draw(found):
    """Figure with a panel for each corpus."""
    figure = Figure(figsize=(3.4 * len(found) + 1.5, 2.9), layout="constrained")
    axes = figure.subplots(1, len(found), squeeze=False)[0]
    for axis, (title, (errors, _)) in zip(axes, found.items(), strict=True):
        for color, (system, values) in zip(COLORS, errors.items(), strict=True):
            axis.plot(
                1 + np.arange(values.shape[1]), values.mean(axis=0), color=color, label=system
            )
        axis.set(title=title, xlabel="epoch")
        axis.set_ylabel("test error, %")
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def main():
    """Run all systems with all seeds."""
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=READERS, help="by default all")
    arguments = parse(parser)
    tasks, readers = (QUICK_TASKS, QUICK) if arguments.quick else (TASKS, READERS)
    seeds, epochs = (2, 3) if arguments.quick else (arguments.seeds, EPOCHS)
    found = {}
    for name in arguments.only or readers:
        task = tasks[name]
        found[task.title] = measure(name, task, readers[name], seeds, epochs)
    shown = [e for e in SHOWN if e <= epochs]
    with open_report("sdca_test_error", arguments) as report:
        head = ["", "", *(f"epoch {e}" for e in shown), f"p, {GAP}"]
        note = f"Means of {seeds} seeds, ± the standard deviation over these."
        report.write("errors", table(head, list(rows(found, shown)), left=(0, 1)), note)
        report.save_figure("errors", draw(found))


if __name__ == "__main__":
    main()
