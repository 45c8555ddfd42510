"""``skstruct show``: describe a model and its weights."""

import inspect
from itertools import product

import click
import numpy as np

from skstruct.cli.models import load_model
from skstruct.cli.options import FILE
from skstruct.cli.output import write_line
from skstruct.matrices import as_dense
from skstruct.spans import AroundTagger


@click.command(short_help="Describe a model and its weights.")
@click.argument("model", type=FILE)
@click.option(
    "-n",
    "--top",
    type=click.IntRange(0),
    default=5,
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


def _parts(model):
    """Tagger and reranker of a model that has both, the tagger of spans, or the model itself."""
    stacked = model.estimator
    if isinstance(stacked, AroundTagger):
        return [model._replace(estimator=stacked.estimator_)]
    if not hasattr(stacked, "reranker_"):
        return [model]
    return [model._replace(estimator=stacked.tagger_), type(model)(stacked.reranker_)]


def _weights(model):
    """Yield a title, an array of weights, and the names along its axes.

    The first array has a row for each feature, and a tagger's a column for each label.
    """
    estimator = model.estimator
    coef = as_dense(estimator.coef_, "coef_")
    names = getattr(estimator, "feature_names_in_", None)
    if model.vectorizer is not None:
        names = model.vectorizer.get_feature_names_out()
    if names is None:
        names = [f"feature {i}" for i in range(estimator.n_features_in_)]
    classes = getattr(estimator, "learned_classes_", getattr(estimator, "classes_", ()))
    classes = [str(label) for label in classes]
    yield "score", coef.T, [names, classes][: coef.ndim]
    for title, name in (("transitions", "transition_"), ("triples", "transition2_")):
        if hasattr(estimator, name):
            weights = getattr(estimator, name)
            yield title, weights, [classes] * weights.ndim


def _described(model, n_top, labels):
    """Lines that describe a model; with `labels`, the weights of these alone."""
    lines = [f"{type(model.estimator).__name__}", _parameters(model.estimator)]
    tagger, *reranker = _parts(model)
    if tagger is not model and not reranker:
        lines += _thresholds(model.estimator)
        return [*lines, *_described(tagger, n_top, labels)]
    if reranker:
        return [*lines, *_described(tagger, n_top, labels), "", *_described(*reranker, n_top, ())]
    if model.vectorizer is not None:
        lines.append(f"features by {type(model.vectorizer).__name__}")
        lines.append(_parameters(model.vectorizer))
    (title, coef, axes), *of_labels = _weights(model)
    n_weights = int(np.count_nonzero(coef))
    lines.append(f"{len(coef):,} features, {n_weights:,} weights that are not zero")
    if len(axes) == 1:
        return [*lines, "", *_extremes(title, coef, *axes, n_top)]
    names, classes = axes
    unknown = sorted(set(labels) - set(classes))
    if unknown:
        raise click.BadParameter(
            f"the model has no label {unknown[0]!r}; it has {', '.join(classes)}.",
            param_hint="--label",
        )
    lines.append(f"{len(classes)} labels: {' '.join(classes)}")
    lines += _confusions(model.estimator, classes)
    for label, weights in zip(classes, coef.T, strict=True):
        if n_top and (not labels or label in labels):
            lines += ["", *_extremes(label, weights, names, n_top)]
    for title, weights, axes in of_labels if n_top and not labels else ():
        paths = [" -> ".join(path) for path in product(*axes)]
        lines += ["", *_extremes(title, weights.ravel(), paths, n_top)]
    return lines


def _thresholds(estimator):
    if hasattr(estimator, "best_threshold_"):
        return [f"threshold: {estimator.best_threshold_:.4g}"]
    pairs = zip(estimator.kinds_, estimator.thresholds_, strict=True)
    return [f"threshold of {kind}: {threshold:.4g}" for kind, threshold in pairs]


def _confusions(estimator, classes):
    """Lines on the annotators of an `AnnotatorCRF`: what each confuses most."""
    annotators, lines = getattr(estimator, "annotators_", ()), []
    for name, confusion in zip(annotators, getattr(estimator, "confusion_", ()), strict=True):
        off = np.where(np.eye(len(classes), dtype=bool), 0, confusion)
        found = [np.unravel_index(i, off.shape) for i in np.argsort(-off, axis=None, kind="stable")]
        worst = ", ".join(f"{classes[j]} as {classes[k]} {off[j, k]:.0%}" for j, k in found[:3])
        lines.append(f"annotator {name}: labels {worst}")
    return lines


def _parameters(estimator):
    """Line of the parameters that differ from their defaults; lists by their length."""
    known, changed = inspect.signature(type(estimator)).parameters, []
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, (list, dict, set)) and len(value) > 3:
            changed.append(f"{name}=({len(value)} entries)")
        elif repr(value) != repr(known[name].default):
            changed.append(f"{name}={value!r}")
    return f"parameters: {', '.join(changed) or 'defaults'}"


def _extremes(title, weights, names, n_top):
    """Lines with the greatest and the least weights."""
    order = np.argsort(-weights, kind="stable")
    best = [i for i in order[:n_top] if weights[i] > 0]
    worst = [i for i in order[::-1][:n_top] if weights[i] < 0]
    return [title, *(f"  {weights[i]:+9.4f}  {names[i]}" for i in (*best, *reversed(worst)))]


def _dumped(model):
    """Iterate over lines with all weights that are not zero."""
    for part in _parts(model):
        for _, weights, axes in _weights(part):
            for place in zip(*np.nonzero(weights), strict=True):
                path = [names[i] for names, i in zip(axes, place, strict=True)]
                yield "\t".join([*path, repr(float(weights[place]))])
