"""Search for a penalty by cross-validation: `CRFTaggerCV` beside searches of separate fits.

    python -m benchmarks.sweeps
    python -m benchmarks.sweeps --only conll2000 --systems CRFTaggerCV
    python -m benchmarks.sweeps --write

Eight values of `l2` from 10 to 0.01, three folds, chunk F1, and the fit of the best value on all
data: the training sets of CoNLL-2000 and of CoNLL-2002 in Spanish, and 1,500 sentences. Features
are the dicts of sklearn-crfsuite's tutorial, and are read within the search. sklearn-crfsuite has
its default parameters, with `c2` half of `l2`, and stops by its own criterion. `CRFTagger` has the
same weights; where its `tol` is looser than by default, that of the last fit is, too. Both are also
searched by halving, and on the 1,500 sentences at random and by Optuna. On their tokens as
sequences of length one, scikit-learn's `LogisticRegressionCV` searches for the same objective.

Every system runs in a process of its own; those without a number of processors in their name have
one thread and one process. The searches of sklearn-crfsuite take longest, so they are made value by
value, and their times are added up. Each finished run is added to a file in the results folder, and
is not made again; neither are those that came with the repository. `--write` makes the tables and
the file of records that the repository keeps. Needs the extras `bench` and `recipes`.
"""

import json
import os
import tempfile
from functools import partial
from itertools import product
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter

import numpy as np

from benchmarks.common.commandline import (
    GENERATED,
    make_parser,
    open_report,
    parse,
    results_folder,
)
from benchmarks.common.corpora import read_sentences, write_corpus, write_sentences
from benchmarks.common.features import feature_dicts
from benchmarks.common.processes import run_child
from benchmarks.common.report import machine, table
from benchmarks.common.runs import Records, read_runs, write_runs
from benchmarks.dicts import tutorial_features

NAME = "sweeps"
L2S = tuple(np.geomspace(10, 0.01, 8).tolist())
QUICK_L2S = (1.0, 0.1)
N_FOLDS = 3
# Corpora, and how many of the first sentences; None stands for all.
CORPORA = {
    "conll2000-1500": ("conll2000", 1500),
    "conll2002-esp": ("conll2002-esp", None),
    "conll2000": ("conll2000", None),
}
QUICK = {"addresses": ("addresses", 40)}
# Of the sequences of length one, and of most searches that are no grids.
FEW = "conll2000-1500"
PEER = "sklearn-crfsuite"
REFIT = "refit"
HALVING = "HalvingGridSearchCV"


def judged():
    """How all searches judge: their folds, and their score."""
    from sklearn.model_selection import KFold

    from skstruct.metrics import chunk_f1_scorer

    return {"cv": KFold(N_FOLDS), "scoring": chunk_f1_scorer}


def grid_search(estimator, name, values, X, y, n_jobs=None, refit=True):
    """Search by separate fits: mean scores by value, and the best value."""
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(estimator, {name: values}, n_jobs=n_jobs, refit=refit, **judged())
    search.fit(X, y)
    return search.cv_results_["mean_test_score"], search.best_params_[name]


def random_search(estimator, name, values, X, y):
    """Search by separate fits of as many random values between the ends: best score and value."""
    from scipy.stats import loguniform
    from sklearn.model_selection import RandomizedSearchCV

    drawn = {name: loguniform(min(values), max(values))}
    search = RandomizedSearchCV(estimator, drawn, n_iter=len(values), random_state=0, **judged())
    search.fit(X, y)
    return [search.best_score_], search.best_params_[name]


def halving_search(estimator, name, values, X, y):
    """Search by fits of fewer values on more sentences: best score and value."""
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    # By default, the number of labels that scikit-learn's halving sees in `y` decides.
    sizes = {"min_resources": len(y) // 9, "random_state": 0}
    search = HalvingGridSearchCV(estimator, {name: values}, **sizes, **judged()).fit(X, y)
    return [search.best_score_], search.best_params_[name]


def optuna_search(estimator, name, values, X, y):
    """Search by a study of as many values, and a fit of the best: its score, and the value."""
    import optuna
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_score

    def mean_score(trial):
        value = trial.suggest_float(name, min(values), max(values), log=True)
        tried = clone(estimator).set_params(**{name: value})
        return cross_val_score(tried, X, y, **judged()).mean()

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(mean_score, n_trials=len(values))
    clone(estimator).set_params(**study.best_params).fit(X, y)
    return [study.best_value], study.best_params[name]


def crfsuite_search(X, y, l2s, search=grid_search, **parameters):
    """A search of sklearn-crfsuite."""
    from sklearn_crfsuite import CRF

    scores, best = search(CRF(), "c2", [l2 / 2 for l2 in l2s], X, y, **parameters)
    return scores, 2 * best


def crfsuite_value(X, y, l2s):
    """The folds of one value."""
    return crfsuite_search(X, y, l2s, refit=False)


def crfsuite_refit(X, y, l2s):
    """The fit on all data."""
    from sklearn_crfsuite import CRF

    CRF(c2=l2s[0] / 2).fit(X, y)
    return [], l2s[0]


def tagger_search(X, y, l2s, search=grid_search, **parameters):
    """A search of `CRFTagger` with dicts."""
    from skstruct import CRFTagger

    return search(CRFTagger(fit_intercept=False, **parameters), "l2", l2s, X, y)


def batch_search(X, y, l2s, **parameters):
    """The same with a batch, which is made within the time."""
    from skstruct import SequenceVectorizer

    return tagger_search(SequenceVectorizer().fit_transform(X), y, l2s, **parameters)


def path_search(X, y, l2s, n_jobs=None):
    """`CRFTaggerCV`."""
    from skstruct import CRFTaggerCV

    search = CRFTaggerCV(l2s, fit_intercept=False, n_jobs=n_jobs, **judged())
    return path_scores(search.fit(X, y), l2s)


def path_scores(search, l2s):
    """Mean scores in the order of the values given, and the best value."""
    results = search.cv_results_
    scores = dict(zip(results["param_l2"], results["mean_test_score"], strict=True))
    return [scores[l2] for l2 in l2s], search.l2_


def as_rows(X, y):
    """Tokens as rows of a sparse matrix, and their labels."""
    from skstruct import SequenceVectorizer

    return SequenceVectorizer().fit_transform(X).X, [label for labels in y for label in labels]


def logistic_search(X, y, l2s):
    """scikit-learn's `LogisticRegressionCV` on tokens."""
    from sklearn.linear_model import LogisticRegressionCV

    search = LogisticRegressionCV(
        Cs=[1 / l2 for l2 in l2s],
        cv=judged()["cv"],
        fit_intercept=False,
        max_iter=1000,
        scoring="accuracy",
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    ).fit(*as_rows(X, y))
    return np.squeeze(search.scores_).mean(axis=0), 1 / float(search.C_)


def token_search(X, y, l2s):
    """`CRFTaggerCV` on tokens."""
    from skstruct import CRFTaggerCV

    search = CRFTaggerCV(l2s, cv=judged()["cv"], fit_intercept=False, all_possible_states=True)
    return path_scores(search.fit(*as_rows(X, y)), l2s)


SYSTEMS = {
    PEER: crfsuite_value,
    "GridSearchCV, dicts": tagger_search,
    "GridSearchCV, batch": batch_search,
    "GridSearchCV, batch, tol=1e-3": partial(batch_search, tol=1e-3),
    "GridSearchCV, batch, tol=1e-2": partial(batch_search, tol=1e-2),
    "CRFTaggerCV": path_search,
    f"{PEER}, two processes": partial(crfsuite_search, n_jobs=2),
    "CRFTaggerCV, two threads": partial(path_search, n_jobs=2),
}
TOKEN_SYSTEMS = {"LogisticRegressionCV": logistic_search, "CRFTaggerCV, tokens": token_search}
# Each with the peer, and with a batch of ours.
OTHERS = {
    "RandomizedSearchCV": random_search,
    HALVING: halving_search,
    "Optuna": optuna_search,
}
OTHER_SYSTEMS = {}
for _name, _search in OTHERS.items():
    OTHER_SYSTEMS[f"{PEER}, {_name}"] = partial(crfsuite_search, search=_search)
    OTHER_SYSTEMS[f"batch, {_name}"] = partial(batch_search, search=_search, tol=1e-2)
# Searches of every corpus; the others are those of one.
ON_ALL = [*SYSTEMS, *(name for name in OTHER_SYSTEMS if HALVING in name)]
ALL = {**SYSTEMS, **TOKEN_SYSTEMS, **OTHER_SYSTEMS, REFIT: crfsuite_refit}


def cpu_seconds():
    """CPU time of this process and of its children that have ended."""
    usages = map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def run_one(system, folder, l2s):
    """Run a search in this process; return what it took and found."""
    sentences, y = read_sentences(folder / "train")
    X = [feature_dicts(tutorial_features, sentence) for sentence in sentences]
    # Packages are imported, and kernels loaded or compiled, before anything is measured.
    few = max(60, len(X) // 20)
    ALL[system](X[:few], y[:few], l2s[:2])
    before, start = cpu_seconds(), perf_counter()
    scores, best = ALL[system](X, y, l2s)
    return {
        "wall": perf_counter() - start,
        "cpu": cpu_seconds() - before,
        "scores": [float(score) for score in scores],
        "best": float(best),
    }


class SweepRecords(Records):
    """Searches, and their parts."""

    names = ("corpus", "system", "l2s")


class Sweeps:
    """The searches of a corpus."""

    def __init__(self, corpus, folder, records, l2s):
        self.corpus, self.folder, self.records, self.l2s = corpus, folder, records, tuple(l2s)

    def make(self, system):
        """Make what has not been made of a search."""
        if system != PEER:
            return self._make(system, self.l2s)
        for l2 in self.l2s:
            self._make(PEER, (l2,))
        return self._make(REFIT, (self.find(PEER)["best"],))

    def find(self, system):
        """The record of a search, None where it has not been made; of the peer, that of its parts.

        Without its refit, the peer's search has no times.
        """
        if system != PEER:
            return self._find(system, self.l2s)
        parts = [self._find(PEER, (l2,)) for l2 in self.l2s]
        if None in parts:
            return None
        scores = [part["scores"][0] for part in parts]
        best = self.l2s[int(np.argmax(scores))]
        refit = self._find(REFIT, (best,))
        found = {"scores": scores, "best": best}
        if refit is not None:
            for clock in ("wall", "cpu"):
                found[clock] = sum(part[clock] for part in [*parts, refit])
        return found

    def _find(self, system, l2s):
        return self.records.find(corpus=self.corpus, system=system, l2s=l2s)

    def _make(self, system, l2s):
        found = self._find(system, l2s)
        if found is not None:
            return found
        path = self.folder / "train"
        if not path.exists():
            name, size = {**CORPORA, **QUICK}[self.corpus]
            write_corpus(name, self.folder)
            X, y = read_sentences(path)
            write_sentences(X[:size], y[:size], path)
        values = json.dumps(l2s)
        run = run_child(NAME, "--folder", self.folder, "--run", system, "--l2s", values)
        cell = {"corpus": self.corpus, "system": system, "l2s": l2s, **run}
        print(json.dumps(cell), flush=True)
        return self.records.add(cell)


def report_of(sweeps, systems, slow, report, name):
    """Write the tables of a corpus: `slow` is the system that others are compared with."""
    found = {system: sweeps.find(system) for system in systems}
    found = {system: run for system, run in found.items() if run is not None and "cpu" in run}
    if not found:
        return
    base = found.get(slow)
    rows = []
    for system, run in found.items():
        # Time in processes that outlive the search is not counted.
        counted = "processes" not in system
        times = f"{base['cpu'] / run['cpu']:.1f}" if counted and base is not None else ""
        apart = ""
        if base is not None and system != slow:
            apart = f"{100 * np.abs(np.subtract(run['scores'], base['scores'])).max():.2f}"
        rows.append(
            [
                system,
                f"{run['cpu']:.1f}" if counted else "",
                f"{run['wall']:.1f}",
                times,
                f"{run['best']:.3g}",
                f"{100 * max(run['scores']):.2f}",
                apart,
            ]
        )
    head = ["", "CPU, s", "wall, s", "times faster, CPU", "best `l2`", "its mean score, %"]
    head.append("mean scores differ by at most")
    report.write(name, table(head, rows), machine())
    scores = [
        [system, *(f"{100 * score:.2f}" for score in run["scores"])]
        for system, run in found.items()
    ]
    report.write(f"{name}_scores", table(["", *(f"{l2:.3g}" for l2 in sweeps.l2s)], scores))


def report_of_others(all_sweeps, report):
    """Write the table of the searches that are no grids."""
    rows = []
    for sweeps, name in product(all_sweeps, OTHERS):
        peer, ours = sweeps.find(f"{PEER}, {name}"), sweeps.find(f"batch, {name}")
        if peer is not None and ours is not None:
            times = [f"{peer['cpu']:.1f}", f"{ours['cpu']:.1f}", f"{peer['cpu'] / ours['cpu']:.1f}"]
            best = [f"{run['best']:.3g}" for run in (peer, ours)]
            rows.append([name, sweeps.corpus, *times, *best])
    head = ["", "", f"{PEER}, CPU, s", "batch, `tol=1e-2`, CPU, s", "times faster"]
    report.write("others", table([*head, f"best `l2` of {PEER}", "of the batch"], rows), machine())


def write_report(records, corpora, few, l2s, report):
    """Write the tables."""
    found = [Sweeps(corpus, None, records, l2s) for corpus in corpora]
    for sweeps in found:
        report_of(sweeps, SYSTEMS, PEER, report, sweeps.corpus)
    report_of_others(found, report)
    sweeps = Sweeps(few, None, records, l2s)
    report_of(sweeps, TOKEN_SYSTEMS, "LogisticRegressionCV", report, "tokens")


def main():
    """Make runs, or write the report, or run one system in this process."""
    # One thread, also in libraries of linear algebra.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="*", choices=CORPORA, help="by default all")
    choices = {**SYSTEMS, **TOKEN_SYSTEMS, **OTHER_SYSTEMS}
    parser.add_argument("--systems", nargs="*", choices=choices, default=list(choices))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    parser.add_argument("--run", choices=ALL, help="only this, once, in this process")
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    parser.add_argument("--l2s", type=json.loads, help="the values of --run")
    arguments = parse(parser)
    if arguments.run:
        print(json.dumps(run_one(arguments.run, arguments.folder, arguments.l2s)))
        return
    corpora = QUICK if arguments.quick else arguments.only or CORPORA
    l2s, few = (QUICK_L2S, next(iter(QUICK))) if arguments.quick else (L2S, FEW)
    # Optuna is an extra of its own.
    systems = [name for name in arguments.systems if not (arguments.quick and "Optuna" in name)]
    with results_folder(NAME, arguments) as folder:
        kept = [] if arguments.quick else read_runs(GENERATED / NAME / "runs.jsonl")
        records = SweepRecords(folder / "runs.jsonl", kept)
        if not arguments.write:
            for corpus in corpora:
                with tempfile.TemporaryDirectory() as text:
                    sweeps = Sweeps(corpus, Path(text), records, l2s)
                    for system in systems:
                        if system in ON_ALL or corpus == few:
                            sweeps.make(system)
        if arguments.quick or arguments.write:
            with open_report(NAME, arguments) as report:
                write_report(records, QUICK if arguments.quick else CORPORA, few, l2s, report)
                if arguments.write:
                    write_runs(report.folder / "runs.jsonl", records)


if __name__ == "__main__":
    main()
