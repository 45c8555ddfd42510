"""Results of loaders and fetchers."""

import inspect

from sklearn.utils import Bunch

__all__ = ["description", "text_bunch"]


def text_bunch(tokens, labels, source, return_X_y):
    """Make a Bunch of tokens and labels, or just return them if `return_X_y`.

    Its description is the docstring of `source`.
    """
    if return_X_y:
        return tokens, labels
    names = sorted({label for sequence in labels for label in sequence})
    return Bunch(data=tokens, target=labels, target_names=names, DESCR=description(source))


def description(function):
    """Summary and extended summary of a function's docstring."""
    return (inspect.getdoc(function) or "").partition("\n\nParameters\n")[0]
