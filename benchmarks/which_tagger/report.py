"""Tables of the finished runs.

A system is in the tables of a corpus once all its seeds are finished, and a corpus once all systems
with default parameters of this library are. Networks are where `benchmarks.neural` has them.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.common.commandline import ROOT
from benchmarks.common.report import corrected, mean_and_deviation, table
from benchmarks.common.runs import write_runs
from benchmarks.which_tagger.corpora import CORPORA, QUICK_CORPORA
from benchmarks.which_tagger.figures import draw_scores
from benchmarks.which_tagger.systems import (
    CHOSEN,
    DEFAULTS,
    NEURAL,
    PAIRS,
    REFERENCE,
    SYSTEMS,
    TUNED_REFERENCE,
    reference_of,
)

LEVEL = 0.05
TITLES = {"chunk_f1": "F1, %", "token_accuracy": "accuracy, %"}
# What a user has, what to take, corpora that stand for it, and what it costs.
ADVICE = [
    (
        "text",
        "SAPOTagger",
        "text",
        "probabilities are approximate; another seed changes F1 by some tenths",
    ),
    (
        "text, and a need for probabilities or for a result that no seed changes",
        "CRFTagger",
        "text",
        "training takes {slower} times as long as SAPOTagger's",
    ),
    (
        "the same, and a need for a bound on the distance from the optimum",
        "SDCACRF",
        "text",
        "training takes {slower} times as long as SAPOTagger's; a larger model",
    ),
    (
        "features under development, or little time",
        "PerceptronTagger",
        "text",
        "probabilities are not calibrated; {behind} from SAPOTagger's scores",
    ),
    (
        "dense numbers, long sequences",
        "CRFTagger",
        "numbers",
        "a search for `l2`, which gains {tuning} more",
    ),
]


class Outcome(NamedTuple):
    """All runs of a system on a corpus, and the p of its difference, corrected."""

    runs: list
    p: float = None
    decidable: bool = True  # False if no p of this corpus can be small enough

    def values(self, key):
        """An entry of the records, as an array."""
        return np.array([run[key] for run in self.runs])

    def median(self, key):
        """Median of an entry."""
        return float(np.median(self.values(key)))

    def score(self):
        """Mean score, with the standard deviation over the seeds."""
        return mean_and_deviation(self.values("score"))

    def largest_p(self):
        """Largest p of the seeds: a difference has to show with each of them."""
        return max((run["p"] for run in self._compared()), default=None)

    def smallest_p(self):
        """Least p that the corpus can have."""
        return max((run["smallest p"] for run in self._compared()), default=None)

    def _compared(self):
        """Runs that were compared with what their system is compared with now."""
        return [run for run in self.runs if run.get("reference") == reference_of(run["system"])]

    def mark(self):
        """Mark of a score that differs from that of the reference by more than chance."""
        if self.p is None or self.p >= LEVEL:
            return ""
        return " **+**" if self.runs[0]["difference"] > 0 else " **-**"

    def megabytes(self, *kinds):
        """Median size of the model in the first of some formats that it is stored in, if any."""
        for kind in kinds:
            sizes = [run["megabytes"].get(kind) for run in self.runs]
            if None not in sizes:
                return short(np.median(sizes))
        return ""


class Results(NamedTuple):
    """Finished runs of a corpus."""

    corpus: object
    description: dict
    outcomes: dict  # of systems
    tuned: dict  # chosen parameters of systems


def short(value):
    """Number with three digits or more."""
    digits = max(0, 2 - int(np.floor(np.log10(max(value, 1e-3)))))
    return f"{value:,.{digits}f}"


def results_of(records, neural, corpora, systems, n_seeds):
    """Results of each corpus that can be reported."""
    found = []
    for name, corpus in corpora.items():
        wanted = systems.get(name, list(SYSTEMS))
        outcomes = {system: Outcome(records.runs_of(name, system, n_seeds)) for system in wanted}
        outcomes = {system: outcome for system, outcome in outcomes.items() if outcome.runs}
        needed = [system for system in wanted if system in DEFAULTS or system == REFERENCE]
        networks = [system for system in NEURAL if (name, system) in neural]
        outcomes.update({system: Outcome(neural[name, system]) for system in networks})
        if all(system in outcomes for system in needed):
            chosen = {
                system: records.find(kind="tuning", corpus=name, system=system)["parameters"]
                for system in outcomes
                if system in CHOSEN
            }
            description = records.find(kind="corpus", corpus=name)
            found.append(Results(corpus, description, outcomes, chosen))
    return found


def write_report(records, neural, report, *, quick=None, n_seeds):
    """Write all tables and the figure, and the records that they are made of."""
    corpora = QUICK_CORPORA if quick else CORPORA
    found = results_of(records, neural, corpora, dict(quick or ()), n_seeds)
    if not found:
        raise SystemExit("No corpus is complete.")
    correct(found)
    report.write("sizes", size_table(found))
    report.write("scores", overview(found, lambda outcome: outcome.score() + outcome.mark()))
    report.write("seconds", overview(found, lambda outcome: short(outcome.median("seconds"))))
    report.write("tuned", tuned_table(found))
    if not quick:
        report.write("advice", advice_table(found))
        report.write_into(ROOT / "README.md", "advice", advice_table(found))
    report.write("differences", difference_table(found))
    report.write("pairs", pair_table(records, corpora))
    parts = [part for results in found for part in (f"### {title(results)}", system_table(results))]
    report.write("systems", *parts, note(found))
    report.save_figure("scores", draw_scores(found))
    write_runs(report.folder / "runs.jsonl", records)


def correct(found):
    """Correct the p of all systems and corpora together, for their number."""
    compared = {
        (place, system): outcome
        for place, results in enumerate(found)
        for system, outcome in results.outcomes.items()
        if outcome.largest_p() is not None
    }
    tests = {key: outcome.largest_p() for key, outcome in compared.items()}
    for key, p in corrected(tests).items():
        place, system = key
        # Few users or words: even if all swaps but one gave less, nothing would be decided.
        at_best = corrected({**tests, key: compared[key].smallest_p()})[key]
        outcome = compared[key]._replace(p=p, decidable=at_best < LEVEL)
        found[place].outcomes[system] = outcome


def advice_table(found):
    """Advice by kind of data, with the ranges of scores and times."""

    def ends(values, digits=1, sign=""):
        low, high = (f"{value:{sign}.{digits}f}" for value in (min(values), max(values)))
        return low if low == high else f"{low} to {high}"

    rows = []
    for situation, system, kind, costs in ADVICE:
        those = [r for r in found if kind == ("text" if r.corpus.template else "numbers")]
        those = [r for r in those if kind == "text" or not r.corpus.binary]
        names = (system, f"{system}, tuned", REFERENCE, TUNED_REFERENCE, "SAPOTagger")
        mean = {
            name: np.array([r.outcomes[name].values("score").mean() for r in those])
            for name in names
        }
        seconds = {
            name: np.array([r.outcomes[name].median("seconds") for r in those]) for name in names
        }
        found_costs = {
            "slower": ends(seconds[system] / seconds["SAPOTagger"]),
            "behind": ends(mean[system] - mean["SAPOTagger"], sign="+"),
            "tuning": ends(mean[f"{system}, tuned"] - mean[system]),
        }
        rows.append(
            [
                situation,
                f"`{system}`",
                ends(mean[f"{system}, tuned"] - mean[TUNED_REFERENCE], sign="+"),
                ends(mean[system] - mean[REFERENCE], sign="+"),
                ends(seconds[REFERENCE] / seconds[system]),
                costs.format(**found_costs),
            ]
        )
    head = [
        "You have",
        "Take",
        "points above CRFsuite's `lbfgs`, both tuned",
        "the same, neither tuned",
        "training, times as fast as `lbfgs`",
        "What it costs",
    ]
    return table(head, rows, left=(0, 1, 5))


def difference_table(found):
    """Corpora on which each system differs from the reference."""
    rows = []
    for system in (*SYSTEMS, *NEURAL):
        names = {" **+**": [], " **-**": [], "": [], "undecided": []}
        for results in found:
            outcome = results.outcomes.get(system)
            if outcome is not None and outcome.p is not None:
                kind = outcome.mark() if outcome.decidable else "undecided"
                names[kind].append(results.corpus.title)
        if any(names.values()):
            rows.append([system, *(", ".join(titles) for titles in names.values())])
    head = ["", "more accurate", "less accurate", "no difference found", "cannot be decided"]
    return table(head, rows, left=range(len(head)))


def pair_table(records, corpora):
    """Differences between our own taggers, by corpus, and their p; of pairs that were tested."""
    found = {
        (name, pair): record
        for name in corpora
        for pair in PAIRS
        if (record := records.find(kind="pair", corpus=name, system=pair[0], other=pair[1]))
    }
    p = corrected({key: record["p"] for key, record in found.items()})
    pairs = [pair for pair in PAIRS if any(pair == tested for _, tested in found)]
    head, rows = [""], []
    for system, other in pairs:
        head += [f"{system} above {other}", "p"]
    for name, corpus in corpora.items():
        keys = [(name, pair) for pair in pairs]
        if any(key in found for key in keys):
            cells = [
                (f"{found[key]['difference']:+.2f}", f"{p[key]:.3f}") if key in found else ("", "")
                for key in keys
            ]
            rows.append([corpus.title, *(cell for two in cells for cell in two)])
    return table(head, rows)


def title(results):
    return f"{results.corpus.title} ({results.corpus.kind})"


def size_table(found):
    """Sizes of the corpora."""
    keys = ["sequences", "tokens", "labels", "attributes", "test sequences", "test tokens"]
    rows = []
    for results in found:
        sizes = [f"{results.description[key]:,}" for key in keys]
        measure = TITLES[results.corpus.measure].partition(",")[0]
        rows.append([results.corpus.title, results.corpus.kind, *sizes, measure])
    return table(["", "", *keys, "score"], rows, left=(0, 1, 2 + len(keys)))


def overview(found, text):
    """Table with a column for each corpus; empty where a system is not finished."""
    rows = [
        [
            system,
            *(
                text(results.outcomes[system]) if system in results.outcomes else ""
                for results in found
            ),
        ]
        for system in (*SYSTEMS, *NEURAL)
        if any(system in results.outcomes for results in found)
    ]
    return table(["", *(results.corpus.title for results in found)], rows)


def tuned_table(found):
    """Chosen parameters."""
    rows = [
        [
            system,
            *(
                ", ".join(f"{name}={value}" for name, value in results.tuned[system].items())
                if system in results.tuned
                else ""
                for results in found
            ),
        ]
        for system in CHOSEN
        if any(system in results.tuned for results in found)
    ]
    columns = range(1 + len(found))
    return table(["", *(results.corpus.title for results in found)], rows, left=columns)


def system_table(results):
    """All measures of one corpus."""
    rows = []
    for system, outcome in results.outcomes.items():
        p = outcome.p
        rows.append(
            [
                system,
                outcome.score(),
                "" if p is None else f"{p:.3f}",
                short(outcome.median("seconds")),
                f"{outcome.median('tokens per second'):,.0f}",
                outcome.megabytes("skops", "torch", "crf++", "wapiti", "spacy"),
                outcome.megabytes("crfsuite"),
                f"{outcome.median('memory'):,.0f}",
            ]
        )
    measure = TITLES[results.corpus.measure]
    head = [
        measure,
        "p",
        "train, s",
        "tag, tokens/s",
        "own format, MB",
        "CRFsuite's format, MB",
    ]
    return table(["", *head, "peak memory, MiB"], rows)


def note(found):
    """Sentence on the machines."""
    machines = {
        run["machine"] for results in found for o in results.outcomes.values() for run in o.runs
    }
    return " ".join(sorted(machines))
