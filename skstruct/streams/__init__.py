"""Learning from a stream, for any number of epochs: rounds of batches, early stopping, checkpoints.

``partial_fit`` of a tagger learns a batch. `fit_stream` in `fitting` is the loop around it, and
`checkpoints` stores its state, from which it goes on after a break.
"""

from skstruct.streams.fitting import fit_stream, iter_batches

__all__ = ["fit_stream", "iter_batches"]
