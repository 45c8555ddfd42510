"""``skstruct show``: describe a model and its weights."""

from __future__ import annotations

import click

from skstruct.cli.output import write_line
from skstruct.cli.work.description import describe, dumped
from skstruct.cli.work.models import load_model

__all__ = ["show"]


@click.command(short_help="Describe a model and its weights.")
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "-n",
    "--top",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="N",
    help="Features of greatest and of least weight to show for each label.",
)
@click.option("--label", "labels", multiple=True, help="Only this label; may be repeated.")
@click.option("--dump", is_flag=True, help="All weights, as tab-separated columns.")
def show(model, top, labels, dump):
    """Describe MODEL: kind, parameters, labels, size, and the weights that matter most.

    With --dump, each line has a weight that is not zero: the feature, the label, the weight; for
    transitions the label before, the label and the weight; for triples of labels, three labels and
    the weight.

    \b
    Examples:
      skstruct show chunker.skops
      skstruct show chunker.skops --top 20 --label B-NP
      skstruct show chunker.skops --dump | sort -k3 -g | tail
    """
    fitted = load_model(model)
    if dump:
        for line in dumped(fitted):
            write_line(line)
        return
    for line in describe(fitted, top, labels):
        write_line(line)
