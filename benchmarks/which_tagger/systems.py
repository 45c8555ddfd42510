"""The systems, and which of their parameters are tuned.

One more system is a learner, with the methods of `SkstructLearner`, and an entry of `SYSTEMS`.
"""

from functools import partial
from typing import NamedTuple

from benchmarks.which_tagger.learners import (
    CRFppLearner,
    CRFsuiteLearner,
    SkstructLearner,
    WapitiLearner,
)
from benchmarks.which_tagger.spacy_pipelines import SpacyLearner


class System(NamedTuple):
    """A learner with its parameters; with a `grid`, they are chosen on development data.

    The grid has lists of values by parameter. One parameter is chosen after the other, in this
    order, and the others keep their values meanwhile.
    """

    learner: object  # function of parameters and seed
    package: str  # that has to be installed
    parameters: dict
    seeded: bool = True  # False if the order of the sequences and the seed do not matter
    grid: dict = {}
    on_text: dict = {}  # more parameters of a tuned system, where features are strings
    values: bool = True  # False if features have no values but 0 and 1
    words: bool = False  # True if it is given words in place of features, and development data
    strings: bool = True  # False if it is run on numbers alone


L2 = [0.03, 0.1, 0.3, 1.0, 3.0]
# Class, parameters that are not defaults, whether seeds matter, and values to choose from.
TAGGERS = {
    "CRFTagger": ("CRFTagger", {}, False, {"l2": L2}),
    "CRFTagger, L1": (
        "CRFTagger",
        # The penalties of sklearn-crfsuite's tutorial.
        {"l1": 0.1, "l2": 0.2},
        False,
        {"l1": [0.03, 0.1, 0.3, 1.0], "l2": [0.02, 0.2]},
    ),
    "SDCACRF": ("SDCACRF", {}, True, {"l2": L2}),
    "SAPOTagger": (
        "SAPOTagger",
        {},
        True,
        {
            "learning_rate": [0.001, 0.01, 0.03, 0.1, 0.3],
            "average": [False, True],
            "l2": [0.1, 0.3, 1.0, 3.0],
        },
    ),
    "PerceptronTagger": (
        "PerceptronTagger",
        {},
        True,
        {"mini_length": [None, 2.5, 5.5, 10.5]},
    ),
    "MIRATagger": ("MIRATagger", {}, True, {"n_best": [1, 5], "C": [0.01, 0.1, 1.0]}),
    "AROWTagger": (
        "AROWTagger",
        {},
        True,
        {"gamma": [0.1, 1.0, 10.0, 100.0], "average": [False, True]},
    ),
}
# Systems of this library are compared with the same objective and biases (`same_objective`).
REFERENCE = "CRFsuite lbfgs, same objective"
CRFSUITE = {
    f"CRFsuite {algorithm}": System(
        partial(CRFsuiteLearner, algorithm), "pycrfsuite", {}, algorithm != "lbfgs"
    )
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow")
}
# On text 100 iterations, as in the tutorial, which act as early stopping and gain there.
PENALTIES = {"c2": [0.01, 0.03, 0.1, 0.3, 1.0], "c1": [0.0, 0.03, 0.1, 0.3, 1.0]}
CRFSUITE["CRFsuite lbfgs, tuned"] = CRFSUITE["CRFsuite lbfgs"]._replace(
    grid=PENALTIES, on_text={"max_iterations": 100}
)


def same_objective(l2=1.0):
    """Keywords of `CRFTagger`, and those of CRFsuite's `lbfgs` with the same objective."""
    return {"l2": l2}, {"c2": l2 / 2, "biases": True}


CRFSUITE[REFERENCE] = CRFSUITE["CRFsuite lbfgs"]._replace(parameters=same_objective()[1])
# As CRFsuite is called by default: see `learners.EVERY_WEIGHT`.
CRFSUITE["CRFsuite lbfgs, weights dropped"] = CRFSUITE["CRFsuite lbfgs"]._replace(
    parameters={"feature.minfreq": 0.0}, strings=False
)
# Their defaults: CRF++ has an L2 penalty, Wapiti's L-BFGS an elastic net that is nearly L1.
PEERS = {
    "CRF++": System(CRFppLearner, "CRFPP", {}, seeded=False, values=False),
    "Wapiti": System(WapitiLearner, "wapiti", {}, seeded=False, values=False),
    "spaCy": System(SpacyLearner, "spacy", {}, words=True),
}
DEFAULTS = {
    name: System(partial(SkstructLearner, kind), "skstruct", parameters, seeded)
    for name, (kind, parameters, seeded, _) in TAGGERS.items()
}
# With a small penalty the gap of millions of weights takes ten minutes or more to close.
ON_TEXT = {"SDCACRF": {"max_iter": 100}}
TUNED = {
    f"{name}, tuned": DEFAULTS[name]._replace(grid=grid, on_text=ON_TEXT.get(name, {}))
    for name, (*_, grid) in TAGGERS.items()
}
SYSTEMS = {**CRFSUITE, **PEERS, **DEFAULTS, **TUNED}
CHOSEN = [name for name, system in SYSTEMS.items() if system.grid]
TUNED_REFERENCE = "CRFsuite lbfgs, tuned"


def reference_of(system):
    """What a system is compared with: tuned ones with a tuned one."""
    return TUNED_REFERENCE if system in CHOSEN else REFERENCE


# Our own taggers whose order the advice states.
PAIRS = [(f"SAPOTagger{tuned}", f"CRFTagger{tuned}") for tuned in ("", ", tuned")]
# Systems of `benchmarks.neural`, whose finished runs are in the same tables.
NETWORKS = ("Bi-LSTM", "Bi-LSTM-CRF")
TUNED_NETWORKS = tuple(f"{network}, tuned" for network in NETWORKS)
NEURAL = (*NETWORKS, *TUNED_NETWORKS)
# Corpora and systems of a quick run.
QUICK = [
    (
        "addresses",
        [
            REFERENCE,
            "CRFsuite lbfgs, tuned",
            "CRFsuite ap",
            "CRF++",
            "Wapiti",
            "CRFTagger",
            "PerceptronTagger, tuned",
        ],
    ),
    ("digits", [REFERENCE, "PerceptronTagger"]),
]
