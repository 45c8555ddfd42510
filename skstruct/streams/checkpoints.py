"""Checkpoints of streams: the state of learning, and a description of the stream."""

from contextlib import suppress
from typing import NamedTuple

import joblib
import numpy as np

from skstruct.templates.syntax import template_lines
from skstruct.utils.declared import Columns, Counts, Maybe, Part
from skstruct.utils.files import write_whole
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import archived, load_archive

_KEY, _VERSION = "skstruct_stream", 2
# Parameters without an effect on learning from a stream.
MAY_CHANGE = frozenset(
    {
        *("early_stopping", "max_iter", "n_iter_no_change", "tol", "validation_fraction"),
        *("memory", "n_jobs", "verbose", "verbose_feature_names_out", "warm_start"),
    }
)
_FITTED = Part("_state", "classes_", "n_features_in_", "n_iter_")
_STORED = {
    "estimator": _FITTED,
    "best": Maybe(_FITTED),
    "history": Columns("epoch", "time", "batches", "tokens", "mistakes", "loss", "weight_norm"),
    "place": Counts("epoch", "batch", "tokens"),
}


class Checkpoint(NamedTuple):
    """State of a stream after a round.

    Attributes
    ----------
    estimator : tagger
        As it is.
    best : tagger or None
        As it was after the round with the best score, if that was not the last one.
    history : dict of ndarray
        An entry for each round.
    place : dict of str to int
        Number of the epoch, of its batches that have been learnt, and of tokens.
    """

    estimator: object
    best: object
    history: dict
    place: dict

    def write(self, path, given):
        """Write a file, whole or not at all.

        Parameters
        ----------
        path : Path
        given : dict
            What `describe` made of the arguments of the stream.
        """
        content = {_KEY: _VERSION, "given": given, **self._asdict()}
        write_whole(path.resolve(), archived(content))

    @classmethod
    def read(cls, path, estimator, given):
        """Read a file.

        Parameters
        ----------
        path : Path
        estimator : tagger
            The one that is to go on.
        given : dict
            As of `write`. That of the file must be the same.

        Returns
        -------
        checkpoint : Checkpoint

        Raises
        ------
        ValueError
            If the file is damaged or no checkpoint, or that of another stream; the message names
            the file, and the first difference.
        """
        try:
            content = _load(path, estimator)
        except Exception as error:
            raise ValueError(f"Checkpoint {path} cannot be read: {error}") from error
        found = content["estimator"]
        if type(found) is not type(estimator):
            raise ValueError(
                f"Checkpoint {path} is that of a {type(found).__name__}, not of a "
                f"{type(estimator).__name__}. Remove it, or name another one."
            )
        _compare(content["given"], given, path)
        try:
            return cls._checked(content)
        except Exception as error:
            raise ValueError(f"Checkpoint {path} is damaged: {error}") from error

    @classmethod
    def _checked(cls, content):
        found = cls(*(kind.read(content[name], name, None) for name, kind in _STORED.items()))
        estimator, best, history, place = found
        if best is not None and not (
            type(best) is type(estimator)
            and best.n_features_in_ == estimator.n_features_in_
            and np.array_equal(best.classes_, estimator.classes_)
            and "validation_score" in history
        ):
            raise ValueError("its best state is that of another estimator.")
        last = {name: column[-1:].tolist() for name, column in history.items()}
        if (
            not 1 <= place["batch"] <= estimator.n_iter_
            or last["batches"] != [estimator.n_iter_]
            or last["epoch"] != [place["epoch"]]
            or last["tokens"] != [place["tokens"]]
        ):
            raise ValueError("its history ends in another place than the estimator.")
        return found


def _load(path, estimator):
    content = load_archive(path, own=_path(estimator))
    is_one = isinstance(content, dict) and content.get(_KEY) == _VERSION
    if not is_one or set(content) != {_KEY, "given", *_STORED}:
        raise ValueError("it is no checkpoint of fit_stream.")
    return content


def describe(**parts):
    """Describe the estimators and vectorisers that a stream is learnt with.

    Parameters
    ----------
    **parts : object
        Estimators and vectorisers, or None.

    Returns
    -------
    given : dict of dict
        For each part, hash and text of each parameter, but for those of `MAY_CHANGE`, or of each
        public attribute where there is no ``get_params``; its type, and the names of the features
        that a vectoriser has learnt. Functions and classes count by their names, and generators of
        random numbers by their states. What cannot be pickled counts by its type.
    """
    return {name: {} if part is None else _describe(part) for name, part in parts.items()}


def _describe(part):
    if hasattr(part, "get_params"):
        params = part.get_params(deep=True)
    else:
        # Others are the object's own business.
        params = {n: v for n, v in getattr(part, "__dict__", {}).items() if n[:1] != "_"}
    found = {"type": _named(_path(part))}
    for name, value in params.items():
        last = name.rpartition("__")[2]
        if last not in MAY_CHANGE:
            is_file = last == "template" and value is not None
            found[name] = _named(template_lines(value) if is_file else value)
    # Some have learnt none, or do not tell how they are called.
    with suppress(AttributeError):
        found["features"] = _named(part.get_feature_names_out().tolist())
    return found


def _named(value):
    """Hash and text of a value."""
    plain = _plain(value)
    try:
        digest = joblib.hash(plain)
    except Exception:
        # joblib raises whatever an object does that cannot be pickled.
        digest = joblib.hash(_path(value))
    if isinstance(value, np.random.RandomState):
        return [digest, f"RandomState in the state {digest[:8]}"]
    return [digest, short_repr(value)]


def _plain(value):
    """Replace parts that differ from process to process."""
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=False)
    if hasattr(value, "__qualname__") or hasattr(value, "get_params"):
        return _path(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _path(value):
    """Path of a function or class, and of the class of anything else."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


def _compare(theirs, ours, path):
    """Raise a ValueError that names the first difference between two descriptions."""
    for part, params in ours.items():
        known = theirs.get(part) if isinstance(theirs, dict) else None
        if not isinstance(known, dict):
            raise ValueError(f"Checkpoint {path} is damaged: it does not tell its {part}.")
        for name in (*params, *known):
            before, now = (_pair(described.get(name)) for described in (known, params))
            if before[0] != now[0]:
                raise ValueError(
                    f"Checkpoint {path} is that of {'an' if part[0] in 'aeiou' else 'a'} {part} "
                    f"with {name}={before[1]}, not {now[1]}. Remove it, or name another one."
                )


def _pair(named):
    """Hash and text; None for those of a missing parameter."""
    return named if isinstance(named, list) and len(named) == 2 else (None, None)
