"""Model file of a drop-in CRF, with its path."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path

__all__ = ["ModelFile"]


class ModelFile:
    """Model file of a `CRF`: the user's, or a temporary one that is written on first use.

    Parameters
    ----------
    crf : CRF
        Its estimator. A weak reference is kept.
    """

    def __init__(self, crf):
        self._crf = weakref.ref(crf)
        self._temporary = None

    @property
    def name(self):
        """Path of the file; None before fitting."""
        crf = self._crf()
        if crf is None or crf.model_filename is not None or crf.estimator_ is None:
            return None if crf is None else crf.model_filename
        if self._temporary is None:
            handle, self._temporary = tempfile.mkstemp(".crfsuite", "model")
            with os.fdopen(handle, "wb") as file:
                file.write(crf._bytes())
            if not crf.keep_tempfiles:
                weakref.finalize(self, Path(self._temporary).unlink, missing_ok=True)
        return self._temporary
