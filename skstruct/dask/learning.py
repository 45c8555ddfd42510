"""Fits on partitions: workers read and count, the driver merges counts and lays out the weights.

A fit may start from an earlier one, and store its progress in a file that outlives the driver.
"""

import os
from collections import Counter

import numpy as np
from sklearn.base import clone

from skstruct.dask.mixing import fit_online
from skstruct.dask.shard import count, count_labels, number, read, reads_labels
from skstruct.dask.sums import ShardedLikelihood, ShardedObjective
from skstruct.features.base import names_in
from skstruct.features.dicts import SequenceVectorizer
from skstruct.features.statistics import merge
from skstruct.input.constraints import check_chain
from skstruct.input.formats import check_number, label_array, sorted_classes
from skstruct.learning.layout import lay_out, merge_observed
from skstruct.learning.lbfgs import Settings, minimize
from skstruct.learning.objective import ParameterVector
from skstruct.learning.solver import settings_of
from skstruct.taggers.crf import CRFTagger
from skstruct.templates.vectorizers import LearningTemplateVectorizer
from skstruct.utils.declared import unpack_strings
from skstruct.utils.files import write_whole
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import archived
from skstruct.utils.progress import without_callbacks


def learn(tagger, workers, parts, vectorizer, classes, make_monitor, dtype, before=None):
    """Learn the weights of a tagger from partitions.

    Parameters
    ----------
    tagger : BaseTagger
        Gets ``classes_``, ``n_features_in_`` and, where features have names, ``feature_names_in_``
        and ``vectorizer_``.
    workers : Cluster
        Where the partitions are; anything with its `map` and `iterate`.
    parts : list of tuples
        X and y of each partition, delayed objects or futures. Delayed ones are freed as soon as
        they have been read.
    vectorizer : vectoriser or None
        What makes batches of tokens. One that learns by templates gets the features of all
        partitions.
    classes : array-like or None
        The labels, if they are known.
    make_monitor : callable
        Returns the `Monitor` that says when to stop; called when the tagger has these attributes.
    dtype : {"float64", "float32"}
        Type of the numbers of L-BFGS that travel.
    before : DaskTagger, default=None
        A fitted one, whose weights are the start.

    Returns
    -------
    solution : Solution
    """
    *shards, model, scale = read_shards(tagger, workers, parts, vectorizer, classes)
    del parts
    monitor = make_monitor()
    start = None if before is None else start_from(before, tagger, vectorizer, model)
    if isinstance(tagger, CRFTagger) and tagger.solver == "lbfgs":
        objective = make_objective(tagger, workers, *shards, model, dtype)
        # The objective keeps what it needs of them.
        del shards
        solution = minimize(objective, settings_of(Settings, tagger), start, monitor)
    else:
        solution = fit_online(tagger, workers, *shards, model, start, monitor)
    check_chain(solution.chain, model.possible, solution.n_iter)
    return solution._replace(scale=scale)


def read_shards(tagger, workers, parts, vectorizer, classes):
    """Read all partitions, and set the features and labels of a tagger.

    The parameters are as in `learn`.

    Returns
    -------
    training_sets : list
        Futures of the training sets of the shards.
    numbers : list of ndarray
        For each shard the numbers of its features in the model.
    model : Model
    scale : str or None
        Advice to scale the features.
    """
    classes = None if classes is None else sorted_classes(classes)
    total = count_all_labels(workers, parts, vectorizer) if reads_labels(vectorizer) else None
    shards = workers.map(read, parts, (vectorizer, classes, total), keep=True)
    found = workers.map(getattr, [(shard, "summary") for shard in shards])
    merged = merge_classes(found)
    tagger.classes_ = merged if classes is None else classes
    learns = isinstance(vectorizer, (SequenceVectorizer, LearningTemplateVectorizer))
    n_features, united, numbers = merge_columns(found, vectorizer if learns else None)
    tagger.n_features_in_ = n_features
    if united is not None:
        tagger.vectorizer_, tagger.feature_names_in_ = united, united.feature_names_
    elif (named := find_named(found)) is not None:
        (tagger.feature_names_in_,) = workers.map(getattr, [(shards[named], "names")])
    kept = [of_shard >= 0 for of_shard in numbers]
    code_of = {label: code for code, label in enumerate(tagger.classes_.tolist())}
    scale = next((of.scale for of in found if of.scale is not None), None)
    codes = [np.array([code_of[label] for label in of.classes], np.int32) for of in found]
    # Free the summaries, which have been merged.
    del found
    model = tagger._model()
    training_sets = workers.map(
        number,
        list(zip(shards, codes, kept, strict=True)),
        (tagger.classes_, model.possible, tagger.class_weight, tagger._learns_partial_labels()),
        keep=True,
    )
    return training_sets, [n[of] for n, of in zip(numbers, kept, strict=True)], model, scale


def count_all_labels(workers, parts, vectorizer):
    """Keep the statistics of all partitions; return what each compares with its own.

    Partitions are folds, so that this is None where only one has sequences.
    """
    counts = [found for found in workers.map(count_labels, parts, vectorizer) if found is not None]
    if not counts:
        return None
    total = merge(counts)
    vectorizer._keep_counts(total)
    return total if len(counts) > 1 else None


def make_objective(tagger, workers, training_sets, numbers, model, dtype):
    """Make the objective of a conditional random field of the shards that `read_shards` returns."""
    settings = settings_of(Settings, tagger)
    n_labels, min_freq = model.n_labels, settings.min_freq
    sizes = ((part, len(of)) for part, of in zip(training_sets, numbers, strict=True))
    counts = workers.iterate(count, sizes, (n_labels, model.order, min_freq > 0))
    transitions = [np.zeros((n_labels,) * n) for n in range(2, model.order + 2)]
    n_labelled, partial, of_blocks = 0, False, np.zeros(model.n_features, bool)

    def observed():
        """Yield the observed features of each shard, and add its other counts to the totals."""
        nonlocal n_labelled, partial
        for own, counted in zip(numbers, counts, strict=True):
            of_blocks[own[counted.of_blocks]] = True
            for total, of_shard in zip(transitions, counted.transitions, strict=True):
                total += of_shard
            n_labelled += counted.n_labelled
            partial |= counted.partial
            yield counted.observed

    size = model.n_features, n_labels
    merged = merge_observed(observed(), numbers, *size, by_frequency=min_freq > 0)
    if not n_labelled:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    # Last and in their order: then the columns of a block of any shard are side by side.
    order = merged.order[~of_blocks[merged.order]], np.flatnonzero(of_blocks).astype(np.int32)
    merged = merged._replace(order=np.concatenate(order))
    layout = lay_out(merged, n_labels, min_freq, settings.all_possible_states)
    vector = ParameterVector(
        [layout],
        transitions,
        min_freq=min_freq,
        all_possible_transitions=settings.all_possible_transitions,
        fit_intercept=settings.fit_intercept,
        possible=model.possible,
    )
    likelihood = ShardedLikelihood(
        workers, training_sets, numbers, layout, vector, partial, dtype, model.cost
    )
    return ShardedObjective(likelihood, vector, settings.l2)


def start_from(before, tagger, vectorizer, model):
    """Weights of an earlier fit, for the labels and features of this one.

    Parameters
    ----------
    before : DaskTagger
        The earlier fit.
    tagger : BaseTagger
        With labels and features.
    vectorizer : vectoriser or None
        What makes its batches of tokens.
    model : Model
        Of this fit.

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
    chain = model._replace(possible=None).zero_chain()
    label = _positions_in(before.classes_.tolist(), tagger.classes_.tolist())
    names = _names(before.estimator_, before.vectorizer_), _names(tagger, vectorizer)
    sizes = len(known.weights), len(chain.weights)
    if None in names and (names != (None, None) or sizes[0] != sizes[1]):
        raise ValueError(
            f"warm_start=True: the {sizes[1]} features of X cannot be compared with the {sizes[0]} "
            "of estimator_, because they have no names. Make the same columns, or fit a new "
            "DaskTagger."
        )
    same = np.arange(sizes[1])
    feature = same if None in names else _positions_in(*names)
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


def _positions_in(before, now):
    """Position of each of `now` in `before`, -1 where it is not there."""
    place = {value: i for i, value in enumerate(before)}
    return np.array([place.get(value, -1) for value in now], np.int64)


class Checkpoints:
    """Store the model every few iterations, as a monitor's function `on_epoch`.

    Parameters
    ----------
    model : callable
        Returns a `DaskTagger` without weights, which may be changed.
    path : path-like
        Where it is stored, by skops.io. The file is always whole.
    period : int
        Number of iterations from one time to the next.
    """

    def __init__(self, model, path, period):
        self._model, self._path, self._period = model, path, period

    def __call__(self, monitor, learnt):
        epoch = monitor.history["epoch"][-1]
        if epoch and epoch % self._period == 0:
            self._store(epoch, monitor.arrays(), learnt())
        return False

    def _store(self, epoch, history, weights):
        model = self._model()
        model.checkpoint = os.fspath(self._path)
        model.estimator = without_callbacks(model.estimator)
        model.estimator_ = without_callbacks(model.estimator_)
        vars(model.estimator_).update(weights, n_iter_=epoch, history_=history)
        write_whole(self._path, archived(model))


# Labels and features of all shards


def merge_classes(found):
    """Unite the labels of all shards.

    Parameters
    ----------
    found : list of Summary

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted.

    Raises
    ------
    ValueError
        If there is no token or no label, or some are strings and others integers.
    """
    if not any(shard.n_sequences for shard in found):
        raise ValueError("Found an empty batch: at least one sequence is required.")
    if not any(shard.n_tokens for shard in found):
        raise ValueError("Found no token: every sequence is empty.")
    classes = set().union(*(shard.classes for shard in found))
    if not classes:
        raise ValueError("No token has a label: at least one label is required.")
    kinds = {
        i: "strings" if isinstance(shard.classes[0], str) else "integers"
        for i, shard in enumerate(found)
        if shard.classes
    }
    _require_same(kinds, "The labels of partition {} are {}, but in partition {} they are {}.")
    check_number(len(classes))
    return label_array(sorted(classes))


def merge_columns(found, vectorizer):
    """Unite the features of all shards.

    Parameters
    ----------
    found : list of Summary
    vectorizer : SequenceVectorizer, LearningTemplateVectorizer or None
        With the parameters of the one that the shards have fitted. One by templates gets the
        features of all shards.

    Returns
    -------
    n_features : int
        Number of features.
    vectorizer : SequenceVectorizer or None
        Vectoriser with the names of all shards; None where features have none.
    numbers : list of ndarray
        For each shard the numbers of its features in the model, -1 for features that it lacks.

    Raises
    ------
    ValueError
        If there is no feature, or shards have features of different kinds, numbers of columns or
        lengths of arrays.
    """
    if isinstance(vectorizer, LearningTemplateVectorizer):
        return _merge_templates(found, vectorizer)
    kinds = {
        i: "feature dicts or attribute strings" if shard.n_features is None else "numbers"
        for i, shard in enumerate(found)
        if shard.n_sequences
    }
    message = "The features of partition {} are {}, but in partition {} they are {}."
    if _require_same(kinds, message) == "numbers":
        return _number_columns(found, kinds)
    names = [unpack_strings(shard.columns) if shard.n_sequences else [] for shard in found]
    vectorizer = SequenceVectorizer() if vectorizer is None else clone(vectorizer)
    kept = _frequent(names, [shard.frequency for shard in found], vectorizer.min_freq)
    if not kept:
        raise ValueError(
            f"No attribute occurs in at least {vectorizer.min_freq} token(s): lower min_freq, or "
            "pass tokens with attributes."
        )
    wide = sorted(set().union(*(shard.wide for shard in found)))
    vectorizer._learn(kept, _merge_lengths(found), wide)
    get = vectorizer.vocabulary_.get
    numbers = [np.array([get(name, -1) for name in of_shard], np.int32) for of_shard in names]
    return len(kept), vectorizer, numbers


def _number_columns(found, full):
    """Check that all shards with sequences have the same number of columns."""
    sizes = {i: found[i].n_features for i in full}
    n_features = _require_same(sizes, "Partition {} has {} features, but partition {} has {}.")
    if n_features == 0:
        raise ValueError("Found array with 0 feature(s): at least one feature is required.")
    return n_features, None, [np.asarray(shard.columns, np.int32) for shard in found]


_OTHER_COLUMNS = (
    "The columns of partition {0} and of partition {2} differ in name or order. Columns must "
    "be the same in all partitions."
)


def find_named(found):
    """Number of a shard whose columns have the names of all columns; None if there are no names.

    Parameters
    ----------
    found : list of Summary

    Raises
    ------
    ValueError
        If shards have columns with other names, or in another order.
    """
    names = {i: shard.names for i, shard in enumerate(found) if shard.n_sequences and shard.names}
    return next(iter(names)) if names and _require_same(names, _OTHER_COLUMNS) else None


def _merge_templates(found, vectorizer):
    """Unite the features that the shards with tokens have learnt by a template."""
    parts = {i: shard.templates for i, shard in enumerate(found) if shard.templates is not None}
    _require_same(
        {i: part.n_columns_ for i, part in parts.items()},
        "Tokens of partition {} have {} column(s), but in partition {} they have {}.",
    )
    names = {i: names_in(part) for i, part in parts.items()}
    if names := {i: of_part.tolist() for i, of_part in names.items() if of_part is not None}:
        _require_same(names, _OTHER_COLUMNS)
    columns = vectorizer._merge(list(parts.values()), [found[i].frequency for i in parts])
    numbers = dict.fromkeys(range(len(found)), np.empty(0, np.int32))
    numbers |= zip(parts, columns, strict=True)
    return vectorizer.n_features_, None, list(numbers.values())


def _frequent(names, frequency, min_freq):
    """Sorted names that occur in enough tokens."""
    if min_freq == 1:
        return sorted(set().union(*names))
    total = Counter()
    for of_shard, counts in zip(names, frequency, strict=True):
        total.update(dict(zip(of_shard, counts.tolist(), strict=True)))
    return sorted(name for name, n in total.items() if n >= min_freq)


def _merge_lengths(found):
    """Lengths of features that are arrays; a ValueError where shards disagree."""
    first = {}
    for i, shard in enumerate(found):
        for name, length in shard.array_lengths.items():
            expected, owner = first.setdefault(name, (length, i))
            if length != expected:
                raise ValueError(
                    f"Partition {i}: feature {short_repr(name)} is an array of {length} numbers, "
                    f"but of {expected} in partition {owner}."
                )
    return {name: length for name, (length, _) in first.items()}


def _require_same(of_partitions, message):
    """Return the value that partitions have in common; a ValueError if one differs."""
    (first, expected), *others = of_partitions.items()
    for i, value in others:
        if value != expected:
            raise ValueError(message.format(i, value, first, expected))
    return expected
