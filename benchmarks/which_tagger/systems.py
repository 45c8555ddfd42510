"""The systems: how each learns, tags and is stored, and which of its parameters are tuned.

A learner is made from parameters and a seed. One more system is a class with the methods of
`SkstructLearner`, and an entry of `SYSTEMS`. Nothing here imports a library before it is used, so
that none pays for the others.
"""

import tempfile
from functools import partial
from pathlib import Path
from time import process_time
from typing import NamedTuple
from zipfile import ZIP_DEFLATED

MEGABYTE = 1e6


class SkstructLearner:
    """A tagger of skstruct."""

    def __init__(self, kind, parameters, seed):
        import skstruct

        self.tagger = getattr(skstruct, kind)(random_state=seed, **parameters)

    def warm_up(self, X, y):
        """Load compiled code."""
        from sklearn.base import clone

        clone(self.tagger).fit(X, y).predict(X)

    def fit(self, X, y):
        """Learn; return the seconds of the processor, without conversions of the benchmark."""
        start = process_time()
        self.tagger.fit(X, y)
        return process_time() - start

    def inputs(self, X):
        """What `tag` takes."""
        return X

    def tag(self, inputs):
        """Lists of labels."""
        return self.tagger.predict(inputs).tolist()

    def megabytes(self):
        """Sizes of the stored model by format; the tagger is of no use any more."""
        import numpy as np
        import skops.io

        from skstruct.crfsuite import write_model

        stored = len(skops.io.dumps(self.tagger, compression=ZIP_DEFLATED))
        # CRFsuite's format has no biases, and needs names.
        for name in ("intercept_", "start_", "end_"):
            setattr(self.tagger, name, np.zeros_like(getattr(self.tagger, name)))
        has_names = hasattr(self.tagger, "feature_names_in_")
        names = None if has_names else column_names(self.tagger.n_features_in_)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.crfsuite"
            write_model(self.tagger, path, feature_names=names)
            return {"skops": stored / MEGABYTE, "crfsuite": path.stat().st_size / MEGABYTE}


class CRFsuiteLearner:
    """An algorithm of CRFsuite, which has no seed: it depends on the order of the sequences."""

    def __init__(self, algorithm, parameters, seed):
        import pycrfsuite

        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "model.crfsuite"
        self._trainer = pycrfsuite.Trainer(algorithm=algorithm, params=parameters, verbose=False)
        self._tagger = pycrfsuite.Tagger()

    def warm_up(self, X, y):
        """Nothing to load."""

    def fit(self, X, y):
        """Learn; return the seconds of the processor, without conversions of the benchmark."""
        seconds = 0.0
        for sequence, labels in zip(X, y, strict=True):
            items = as_items(sequence)
            start = process_time()
            self._trainer.append(items, labels)
            seconds += process_time() - start
        start = process_time()
        self._trainer.train(str(self._path))
        self._tagger.open(str(self._path))
        return seconds + process_time() - start

    def inputs(self, X):
        """What `tag` takes."""
        return list(map(as_items, X))

    def tag(self, inputs):
        """Lists of labels."""
        return [self._tagger.tag(items) for items in inputs]

    def megabytes(self):
        """Size of the model file."""
        return {"crfsuite": self._path.stat().st_size / MEGABYTE}


def as_items(sequence):
    """Attribute strings as they are; rows of numbers as dicts, without zeros."""
    if isinstance(sequence, list):
        return sequence
    names = column_names(sequence.shape[1])
    return [
        {name: value for name, value in zip(names, row, strict=True) if value}
        for row in sequence.tolist()
    ]


def column_names(n_columns):
    """Names of numbers."""
    return [f"x{column}" for column in range(n_columns)]


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
REFERENCE = "CRFsuite lbfgs"
CRFSUITE = {
    f"CRFsuite {algorithm}": System(
        partial(CRFsuiteLearner, algorithm), "pycrfsuite", {}, algorithm != "lbfgs"
    )
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow")
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
SYSTEMS = {**CRFSUITE, **DEFAULTS, **TUNED}
# Systems of `benchmarks.neural`, whose finished runs are in the same tables.
NEURAL = ("Bi-LSTM", "Bi-LSTM-CRF")
# Corpora and systems of a quick run.
QUICK = [
    ("addresses", [REFERENCE, "CRFsuite ap", "CRFTagger", "PerceptronTagger, tuned"]),
    ("digits", [REFERENCE, "PerceptronTagger"]),
]
