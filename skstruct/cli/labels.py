"""Labels of training files: lines on their column and scheme, repair and conversion."""

import warnings
from itertools import chain, islice, pairwise

from skstruct.cli.layout import layout_to_store
from skstruct.datasets.conllu import COLUMNS
from skstruct.datasets.spans import convert_labels
from skstruct.input.schemes import (
    OUTSIDE,
    RUNS,
    are_chunk_labels,
    are_segment_letters,
    count_breaches,
    in_standard_spelling,
    infer_scheme,
    odd_labels,
    spelling_of,
)

_EXAMPLES = 3
# Labels that are more than so many, and more than this share of the tokens, look like words.
_MANY, _SHARE = 20, 0.1
# Share of neighbours with the same label from which labels look like runs.
_SAME = 0.3


def has_chunks(y, *more):
    """Return True if labels mark chunks, such as B-NP, I-NP and O, or B, M, E and S.

    With `more` labels, such as predictions, it is enough if all together are.
    """
    for sequences in (y, chain(y, *more)) if more else (y,):
        labels = {label for sequence in sequences for label in sequence}
        if are_chunk_labels(labels) or are_segment_letters(labels):
            return True
    return False


def look_like_runs(y):
    """Return True if labels without prefixes may mark runs: many neighbours agree."""
    pairs = [pair for labels in y for pair in pairwise(labels)]
    return sum(a == b != OUTSIDE for a, b in pairs) > _SAME * len(pairs)


def reading_of(scheme, y, *more):
    """Scheme of chunk scores, or "conlleval"; None if labels are not of chunks."""
    return RUNS if scheme == RUNS else "conlleval" if has_chunks(y, *more) else None


def warn_of_odd_labels(sequences):
    """Warn of a label without a letter of a scheme, where others have one; return True if so."""
    odd = odd_labels({label for one in sequences for label in one.y if label is not None})
    if odd:
        first = next(one for one in sequences if odd[0] in one.y)
        warnings.warn(
            f"{first.where(first.y.index(odd[0]))}: label {odd[0]!r} has no letter of a scheme, as "
            "others have, so chunks are not scored. Correct it.",
            stacklevel=2,
        )
    return bool(odd)


def convert_sequences(sequences, scheme, repair, target):
    """Sequences whose labels are repaired and in another scheme, and a line about them.

    Without `repair` and `target` they stay as they are, and the line is None.
    """
    if repair is None and target is None:
        return sequences, None
    y = [sequence.y for sequence in sequences]
    target = target or scheme
    found = convert_labels(y, source=scheme, target=target, repair=repair or "raise")
    about = f"{found.n_repaired:,} labels were repaired; those to learn are in {target}"
    pairs = zip(sequences, found.labels, strict=True)
    return [one._replace(y=labels) for one, labels in pairs], about


def describe_scheme(sequences, scheme, *, is_used):
    """Line about the scheme of labels and what breaks it; None if labels have no scheme.

    If labels have no prefixes, but many neighbours have the same one, the line suggests runs.
    """
    y = [[label for label in sequence.y if label is not None] for sequence in sequences]
    spelling = None if scheme == RUNS else spelling_of(chain.from_iterable(y))
    if spelling is not None and not is_used:
        return f"Chunks are not scored. {spelling} --to-scheme IOB2 does so here."
    if scheme != RUNS:
        y = in_standard_spelling(y, is_named=scheme is not None)
    if scheme is None and not is_used and not has_chunks(y):
        runs = "Labels have no prefixes; --scheme runs takes each run of a label as a chunk"
        return runs if look_like_runs(y) else None
    name = scheme or infer_scheme(y)
    inferred = " (inferred; --scheme names another)" if scheme is None else ""
    all_known = not any(None in sequence.y for sequence in sequences)
    n = count_breaches(y, name) if all_known else 0
    broken = f"; {n:,} of {sum(map(len, y)):,} labels break it (--repair)" if n else ""
    return f"Labels are in {name}{inferred}{broken}"


def describe_columns(sequences, layout):
    """Line that says which columns are tokens, features and labels, with examples."""
    layout = layout.of(sequences[0].name)
    tokens = [token for sequence in islice(sequences, 100) for token in sequence.X]
    labels = _examples(chain.from_iterable(sequence.y for sequence in sequences))
    if layout.format == "jsonl":
        what = "features" if isinstance(tokens[0], dict) else "tokens"
        return f"JSON lines: {what} {_examples(map(_text, tokens))}, labels {labels}"
    stored = layout_to_store(layout, sequences[0])
    columns, label = stored["columns"], stored["label"]
    if layout.format == "conllu":
        columns, label = [COLUMNS[column] for column in columns], COLUMNS[label]
    parts = []
    for position, name in enumerate(columns):
        values = (token if isinstance(token, str) else token[position] for token in tokens)
        parts.append(f"{'feature' if position else 'token'} {name} {_examples(values)}")
    return f"Columns: {', '.join(parts)}, label {label} {labels}"


def _text(token):
    if isinstance(token, dict):
        return ", ".join(token)
    return token if isinstance(token, str) else " ".join(map(str, token))


def _examples(values):
    """The first few different values, in parentheses."""
    different = dict.fromkeys(str(value) for value in values if value is not None)
    return f"({', '.join(islice(different, _EXAMPLES))})"


def warn_of_labels(sequences):
    """Warn of labels that look like words."""
    labels = {label for sequence in sequences for label in sequence.y if label is not None}
    n_tokens = sum(len(sequence.y) for sequence in sequences)
    if len(labels) > max(_MANY, _SHARE * n_tokens):
        warnings.warn(
            f"The column of the label has {len(labels):,} different values in {n_tokens:,} tokens, "
            f"such as {_examples(sorted(map(str, labels)))}: they look like words. --label names "
            "another column, from 0.",
            stacklevel=2,
        )
