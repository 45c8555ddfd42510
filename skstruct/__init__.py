"""Linear structured prediction the scikit-learn way."""

from skstruct.utils.lazy import import_on_use

# The names stand in __init__.pyi.
__all__, __getattr__, __dir__ = import_on_use(__name__)

__version__ = "0.1.0.dev0"
