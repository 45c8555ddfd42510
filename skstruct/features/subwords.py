"""`align_subwords`: from the pieces of words that language models read to the words."""

from collections.abc import Sequence
from numbers import Integral
from types import NoneType

import numpy as np

from skstruct.utils.messages import check_choice
from skstruct.utils.persistence import set_module


@set_module("skstruct.features")
def align_subwords(word_ids, states, how="first", *, sentences=None):
    """Make a vector for each word of the hidden states of its pieces.

    Tokenizers of language models cut words into pieces, and say which word each piece is of:
    ``encoding.word_ids()`` of the package tokenizers, ``encoded.word_ids(i)`` of transformers.

    Parameters
    ----------
    word_ids : sequence of sequences of int or None
        For each sentence the number of the word that each piece is of, from 0; None for pieces
        between words, such as the marks of the beginning and the end, and for padding.
    states : ndarray of shape (n_sentences, n_pieces, n_dimensions) or sequence of ndarray
        Hidden states of the pieces of each sentence. There may be more of them than of `word_ids`,
        at the end, where sentences are padded.
    how : {"first", "mean", "last"}, default="first"
        Which pieces a word takes its vector from: the first one, all, or the last one.
    sentences : sequence of sequences of str, default=None
        The words, by which sentences that the tokenizer has cut off are found. Without them,
        sentences end with the last word that has a piece.

    Returns
    -------
    matrices : list of ndarray of shape (n_words, n_dimensions)
        In the type of the states, float32 where that is shorter. A word without a piece gets zeros.

    Raises
    ------
    ValueError
        If `word_ids`, `states` and `sentences` do not fit each other, or sentences have been cut
        off; the message names the first one.

    Examples
    --------
    >>> import numpy as np
    >>> from skstruct.features import align_subwords
    >>> word_ids = [[None, 0, 1, 1, None]]
    >>> states = np.arange(10.0).reshape(1, 5, 2)
    >>> align_subwords(word_ids, states, how="mean", sentences=[["an", "axolotl"]])
    [array([[2., 3.],
           [5., 6.]])]
    """
    check_choice("how", how, ("first", "mean", "last"))
    word_ids = list(word_ids)
    for name, given in (("states", states), ("sentences", sentences)):
        if given is not None and len(given) != len(word_ids):
            raise ValueError(
                f"{name} has {len(given)} sentences, but word_ids has {len(word_ids)}."
            )
    lengths = [None] * len(word_ids) if sentences is None else list(map(len, sentences))
    return [
        _align(i, *parts, how)
        for i, parts in enumerate(zip(word_ids, states, lengths, strict=True))
    ]


def _align(i, word_ids, states, length, how):
    """Matrix of the words of sentence ``i``."""
    try:
        states = np.asarray(states)
    except (TypeError, RuntimeError) as error:
        # Tensors of PyTorch in bfloat16, on a GPU, or with a gradient.
        raise ValueError(
            f"Sentence {i}: its states cannot be read as an array ({error}). Tensors of PyTorch "
            "can, after states.detach().float().cpu()."
        ) from error
    if states.ndim != 2 or states.dtype.kind != "f":
        raise ValueError(f"Sentence {i}: its states are no matrix of floats.")
    is_list = isinstance(word_ids, Sequence | np.ndarray)
    if not is_list or not all(isinstance(word, (Integral, NoneType)) for word in word_ids):
        raise ValueError(f"Sentence {i}: word_ids must be integers or None.")
    if len(word_ids) > len(states):
        raise ValueError(
            f"Sentence {i} has {len(word_ids)} pieces, but states of {len(states)} only."
        )
    pieces = np.array([p for p, word in enumerate(word_ids) if word is not None], np.int64)
    words = np.array([word_ids[p] for p in pieces], np.int64)
    n_words = int(words.max(initial=-1)) + 1
    if words.min(initial=0) < 0 or (length is not None and n_words > length):
        raise ValueError(f"Sentence {i}: word_ids has words that the sentence does not have.")
    if length is not None and n_words < length:
        raise ValueError(
            f"Sentence {i} has no piece after word {n_words} of {length}: it has been cut off, or "
            "its last words are empty. Split it into shorter ones, or leave out such words."
        )
    out = np.zeros((n_words, states.shape[1]), np.promote_types(states.dtype, np.float32))
    if how == "mean":
        np.add.at(out, words, states[pieces])
        return out / np.maximum(np.bincount(words, minlength=n_words), 1)[:, None].astype(out.dtype)
    # Of several assignments to a row, the last one stays.
    forward = slice(None) if how == "last" else slice(None, None, -1)
    out[words[forward]] = states[pieces[forward]]
    return out
