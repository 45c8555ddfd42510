"""The runs: those that are finished, how one more is made, and what is compared."""

import json
import time
from functools import cached_property
from itertools import product

from benchmarks.common.processes import run_child
from benchmarks.common.report import machine
from benchmarks.common.runs import Records
from benchmarks.which_tagger.child import read_part, unpack_mistakes
from benchmarks.which_tagger.corpora import prepare, prepare_tokens
from benchmarks.which_tagger.plan import compare_labels
from benchmarks.which_tagger.systems import (
    CHOSEN,
    NETWORKS,
    NEURAL,
    REFERENCE,
    SYSTEMS,
    TUNED_NETWORKS,
)

SEEDS = 3
LINEAR = ("CRFTagger", "CRFTagger, tuned", "SAPOTagger", "SAPOTagger, tuned")
QUICK_LINEAR = ("SAPOTagger",)


def comparisons(systems):
    """Pairs of systems, of which the second is taken from the first; tuned beside tuned."""
    pairs = [("Bi-LSTM-CRF", "Bi-LSTM"), *zip(TUNED_NETWORKS, NETWORKS, strict=True)]
    pairs += product(NETWORKS, LINEAR)
    pairs += product(TUNED_NETWORKS, [system for system in LINEAR if system in CHOSEN])
    return [pair for pair in pairs if set(pair) <= set(systems)]


class NeuralRecords(Records):
    """Records of finished runs, of tests, and descriptions of corpora."""

    names = ("kind", "corpus", "system", "other", "seed")

    def runs_of(self, corpus, system, n_seeds=SEEDS):
        """Runs of a system with all its seeds; an empty list where some are missing."""
        seeded = system in NEURAL or SYSTEMS[system].seeded
        seeds = range(n_seeds if seeded else 1)
        runs = [self.find(kind="run", corpus=corpus, system=system, seed=seed) for seed in seeds]
        return [] if None in runs else runs


class Runs:
    """A way to make the runs on a corpus.

    `others` has the records of `which_tagger`, with the parameters of the tuned taggers, and the
    runs of its reference. What it does not have is left out.
    """

    def __init__(self, name, task, records, others, cache):
        self.name, self.task, self.records, self._others = name, task, records, others
        self._folders = {kind: cache / kind / name for kind in ("tokens", "features")}

    def make_all(self, linear, n_seeds):
        """Make the runs, in which systems take turns, and then the comparisons."""
        self.describe()
        networks = NEURAL if self.task.tuned else NETWORKS
        systems = [s for s in (*linear, *networks) if self._parameters(s) is not None]
        for seed in range(n_seeds):
            for system in systems:
                if system in NEURAL or seed == 0 or SYSTEMS[system].seeded:
                    self.make(system, seed)
        for system, other in comparisons(systems):
            self.compare(system, other, n_seeds)
        for system in networks:
            for seed in range(n_seeds):
                self.compare_with_reference(system, seed)

    def describe(self):
        """Prepare the corpus, and note its sizes."""
        prepare(self.task.corpus, self._folders["features"])
        description = prepare_tokens(self.task.corpus, self._folders["tokens"])
        if not self.records.find(kind="corpus", corpus=self.name):
            self.records.add({"kind": "corpus", "corpus": self.name, **description})

    def make(self, system, seed):
        """Make a run, unless it is finished."""
        head = {"kind": "run", "corpus": self.name, "system": system, "seed": seed}
        if self.records.find(**head):
            return
        parameters = self._parameters(system)
        folder = self._folders["tokens" if system in NEURAL else "features"]
        option = ["--again"] if system in NEURAL and self.task.again else []
        if system not in NEURAL and seed == 0:
            # An epoch fills the cache of compiled code, which no run is to pay for.
            epoch = json.dumps({**parameters, "max_iter": 1})
            run_child("neural.child", folder, system, epoch, seed)
        found = run_child("neural.child", folder, system, json.dumps(parameters), seed, *option)
        self.records.add({**head, "parameters": parameters, **found, "machine": machine()})
        shown = {key: round(found[key], 2) for key in ("score", "seconds", "epochs", "memory")}
        print(time.strftime("%H:%M:%S"), self.name, system, seed, shown, flush=True)

    def _parameters(self, system):
        """Parameters of a system; None if none were chosen."""
        if system in NETWORKS:
            return self.task.settings
        if system in TUNED_NETWORKS:
            return self._tuned(system)["parameters"]
        if not SYSTEMS[system].grid:
            return SYSTEMS[system].parameters
        found = self._others.find(kind="tuning", corpus=self.name, system=system)
        return found and found["parameters"]

    def _tuned(self, system):
        """Settings of a tuned network, chosen now unless they are known."""
        head = {"kind": "tuning", "corpus": self.name, "system": system}
        known = self.records.find(**head)
        if known is None:
            settings = json.dumps(self.task.settings)
            found = run_child(
                "neural.child", self._folders["tokens"], system, settings, 0, "--tune"
            )
            known = self.records.add({**head, **found})
            print(time.strftime("%H:%M:%S"), self.name, system, found, flush=True)
        return known

    @cached_property
    def _test_labels(self):
        return read_part(self._folders["tokens"], "test")[1]

    def compare(self, system, other, n_seeds):
        """Test a difference, which has to show with each pair of seeds."""
        head = {"kind": "test", "corpus": self.name, "system": system, "other": other}
        if self.records.find(**head):
            return
        sides = [self._predictions(name, n_seeds) for name in (system, other)]
        self.records.add({**head, **self._compared(*sides), "seeds": n_seeds})

    def compare_with_reference(self, system, seed):
        """Test a run against the reference of `which_tagger`, as that does with its own."""
        which = {"corpus": self.name, "system": system, "seed": seed}
        head = {"kind": "test", **which, "other": REFERENCE}
        reference = self._others.find(kind="run", corpus=self.name, system=REFERENCE, seed=0)
        if reference is None or self.records.find(**head):
            return
        runs = self.records.find(kind="run", **which), reference
        sides = ([unpack_mistakes(run["mistakes"], self._test_labels)] for run in runs)
        self.records.add({**head, **self._compared(*sides)})

    def _compared(self, *sides):
        """What the test of a difference has found."""
        corpus = self.task.corpus
        groups = corpus.groups and corpus.groups(self._test_labels)
        return compare_labels(self._test_labels, *sides, corpus.measure, groups)

    def _predictions(self, system, n_seeds):
        """Labels by all seeds; of a system without seeds by one."""
        runs = self.records.runs_of(self.name, system, n_seeds)
        return [unpack_mistakes(run["mistakes"], self._test_labels) for run in runs]
