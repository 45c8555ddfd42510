"""Models of CRF++: read into a pipeline, as ``crf_learn -t`` writes them, and written from one."""

import re
from itertools import accumulate, compress
from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skstruct.chain.dense import Chain
from skstruct.chain.kinds import kind_of
from skstruct.crfsuite.model import finite_chain, fitted_tagger, require_weights
from skstruct.datasets.conll import encoded
from skstruct.input.formats import check_number
from skstruct.templates.learnt import LearntFeatures, split_name
from skstruct.templates.reader import group_literals
from skstruct.templates.syntax import parse_template, without_comment
from skstruct.templates.vectorizers import LearningTemplateVectorizer, TemplateVectorizer
from skstruct.utils.files import read_bytes, value_errors_name, write_whole
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import set_module

__all__ = ["read_model", "write_model"]

# Largest distance of tokens in templates of CRF++.
_LARGEST_OFFSET = 4
# Blanks separate names in the file, and NUL ends them.
_BLANK = re.compile(r"[ \t\r\n\0]")


@set_module("skstruct.crfpp")
def read_model(source, *, encoding="utf-8"):
    """Read a text model of CRF++ into a pipeline with the same predictions.

    ``crf_learn -t`` writes such models next to the binary ones, with the suffix ``.txt``.

    Parameters
    ----------
    source : str, path-like or bytes
        The file, or its content.
    encoding : str, default="utf-8"
        Encoding of the file, which the training data has, too.

    Returns
    -------
    model : sklearn.pipeline.Pipeline
        A fitted `TemplateVectorizer` and a fitted `CRFTagger`. Tokens have all columns of the
        training data (``xsize`` in the file), without the label.

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
        try:
            text = read_bytes(source).decode(encoding)
        except UnicodeDecodeError:
            raise ValueError(
                f"This is not a text model of CRF++ in the encoding {encoding!r}: pass encoding=."
            ) from None
        return _as_pipeline(_parse_model(text))


def _as_pipeline(model):
    for line in model.lines:
        if without_comment(line) != line:
            raise ValueError(
                f"CRF++ takes the whole line {line!r} of the template, TemplateVectorizer only "
                f"{without_comment(line)!r}. Train without the rest."
            )
    templates = parse_template(model.lines)
    last = max((macro.column for t in templates for macro in t.macros), default=0)
    _require(
        last < model.n_columns,
        f"its template uses column {last}, but xsize in its header is {model.n_columns}",
    )
    # A line that occurs twice counts twice.
    plain = [t.literals[0] for t in templates if t.kind == "B" and not t.macros]
    unigrams, observed = _sorts_of_features(model, plain, templates)
    vectorizer = TemplateVectorizer(model.lines)
    transitions = None
    try:
        features = LearntFeatures.from_names(model.lines, unigrams)
        if observed:
            transitions = LearntFeatures.from_names(model.lines, observed, of_transitions=True)
    except ValueError as error:
        raise _damaged(error) from None
    vectorizer._keep(model.n_columns, features, transitions)
    tagger = _make_tagger(model, plain, unigrams, observed)
    return Pipeline([("vectorizer", vectorizer), ("tagger", tagger)])


def _sorts_of_features(model, plain, templates):
    """Names of the features of tokens, and of transitions."""
    unigrams = [name for name in model.places if name[0] == "U"]
    _require(unigrams, "it has no features of tokens")
    conditioned = group_literals(templates, of_transitions=True)
    observed = [
        name
        for name in model.places
        if name[0] == "B"
        # The name of a line without a macro may also be the feature of another line, made of an
        # empty value.
        and (name not in plain or any(split_name(name, literals) for literals in conditioned))
    ]
    return unigrams, observed


def _make_tagger(model, plain, unigrams, observed):
    """Make a fitted tagger with the weights of these features."""
    k = len(model.labels)
    check_number(k)
    # Where there are many labels and no features of the kind B, transitions are not in the file.
    n_weights = k * (len(unigrams) + k * (1 + len(observed)))
    require_weights(n_weights, len(unigrams) + len(observed), k)
    order = np.argsort(np.array(model.labels, dtype=object))

    def of_pairs(name):
        start = model.places[name]
        return model.weights[start : start + k**2].reshape(k, k)[np.ix_(order, order)]

    transition = np.zeros((k, k))
    for name in plain:
        if name in model.places:
            transition += of_pairs(name)
    starts = np.array([model.places[name] for name in unigrams], np.int64)
    chain = Chain(model.weights[starts[:, None] + order], transition, *np.zeros((3, k)))
    if observed:
        weights = np.stack([of_pairs(name).ravel() for name in observed])
        chain = kind_of(1, 2)(*chain, weights)
    labels = [model.labels[code] for code in order.tolist()]
    tagger = fitted_tagger(chain, labels, len(model.weights))
    if observed:
        tagger.n_transition_features_in_ = len(observed)
    return tagger


@set_module("skstruct.crfpp")
def write_model(model, path, *, encoding="utf-8"):
    """Write a tagger with features by a template to a text model of CRF++.

    ``crf_learn --convert model.txt model.bin`` turns the file into a binary model, which
    ``crf_test`` and CRF++'s libraries read.

    Parameters
    ----------
    model : Pipeline
        A fitted `TemplateVectorizer` and a fitted tagger. The template has only what CRF++ has:
        lines of the kinds U and B with macros ``%x[row,column]``, rows from -4 to 4.
    path : str or path-like
        Path of the file.
    encoding : str, default="utf-8"
        Encoding of the file, and of the texts to tag.

    Raises
    ------
    ValueError
        If CRF++ cannot represent the model: another vectoriser, another kind of template line (the
        message names it), blanks in labels or features, infinite weights as of a constraint, labels
        that are not strings, or characters that the encoding lacks.

    See Also
    --------
    read_model : Read a text model.
    skstruct.crfsuite.write_model : Write a model of CRFsuite.

    Notes
    -----
    CRF++ has no biases. They become features: for labels ``U_BIAS`` of every token, and for
    first and last labels ``U_EDGE:_B-1`` and ``U_EDGE2:_B+1``, which tokens at the
    ends have, and the template of the file has a line for each. With these lines, CRF++ takes a
    token ``_B-1`` or ``_B+1`` in the first column for an end; fit with ``fit_intercept=False`` if
    there are such. Transitions become the feature of the line ``B``. Weights are written in full
    precision, and features without weights left out.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import CRFTagger, TemplateVectorizer, crfpp
    >>> X, y = [["the", "cat"], ["a", "dog"]], [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = make_pipeline(TemplateVectorizer("U00:%x[0,0]"), CRFTagger()).fit(X, y)
    >>> crfpp.write_model(tagger, "model.txt")  # doctest: +SKIP
    """
    lines = [f"{line}\n" for line in _format_model(model)]
    write_whole(path, encoded(lines, lambda n: f"Line {n + 1} of the model", encoding))


def _format_model(model):
    """Lines of the file of a model: features by name, as by CRF++, weights in full precision."""
    vectorizer, tagger = _vectorizer_and_tagger(model)
    labels = _labels(tagger)
    chain = finite_chain(tagger, "CRF++")
    # A line B without a macro stands for the transitions, which get one of their own below.
    lines = [
        _as_line(template)
        for template in parse_template(vectorizer.template_)
        if template.kind != "B" or template.macros
    ]
    features = [(vectorizer.get_feature_names_out(), chain.weights)]
    for line, name, of_labels in (
        ("U_BIAS", "U_BIAS", chain.intercept),
        ("U_EDGE:%x[-1,0]", "U_EDGE:_B-1", chain.start),
        ("U_EDGE2:%x[1,0]", "U_EDGE2:_B+1", chain.end),
    ):
        if np.any(of_labels):
            features.append(([name], of_labels[None]))
            lines.append(line)
    if tagger._kind.per_token:
        features.append((vectorizer.get_transition_feature_names_out(), chain.transition_weights))
    features.append((["B"], chain.transition.ravel()[None]))
    rows = _rows_by_name(features)
    weights = np.concatenate(list(rows.values()))
    places = accumulate(map(len, rows.values()), initial=0)
    header = [
        "version: 100",
        "cost-factor: 1",
        f"maxid: {len(weights)}",
        f"xsize: {vectorizer.n_columns_}",
    ]
    names = [f"{place} {name}" for name, place in sorted(zip(rows, places, strict=False))]
    weights = map(repr, weights.tolist())
    return [*header, "", *labels, "", *lines, "B", "", *names, "", *weights]


def _vectorizer_and_tagger(model):
    steps = [step for _, step in getattr(model, "steps", ())]
    if len(steps) != 2 or not isinstance(steps[0], LearningTemplateVectorizer):
        raise ValueError(
            "CRF++ makes features by a template: pass a Pipeline of a TemplateVectorizer and a "
            f"tagger, not {short_repr(model)}."
        )
    vectorizer, tagger = steps
    check_is_fitted(vectorizer)
    check_is_fitted(tagger)
    if not hasattr(tagger, "_chain"):
        raise ValueError(f"{type(tagger).__name__} is not a tagger with a weight for each feature.")
    return vectorizer, tagger


def _labels(tagger):
    labels = tagger.classes_.tolist()
    for label in labels:
        if not isinstance(label, str) or not label or _BLANK.search(label):
            raise ValueError(
                "Labels must be strings without blanks or NUL characters for CRF++, but one is "
                f"{short_repr(label)}."
            )
    return labels


def _as_line(template):
    """Line of a template as CRF++ reads it; a ValueError if it cannot."""
    where = template.where
    name = template.literals[0]
    if name[:1] not in ("U", "B"):
        raise ValueError(f"{where}: lines of CRF++ start with U or B.")
    if any(_BLANK.search(literal) for literal in template.literals):
        raise ValueError(f"{where}: CRF++ does not support blanks in a line.")
    text = name
    for macro, literal in zip(template.macros, template.literals[1:], strict=True):
        if macro.command != "x" or macro.functions or macro.lower or macro.absolute:
            raise ValueError(
                f"{where}: CRF++ has only macros such as %x[-1,0]. Compute other values "
                "beforehand, as further columns of the tokens."
            )
        if abs(macro.offset) > _LARGEST_OFFSET:
            raise ValueError(
                f"{where}: CRF++ looks at most {_LARGEST_OFFSET} tokens ahead and back, not "
                f"{abs(macro.offset)}."
            )
        text += f"%x[{macro.offset},{macro.column}]{literal}"
    return text


def _rows_by_name(features):
    """Weights of each feature, from pairs of names and rows; rows of zeros are left out."""
    rows = {}
    for names, of_names in features:
        used = np.any(of_names, axis=1)
        found = dict(zip(compress(names, used), of_names[used], strict=True))
        if same := rows.keys() & found.keys():
            raise ValueError(
                f"The template makes the feature {min(same)!r}, but the file needs the name for "
                "biases or transitions. Give the line another name."
            )
        rows |= found
    blank = next(filter(_BLANK.search, rows), None)
    if blank is not None:
        raise ValueError(
            f"The feature {short_repr(blank)} has a blank, which separates the columns of "
            "CRF++'s files. Replace blanks in tokens by another character."
        )
    return rows


# The text format: sections of lines, which end with a blank one


class _TextModel(NamedTuple):
    """Content of a model file."""

    n_columns: int
    labels: list
    lines: list  # of the template
    places: dict  # position of each feature's first weight
    weights: np.ndarray  # times the cost factor


def _require(holds, complaint):
    """Refuse a file unless a condition holds."""
    if not holds:
        raise _damaged(complaint)


def _damaged(complaint):
    """Error for a file that is not what ``crf_learn -t`` writes."""
    return ValueError(f"This is not an intact text model of CRF++: {complaint}.")


def _parse_model(text):
    """Parse the text of a file; a ValueError says what is wrong with it."""
    # Not splitlines: names may contain characters that it takes as the end of a line.
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    sections, start = [], 0
    for what in ("header", "labels", "template", "features"):
        _require("" in lines[start:], f"it ends before the end of the {what}")
        end = lines.index("", start)
        sections.append(lines[start:end])
        start = end + 1
    header, labels, template, features = sections
    values = dict(line.partition(": ")[::2] for line in header)
    n_weights = _number(values.get("maxid"), int, "maxid")
    found = len(lines) - start
    _require(found == n_weights, f"it has {found} weights, but maxid in its header is {n_weights}")
    weights = np.array([_number(line, float, "a weight") for line in lines[start:]], np.float64)
    factor = _number(values.get("cost-factor"), float, "cost-factor")
    n_columns = _number(values.get("xsize"), int, "xsize")
    finite = np.isfinite(weights).all() and np.isfinite(factor)
    _require(finite, "a weight or the cost-factor is NaN or infinite")
    _require(labels and len(set(labels)) == len(labels), "it has no labels, or lists a label twice")
    _require(n_columns >= 1, f"xsize in its header is {n_columns}, but must be at least 1")
    places = _read_features(features, len(labels), n_weights)
    return _TextModel(n_columns, labels, template, places, factor * weights)


def _number(text, kind, what):
    try:
        return kind(text)
    except (TypeError, ValueError):
        _require(False, f"{what} is {text!r}, which is not a valid {kind.__name__}")


def _read_features(lines, n_labels, n_weights):
    """Position of each feature's first weight, checked to account for all weights."""
    places, end = {}, 0
    for line in lines:
        place, _, name = line.partition(" ")
        _require(name not in places, f"the feature {name!r} is listed twice")
        _require(name[:1] in ("U", "B"), f"{line!r} is not a feature of the kind U or B")
        places[name] = _number(place, int, f"the place of {name!r}")
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        _require(place == end, f"the weights of {name!r} start at {place} instead of {end}")
        end += n_labels if name[0] == "U" else n_labels**2
    _require(end == n_weights, f"the features have {end} weights, but the file has {n_weights}")
    return places
