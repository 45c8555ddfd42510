"""Smallest removal of features that changes the label of a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skstruct.inspection.chain_scores import score_sequence, take_sequence
from skstruct.inspection.models import require
from skstruct.sequences import SequenceBatch
from skstruct.utils.public_paths import set_module

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LabelChange", "smallest_label_change"]


@set_module("skstruct.inspection")
class LabelChange(NamedTuple):
    """Smallest removal of features that changes a label, from :func:`smallest_label_change`.

    Attributes
    ----------
    label : str or int
        The label predicted.
    new_label : str or int, or None
        The label without the features; None if no removal changes it.
    removed : pandas DataFrame
        The features, with the columns ``"feature"``, ``"value"`` and ``"difference"``, the points
        by which each favours the label over the new one.
    """

    label: Any
    new_label: Any
    removed: pd.DataFrame


@set_module("skstruct.inspection")
def smallest_label_change(estimator, X, *, index=0, token=0):
    """Find the fewest features of a token without which it gets another label.

    The result is exact: no smaller set of features of this token changes its label, and the
    sequence is decoded again without them. Features of other tokens stay as they are.

    Parameters
    ----------
    estimator : estimator
        A fitted tagger, or a Pipeline or search that ends in one.
    X : sequences of tokens
        As the estimator takes them.
    index : int, default=0
        Number of the sequence.
    token : int, default=0
        Number of the token.

    Returns
    -------
    change : LabelChange

    Raises
    ------
    ValueError
        If there is no such sequence or token.

    Notes
    -----
    Let ``m[j]`` be the score of the best labelling in which the token has label ``j``. A feature of
    the token is in all of these: without it ``m[j]`` is less by its value times its weight for
    ``j``. So the label ``a`` gives way to ``b`` as soon as the features removed favour ``a`` over
    ``b`` by more than ``m[a] - m[b]``, and the fewest are those that favour it most.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import smallest_label_change
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "juice"}]]
    >>> tagger = CRFTagger(l2=0.1).fit(X, [["NOUN", "VERB"], ["NOUN", "NOUN"]])
    >>> change = smallest_label_change(tagger, X, token=1)
    >>> change.label, change.new_label, change.removed["feature"].tolist()
    ('VERB', 'NOUN', ['word:flies'])
    """
    require("pandas", "smallest_label_change")
    import pandas as pd  # optional

    fitted, batch = take_sequence(estimator, X, index, token)
    classes = fitted.tagger.classes_.tolist()
    label = fitted.tagger.predict(batch)[0][token]
    row = sp.csr_matrix(batch.X[token : token + 1])
    weights = fitted.coef()[:, row.indices] * row.data
    through = score_sequence(fitted, batch).best_through()[token]
    for differences, chosen in _candidates(through, weights, classes.index(label)):
        without = _without(batch, token, row.indices[chosen])
        new_label = fitted.tagger.predict(without)[0][token]
        # By rounding, the sum of the differences may fall short.
        if new_label != label:
            names = fitted.feature_names()[row.indices[chosen]]
            values, points = row.data[chosen], differences[chosen]
            break
    else:
        new_label, names, values, points = None, [], [], []
    removed = pd.DataFrame({"feature": names, "value": values, "difference": points})
    return LabelChange(label, new_label, removed)


def _candidates(through, weights, code):
    """Differences and positions of features whose removal favours another label; fewest first."""
    found = []
    for other in np.flatnonzero(through > -np.inf):
        if other == code:
            continue
        differences = weights[code] - weights[other]
        order = np.argsort(-differences, kind="stable")
        order = order[differences[order] > 0]
        surplus = np.cumsum(differences[order]) - (through[code] - through[other])
        # Where the scores are equal, the order of the labels decides.
        enough = np.flatnonzero(surplus > -1e-9)
        for n in enough[:2] + 1:
            found.append((n, -surplus[n - 1], differences, order[:n]))
    found.sort(key=lambda candidate: candidate[:2])
    return [(differences, chosen) for _, _, differences, chosen in found]


def _without(batch, token, columns):
    """Batch of one sequence without some features of a token."""
    X = sp.csr_matrix(batch.X, copy=True)
    a, b = X.indptr[token], X.indptr[token + 1]
    X.data[a:b][np.isin(X.indices[a:b], columns)] = 0
    return SequenceBatch(
        X, batch.offsets, feature_names=batch.feature_names, transition_X=batch.transition_X
    )
