"""Descriptions of models: what they are, and their weights."""

from __future__ import annotations

import inspect

import click
import numpy as np

__all__ = ["describe", "dumped"]


def describe(model, n_top, labels):
    """Lines that describe a model.

    Parameters
    ----------
    model : Model
    n_top : int
        Features to show for each label, for and against.
    labels : sequence of str
        Labels to show; all if empty.

    Returns
    -------
    lines : list of str
    """
    estimator = model.estimator
    lines = [f"{type(estimator).__name__}", _parameters("parameters", estimator)]
    if hasattr(estimator, "reranker_"):
        tagger, reranker = _parts(model)
        return [*lines, *describe(tagger, n_top, labels), "", *describe(reranker, n_top, ())]
    if model.vectorizer is not None:
        lines.append(f"features by {type(model.vectorizer).__name__}")
        lines.append(_parameters("parameters", model.vectorizer))
    coef = np.atleast_2d(_dense(estimator.coef_))
    n_weights = int(np.count_nonzero(coef))
    lines.append(f"{coef.shape[1]:,} features, {n_weights:,} weights that are not zero")
    names = _names(model)
    if not hasattr(estimator, "classes_"):
        return [*lines, "", *_extremes("score", coef[0], names, n_top)]
    classes = [str(label) for label in estimator.classes_]
    unknown = sorted(set(labels) - set(classes))
    if unknown:
        raise click.BadParameter(
            f"the model has no label {unknown[0]!r}; it has {', '.join(classes)}.",
            param_hint="--label",
        )
    lines.append(f"{len(classes)} labels: {' '.join(classes)}")
    for code, label in enumerate(classes):
        if n_top and (not labels or label in labels):
            lines += ["", *_extremes(label, coef[code], names, n_top)]
    if n_top and not labels:
        pairs = [f"{a} -> {b}" for a in classes for b in classes]
        lines += ["", *_extremes("transitions", np.ravel(estimator.transition_), pairs, n_top)]
        if hasattr(estimator, "transition2_"):
            triples = [f"{pair} -> {c}" for pair in pairs for c in classes]
            lines += ["", *_extremes("triples", np.ravel(estimator.transition2_), triples, n_top)]
    return lines


def _parts(model):
    """Tagger and reranker of a model that has both."""
    stacked = model.estimator
    return model._replace(estimator=stacked.tagger_), type(model)(stacked.reranker_)


def _parameters(title, estimator):
    """Parameters that differ from their defaults; lists by their length."""
    defaults = {name: parameter.default for name, parameter in _signature(type(estimator)).items()}
    changed = []
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, (list, dict, set)) and len(value) > 3:
            changed.append(f"{name}=({len(value)} entries)")
        elif repr(value) != repr(defaults.get(name)):
            changed.append(f"{name}={value!r}")
    return f"{title}: {', '.join(changed) or 'defaults'}"


def _signature(kind):
    return inspect.signature(kind).parameters


def _dense(coef):
    return coef.toarray() if hasattr(coef, "toarray") else coef


def _names(model):
    """Names of the features, by number where there are none."""
    if model.vectorizer is not None:
        return model.vectorizer.get_feature_names_out()
    names = getattr(model.estimator, "feature_names_in_", None)
    n_features = model.estimator.n_features_in_
    return [f"feature {i}" for i in range(n_features)] if names is None else names


def _extremes(title, weights, names, n_top):
    """Lines with the greatest and the least weights."""
    order = np.argsort(-weights, kind="stable")
    best = [i for i in order[:n_top] if weights[i] > 0]
    worst = [i for i in order[::-1][:n_top] if weights[i] < 0]
    lines = [title]
    for i in (*best, *reversed(worst)):
        lines.append(f"  {weights[i]:+9.4f}  {names[i]}")
    return lines


def dumped(model):
    """Iterate over lines with all weights that are not zero."""
    estimator = model.estimator
    if hasattr(estimator, "reranker_"):
        for part in _parts(model):
            yield from dumped(part)
        return
    names, coef = _names(model), np.atleast_2d(_dense(estimator.coef_))
    if not hasattr(estimator, "classes_"):
        for i in np.flatnonzero(coef[0]):
            yield f"{names[i]}\t{float(coef[0, i])!r}"
        return
    classes = [str(label) for label in estimator.classes_]
    columns = np.ascontiguousarray(coef.T)
    for i, weights in enumerate(columns):
        for code in np.flatnonzero(weights):
            yield f"{names[i]}\t{classes[code]}\t{float(weights[code])!r}"
    for a, b in zip(*np.nonzero(estimator.transition_), strict=True):
        yield f"{classes[a]}\t{classes[b]}\t{float(estimator.transition_[a, b])!r}"
    if hasattr(estimator, "transition2_"):
        triples = estimator.transition2_
        for a, b, c in zip(*np.nonzero(triples), strict=True):
            yield f"{classes[a]}\t{classes[b]}\t{classes[c]}\t{float(triples[a, b, c])!r}"
