"""The command: its subcommands, two of them on the installation; errors become exit codes."""

import contextlib
import gc
import os
import sys
import time
import traceback

import click

import skstruct as package
from skstruct.cli.choose import choose
from skstruct.cli.evaluate import evaluate
from skstruct.cli.label_errors import label_errors
from skstruct.cli.models import convert, export
from skstruct.cli.options import did_you_mean, jobs_option
from skstruct.cli.output import (
    as_option,
    drop_unwritten,
    in_one_line,
    plain_warnings,
    standard_output,
    write_line,
)
from skstruct.cli.show import show
from skstruct.cli.tag import tag
from skstruct.cli.train import train
from skstruct.compiled.rules import show_versions
from skstruct.utils.messages import parameters_named


@click.command(short_help="Compile kernels ahead of time.")
@click.argument("estimators", nargs=-1)
@jobs_option("Number of processes; by default one a processor.", default=None)
@click.option("--native", is_flag=True, help="Compile for exactly this processor.")
def warm(estimators, jobs, native):
    """Compile kernels now, so that no later command has to wait for them.

    ESTIMATORS are names such as CRFTagger; without any, everything is compiled. Estimators that fit
    others, such as CRFTaggerCV, have no kernels of their own: name those that they fit.

    \b
    Examples:
      skstruct warm
      skstruct warm CRFTagger TemplateVectorizer
    """
    begin = time.perf_counter()
    n_jobs = -1 if jobs is None else jobs
    counts = package.warm(estimators or None, n_jobs=n_jobs, native=native)
    n_found = sum(counts.values()) - counts.get("compiler", 0)
    seconds = time.perf_counter() - begin
    write_line(f"{counts.get('compiler', 0)} kernels compiled, {n_found} found, {seconds:.0f} s")


@click.command(short_help="Show versions, and where compiled kernels come from.")
def versions():
    """Show versions of packages, and where compiled kernels come from."""
    with standard_output():
        show_versions()


COMMANDS = (train, tag, evaluate, choose, label_errors, show, convert, export, warm, versions)
FAILED, UNUSABLE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
# Environment variable that asks for the traceback of an error.
TRACEBACK = "SKSTRUCT_TRACEBACK"


class Commands(click.Group):
    """The commands, in the order of their use."""

    def list_commands(self, ctx):
        return list(self.commands)

    def resolve_command(self, ctx, args):
        """Find a command; an error suggests the most similar one."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not ctx.resilient_parsing:
            hint = did_you_mean(name, known) or f" There are {', '.join(known)}."
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx):
        """Run a command; whoever reads its output may stop at any time."""
        try:
            super().invoke(ctx)
        except BrokenPipeError:
            raise click.exceptions.Exit(BROKEN_PIPE) from None


_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.command(cls=Commands, commands=COMMANDS, context_settings=_SETTINGS)
@click.version_option(package_name="skstruct", message="%(prog)s %(version)s")
def skstruct():
    """Train sequence taggers and rerankers, and use them.

    Text is read from column files (a token a line, a blank line between sentences), CoNLL-U files
    and JSON lines. "-" stands for standard input or output.

    \b
    Examples:
      skstruct train train.txt -m model.skops --dev dev.txt
      skstruct evaluate -m model.skops test.txt
      skstruct tag -m model.skops new.txt > tagged.txt
      skstruct show model.skops

    \b
    Exit codes:
      0    success
      1    error of the system, such as a full disk; or of skstruct
      2    wrong usage, unusable data or model
      130  interrupted (Ctrl-C)
      141  whatever read the output has stopped reading

    Errors are a line on standard error. With the environment variable SKSTRUCT_TRACEBACK=1, their
    traceback comes first.
    """


def main(arguments=None):
    """Run the command, by default with the arguments of the process.

    Parameters
    ----------
    arguments : list of str, default=None

    Returns
    -------
    code : int
        Exit code.
    """
    if arguments is None:
        # skops imports these packages where they are installed, which takes a sixth of the time of
        # `skstruct tag`. Nothing else in this process needs them.
        for name in ("dask", "pytest"):
            sys.modules.setdefault(name, None)
        # Imported modules stay. To traverse them, above all at exit, takes the garbage collector
        # another sixth.
        gc.freeze()
    try:
        _occupy_standard_streams()
        with plain_warnings(), parameters_named(as_option):
            return skstruct.main(arguments, prog_name="skstruct", standalone_mode=False) or 0
    except (Exception, KeyboardInterrupt) as error:
        code, message = _classify(error)
        # Standard error may be closed, or the disk full that it is written to.
        with contextlib.suppress(OSError):
            if os.environ.get(TRACEBACK):
                traceback.print_exc()
            if message is None:
                error.show()
            else:
                click.echo(message, err=True)
        return code
    finally:
        drop_unwritten()


def _classify(error):
    """Exit code of an error, and its message; None if click has one of its own."""
    text = in_one_line(error)
    match error:
        case click.UsageError():
            return UNUSABLE, None
        case click.Abort() | KeyboardInterrupt():
            return INTERRUPTED, "Interrupted."
        case MemoryError():
            return FAILED, f"Error: {text or 'there is not enough memory.'}"
        case OSError(strerror=str(reason), filename=name):
            is_given = isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError))
            text = reason if name is None else f"{name}: {reason}"
            return UNUSABLE if is_given else FAILED, f"Error: {text}"
        case OSError() | click.ClickException():
            return FAILED, f"Error: {text}"
        case RecursionError():
            return UNUSABLE, "Error: the input is nested too deeply."
        case ValueError() | OverflowError():
            return UNUSABLE, f"Error: {text}"
    kind = type(error).__name__
    return FAILED, f"Internal error ({kind}: {text}). Please report it; {TRACEBACK}=1 shows more."


def _occupy_standard_streams():
    """Open the null device for closed standard streams, whose descriptors files would take."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
