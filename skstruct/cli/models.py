"""Model files: read in any format, and written whole or not at all."""

import zipfile
from functools import partial
from typing import NamedTuple

import click
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skstruct.cli.layout import check_layout
from skstruct.cli.options import FILE, NewFile, require_other_files
from skstruct.crfpp import read_model as read_crfpp
from skstruct.crfpp import write_model as write_crfpp
from skstruct.crfsuite.model import read_model as read_crfsuite
from skstruct.crfsuite.model import write_model as write_crfsuite
from skstruct.export.model import DTYPES
from skstruct.export.writers import ENDINGS, write_by_ending
from skstruct.spans import AroundTagger
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

    def to_fit(self):
        """Return the estimator that learns all of it.

        Where a tagger is held against other sequences, as by `SpanTaggerCV`, the vectoriser is
        fitted with it: labels of these must not enter features.
        """
        if self.vectorizer is None or not isinstance(self.estimator, AroundTagger):
            return self.as_estimator()
        both = self._replace(estimator=self.estimator.estimator, layout=None).as_estimator()
        return clone(self.estimator).set_params(estimator=both)

    def of_fitted(self, fitted):
        """Return the model with the parts of what `to_fit` returned, once it is fitted."""
        if hasattr(fitted, "steps"):
            return self._replace(vectorizer=fitted.steps[0][1], estimator=fitted.steps[-1][1])
        if self.vectorizer is None:
            return self._replace(estimator=fitted)
        (_, vectorizer), (_, fitted.estimator_) = fitted.estimator_.steps
        return self._replace(
            vectorizer=vectorizer, estimator=fitted.set_params(estimator=self.estimator.estimator)
        )

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
        If the file is damaged, or has types that are not skstruct's or scikit-learn's.
    MemoryError
        If it does not fit into memory.
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


@click.command(short_help="Convert a model to another format.")
@click.argument("source", type=FILE)
@click.argument("target", type=NewFile())
@click.option(
    "--to",
    type=click.Choice(["skops", "crfsuite", "crfpp"]),
    help="Format of TARGET; by default crfsuite for names that end in .crfsuite, else skops. Names "
    "that end in .py, .js, .mjs or .json make what `skstruct export` makes.",
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
      skstruct convert chunker.skops chunker.py
    """
    require_other_files([target], [source], "TARGET")
    if to is None and target.endswith(ENDINGS):
        write_by_ending(load_model(source).as_estimator(), target)
        return
    if to is None:
        to = "crfsuite" if target.endswith(".crfsuite") else "skops"
    model = load_model(source)
    if to == "skops":
        store_model(model, target)
        return
    if isinstance(model.estimator, AroundTagger):
        # Their formats have no thresholds.
        model = model._replace(estimator=model.estimator.estimator_)
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


@click.command(short_help="Write a model as one file that tags.")
@click.argument("model", type=FILE)
@click.option(
    "-o", "--output", required=True, type=NewFile(), help="File to write: .py, .js, .mjs or .json."
)
@click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    default=DTYPES[0],
    help="Precision of the weights. float64 has those of MODEL.",
)
@click.option("--date", help="Date to write into the file; by default none.")
def export(model, output, dtype, date):
    """Write MODEL as one file that tags without any package.

    MODEL is a tagger of ``skstruct train``, of CRFsuite, or a text model of CRF++. The ending of
    the name says what is written: Python (.py), which is a command, too; an ES module of JavaScript
    (.js, .mjs) with its types beside it; or data alone (.json), for a page that has the runtime.

    \b
    Examples:
      skstruct export names.skops -o names.py
      skstruct export names.skops -o names.mjs
      python names.py < text
    """
    require_other_files([output], [model], "-o")
    size = write_by_ending(load_model(model).as_estimator(), output, dtype=dtype, date=date)
    click.echo(f"{output}: {size:,} bytes")
