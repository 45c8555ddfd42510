"""Objective of a CRF along the epochs of SAPO, by the number n of labellings.

    python -m benchmarks.sapo_objective

SAPO follows the gradient of the likelihood among the n best labellings, which is that of a CRF if
these are all. The objective is the CRF's with the same penalty, over the training set of
CoNLL-2000. Rate and penalty are those that `benchmarks.search_based` chose on development data.
"""

from collections import defaultdict

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import CORPORA, chunking_name
from benchmarks.common.features import crfsuite_attributes
from benchmarks.common.problems import training_problem
from benchmarks.common.report import table
from skstruct import CRFTagger, SAPOTagger, SequenceVectorizer, kernels
from skstruct.metrics import chunk_f1_score
from skstruct.solvers.objective import CRFObjective
from skstruct.utils.parallel import range_runner

# All combinations of features and labels, as SAPO has them.
EVERY = {"all_possible_states": True, "all_possible_transitions": True}
RATE = {"learning_rate": 0.1, "decay": 0.9, "l2": 0.1}
SYSTEMS = {
    **{f"SAPO, n = {n}": (SAPOTagger, {"n_best": n}) for n in (1, 2, 5, 10, 50)},
    "CRF, SGD": (CRFTagger, {"solver": "sgd"}),
}
EPOCHS = 20
SHOWN = (1, 2, 5, 10, 20)


class Problem:
    """Batches and labels of training and test set, and the objective."""

    def __init__(self, corpus):
        data, vectorizer = CORPORA[corpus](), SequenceVectorizer()
        (X, self.y), (X_test, self.y_test) = data["train"], data["test"]
        self.batch = vectorizer.fit_transform([crfsuite_attributes(x) for x in X])
        self.test = vectorizer.transform([crfsuite_attributes(x) for x in X_test])
        self.classes = np.unique(np.concatenate(self.y))
        self.function = CRFObjective(*training_problem(self.batch, self.y), l2=RATE["l2"], **EVERY)

    def objective(self, tagger):
        """Objective of the CRF at the weights of a tagger."""
        parts = tagger.transition_, tagger.intercept_, tagger.start_, tagger.end_
        chain = kernels.Chain(np.ascontiguousarray(tagger.coef_.T), *parts)
        function, theta = self.function, self.function.pack(chain)
        with range_runner(self.batch.offsets, 1) as run:
            return function.value_and_gradient(theta, np.empty(function.size), run)

    def curve(self, kind, parameters, seed, epochs):
        """Objective and F1 on the test set after each epoch."""
        found = []
        tagger = kind(**RATE, **parameters, random_state=np.random.RandomState(seed))
        for _ in range(epochs):
            tagger.partial_fit(self.batch, self.y, classes=self.classes)
            predicted = tagger.predict(self.test)
            found.append([self.objective(tagger), chunk_f1_score(self.y_test, predicted)])
        return np.array(found).T

    def minimum(self):
        """Least objective, by L-BFGS."""
        tagger = CRFTagger(l2=RATE["l2"], tol=1e-4, **EVERY).fit(self.batch, self.y)
        return self.objective(tagger)


def draw(curves, minimum):
    """Figure with the curves of the objective and of F1."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for title, values in curves.items():
        epochs, mean = 1 + np.arange(values.shape[2]), values.mean(axis=0)
        line = "k-" if title.startswith("CRF") else "-"
        left.plot(epochs, mean[0], line, label=title)
        right.plot(epochs, 100 * mean[1], line, label=title)
    left.axhline(minimum, color="gray", ls="--", lw=1, label="minimum")
    left.set(yscale="log", xlabel="epoch", ylabel="objective of the CRF")
    right.set(xlabel="epoch", ylabel="F1, test set, %")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def rows(curves):
    """Rows of the table: mean and spread of the objective by epoch, then of the last F1."""
    for title, values in curves.items():
        shown = [e for e in SHOWN if e <= values.shape[2]]
        cells = [spread(values[:, 0, e - 1], ",.0f") for e in shown]
        yield [title, *cells, spread(100 * values[:, 1, -1], ".2f")]


def spread(values, style):
    """Mean and standard deviation over the seeds."""
    if len(values) == 1:
        return format(values[0], style)
    return f"{values.mean():{style}} ± {values.std(ddof=1):{style}}"


def main():
    """Run all systems with all seeds."""
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parse(parser)
    problem = Problem(chunking_name(arguments.quick))
    seeds, epochs = (1, 2) if arguments.quick else (arguments.seeds, EPOCHS)
    curves = defaultdict(list)
    for seed in range(seeds):
        for title, (kind, parameters) in SYSTEMS.items():
            curves[title].append(problem.curve(kind, parameters, seed, epochs))
            print(seed, title, curves[title][-1][:, -1], flush=True)
    curves = {title: np.array(values) for title, values in curves.items()}
    minimum = problem.minimum()
    with open_report("sapo_objective", arguments) as report:
        shown = [e for e in SHOWN if e <= epochs]
        head = ["objective after epoch", *map(str, shown), "F1 at the end"]
        note = f"Means and standard deviations of {seeds} seeds. The minimum is {minimum:,.0f}."
        report.write("objective", table(head, list(rows(curves))), note)
        report.save_figure("objective", draw(curves, minimum))


if __name__ == "__main__":
    main()
