"""Explanations of a label: terms of the score, alternatives, and features to remove.

They compare scores of labellings of one sequence, sums of the scores of its labels and transitions.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from skstruct.chain.through import best_through
from skstruct.decoding import with_list
from skstruct.input.training_set import batch_rows
from skstruct.inspection.models import check_index, find_tagger, require
from skstruct.matrices import read_only, to_csr
from skstruct.sequences import SequenceBatch
from skstruct.utils.persistence import set_module

if TYPE_CHECKING:
    import pandas as pd


@set_module("skstruct.inspection")
def explain_labelling(estimator, X, *, index=0, labels=None):
    """Table of all contributions to the score of a labelling.

    The score of a labelling is a sum: of each feature's value times its weight for the label of the
    token, of the biases, and of the weights of transitions. The column ``"contribution"`` has the
    terms, so it adds up to the score that `predict_nbest` returns.

    Parameters
    ----------
    estimator : estimator
        A fitted tagger, or a Pipeline or search that ends in one.
    X : sequences of tokens
        As the estimator takes them.
    index : int, default=0
        Number of the sequence to explain.
    labels : array-like of shape (length,), default=None
        Labelling to explain. By default the one predicted.

    Returns
    -------
    contributions : pandas DataFrame
        A row for each term, with the columns ``"token"`` (its number), ``"label"``, ``"kind"``
        ("feature", "bias", "start", "end", "transition", "triple" or "transition feature"),
        ``"name"`` (of the feature, the previous label of a transition, or the two previous labels
        of a triple), ``"value"``, ``"weight"`` and ``"contribution"``. Transitions and triples
        belong to their last token.

    Raises
    ------
    ValueError
        If there is no such sequence, or `labels` do not fit it.

    See Also
    --------
    explain_token : Comparison of a label with the runner-up.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import explain_labelling
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "juice"}]]
    >>> tagger = CRFTagger().fit(X, [["NOUN", "VERB"], ["NOUN", "NOUN"]])
    >>> table = explain_labelling(tagger, X)
    >>> table[["token", "label", "kind", "name"]]
       token label        kind        name
    0      0  NOUN     feature   word:time
    1      0  NOUN        bias
    2      0  NOUN       start
    3      1  VERB     feature  word:flies
    4      1  VERB        bias
    5      1  VERB  transition        NOUN
    6      1  VERB         end
    >>> best = tagger.predict_nbest(X)[0][0]
    >>> bool(abs(table["contribution"].sum() - best.score) < 1e-9)
    True
    """
    pd = require("pandas", "explain_labelling")
    fitted, batch = _take_sequence(estimator, X, index)
    if labels is None:
        labels = fitted.tagger.predict(batch)[0]
    if len(labels) != batch.n_rows:
        raise ValueError(f"Sequence {index} has {batch.n_rows} tokens, but {len(labels)} labels.")
    return pd.DataFrame(_terms(fitted, batch, fitted.codes(labels)), columns=_COLUMNS)


@set_module("skstruct.inspection")
def explain_token(estimator, X, *, index=0, token=0, label=None):
    """Table of the evidence for the label of a token, and for another label.

    Compares the labelling predicted with the best one in which the token has the other label; or
    the best ones with each of two labels. The rows are the terms in which these two differ, at the
    token and wherever else the other label changes the labelling. The column ``"difference"`` adds
    up to the difference of their scores.

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
    label : label, or tuple or list of two labels, default=None
        The other label. By default the runner-up: the one whose best labelling scores highest. Of
        two labels, the first takes the place of the one predicted.

    Returns
    -------
    contributions : pandas DataFrame
        Columns ``"token"``, ``"kind"`` and ``"name"`` as of :func:`explain_labelling`;
        the contribution to the first labelling and to the other one, under the labels of the
        token; and ``"difference"``. The largest differences come first.

    Raises
    ------
    ValueError
        If there is no such sequence, token or label, or the label is impossible there.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import explain_token
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "juice"}]]
    >>> tagger = CRFTagger(l2=0.1).fit(X, [["NOUN", "VERB"], ["NOUN", "NOUN"]])
    >>> explain_token(tagger, X, token=1).columns.tolist()
    ['token', 'kind', 'name', 'VERB', 'NOUN', 'difference']
    """
    pd = require("pandas", "explain_token")
    fitted, batch = _take_sequence(estimator, X, index, token)
    best = fitted.codes(fitted.tagger.predict(batch)[0])
    if label is None:
        others, _ = best_by_label(fitted.tagger, batch, token, [])
        others[best[token]] = -np.inf
        codes = [best[token], int(others.argmax())]
    elif isinstance(label, (tuple, list)) and len(label) == 2:
        codes = fitted.codes(list(label)).tolist()
    else:
        codes = [best[token], int(fitted.codes([label])[0])]
    through, paths = best_by_label(fitted.tagger, batch, token, codes)
    _check_pair(fitted.tagger.classes_, token, best[token], codes, through)
    totals = defaultdict(lambda: [0.0, 0.0])
    for side, path in enumerate(paths):
        for t, _, kind, name, *_, contribution in _terms(fitted, batch, path):
            totals[t, kind, name][side] += contribution
    rows = [(*key, first, second, first - second) for key, (first, second) in totals.items()]
    rows = [row for row in rows if paths[0][row[0]] != paths[1][row[0]] or row[-1] != 0]
    rows.sort(key=lambda row: -abs(row[-1]))
    names = fitted.tagger.classes_[codes].tolist()
    return pd.DataFrame(rows, columns=["token", "kind", "name", *names, "difference"])


_COLUMNS = ["token", "label", "kind", "name", "value", "weight", "contribution"]


def _terms(fitted, batch, codes):
    """Rows of the table of a labelling."""
    tagger, coef, names = fitted.tagger, fitted.coef(), fitted.feature_names()
    transition_names, classes = fitted.transition_feature_names(), tagger.classes_.tolist()
    X = sp.csr_matrix(batch.X)
    transition_X = None if batch.transition_X is None else sp.csr_matrix(batch.transition_X)
    order, rows = tagger._kind.order, []
    for t, code in enumerate(codes):
        terms = []
        for column, value in _features(X, t):
            terms.append(("feature", names[column], value, coef[code, column]))
        terms.append(("bias", "", 1.0, tagger.intercept_[code]))
        if t == 0:
            terms.append(("start", "", 1.0, tagger.start_[code]))
        else:
            before = codes[t - 1]
            weight = tagger.transition_[before, code]
            terms.append(("transition", classes[before], 1.0, weight))
            if t >= order > 1:
                name = f"{classes[codes[t - 2]]} {classes[before]}"
                terms.append(("triple", name, 1.0, tagger.transition2_[codes[t - 2], before, code]))
            for column, value in _features(transition_X, t):
                name = f"{classes[before]} {transition_names[column]}"
                weight = tagger.transition_coef_[before, code, column]
                terms.append(("transition feature", name, value, weight))
        if t == len(codes) - 1:
            terms.append(("end", "", 1.0, tagger.end_[code]))
        rows += [
            (t, classes[code], kind, name, float(value), float(weight), float(value * weight))
            for kind, name, value, weight in terms
        ]
    return rows


def _features(X, t):
    """Columns and values of a row of a CSR matrix; none without a matrix."""
    if X is None:
        return ()
    row = slice(*X.indptr[t : t + 2])
    return zip(X.indices[row], X.data[row], strict=True)


def _check_pair(classes, token, best, codes, through):
    """Raise a ValueError unless two labels differ, and the token can have each of them."""
    one, other = codes
    if one == other == best:
        raise ValueError(f"Token {token} is labelled {classes[best]} already: pass another label.")
    if one == other:
        raise ValueError(f"Both labels are {classes[one]}: pass two different ones.")
    for code, score in zip(codes, through, strict=True):
        if np.isneginf(score):
            raise ValueError(
                f"Token {token} cannot be labelled {classes[code]}: no labelling is possible then."
            )


@set_module("skstruct.inspection")
def label_alternatives(estimator, X, *, index=0, token=0):
    """Table of the labels that a token could have, the best first.

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
    alternatives : pandas DataFrame
        A row for each possible label, with the columns ``"label"``; ``"score"``, of the best
        labelling in which the token has it; ``"difference"``, the best score of all minus this
        one; ``"probability"``, its marginal; and ``"labelling"``, the list of its labels.

    Raises
    ------
    ValueError
        If there is no such sequence or token.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import label_alternatives
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "juice"}]]
    >>> tagger = CRFTagger().fit(X, [["NOUN", "VERB"], ["NOUN", "NOUN"]])
    >>> label_alternatives(tagger, X, token=1)[["label", "labelling"]]
      label     labelling
    0  VERB  [NOUN, VERB]
    1  NOUN  [NOUN, NOUN]
    """
    pd = require("pandas", "label_alternatives")
    fitted, batch = _take_sequence(estimator, X, index, token)
    through, paths = best_by_label(fitted.tagger, batch, token)
    proba, classes = fitted.tagger.predict_proba(batch)[0][token], fitted.tagger.classes_.tolist()
    order = [code for code in np.argsort(-through, kind="stable") if through[code] > -np.inf]
    return pd.DataFrame(
        {
            "label": [classes[code] for code in order],
            "score": through[order],
            "difference": through.max() - through[order],
            "probability": proba[order],
            "labelling": fitted.tagger.classes_[paths[order]].tolist(),
        }
    )


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
    removed: "pd.DataFrame"


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
    pd = require("pandas", "smallest_label_change")
    fitted, batch = _take_sequence(estimator, X, index, token)
    classes = fitted.tagger.classes_.tolist()
    label = fitted.tagger.predict(batch)[0][token]
    row = sp.csr_matrix(batch.X[token : token + 1])
    weights = fitted.coef()[:, row.indices] * row.data
    through, _ = best_by_label(fitted.tagger, batch, token, [])
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


def best_by_label(tagger, batch, token, codes=None):
    """Best labellings of a batch of one sequence in which a token has each of some labels.

    Parameters
    ----------
    tagger : tagger
    batch : SequenceBatch
    token : int
    codes : list of int, default=None
        Codes of the labels. By default all; if there are none, only scores are computed.

    Returns
    -------
    scores : ndarray of shape (n_codes,)
        Minus infinity where no labelling is possible.
        With an empty list of `codes`, of all labels.
    paths : ndarray of shape (n_codes, length)
        Codes of the labels.
    """
    n_labels = len(tagger.classes_)
    codes = np.arange(n_labels) if codes is None else np.array(codes, np.int64)
    scores, paths = np.empty(n_labels), np.zeros((len(codes), batch.n_rows), np.int32)
    chain = with_list(read_only(tagger._chain()), "best")
    best_through(batch_rows(batch), batch.offsets, chain, token, codes, scores, paths)
    return scores[codes] if len(codes) else scores, paths


def _take_sequence(estimator, X, index, token=0):
    """Find the tagger in an estimator, and take one sequence in its features.

    Parameters
    ----------
    estimator : estimator
        A fitted tagger, or a Pipeline or search that ends in one.
    X : sequences of tokens
        As the estimator takes them.
    index : int
        Number of the sequence.
    token : int, default=0
        Number of a token that the sequence must have.

    Returns
    -------
    fitted : FittedTagger
    batch : SequenceBatch
        The sequence alone.

    Raises
    ------
    ValueError
        If there is no such sequence or token, or the sequence is empty.
    """
    # Some formats of sparse matrices have no rows to select.
    X = to_csr(X) if sp.issparse(X) else list(X) if isinstance(X, Iterator) else X
    fitted = find_tagger(estimator)
    if getattr(fitted.tagger, "_scheme_learnt", None) is not None:
        raise ValueError(
            "The tagger has learnt labels of another scheme (learn_scheme), by which its answers "
            "cannot be explained. Fit it with learn_scheme=None, on labels of that scheme."
        )
    check_index("index", index, _num_samples(X), "X", "sequences")
    alone = _safe_indexing(X, [index])
    batch = fitted.tagger._read_X(fitted.transform(alone))[1]
    if batch.n_rows == 0:
        raise ValueError(f"Sequence {index} has no tokens: there is nothing to explain.")
    check_index("token", token, batch.n_rows, "the sequence", "tokens")
    return fitted, batch
