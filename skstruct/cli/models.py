"""Models: read from files of any format, asked for labels, and written whole or not at all."""

import zipfile
from functools import partial
from typing import NamedTuple

import click
from sklearn.pipeline import Pipeline

from skstruct.cli.layout import check_layout
from skstruct.cli.options import FILE, NewFile, require_other_files
from skstruct.cli.text import errors_name_lines
from skstruct.crfpp import read_model as read_crfpp
from skstruct.crfpp import write_model as write_crfpp
from skstruct.crfsuite.model import read_model as read_crfsuite
from skstruct.crfsuite.model import write_model as write_crfsuite
from skstruct.input.schemes import labels_of_spans, scheme_of_classes
from skstruct.utils.files import os_errors_name, write_whole
from skstruct.utils.persistence import archived, load_archive

# Attribute of a stored estimator: the layout of the files that it was trained on.
LAYOUT = "file_layout_"


class Model(NamedTuple):
    """A fitted tagger or reranker, and the vectoriser of its input."""

    estimator: object
    vectorizer: object = None  # None: it takes feature dicts or attributes itself
    layout: dict | None = None  # of the files that it was trained on

    @property
    def is_reranker(self):
        """True for a model that chooses among candidates."""
        return hasattr(self.estimator, "rank")

    def as_estimator(self):
        """Return a single estimator, a pipeline if there is a vectoriser."""
        found = self.estimator
        if self.vectorizer is not None:
            found = Pipeline([("features", self.vectorizer), ("tagger", found)])
        if self.layout is not None:
            setattr(found, LAYOUT, self.layout)
        return found


def _as_model(stored):
    layout = getattr(stored, LAYOUT, None)
    check_layout(layout)
    vectorizer, estimator = None, stored
    if hasattr(stored, "steps"):
        vectorizer = stored.steps[0][1] if len(stored.steps) == 2 else stored[:-1]
        estimator = stored.steps[-1][1]
    if not hasattr(estimator, "predict"):
        raise ValueError(f"{type(estimator).__name__} is not a tagger and not a reranker.")
    if not (vectorizer is None or hasattr(vectorizer, "transform")):
        raise ValueError(f"{type(vectorizer).__name__} is not a vectoriser.")
    # Raises an error where a parameter is missing.
    stored.get_params()
    return Model(estimator, vectorizer, layout)


_ADVICE = " If you trust them, load the model in Python with skops.io.load."
# Readers of model files, by the first bytes.
_READERS = {
    b"PK\x03\x04": partial(load_archive, advice=_ADVICE),
    b"lCRF": read_crfsuite,
    b"vers": read_crfpp,
}


def _reader_of(path):
    """Reader of a model file."""
    with os_errors_name(path), open(path, "rb") as file:
        head = file.read(4)
    if head in _READERS:
        return _READERS[head]
    hint = ""
    if head == b"\x64\x00\x00\x00":
        hint = " Binary models of CRF++ cannot be read; `crfpp learn -t` writes them as text, too."
    raise ValueError(f"{path}: this is not a model of skops, CRFsuite or CRF++.{hint}")


def load_model(path):
    """Load a model.

    Parameters
    ----------
    path : str
        A model as `store_model` writes it, a model of CRFsuite, or a text model of CRF++.

    Returns
    -------
    model : Model

    Raises
    ------
    ValueError
        If the file is damaged, has types that are not skstruct's or scikit-learn's, or does not
        fit into memory.
    """
    read = _reader_of(path)
    try:
        return _as_model(read(path))
    except MemoryError as error:
        raise MemoryError(f"{path}: there is not enough memory for this model. {error}") from error
    except ValueError as error:
        # Some readers name the file themselves.
        raise ValueError(str(error) if path in str(error) else f"{path}: {error}") from error
    except Exception as error:
        # For a file that is intact, readers raise nothing else.
        found = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path}: the file is damaged, or was changed ({found})") from error


def store_model(model, path):
    """Store a model in the format of skops.

    Parameters
    ----------
    model : Model
    path : str

    Returns
    -------
    size : int
        Bytes of the file.
    """
    content = archived(model.as_estimator(), compression=zipfile.ZIP_DEFLATED, compresslevel=1)
    write_whole(path, content)
    return len(content)


# Answers


class Details(NamedTuple):
    """Optional contents of an answer, besides the best labels."""

    n_best: int | None = None
    marginals: bool = False  # the probability of each label that is predicted
    all_marginals: bool = False  # the probabilities of all labels
    spans: bool = False  # chunks and their probabilities, in place of the best labels
    threshold: float = 0.5  # probability that chunks are to exceed

    @property
    def any_marginals(self):
        """True if the answer has probabilities of labels."""
        return self.marginals or self.all_marginals


class Answer(NamedTuple):
    """Labels of a sequence, or the candidate of a group."""

    entries: dict  # of a JSON line
    marginals: list | None = None  # for each token, the probability of each label's text

    def fields_of(self, t, label):
        """Further fields of a token: probabilities as text."""
        if "spans" in self.entries:
            inside = [span for span in self.entries["spans"] if span["start"] <= t < span["end"]]
            return [f"{span['probability']:.6f}" for span in inside] or ["_"]
        if self.marginals is None:
            return []
        if "marginals" in self.entries:
            return [f"{name}/{p:.6f}" for name, p in self.marginals[t].items()]
        return [f"{self.marginals[t][str(label)]:.6f}"]


def inputs_of(model, sequences):
    """Return X of sequences, as a model takes it: without a vectoriser, columns are attributes."""
    X = [sequence.X for sequence in sequences]
    if model.vectorizer is not None or model.is_reranker:
        return X
    return [[[token] if isinstance(token, str) else token for token in tokens] for tokens in X]


def baselines_of(sequences):
    """Baseline scores of candidates; None if the groups have none."""
    found = [sequence.baseline for sequence in sequences]
    return None if all(scores is None for scores in found) else found


def answer(model, sequences, details):
    """Predict the labels of sequences, or choose among candidates.

    Parameters
    ----------
    model : Model
    sequences : list of Sequence
    details : Details

    Returns
    -------
    answers : list of Answer
        One for each sequence.

    Raises
    ------
    ValueError
        If a sequence is invalid; the message names the file and the line.
    """
    check_kind(sequences, model.is_reranker)
    _check_details(model, details)
    with errors_name_lines(sequences):
        return (_choose if model.is_reranker else _label)(model, sequences, details)


def check_kind(sequences, are_groups, who="this model"):
    """Raise an error for tokens where candidates are needed, and the reverse."""
    needed = "candidates" if are_groups else "tokens"
    for sequence in sequences:
        if are_groups and not isinstance(sequence.raw, dict):
            raise ValueError(f"{sequence.name}: a reranker reads JSON lines (--format jsonl).")
        if sequence.kind != needed:
            found = f'needs "{needed}", and not "{sequence.kind}"'
            raise ValueError(f"{sequence.where()}: {who} {found}.")


def _check_details(model, details):
    """Raise an error if a model cannot predict the details that are wanted."""
    estimator, kind = model.estimator, type(model.estimator).__name__
    n_best, marginals = details.n_best is not None, details.any_marginals
    if n_best and not (hasattr(estimator, "rank") or hasattr(estimator, "predict_nbest")):
        raise ValueError(f"{kind} chooses one labelling: leave out --n-best.")
    if details.spans and (marginals or n_best):
        raise ValueError(
            "--spans has probabilities of its own: leave out --n-best and --marginals."
        )
    if details.spans and not hasattr(estimator, "predict_spans"):
        raise ValueError(f"{kind} has no probabilities of chunks: leave out --spans.")
    if marginals and not hasattr(estimator, "predict_proba"):
        raise ValueError(f"{kind} has no probabilities of labels: leave out --marginals.")


def _label(model, sequences, details):
    X, tagger = inputs_of(model, sequences), model.estimator
    if model.vectorizer is not None:
        X = model.vectorizer.transform(X)
    if details.spans:
        scheme, found = scheme_of_classes(tagger.classes_.tolist()), []
        chunks = tagger.predict_spans(X, threshold=details.threshold)
        for sequence, spans in zip(sequences, chunks, strict=True):
            labels = labels_of_spans(spans, len(sequence.X), scheme)
            found.append(Answer({"labels": labels, "spans": [one._asdict() for one in spans]}))
    elif details.n_best is None:
        found = [Answer({"labels": list(labels)}) for labels in tagger.predict(X)]
    else:
        n_best = tagger.predict_nbest(X, n_best=details.n_best)
        rankings = [[one._asdict() for one in labellings] for labellings in n_best]
        found = [Answer({"labels": one[0]["labels"], "n_best": one}) for one in rankings]
    if details.any_marginals:
        names = [str(name) for name in tagger.classes_]
        for i, proba in enumerate(tagger.predict_proba(X)):
            marginals = [dict(zip(names, row, strict=True)) for row in proba.tolist()]
            pairs = zip(marginals, found[i].entries["labels"], strict=True)
            found[i].entries["probabilities"] = [at[str(label)] for at, label in pairs]
            if details.all_marginals:
                found[i].entries["marginals"] = marginals
            found[i] = found[i]._replace(marginals=marginals)
    # What has no tokens, such as comments at the end of a file, is written as it is.
    pairs = zip(sequences, found, strict=True)
    return [one if len(sequence.X) else Answer({"labels": []}) for sequence, one in pairs]


def _choose(model, sequences, details):
    given = inputs_of(model, sequences), baselines_of(sequences)
    orders = model.estimator.rank(*given)
    found = [{"chosen": int(order[0])} for order in orders]
    if details.n_best is not None:
        for one, order in zip(found, orders, strict=True):
            one["ranking"] = order[: details.n_best].tolist()
    if details.any_marginals:
        for one, proba in zip(found, model.estimator.predict_proba(*given), strict=True):
            one["probabilities"] = proba.tolist()
    return [Answer(one) for one in found]


# The command


@click.command(short_help="Convert a model to another format.")
@click.argument("source", type=FILE)
@click.argument("target", type=NewFile())
@click.option(
    "--to",
    type=click.Choice(["skops", "crfsuite", "crfpp"]),
    help="Format of TARGET; by default crfsuite for names that end in .crfsuite, else skops.",
)
def convert(source, target, to):
    """Convert the model SOURCE to TARGET.

    SOURCE is a model of ``skstruct train``, of CRFsuite, or a text model of CRF++ (crf_learn -t).
    For CRFsuite, the model must be without biases: train it with -p fit_intercept=false. Its
    attributes are then the names of the features. For CRF++, its template must be one of CRF++'s;
    crf_learn --convert turns the text into a binary model.

    \b
    Examples:
      skstruct convert model.txt model.skops
      skstruct convert old.crfsuite new.skops
      skstruct convert chunker.skops chunker.crfsuite
      skstruct convert --to crfpp chunker.skops chunker.txt
    """
    require_other_files([target], [source], "TARGET")
    if to is None:
        to = "crfsuite" if target.endswith(".crfsuite") else "skops"
    model = load_model(source)
    if to == "skops":
        store_model(model, target)
        return
    # A drop-in `CRF` has a tagger.
    if not hasattr(getattr(model.estimator, "estimator_", model.estimator), "transition_"):
        kind = type(model.estimator).__name__
        raise ValueError(
            f"{source}: {kind} cannot be converted, since CRFsuite and CRF++ have no rerankers."
        )
    if to == "crfpp":
        write_crfpp(model.as_estimator(), target)
        return
    names = None if model.vectorizer is None else model.vectorizer.get_feature_names_out()
    write_crfsuite(model.estimator, target, feature_names=names)
