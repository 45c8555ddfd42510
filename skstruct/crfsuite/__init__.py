"""CRFsuite: drop-in replacements for its Python packages, and its model files.

``CRF`` replaces the one of ``sklearn_crfsuite``; ``Tagger`` and ``Trainer`` replace those of
``pycrfsuite``. Neither package has to be installed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
