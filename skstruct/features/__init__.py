"""Vectorisers of feature dicts, attribute strings and word vectors.

`dicts` is the entry: `SequenceVectorizer` makes a batch of feature dicts. `embeddings` has that of
word vectors, `union` combines the outputs of several vectorisers, and `mixin` checks the features
of the estimators' input. `attributes`, `arrays` and `columns` read the tokens.
"""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
