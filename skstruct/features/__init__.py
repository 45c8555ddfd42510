"""Vectorisers of feature dicts, attribute strings and word vectors.

`dicts` is the entry: `SequenceVectorizer` makes a batch of feature dicts. `embeddings` makes one of
word vectors, `union` combines the outputs of several vectorisers, `rows` applies transformers of
scikit-learn to tokens, and `mixin` checks the features of the estimators' input. `tokens` reads
dicts and attribute strings, and `columns` tuples. `base` has what the vectorisers have in common.
`scaling` has the scale of vectors, and `subwords` makes vectors of words from their pieces.
"""

from skstruct.utils.lazy import import_on_use

__all__, __getattr__, __dir__ = import_on_use(__name__)
