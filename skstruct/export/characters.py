"""Characters as data: sets of them, and what they become in lower case.

Versions of Python, of node and of browsers have different versions of Unicode. An exported model
carries what its features ask about characters, so that it gives the same features everywhere.
"""

import re
import sys
from functools import cache
from itertools import groupby, pairwise

ALL = range(sys.maxunicode + 1)
_SIGMA = "\u03a3"


def _is_cased(c):
    """Return True for a character that keeps a sigma before it from being the last letter."""
    return f"a{_SIGMA}{c}".lower()[1] == "\u03c3"


def _is_ignorable(c):
    """Return True for a character that is passed over in the search for such a one."""
    return not _is_cased(c) and f"a{_SIGMA}{c}a".lower()[1] == "\u03c3"


_TESTS = {
    "upper": str.isupper,
    "alpha": str.isalpha,
    "digit": str.isdigit,
    "decimal": str.isdecimal,
    "cased": _is_cased,
    "ignorable": _is_ignorable,
}


@cache
def set_of(name):
    """Set of characters, for `runtime.py`.

    Parameters
    ----------
    name : str
        A key of the tests above, or a regular expression of one character.

    Returns
    -------
    steps : list of int
        Differences of the code points at which membership changes, from zero on.
    """
    if name in _TESTS:
        runs = groupby(map(chr, ALL), _TESTS[name])
        edges = [ord(next(characters)) for inside, characters in runs]
        # The first run is outside: no test holds for NUL.
        edges = edges[1:]
    else:
        every = "".join(map(chr, ALL))
        runs = re.finditer(f"(?:{name})+", every, re.DOTALL)
        edges = [edge for run in runs for edge in run.span()]
    return [b - a for a, b in pairwise([0, *edges])]


@cache
def map_of(name):
    """What characters become, for `runtime.py`.

    Parameters
    ----------
    name : {"lower", "fold"}

    Returns
    -------
    runs : list of int
        Four for each run: first code point, number, stride and distance.
    others : list of (int, str)
        Code points that become several characters.
    """
    change = {"lower": str.lower, "fold": str.casefold}[name]
    changed = [(ord(c), change(c)) for c in map(chr, ALL) if change(c) != c]
    others = [[point, text] for point, text in changed if len(text) > 1]
    single = [(point, ord(text) - point) for point, text in changed if len(text) == 1]
    return _runs(single), others


def _runs(pairs):
    """Runs of code points that are equally far apart and change by the same distance."""
    runs = []
    for point, distance in pairs:
        if runs and runs[-1][3] == distance:
            first, n, stride, _ = runs[-1]
            step = point - first - (n - 1) * stride
            if step in (1, 2) and (n == 1 or step == stride):
                runs[-1][1:3] = n + 1, step
                continue
        runs.append([point, 1, 1, distance])
    return [number for run in runs for number in run]
