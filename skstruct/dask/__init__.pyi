from .tagger import DaskTagger

__all__ = ["DaskTagger"]
