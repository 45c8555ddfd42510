"""Record of a sequence and its place in a file."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Sequence"]


class Sequence(NamedTuple):
    """A sequence of tokens, or a group of candidates."""

    X: list  # tokens, or candidates
    y: object  # labels, or costs or the number of the oracle; None: not read or not given
    name: str  # of the file
    first: int  # its first line, from 1
    rows: list  # position of each token's line after the first
    raw: object  # what was read: lines, or the object of a JSON line
    baseline: list | None = None  # scores of candidates
