"""Taggers from CRFsuite's model files, and files from taggers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from skstruct.crfsuite.chain import chain_from_model
from skstruct.crfsuite.file import CRFsuiteModel, decode_model, encode_model
from skstruct.features.dicts import SequenceVectorizer
from skstruct.taggers.crf import CRFTagger
from skstruct.utils.public_paths import set_module

__all__ = ["read_bytes", "read_model", "tagger_from_model", "tagger_to_bytes", "write_model"]


@set_module("skstruct.crfsuite")
def read_model(source, *, max_bytes=2**32):
    """Read a model file of CRFsuite into a tagger that predicts what CRFsuite predicts.

    Files of CRFsuite's ``crfsuite learn``, of python-crfsuite and of sklearn-crfsuite are the
    same.

    Parameters
    ----------
    source : str, path-like or bytes
        The file, or its content.
    max_bytes : int, default=2**32
        Most memory that the weights may take. In a file there is room for weights of nearly every
        attribute with nearly every label, and a tagger has room for all of them.

    Returns
    -------
    tagger : CRFTagger
        Fitted; for feature dicts and attribute strings.

    Raises
    ------
    ValueError
        If it is no such file, or is cut short or inconsistent, or if its weights take more than
        `max_bytes`.

    See Also
    --------
    write_model : The other way round.
    CRF : ``CRF(model_filename=path)`` has the methods of sklearn-crfsuite.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skstruct import CRFTagger
    >>> from skstruct.crfsuite import read_model, write_model
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = CRFTagger(fit_intercept=False).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.crfsuite"
    ...     write_model(tagger, path)
    ...     same = read_model(path)
    >>> same.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    """
    return tagger_from_model(decode_model(read_bytes(source)), max_bytes=max_bytes)


@set_module("skstruct.crfsuite")
def write_model(tagger, path, *, feature_names=None):
    """Write a model file that CRFsuite, and all that is built on it, can read.

    Parameters
    ----------
    tagger : estimator
        A fitted tagger without biases (``fit_intercept=False``), since CRFsuite knows none. Its
        labels are strings.
    path : str or path-like
        The file.
    feature_names : array-like of shape (n_features,), default=None
        What CRFsuite calls the features. By default the names that the tagger knows, which are
        those of python-crfsuite where it was fitted on feature dicts or attribute strings.

    Raises
    ------
    ValueError
        If the tagger has something that the format has no place for: biases, infinite weights,
        labels that are no strings, features without names or with names that are no strings; or
        more than 4 GiB.

    See Also
    --------
    read_model : The other way round.

    Notes
    -----
    Weights that are zero are left out, and attributes that have no others. Weights are written in
    full precision.

    Examples
    --------
    As of `read_model`.
    """
    data = tagger_to_bytes(tagger, feature_names=feature_names)
    Path(path).write_bytes(data)


def read_bytes(source):
    """Content of a file that is given by its path or as bytes."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, (str, os.PathLike)):
        return Path(source).read_bytes()
    raise TypeError(f"Expected the path of a file or bytes, got {type(source).__name__}.")


def tagger_from_model(model, *, max_bytes=2**32):
    """A fitted tagger with the weights of a model."""
    if not model.labels:
        raise ValueError("This CRFsuite model has no labels.")
    tagger = CRFTagger(fit_intercept=False)
    labels, label_rank = _sorted(model.labels)
    attributes, attribute_rank = _sorted(model.attributes)
    tagger.classes_ = np.array(labels)
    names = np.empty(len(attributes), dtype=object)
    names[:] = attributes
    tagger.vectorizer_ = SequenceVectorizer()
    tagger.vectorizer_.vocabulary_ = dict(zip(attributes, range(len(attributes)), strict=True))
    tagger.vectorizer_.feature_names_ = names
    tagger.feature_names_in_ = names
    tagger.n_features_in_ = len(names)
    shape = (len(names), len(model.labels))
    tagger._set_chain(
        chain_from_model(model, attribute_rank, label_rank, shape, max_bytes=max_bytes)
    )
    tagger.n_weights_ = len(model.states) + len(model.pairs)
    return tagger


def _sorted(names):
    """Names in order, and for each of those given its place there."""
    order = sorted(range(len(names)), key=names.__getitem__)
    ranks = np.empty(len(names), np.int64)
    ranks[order] = np.arange(len(names))
    return [names[i] for i in order], ranks


def tagger_to_bytes(tagger, *, feature_names=None, labels=None):
    """Content of the model file of a fitted tagger; the labels in the order given, or sorted."""
    check_is_fitted(tagger)
    if hasattr(tagger, "transition_coef_"):
        raise ValueError(
            "The tagger has label pairs that depend on the tokens (transition_coef_), which "
            "CRFsuite's format has no place for."
        )
    chain = tagger._chain()
    if not all(np.isfinite(part).all() for part in chain):
        raise ValueError(
            "A weight is infinite or no number, which CRFsuite cannot work with: fit the tagger "
            "without a constraint."
        )
    for name in ("intercept", "start", "end"):
        if np.any(getattr(chain, name)):
            raise ValueError(
                f"The tagger has biases ({name}_ is not zero), which CRFsuite's format has no "
                "place for: fit it with fit_intercept=False, and for a bias of each label give "
                "every token one and the same attribute."
            )
    classes = tagger.classes_.tolist()
    if not all(isinstance(label, str) for label in classes):
        raise ValueError(f"CRFsuite's labels are strings, but one of these is {classes[0]!r}.")
    labels = classes if labels is None else labels
    order = np.array([classes.index(label) for label in labels], np.int64)
    names = _names_of(tagger, feature_names)
    coef = sp.csr_matrix(chain.weights[:, order])
    transition = chain.transition[order][:, order]
    lengths = np.diff(coef.indptr)
    used = np.flatnonzero(lengths)
    pairs = np.argwhere(transition)
    model = CRFsuiteModel(
        labels,
        [names[column] for column in used.tolist()],
        np.stack([np.repeat(np.arange(len(used)), lengths[used]), coef.indices], axis=1),
        coef.data,
        pairs,
        transition[pairs[:, 0], pairs[:, 1]],
    )
    return encode_model(model)


def _names_of(tagger, names):
    """Names of the features, as strings that differ."""
    if names is None:
        names = getattr(tagger, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "The tagger does not know the names of its features, which CRFsuite looks them up by: "
            "give them as feature_names, for example vectorizer.get_feature_names_out()."
        )
    names = list(names)
    if len(names) != tagger.n_features_in_:
        raise ValueError(
            f"{len(names)} feature_names for a tagger of {tagger.n_features_in_} features."
        )
    if not all(isinstance(name, str) for name in names):
        raise ValueError("CRFsuite's attributes are strings; feature_names must be strings.")
    if len(set(names)) != len(names):
        raise ValueError("Two feature_names are the same.")
    return names
