"""Learning from a stream, for any number of epochs: rounds of batches, early stopping, checkpoints.

``partial_fit`` of a tagger learns a batch. `fit_stream` in `fitting` is the loop around it, and
`checkpoints` says what goes on, and from where, after a break.
"""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
