"""Tables and the figure of the corpora that have all their runs."""

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.common.report import corrected, table
from benchmarks.common.runs import write_runs
from benchmarks.neural.plan import comparisons
from benchmarks.which_tagger.report import LEVEL, TITLES, Outcome, short
from benchmarks.which_tagger.systems import NETWORKS, NEURAL, TUNED, TUNED_NETWORKS

COLORS = {"Bi-LSTM": "#0072b2", "Bi-LSTM-CRF": "#d55e00"}
N_COLUMNS = 3
# Epochs at the start whose scores may be below the lower edge of the figure.
HIDDEN = 2


class Results(NamedTuple):
    """Finished runs of a corpus."""

    name: str
    task: object
    outcomes: dict  # of systems
    tests: dict  # of pairs of systems

    @property
    def title(self):
        """Name of the corpus on the page."""
        return self.task.corpus.title


def results_of(records, tasks, linear, n_seeds):
    """Results of each corpus with all runs and tests; tuned systems may be missing."""
    found, optional = [], {*TUNED, *TUNED_NETWORKS}
    for name, task in tasks.items():
        runs = {s: records.runs_of(name, s, n_seeds) for s in (*linear, *NEURAL)}
        runs = {s: made for s, made in runs.items() if made or s not in optional}
        tests = {
            pair: records.find(kind="test", corpus=name, system=pair[0], other=pair[1])
            for pair in comparisons(runs)
        }
        if all(runs.values()) and all(tests.values()):
            outcomes = {system: Outcome(made) for system, made in runs.items()}
            found.append(Results(name, task, outcomes, tests))
    return found


def write_report(records, tasks, report, linear, n_seeds):
    """Write tables and figure, and the records of the corpora that have all runs."""
    found = results_of(records, tasks, linear, n_seeds)
    if not found:
        raise SystemExit("No corpus is complete.")
    report.write("scores", score_table(found, (*linear, *NEURAL)))
    report.write("differences", difference_table(found, comparisons((*linear, *NEURAL))))
    machines = {run["machine"] for r in found for o in r.outcomes.values() for run in o.runs}
    report.write("epochs", epoch_table(found), " ".join(sorted(machines)))
    report.save_figure("epochs", draw_epochs(found))
    names = {results.name for results in found}
    kept = [record for record in records if record["corpus"] in names]
    write_runs(report.folder / "runs.jsonl", kept)


def score_table(found, systems):
    """Scores of all systems."""
    rows = [
        [system, *(r.outcomes[system].score() if system in r.outcomes else "" for r in found)]
        for system in systems
    ]
    return table(["", *(r.title for r in found)], rows)


def difference_table(found, pairs):
    """Differences with their p, corrected for the number of tests in the table."""
    tests = {(r.name, pair): r.tests[pair] for r in found for pair in pairs if pair in r.tests}
    raw = {key: test["p"] for key, test in tests.items()}
    p = corrected(raw)
    # With few users or words, even the least p that there can be would decide nothing.
    least = {key: corrected({**raw, key: tests[key].get("smallest p", 0)})[key] for key in tests}
    rows = []
    for pair in pairs:
        keys = [(results.name, pair) for results in found]
        cells = [
            f"{tests[key]['difference']:+.2f} "
            + (f"(p = {p[key]:.3f})" if least[key] < LEVEL else "(cannot be decided)")
            if key in tests
            else ""
            for key in keys
        ]
        rows.append([" - ".join(pair), *cells])
    return table(["", *(results.title for results in found)], rows)


def epoch_seconds(outcome):
    """Median of the seconds of an epoch, over epochs and seeds."""
    return float(np.median([s for run in outcome.runs for s in run["epoch seconds"]]))


def epoch_table(found):
    """Seconds of an epoch, and how many times those of SAPOTagger they are."""
    rows = []
    for results in found:
        sapo = epoch_seconds(results.outcomes["SAPOTagger"])
        row = [results.title, short(sapo)]
        for system in NETWORKS:
            seconds = epoch_seconds(results.outcomes[system])
            row += [short(seconds), f"{seconds / sapo:,.0f}"]
        rows.append(row)
    names = [name for system in NETWORKS for name in (f"{system}, s", "times SAPOTagger's")]
    return table(["", "SAPOTagger, s", *names], rows)


def draw_epochs(found):
    """Score on the development set by epoch: a panel for each corpus, a line for each seed."""
    n_columns = min(N_COLUMNS, len(found))
    n_rows = -(-len(found) // n_columns)
    figure = Figure(figsize=(3.4 * n_columns, 2.9 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis in axes[len(found) :]:
        axis.set_axis_off()
    for axis, results in zip(axes, found, strict=False):
        draw_corpus(axis, results)
    axes[0].legend(loc="lower right", frameon=False, fontsize="small")
    return figure


def draw_corpus(axis, results):
    """Draw the curves of a corpus; a point marks the epoch that was chosen."""
    runs = [(system, run) for system in NETWORKS for run in results.outcomes[system].runs]
    named = set()
    for system, run in runs:
        scores, style = run["dev scores"], {"color": COLORS[system]}
        label = None if system in named else system
        axis.plot(range(1, 1 + len(scores)), scores, lw=1, label=label, **style)
        axis.plot(run["epochs"], max(scores), "o", ms=3, **style)
        named.add(system)
    low = min(run["dev scores"][min(HIDDEN, len(run["dev scores"]) - 1)] for _, run in runs)
    high = max(max(run["dev scores"]) for _, run in runs)
    margin = 0.05 * (high - low) + 0.1
    axis.set_ylim(low - margin, high + margin)
    axis.set_title(results.title, fontsize="medium")
    axis.set(xlabel="epoch", ylabel=TITLES[results.task.corpus.measure])
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axis.tick_params(labelsize="small")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
