"""Vectorisers: from feature dicts, attribute strings and vectors of words to a batch."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
