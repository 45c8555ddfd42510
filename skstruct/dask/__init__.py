"""Taggers that learn on the workers of a Dask cluster.

They need the package distributed: ``pip install "skstruct[dask]"``.
"""

from skstruct.dask.conll import read_conll
from skstruct.dask.tagger import DaskTagger

__all__ = ["DaskTagger", "read_conll"]
