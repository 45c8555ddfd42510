"""Models of CRF++: reads the text files that ``crf_learn -t`` writes, and writes such files."""

from skstruct.crfpp.reading import read_model
from skstruct.crfpp.writing import write_model

__all__ = ["read_model", "write_model"]
