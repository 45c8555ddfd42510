"""Syntax of feature templates: CRF++'s format, Wapiti's patterns, and functions of columns."""

import os
import re
import sys
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from skstruct.utils.files import read_text
from skstruct.utils.messages import short_repr

_MACRO = re.compile(
    r"%(?P<command>[xXtTmM])\[\s*(?P<absolute>@?)(?P<offset>[+-]?[0-9]+)\s*,\s*(?P<column>[0-9]+)\s*"
    r'(?P<functions>(?:\|\s*\w+\s*)*)(?:,\s*"(?P<pattern>(?:[^"\\]|\\.)*)"\s*)?\]'
)
# Number of values outside of a sequence on either side.
FARTHEST = 1000
_COMMENT = re.compile(r'(?:^|\s)#(?=(?:[^"]*"[^"]*")*[^"]*$).*')


class Macro(NamedTuple):
    """A macro of a template, which stands for a value of a token's column."""

    offset: int  # tokens from the current one; absolute: 1 the first, -1 the last
    absolute: bool
    column: int
    functions: tuple  # names, applied in this order
    command: str  # "x": value, "m": match of the pattern, "t": test of the pattern
    lower: bool  # convert the result to lower case
    pattern: str | None

    @property
    def source(self):
        """Column, functions and pattern: equal for macros that differ only in position."""
        return self[2:]

    @property
    def field(self):
        """Source and absolute position: equal for macros that read the same codes."""
        return self.source, self.offset if self.absolute else None

    @property
    def position(self):
        """Position of the value in its field, relative to the current token."""
        return 0 if self.absolute else self.offset


class Template(NamedTuple):
    """A line of a template: the macros and the text around them."""

    where: str  # for messages: number and text of the line
    kind: str  # "U", "B" or "*" (both)
    literals: tuple  # text around the macros, one more than these
    macros: tuple

    @property
    def makes_features(self):
        return self.kind != "B"

    @property
    def observes_transitions(self):
        """True if the line makes features of transitions."""
        return self.kind != "U" and bool(self.macros)


def template_lines(source, name="template"):
    """Lines of a template given as text, as the path of a file or as a list of lines.

    `name` is the parameter's, for messages.
    """
    is_text = isinstance(source, str)
    if is_text and ("\n" in source or "%" in source):
        return source.splitlines()
    # A line without a macro is useless as a template, so this must be a path.
    if is_text and not Path(source).is_file():
        raise ValueError(
            f"{name} {str(source)!r} has no macro such as %x[0,0], and no such file exists."
        )
    if is_text or isinstance(source, os.PathLike):
        return read_text(source).splitlines()
    lines = list(source) if isinstance(source, (list, tuple)) else None
    if lines is None or not all(isinstance(line, str) for line in lines):
        raise ValueError(
            f"{name} must be a string, the path of a file or a list of strings, got "
            f"{short_repr(source)}."
        )
    return lines


def parse_template(lines):
    """Parse the lines of a template.

    Parameters
    ----------
    lines : list of str
        In the format of CRF++ or Wapiti.

    Returns
    -------
    templates : tuple of Template
        Without comments and blank lines.

    Raises
    ------
    ValueError
        If a line is malformed; the message names it.
    """
    return _parsed(tuple(lines))


# For single short texts, parsing the template would take as long as tagging.
@lru_cache(maxsize=128)
def _parsed(lines):
    templates = []
    for number, line in enumerate(lines, start=1):
        text = without_comment(line)
        if text.strip():
            templates.append(_parse_line(text, f"Template line {number}, {text!r}"))
    if not any(template.makes_features for template in templates):
        raise ValueError(
            "The template has no line that makes features of tokens, such as 'U00:%x[0,0]'."
        )
    return tuple(templates)


def without_comment(line):
    """Line of a template without its comment, and without the blanks before this.

    Other blanks at the end belong to the names of the features, as in CRF++.
    """
    text, n_comments = _COMMENT.subn("", line)
    return text.strip() if n_comments else line.lstrip().rstrip("\r\n")


def _parse_line(text, where):
    kind = text[0].upper()
    if kind not in ("U", "B", "*"):
        raise ValueError(f"{where}: a line must start with U, B, * or #.")
    literals, macros, end = [], [], 0
    for match in _MACRO.finditer(text):
        literals.append(text[end : match.start()])
        macros.append(_as_macro(match, where))
        end = match.end()
    literals.append(text[end:])
    for literal in literals:
        if "%" in literal:
            bad = literal[literal.index("%") :]
            raise ValueError(
                f"{where}: cannot read {bad!r}; expected %x[row,column], %x[row,column|function], "
                f'%t[row,column,"pattern"] or %m[row,column,"pattern"].'
            )
    return Template(where, kind, tuple(literals), tuple(macros))


def _as_macro(match, where):
    command = match["command"].lower()
    if (match["pattern"] is None) != (command == "x"):
        needs = "takes no pattern" if command == "x" else "needs a pattern in quotes"
        raise ValueError(f"{where}: {match.group()!r} {needs}.")
    absolute, offset = bool(match["absolute"]), int(match["offset"])
    if absolute and offset == 0:
        raise ValueError(f"{where}: absolute positions count from 1, or from -1 at the end.")
    if abs(offset) > FARTHEST:
        raise ValueError(
            f"{where}: {match.group()!r} is {abs(offset)} tokens away; {FARTHEST} are the most."
        )
    functions = tuple(name.strip() for name in match["functions"].split("|")[1:])
    lower = match["command"].isupper()
    if match["pattern"] is not None:
        try:
            _compiled(match["pattern"])
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    column = int(match["column"])
    return Macro(offset, absolute, column, functions, command, lower, match["pattern"])


def compose(macro, functions, where):
    """List of the functions of a macro, in order; empty if it takes the value itself.

    Parameters
    ----------
    macro : Macro
    functions : dict of str to callable
        The user's, which take precedence over those built in.
    where : str
        The template line, for messages.
    """
    steps = [_named(name, functions, where) for name in macro.functions]
    if macro.command != "x":
        steps.append(_search(macro.pattern, macro.command))
    return [*steps, str.lower] if macro.lower else steps


class FunctionError(ValueError):
    """Error of a user's function: the message, and the value that it fails for."""


def apply(steps, values, where):
    """Apply functions to a list of values; None means no feature."""
    results = values
    for step in steps:
        made, name = [], f"{where}: {getattr(step, '__name__', step)!r}"
        try:
            for value in results:
                made.append(None if value is None else step(value))
        except Exception as error:
            message = (
                f"{name} raised {type(error).__name__}: {error}, for the value {short_repr(value)}."
            )
            raise FunctionError(message, values[len(made)]) from error
        results = made
        if not set(map(type, made)) <= {str, type(None)}:
            results = [_as_string(value, name) for value in made]
    return results


def _as_string(value, name):
    """Plain string of the result of a function."""
    if value is None:
        return None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return str(value)
    raise ValueError(
        f"{name} returned {short_repr(value)}; expected a string, an integer, a bool or None."
    )


def _named(name, functions, where):
    if name in functions:
        return functions[name]
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if affix := read_affix(name):
        return _affix(*affix)
    known = sorted({*FUNCTIONS, *functions, "prefixN", "suffixN"})
    raise ValueError(f"{where}: unknown function {name!r}; known are {', '.join(known)}.")


def read_affix(name):
    """Side and length of a function such as ``suffix3``; None for another name."""
    found = re.fullmatch(r"(prefix|suffix)([1-9][0-9]*)", name)
    return found and (found[1], int(found[2]))


# Cached, because `Vocabulary.recall` compares functions by identity.
@cache
def _affix(side, length):
    return itemgetter(slice(length) if side == "prefix" else slice(-length, None))


def _shape(value):
    """Replace capitals by X, other letters by x, and digits by d."""
    return "".join(
        "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in value
    )


def _short_shape(value):
    """The shape, with each run of a character shortened to one."""
    return re.sub(r"(.)\1+", r"\1", _shape(value), flags=re.DOTALL)


def _fold_digits(value):
    return re.sub(r"\d", "0", value)


FUNCTIONS = {
    "lower": str.lower,
    "digits": _fold_digits,
    "shape": _shape,
    "shortshape": _short_shape,
    "length": len,
}


@cache
def _search(pattern, command):
    """Function of the command: the match of a pattern ("m"), or whether there is one ("t")."""
    search = _compiled(pattern).search

    def found(value):
        match = search(value)
        if command == "t":
            return "true" if match else "false"
        return match.group() if match else ""

    return found


@cache
def _compiled(pattern):
    """Translate a regular expression of Wapiti, whose stars match as little as possible."""
    atoms, at_start, at_end = read_pattern(pattern)
    often = {"": "", "?": "?", "*": "*?"}
    body = "".join(atom_expression(atom) + often[repeat] for atom, repeat in atoms)
    start, end = r"\A" if at_start else "", r"\Z" if at_end else ""
    return re.compile(f"{start}{body}{end}", flags=re.DOTALL)


def read_pattern(pattern):
    """Read a regular expression of Wapiti.

    Parameters
    ----------
    pattern : str

    Returns
    -------
    atoms : list of (str, str)
        What stands for a character, and how often it may be: "" for once, "?" or "*".
    at_start, at_end : bool
        True if a match begins at the start, or ends at the end.

    Raises
    ------
    ValueError
        If there is nothing before a "*" or "?".
    """
    body = pattern.removeprefix("^")
    found = re.findall(r"\\.|.", body, flags=re.DOTALL)
    at_end = found[-1:] == ["$"]
    atoms = []
    for i, atom in enumerate(found[:-1] if at_end else found):
        if atom not in ("*", "?"):
            atoms.append((atom, ""))
        elif i == 0 or found[i - 1] in ("*", "?"):
            raise ValueError(f"nothing to repeat before {atom!r} in the pattern {pattern!r}.")
        else:
            atoms[-1] = atoms[-1][0], atom
    return atoms, body != pattern, at_end


def literal_of(atom):
    """Character that an atom stands for, None if it stands for several."""
    if atom == ".":
        return None
    return atom if len(atom) == 1 else None if atom[1].lower() in _CLASSES else atom[1]


def atom_expression(atom):
    """Regular expression of Python for an atom of Wapiti's."""
    literal = literal_of(atom)
    if literal is not None:
        return re.escape(literal)
    if atom == ".":
        return "."
    name = atom[1]
    positive = _CLASSES[name.lower()] or f"[{_cased(name.lower())}]"
    return f"(?:(?!{positive}).)" if name.isupper() else positive


_CLASSES = {
    "a": r"[^\W\d_]",
    "d": r"\d",
    "l": "",
    "p": r"(?:[^\w\s]|_)",
    "s": r"\s",
    "u": "",
    "w": r"[^\W_]",
}


@cache
def _cased(name):
    """Content of the character class of all lower-case or all upper-case letters."""
    holds = str.islower if name == "l" else str.isupper
    runs = groupby(map(chr, range(sys.maxunicode + 1)), holds)
    ranges = [list(letters) for inside, letters in runs if inside]
    return "".join(f"{letters[0]}-{letters[-1]}" for letters in ranges)


def default_lines(n_columns):
    """Make the default template.

    Parameters
    ----------
    n_columns : int
        Number of columns of a token, of which the first is the word.

    Returns
    -------
    lines : list of str
        A window of five words, bigrams, spelling, and of every other column a window of five with
        bigrams and trigrams.
    """
    lines = [f"W{i:+d}:%x[{i},0]" for i in range(-2, 3)]
    lines += [f"W{i:+d}{i + 1:+d}:%x[{i},0]/%x[{i + 1},0]" for i in (-1, 0)]
    lines += [f"S{i:+d}:%x[{i},0|shape]" for i in (-1, 0, 1)]
    lines += [f"prefix{n}:%x[0,0|prefix{n}]" for n in (2, 3)]
    lines += [f"suffix{n}:%x[0,0|suffix{n}]" for n in (1, 2, 3, 4)]
    for c in range(1, n_columns):
        lines += column_lines(f"C{c}", c, 2)
    return ["U" + line for line in lines] + ["B"]


def column_lines(name, column, window):
    """Single values, pairs and triples of a column within a window."""
    lines = []
    for length in (1, 2, 3):
        for first in range(-window, window - length + 2):
            rows = range(first, first + length)
            values = "/".join(f"%x[{i},{column}]" for i in rows)
            lines.append(f"{name}{''.join(f'{i:+d}' for i in rows)}:{values}")
    return lines
