"""Ready-made features of label sequences."""

from collections import Counter
from itertools import pairwise

from skstruct.metrics.scores import extract_chunks

__all__ = ["chunk_features", "label_features"]


def chunk_features(x, labels):
    """Features of the chunks of a label sequence: their types, in order and together, and lengths.

    Parameters
    ----------
    x : object
        The sequence, which is not used.
    labels : list of str
        In a scheme of chunks.

    Returns
    -------
    features : Counter
    """
    chunks = extract_chunks(labels)
    features = _features_of_units([kind for _, _, kind in chunks])
    features.update(f"{kind} of length {stop - start}" for start, stop, kind in chunks)
    return features


def label_features(x, labels):
    """Features of a label sequence: its labels, in order and together.

    Parameters
    ----------
    x : object
        The sequence, which is not used.
    labels : list of str or int

    Returns
    -------
    features : Counter
    """
    return _features_of_units([str(label) for label in labels])


def _features_of_units(units):
    features = Counter(f"{unit} repeated" for unit, n in Counter(units).items() if n > 1)
    kinds = sorted(set(units))
    features.update(f"{a} and {b}" for i, a in enumerate(kinds) for b in kinds[i + 1 :])
    bounded = ["start", *units, "end"]
    features.update(f"{a}, {b}" for a, b in pairwise(bounded))
    features.update(", ".join(bounded[i : i + 3]) for i in range(len(units)))
    return features
