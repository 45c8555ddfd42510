"""Models of CRF++: reads the text files that ``crf_learn -t`` writes, and writes such files."""

from skstruct.crfpp.model import read_model, write_model

__all__ = ["read_model", "write_model"]
