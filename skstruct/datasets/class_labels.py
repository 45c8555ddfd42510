"""Labels as numbers, as in the token classification datasets of Hugging Face."""

from __future__ import annotations

from numbers import Integral

from skstruct.input.formats import NO_LABEL
from skstruct.metrics.labels import sequences_of
from skstruct.utils.messages import short_repr
from skstruct.utils.public_paths import set_module

__all__ = ["labels_from_ids", "labels_to_ids"]


@set_module("skstruct.datasets")
def labels_from_ids(ids, names):
    """Replace the numbers of labels by their names.

    Parameters
    ----------
    ids : sequence of sequences of int
        Number of the label of each token; -100 where there is none.
    names : sequence of str, or feature of a dataset
        The name of each number, or the feature that has them, such as
        ``dataset.features["ner_tags"]``.

    Returns
    -------
    labels : list of list of (str or None)
        Names, and None for -100: taggers that learn from partly labelled sequences take it.

    Raises
    ------
    ValueError
        If an id is neither -100 nor the number of a name.

    See Also
    --------
    labels_to_ids : The inverse.

    Examples
    --------
    >>> from skstruct.datasets import labels_from_ids
    >>> labels_from_ids([[0, 1, -100], [2]], ["O", "B-PER", "I-PER"])
    [['O', 'B-PER', None], ['I-PER']]
    """
    names = _names(names)
    ids = sequences_of(ids, "ids")
    return [[_name(id, names, i, t) for t, id in enumerate(row)] for i, row in enumerate(ids)]


@set_module("skstruct.datasets")
def labels_to_ids(labels, names):
    """Replace labels by their numbers.

    Parameters
    ----------
    labels : sequence of sequences of (str or None)
        Labels, such as the output of `predict`.
    names : sequence of str, or feature of a dataset
        As in `labels_from_ids`.

    Returns
    -------
    ids : list of list of int
        -100 for None.

    Raises
    ------
    ValueError
        If a label is not among the names.

    See Also
    --------
    labels_from_ids : The inverse.

    Examples
    --------
    >>> from skstruct.datasets import labels_to_ids
    >>> labels_to_ids([["O", "B-PER", None], ["I-PER"]], ["O", "B-PER", "I-PER"])
    [[0, 1, -100], [2]]
    """
    names, labels = _names(names), sequences_of(labels, "labels")
    number = dict(zip(names, range(len(names)), strict=True))
    number[None] = NO_LABEL
    for i, row in enumerate(labels):
        for t, label in enumerate(row):
            if label not in number:
                raise ValueError(
                    f"Sequence {i}, token {t}: the label {short_repr(label)} is not among the "
                    f"names {short_repr(names)}."
                )
    return [[number[label] for label in row] for row in labels]


def _name(id, names, i, t):
    if isinstance(id, Integral) and 0 <= id < len(names):
        return names[id]
    if isinstance(id, Integral) and id == NO_LABEL:
        return None
    raise ValueError(
        f"Sequence {i}, token {t}: {short_repr(id)} is neither the number of one of the "
        f"{len(names)} names nor {NO_LABEL}, which stands for no label."
    )


def _names(names):
    """Names of the labels, from a list or from a feature such as a sequence of ClassLabel."""
    while hasattr(names, "feature"):
        names = names.feature
    names = list(getattr(names, "names", names))
    if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be different strings, got {short_repr(names)}.")
    return names
