from .conll import read_conll
from .tagger import DaskTagger

__all__ = ["DaskTagger", "read_conll"]
