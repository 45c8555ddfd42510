"""Taggers read from CRFsuite's model files, and written to them."""

import os
import tempfile
import weakref
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from skstruct.chain.dense import Chain
from skstruct.crfsuite.file import CRFsuiteModel, decode_model, encode_model
from skstruct.features.dicts import SequenceVectorizer
from skstruct.input.formats import check_number, label_array
from skstruct.taggers.crf import CRFTagger
from skstruct.utils.files import read_bytes, value_errors_name, write_whole
from skstruct.utils.memory import require_memory
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import set_module


@set_module("skstruct.crfsuite")
def read_model(source, *, max_bytes=2**32):
    """Read a model file of CRFsuite into a tagger with the same predictions.

    ``crfsuite learn``, python-crfsuite and sklearn-crfsuite all write this format.

    Parameters
    ----------
    source : str, path-like or bytes
        Path of the file, or its content.
    max_bytes : int, default=2**32
        Memory limit of the weights. The file stores only weights that are not zero, whereas the
        tagger has a weight for every attribute and every label.

    Returns
    -------
    tagger : CRFTagger
        Fitted tagger of feature dicts and attribute strings.

    Raises
    ------
    ValueError
        If the file is not a CRFsuite model, is truncated or inconsistent, or if its weights need
        more than `max_bytes`. The message names the file.
    MemoryError
        If they need more memory than there is.

    See Also
    --------
    write_model : Write a model file.
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
    with value_errors_name(source):
        return tagger_from_model(decode_model(read_bytes(source)), max_bytes=max_bytes)


@set_module("skstruct.crfsuite")
def write_model(tagger, path, *, feature_names=None):
    """Write a tagger to a model file of CRFsuite.

    Parameters
    ----------
    tagger : estimator
        Fitted `CRF`; or a fitted tagger without biases (``fit_intercept=False``), which CRFsuite
        does not support, and with strings as labels.
    path : str or path-like
        Path of the file.
    feature_names : array-like of shape (n_features,), default=None
        Names of the features in the file. By default ``tagger.feature_names_in_``. After fitting
        on feature dicts or attribute strings these are the names that python-crfsuite uses.

    Raises
    ------
    ValueError
        If the format cannot represent the tagger: biases, features of transitions, infinite
        weights, labels that are not strings, features without names or with names that are not
        strings; if the estimator is not a tagger, such as a pipeline; or if the file would exceed
        4 GiB.

    See Also
    --------
    read_model : Read a model file.

    Notes
    -----
    Zero weights, and attributes that have no other weights, are left out. Weights are written in
    full precision.

    Examples
    --------
    As of `read_model`.
    """
    check_is_fitted(tagger)
    # A drop-in `CRF` has a tagger.
    fitted = getattr(tagger, "estimator_", tagger)
    if not hasattr(fitted, "_chain"):
        raise ValueError(
            f"{type(tagger).__name__} is not a tagger with a weight for each feature. Of a "
            "pipeline, pass the tagger, and feature_names=vectorizer.get_feature_names_out()."
        )
    labels = None if fitted is tagger else list(tagger.classes_)
    write_whole(path, tagger_to_bytes(fitted, feature_names=feature_names, labels=labels))


def tagger_from_model(model, *, max_bytes=2**32):
    """Fitted tagger with the weights of a model."""
    if not model.labels:
        raise ValueError("This CRFsuite model has no labels; a tagger needs at least one.")
    check_number(len(model.labels))
    labels, codes = _sorted(model.labels)
    names, columns = _sorted(model.attributes)
    shape = len(names), len(labels)
    chain = chain_from_model(model, columns, codes, shape, max_bytes=max_bytes)
    tagger = fitted_tagger(chain, labels.tolist(), len(model.states) + len(model.pairs))
    tagger.vectorizer_ = SequenceVectorizer()
    tagger.vectorizer_.feature_names_ = tagger.feature_names_in_ = names
    return tagger


def fitted_tagger(chain, labels, n_weights):
    """Make a tagger with the weights of a file, of which there are so many."""
    tagger = CRFTagger(fit_intercept=False)
    tagger.classes_ = label_array(labels)
    tagger.n_features_in_ = len(chain.weights)
    tagger._set_chain(chain)
    tagger.n_weights_ = n_weights
    return tagger


def require_weights(n_weights, n_features, n_labels):
    """Raise a MemoryError that names the numbers if there is no room for so many weights."""
    require_memory(
        8 * n_weights,
        f"The weights of {n_features:,} features and {n_labels:,} labels",
        "Read the model where there is more.",
    )


def chain_from_model(model, columns, codes, shape, *, max_bytes):
    """Weights of a CRFsuite model in the layout of the kernels.

    Parameters
    ----------
    model : CRFsuiteModel
    columns, codes : ndarray of int
        Column of each attribute, and code of each label.
    shape : tuple of int
        Numbers of columns and of labels.
    max_bytes : float
        Memory limit of the weights.

    Returns
    -------
    chain : Chain
    """
    n_features, n_labels = shape
    n_weights = n_labels * (n_features + n_labels)
    if 8 * n_weights > max_bytes:
        raise ValueError(
            f"The weights of {n_features} attributes and {n_labels} labels need {8 * n_weights} "
            f"bytes, more than max_bytes={max_bytes}. Increase max_bytes to read this model."
        )
    require_weights(n_weights, n_features, n_labels)
    weights, transition = np.zeros((n_features, n_labels)), np.zeros((n_labels, n_labels))
    # A file may repeat a pair. As in CRFsuite, repeated weights of attribute and label are added,
    # and of two labels the last weight counts.
    places = (columns[model.states[:, 0]], codes[model.states[:, 1]])
    np.add.at(weights, places, model.state_weights)
    transition[codes[model.pairs[:, 0]], codes[model.pairs[:, 1]]] = model.pair_weights
    return Chain(weights, transition, *np.zeros((3, n_labels)))


def _sorted(names):
    """Sorted names, as an array of objects, and the rank of each given name."""
    return np.unique(np.array(names, dtype=object), return_inverse=True)


def tagger_to_bytes(tagger, *, feature_names=None, labels=None):
    """Content of the model file of a fitted tagger, with labels in the given order, or sorted."""
    return encode_model(model_from_tagger(tagger, feature_names=feature_names, labels=labels))


def model_from_tagger(tagger, *, feature_names=None, labels=None):
    """Model of a fitted tagger, as `encode_model` takes it."""
    _check_representable(tagger)
    chain, classes = tagger._chain(), tagger.classes_.tolist()
    labels = classes if labels is None else labels
    order = np.array([classes.index(label) for label in labels], np.int64)
    names = _names_of(tagger, feature_names)
    coef = sp.csr_matrix(chain.weights[:, order])
    transition = chain.transition[order][:, order]
    lengths = np.diff(coef.indptr)
    used = np.flatnonzero(lengths)
    pairs = np.argwhere(transition)
    return CRFsuiteModel(
        labels,
        [names[column] for column in used.tolist()],
        np.stack([np.repeat(np.arange(len(used)), lengths[used]), coef.indices], axis=1),
        coef.data,
        pairs,
        transition[pairs[:, 0], pairs[:, 1]],
    )


def finite_chain(tagger, program):
    """Weights of a tagger of first order; a ValueError for others, or for infinite weights."""
    if tagger._scheme_learnt is not None:
        raise ValueError(
            f"The tagger has learnt labels of another scheme (learn_scheme), which {program} does "
            "not support. Fit it with learn_scheme=None on labels of that scheme."
        )
    if tagger._kind.order > 1:
        raise ValueError(
            f"The tagger has weights of label triples (transition2_), which {program} does not "
            "support. Fit it with order=1."
        )
    chain = tagger._chain()
    if not all(np.isfinite(part).all() for part in chain):
        raise ValueError(
            f"A weight is infinite or NaN, which {program} does not support. Fit the tagger "
            "without a constraint."
        )
    return chain


def _check_representable(tagger):
    """Raise an error for a tagger with more than the weights that CRFsuite's format has."""
    if tagger._kind.per_token:
        raise ValueError(
            "The tagger has weights of transition features (transition_coef_), which CRFsuite's "
            "format does not support. Fit it without transition features."
        )
    chain = finite_chain(tagger, "CRFsuite")
    for name in ("intercept", "start", "end"):
        if np.any(getattr(chain, name)):
            raise ValueError(
                f"The tagger has biases ({name}_ is not zero), which CRFsuite's format does not "
                "support. Fit it with fit_intercept=False; for a bias of each label, give every "
                "token the same attribute."
            )
    wrong = [label for label in tagger.classes_.tolist() if not isinstance(label, str)]
    if wrong:
        raise ValueError(
            f"Labels must be strings for CRFsuite, but one is {short_repr(wrong[0])}. Fit the "
            "tagger on strings."
        )


def _names_of(tagger, names):
    """Names of the features: distinct strings."""
    if names is None:
        names = getattr(tagger, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "The tagger was fitted on features without names, but CRFsuite identifies features by "
            "name. Fit it on feature dicts, or pass feature_names to write_model, for example "
            "vectorizer.get_feature_names_out()."
        )
    names = list(names)
    if len(names) != tagger.n_features_in_:
        raise ValueError(
            f"Got {len(names)} feature_names for a tagger with {tagger.n_features_in_} features."
        )
    if not all(isinstance(name, str) for name in names):
        raise ValueError("All feature_names must be strings.")
    if len(set(names)) != len(names):
        raise ValueError("All feature_names must be distinct, but two are the same.")
    return names


class ModelFile:
    """Model file of a `CRF`: the user's, or a temporary one that is written on first use.

    Parameters
    ----------
    crf : CRF
        Its estimator. A weak reference is kept.
    """

    def __init__(self, crf):
        self._crf = weakref.ref(crf)
        self._temporary = None

    @property
    def name(self):
        """Path of the file; None before fitting."""
        crf = self._crf()
        if crf is None or crf.model_filename is not None or crf.estimator_ is None:
            return None if crf is None else crf.model_filename
        if self._temporary is None:
            handle, self._temporary = tempfile.mkstemp(".crfsuite", "model")
            with os.fdopen(handle, "wb") as file:
                file.write(crf._bytes())
            if not crf.keep_tempfiles:
                weakref.finalize(self, Path(self._temporary).unlink, missing_ok=True)
        return self._temporary
