"""Whole documents in one sequence: time must not grow with the square of the chunks."""

import json
import time

import pytest

from skstruct.datasets import read_annotations, spans_to_labels
from skstruct.inspection import TaggedText
from skstruct.metrics import chunk_error_report

pytestmark = pytest.mark.slow

N = 16_000


def report_errors(tmp_path):
    chunk_error_report([["B-A", "I-A", "O"] * N], [["B-A", "O", "O"] * N])


def label_tokens(tmp_path):
    offsets = [(2 * t, 2 * t + 1) for t in range(3 * N)]
    spans_to_labels([(6 * i, 6 * i + 3, "A") for i in range(N)], offsets)


def leave_out_overlaps(tmp_path):
    spans = [[10 * i, 10 * i + (15 if i % 3 else 5), "A"] for i in range(N)]
    path = tmp_path / "document.jsonl"
    path.write_text(json.dumps({"text": "x" * (10 * N + 10), "label": spans}))
    for overlaps in ("longest", "skip"):
        with pytest.warns(UserWarning, match="overlapped others"):
            read_annotations(path, format="doccano", overlaps=overlaps)


def mark_text(tmp_path):
    labels, gold = ["B-A", "I-A", "O"] * N, ["B-A", "O", "O"] * N
    TaggedText([["w"] * (3 * N)], [labels], gold=[gold]).to_html()


@pytest.mark.parametrize("work", [report_errors, label_tokens, leave_out_overlaps, mark_text])
def test_a_document_takes_less_than_seconds(work, tmp_path):
    start = time.perf_counter()
    work(tmp_path)
    assert time.perf_counter() - start < 5
