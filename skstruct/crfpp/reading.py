"""Models of CRF++, read into a pipeline."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import Pipeline

from skstruct import kernels
from skstruct.crfpp.text import damaged, parse_model, require
from skstruct.input.classes import check_number, label_array
from skstruct.taggers.crf import CRFTagger
from skstruct.templates.learnt import LearntFeatures, split_name
from skstruct.templates.reader import group_literals
from skstruct.templates.syntax import parse_template
from skstruct.templates.vectorizers import fitted_vectorizer
from skstruct.utils.files import read_bytes, value_errors_name
from skstruct.utils.memory import require_memory
from skstruct.utils.public_paths import set_module

__all__ = ["read_model"]


@set_module("skstruct.crfpp")
def read_model(source, *, encoding="utf-8"):
    """Read a text model of CRF++ into a pipeline with the same predictions.

    ``crf_learn -t`` writes such models next to the binary ones, with the suffix ``.txt``.

    Parameters
    ----------
    source : str, path-like or bytes
        The file, or its content.
    encoding : str, default="utf-8"
        Encoding of the file, which is that of the training data.

    Returns
    -------
    model : sklearn.pipeline.Pipeline
        A fitted `TemplateVectorizer` and a fitted `CRFTagger`. Tokens have the columns that the
        template uses, without the label.

    Raises
    ------
    ValueError
        If the file is not a text model, is truncated or inconsistent, or has no features of
        tokens. The message names the file.
    MemoryError
        If its weights need more memory than there is: there is one for each pair of labels.

    See Also
    --------
    skstruct.TemplateVectorizer : Features by CRF++'s templates.

    Examples
    --------
    >>> from skstruct import crfpp
    >>> text = '''version: 100
    ... cost-factor: 1
    ... maxid: 8
    ... xsize: 1
    ...
    ... DET
    ... NOUN
    ...
    ... U0:%x[0,0]
    ... B
    ...
    ... 4 B
    ... 2 U0:cat
    ... 0 U0:the
    ...
    ... 1.5
    ... -1.5
    ... -1.0
    ... 1.0
    ... -0.5
    ... 0.5
    ... 0.25
    ... 0.0
    ... '''
    >>> model = crfpp.read_model(text.encode())
    >>> model.predict([["the", "cat"]])
    array([list(['DET', 'NOUN'])], dtype=object)
    """
    with value_errors_name(source):
        return _as_pipeline(parse_model(_decoded(read_bytes(source), encoding)))


def _decoded(content, encoding):
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError(
            f"This is not a text model of CRF++ in the encoding {encoding!r}: pass encoding=."
        ) from None


def _as_pipeline(model):
    templates = parse_template(model.lines)
    unigrams, observed = _sorts_of_features(model, templates)
    features = _learnt(model.lines, unigrams)
    transitions = _learnt(model.lines, observed, of_transitions=True) if observed else None
    vectorizer = fitted_vectorizer(features, model.n_columns, transitions)
    tagger = _make_tagger(model, templates, unigrams, observed)
    return Pipeline([("vectorizer", vectorizer), ("tagger", tagger)])


def _sorts_of_features(model, templates):
    """Names of the features of tokens, and of those of transitions."""
    unigrams = [name for name in model.places if name[0] == "U"]
    require(unigrams, "it has no features of tokens")
    pairs = {t.literals[0] for t in templates if t.kind == "B" and not t.macros}
    conditioned = group_literals(templates, of_transitions=True)
    observed = [
        name
        for name in model.places
        if name[0] == "B"
        # The name of a line without a macro may also be the feature of another line, made of an
        # empty value.
        and (name not in pairs or any(split_name(name, literals) for literals in conditioned))
    ]
    return unigrams, observed


def _learnt(lines, names, *, of_transitions=False):
    try:
        return LearntFeatures.from_names(lines, names, of_transitions=of_transitions)
    except ValueError as error:
        raise damaged(error) from None


def _make_tagger(model, templates, unigrams, observed):
    """Make a fitted tagger with the weights of these features."""
    k = len(model.labels)
    check_number(k)
    # Where there are many labels and no features of the kind B, transitions are not in the file.
    require_memory(
        8 * k * (len(unigrams) + k * (1 + len(observed))),
        f"The weights of {len(unigrams) + len(observed):,} features and {k:,} labels",
        "Read the model where there is more.",
    )
    order = np.argsort(np.array(model.labels, dtype=object))
    scaled = model.factor * model.weights

    def of_pairs(name):
        start = model.places[name]
        return scaled[start : start + k**2].reshape(k, k)[np.ix_(order, order)]

    # A line that occurs twice counts twice.
    lines = [t.literals[0] for t in templates if t.kind == "B" and not t.macros]
    transition = np.zeros((k, k))
    for name in lines:
        if name in model.places:
            transition += of_pairs(name)
    starts = np.array([model.places[name] for name in unigrams], np.int64)
    chain = kernels.Chain(scaled[starts[:, None] + order], transition, *np.zeros((3, k)))
    tagger = CRFTagger(fit_intercept=False)
    tagger.classes_ = label_array([model.labels[code] for code in order.tolist()])
    tagger.n_features_in_ = len(unigrams)
    if observed:
        tagger.n_transition_features_in_ = len(observed)
        weights = np.stack([of_pairs(name).ravel() for name in observed])
        chain = kernels.TransitionChain(*chain, weights)
    tagger._set_chain(chain)
    tagger.n_weights_ = len(model.weights)
    return tagger
