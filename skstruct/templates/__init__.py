"""Feature templates: vectorisers of columns of tokens.

`vectorizers` is the entry, `words` makes a template of its own, and `hashing` is the counterpart
for streams; `base` is what they share. `syntax` parses templates, `reader` and `values` encode a
batch, `gazetteers` adds columns to it, `numbering` numbers the features in it, and `learnt` looks
them up in other batches.
"""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
