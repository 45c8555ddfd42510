"""Hook for PyInstaller, which finds this folder by an entry point of the package."""

from pathlib import Path

__all__ = ["hook_dirs"]


def hook_dirs():
    """Folders with hooks."""
    return [str(Path(__file__).parent)]
