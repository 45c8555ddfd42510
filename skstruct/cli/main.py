"""The command and its subcommands; errors become messages and exit codes."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

import click

from skstruct.cli.convert import convert
from skstruct.cli.evaluate import evaluate
from skstruct.cli.show import show
from skstruct.cli.tag import tag
from skstruct.cli.train import train
from skstruct.cli.versions import versions
from skstruct.cli.warm import warm

__all__ = ["main"]

COMMANDS = (train, tag, evaluate, show, convert, warm, versions)
FAILED, WRONG_USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141


class Commands(click.Group):
    """The commands, in the order of their use."""

    def list_commands(self, ctx):
        """Return the names of the commands."""
        return list(self.commands)

    def invoke(self, ctx):
        """Run a command; whoever reads its output may stop at any time."""
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is still in the buffer cannot be written either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(BROKEN_PIPE) from None


@click.command(
    cls=Commands, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
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
      1    unusable data or model
      2    wrong usage
      130  interrupted (Ctrl-C)
      141  whatever read the output has stopped reading
    """


def main(arguments=None):
    """Run the command with the arguments given, or those of the process.

    Parameters
    ----------
    arguments : list of str, default=None

    Returns
    -------
    code : int
        Exit code.
    """
    try:
        with _plain_warnings():
            return skstruct.main(arguments, prog_name="skstruct", standalone_mode=False) or 0
    except click.UsageError as error:
        error.show()
        return WRONG_USAGE
    except click.ClickException as error:
        error.show()
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except (ValueError, OSError, MemoryError) as error:
        click.echo(f"Error: {error}", err=True)
        return FAILED


@contextlib.contextmanager
def _plain_warnings():
    """Context in which warnings are lines without a place in Python code."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before
