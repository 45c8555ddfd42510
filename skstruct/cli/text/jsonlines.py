"""JSON lines: an object a line, with tokens and labels or with candidates and costs."""

from __future__ import annotations

import json
from itertools import chain

from skstruct.cli.text.sequence import Sequence
from skstruct.datasets.text_lines import open_line_blocks
from skstruct.utils.messages import short_repr

__all__ = ["labels_in", "read_sequences", "write_sequence"]

_TOKENS = str, int, list, dict
# A label that is a number is a whole one, and so is True.
_LABELS = str, int, type(None)


def read_sequences(source, layout, labelled):
    """Iterate over the objects of a file of JSON lines.

    Parameters
    ----------
    source : str or binary file
    layout : Layout
    labelled : bool
        Read labels or costs.

    Yields
    ------
    sequence : Sequence
        Its `raw` is the object.
    """
    with open_line_blocks(source, layout.encoding) as (name, blocks):
        for number, line in enumerate(chain.from_iterable(blocks), start=1):
            if line.strip():
                try:
                    sequence = _parse(line, labelled, name, number)
                except ValueError as error:
                    raise ValueError(f"{name}, line {number}: {error}") from None
                yield sequence


def _parse(line, labelled, name, number):
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON ({error.msg}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("this is nested too deeply") from None
    if not isinstance(found, dict) or not {"tokens", "candidates"} & set(found):
        raise ValueError('expected an object with "tokens" or "candidates"')
    if "candidates" in found:
        X = _list_in(found, "candidates", (list, dict), "a dict of features")
        y = _costs(found, len(X)) if labelled else None
        return Sequence(X, y, name, number, [], found, _baseline(found, len(X)))
    X = _list_in(found, "tokens", _TOKENS, "a word, a list of columns, or a dict of features")
    X, y = [_token(token) for token in X], None
    if labelled:
        if "labels" not in found:
            raise ValueError('"labels" are missing')
        y = labels_in(found, "labels", len(X))
    return Sequence(X, y, name, number, [], found)


def labels_in(found, key, n_tokens):
    """List of the labels in an object, one for each token; a ValueError if it is none."""
    labels = _list_in(found, key, _LABELS, "a string or a whole number")
    if len(labels) != n_tokens:
        raise ValueError(f"there are {n_tokens} tokens, but {len(labels)} {key}")
    return labels


def _list_in(found, key, kinds, expected):
    """List in an object, whose entries have one of the types allowed."""
    if not isinstance(found[key], list):
        raise ValueError(f'"{key}" is not a list')
    if not all(issubclass(kind, kinds) for kind in set(map(type, found[key]))):
        i = [isinstance(entry, kinds) for entry in found[key]].index(False)
        raise ValueError(f'"{key}"[{i}] is {short_repr(found[key][i])}; expected {expected}')
    return found[key]


def _token(token):
    """Lists of columns become tuples, and numbers strings, as column files have them."""
    if isinstance(token, list):
        return tuple(token)
    return str(token) if isinstance(token, int) else token


def _costs(found, n_candidates):
    if "oracle" in found:
        if type(found["oracle"]) is not int:
            raise ValueError('"oracle" is not the number of a candidate')
        return found["oracle"]
    if "costs" not in found:
        raise ValueError('"costs" or "oracle" are missing')
    costs = _list_in(found, "costs", (int, float), "a number")
    if len(costs) != n_candidates:
        raise ValueError(f"there are {n_candidates} candidates, but {len(costs)} costs")
    return costs


def _baseline(found, n_candidates):
    if "baseline_score" not in found:
        return None
    scores = _list_in(found, "baseline_score", (int, float), "a number")
    if len(scores) != n_candidates:
        raise ValueError(f"there are {n_candidates} candidates, but {len(scores)} baseline scores")
    return scores


def write_sequence(sequence, answer, layout):
    """Line with the object that was read and what was predicted.

    Parameters
    ----------
    sequence : Sequence
    answer : Answer or Choice
    layout : Layout

    Returns
    -------
    text : str
    """
    found = {**sequence.raw, **answer.as_dict()}
    try:
        text = json.dumps(found, ensure_ascii=False)
        text.encode(layout.encoding)
    except UnicodeEncodeError:
        text = json.dumps(found)
    except RecursionError:
        where = f"{sequence.name}, line {sequence.first}"
        raise ValueError(f"{where}: this is nested too deeply") from None
    return text + "\n"
