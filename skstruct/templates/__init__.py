"""Feature templates: vectorisers of columns of tokens.

`vectorizers` is the entry, and `hashing` its counterpart for streams. `syntax` parses templates,
`reader` and `values` encode a batch, `numbering` numbers the features in it, and `learnt` looks
them up in other batches.
"""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
