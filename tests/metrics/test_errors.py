"""Kinds of errors in chunks, against nervaluate and by hand."""

import numpy as np
import pytest

from skstruct.metrics import (
    chunk_error_report,
    chunk_precision_recall_fscore_support,
    extract_chunks,
)
from skstruct.metrics.chunks import KINDS_OF_ERRORS, errors_of_sequence, without_overlaps
from skstruct.metrics.scores import SCHEMAS


def random_labels(seed, n_sequences=40):
    """True labels, and predictions that are often nearly right."""
    rng = np.random.default_rng(seed)
    names = ["O", "B-A", "I-A", "B-B", "I-B", "B-C"]
    y_true, y_pred = [], []
    for length in rng.integers(1, 12, n_sequences):
        true = rng.choice(names, length, p=[0.4, 0.15, 0.15, 0.1, 0.1, 0.1])
        pred = np.where(rng.random(length) < 0.6, true, rng.choice(names, length))
        y_true.append(true.tolist())
        y_pred.append(pred.tolist())
    return y_true, y_pred


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_nervaluate(seed):
    nervaluate = pytest.importorskip("nervaluate")
    y_true, y_pred = random_labels(seed)

    def entities(y):
        return [
            [{"label": kind, "start": a, "end": b - 1} for a, b, kind in extract_chunks(labels)]
            for labels in y
        ]

    evaluator = nervaluate.Evaluator(
        entities(y_true), entities(y_pred), tags=["A", "B", "C"], loader="dict"
    )
    expected = evaluator.evaluate()["overall"]
    report = chunk_error_report(y_true, y_pred, output_dict=True)
    for ours, theirs in zip(SCHEMAS, ("strict", "exact", "partial", "ent_type"), strict=True):
        for name in ("correct", "incorrect", "partial", "missed", "spurious"):
            assert report[ours][name] == getattr(expected[theirs], name), (ours, name)
        for name, other in (("precision", "precision"), ("recall", "recall"), ("f1-score", "f1")):
            assert report[ours][name] == pytest.approx(getattr(expected[theirs], other))


@pytest.mark.parametrize("seed", range(4))
def test_each_chunk_counts_once(seed):
    y_true, y_pred = random_labels(seed)
    counts = chunk_error_report(y_true, y_pred, output_dict=True)["errors"]["all"]
    n_true = sum(len(extract_chunks(labels)) for labels in y_true)
    n_pred = sum(len(extract_chunks(labels)) for labels in y_pred)
    paired = sum(counts[kind] for kind in KINDS_OF_ERRORS[:4])
    assert paired + counts["missed"] == n_true
    assert paired + counts["invented"] == n_pred
    precision, recall, f1, _ = chunk_precision_recall_fscore_support(
        y_true, y_pred, average="micro"
    )
    assert counts["right"] == pytest.approx(precision * n_pred)
    strict = chunk_error_report(y_true, y_pred, output_dict=True)["strict"]
    assert (strict["precision"], strict["recall"]) == pytest.approx((precision, recall))
    assert strict["f1-score"] == pytest.approx(f1)


@pytest.mark.parametrize(
    ("true", "pred", "kind"),
    [
        ("B-A I-A O", "B-A I-A O", {"right": 1}),
        ("B-A I-A O", "B-B I-B O", {"wrong type": 1}),
        ("B-A I-A O", "B-A O O", {"wrong boundary": 1}),
        ("B-A I-A O", "O B-B I-B", {"both wrong": 1}),
        ("B-A I-A O", "O O O", {"missed": 1}),
        ("O O O", "O B-A O", {"invented": 1}),
        # One true chunk, two predicted: the better one is its pair.
        ("B-A I-A I-A", "B-B I-A I-A", {"wrong boundary": 1, "invented": 1}),
        ("B-A B-B O", "B-B B-B O", {"right": 1, "wrong type": 1}),
    ],
)
def test_kinds(true, pred, kind):
    report = chunk_error_report([true.split()], [pred.split()], output_dict=True)
    assert {name: n for name, n in report["errors"]["all"].items() if n} == kind


def test_rows_of_types():
    y_true, y_pred = [["B-A", "B-B", "O"]], [["B-B", "B-B", "B-C"]]
    errors = chunk_error_report(y_true, y_pred, output_dict=True)["errors"]
    assert errors["A"]["wrong type"] == 1
    assert errors["B"]["right"] == 1
    assert errors["C"]["invented"] == 1
    assert set(errors) == {"A", "B", "C", "all"}


def test_nothing_and_bad_input():
    report = chunk_error_report([["O"]], [["O"]], output_dict=True, zero_division=1.0)
    assert report["strict"]["f1-score"] == 1.0
    assert set(report["errors"]) == {"all"}
    with pytest.raises(ValueError, match="y_true\\[0\\] has 2 labels but y_pred\\[0\\] has 1"):
        chunk_error_report([["O", "O"]], [["O"]])
    with pytest.raises(ValueError, match="a list of sequences of labels is expected"):
        chunk_error_report(["B-A"], ["B-A"])
    with pytest.raises(ValueError, match=r"zero_division must be a number, .* got 'warn'"):
        chunk_error_report([["B-A"]], [["B-A"]], zero_division="warn")
    with pytest.raises(ValueError, match="a dict has room for one row 'all'"):
        chunk_error_report([["B-all"]], [["B-all"]], output_dict=True)


def test_pairing_chunks_of_a_long_sequence_takes_few_comparisons():
    n_compared = 0

    class Counted(int):
        def __lt__(self, other):
            nonlocal n_compared
            n_compared += 1
            return int(self) < int(other)

    spans = [(Counted(2 * t), Counted(2 * t + 1), "A") for t in range(1000)]
    assert len(errors_of_sequence(spans, spans)) == 1000
    assert without_overlaps(spans) == spans
    assert n_compared < 100_000
