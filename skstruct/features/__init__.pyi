from skstruct.features.subwords import align_subwords

__all__ = ["align_subwords"]
