"""``skstruct evaluate``: score a model, or predictions, on labelled text."""

import json
import re
from itertools import chain

import click

from skstruct.cli.answers import Details, answer, baselines_of, check_kind, inputs_of
from skstruct.cli.labels import has_chunks, look_like_runs, reading_of, warn_of_odd_labels
from skstruct.cli.layout import layout_for, layout_options
from skstruct.cli.models import load_model
from skstruct.cli.options import FILE, FILE_OR_INPUT
from skstruct.cli.output import write_line
from skstruct.cli.text import errors_name_lines, labels_in, read_all
from skstruct.input.schemes import (
    RUNS,
    SCHEMES,
    count_breaches,
    infer_scheme,
    rewritten,
    spelling_of,
)
from skstruct.metrics.labels import sequence_accuracy_score, token_accuracy_score
from skstruct.metrics.scores import chunk_error_report, chunk_f1_score, chunk_report
from skstruct.utils.files import value_errors_name


@click.command(short_help="Score a model, or predictions.")
@click.argument("files", nargs=-1, type=FILE_OR_INPUT)
@click.option("-m", "--model", type=FILE, help="File of the model.")
@click.option(
    "--scheme",
    type=click.Choice(["conlleval", *SCHEMES]),
    help="Scheme of the labels of chunks, of which only valid ones count. By default all schemes "
    "but runs are read, leniently, as conlleval does. runs: labels without prefixes, each run of "
    "which is a chunk.",
)
@click.option("--errors", "show_errors", is_flag=True, help="Also the kinds of errors in chunks.")
@click.option("--json", "as_json", is_flag=True, help="The scores as JSON, in full precision.")
@layout_options
def evaluate(files, model, scheme, show_errors, as_json, layout):
    """Score a model on the labelled FILES, by default standard input.

    Without a model, score predictions: the label is the column before the last, and the prediction
    the last, as ``skstruct tag`` and crf_test append it; --label and --columns name others. Labels
    such as B-NP are scored as chunks, others one by one. For rerankers, the score is the mean cost
    of the candidates chosen.

    \b
    Examples:
      skstruct evaluate -m chunker.skops test.txt
      skstruct tag -m chunker.skops test.txt | skstruct evaluate
      skstruct evaluate -m chunker.skops --json test.txt
    """
    files = list(files) or ["-"]
    scores, reports = _scores(files, model, layout, scheme, show_errors, as_json)
    if as_json:
        write_line(json.dumps({**scores, **reports}))
        return
    lines = [f"{name.replace('_', ' ')}: {_number(value)}" for name, value in scores.items()]
    write_line("\n\n".join(["\n".join(lines), *(text.rstrip() for text in reports.values())]))


def _scores(files, path, layout, scheme, show_errors, as_json):
    """Scores of a model, or of the predictions in files if there is none, and reports on chunks."""
    if path is None:
        sequences, y_pred = _read_predictions(files, layout)
    else:
        model = load_model(path)
        read = (read_all([file], layout_for(model, layout, file)) for file in files)
        sequences = list(chain.from_iterable(read))
        check_kind(sequences, model.is_reranker)
        if model.is_reranker:
            return _scores_of_choices(model, sequences), {}
        y_pred = [one.entries["labels"] for one in answer(model, sequences, Details())]
    y_true, y_pred = _as_text(_known_labels(sequences)), _as_text(y_pred)
    scores = {
        "sequences": len(y_true),
        "tokens": sum(map(len, y_true)),
        "token_accuracy": token_accuracy_score(y_true, y_pred),
        "sequence_accuracy": sequence_accuracy_score(y_true, y_pred),
    }
    reports = {}
    y_true, y_pred, note = _in_one_spelling(y_true, y_pred, scheme)
    if scheme is not None or has_chunks(y_true, y_pred):
        scores["scheme"] = (scheme or _inferred(y_true, y_pred)) + note
        how = {"scheme": scheme or "conlleval", "digits": 4, "output_dict": as_json}
        with errors_name_lines(sequences):
            scores["chunk_f1"] = chunk_f1_score(y_true, y_pred, scheme=how["scheme"])
        reports["chunks"] = chunk_report(y_true, y_pred, **how)
        if as_json or show_errors:
            reports["errors"] = chunk_error_report(y_true, y_pred, **how)
    elif not warn_of_odd_labels(sequences):
        runs = (
            "labels have no prefixes. --scheme runs scores runs." if look_like_runs(y_true) else ""
        )
        if note or runs:
            click.echo(f"No chunk scores: {note or runs}", err=True)
    return scores, reports


def _in_one_spelling(y_true, y_pred, scheme):
    """Labels as schemes have them, and a note on how they were written or why this is unknown."""
    spelling = None if scheme == RUNS else spelling_of(chain(*y_true, *y_pred))
    if spelling is None:
        return y_true, y_pred, ""
    named = scheme not in (None, "conlleval")
    if spelling.odd or not (spelling.is_certain or named):
        return y_true, y_pred, str(spelling)
    seen, label = next(pair for pair in spelling.standard.items() if pair[0] != pair[1])
    note = f"; labels such as {seen!r} are read as {label!r}"
    return rewritten(y_true, spelling), rewritten(y_pred, spelling), note


def _known_labels(sequences):
    """Labels of sequences; an error where one is unknown."""
    for sequence in sequences:
        if None in sequence.y:
            t = sequence.y.index(None)
            raise ValueError(
                f"{sequence.where(t)}: token {t} has no label, and so no score; leave out its "
                "sentence."
            )
    return [sequence.y for sequence in sequences]


def _as_text(y):
    """Labels as text, as in column files: labels of JSON lines may be numbers."""
    return [[label if label is None else str(label) for label in labels] for labels in y]


def brief_scores(y_true, y_pred, scheme):
    """Text with the token accuracy and, for labels of chunks, their F1."""
    text = f"token accuracy {token_accuracy_score(y_true, y_pred):.4f}"
    reading = reading_of(scheme, y_true, y_pred)
    if reading is not None:
        text += f", chunk F1 {chunk_f1_score(y_true, y_pred, scheme=reading):.4f}"
    return text


def _inferred(y_true, y_pred):
    """Text about the scheme of the right labels, or of all labels if these have no chunks."""
    y = y_true if has_chunks(y_true) else [*y_true, *y_pred]
    name = infer_scheme(y)
    n_wrong = count_breaches(y, name) if y is y_true else 0
    broken = f"; right labels that break it: {n_wrong:,}" if n_wrong else ""
    return f"{name} (inferred), read as conlleval does{broken}"


def _number(value):
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _read_predictions(files, layout):
    """Sequences and predictions: the last two columns, or two entries of JSON lines."""
    label, columns = -2 if layout.label is None else layout.label, layout.columns or [-1]
    if len(columns) > 1:
        raise click.UsageError("Without -m, --columns names one column, the predictions.")
    sequences = read_all(files, layout._replace(label=label, columns=columns))
    y_pred = [_predicted(sequence) for sequence in sequences]
    gold = chain.from_iterable(sequence.y for sequence in sequences)
    # With --spans, tokens outside have no probability.
    found = [label for label in chain.from_iterable(y_pred) if label != "_"]
    if found and all(map(_is_number, found)) and not any(map(_is_number, gold)):
        raise ValueError(
            f"{sequences[0].where()}: predictions are numbers, such as {found[0]}; --columns names "
            "the column of the predictions, from 0."
        )
    return sequences, y_pred


def _is_number(label):
    """Return True for probabilities as ``skstruct tag`` writes them behind labels."""
    return re.fullmatch(r"(.*/)?\d*\.\d+", str(label)) is not None


def _predicted(sequence):
    """Predictions for a sequence: its tokens, or an entry of JSON lines."""
    if not isinstance(sequence.raw, dict):
        return sequence.X
    with value_errors_name(sequence.where()):
        if sequence.kind == "candidates":
            raise ValueError("the score of a choice among candidates needs a model (-m).")
        if "predicted" not in sequence.raw:
            raise ValueError('"predicted" labels are missing; without -m, they are what is scored.')
        return labels_in(sequence.raw, "predicted", len(sequence.y))


def _scores_of_choices(model, sequences):
    X, y = inputs_of(model, sequences), [sequence.y for sequence in sequences]
    with errors_name_lines(sequences):
        score = model.estimator.score(X, y, baseline_score=baselines_of(sequences))
    name, value = ("accuracy", score) if isinstance(y[0], int) else ("mean_cost", -score)
    return {"groups": len(X), name: value}
