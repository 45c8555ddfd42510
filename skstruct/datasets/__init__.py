"""Data sets, and a reader for column files.

`loaders` is the entry for data that come with the package, `fetchers` for public corpora, which are
downloaded once from the addresses in `originals`. `conll` reads column files, the format of these
corpora, by way of `text_lines`.
"""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
