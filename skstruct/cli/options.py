"""Options that commands share."""

import ast
import difflib
import os
import re

import click

from skstruct.utils.files import check_writable


def model_option(*, required=True):
    """Make the option ``-m``."""
    return click.option(
        "-m",
        "--model",
        metavar="FILE",
        required=required,
        type=click.Path(dir_okay=False, exists=True),
        help="File of the model.",
    )


def require_other_files(outputs, inputs, option):
    """Refuse to write to a file that is read."""
    outputs, inputs = (
        [path for path in paths if path is not None and os.path.isfile(path)]
        for paths in (outputs, inputs)
    )
    for output in outputs:
        if any(os.path.samefile(output, path) for path in inputs):
            raise click.BadParameter(
                f"{output} is read, too, and would be overwritten; name another file.",
                param_hint=option,
            )


def can_be_written(ctx, param, path):
    """Refuse a file that cannot be written, before any work; a callback of options."""
    if path not in (None, "-"):
        try:
            check_writable(path)
        except OSError as error:
            raise click.BadParameter(f"{path}: {error.strerror}.") from None
    return path


def folder_can_be_made(ctx, param, path):
    """Refuse a folder that does not exist and cannot be made; a callback of options."""
    if path is not None and not os.path.isdir(path):
        # One level after the other may be missing.
        can_be_written(ctx, param, _highest_missing(os.path.abspath(path)))
    return path


def _highest_missing(path):
    folder = os.path.dirname(path)
    return path if os.path.exists(folder) else _highest_missing(folder)


def jobs_option(help):
    """Make the option ``-j``."""

    def check(ctx, param, jobs):
        if jobs == 0:
            raise click.BadParameter("0 is neither a number of processors nor -1, for all.")
        return jobs

    return click.option(
        "-j", "--jobs", type=int, default=1, show_default=True, callback=check, help=help
    )


quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")


def assignments(option, read_value=None):
    """Make a callback that reads several NAME=VALUE into a dict.

    By default, values are read as Python reads them, or else as strings.
    """
    read_value = _value if read_value is None else read_value

    def read(ctx, param, texts):
        found = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not (name and equals):
                raise click.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint=option)
            found[name.strip().replace("-", "_")] = read_value(value.strip())
        return found

    return read


def _value(text):
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


# Parameters in Python that are options of the same name.
_OPTIONS = ("encoding", "separator", "label", "columns", "comment", "scheme", "repair", "template")
# What only Python has, and what the command says in its place.
_PHRASES = {
    "pass label=None to read tokens without labels": "a line has both",
    " of skstruct.datasets.convert_labels": "",
    "or leave constraint out": "or leave out -p constraint",
    "or another source": "or name another --scheme",
}
_VALUE = r"""('[^']*'|"[^"]*"|\w+)"""


def in_options(text, parameters):
    """Text of a message that speaks of options in place of parameters.

    Parameters
    ----------
    text : str
    parameters : dict of str to collection of str
        Names of the parameters that options such as ``-p`` take.

    Returns
    -------
    text : str
    """

    def written(found):
        quoted, name, value = found.groups()
        if quoted:
            return quoted
        plain = value.strip("'\"")
        if name in _OPTIONS:
            is_word = re.fullmatch(r"[\w.-]+", plain)
            return f"--{name} {plain}" if is_word else f"--{name} '{plain}'"
        option = next((option for option, names in parameters.items() if name in names), None)
        return found[0] if option is None else f"{option} {name}={plain}"

    for phrase, said in _PHRASES.items():
        text = text.replace(phrase, said)
    return re.sub(rf"(?<![=\w])('[^']*'|\"[^\"]*\")|(?<![\w.(])(\w+)={_VALUE}", written, text)


def did_you_mean(name, known):
    """Question that names what is most like a name; "" if nothing is."""
    lower = {one.lower(): one for one in known}
    begins = [one for one in lower if len(name) > 1 and one.startswith(name.lower())]
    found = begins or difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f" Did you mean {lower[found[0]]}?" if found else ""


class EstimatorName(click.Choice):
    """Name of an estimator, in any case."""

    def __init__(self, names):
        super().__init__(names, case_sensitive=False)
        self._names = {name.lower(): name for name in names}

    def convert(self, value, param, ctx):
        """Return the name as it is written."""
        found = self._names.get(str(value).lower())
        if found is None:
            names = self._names.values()
            self.fail(f"{value!r} is not one of {', '.join(names)}.{did_you_mean(value, names)}")
        return found
