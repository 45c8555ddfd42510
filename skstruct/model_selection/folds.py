"""Folds of sequences for scikit-learn's model selection tools."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from skstruct.input.formats import as_lists
from skstruct.metrics.labels import stack
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import set_module


@set_module("skstruct.model_selection")
class StratifiedSequenceKFold(BaseCrossValidator):
    """K folds that have about the same number of tokens of every label.

    A sequence has many labels, so no split gives every fold the same share of all. Sequences are
    dealt out label by label, the rarest label first (Sechidis, Tsoumakas and Vlahavas, 2011). Each
    goes to the fold that lacks most tokens of that label, and among these to the smallest one.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Visit the sequences in random order, so that those alike end up in random folds.
    random_state : int, RandomState instance or None, default=None
        Source of that order.

    See Also
    --------
    sklearn.model_selection.StratifiedKFold : Folds by one label a sample.

    References
    ----------
    Konstantinos Sechidis, Grigorios Tsoumakas and Ioannis Vlahavas: On the stratification of
    multi-label data. ECML PKDD 2011.

    Examples
    --------
    >>> from skstruct.model_selection import StratifiedSequenceKFold
    >>> y = [["O", "O"], ["O", "B-PER"], ["B-LOC", "O"], ["B-PER"], ["O"], ["O", "B-LOC"]]
    >>> for _, test in StratifiedSequenceKFold(2).split(y, y):
    ...     print([y[i] for i in test])
    [['O', 'B-PER'], ['B-LOC', 'O'], ['O']]
    [['O', 'O'], ['B-PER'], ['O', 'B-LOC']]
    """

    def __init__(self, n_splits=5, *, shuffle=False, random_state=None):
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, groups=None):
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object, default=None
            Ignored.

        Returns
        -------
        n_splits : int
        """
        return self.n_splits

    def split(self, X, y, groups=None):
        """Generate the positions of the sequences to learn from and to test on.

        Parameters
        ----------
        X : sequences of tokens
            In any format of the taggers.
        y : sequences of labels
            Their labels; None for those that are unknown.
        groups : object, default=None
            Ignored.

        Yields
        ------
        train, test : ndarray of int
            Numbers of the sequences, in increasing order.

        Raises
        ------
        ValueError
            If there are fewer sequences than folds, or X and y differ in length.
        """
        return super().split(X, as_lists(y), groups)

    def _iter_test_indices(self, X=None, y=None, groups=None):
        if not isinstance(self.n_splits, Integral) or self.n_splits < 2:
            n_splits = short_repr(self.n_splits)
            raise ValueError(f"n_splits must be an integer of at least 2, got {n_splits}.")
        if y is None:
            raise ValueError("StratifiedSequenceKFold needs the labels: pass y.")
        counts = _count_labels(stack(y, "y"))
        if counts.shape[0] < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} is more than the number of sequences, {counts.shape[0]}."
            )
        order = np.arange(counts.shape[0])
        if self.shuffle:
            check_random_state(self.random_state).shuffle(order)
        fold_of = np.empty(len(order), np.int64)
        fold_of[order] = _deal_out(counts[order], self.n_splits)
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of == fold)


def _count_labels(stacked):
    """Numbers of tokens of each label, (n_sequences, n_labels); None is no label."""
    code_of = {label: code for code, label in enumerate(dict.fromkeys(stacked.labels))}
    codes = np.fromiter(map(code_of.__getitem__, stacked.labels), np.int64, len(stacked.labels))
    n_sequences = len(stacked.offsets) - 1
    rows = np.repeat(np.arange(n_sequences), np.diff(stacked.offsets))
    ones = np.ones(len(codes), np.int64)
    counts = sp.csr_array((ones, (rows, codes)), shape=(n_sequences, len(code_of)))
    known = [code for label, code in code_of.items() if label is not None]
    return counts[:, known]


def _deal_out(counts, n_folds):
    """Fold of each sequence, given its numbers of tokens of each label."""
    n_sequences = counts.shape[0]
    by_label = counts.tocsc()
    # In units of 1 / n_folds, integers: differences between folds do not round.
    lacking = np.repeat(counts.sum(axis=0)[:, None], n_folds, axis=1)
    size, fold_of = np.zeros(n_folds, np.int64), np.full(n_sequences, -1)
    left = np.diff(by_label.indptr)
    while np.any(left > 0):
        label = np.argmin(np.where(left > 0, left, n_sequences + 1))
        column = slice(by_label.indptr[label], by_label.indptr[label + 1])
        # Sequences with many such tokens come first; later ones make up for them.
        order = np.argsort(-by_label.data[column], kind="stable")
        for i in by_label.indices[column][order]:
            if fold_of[i] >= 0:
                continue
            fold = fold_of[i] = np.lexsort((size, -lacking[label]))[0]
            labels = slice(counts.indptr[i], counts.indptr[i + 1])
            lacking[counts.indices[labels], fold] -= n_folds * counts.data[labels]
            left[counts.indices[labels]] -= 1
            size[fold] += 1
    for i in np.flatnonzero(fold_of < 0):
        fold_of[i] = np.argmin(size)
        size[fold_of[i]] += 1
    return fold_of
