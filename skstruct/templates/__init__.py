"""Feature templates: vectorisers of columns of tokens.

`vectorizers` is the entry, and `hashing` its counterpart for streams. `syntax` parses templates,
`reader` and `values` encode a batch, `numbering` numbers the features in it, and `learnt` looks
them up in other batches.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
