"""``skstruct choose``: what to label next, as tasks for an annotation tool."""

from itertools import chain

import click

from skstruct.cli.answers import check_kind, inputs_of
from skstruct.cli.layout import layout_for, layout_options
from skstruct.cli.models import load_model
from skstruct.cli.options import FILE, FILE_OR_INPUT
from skstruct.cli.output import write_line
from skstruct.cli.plain import check_takes_words, read_texts, tokenizer_option
from skstruct.cli.text import errors_name_lines, read_sequences
from skstruct.datasets.annotations import write_annotations
from skstruct.model_selection.choosing import STRATEGIES, choose_sequences
from skstruct.spans import predict_spans

TOOLS = ("label-studio", "doccano", "brat")


@click.command(short_help="Choose what to label next.")
@click.argument("model", type=FILE)
@click.argument("files", nargs=-1, required=True, type=FILE_OR_INPUT)
@click.option("-n", "--number", type=click.IntRange(1), default=50, help="How many to choose.")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="File of tasks for an annotation tool, for brat a folder. By default the scores and texts "
    "are printed.",
)
@click.option("--to", type=click.Choice(TOOLS), default="label-studio", help="The tool of -o.")
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="spans",
    help="spans: expected number of wrong chunks a token. margin: of the two best labellings. "
    "entropy: of labels. random: to compare with.",
)
@click.option("--near-copies", is_flag=True, help="Also take sentences that are nearly the same.")
@click.option("--seed", type=int, default=0, help="For --strategy random.")
@tokenizer_option
@layout_options
def choose(model, files, number, output, to, strategy, near_copies, seed, tokenizer, layout):
    """Choose sentences of FILES of which MODEL is unsure, and write them to be labelled.

    Labels in FILES are not read. Tasks come with the chunks that the model predicts; `skstruct tag`
    does so for all sentences. Tasks that nobody has reviewed are left out when the answers are
    read with `read_annotations`.

    \b
    Examples:
      skstruct choose names.skops pool.txt -n 50 -o tasks.json
      skstruct choose names.skops pool.txt --to doccano -o tasks.jsonl
      skstruct choose names.skops letters.txt --tokenizer whitespace --to brat -o folder
    """
    loaded = load_model(model)
    if loaded.is_reranker:
        raise click.UsageError(f"{model} is a reranker; tasks are for taggers.")
    sequences = list(chain.from_iterable(_read(loaded, file, layout, tokenizer) for file in files))
    # Comments at the end of a file have no tokens.
    sequences = [sequence for sequence in sequences if len(sequence.X)]
    if not sequences:
        raise ValueError(f"{', '.join(files)}: there are no sentences to choose from.")
    check_kind(sequences, False)
    estimator, X = loaded.as_estimator(), inputs_of(loaded, sequences)
    options = {"strategy": strategy, "diverse": not near_copies, "random_state": seed}
    with errors_name_lines(sequences):
        numbers, scores = choose_sequences(estimator, X, number, **options)
    chosen = [sequences[i] for i in numbers]
    texts, offsets = zip(*map(text_of, chosen), strict=True)
    if output is None:
        for text, score in zip(texts, scores, strict=True):
            write_line(f"{score:.4f}\t{text}")
    else:
        predicted = _predict(loaded, estimator, [X[i] for i in numbers])
        spans = [
            [(at[a][0], at[b - 1][1], str(kind), p) for a, b, kind, p in found]
            for at, found in zip(offsets, predicted, strict=True)
        ]
        write_annotations(output, texts, format=to, predictions=spans)
    click.echo(f"Chose {len(chosen):,} of {len(sequences):,} sentences", err=True)


def _read(model, file, layout, tokenizer):
    if tokenizer is None:
        return read_sequences(file, layout_for(model, layout, file), labelled=False)
    check_takes_words(model)
    return read_texts(file, layout, tokenizer)


def _predict(model, estimator, X):
    """Chunks with their probabilities, by the threshold of the model where it has one."""
    if not hasattr(model.estimator, "predict_spans"):
        return predict_spans(estimator, X)
    X = X if model.vectorizer is None else model.vectorizer.transform(X)
    return model.estimator.predict_spans(X)


def text_of(sequence):
    """Text of a sentence, and the characters of its tokens."""
    if isinstance(sequence.raw, tuple):
        return sequence.raw
    if isinstance(sequence.X[0], dict):
        raise ValueError(f"{sequence.where()}: feature dicts have no text for an annotation tool.")
    words = [token if isinstance(token, str) else token[0] for token in sequence.X]
    offsets, end = [], 0
    for word in words:
        offsets.append((end, end + len(word)))
        end += len(word) + 1
    return " ".join(words), offsets
