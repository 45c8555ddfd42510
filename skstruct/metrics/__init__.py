"""Scores for label sequences: chunks, tokens and whole sequences.

Every score accepts ``y_true`` and ``y_pred`` in all formats of the labels of taggers: a list,
tuple or 1-D object array of sequences (lists, tuples or arrays of any lengths), a 2-D array of
shape (n_sequences, length), or a 1-D array of labels, each a sequence of length one. A list of
labels is taken so only where the other side is such an array; two of them are more often a single
sequence without the list around it, and raise an error. Invalid input raises a ValueError that
names the sequence.

The ready-made scorers ``chunk_f1_scorer``, ``chunk_precision_scorer``, ``chunk_recall_scorer``
(micro-averaged, ``scheme="conlleval"``), ``token_accuracy_scorer`` and ``sequence_accuracy_scorer``
can be passed as ``scoring=`` to scikit-learn's model selection tools. For another average or
scheme, use ``make_scorer(chunk_f1_score, average="macro", scheme="IOB2")``.

`scores` has the scores and errors of chunks, which `chunks` finds, and the scorers; `labels` checks
and compares labels, and has the scores of tokens and sequences; `significance` tests differences.
"""

from skstruct.utils.lazy import import_on_use

__all__, __getattr__, __dir__ = import_on_use(__name__)
