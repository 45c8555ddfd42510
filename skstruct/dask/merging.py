"""Union of the labels and features of all shards."""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from skstruct.features.dicts import SequenceVectorizer
from skstruct.input.formats import Format, encode_labels
from skstruct.input.labels import check_number
from skstruct.sequences import SequenceBatch
from skstruct.templates.base import LearningTemplateVectorizer
from skstruct.utils.messages import short_repr
from skstruct.utils.packing import unpack_strings

# Kinds of features and of labels, for messages.
_NAMED, _NUMBERED = "feature dicts or attribute strings", "numbers"
_STRINGS, _INTEGERS = "strings", "integers"


class Columns(NamedTuple):
    """Features of a model, and where those of each shard are.

    Attributes
    ----------
    n_features : int
        Number of features.
    vectorizer : SequenceVectorizer or None
        Vectoriser with the names of all shards; None where features have none.
    numbers : list of ndarray
        For each shard the numbers of its features in the model, -1 for features that it lacks.
    """

    n_features: int
    vectorizer: SequenceVectorizer | None
    numbers: list


def sort_classes(classes):
    """Array of labels as ``fit`` of a tagger makes it; a ValueError if they are of two kinds."""
    distinct = sorted(set(classes))
    nothing = np.empty((len(distinct), 0))
    one_sequence = SequenceBatch(nothing, [0, len(distinct)])
    return encode_labels([distinct], one_sequence, Format.BATCH, name="classes")[0]


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
    kinds = [
        (_STRINGS if isinstance(shard.classes[0], str) else _INTEGERS) if shard.classes else None
        for shard in found
    ]
    _require_one_kind(kinds, "labels")
    classes = set().union(*(shard.classes for shard in found))
    if not classes:
        raise ValueError("No token has a label: at least one label is required.")
    check_number(len(classes))
    return sort_classes(classes)


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
    columns : Columns

    Raises
    ------
    ValueError
        If there is no feature, or shards have features of different kinds, numbers of columns or
        lengths of arrays.
    """
    full = [shard.n_sequences > 0 for shard in found]
    kinds = [
        (_NAMED if shard.n_features is None else _NUMBERED) if is_full else None
        for shard, is_full in zip(found, full, strict=True)
    ]
    if isinstance(vectorizer, LearningTemplateVectorizer):
        return _merge_templates(found, vectorizer)
    if _require_one_kind(kinds, "features") == _NUMBERED:
        return _number_columns(found, full)
    names = [
        unpack_strings(shard.columns) if is_full else []
        for shard, is_full in zip(found, full, strict=True)
    ]
    vectorizer = SequenceVectorizer() if vectorizer is None else clone(vectorizer)
    kept = _frequent(names, [shard.frequency for shard in found], vectorizer.min_freq)
    if not kept:
        raise ValueError(
            f"No attribute occurs in at least {vectorizer.min_freq} token(s): lower min_freq, or "
            "pass tokens with attributes."
        )
    vectorizer._learn(kept, _merge_lengths(found))
    get = vectorizer.vocabulary_.get
    numbers = [np.array([get(name, -1) for name in of_shard], np.int32) for of_shard in names]
    return Columns(len(kept), vectorizer, numbers)


def _number_columns(found, full):
    """Check that all shards have the same number of columns."""
    first = full.index(True)
    n_features = found[first].n_features
    for i, shard in enumerate(found):
        if full[i] and shard.n_features != n_features:
            raise ValueError(
                f"Partition {i} has {shard.n_features} features, but partition {first} has "
                f"{n_features}."
            )
    if n_features == 0:
        raise ValueError("Found array with 0 feature(s): at least one feature is required.")
    return Columns(n_features, None, [np.asarray(shard.columns, np.int32) for shard in found])


def _merge_templates(found, vectorizer):
    """Unite the features that the shards with tokens have learnt by a template."""
    full = [i for i, shard in enumerate(found) if shard.templates is not None]
    parts = [found[i].templates for i in full]
    for i, part in zip(full, parts, strict=True):
        if part.n_columns_ != parts[0].n_columns_:
            raise ValueError(
                f"Tokens of partition {i} have {part.n_columns_} column(s), but those of "
                f"partition {full[0]} have {parts[0].n_columns_}."
            )
    columns = vectorizer._merge(parts, [found[i].frequency for i in full])
    numbers = [np.empty(0, np.int32) for _ in found]
    for i, of_shard in zip(full, columns, strict=True):
        numbers[i] = of_shard
    return Columns(vectorizer.n_features_, None, numbers)


def _frequent(names, frequency, min_freq):
    """Sorted names that occur in enough tokens."""
    if min_freq == 1:
        return sorted(set().union(*(of_shard for of_shard in names)))
    total = {}
    for of_shard, counts in zip(names, frequency, strict=True):
        for name, n in zip(of_shard, counts.tolist(), strict=True):
            total[name] = total.get(name, 0) + n
    return sorted(name for name, n in total.items() if n >= min_freq)


def _merge_lengths(found):
    """Lengths of features that are arrays; a ValueError where shards disagree."""
    lengths, owner = {}, {}
    for i, shard in enumerate(found):
        for name, length in shard.array_lengths.items():
            if lengths.setdefault(name, length) != length:
                raise ValueError(
                    f"Partition {i}: feature {short_repr(name)} is an array of {length} numbers, "
                    f"but of {lengths[name]} in partition {owner[name]}."
                )
            owner.setdefault(name, i)
    return lengths


def _require_one_kind(kinds, what):
    """Return the kind that all shards share; None stands for a shard of any kind."""
    first = next((i for i, kind in enumerate(kinds) if kind is not None), None)
    for i, kind in enumerate(kinds):
        if kind is not None and kind != kinds[first]:
            raise ValueError(
                f"The {what} of partition {i} are {kind}, but those of partition {first} "
                f"{kinds[first]}."
            )
    return None if first is None else kinds[first]
