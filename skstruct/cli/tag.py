"""``skstruct tag``: predict the labels of text."""

from __future__ import annotations

import click

from skstruct.cli.options import (
    can_be_written,
    folder_can_be_made,
    jobs_option,
    layout_options,
    model_option,
    read_layout,
)
from skstruct.cli.work.answers import Wish
from skstruct.cli.work.tagging import run

__all__ = ["tag"]


@click.command(short_help="Tag text, or rerank candidates.")
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True, exists=True, dir_okay=False))
@model_option()
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    callback=can_be_written,
    help="By default, standard output.",
)
@click.option(
    "--output-dir",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    callback=folder_can_be_made,
    help="Write a file of the same name for each of FILES into this folder.",
)
@click.option(
    "--n-best",
    type=click.IntRange(1),
    metavar="N",
    help="The N best labellings with their probabilities; the N best candidates.",
)
@click.option("--marginals", is_flag=True, help="Also the probability of each label.")
@click.option("--all-marginals", is_flag=True, help="Also the probabilities of all labels.")
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Sequences to read before the first answer; 1 for answers at once.",
)
@jobs_option(
    "Files to tag in parallel, each in a process. -1: one a processor. With standard input among "
    "them, they are tagged one after the other."
)
@layout_options
def tag(files, model, output, output_dir, n_best, marginals, all_marginals, batch_size, jobs, **o):
    """Tag FILES, by default standard input, with a model of ``skstruct train``.

    Models of CRFsuite and text models of CRF++ work as well. Files have the columns that the model
    was trained on; the label may be missing. The output is the input with the predicted label in a
    further column; in CoNLL-U it takes the place of the label; JSON lines get "labels". Rerankers
    add the number of the "chosen" candidate to JSON lines.

    With --n-best, a line "# rank probability" precedes each labelling. With --marginals, the
    probability of each label follows it in a column of its own, and in MISC in CoNLL-U.

    \b
    Examples:
      skstruct tag -m chunker.skops new.txt > tagged.txt
      printf 'The DT\\ncat NN\\n' | skstruct tag -m chunker.skops
      skstruct tag -m chunker.skops --n-best 3 --marginals new.txt
      skstruct tag -m chunker.skops --output-dir tagged -j 4 part-*.txt
      skstruct tag -m crf.crfsuite --format jsonl features.jsonl
    """
    if output_dir is not None and output != "-":
        raise click.UsageError("-o and --output-dir exclude each other.")
    wish = Wish(n_best, marginals, all_marginals)
    paths = list(files) or ["-"]
    run(model, paths, read_layout(**o), wish, output, output_dir, batch_size, jobs)
