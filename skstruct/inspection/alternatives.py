"""Alternatives to the label of a token."""

from __future__ import annotations

import numpy as np

from skstruct.inspection.chain_scores import score_sequence, take_sequence
from skstruct.inspection.models import require
from skstruct.utils.public_paths import set_module

__all__ = ["label_alternatives"]


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
        labelling in which the token has it; ``"difference"``, what that is short of the best of
        all; ``"probability"``, its marginal; and ``"labelling"``, the list of its labels.

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
    require("pandas", "label_alternatives")
    import pandas as pd  # optional

    fitted, batch = take_sequence(estimator, X, index, token)
    scores = score_sequence(fitted, batch)
    through = scores.best_through()[token]
    proba, classes = fitted.tagger.predict_proba(batch)[0][token], fitted.tagger.classes_.tolist()
    order = [code for code in np.argsort(-through, kind="stable") if through[code] > -np.inf]
    return pd.DataFrame(
        {
            "label": [classes[code] for code in order],
            "score": through[order],
            "difference": through.max() - through[order],
            "probability": proba[order],
            "labelling": [
                [classes[c] for c in scores.best_labelling(token, code)] for code in order
            ],
        }
    )
