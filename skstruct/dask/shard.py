"""Work on a partition: reading, numbering of features and labels, counting, prediction.

Every function returns something new and leaves its arguments as they are: a task may be run again
after a worker has died.
"""

from collections.abc import Iterator
from typing import NamedTuple

import joblib
import numpy as np
from sklearn.base import clone

from skstruct.blocks.dense import DenseBlock
from skstruct.blocks.rows import BlockRows, Placed
from skstruct.chain.scores import Rows
from skstruct.features.dicts import SequenceVectorizer
from skstruct.input.constraints import check_completable
from skstruct.input.formats import Format, encode_labels, read_format
from skstruct.input.scale import advise_scaling
from skstruct.input.training_set import (
    TrainingSet,
    block_rows,
    check_partial,
    weigh_sequences,
    without_unlabelled,
)
from skstruct.learning.layout import observe, sum_observed, with_every_label
from skstruct.learning.objective import transition_frequency
from skstruct.matrices import read_only, writable
from skstruct.metrics.labels import compare_tokens
from skstruct.sequences import SequenceBatch
from skstruct.templates.vectorizers import LearningTemplateVectorizer
from skstruct.utils.declared import pack_strings
from skstruct.utils.messages import short_repr


class Summary(NamedTuple):
    """Summary of a shard for the driver.

    Attributes
    ----------
    n_sequences, n_tokens : int
        Numbers of sequences and of tokens.
    classes : list
        The labels that occur, sorted, or those given.
    columns : object
        Names of the features that occur, sorted; or their columns, if X has numbers. Those of a
        template are all that `templates` has learnt. Packed.
    array_lengths : dict of str to int
        Lengths of the features that are arrays.
    wide : list of str
        Features whose arrays are blocks.
    templates : LearningTemplateVectorizer or None
        Vectoriser that has learnt features by a template, if the partition has tokens.
    n_features : int or None
        Number of columns; None where the driver unites all partitions', and in a partition
        without sequences.
    frequency : ndarray
        Number of tokens with each feature.
    scale : str or None
        Advice to scale the features.
    names : str or None
        Hash of the names of the columns, if X has numbers whose columns have names.
    """

    n_sequences: int
    n_tokens: int
    classes: list
    columns: object
    array_lengths: dict
    wide: list
    templates: LearningTemplateVectorizer | None
    n_features: int | None
    frequency: np.ndarray
    scale: str | None
    names: str | None


class Shard(NamedTuple):
    """A partition that has been read.

    Attributes
    ----------
    rows : Rows or BlockRows
        The tokens; features are numbered in the order of the columns of `summary`.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    labels : ndarray of shape (n_rows,)
        Positions in the classes of `summary`, -1 where a label is unknown.
    summary : Summary
    names : ndarray of shape (n_features,) or None
        Names of the columns, if X has numbers whose columns have names.
    """

    rows: Rows  # or BlockRows
    offsets: np.ndarray
    labels: np.ndarray
    summary: Summary
    names: np.ndarray | None


class Counts(NamedTuple):
    """Counts that the layout of the weights depends on.

    Attributes
    ----------
    observed : Observed
        Labels that features occur with, by the numbers of the shard.
    transitions : list of ndarray of shape (n_labels, n_labels) and so on
        How often each label follows each other, and, with order 2, each pair.
    n_labelled : int
        Number of tokens with a label in sequences that count.
    partial : bool
        True if a label is unknown.
    of_blocks : ndarray
        Features that are columns of blocks, by the numbers of the shard. They occur with every
        label.
    """

    observed: tuple
    transitions: list
    n_labelled: int
    partial: bool
    of_blocks: np.ndarray


def read(X, y, settings):
    """Read a partition.

    Parameters
    ----------
    X, y : object
        The partition of both, as ``fit`` of a tagger takes them; they may be empty.
    settings : tuple
        The vectoriser or None, the classes or None, and the `Counts` of labels of all partitions,
        or None.

    Returns
    -------
    shard : Shard
    """
    vectorizer, classes, total = settings
    X, y = as_sequences(X, "X"), as_sequences(y, "y")
    format, batch, learnt = vectorize(X, vectorizer, (y, total))
    n_features = batch.n_features if learnt is None and len(batch) else None
    if classes is None and batch.n_rows == 0:
        # No label can occur, but the number of sequences must be right.
        classes = np.empty(0, object)
    classes, labels = encode_labels(y, batch, format, classes, partial=True)
    rows, columns = block_rows(batch), batch.feature_names
    # A vectoriser knows the names.
    names = columns if vectorizer is None and learnt is None else None
    array_lengths, wide, templates = {}, [], None
    if isinstance(learnt, LearningTemplateVectorizer):
        columns = np.arange(batch.n_features)
        templates = learnt if batch.n_rows else None
    elif learnt is not None:
        array_lengths, wide = learnt._array_lengths, learnt._wide
    if learnt is None or columns is None:
        columns, rows = _number_used(rows, batch.n_features)
    summary = Summary(
        len(batch),
        len(labels),
        classes.tolist(),
        pack_strings(columns),
        array_lengths,
        wide,
        templates,
        n_features,
        _frequency(rows, len(columns)),
        advise_scaling(rows, columns),
        # Names of many columns would be a burden to the driver.
        None if names is None else joblib.hash(pack_strings(names)),
    )
    return Shard(rows, batch.offsets, labels, summary, names)


def as_sequences(part, name):
    """Partition as a list, if it is an iterator; a ValueError for what has no sequences."""
    part = list(part) if isinstance(part, Iterator) else part
    try:
        len(part)
    except TypeError:
        raise ValueError(
            f"{name} is {short_repr(part)}; expected a list of sequences in each partition, or for "
            "X a SequenceBatch."
        ) from None
    return part


def _number_used(rows, n_columns):
    """Sorted columns that occur, columns of blocks among them, and rows with their positions."""
    (first,) = rows.sets()
    of_blocks = (np.r_[one.columns] for one in rows.placed)
    indices = np.concatenate([first.indices, *of_blocks]) if rows.placed else first.indices
    if n_columns > len(indices):
        columns, places = np.unique(indices, return_inverse=True)
        places = places.astype(np.int32)
    else:
        # Sorting would take many times as long, and several times the memory of the indices.
        used = np.zeros(n_columns, bool)
        used[indices] = True
        columns, places = np.flatnonzero(used).astype(indices.dtype), _places(used)[indices]
    numbered = read_only(first._replace(indices=places[: len(first.indices)]))
    if not rows.placed:
        return columns, numbered
    starts = np.searchsorted(columns, [start for start, _ in rows.placed]).tolist()
    blocks = (block for _, block in rows.placed)
    return columns, BlockRows(numbered, tuple(map(Placed, starts, blocks)))


def _frequency(rows, n_columns):
    """Number of tokens with each column; all tokens have the columns of a table."""
    frequency = np.bincount(rows.sets()[0].indices, minlength=n_columns).astype(np.int32)
    for one in rows.placed:
        is_dense = isinstance(one.block, DenseBlock)
        n_tokens = np.count_nonzero(one.block.values(), axis=0) if is_dense else one.block.n_rows
        frequency[one.columns] = n_tokens
    return frequency


def _places(kept):
    """Position of each kept feature among all that are kept."""
    return np.cumsum(kept, dtype=np.int32) - np.int32(1)


def reads_labels(vectorizer):
    return bool(getattr(vectorizer, "label_statistics", False))


def count_labels(X, y, vectorizer):
    """Counts of the labels of words in a partition; None if it has no sequences."""
    X, y = as_sequences(X, "X"), as_sequences(y, "y")
    return vectorizer._count_labels(X, y) if len(X) else None


def vectorize(X, vectorizer, labels=(None, None)):
    """Turn a partition into a batch.

    Parameters
    ----------
    X : object
        The partition of X.
    vectorizer : vectoriser or None
        What makes a batch of tokens. A copy of a `SequenceVectorizer`, or of a vectoriser by
        templates that learns, is fitted to the partition, others transform it.
    labels : tuple, default=(None, None)
        Labels of the partition, for vectorisers that learn from them, and the `Counts` of all
        partitions; None if there are no others.

    Returns
    -------
    format : Format
    batch : SequenceBatch
    learnt : vectoriser or None
        The one that was fitted.
    """
    learnt = None
    if len(X) == 0:
        return Format.BATCH, SequenceBatch(np.empty((0, 0)), [0]), learnt
    if isinstance(vectorizer, LearningTemplateVectorizer):
        learnt = clone(vectorizer)
        given = {"labels": (*labels, None)} if reads_labels(vectorizer) else {}
        format, batch = Format.TOKENS, learnt._fit(X, is_part=True, **given)
    elif vectorizer is not None and not isinstance(vectorizer, SequenceVectorizer):
        format, batch = Format.TOKENS, read_format(vectorizer.transform(X))[1]
    else:
        format, batch = read_format(X)
        if format is Format.TOKENS:
            learnt = SequenceVectorizer() if vectorizer is None else clone(vectorizer)
            batch = learnt._fit(batch, is_part=True)
    if format not in (Format.TOKENS, Format.BATCH):
        raise ValueError(
            "X is a matrix; expected a list of sequences or a SequenceBatch in each partition."
        )
    if batch.transition_X is not None:
        raise ValueError(
            "DaskTagger does not learn transition features: pass a SequenceBatch without "
            "transition_X, or a template without lines such as B01:%x[0,0]."
        )
    return format, batch, learnt


def number(shard, codes, kept, settings):
    """Number the labels and features of a shard as in the model.

    Parameters
    ----------
    shard : Shard
    codes : ndarray
        Code of each class of the shard.
    kept : ndarray of bool
        True for its features that the model has.
    settings : tuple
        All classes, the constraint or None, the weights of the classes or None, and whether the
        tagger learns from partly labelled sequences.

    Returns
    -------
    training_set : TrainingSet
        Sequences with a weight, whose features are numbered among those kept.
    """
    classes, possible, class_weight, learns_partial = settings
    offsets = read_only(shard.offsets)
    # The code after the last one stands for unknown labels.
    labels = np.append(codes, -1).astype(np.int32)[shard.labels]
    if labels.min(initial=0) < 0 and not learns_partial:
        check_partial(labels, offsets, learns=False)
    if possible is not None:
        check_completable(labels, offsets, classes, possible)
    weight = weigh_sequences(class_weight, classes, labels, offsets, np.ones(len(offsets) - 1))
    if labels.min(initial=0) < 0:
        weight = without_unlabelled(weight, labels, offsets)
    rows = _keep_features(shard.rows, kept)
    return TrainingSet(rows, offsets, labels, read_only(weight)).weighted()


def _keep_features(rows, kept):
    """Drop features, and renumber the others."""
    if kept.all():
        return rows if rows.placed else read_only(rows)
    if rows.placed:
        placed = []
        for start, block in rows.placed:
            own = kept[start : start + block.n_columns]
            if not own.all():
                block = DenseBlock(np.ascontiguousarray(block.toarray()[:, own]))
            if block.n_columns:
                placed.append(Placed(int(np.count_nonzero(kept[:start])), block))
        tokens = _keep_features(rows.tokens, kept)
        return BlockRows(tokens, tuple(placed)) if placed else tokens
    of_kept = kept[rows.indices]
    indptr = np.concatenate([[0], np.cumsum(of_kept)])[rows.indptr]
    data = rows.data[of_kept] if rows.data.size else rows.data
    return read_only(Rows(indptr, _places(kept)[rows.indices[of_kept]], data))


def count(training_set, n_features, settings):
    """Compute the `Counts` of a shard.

    Parameters
    ----------
    training_set : TrainingSet
        From `number`.
    n_features : int
        Number of its features.
    settings : tuple
        Number of labels, order of the model, and whether frequencies matter.
    """
    n_labels, order, by_frequency = settings
    rows, offsets, labels, sample_weight, _ = own_arrays(training_set)
    weight = np.repeat(sample_weight, np.diff(offsets)) if by_frequency else None
    (first,) = rows.sets()
    observed = sum_observed(observe(first, labels, weight, n_features, n_labels), n_labels)
    columns = np.concatenate(
        [np.empty(0, np.int32), *(np.r_[one.columns] for one in rows.placed)], dtype=np.int32
    )
    observed = with_every_label(observed, columns, n_labels)
    if not by_frequency:
        observed = observed._replace(values=np.empty(0))
    return Counts(
        observed,
        [transition_frequency(training_set, n_labels, n) for n in range(1, order + 1)],
        int(np.count_nonzero(labels >= 0)),
        bool(np.any(labels < 0)),
        columns,
    )


def own_arrays(training_set):
    """Arrays of a training set as kernels take them.

    Those that come from another worker are read-only, and kernels are compiled for each kind.
    """
    rows = training_set.rows
    return training_set._replace(
        # Blocks see to theirs.
        rows=rows._replace(tokens=read_only(rows.tokens)) if rows.placed else read_only(rows),
        offsets=read_only(training_set.offsets),
        labels=writable(training_set.labels),
        sample_weight=read_only(training_set.sample_weight),
        token_weight=writable(training_set.token_weight),
    )


def answer_part(X, numbers, model, method):
    """Call `answer` for a partition; errors name its number, a partition of a bag of numbers."""
    try:
        return answer(X, model, method)
    except ValueError as error:
        (number,) = numbers
        raise ValueError(f"Partition {number}: {error}") from error


def answer(X, model, method):
    """Call a method of a tagger for a partition; return a list of its results.

    Parameters
    ----------
    X : object
        The partition of X.
    model : tuple
        Vectoriser or None, and the tagger.
    method : {"predict", "predict_proba"}
    """
    vectorizer, tagger = model
    X = as_sequences(X, "X")
    if len(X) == 0:
        return []
    return list(getattr(tagger, method)(X if vectorizer is None else vectorizer.transform(X)))


def count_hits(X, y, model):
    """Numbers of tokens with the right label, and with a known one, of a partition."""
    predicted = answer(X, model, "predict")
    y = list(as_sequences(y, "y"))
    if len(y) == len(predicted) and not any(map(len, y)) and not any(map(len, predicted)):
        return 0, 0
    hit, _, known = compare_tokens(y, predicted, partial=True)
    return int(np.count_nonzero(hit & known)), int(np.count_nonzero(known))
