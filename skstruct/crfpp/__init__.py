"""Models of CRF++: reads the text files that ``crf_learn -t`` writes, and writes such files."""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
