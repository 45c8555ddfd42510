"""``skstruct show``: describe a model and its weights."""

import inspect
from itertools import product

import click
import numpy as np

from skstruct.cli.models import load_model
from skstruct.cli.output import write_line


@click.command(short_help="Describe a model and its weights.")
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "-n",
    "--top",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="N",
    help="Features of greatest and of least weight to show for each label.",
)
@click.option("--label", "labels", multiple=True, help="Only this label; may be repeated.")
@click.option("--dump", is_flag=True, help="All weights, as tab-separated columns.")
def show(model, top, labels, dump):
    """Describe MODEL: kind, parameters, labels, size, and the weights that matter most.

    With --dump, each line has a weight that is not zero: the feature, the label, the weight; for
    transitions the label before, the label and the weight; for triples of labels, three labels and
    the weight.

    \b
    Examples:
      skstruct show chunker.skops
      skstruct show chunker.skops --top 20 --label B-NP
      skstruct show chunker.skops --dump | sort -k3 -g | tail
    """
    fitted = load_model(model)
    for line in _dumped(fitted) if dump else _described(fitted, top, labels):
        write_line(line)


def _described(model, n_top, labels):
    """Lines that describe a model; with `labels`, the weights of these alone."""
    estimator = model.estimator
    lines = [f"{type(estimator).__name__}", _parameters("parameters", estimator)]
    if hasattr(estimator, "reranker_"):
        tagger, reranker = _parts(model)
        return [*lines, *_described(tagger, n_top, labels), "", *_described(reranker, n_top, ())]
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
        for title, weights in _of_transitions(estimator):
            names = [" -> ".join(path) for path in product(classes, repeat=weights.ndim)]
            lines += ["", *_extremes(title, np.ravel(weights), names, n_top)]
    return lines


def _of_transitions(estimator):
    """Yield the weights of pairs of labels, and those of triples, if there are any."""
    for title, name in (("transitions", "transition_"), ("triples", "transition2_")):
        if hasattr(estimator, name):
            yield title, getattr(estimator, name)


def _parts(model):
    """Tagger and reranker of a model that has both."""
    stacked = model.estimator
    return model._replace(estimator=stacked.tagger_), type(model)(stacked.reranker_)


def _parameters(title, estimator):
    """Parameters that differ from their defaults; lists by their length."""
    known, changed = inspect.signature(type(estimator)).parameters, []
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, (list, dict, set)) and len(value) > 3:
            changed.append(f"{name}=({len(value)} entries)")
        elif repr(value) != repr(known[name].default):
            changed.append(f"{name}={value!r}")
    return f"{title}: {', '.join(changed) or 'defaults'}"


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
    return [title, *(f"  {weights[i]:+9.4f}  {names[i]}" for i in (*best, *reversed(worst)))]


def _dumped(model):
    """Iterate over lines with all weights that are not zero."""
    estimator = model.estimator
    if hasattr(estimator, "reranker_"):
        for part in _parts(model):
            yield from _dumped(part)
        return
    names, coef = _names(model), np.atleast_2d(_dense(estimator.coef_))
    if not hasattr(estimator, "classes_"):
        for i in np.flatnonzero(coef[0]):
            yield f"{names[i]}\t{float(coef[0, i])!r}"
        return
    classes = [str(label) for label in estimator.classes_]
    for i, weights in enumerate(np.ascontiguousarray(coef.T)):
        for code in np.flatnonzero(weights):
            yield f"{names[i]}\t{classes[code]}\t{float(weights[code])!r}"
    for _, weights in _of_transitions(estimator):
        for place in zip(*np.nonzero(weights), strict=True):
            path = "\t".join(classes[code] for code in place)
            yield f"{path}\t{float(weights[place])!r}"
