"""``skstruct label-errors``: labels that may be wrong, by cross-validation."""

import click

from skstruct.cli.answers import check_kind, inputs_of
from skstruct.cli.choose import TOOLS, text_of
from skstruct.cli.estimators import AROUND, TAGGERS, make, make_vectorizer
from skstruct.cli.layout import layout_options
from skstruct.cli.models import Model
from skstruct.cli.options import FILE_OR_INPUT, Name, assignments_option, jobs_option
from skstruct.cli.output import write_line
from skstruct.cli.text import errors_name_lines, read_all
from skstruct.datasets.annotations import write_annotations
from skstruct.datasets.spans import labels_to_spans
from skstruct.model_selection.errors import find_label_errors


@click.command("label-errors", short_help="Find labels that may be wrong.")
@click.argument("files", nargs=-1, required=True, type=FILE_OR_INPUT)
@click.option("-n", "--number", type=click.IntRange(1), default=50, help="How many to show.")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="File of tasks for an annotation tool, for brat a folder: the sentences with what is "
    "suggested. By default errors are printed.",
)
@click.option("--to", type=click.Choice(TOOLS), default="label-studio", help="The tool of -o.")
@click.option(
    "-e", "--estimator", type=Name((*TAGGERS, AROUND[0])), default="CRFTagger", help="Tagger."
)
@assignments_option("-p", "--param", "parameters", help="Parameter of the estimator.")
@assignments_option("-f", "--feature-param", "feature_parameters", help="Of the features of words.")
@click.option("--cv", type=click.IntRange(2), default=5, help="Number of folds.")
@jobs_option("Processes for the folds. -1: one a processor.")
@layout_options
def label_errors(files, number, output, to, layout, cv, jobs, **options):
    """Find labels of FILES that may be wrong, the most doubtful first.

    Each sentence is tagged by a tagger that has learnt from the others. A line has the lowest
    probability of a given label, the place, the given labels, the suggested ones, and the sentence
    with the tokens in question in brackets.

    \b
    Examples:
      skstruct label-errors train.txt -n 20
      skstruct label-errors train.txt -p l2=0.5 -f label_statistics=true
      skstruct label-errors train.txt --to doccano -o tasks.jsonl
    """
    sequences = read_all(files, layout, say=lambda line: click.echo(line, err=True))
    check_kind(sequences, False)
    is_dicts = isinstance(sequences[0].X[0], dict)
    features = "none" if is_dicts else "words"
    vectorizer = make_vectorizer(features, None, options["feature_parameters"], {}, None)
    model = Model(make(options["estimator"], options["parameters"], "-p"), vectorizer)
    X, y = inputs_of(model, sequences), [sequence.y for sequence in sequences]
    with errors_name_lines(sequences):
        errors = find_label_errors(model.to_fit(), X, y, cv=cv, n_jobs=jobs)
    shown = errors[:number]
    if output is None:
        for error in shown:
            write_line(_line_of(error, sequences[error.sequence]))
    elif shown:
        _write_tasks(output, to, shown, sequences)
    click.echo(f"{len(errors):,} in {len(sequences):,} sentences, {len(shown):,} shown", err=True)


def _line_of(error, sequence):
    text, offsets = text_of(sequence)
    start, end = offsets[error.start][0], offsets[error.end - 1][1]
    marked = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    given, suggested = (" ".join(map(str, part)) for part in (error.given, error.suggested))
    return f"{error.score:.4f}\t{sequence.where(error.start)}\t{given}\t{suggested}\t{marked}"


def _write_tasks(output, tool, errors, sequences):
    """Write a task for each sentence, with all suggestions in it."""
    labels = {}
    for error in errors:
        row = labels.setdefault(error.sequence, list(sequences[error.sequence].y))
        row[error.start : error.end] = error.suggested
    texts, offsets = zip(*(text_of(sequences[i]) for i in labels), strict=True)
    spans = [labels_to_spans(row, at) for row, at in zip(labels.values(), offsets, strict=True)]
    write_annotations(output, texts, format=tool, predictions=spans)
