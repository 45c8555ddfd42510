"""Learners, lengths of pieces, and the runs that are finished."""

import json
import time
from functools import cached_property
from hashlib import sha256

import numpy as np

import skstruct.utils.progress
from benchmarks.common.runs import Records
from benchmarks.common.significance import compare_seeds
from benchmarks.search_based.tasks import read_hapt_users, score
from benchmarks.structure.corpora import load_splits, without_edges
from skstruct import CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger

# Epochs are measured in processor time, in which other work on the machine counts less.
skstruct.utils.progress.perf_counter = time.process_time

SEEDS, EPOCHS, CHOOSING_EPOCHS = 5, 10, 5
LENGTHS = (None, 2.5, 5.5, 10.5, 20.5)
# Learners of the paper's figures, which have all lengths on the test set as well.
FIGURES = ("Perceptron", "CRF")
# After ten epochs the rate is as small as a decay of 0.9 makes it after twenty.
DECAY = 0.8
LEARNERS = {
    "Perceptron": lambda corpus: PerceptronTagger(average=True),
    "CRF": lambda corpus: CRFTagger(solver="sgd", decay=DECAY, **corpus.crf),
    "CRF, averaged": lambda corpus: CRFTagger(
        solver="sgd", decay=DECAY, average=True, **corpus.crf
    ),
    "SAPO": lambda corpus: SAPOTagger(n_best=5, decay=DECAY, **corpus.sapo),
    "MIRA": lambda corpus: MIRATagger(average=True),
}
# Learns from whole sequences only, and without epochs.
WHOLE = {"CRF, L-BFGS": lambda corpus: CRFTagger(l2=corpus.crf["l2"])}
# Without runs on some corpora.
OPTIONAL = ("CRF, averaged",)
# What is compared: edges and cut of one system, then of the other.
COMPARISONS = {
    "pieces": ((False, True), (False, False)),
    "pieces with edges": ((True, True), (True, False)),
    "edges": ((True, False), (False, False)),
    "edges and pieces": ((True, True), (False, False)),
}


class StructureRecords(Records):
    """Finished runs, choices of lengths, comparisons, and sizes of corpora."""

    names = ("kind", "corpus", "learner", "edges", "length", "part", "seed", "what")


class Runs:
    """A way to make the runs on a corpus."""

    def __init__(self, name, corpus, records, folder, data, *, epochs=EPOCHS, seeds=SEEDS):
        self.name, self.corpus, self.records = name, corpus, records
        self.cache, self.data, self.epochs, self.seeds = folder / "cache", data, epochs, seeds

    @cached_property
    def splits(self):
        return load_splits(self.name, self.corpus, self.data, self.cache)

    def make_all(self, learners, lengths=LENGTHS):
        """Choose lengths, make the runs on the test set, and compare them."""
        self.describe()
        for learner in learners:
            for edges in (True, False):
                if learner in WHOLE:
                    self.run(learner, edges, None, "test", 0, None)
                    continue
                chosen = self.choose(learner, edges, lengths)
                cuts = lengths if learner in FIGURES else {None, chosen}
                for seed in range(self.seeds):
                    for cut in cuts:
                        self.run(learner, edges, cut, "test", seed, self.epochs)
            for what in COMPARISONS if learner in LEARNERS else ():
                self.compare(learner, what)

    def describe(self):
        """Note the sizes of the corpus."""
        if not self.records.find(kind="sizes", corpus=self.name):
            train = self.splits["train"]
            self.records.add(
                {
                    "kind": "sizes",
                    "corpus": self.name,
                    **{part: len(self.splits[part].X) for part in ("train", "dev", "test")},
                    "mean": train.X.n_rows / len(train.X),
                    "labels": len(set(np.concatenate(train.y))),
                    "features": train.X.n_features,
                    "edge_features": train.X.n_transition_features,
                }
            )

    def choose(self, learner, edges, lengths):
        """Mean length of the pieces by the development set, with one seed."""
        head = {"kind": "choice", "corpus": self.name, "learner": learner, "edges": edges}
        known = self.records.find(**head)
        if known is None:
            n_epochs = min(CHOOSING_EPOCHS, self.epochs)
            runs = [self.run(learner, edges, n, "dev", 0, n_epochs) for n in lengths]
            # Of equal scores, that of the longest pieces: no cut comes first, the shortest last.
            order = sorted(range(len(lengths)), key=lambda i: -(lengths[i] or np.inf))
            best = max(order, key=lambda i: runs[i]["score"][-1])
            known = self.records.add({**head, "chosen": lengths[best]})
        return known["chosen"]

    def run(self, learner, edges, length, part, seed, epochs):
        """A run, made now unless it is finished."""
        head = {"kind": "run", "corpus": self.name, "learner": learner, "edges": edges}
        head |= {"length": length, "part": part, "seed": seed}
        known = self.records.find(**head)
        if known is None:
            learn = self._learn if epochs else self._learn_at_once
            known = self.records.add({**head, **learn(head, epochs)})
            print(time.strftime("%H:%M:%S"), *head.values(), known["score"][-1], flush=True)
        return known

    def _learn(self, head, epochs):
        """Score, loss and time of each epoch; the last predictions go into the cache."""
        learnt = self.splits["fit" if head["part"] == "dev" else "train"]
        held = self.splits[head["part"]]
        views = [(b if head["edges"] else without_edges(b)) for b in (learnt.X, held.X)]
        tagger = LEARNERS[head["learner"]](self.corpus)
        tagger.set_params(
            mini_length=head["length"], random_state=np.random.RandomState(head["seed"])
        )
        classes, found = np.unique(np.concatenate(learnt.y)), {"score": [], "time": [], "loss": []}
        for epoch in range(epochs):
            tagger.partial_fit(views[0], learnt.y, classes=classes)
            history = tagger.history_
            found["time"].append(round(float(history["time"][-1]), 4))
            penalty = getattr(tagger, "l2", 0.0) / 2 * history["weight_norm"][-1] ** 2
            found["loss"].append(round(float(history["loss"][-1] + penalty), 2))
            if head["part"] == "test" or epoch == epochs - 1:
                predicted = tagger.predict(views[1])
                found["score"].append(round(score(self.corpus.task, held.y, predicted), 3))
        if head["part"] == "test":
            codes = np.searchsorted(tagger.classes_, np.concatenate(predicted)).astype(np.int16)
            np.save(self._path(head), codes)
        return found

    def _learn_at_once(self, head, _):
        """Score and seconds of a fit."""
        learnt, held = self.splits["train"], self.splits[head["part"]]
        views = [(b if head["edges"] else without_edges(b)) for b in (learnt.X, held.X)]
        tagger, begin = WHOLE[head["learner"]](self.corpus), time.process_time()
        tagger.fit(views[0], learnt.y)
        seconds = time.process_time() - begin
        found = score(self.corpus.task, held.y, tagger.predict(views[1]))
        return {"score": [round(found, 3)], "time": [round(seconds, 4)]}

    def _path(self, head):
        name = sha256(
            json.dumps([head[name] for name in self.records.names[1:-1]]).encode()
        ).hexdigest()
        return self.cache / f"{name[:24]}.npy"

    def compare(self, learner, what):
        """Test a difference on the test set, with each pair of seeds.

        Recordings of a user are swapped together.
        """
        head = {"kind": "test", "corpus": self.name, "learner": learner, "what": what}
        known = self.records.find(**head)
        if known is not None:
            return known
        sides = [self._side(learner, *side) for side in COMPARISONS[what]]
        if sides[0] == sides[1]:
            return None
        f1 = self.corpus.task.measure != "accuracy"
        labels = ([self._predictions(head) for head in heads] for heads in sides)
        measure = "chunk_f1" if f1 else "token_accuracy"
        groups = read_hapt_users(self.data)["test"] if self.name == "hapt" else None
        result = compare_seeds(self.splits["test"].y, *labels, measure, groups)
        found = {"difference": 100 * result.difference, "p": result.p, "seeds": self.seeds}
        return self.records.add({**head, **found})

    def _side(self, learner, edges, cut):
        """Heads of the runs of one system, one for each seed."""
        length = self.choose(learner, edges, LENGTHS) if cut else None
        head = {"corpus": self.name, "learner": learner, "edges": edges, "length": length}
        return [{**head, "part": "test", "seed": seed} for seed in range(self.seeds)]

    def _predictions(self, head):
        classes = np.unique(np.concatenate(self.splits["train"].y))
        labels = classes[np.load(self._path(head))]
        return np.split(labels, self.splits["test"].X.offsets[1:-1])
