"""Pickles of sklearn-crfsuite: what they hold, and how `CRF` takes it over."""

import warnings

from skstruct.crfsuite.file import decode_model
from skstruct.crfsuite.model import tagger_from_model

# Attribute of `FileResource` in a pickle: the content of the model file.
_CONTENT = "__FILE_RESOURCE_DATA__"
# Attribute of ``sklearn_crfsuite.CRF`` that is a `FileResource`, and those that are always None.
_FILE, _CACHES = "modelfile", ("_tagger", "_info_cached")


class FileResource:
    """Stand-in for the class of the model file in a pickle, which gives it its attributes."""


def is_state_of_peer(state):
    """Return True if a state is one of ``sklearn_crfsuite.CRF``."""
    return isinstance(state, dict) and isinstance(state.get(_FILE), FileResource)


def read_state_of_peer(state):
    """Translate the state of a ``sklearn_crfsuite.CRF`` into one of `CRF`.

    Parameters
    ----------
    state : dict
        Attributes, from any release since 0.3.

    Returns
    -------
    state : dict

    Raises
    ------
    ValueError
        If the content of the model file is not a model.

    Warns
    -----
    UserWarning
        If there is a log of a training, but no model.
    """
    file = vars(state[_FILE])
    state = {name: value for name, value in state.items() if name not in (_FILE, *_CACHES)}
    # Releases before 0.4 keep these parameters only here.
    state.setdefault("keep_tempfiles", file.get("keep_tempfiles", False))
    content = file.get(_CONTENT)
    if not file.get("auto", True):
        state["model_filename"] = file["name"]
    elif content:
        try:
            model = decode_model(content)
            state |= {"_estimator": tagger_from_model(model), "_labels": model.labels}
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"This pickle of sklearn_crfsuite.CRF has a model that cannot be read: {error} "
                "Load it with sklearn-crfsuite, save a copy of the file crf.modelfile.name, and "
                "read that with skstruct.crfsuite.read_model."
            ) from error
    elif state.get("training_log_") is not None:
        warnings.warn(
            "This pickle of sklearn_crfsuite.CRF has a log, but no model: the temporary file of "
            "the model had been deleted before. Call fit.",
            stacklevel=4,
        )
    return state
