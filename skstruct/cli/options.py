"""Options that commands share, and the estimators and vectorisers that options name."""

import ast
import difflib
import io
import os
from itertools import product

import click

import skstruct
from skstruct.taggers.base import BaseTagger
from skstruct.utils.files import check_writable, read_text

# Files that exist; with standard input among them.
FILE = click.Path(exists=True, dir_okay=False)
FILE_OR_INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True)


def jobs_option(help):
    """Make the option ``-j``."""

    def check(ctx, param, jobs):
        if jobs == 0:
            raise click.BadParameter("0 is neither a number of processors nor -1, for all.")
        return jobs

    return click.option("-j", "--jobs", default=1, callback=check, help=help)


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

    def convert(self, value, param, ctx):
        """Return the path."""
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


def assignments_option(*names, help, metavar="NAME=VALUE", read_value=_as_value):
    """Make an option of assignments, which may be repeated; it gets a dict."""

    def read(ctx, param, texts):
        found = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not (name and equals):
                raise click.BadParameter(f"{text!r} is not NAME=VALUE.")
            found[name.strip().replace("-", "_")] = read_value(value.strip())
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
        """Return the known name."""
        names = self.choices
        return find_name(value, names) or self.fail(
            f"{value!r} is not one of {', '.join(names)}.{did_you_mean(value, names)}"
        )


# Estimators and vectorisers

RERANKERS = ("PerceptronReranker", "SGDReranker", "TruncatedGradientReranker", "VRDAReranker")
STACKED = "NBestReranker"
_PUBLIC = {name: getattr(skstruct, name) for name in skstruct.__all__}
TAGGERS = tuple(
    sorted(k for k, v in _PUBLIC.items() if isinstance(v, type) and issubclass(v, BaseTagger))
)
# All taggers and rerankers, and the reranker on top of a tagger.
ESTIMATORS = (*TAGGERS, *RERANKERS, STACKED)
# Names of the parameters that each option takes.
PARAMETERS = {
    option: {p for name in names for p in _PUBLIC[name]._parameter_constraints}
    for option, names in (
        ("-p", (*TAGGERS, *RERANKERS)),
        ("-f", ("WordVectorizer", "TemplateVectorizer")),
    )
}


def make(name, parameters, option):
    """Make an estimator with parameters that are checked now.

    Parameters
    ----------
    name : str
        Public name of its class.
    parameters : dict
        As of ``set_params``. In place of the parts of `NBestReranker` there are their names.
    option : str
        Option that they come from, for messages.

    Returns
    -------
    estimator : object

    Raises
    ------
    click.BadParameter
        If the class has no parameter of a name, or a value is invalid.
    """
    parameters = dict(parameters)
    try:
        estimator = _stacked(parameters) if name == STACKED else _PUBLIC[name]()
        estimator.set_params(**parameters)
        for part in (estimator, *vars(estimator).values()):
            if hasattr(part, "_validate_params"):
                part._validate_params()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    return estimator


def _stacked(parameters):
    """Make an `NBestReranker`, and put its parts in place of their names in the parameters.

    Features of labellings are ready-made, since the command line has no functions.
    """
    tagger, reranker = skstruct.CRFTagger(), skstruct.VRDAReranker(random_state=0)
    stacked = skstruct.NBestReranker(tagger, reranker, features="labels")
    known = stacked.get_params(deep=False)
    for name in parameters:
        if name.partition("__")[0] not in known:
            raise ValueError(
                f"{STACKED} has no parameter {name!r}; it has {', '.join(known)}, and those of its "
                "parts, such as tagger__max_iter."
            )
    for part, names in (("tagger", TAGGERS), ("reranker", RERANKERS)):
        if part in parameters:
            found = find_name(str(parameters[part]), names)
            if found is None:
                wanted = f"{part}={parameters[part]}"
                raise ValueError(f"{wanted}: expected one of {', '.join(names)}.")
            parameters[part] = _PUBLIC[found]()
    return stacked


def make_vectorizer(features, template, parameters, gazetteers, clusters):
    """Make the vectoriser that the options ask for.

    Parameters
    ----------
    features : {"auto", "words", "template", "none"}
        "auto" stands for words.
    template : str or None
        Path of a template.
    parameters : dict
        Of the vectoriser.
    gazetteers : dict of str to str
        Paths of files with a name in each line.
    clusters : str or None
        Path of a file of Brown clusters.

    Returns
    -------
    vectorizer : estimator or None
        None for "none".
    """
    if template is not None:
        parameters = {"template": read_text(template).splitlines(), **parameters}
        features = "template"
    if features in ("template", "none") and (gazetteers or clusters):
        raise click.UsageError("--gazetteer and --clusters are for --features words.")
    if features == "none":
        return None
    if features == "template":
        return make("TemplateVectorizer", parameters, "-f")
    lists = {}
    if gazetteers:
        lists["gazetteers"] = {
            name: list(filter(None, map(str.strip, _lines(path))))
            for name, path in gazetteers.items()
        }
    if clusters:
        lists["clusters"] = _read_clusters(clusters)
    return make("WordVectorizer", {**parameters, **lists}, "-f")


def _read_clusters(path):
    """Words and paths of a file whose lines are path, word and count, separated by tabs."""
    found = {}
    for number, line in enumerate(_lines(path), start=1):
        fields = line.rstrip("\n").split("\t")
        if len(fields) < 2:
            raise ValueError(f"{path}, line {number}: expected a path, a tab and a word.")
        found[fields[1]] = fields[0]
    return found


def _lines(path):
    return io.StringIO(read_text(path), newline=None)
