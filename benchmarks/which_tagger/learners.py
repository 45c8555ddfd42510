"""Learning and tagging with each system, and the size of its model.

A learner is made from parameters and a seed. Nothing here imports a library before it is used, so
that none pays for the others.
"""

import ctypes
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from zipfile import ZIP_DEFLATED

MEGABYTE = 1e6
# CRFsuite drops a weight if the values of its attribute with its label add up to less than this,
# which is 0 by default: of standardised numbers it drops a third.
EVERY_WEIGHT = {"feature.minfreq": -1e9}


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


class FileLearner:
    """Another program, which has no code to load and writes a model file."""

    format = None  # of the file

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "model"

    def warm_up(self, X, y):
        """Nothing to load."""

    def megabytes(self):
        """Size of the model file."""
        return {self.format: self._path.stat().st_size / MEGABYTE}


class CRFsuiteLearner(FileLearner):
    """An algorithm of CRFsuite, which has no seed: it depends on the order of the sequences.

    With the parameter `biases`, tokens have the attributes of its tutorial that stand for the
    biases of a label, of a first token and of a last token.
    """

    format = "crfsuite"

    def __init__(self, algorithm, parameters, seed):
        import pycrfsuite

        super().__init__()
        parameters = {**EVERY_WEIGHT, **parameters}
        self._biases = parameters.pop("biases", False)
        self._trainer = pycrfsuite.Trainer(algorithm=algorithm, params=parameters, verbose=False)
        self._tagger = pycrfsuite.Tagger()

    def fit(self, X, y):
        """Learn; return the seconds of the processor, without conversions of the benchmark."""
        seconds = 0.0
        for sequence, labels in zip(X, y, strict=True):
            items = self._items(sequence)
            start = process_time()
            self._trainer.append(items, labels)
            seconds += process_time() - start
        start = process_time()
        self._trainer.train(str(self._path))
        self._tagger.open(str(self._path))
        return seconds + process_time() - start

    def inputs(self, X):
        """What `tag` takes."""
        return list(map(self._items, X))

    def tag(self, inputs):
        """Lists of labels."""
        return [self._tagger.tag(items) for items in inputs]

    def _items(self, sequence):
        items = as_items(sequence)
        return with_biases(items) if self._biases else items


def as_items(sequence):
    """Attribute strings as they are; rows of numbers as dicts, without zeros."""
    if isinstance(sequence, list):
        return sequence
    names = column_names(sequence.shape[1])
    return [
        {name: value for name, value in zip(names, row, strict=True) if value}
        for row in sequence.tolist()
    ]


def with_biases(items):
    """Items with the attributes "bias", and "BOS" and "EOS" at the ends."""
    last = len(items) - 1
    extra = [["bias", *["BOS"] * (t == 0), *["EOS"] * (t == last)] for t in range(len(items))]
    return [
        {**item, **dict.fromkeys(names, 1.0)} if isinstance(item, dict) else [*item, *names]
        for item, names in zip(items, extra, strict=True)
    ]


def column_names(n_columns):
    """Names of numbers."""
    return [f"x{column}" for column in range(n_columns)]


class CRFppLearner(FileLearner):
    """CRF++, which has one feature for each attribute with each label.

    It reads columns and makes features of them by templates. Here each column is an attribute, and
    a token with fewer attributes than others has "_" in the rest of the columns. Templates have the
    same name, so that it does not matter in which column an attribute is.
    """

    format = "crf++"

    def __init__(self, parameters, seed):
        self._options = [text for pair in parameters.items() for text in pair]
        super().__init__()
        self._width = self._tagger = None

    def fit(self, X, y):
        """Learn from a file of columns; return the seconds of the processor, without writing it."""
        from CRFPP import Tagger, crfpp_learn

        folder = Path(self._folder.name)
        self._width = max(len(item) for sequence in X for item in as_items(sequence))
        with open(folder / "train", "w", encoding="utf-8") as file:
            for sequence, labels in zip(X, y, strict=True):
                for line, label in zip(self._lines(sequence), labels, strict=True):
                    file.write(f"{line}\t{label}\n")
                file.write("\n")
        templates = [f"U:%x[0,{column}]" for column in range(self._width)]
        (folder / "template").write_text("\n".join([*templates, "B"]), encoding="utf-8")
        files = [str(folder / "template"), str(folder / "train"), str(self._path)]
        start = process_time()
        with silenced():
            failed = crfpp_learn(["crf_learn", "-p", "1", *self._options, *files])
        if failed:
            raise RuntimeError("CRF++ has not learnt a model.")
        self._tagger = Tagger(f"-m {self._path}")
        return process_time() - start

    def inputs(self, X):
        """Lines of columns; what a token has beyond those of the training set is left out."""
        return list(map(self._lines, X))

    def tag(self, inputs):
        """Lists of labels."""
        return list(map(self._tag, inputs))

    def _lines(self, sequence):
        rows = [names_of(item)[: self._width] for item in as_items(sequence)]
        return ["\t".join(row + ["_"] * (self._width - len(row))) for row in rows]

    def _tag(self, lines):
        self._tagger.clear()
        for line in lines:
            self._tagger.add(line)
        self._tagger.parse()
        return [self._tagger.y2(position) for position in range(len(lines))]


class WapitiLearner(FileLearner):
    """Wapiti, given lines of attributes; "u" and "b" stand for features of labels and of pairs."""

    format = "wapiti"

    def __init__(self, parameters, seed):
        from wapiti import Model

        super().__init__()
        self._model = Model(nthread=1, **parameters)

    def fit(self, X, y):
        """Learn; return the seconds of the processor, without conversions of the benchmark."""
        seconds = 0.0
        for sequence, labels in zip(X, y, strict=True):
            pairs = zip(wapiti_lines(sequence), labels, strict=True)
            text = "\n".join(f"{line}\t{label}" for line, label in pairs)
            start = process_time()
            self._model.add_training_sequence(text)
            seconds += process_time() - start
        start = process_time()
        with silenced():
            self._model.train()
        seconds += process_time() - start
        self._model.save(str(self._path))
        return seconds

    def inputs(self, X):
        """Lines of each sequence."""
        return ["\n".join(wapiti_lines(sequence)) for sequence in X]

    def tag(self, inputs):
        """Lists of labels."""
        return [self._model.label_sequence(text).decode().split() for text in inputs]


def wapiti_lines(sequence):
    """A line for each token."""
    return [
        "\t".join(["b", *(f"u{name}" for name in names_of(item))]) for item in as_items(sequence)
    ]


def names_of(item):
    """Attribute strings of a token without spaces, for systems that know no other values.

    Raises ValueError for values other than 1.
    """
    if isinstance(item, dict) and any(value != 1 for value in item.values()):
        raise ValueError("This system has no features with values other than 0 and 1.")
    return [name.replace(" ", "_") for name in item]


@contextmanager
def silenced():
    """Nothing is printed, by libraries in C either."""
    standard, libc = os.dup(1), ctypes.CDLL(None)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        libc.fflush(None)
        os.dup2(standard, 1)
        os.close(standard)
