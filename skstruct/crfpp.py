"""Models of CRF++: reads the text files that ``crf_learn -t`` writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from skstruct import kernels
from skstruct.crfsuite.model import read_bytes
from skstruct.taggers.crf import CRFTagger
from skstruct.templates.learnt import LearntFeatures, split_name
from skstruct.templates.reader import group_literals
from skstruct.templates.syntax import parse_template
from skstruct.templates.vectorizers import fitted_vectorizer

__all__ = ["read_model"]


class _TextModel(NamedTuple):
    """Content of a model file."""

    factor: float  # for all weights
    n_columns: int
    labels: list
    lines: list  # of the template
    places: dict  # position of each feature's first weight
    weights: np.ndarray


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
        tokens.

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
    try:
        text = read_bytes(source).decode(encoding)
    except UnicodeDecodeError:
        raise ValueError(
            f"This is not a text model of CRF++ in the encoding {encoding!r}: pass encoding=."
        ) from None
    model = _parse(text)
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
    _check(unigrams, "it has no features of tokens")
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
        raise _damaged(error) from None


def _check(holds, complaint):
    if not holds:
        raise _damaged(complaint)


def _damaged(complaint):
    return ValueError(f"This is not an intact text model of CRF++: {complaint}.")


def _parse(text):
    """Split a file into its sections, which end with blank lines."""
    # Not splitlines: names may contain characters that it takes as the end of a line.
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    sections, start = [], 0
    for what in ("header", "labels", "template", "features"):
        _check("" in lines[start:], f"it ends before the end of the {what}")
        end = lines.index("", start)
        sections.append(lines[start:end])
        start = end + 1
    header, labels, template, features = sections
    values = dict(line.partition(": ")[::2] for line in header)
    n_weights = _number(values.get("maxid"), int, "maxid")
    found = len(lines) - start
    _check(found == n_weights, f"it has {found} weights, but maxid in its header is {n_weights}")
    weights = np.array([_number(line, float, "a weight") for line in lines[start:]], np.float64)
    factor = _number(values.get("cost-factor"), float, "cost-factor")
    n_columns = _number(values.get("xsize"), int, "xsize")
    finite = np.isfinite(weights).all() and np.isfinite(factor)
    _check(finite, "a weight or the cost-factor is NaN or infinite")
    _check(labels and len(set(labels)) == len(labels), "it has no labels, or lists a label twice")
    _check(n_columns >= 1, f"xsize in its header is {n_columns}, but must be at least 1")
    places = _read_features(features, len(labels), n_weights)
    return _TextModel(factor, n_columns, labels, template, places, weights)


def _number(text, kind, what):
    try:
        return kind(text)
    except (TypeError, ValueError):
        _check(False, f"{what} is {text!r}, which is not a valid {kind.__name__}")


def _read_features(lines, n_labels, n_weights):
    """Position of each feature's first weight, checked to account for all weights."""
    places, end = {}, 0
    for line in lines:
        place, _, name = line.partition(" ")
        _check(name not in places, f"the feature {name!r} is listed twice")
        _check(name[:1] in ("U", "B"), f"{line!r} is not a feature of the kind U or B")
        places[name] = _number(place, int, f"the place of {name!r}")
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        _check(place == end, f"the weights of {name!r} start at {place} instead of {end}")
        end += n_labels if name[0] == "U" else n_labels**2
    _check(end == n_weights, f"the features have {end} weights, but the file has {n_weights}")
    return places


def _make_tagger(model, templates, unigrams, observed):
    """Make a fitted tagger with the weights of these features."""
    n_labels = len(model.labels)
    order = np.argsort(np.array(model.labels, dtype=object))
    scaled = model.factor * model.weights
    # Positions in the file of the transitions, in the order of the classes.
    pairs = (order[:, None] * n_labels + order).ravel()

    def weights_of(names, columns):
        starts = np.array([model.places[name] for name in names], np.int64)
        return scaled[starts[:, None] + columns]

    # A line that occurs twice counts twice.
    lines = [t.literals[0] for t in templates if t.kind == "B" and not t.macros]
    known = [name for name in lines if name in model.places]
    transition = weights_of(known, pairs).sum(axis=0).reshape(n_labels, n_labels)
    chain = kernels.Chain(weights_of(unigrams, order), transition, *np.zeros((3, n_labels)))
    tagger = CRFTagger(fit_intercept=False)
    tagger.classes_ = np.array(model.labels, dtype=object)[order].astype(str)
    tagger.n_features_in_ = len(unigrams)
    if observed:
        tagger.n_transition_features_in_ = len(observed)
        chain = kernels.TransitionChain(*chain, weights_of(observed, pairs))
    tagger._set_chain(chain)
    tagger.n_weights_ = len(model.weights)
    return tagger
