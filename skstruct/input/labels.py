"""Labels: arrays of them in which each is what it was, and sequences that know only some."""

from __future__ import annotations

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.chain.ranges import decode_best
from skstruct.chain.scores import Rows
from skstruct.input.constraints import check_labelling, first_impossible, forbid
from skstruct.matrices import read_only
from skstruct.utils.declared import MAX_LABELS
from skstruct.utils.messages import place


def check_number(n_labels):
    """Raise a ValueError if there are more labels than are supported."""
    if n_labels > MAX_LABELS:
        raise ValueError(f"{n_labels} classes; at most {MAX_LABELS} are supported.")


def label_array(labels, dtype=None):
    """Array of some labels.

    Parameters
    ----------
    labels : list
        All str or all int.
    dtype : dtype, default=None
        Of the array. By default, numpy chooses it, unless it would change a label: besides NUL
        characters, integers beyond 64 bits, which become floats.

    Returns
    -------
    array : ndarray of shape (n_labels,)
    """
    array = np.array(labels, dtype=dtype)
    if dtype is None and (array.dtype.kind == "f" or array.tolist() != labels):
        array = np.array(labels, dtype=object)
    return array


def sorted_classes(classes):
    """Distinct labels of a user, sorted.

    Parameters
    ----------
    classes : array-like of shape (n_classes,)

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    """
    if not hasattr(classes, "dtype"):
        classes = list(classes)
        if all(isinstance(label, str) for label in classes):
            return label_array(sorted(map(str.__str__, set(classes))))
    return np.unique(classes)


def clamp(rows, chain, known):
    """Restrict rows and a chain to the labellings that agree with known labels.

    Parameters
    ----------
    rows : Rows or TransitionRows
        The tokens.
    chain : Chain or TransitionChain
        The weights.
    known : ndarray of shape (n_rows,)
        Codes of the labels, negative where unknown.

    Returns
    -------
    rows : Rows or TransitionRows
    chain : Chain or TransitionChain
    """
    n_features, n_labels = chain.weights.shape
    which = np.flatnonzero(known >= 0)
    ends = rows.indptr[which + 1]
    added = (n_features + known[which]).astype(rows.indices.dtype)
    data = np.insert(rows.data, ends, 1.0) if rows.data.size else rows.data
    rows = rows._replace(
        indptr=rows.indptr + np.concatenate([[0], np.cumsum(known >= 0)]),
        indices=np.insert(rows.indices, ends, added),
        data=data,
    )
    weights = np.concatenate([chain.weights, np.where(np.eye(n_labels, dtype=bool), 0.0, -np.inf)])
    return read_only(rows), read_only(chain._replace(weights=weights))


def check_decoded(codes, known, offsets, possible):
    """Raise an error if decoding found no possible labelling of a sequence.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        The best labels.
    known : ndarray of shape (n_rows,) or None
        Codes of known labels, negative where unknown.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    possible : Constraint or None
        The constraint in the weights.

    Raises
    ------
    ValueError
        For the first such sequence.
    """
    bad = []
    if known is not None:
        bad.extend(np.flatnonzero((known >= 0) & (known != codes))[:1])
    if possible is not None:
        found = first_impossible(codes, offsets, possible)
        bad.extend([] if found is None else found[:1])
    if bad:
        sequence = int(np.searchsorted(offsets, min(bad), side="right") - 1)
        raise no_labelling(sequence, known, possible)


def check_partial(labels, offsets, *, learns):
    """Raise an error for tokens without a label unless a tagger can learn from them.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        Codes of the classes, negative where there is no label.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    learns : bool
        The tagger learns from partly labelled sequences.

    Raises
    ------
    ValueError
        If it does not, or no token has a label.
    """
    if not learns:
        raise ValueError(
            f"{place(offsets, np.argmin(labels))} has no label; only CRFTagger with solver='lbfgs' "
            "or solver='sgd' learns from partly labelled sequences. Use one of these, or leave "
            "tokens without a label out of X and y."
        )
    if labels.max() < 0:
        raise ValueError("No token has a label: at least one label is required.")


def without_unlabelled(sample_weight, labels, offsets):
    """Weights of sequences, with zeros for those without any label."""
    n_labelled = np.concatenate([[0], np.cumsum(labels >= 0)])[offsets]
    return np.where(np.diff(n_labelled) > 0, sample_weight, 0.0)


def no_labelling(sequence, known, possible):
    """Error for a sequence without a possible labelling."""
    agreeing = "" if known is None else " that agrees with its known labels"
    under = "" if possible is None else f" under {possible.name}"
    return ValueError(f"Sequence {sequence} has no possible labelling{agreeing}{under}.")


def check_completable(known, offsets, classes, possible):
    """Raise an error if no possible labelling agrees with the known labels of a sequence.

    The parameters are those of `check_decoded` and `skstruct.input.constraints.check_labelling`.
    """
    check_labelling(known, offsets, classes, possible)
    if np.all(known >= 0):
        return
    k = len(classes)
    nothing = Rows(np.zeros(len(known) + 1, np.int64), np.empty(0, np.int32), np.empty(0))
    chain = forbid(Chain(np.zeros((0, k)), np.zeros((k, k)), *np.zeros((3, k))), possible)
    rows, chain = clamp(nothing, chain, known)
    codes = np.empty(len(known), np.int32)
    decode_best(rows, offsets, 0, len(offsets) - 1, chain, codes)
    check_decoded(codes, known, offsets, possible)
