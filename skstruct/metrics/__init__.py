"""Scores for label sequences: chunks, tokens and whole sequences.

Every score takes ``y_true`` and ``y_pred`` in any of the forms in which a tagger takes or returns
labels: a list, tuple or 1-D object array of sequences (lists, tuples or arrays, not necessarily
equally long), a 2-D array of shape (n_sequences, length), or a plain 1-D array or list of labels,
where each label is a sequence of length one. Invalid input raises a ValueError that names the
sequence at fault.

The ready-made scorers ``chunk_f1_scorer``, ``chunk_precision_scorer``, ``chunk_recall_scorer``
(micro-averaged, ``scheme="conlleval"``), ``token_accuracy_scorer`` and ``sequence_accuracy_scorer``
go into ``scoring=`` of scikit-learn's model selection tools. For another average or scheme make
your own: ``make_scorer(chunk_f1_score, average="macro", scheme="IOB2")``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
