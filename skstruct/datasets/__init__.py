"""Data sets, and a reader for column files.

`loaders` is the entry for data that come with the package, `fetchers` for public corpora, which are
downloaded once from the addresses in `originals`. `conll` reads column files, the format of these
corpora, by way of `text_lines`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
