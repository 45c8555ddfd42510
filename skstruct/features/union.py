"""Features from several sources for the same tokens."""

from __future__ import annotations

from sklearn.pipeline import FeatureUnion

from skstruct.input.formats import Format, read_format
from skstruct.sequences import SequenceBatch
from skstruct.utils.public_paths import set_module

__all__ = ["SequenceUnion"]


# None, because a batch is no table that could be wrapped in a data frame.
@set_module("skstruct")
class SequenceUnion(FeatureUnion, auto_wrap_output_keys=None):
    """scikit-learn's `FeatureUnion` for transformers that make sequence batches.

    Every transformer is given the same sequences, and the columns of what they make are put side
    by side: features by templates and embeddings, dicts of features and a matrix that comes from
    elsewhere. The parameters of the transformers are set, and searched, as those of the steps of
    a pipeline: ``union__embeddings__column``.

    Parameters
    ----------
    transformer_list : list of (str, transformer) tuples
        Transformers of sequences, each with a name; "drop" leaves one out, and "passthrough"
        stands for X itself, where that is a batch or a list of matrices. A transformer returns a
        `SequenceBatch` or a list of matrices, one for each sequence.
    n_jobs : int, default=None
        Number of jobs to run in parallel.
    transformer_weights : dict, default=None
        What to multiply the values of each transformer with, by its name. The penalty of a
        tagger bears the less on the weights of features the larger their values are.
    verbose : bool, default=False
        Whether to print the time that each transformer takes.
    verbose_feature_names_out : bool, default=True
        Whether `get_feature_names_out` puts the name of the transformer before those of its
        features.

    See Also
    --------
    SequenceBatch.hstack : What it does to the batches.
    EmbeddingVectorizer : Vectors of words, to be put beside other features.

    Notes
    -----
    The batch carries no names; ``get_feature_names_out`` makes them. It is sparse unless all of
    its parts are dense.

    Examples
    --------
    >>> from skstruct import EmbeddingVectorizer, SequenceUnion, TemplateVectorizer
    >>> vectors = {"the": [0.1, 0.9], "cat": [0.8, 0.1], "dog": [0.7, 0.2]}
    >>> union = SequenceUnion([
    ...     ("words", TemplateVectorizer("U0:%x[0,0]")),
    ...     ("embeddings", EmbeddingVectorizer(vectors)),
    ... ])
    >>> batch = union.fit_transform([["the", "cat"], ["the"]])
    >>> batch.X.toarray()
    array([[0. , 1. , 0.1, 0.9],
           [1. , 0. , 0.8, 0.1],
           [0. , 1. , 0.1, 0.9]])
    >>> union.get_feature_names_out().tolist()
    ['words__U0:cat', 'words__U0:the', 'embeddings__vector:0', 'embeddings__vector:1']
    """

    def _hstack(self, Xs):
        names = [name for name, _, _ in self._iter()]
        stacked = SequenceBatch.hstack(map(_as_batch, Xs, names))
        return SequenceBatch(stacked.X, stacked.offsets, transition_X=stacked.transition_X)


def _as_batch(X, name):
    """What a transformer made of the sequences, as a batch."""
    format, batch = read_format(X)
    if format not in (Format.BATCH, Format.GRID):
        raise ValueError(
            f"Transformer {name!r} returned {type(X).__name__}; expected a SequenceBatch or a list "
            "of matrices, one for each sequence."
        )
    return batch
