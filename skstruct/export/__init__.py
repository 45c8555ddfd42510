"""Models in one file that tags without any package: Python, JavaScript, or data as JSON."""

from skstruct.utils.lazy import import_on_use

__all__, __getattr__, __dir__ = import_on_use(__name__)
