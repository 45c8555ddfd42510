"""Results of loaders and fetchers."""

import inspect

from sklearn.utils import Bunch

__all__ = ["description", "text_bunch"]


def text_bunch(tokens, labels, source, return_X_y):
    """Bunch of tokens and labels, described by the docstring of its source; or the two alone."""
    if return_X_y:
        return tokens, labels
    names = sorted({label for sequence in labels for label in sequence})
    return Bunch(data=tokens, target=labels, target_names=names, DESCR=description(source))


def description(function):
    """Summary and extended summary of a function's docstring."""
    return (inspect.getdoc(function) or "").partition("\n\nParameters\n")[0]
