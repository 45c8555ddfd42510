"""Taggers with features by templates, written as models of CRF++."""

from __future__ import annotations

import re

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skstruct.crfpp.text import TextModel, format_model
from skstruct.datasets.writing import encoded
from skstruct.templates.base import LearningTemplateVectorizer
from skstruct.templates.syntax import parse_template
from skstruct.utils.files import write_whole
from skstruct.utils.messages import short_repr
from skstruct.utils.public_paths import set_module

__all__ = ["write_model"]

# CRF++ looks at most so many tokens to either side.
_LARGEST_OFFSET = 4
# They separate names in the file, and NUL ends them.
_BLANK = re.compile(r"[ \t\r\n\0]")


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
        Encoding of the file: that of the texts to tag.

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
    CRF++ has no biases. Those of labels become the feature ``U_BIAS`` of every token, those of
    first and last labels the features ``U_EDGE:_B-1`` and ``U_EDGE2:_B+1``, which tokens at the
    ends have, and the template of the file has a line for each. Transitions become the feature of
    the line ``B``. Weights are written in full precision, and features without weights left out.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import CRFTagger, TemplateVectorizer, crfpp
    >>> X, y = [["the", "cat"], ["a", "dog"]], [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = make_pipeline(TemplateVectorizer("U00:%x[0,0]"), CRFTagger()).fit(X, y)
    >>> crfpp.write_model(tagger, "model.txt")  # doctest: +SKIP
    """
    lines = [f"{line}\n" for line in format_model(_as_text_model(model)).split("\n")[:-1]]
    write_whole(path, encoded(lines, lambda n: f"Line {n + 1} of the model", encoding))


def _as_text_model(model):
    vectorizer, tagger = _parts(model)
    if hasattr(tagger, "transition2_"):
        raise ValueError(
            "The tagger has weights of label triples (transition2_), which CRF++ does not support. "
            "Fit it with order=1."
        )
    chain = tagger._chain()
    if not all(np.isfinite(part).all() for part in chain):
        raise ValueError(
            "A weight is infinite or NaN, which CRF++ does not support. Fit the tagger without a "
            "constraint."
        )
    templates = parse_template(vectorizer.template_)
    observed = vectorizer.get_transition_feature_names_out()
    # A line B without a macro stands for the transitions, which get one of their own below.
    lines = [
        _as_line(template) for template in templates if template.kind != "B" or template.macros
    ]
    weights = _Weights()
    weights.add_all(vectorizer.get_feature_names_out(), chain.weights)
    for line, name, of_labels in (
        ("U_BIAS", "U_BIAS", chain.intercept),
        ("U_EDGE:%x[-1,0]", "U_EDGE:_B-1", chain.start),
        ("U_EDGE2:%x[1,0]", "U_EDGE2:_B+1", chain.end),
    ):
        if np.any(of_labels):
            weights.add_new(name, of_labels)
            lines.append(line)
    if len(observed):
        weights.add_all(observed, chain.transition_weights)
    weights.add_new("B", chain.transition.ravel())
    return TextModel(
        1.0, vectorizer.n_columns_, _labels(tagger), [*lines, "B"], weights.places, weights.all()
    )


def _parts(model):
    """Vectoriser and tagger of a pipeline."""
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
    wrong = next((x for x in labels if not isinstance(x, str) or not x or _BLANK.search(x)), None)
    if wrong is not None:
        raise ValueError(
            "Labels must be strings without blanks or NUL characters for CRF++, but one is "
            f"{short_repr(wrong)}."
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


class _Weights:
    """Weights one after the other, and the place of each feature's first one."""

    def __init__(self):
        self.places, self._parts, self._end = {}, [], 0

    def add_all(self, names, rows):
        """Add features with a row of weights each; those without weights are left out."""
        used = np.flatnonzero(np.any(rows, axis=1))
        width = rows.shape[1]
        names = names[used].tolist()
        blank = next((name for name in names if _BLANK.search(name)), None)
        if blank is not None:
            raise ValueError(
                f"The feature {short_repr(blank)} has a blank, which separates the columns of "
                "CRF++'s files. Replace blanks in tokens by another character."
            )
        end = self._end + width * len(names)
        self.places |= zip(names, range(self._end, end, width), strict=True)
        self._parts.append(rows[used].ravel())
        self._end = end

    def add_new(self, name, weights):
        """Add a feature that no line of the template makes."""
        if name in self.places:
            raise ValueError(
                f"The template makes the feature {name!r}, but the file needs the name for biases "
                "or transitions. Give the line another name."
            )
        self.add_all(np.array([name], dtype=object), weights[None])

    def all(self):
        """Return all weights."""
        return np.concatenate(self._parts)
