"""JSON lines: an object a line, with tokens and labels or with candidates and costs."""

from __future__ import annotations

import json
from itertools import chain

from skstruct.cli.text.sequence import Sequence
from skstruct.datasets.text_lines import open_line_blocks

__all__ = ["read_sequences", "write_sequence"]


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
    if not isinstance(found, dict) or not {"tokens", "candidates"} & set(found):
        raise ValueError('expected an object with "tokens" or "candidates"')
    if "candidates" in found:
        X = _list_in(found, "candidates")
        y = _costs(found, len(X)) if labelled else None
        return Sequence(X, y, name, number, [], found, _baseline(found, len(X)))
    X, y = [_token(token) for token in _list_in(found, "tokens")], None
    if labelled:
        if "labels" not in found:
            raise ValueError('"labels" are missing')
        y = _list_in(found, "labels")
        if len(y) != len(X):
            raise ValueError(f"there are {len(X)} tokens, but {len(y)} labels")
    return Sequence(X, y, name, number, [], found)


def _list_in(found, key):
    if not isinstance(found[key], list):
        raise ValueError(f'"{key}" is not a list')
    return found[key]


def _token(token):
    """Lists of columns become tuples, as column files have them."""
    return tuple(token) if isinstance(token, list) else token


def _costs(found, n_candidates):
    if "oracle" in found:
        return found["oracle"]
    if "costs" not in found:
        raise ValueError('"costs" or "oracle" are missing')
    costs = _list_in(found, "costs")
    if len(costs) != n_candidates:
        raise ValueError(f"there are {n_candidates} candidates, but {len(costs)} costs")
    return costs


def _baseline(found, n_candidates):
    if "baseline_score" not in found:
        return None
    scores = _list_in(found, "baseline_score")
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
    return json.dumps({**sequence.raw, **answer.as_dict()}, ensure_ascii=False) + "\n"
