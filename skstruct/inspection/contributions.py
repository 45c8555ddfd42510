"""Contributions of features, biases and transitions to the score of a labelling."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import scipy.sparse as sp

from skstruct.inspection.chain_scores import score_sequence, take_sequence
from skstruct.inspection.models import require
from skstruct.utils.public_paths import set_module

__all__ = ["explain_labelling", "explain_token"]


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
        ("feature", "bias", "start", "end", "transition" or "transition feature"), ``"name"`` (of
        the feature, or the previous label of a transition), ``"value"``, ``"weight"`` and
        ``"contribution"``. A transition belongs to its second token.

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
    require("pandas", "explain_labelling")
    import pandas as pd  # optional

    fitted, batch = take_sequence(estimator, X, index)
    if labels is None:
        labels = list(fitted.tagger.predict(batch)[0])
    if len(labels) != batch.n_rows:
        raise ValueError(f"Sequence {index} has {batch.n_rows} tokens, but {len(labels)} labels.")
    return pd.DataFrame(_terms(fitted, batch, fitted.codes(labels)), columns=_COLUMNS)


@set_module("skstruct.inspection")
def explain_token(estimator, X, *, index=0, token=0, label=None):
    """Table of what speaks for the label of a token, and what for another label.

    Compares the labelling predicted with the best one in which the token has the other label. The
    rows are the terms in which these two differ, at the token and wherever else the other label
    changes the labelling. The column ``"difference"`` adds up to the difference of their scores.

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
    label : str or int, default=None
        The other label. By default the runner-up: the one whose best labelling scores highest.

    Returns
    -------
    contributions : pandas DataFrame
        Columns ``"token"``, ``"kind"`` and ``"name"`` as of :func:`explain_labelling`;
        the contribution to the labelling predicted and to the other one, under the labels of the
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
    require("pandas", "explain_token")
    import pandas as pd  # optional

    fitted, batch = take_sequence(estimator, X, index, token)
    scores = score_sequence(fitted, batch)
    best = fitted.codes(list(fitted.tagger.predict(batch)[0]))
    through = scores.best_through()[token]
    if label is None:
        others = np.where(np.arange(len(through)) == best[token], -np.inf, through)
        other = int(others.argmax())
    else:
        other = int(fitted.codes([label])[0])
    if other == best[token] or np.isneginf(through[other]):
        raise ValueError(_no_other(fitted.tagger.classes_, token, best[token], other))
    paths = [best, scores.best_labelling(token, other)]
    totals = [defaultdict(float), defaultdict(float)]
    for path, total in zip(paths, totals, strict=True):
        for t, _, kind, name, *_, contribution in _terms(fitted, batch, path):
            total[t, kind, name] += contribution
    rows = [
        (*key, totals[0][key], totals[1][key], totals[0][key] - totals[1][key])
        for key in dict.fromkeys([*totals[0], *totals[1]])
    ]
    rows = [row for row in rows if paths[0][row[0]] != paths[1][row[0]] or row[-1] != 0]
    rows.sort(key=lambda row: -abs(row[-1]))
    names = fitted.tagger.classes_[[best[token], other]].tolist()
    return pd.DataFrame(rows, columns=["token", "kind", "name", *names, "difference"])


_COLUMNS = ["token", "label", "kind", "name", "value", "weight", "contribution"]


def _terms(fitted, batch, codes):
    """Rows of the table of a labelling."""
    tagger, coef, names = fitted.tagger, fitted.coef(), fitted.feature_names()
    classes, X = tagger.classes_.tolist(), sp.csr_matrix(batch.X)
    rows = []
    for t, code in enumerate(codes):

        def add(kind, name, value, weight, at=(t, classes[code])):
            rows.append((*at, kind, name, float(value), float(weight), float(value * weight)))

        for k in range(X.indptr[t], X.indptr[t + 1]):
            column = X.indices[k]
            add("feature", names[column], X.data[k], coef[code, column])
        add("bias", "", 1.0, tagger.intercept_[code])
        if t == 0:
            add("start", "", 1.0, tagger.start_[code])
        else:
            before = codes[t - 1]
            add("transition", classes[before], 1.0, tagger.transition_[before, code])
            if t > 1 and hasattr(tagger, "transition2_"):
                weight = tagger.transition2_[codes[t - 2], before, code]
                add("triple", f"{classes[codes[t - 2]]} {classes[before]}", 1.0, weight)
            for column, value in _transition_features(batch, t):
                weight = tagger.transition_coef_[before, code, column]
                add("transition feature", f"{classes[before]} x{column}", value, weight)
        if t == len(codes) - 1:
            add("end", "", 1.0, tagger.end_[code])
    return rows


def _transition_features(batch, t):
    if batch.transition_X is None:
        return ()
    row = sp.csr_matrix(batch.transition_X[t : t + 1])
    return zip(row.indices.tolist(), row.data.tolist(), strict=True)


def _no_other(classes, token, best, other):
    if best == other:
        return f"Token {token} is labelled {classes[best]} already: pass another label."
    return f"Token {token} cannot be labelled {classes[other]}: no labelling is possible then."
