"""Systems, settings that are tried, experiments, and the runs that are finished."""

import time

import numpy as np

import skstruct.utils.progress
from benchmarks.common.runs import Records
from benchmarks.search_based.tasks import load_task, score, sentence_counts
from skstruct import CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger

# Epochs are measured in processor time, in which other work on the machine counts less.
skstruct.utils.progress.perf_counter = time.process_time

EPOCHS, TUNING_EPOCHS = 20, 15
CLASSES = {
    "perceptron": PerceptronTagger,
    "mira": MIRATagger,
    "sapo": SAPOTagger,
    "crf": CRFTagger,
    "lbfgs": CRFTagger,
}
FIXED = {
    "crf": {"solver": "sgd"},
    # The same weights as the others have: all combinations of features and labels.
    "lbfgs": {"all_possible_states": True, "all_possible_transitions": True, "tol": 1e-3},
}
N_BEST = (1, 2, 5, 10, 20, 50)
MINI_LENGTHS = (1.5, 2.5, 3.5, 5.5, 10.5, 15.5, 20.5)
MIRA_STEPS = {
    "as above": {"C": 1.0},
    "no cap": {"C": 1e6},
    "one constraint after another": {"C": 1.0, "update": "sequential"},
    "... no cap, 0/1 cost": {"C": 1e6, "update": "sequential", "cost": "zero_one"},
}
TUNING_LENGTHS = (2.5, 5.5, 10.5, 20.5)
DECAY = 0.9
L2 = (0.1, 0.5, 1.0, 2.0, 5.0)
CAPS = (0.001, 0.01, 0.1, 1.0)


def main_systems(chosen):
    """Systems that are compared by epoch: title, class and parameters."""
    yield "SAPO", "sapo", {"n_best": 5, **chosen["sapo"]}
    yield "CRF", "crf", chosen["crf"]
    yield "SAPO, averaged", "sapo", {"n_best": 5, **chosen["sapo"], "average": True}
    yield "CRF, averaged", "crf", {**chosen["crf"], "average": True}
    for title, average in (("Naive", False), ("Avg", True)):
        yield f"Perc-{title}", "perceptron", {"average": average}
        yield f"MIRA-{title}", "mira", {"n_best": 1, "C": 1.0, "average": average}
        yield f"MIRA-Nbest-{title}", "mira", {"n_best": 5, "C": 1.0, "average": average}
    yield "MIRA-Nbest-Avg, C chosen", "mira", {"n_best": 5, "average": True, **chosen["mira"]}


def epoch_runs(chosen):
    """The main systems: class, parameters, and the number of epochs between two scores."""
    for _, system, parameters in main_systems(chosen):
        yield system, parameters, 1


def n_runs(chosen):
    """SAPO by the number of labellings."""
    for n in N_BEST:
        yield "sapo", {"n_best": n, **chosen["sapo"]}, 1


def cut_runs(chosen):
    """Structure regularisation by the mean length of the pieces."""
    for length in MINI_LENGTHS:
        yield "perceptron", {"average": True, "mini_length": length}, 5
        yield "crf", {**chosen["crf"], "mini_length": length}, 5


def step_runs(chosen):
    """Other steps of n-best MIRA."""
    for options in MIRA_STEPS.values():
        yield "mira", {"n_best": 5, "average": True, **options}, 5


EXPERIMENTS = {"epochs": epoch_runs, "n": n_runs, "steps": step_runs, "cut": cut_runs}


def new_tagger(system, parameters, seed, **more):
    given = {**FIXED.get(system, {}), **parameters, **more}
    if system != "lbfgs":
        given["random_state"] = np.random.RandomState(seed)
    return CLASSES[system](**given)


class TaskRecords(Records):
    """Finished runs of a task."""

    names = ("system", "parameters", "part", "seed", "epochs")


class Runs:
    """The finished runs of a task, and a way to make more.

    No runs are made of the systems in `without`, and none at all if `frozen`, for a report.
    """

    def __init__(self, name, task, data, results, *, without=(), frozen=False, full=False):
        self.name, self.task, self.without, self.frozen = name, task, without, frozen
        self._records = TaskRecords(results / f"{name}{'-full' if full else ''}.jsonl")
        self._source, self._full = (name, task, data, results / "cache"), full
        self._splits = None

    def __len__(self):
        return len(self._records)

    @property
    def splits(self):
        if self._splits is None:
            self._splits = load_task(*self._source, full=self._full)
            if not self.frozen:
                warm_up(self._splits["test"], set(CLASSES) - set(self.without))
        return self._splits

    def get(self, system, parameters, part, seed, epochs, every=1):
        """A run, made now unless it is finished; None if it may not be made."""
        head = {"system": system, "parameters": parameters, "part": part, "seed": seed}
        head["epochs"] = epochs
        run = self._records.find(**head)
        if run is None and not (self.frozen or system in self.without):
            run = self._records.add({**head, **make_run(self.task, self.splits, head, every)})
            now, seconds = time.strftime("%H:%M:%S"), np.median(run["time"] or [np.nan])
            scores = np.round(run["score"][-1:], 2)
            print(now, self.name, part, seed, system, parameters, scores, f"{seconds:.3f}")
        return run

    def final(self, system, parameters):
        """The finished runs on the test set, one for each seed."""
        head = {"system": system, "parameters": parameters, "part": "test"}
        head["epochs"] = 1 if system == "lbfgs" else EPOCHS
        found = (self._records.find(**head, seed=seed) for seed in range(100))
        return [run for run in found if run is not None]

    def choose(self, system, tried, fixed):
        """Best settings of those tried, by the development set."""
        scores = []
        for parameters in tried:
            run = self.get(system, {**fixed, **parameters}, "dev", 0, TUNING_EPOCHS, TUNING_EPOCHS)
            scores.append(run["score"][-1] if run and run["score"] else -np.inf)
        return {**fixed, **tried[int(np.argmax(scores))]}

    def tune(self):
        """Settings chosen on the development set: the rate, then the penalty; the cap of MIRA."""
        chosen = {}
        for system, fixed in (("sapo", {"n_best": 5}), ("crf", {})):
            rates = [{"learning_rate": rate} for rate in self.task.rates]
            best = self.choose(system, rates, {**fixed, "decay": DECAY, "l2": 1.0})
            best = self.choose(system, [{"l2": l2} for l2 in L2], best)
            chosen[system] = {k: v for k, v in best.items() if k != "n_best"}
        caps = [{"C": cap} for cap in CAPS]
        chosen["mira"] = {"C": self.choose("mira", caps, {"n_best": 5, "average": True})["C"]}
        return chosen

    def tune_cut(self, chosen):
        """Mean lengths of the pieces chosen on the development set."""
        lengths = [{"mini_length": length} for length in (None, *TUNING_LENGTHS)]
        fixed = {"perceptron": {"average": True}, "crf": chosen["crf"]}
        return {
            system: self.choose(system, lengths, parameters)["mini_length"]
            for system, parameters in fixed.items()
        }


def make_run(task, splits, head, every):
    """Learn epoch by epoch, and note scores, times and weights."""
    learnt, held = splits["fit" if head["part"] == "dev" else "train"], splits[head["part"]]
    found = {"epoch": [], "score": [], "norm": [], "magnitude": [], "time": [], "mistakes": []}
    try:
        for epoch, tagger in enumerate(epochs_of(head, learnt), 1):
            history = tagger.history_
            found["time"].append(history["time"][-1])
            if epoch % every and epoch != head["epochs"]:
                continue
            predicted = tagger.predict(held.X)
            found["epoch"].append(epoch)
            found["score"].append(score(task, held.y, predicted))
            found["norm"].append(history["weight_norm"][-1])
            found["magnitude"].append(np.abs(tagger.coef_).mean())
            if "mistakes" in history:
                found["mistakes"].append(history["mistakes"][-1])
    except ValueError as error:
        # The learning rate is too high: the run counts as the worst.
        return {**found, "score": [], "error": str(error)}
    if head["part"] == "test":
        found["counts"] = sentence_counts(task, held.y, predicted)
    return found


def epochs_of(head, learnt):
    """The tagger after each epoch; its random state goes on from epoch to epoch."""
    tagger = new_tagger(head["system"], head["parameters"], head["seed"])
    if head["system"] == "lbfgs":
        yield tagger.fit(learnt.X, learnt.y)
        return
    for _ in range(head["epochs"]):
        yield tagger.partial_fit(learnt.X, learnt.y)


def warm_up(split, systems):
    """Compile or load what will be timed."""
    for system in systems:
        new_tagger(system, {}, 0).fit(split.X[:3], split.y[:3]).predict(split.X[:3])
