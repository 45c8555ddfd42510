"""Taggers that learn on the workers of a Dask cluster.

They need the package distributed: ``pip install "skstruct[dask]"``.
"""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
