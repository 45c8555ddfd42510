"""Fits that go on from another one, and files by which they outlive the driver."""

from __future__ import annotations

import os

import numpy as np
import skops.io

from skstruct.templates.base import LearningTemplateVectorizer
from skstruct.utils.callbacks import without_callbacks
from skstruct.utils.files import write_whole

__all__ = ["Checkpoints", "start_from"]


def start_from(before, tagger, vectorizer):
    """Weights of an earlier fit, for the labels and features of this one.

    Parameters
    ----------
    before : DaskTagger
        The earlier fit.
    tagger : BaseTagger
        With labels and features.
    vectorizer : vectoriser or None
        What makes its batches of tokens.

    Returns
    -------
    chain : Chain
        Zero where the earlier fit lacks a label or a feature.

    Raises
    ------
    ValueError
        If features cannot be compared: they have no names, and other columns. If the order of the
        chain has changed.
    """
    known = tagger._same_order(before.estimator_._chain())
    chain = tagger._model()._replace(possible=None).zero_chain()
    label = _places(before.classes_.tolist(), tagger.classes_.tolist())
    names = _names(before.estimator_, before.vectorizer_), _names(tagger, vectorizer)
    sizes = len(known.weights), len(chain.weights)
    if None in names and (names != (None, None) or sizes[0] != sizes[1]):
        raise ValueError(
            f"warm_start=True: the {sizes[1]} features of X cannot be compared with the {sizes[0]} "
            "of estimator_, because they have no names. Make the same columns, or fit a new "
            "DaskTagger."
        )
    same = np.arange(sizes[1])
    feature = same if None in names else _places(*names)
    n_before = len(before.classes_)
    pair = np.where(np.minimum.outer(label, label) < 0, -1, np.add.outer(n_before * label, label))
    places = {
        "weights": (feature, label),
        "transition": (label, label),
        "triple": (pair.ravel(), label),
    }
    for name in chain._fields:
        of_axes = places.get(name, (label,))
        here = np.ix_(*(np.flatnonzero(place >= 0) for place in of_axes))
        there = np.ix_(*(place[place >= 0] for place in of_axes))
        getattr(chain, name)[here] = getattr(known, name)[there]
    return chain


def _names(tagger, vectorizer):
    """Names of the features of a tagger, None if they have none."""
    if isinstance(vectorizer, LearningTemplateVectorizer):
        return vectorizer.get_feature_names_out().tolist()
    names = getattr(tagger, "feature_names_in_", None)
    return None if names is None else names.tolist()


def _places(before, now):
    """Position of each of `now` in `before`, -1 where it is not there."""
    place = {value: i for i, value in enumerate(before)}
    return np.array([place.get(value, -1) for value in now], np.int64)


class Checkpoints:
    """Progress of a fit that also stores the model as it is, every few iterations.

    Parameters
    ----------
    progress : Progress
        Is told of every iteration.
    model : callable
        Returns a `DaskTagger` with everything but the weights; what it returns may change.
    path : path-like
        Where it is stored, by skops.io. The file is always whole.
    period : int
        Number of iterations from one time to the next.
    """

    def __init__(self, progress, model, path, period):
        self._progress, self._model, self._path, self._period = progress, model, path, period

    def tell(self, history, attributes):
        """As `Progress.tell`."""
        stop = self._progress.tell(history, attributes)
        epoch = history["epoch"][-1]
        if epoch and epoch % self._period == 0:
            self._store(epoch, history, attributes())
        return stop

    def _store(self, epoch, history, weights):
        model = self._model()
        model.checkpoint = os.fspath(self._path)
        model.estimator = without_callbacks(model.estimator)
        model.estimator_ = without_callbacks(model.estimator_)
        vars(model.estimator_).update(weights, n_iter_=epoch, history_=history.arrays())
        write_whole(self._path, skops.io.dumps(model))
