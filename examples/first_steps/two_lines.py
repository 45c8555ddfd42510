"""
Cross-validate a tagger in two lines
====================================

The last two lines of this script load labelled addresses and cross-validate a tagger. Before them
are imports and a function that computes the features of a token.
"""

from sklearn.model_selection import cross_val_score

from skstruct import CRFTagger
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_scorer


def features(tokens):
    """Features of each token: the word, its suffix, and the words before and after."""
    padded = ["", *tokens, ""]
    return [
        {"word": word, "ending": word[-2:], "before": padded[i], "after": padded[i + 2]}
        for i, word in enumerate(tokens)
    ]


X, y = load_addresses(return_X_y=True)
print(cross_val_score(CRFTagger(), list(map(features, X)), y, scoring=chunk_f1_scorer))
