"""``skstruct evaluate``: score a model, or predictions, on labelled text."""

from __future__ import annotations

import click

from skstruct.cli.options import layout_options, model_option, read_layout
from skstruct.cli.output import write_line
from skstruct.cli.work.evaluation import report

__all__ = ["evaluate"]


@click.command(short_help="Score a model, or predictions.")
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True, exists=True, dir_okay=False))
@model_option(required=False)
@click.option(
    "--scheme",
    type=click.Choice(["conlleval", "IOB1", "IOB2", "IOBES", "BILOU"]),
    default="conlleval",
    show_default=True,
    help="Scheme of the labels of chunks.",
)
@click.option("--json", "as_json", is_flag=True, help="The scores as JSON, in full precision.")
@layout_options
def evaluate(files, model, scheme, as_json, **layout):
    """Score a model on the labelled FILES, by default standard input.

    Without a model, score predictions: the label is the column before the last, and the prediction
    the last, as ``skstruct tag`` and crf_test append it. Labels such as B-NP are scored as chunks,
    others one by one. For rerankers, the score is the mean cost of the candidates chosen.

    \b
    Examples:
      skstruct evaluate -m chunker.skops test.txt
      skstruct tag -m chunker.skops test.txt | skstruct evaluate
      skstruct evaluate -m chunker.skops --json test.txt
    """
    write_line(report(list(files) or ["-"], model, read_layout(**layout), scheme, as_json))
