"""CRFsuite: drop-in replacements for its Python packages, and its model files.

``CRF`` replaces the one of ``sklearn_crfsuite``; ``Tagger`` and ``Trainer`` replace those of
``pycrfsuite``. Neither package has to be installed.
"""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
