"""Choices by a development set, and tests of their differences on the test set."""

import json
from functools import cached_property

import numpy as np

from benchmarks.common.processes import n_swaps
from benchmarks.common.report import mean_and_deviation

LOSS_NAMES = {"hinge": "hinge", "logistic": "logistic", "log": "log", "bayes_risk": "Bayes risk"}
# Ways to predict with the predictors of VRDA; the published one is the vote.
PREDICTIONS = ("last", "average", "vote")
# Shares of the number of the perceptron's weights.
SHARES = {"all": 1, "a half": 1 / 2, "a tenth": 1 / 10, "a 30th": 1 / 30}
N_SWAPS = 1000


class Choice:
    """The runs of a system that one line of a table shows.

    They are those of one setting, or in a task of several folds of one setting for each fold.
    """

    def __init__(self, settings, task):
        self.settings, self.task = settings, task
        self.first = settings[0][0]  # of the first fold, in the first order
        self.parameters = self.first["parameters"]
        self.uniform = all(runs[0]["parameters"] == self.parameters for runs in settings)
        self.nnz = np.mean([run["nnz"] for runs in settings for run in runs])
        self.stats = task.stats_of(settings, "test")  # (n_orders, n_groups, n_stats)

    @cached_property
    def scores(self):
        """Test score of every order."""
        return [self.task.metric(stats)[self.task.key] for stats in self.stats.sum(axis=1)]

    @cached_property
    def all_scores(self):
        """All scores of the task, as means over the orders."""
        return mean_scores([self.task.metric(stats) for stats in self.stats.sum(axis=1)])

    @property
    def score(self):
        return np.mean(self.scores)

    @cached_property
    def dev(self):
        dev = self.task.stats_of(self.settings, "dev").sum(axis=1)
        return np.mean([self.task.metric(stats)[self.task.key] for stats in dev])

    def show(self):
        return mean_and_deviation(self.scores)

    def seconds(self, name):
        """Mean time of a run, without the first order, which may have had to compile."""
        runs = [run for runs in self.settings for run in runs[1:] or runs]
        times = [run[f"{name}_time"] for run in runs if f"{name}_time" in run]
        return f"{np.mean(times):.2f}" if times else ""


class Task:
    """Runs of a task, and comparisons between them.

    A task has one or several folds. In each fold settings are chosen by its development set, and
    scores are of all test groups of all folds.
    """

    def __init__(self, name, folds, definition):
        _, self.metric, self.key, self.higher = definition
        self.name = name
        self.splits = [splits for _, splits in folds]
        self.folds = [by_setting(runs) for runs, _ in folds]
        counts = [len(runs) for fold in self.folds for runs in fold.values()]
        self.n_orders = (min(counts), max(counts))

    def stats_of(self, settings, name):
        """Stats of the chosen candidates, (n_orders, n_groups, n_stats)."""
        n_orders = min(map(len, settings))
        parts = []
        for runs, splits in zip(settings, self.splits, strict=True):
            split = splits[name]
            parts.append([split.chosen_stats(run[f"{name}_chosen"]) for run in runs[:n_orders]])
        return np.concatenate(parts, axis=1)

    def _find(self, fold, system, wanted):
        for key, runs in self.folds[fold].items():
            parameters = runs[0]["parameters"]
            if runs[0]["system"] == system and all(
                parameters.get(k) == v for k, v in wanted.items()
            ):
                yield key, runs

    @cached_property
    def losses(self):
        """Names of the losses with runs."""
        return {loss: title for loss, title in LOSS_NAMES.items() if self.best("VRDA", loss=loss)}

    def find(self, system, **wanted):
        """Every setting of a system with the given parameters, the same in all folds."""
        found = []
        for key, _ in self._find(0, system, wanted):
            if all(key in fold for fold in self.folds):
                found.append(Choice([fold[key] for fold in self.folds], self))
        return found

    def best(self, system, most=None, at_least=None, **wanted):
        """The best setting of each fold on the development set, of equal ones the smallest.

        Settings that were run with more orders have been chosen once already, and come first.
        `most` limits the number of weights, for each fold. With `at_least`, a score for each fold,
        the choice is the smallest setting that reaches it.
        """
        sign = -1 if self.higher else 1
        chosen = []
        for i in range(len(self.folds)):
            rated = []
            for _, runs in self._find(i, system, wanted):
                nnz, dev = self.weights(runs), self.dev_score(runs)
                if most is not None and not 0 < nnz <= most[i]:
                    continue
                if at_least is None:
                    rated.append((-len(runs), (sign * dev, nnz), len(rated), runs))
                elif sign * dev <= sign * at_least[i]:
                    rated.append((-len(runs), (nnz, sign * dev), len(rated), runs))
            if not rated:
                return None
            chosen.append(min(rated)[-1])
        return Choice(chosen, self)

    def by_prediction(self, **wanted):
        """The best VRDA for each way to predict that has runs."""
        found = {p: self.best("VRDA", prediction=p, **wanted) for p in PREDICTIONS}
        return {p: choice for p, choice in found.items() if choice is not None}

    def with_same_orders(self, choices):
        """The choices, with the orders that all of them have."""
        n = min(len(runs) for choice in choices for runs in choice.settings)
        return [Choice([runs[:n] for runs in choice.settings], self) for choice in choices]

    def dev_score(self, runs):
        return np.mean([run["dev"][self.key] for run in runs])

    def weights(self, runs):
        return np.mean([run["nnz"] for run in runs])

    @cached_property
    def perceptron(self):
        return self.best("Perceptron")

    def within(self, system, share):
        """The best setting with at most a share of the perceptron's weights."""
        weights = [self.weights(runs) for runs in self.perceptron.settings]
        return self.best(system, most=[share * n for n in weights])

    def sparse(self):
        """The smallest VRDA that does as well as the perceptron on the development set."""
        return self.best("VRDA", at_least=[self.dev_score(r) for r in self.perceptron.settings])

    def fixed(self, which):
        """Stats, as of a single order, of always choosing the first or the oracle."""
        parts = []
        for splits in self.splits:
            test = splits["test"]
            chosen = np.zeros(len(test.batch), int) if which == "first" else test.oracle()
            parts.append(test.chosen_stats(chosen))
        return np.concatenate(parts)[None]

    @cached_property
    def first(self):
        return self.fixed("first")

    def p_value(self, a, b):
        """Paired randomisation test of the difference of two corpus scores, two-sided."""
        a, b = (x.stats if isinstance(x, Choice) else x for x in (a, b))
        n_orders = min(len(a), len(b))
        if b is self.first:
            n_orders, b = len(a), np.repeat(b, len(a), axis=0)
        a, b = (x[:n_orders].sum(axis=0) for x in (a, b))
        total, difference = (a + b).astype(float), (a - b).astype(float)

        def gap(first):
            return self.metric(first)[self.key] - self.metric(total.sum(axis=0) - first)[self.key]

        observed = abs(gap(a.sum(axis=0)))
        rng, n = np.random.default_rng(0), n_swaps(N_SWAPS)
        swaps = rng.random((n, len(a))) < 0.5
        firsts = a.sum(axis=0) - swaps @ difference
        hits = sum(abs(gap(first)) >= observed - 1e-12 for first in firsts)
        return (hits + 1) / (n + 1)

    def key_choices(self):
        """The choices of the main comparisons."""
        yield self.perceptron
        for loss in self.losses:
            for system in ("SGD", "TG"):
                yield self.best(system, loss=loss)
            yield from self.by_prediction(loss=loss).values()
        yield self.sparse()
        for share in SHARES.values():
            yield self.within("VRDA", share)
            yield self.within("TG", share)

    def mark(self, choice, other, letter):
        if choice is None or other is None or choice is other:
            return ""
        return f" {letter}" if self.p_value(choice, other) < 0.05 else ""


def by_setting(runs):
    """Runs of each setting, by order."""
    found = {}
    for run in sorted(runs, key=lambda run: run["order"]):
        key = json.dumps([run["system"], run["parameters"]], sort_keys=True)
        found.setdefault(key, []).append(run)
    return found


def mean_scores(scores):
    return {key: np.mean([s[key] for s in scores]) for key in scores[0]}
