"""For users of CRFsuite: a drop-in for sklearn-crfsuite, and model files.

``from skstruct.crfsuite import CRF`` takes the place of ``from sklearn_crfsuite import CRF``, and
``Tagger`` and ``Trainer`` that of their namesakes in ``pycrfsuite``. Neither package is needed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
