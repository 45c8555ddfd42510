"""
Two lines
=========

Load labelled addresses, cross-validate a tagger: the last two lines of this script. What comes
before are imports, and a function that says what the tagger gets to see of a token.
"""

from sklearn.model_selection import cross_val_score

from skstruct import CRFTagger
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_scorer


def features(tokens):
    """A dict for each token: the word, its ending, the words before and after."""
    padded = ["", *tokens, ""]
    return [
        {"word": word, "ending": word[-2:], "before": padded[i], "after": padded[i + 2]}
        for i, word in enumerate(tokens)
    ]


X, y = load_addresses(return_X_y=True)
print(cross_val_score(CRFTagger(), list(map(features, X)), y, scoring=chunk_f1_scorer))
