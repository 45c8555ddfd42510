"""The runs: those that are finished, and how one more is made."""

import json
import subprocess
from functools import cached_property

import numpy as np

from benchmarks.common.processes import run_child
from benchmarks.common.report import machine
from benchmarks.common.runs import Records
from benchmarks.common.significance import compare_seeds
from benchmarks.which_tagger.child import read_part, unpack_mistakes
from benchmarks.which_tagger.corpora import prepare, prepare_tokens
from benchmarks.which_tagger.systems import (
    NEURAL,
    REFERENCE,
    SYSTEMS,
    TUNED_REFERENCE,
    reference_of,
)

SEEDS = 3


class TaggerRecords(Records):
    """Records of finished runs, choices of parameters, and descriptions of corpora."""

    names = ("kind", "corpus", "system", "seed", "other")

    def runs_of(self, corpus, system, n_seeds=SEEDS):
        """Runs of a system with all its seeds; an empty list where some are missing.

        With what later tests against the reference have found.
        """
        seeds = range(n_seeds if SYSTEMS[system].seeded else 1)
        heads = [{"corpus": corpus, "system": system, "seed": seed} for seed in seeds]
        runs = [self.find(kind="run", **head) for head in heads]
        tests = [self.find(kind="test", **head) or {} for head in heads]
        return [] if None in runs else [r | t for r, t in zip(runs, tests, strict=True)]


def neural_runs(records):
    """Runs of networks by corpus and system, with what tests against the reference have found."""
    tests = {
        (record["corpus"], record["system"], record["seed"]): record
        for record in records
        if record["kind"] == "test" and record["other"] == REFERENCE
    }
    found = {}
    for run in records:
        if run["kind"] == "run" and run["system"] in NEURAL:
            key = run["corpus"], run["system"]
            test = tests.get((*key, run["seed"]), {})
            entry = {**test, **run, "reference": test.get("other")}
            found.setdefault(key, []).append(entry)
    return found


def compare_labels(y_true, runs, others, measure, groups=None):
    """Difference of the scores of two systems, given with the labels by each seed, and its p.

    And the least p that there can be.
    """
    found = compare_seeds(y_true, runs, others, measure, groups)
    return {"difference": 100 * found.difference, "p": found.p, "smallest p": found.smallest}


class Runs:
    """A way to make the runs on a corpus.

    A run that takes longer than `limit` seconds is given up, and the system with it.
    """

    def __init__(self, name, corpus, records, cache, limit=None):
        self.name, self.records, self._corpus = name, records, corpus
        self._cache, self._limit, self._given_up = cache / name, limit, set()
        self._compiled = set()

    def make_all(self, systems, n_seeds):
        """Make the runs of systems, which take turns; what they are compared with comes first."""
        references = sorted({reference_of(system) for system in systems})
        for seed in range(n_seeds):
            for system in [*references, *systems]:
                self.make(system, seed)
                if not self._given_up.isdisjoint(references):
                    return

    def make(self, system, seed):
        """Make a run, unless it is finished and was compared with the right system."""
        reference = reference_of(system)
        known = self.records.find(kind="run", corpus=self.name, system=system, seed=seed)
        finished = known and ("mistakes" in known or known.get("reference") == reference)
        if finished or system in self._given_up or (seed and not SYSTEMS[system].seeded):
            return
        try:
            parameters = self._parameters(system)
            self._compile(system, parameters)
            found = self._child("run", system, json.dumps(parameters), seed)
        except subprocess.TimeoutExpired:
            print(f"{self.name}, {system}: takes longer than {self._limit} s.", flush=True)
            self._given_up.add(system)
            return
        mistakes = found.pop("mistakes")
        if system in (REFERENCE, TUNED_REFERENCE):
            found["mistakes"] = mistakes
        else:
            found.update(self._compared(mistakes, reference))
        head = {"kind": "run", "corpus": self.name, "system": system, "seed": seed}
        self.records.add({**head, "parameters": parameters, **found, "machine": machine()})
        shown = {key: found[key] for key in ("score", "seconds", "memory")}
        print(f"{self.name}, {system}, seed {seed}: {shown}", flush=True)

    @cached_property
    def _folder(self):
        description = prepare(self._corpus, self._cache)
        if not self.records.find(kind="corpus", corpus=self.name):
            self.records.add({"kind": "corpus", "corpus": self.name, **description})
        return self._cache

    @cached_property
    def _words(self):
        """Folder of the corpus with words in place of features."""
        folder = self._cache.with_name(f"{self.name}-words")
        prepare_tokens(self._corpus, folder)
        return folder

    @cached_property
    def _test_labels(self):
        return read_part(self._folder, "test")[1]

    def _labels_of(self, reference):
        """Predicted labels of a system that others are compared with."""
        which = {"corpus": self.name, "system": reference, "seed": 0}
        records = (self.records.find(kind=kind, **which) or {} for kind in ("test", "run"))
        mistakes = next(record["mistakes"] for record in records if "mistakes" in record)
        return unpack_mistakes(mistakes, self._test_labels)

    def _parameters(self, system):
        if not SYSTEMS[system].grid:
            return SYSTEMS[system].parameters
        record = self.records.find(kind="tuning", corpus=self.name, system=system)
        if record is None:
            found = self._child("tune", system)
            print(f"{self.name}, {system}: {found['parameters']}", flush=True)
            head = {"kind": "tuning", "corpus": self.name, "system": system}
            record = self.records.add({**head, **found})
        return record["parameters"]

    def _compile(self, system, parameters):
        """Fill the cache of compiled code by an epoch, which no run is to pay for."""
        if system not in self._compiled and SYSTEMS[system].package == "skstruct":
            self._child("run", system, json.dumps({**parameters, "max_iter": 1}), 0)
            self._compiled.add(system)

    def test_all(self, systems, n_seeds):
        """Test finished runs against what their systems are compared with now."""
        for system in [*sorted({reference_of(system) for system in systems}), *systems]:
            for seed in range(n_seeds if SYSTEMS[system].seeded else 1):
                self.test(system, seed)

    def test(self, system, seed):
        """Learn again for the labels of a finished run, and test them; its times stay.

        A system that is not repeatable gets no test.
        """
        which = {"corpus": self.name, "system": system, "seed": seed}
        known = self.records.find(kind="run", **which)
        reference = reference_of(system)
        tested = self.records.find(kind="test", **which) or known or {}
        is_reference = system in (REFERENCE, TUNED_REFERENCE)
        if not known or "mistakes" in tested or tested.get("reference") == reference:
            return
        mistakes = self._again(system, seed, known)
        if mistakes is None:
            return
        entries = {"mistakes": mistakes} if is_reference else self._compared(mistakes, reference)
        self.records.add({"kind": "test", **which, **entries})
        print(f"{self.name}, {system}, seed {seed}: tested", flush=True)

    def _again(self, system, seed, known):
        """Mistakes of a finished run, learnt once more; None if it has another score now."""
        found = self._child("run", system, json.dumps(known["parameters"]), seed)
        if np.isclose(found["score"], known["score"], rtol=0, atol=1e-9):
            return found["mistakes"]
        print(f"{self.name}, {system}, seed {seed}: another score than before.", flush=True)
        return None

    def test_pair(self, system, other, n_seeds):
        """Test the finished runs of a system against those of another, all seeds on both sides."""
        if self.records.find(kind="pair", corpus=self.name, system=system, other=other):
            return
        sides = []
        for name in (system, other):
            runs = self.records.runs_of(self.name, name, n_seeds)
            mistakes = [self._again(name, run["seed"], run) for run in runs]
            if not runs or None in mistakes:
                return
            sides.append([unpack_mistakes(one, self._test_labels) for one in mistakes])
        found = self._compare(*sides)
        self.records.add(
            {"kind": "pair", "corpus": self.name, "system": system, "other": other, **found}
        )
        print(f"{self.name}, {system} beside {other}: tested", flush=True)

    def _compare(self, runs, others):
        groups = self._corpus.groups and self._corpus.groups(self._test_labels)
        return compare_labels(self._test_labels, runs, others, self._corpus.measure, groups)

    def _compared(self, mistakes, reference):
        """Entries of a record: the reference, and what the test of the difference has found."""
        labels = unpack_mistakes(mistakes, self._test_labels)
        return {"reference": reference, **self._compare([labels], [self._labels_of(reference)])}

    def _child(self, action, system, *arguments):
        n_fits = sum(map(len, SYSTEMS[system].grid.values())) if action == "tune" else 1
        limit = self._limit and n_fits * self._limit
        child = "which_tagger.child"
        folder = self._words if SYSTEMS[system].words else self._folder
        return run_child(child, action, folder, system, *arguments, timeout=limit)
