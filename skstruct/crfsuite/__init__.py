"""CRFsuite: drop-in replacements for its Python packages, and its model files.

``CRF`` replaces the one of ``sklearn_crfsuite``; ``Tagger`` and ``Trainer`` replace the ones of
``pycrfsuite``. Neither package has to be installed.
"""

from skstruct.utils.lazy import import_on_use

__all__, __getattr__, __dir__ = import_on_use(__name__)
