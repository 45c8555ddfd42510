"""Scores on test data by epoch, and the time of an epoch: Figures 1 and 5 of Sun et al. (2018).

Nothing is chosen and nothing stops early: all learners see the whole training set as many times.
"""

import json
import time
from itertools import chain, count, takewhile
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.common.processes import run_child
from benchmarks.common.report import corrected, machine, table
from benchmarks.common.runs import write_runs
from benchmarks.which_tagger.child import read_part, unpack_mistakes
from benchmarks.which_tagger.corpora import prepare, prepare_tokens
from benchmarks.which_tagger.plan import compare_labels
from benchmarks.which_tagger.report import TITLES, short
from benchmarks.which_tagger.systems import NETWORKS


class Curve(NamedTuple):
    """A learner that is followed: what the child process takes, and its colour."""

    kind: str
    parameters: dict
    color: str


CURVES = {
    "SAPOTagger": Curve("SAPOTagger", {}, "#d55e00"),
    "CRFTagger, sgd": Curve("CRFTagger", {"solver": "sgd"}, "#000000"),
    "Bi-LSTM": Curve("Bi-LSTM", {}, "#56b4e9"),
    "Bi-LSTM-CRF": Curve("Bi-LSTM-CRF", {}, "#0072b2"),
}
# The learner that the others are compared with.
BESIDE = "SAPOTagger"
EPOCHS, QUICK_EPOCHS = 15, 2
CURVE_SEEDS = 3
# Learners whose epochs are timed, in turn. The paper's networks have batches of 1, with which an
# epoch takes minutes.
TIMED = {
    "SAPOTagger": Curve("SAPOTagger", {}, None),
    **{
        f"{kind}, batches of {n}": Curve(kind, {"batch_size": n}, None)
        for kind in NETWORKS
        for n in (16, 1)
    },
}
TIMED_EPOCHS, SLOW_EPOCHS = 2, 1
# Epochs at the start whose scores may be below the lower edge of the figure.
HIDDEN = 2


class CurveRuns:
    """A way to follow the learners on a corpus."""

    def __init__(self, name, corpus, records, cache, n_epochs=EPOCHS):
        self.name, self._corpus, self._records, self._n_epochs = name, corpus, records, n_epochs
        self._folders = {kind: cache / kind / name for kind in ("tokens", "features")}

    def make_all(self, seed):
        """Follow all learners with a seed, and compare their last labels."""
        prepare(self._corpus, self._folders["features"])
        prepare_tokens(self._corpus, self._folders["tokens"])
        for system, curve in CURVES.items():
            self._make("curve", system, curve, seed, self._n_epochs)
        if seed == 0:
            for system, curve in TIMED.items():
                is_slow = curve.parameters.get("batch_size") == 1
                n_epochs = SLOW_EPOCHS if is_slow else min(TIMED_EPOCHS, self._n_epochs)
                self._make("epoch", system, curve, seed, n_epochs)

    def _make(self, what, system, curve, seed, n_epochs):
        head = {"kind": what, "corpus": self.name, "system": system, "seed": seed}
        if self._records.find(**head):
            return
        kind, parameters, _ = curve
        folder = self._folders["tokens" if kind in NETWORKS else "features"]
        arguments = folder, kind, json.dumps(parameters), seed, "--follow", n_epochs
        found = run_child("neural.child", *arguments)
        if what == "epoch":
            del found["mistakes"], found["scores"]
        self._records.add({**head, **found, "machine": machine()})
        shown = np.round(found.get("scores", []), 2).tolist()
        seconds = round(sum(found["epoch seconds"]), 2)
        print(time.strftime("%H:%M:%S"), self.name, system, seed, shown, seconds, flush=True)

    def compare(self):
        """Test the scores of the last epoch, whose differences have to show with all seeds."""
        true, sides = read_part(self._folders["tokens"], "test")[1], {}
        for system, runs in finished(self._records, self.name).items():
            sides[system] = [unpack_mistakes(run["mistakes"], true) for run in runs]
        n_seeds, measure = len(sides[BESIDE]), self._corpus.measure
        head = {"kind": "curve test", "corpus": self.name, "system": BESIDE, "seed": n_seeds}
        for other in sides:
            if other != BESIDE and not self._records.find(**head, other=other):
                found = compare_labels(true, sides[BESIDE], sides[other], measure)
                self._records.add({**head, "other": other, **found})


def finished(records, corpus):
    """Runs of each learner, with the seeds that all of them have; empty if there are none."""

    def runs_of(seed):
        heads = ({"corpus": corpus, "system": system, "seed": seed} for system in CURVES)
        return [records.find(kind="curve", **head) for head in heads]

    by_seed = list(takewhile(all, map(runs_of, count())))
    return dict(zip(CURVES, zip(*by_seed, strict=True), strict=True)) if by_seed else {}


def write_curves(records, corpora, report):
    """Write the figure, the table and the records."""
    found = {name: finished(records, name) for name in corpora}
    found = {name: runs for name, runs in found.items() if runs}
    tests = curve_tests(records, found)
    rows = [row for name, runs in found.items() for row in curve_rows(tests, corpora[name], runs)]
    head = ["", "", "seeds", "best epoch", "its score", "score at the end", "fall"]
    report.write("curves", table([*head, "SAPOTagger ahead by", "p"], rows, left=(0, 1)))
    report.save_figure("curves", draw_curves(found, corpora))
    timed = {r["corpus"] for r in records if r["kind"] == "epoch"}
    if timed:
        report.write("seconds", second_table(records, {n: corpora[n] for n in found if n in timed}))
    write_runs(report.folder / "curves.jsonl", records)


def curve_tests(records, found):
    """Differences by corpus and learner, with p corrected for their number."""
    tests = {}
    for name, runs in found.items():
        head = {"kind": "curve test", "corpus": name, "system": BESIDE, "seed": len(runs[BESIDE])}
        made = {(name, system): records.find(**head, other=system) for system in runs}
        tests |= {key: test for key, test in made.items() if test}
    values = corrected({key: test["p"] for key, test in tests.items()})
    return {key: {**test, "p": values[key]} for key, test in tests.items()}


def curve_rows(tests, corpus, runs):
    """The best and the last epoch of the mean curve of each learner."""
    name, n_seeds = runs[BESIDE][0]["corpus"], len(runs[BESIDE])
    for system, made in runs.items():
        curve = np.mean([run["scores"] for run in made], axis=0)
        best = int(curve.argmax())
        test = tests.get((name, system))
        ahead = [f"{test['difference']:+.2f}", f"{test['p']:.3f}"] if test else ["", ""]
        scores = [f"{curve[best]:.2f}", f"{curve[-1]:.2f}", f"{curve[best] - curve[-1]:.2f}"]
        cells = [n_seeds, 1 + best, *scores, *ahead]
        yield [corpus.title if system == BESIDE else "", system, *cells]


def second_table(records, corpora):
    """Seconds of the fastest epoch, and how many times those of SAPOTagger they are."""
    rows = []
    for system in TIMED:
        row = [system]
        for name in corpora:
            head = {"kind": "epoch", "corpus": name, "seed": 0}
            run, sapo = (records.find(**head, system=s) for s in (system, "SAPOTagger"))
            if run is None:
                row += ["", ""]
                continue
            seconds, unit = (min(r["epoch seconds"]) for r in (run, sapo))
            row += [short(seconds), f"{seconds / unit:,.0f}"]
        rows.append(row)
    head = [cell for corpus in corpora.values() for cell in (f"{corpus.title}, s", "times SAPO's")]
    return table(["", *head], rows)


def draw_curves(found, corpora):
    """Score on the test set by epoch: a panel for each corpus, a thin line for each seed."""
    figure = Figure(figsize=(3.5 * len(found), 3.2), layout="constrained")
    axes = figure.subplots(1, len(found), squeeze=False)[0]
    for axis, (name, runs) in zip(axes, found.items(), strict=True):
        for system, made in runs.items():
            curves, color = np.array([run["scores"] for run in made]), CURVES[system].color
            epochs = np.arange(1, 1 + curves.shape[1])
            if len(curves) > 1:
                axis.plot(epochs, curves.T, lw=0.5, alpha=0.5, color=color)
            axis.plot(epochs, curves.mean(axis=0), lw=1.6, color=color, label=system)
        scores = [run["scores"] for run in chain(*runs.values())]
        low, high = np.min([s[min(HIDDEN, len(s) - 1)] for s in scores]), np.max(scores)
        margin = 0.05 * (high - low) + 0.1
        axis.set_ylim(low - margin, high + margin)
        axis.set_title(corpora[name].title, fontsize="medium")
        axis.set(xlabel="epoch", ylabel=TITLES[corpora[name].measure])
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axis.tick_params(labelsize="small")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    axes[0].legend(loc="lower right", frameon=False, fontsize="small")
    return figure
