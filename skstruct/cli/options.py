"""Options that commands share."""

import ast
import difflib
import os
from itertools import product

import click

from skstruct.utils.files import check_writable

# Files that exist; with standard input among them.
FILE = click.Path(exists=True, dir_okay=False)
FILE_OR_INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True)


def jobs_option(help, default=1):
    """Make the option ``-j``."""

    def check(ctx, param, jobs):
        if jobs == 0:
            raise click.BadParameter("0 is neither a number of processors nor -1, for all.")
        return jobs

    return click.option("-j", "--jobs", type=int, default=default, callback=check, help=help)


def require_other_files(outputs, inputs, option):
    """Refuse to write to a file that is read."""
    for output, path in product(filter(None, outputs), filter(None, inputs)):
        if os.path.isfile(output) and os.path.isfile(path) and os.path.samefile(output, path):
            raise click.BadParameter(
                f"{output} is read, too, and would be overwritten; name another file.",
                param_hint=option,
            )


class NewFile(click.ParamType):
    """A file to write, refused before any work if it cannot be written."""

    name = "file"

    def __init__(self, *, allow_dash=False):
        self._allow_dash = allow_dash

    def convert(self, value, param, ctx):
        if value == "-" and not self._allow_dash:
            self.fail("a model is not written to standard output; name a file.", param, ctx)
        try:
            if value != "-":
                check_writable(value)
        except OSError as error:
            self.fail(f"{value}: {error.strerror}.", param, ctx)
        return value


def _as_value(text):
    """Value of a Python literal; the text itself if it is none."""
    words = {"true": True, "false": False, "none": None, "null": None}
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return words.get(text.lower(), text)


def assignments_option(*names, help, metavar="NAME=VALUE", read_value=_as_value, unique=False):
    """Make an option of assignments, which may be repeated; it gets a dict.

    Of assignments to the same name the last one counts, or with `unique` they are refused.
    """

    def read(ctx, param, texts):
        found = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not (name and equals):
                raise click.BadParameter(f"{text!r} is not NAME=VALUE.")
            name = name.strip().replace("-", "_")
            if unique and name in found:
                raise click.BadParameter(f"{name} is given twice.")
            found[name] = read_value(value.strip())
        return found

    return click.option(*names, multiple=True, metavar=metavar, callback=read, help=help)


def did_you_mean(name, known):
    """Question that suggests the most similar known name; "" if there is none."""
    lower = {one.lower(): one for one in known}
    begins = [one for one in lower if len(name) > 1 and one.startswith(name.lower())]
    found = begins or difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f" Did you mean {lower[found[0]]}?" if found else ""


def find_name(name, known):
    """Known name that is the same in any case; None if there is none."""
    return next((one for one in known if one.lower() == name.lower()), None)


class Name(click.Choice):
    """One of some names, in any case; an error suggests the most similar one."""

    def convert(self, value, param, ctx):
        names = self.choices
        return find_name(value, names) or self.fail(
            f"{value!r} is not one of {', '.join(names)}.{did_you_mean(value, names)}"
        )
