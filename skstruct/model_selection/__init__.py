"""Which sequences to learn from, to test on, to label next, and to look at again.

`folds` has folds of sequences, `choosing` what to label next, and `errors` labels that are wrong.
"""

from skstruct.utils.lazy import import_on_use

__all__, __getattr__, __dir__ = import_on_use(__name__)
