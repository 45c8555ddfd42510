"""Warnings about a training set, and about what was learnt from it, that can hardly be meant."""

import warnings

import numpy as np

from skstruct.decoding import best_labels
from skstruct.input.schemes import are_chunk_labels
from skstruct.matrices import read_only
from skstruct.metrics.chunks import count_chunks_of_sequences

# With fewer tokens, labels that are all different may be meant.
_FEWEST_TOKENS = 10
# Sequences that are labelled for the comparison, so that it takes next to no time.
_MOST_SEQUENCES = 100
# With fewer chunks, there may be too little to learn from.
_FEWEST_CHUNKS = 10
# Share of them that predictions must have.
_SHARE = 0.1


def warn_of_distinct_labels(training_set, classes, stacklevel):
    """Warn if every token has a label of its own, as from a column of something else.

    Parameters
    ----------
    training_set : TrainingSet
    classes : ndarray of shape (n_classes,)
    stacklevel : int
        As in `warnings.warn`, counted from the caller.
    """
    n_labelled = np.count_nonzero(training_set.labels >= 0)
    if len(classes) == n_labelled >= _FEWEST_TOKENS:
        warnings.warn(
            f"The {n_labelled} labels of y are all different, so that nothing can be learnt from "
            "them. Check that y has the labels, and not another column.",
            stacklevel=stacklevel + 1,
        )


def sequences_with_chunks(training_set, classes):
    """Select some of the sequences whose labels hold chunks.

    Parameters
    ----------
    training_set : TrainingSet
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    some : TrainingSet or None
        None if there are none, or the labels are not those of chunks, such as B-NP and O.
    """
    names = classes.tolist()
    if not are_chunk_labels(names):
        return None
    # The last one is for tokens without a label.
    inside = np.array([name != "O" for name in names] + [False])
    n_inside = np.append(0, np.cumsum(inside[training_set.labels]))[training_set.offsets]
    holding = np.flatnonzero((np.diff(n_inside) > 0) & (training_set.sample_weight > 0))
    if not len(holding):
        return None
    spread = np.linspace(0, len(holding) - 1, min(len(holding), _MOST_SEQUENCES))
    return training_set.take(holding[spread.astype(np.int64)])


def warn_of_missing_chunks(some, chain, classes, stacklevel):
    """Warn if predictions hold next to none of the chunks that labels of the training set hold.

    Parameters
    ----------
    some : TrainingSet or None
        What `sequences_with_chunks` has selected.
    chain : Chain or TransitionChain
        The weights that were learnt.
    classes : ndarray of shape (n_classes,)
    stacklevel : int
        As in `warnings.warn`, counted from the caller.
    """
    if some is None:
        return
    chain = read_only(chain._make(map(np.ascontiguousarray, chain)))
    names = np.append(classes.astype(object), "O")
    y_true, y_pred = (
        np.split(names[codes], some.offsets[1:-1])
        for codes in (some.labels, best_labels(some.rows, some.offsets, chain, n_jobs=1))
    )
    _, n_predicted, n_true = count_chunks_of_sequences(y_true, y_pred, "conlleval").sum(axis=0)
    if n_true >= _FEWEST_CHUNKS and n_predicted < _SHARE * n_true:
        warnings.warn(
            f"Predictions for {len(y_true)} sequences of the training set hold {n_predicted} "
            f"chunks, where their labels hold {n_true}: hardly anything but O was learnt. A "
            "smaller penalty (l2) or a cost of missed names (label_cost={'missed': 2}) may help, "
            "and SpanTaggerCV or predict_spans with a low threshold finds chunks that the best "
            "labelling leaves out.",
            stacklevel=stacklevel + 1,
        )
