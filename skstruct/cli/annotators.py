"""Files of several annotators, one each: sequences brought together, and the labels to agree on."""

import json
import warnings
from collections import Counter
from pathlib import Path

from skstruct.datasets.conll import write_conll
from skstruct.utils.files import write_whole


def names_of(paths):
    """Names of the annotators by the paths of their files, which are unique."""
    stems = {path: Path(path.removesuffix(".gz")).stem for path in paths}
    counts = Counter(stems.values())
    return {path: stem if counts[stem] == 1 else path for path, stem in stems.items()}


def bring_together(sequences, paths):
    """Sequences that have the same tokens become one, whose y is a dict of labels by annotator.

    Parameters
    ----------
    sequences : list of Sequence
        Of all files.
    paths : list of str
        Files, one of each annotator.

    Returns
    -------
    together : list of Sequence
        In the order in which they are met. Where a file has the same tokens several times, the
        first are those that come first in another, and so on.
    """
    names, met, found = names_of(paths), Counter(), {}
    for sequence in sequences:
        tokens = json.dumps(sequence.X, sort_keys=True)
        met[sequence.name, tokens] += 1
        key = tokens, met[sequence.name, tokens]
        first = found.setdefault(key, sequence._replace(y={}))
        first.y[names.get(sequence.name, sequence.name)] = sequence.y
    together = list(found.values())
    if len(paths) > 1 and all(len(sequence.y) == 1 for sequence in together):
        warnings.warn(
            "No two files have a sequence in common, so nothing tells who is right. Each file is "
            "the work of one annotator; their sequences are told by their tokens.",
            stacklevel=2,
        )
    return together


def flat_labels(sequences):
    """Labels of each annotator of each sequence, one after the other."""
    return [labels for sequence in sequences for labels in sequence.y.values()]


def describe_annotators(sequences, consensus):
    """Lines on each annotator: how many labels, and how many are those to agree on."""
    given, right = Counter(), Counter()
    for sequence, agreed in zip(sequences, consensus, strict=True):
        for name, labels in sequence.y.items():
            pairs = [(a, b) for a, b in zip(labels, agreed, strict=True) if a is not None]
            given[name] += len(pairs)
            right[name] += sum(a == b for a, b in pairs)
    return [
        f"Annotator {name}: {given[name]:,} labels, {right[name] / given[name]:.1%} as agreed on"
        for name in sorted(given)
        if given[name]
    ]


def write_consensus(path, layout, sequences, consensus, proba, classes):
    """Write sequences with the labels to agree on; JSON lines have the probabilities of these, too.

    The name of the file says which format. Columns have the label last.
    """
    tokens, labels = [sequence.X for sequence in sequences], [list(one) for one in consensus]
    if layout.of(path).format != "jsonl":
        text = [[str(label) for label in one] for one in labels]
        given = {"separator": layout.separator, "encoding": layout.encoding}
        write_conll(path, tokens, text, comment=layout.comment, **given)
        return
    number, lines = {label: i for i, label in enumerate(classes.tolist())}, []
    for X, y, p in zip(tokens, labels, proba, strict=True):
        chosen = [round(float(row[number[label]]), 6) for row, label in zip(p, y, strict=True)]
        found = {"tokens": X, "labels": y, "probabilities": chosen}
        lines.append(json.dumps(found, ensure_ascii=False) + "\n")
    write_whole(path, "".join(lines).encode(layout.encoding))
