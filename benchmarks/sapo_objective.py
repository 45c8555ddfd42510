"""Objective of a CRF along the epochs of SAPO, by the number n of labellings.

    python -m benchmarks.sapo_objective
    python -m benchmarks.sapo_objective hapt jnlpba --seeds 3 --epochs 10

SAPO follows the gradient of the likelihood among the n best labellings, which is that of a CRF if
these are all. The objective is the CRF's with the same penalty, over the training set. Rate and
penalty of all learners are those that `benchmarks.search_based` chose for the CRF on development
data.
"""

from collections import defaultdict

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import CORPORA, data_folder
from benchmarks.common.features import crfsuite_attributes
from benchmarks.common.problems import training_problem
from benchmarks.common.report import mean_and_deviation, table
from benchmarks.search_based.tasks import QUICK_TASKS, TASKS, Split, make_splits, score
from benchmarks.structure.corpora import CORPORA as CHOSEN
from skstruct import CRFTagger, SAPOTagger, SequenceVectorizer
from skstruct.chain.dense import Chain
from skstruct.learning.objective import CRFObjective
from skstruct.utils.parallel import range_runner

# All combinations of features and labels, as SAPO has them.
EVERY = {"all_possible_states": True, "all_possible_transitions": True}
SYSTEMS = {
    **{f"SAPO, n = {n}": (SAPOTagger, {"n_best": n}) for n in (1, 2, 5, 10, 50)},
    "CRF, SGD": (CRFTagger, {"solver": "sgd"}),
}
NAMES, CHUNKING = ("conll2000", "ud-english-ewt", "jnlpba", "hapt"), ("conll2000", "addresses")
EPOCHS = 20
SHOWN = (1, 2, 5, 10, 20)


def read_chunks(name):
    """Training and test set of a corpus of chunks, with the attributes of CRFsuite's example."""
    vectorizer, data = SequenceVectorizer(), CORPORA[name]()
    (X, y), (X_test, y_test) = (
        ([crfsuite_attributes(tokens) for tokens in data[part][0]], data[part][1])
        for part in ("train", "test")
    )
    return Split(vectorizer.fit_transform(X), y), Split(vectorizer.transform(X_test), y_test)


class Problem:
    """Training and test set of a task, and the objective."""

    def __init__(self, name):
        self.task = {**TASKS, **QUICK_TASKS}[name]
        if name in CHUNKING:
            self.train, self.test = read_chunks(name)
        else:
            splits = make_splits(self.task, data_folder(), full=False)
            self.train, self.test = splits["train"], splits["test"]
        chosen = CHOSEN["conll2000" if name in CHUNKING else name]
        self.settings = {**chosen.crf, "decay": 0.9}
        self.classes = np.unique(np.concatenate(self.train.y))
        problem = training_problem(self.train.X, self.train.y)
        self.function = CRFObjective(*problem, l2=self.settings["l2"], **EVERY)

    def objective(self, tagger):
        """Objective of the CRF at the weights of a tagger."""
        parts = tagger.transition_, tagger.intercept_, tagger.start_, tagger.end_
        chain = Chain(np.ascontiguousarray(tagger.coef_.T), *parts)
        function, theta = self.function, self.function.pack(chain)
        with range_runner(self.train.X.offsets, 1) as run:
            return function.value_and_gradient(theta, np.empty(function.size), run)

    def curve(self, kind, parameters, seed, epochs):
        """Objective and score of the test set after each epoch."""
        found = []
        tagger = kind(**self.settings, **parameters, random_state=np.random.RandomState(seed))
        for _ in range(epochs):
            tagger.partial_fit(self.train.X, self.train.y, classes=self.classes)
            predicted = tagger.predict(self.test.X)
            found.append([self.objective(tagger), score(self.task, self.test.y, predicted)])
        return np.array(found).T

    def minimum(self):
        """Least objective, by L-BFGS."""
        tagger = CRFTagger(l2=self.settings["l2"], tol=1e-4, max_iter=20_000, **EVERY)
        return self.objective(tagger.fit(self.train.X, self.train.y))


def draw(task, curves, minimum):
    """Figure with the curves of the objective and of the score."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for title, values in curves.items():
        epochs, mean = 1 + np.arange(values.shape[2]), values.mean(axis=0)
        line = "k-" if title.startswith("CRF") else "-"
        left.plot(epochs, mean[0], line, label=title)
        right.plot(epochs, mean[1], line, label=title)
    left.axhline(minimum, color="gray", ls="--", lw=1, label="minimum")
    left.set(yscale="log", xlabel="epoch", ylabel="objective of the CRF")
    right.set(xlabel="epoch", ylabel=f"{task.measure}, test set, %")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(task.title, fontsize="medium")
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def rows(curves):
    """Rows of the table: mean and spread of the objective by epoch, then of the last score."""
    for title, values in curves.items():
        shown = [e for e in SHOWN if e <= values.shape[2]]
        cells = [mean_and_deviation(values[:, 0, e - 1], ",.0f") for e in shown]
        yield [title, *cells, mean_and_deviation(values[:, 1, -1])]


def measure(name, seeds, epochs, report):
    """Run all systems with all seeds on a task, and write its table and figure."""
    problem, curves = Problem(name), defaultdict(list)
    for seed in range(seeds):
        for title, (kind, parameters) in SYSTEMS.items():
            curves[title].append(problem.curve(kind, parameters, seed, epochs))
            print(name, seed, title, curves[title][-1][:, -1], flush=True)
    curves = {title: np.array(values) for title, values in curves.items()}
    minimum = problem.minimum()
    shown = [e for e in SHOWN if e <= epochs]
    head = ["objective after epoch", *map(str, shown), f"{problem.task.measure} at the end"]
    note = f"Means and standard deviations of {seeds} seeds. The minimum is {minimum:,.0f}."
    file = "objective" if name in CHUNKING else f"objective-{name}"
    report.write(file, table(head, list(rows(curves))), note)
    report.save_figure(file, draw(problem.task, curves, minimum))


def main():
    """Measure all tasks."""
    parser = make_parser(__doc__)
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(NAMES)}; by default all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    arguments = parse(parser)
    names = CHUNKING[-1:] if arguments.quick else arguments.tasks or NAMES
    seeds, epochs = (1, 2) if arguments.quick else (arguments.seeds, arguments.epochs)
    with open_report("sapo_objective", arguments) as report:
        for name in names:
            measure(name, seeds, epochs, report)


if __name__ == "__main__":
    main()
