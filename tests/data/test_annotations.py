"""Exports of annotation tools, and documents of spaCy, read and written."""

import json
import re
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skstruct.datasets import (
    docs_to_sequences,
    labels_to_docs,
    labels_to_spans,
    read_annotations,
    spans_to_labels,
    write_annotations,
)

FORMATS = ["brat", "doccano", "label-studio"]
TEXT = "Maria sings\r\nin Zürich 🎵, with Jo."
NO_TYPES = [["LOC"], None, 3, np.nan, "", b"LOC"]
SPANS = [(0, 5, "PER"), (16, 22, "LOC"), (31, 33, "PER")]


@st.composite
def texts_with_spans(draw):
    text = draw(st.text(min_size=1, max_size=30))
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    kinds = st.sampled_from(["PER", "LOC", "É-1"])
    pairs = zip(places[::2], places[1::2], strict=False)
    return text, [(a, b, draw(kinds)) for a, b in pairs]


@pytest.mark.parametrize("format", FORMATS)
@given(cases=st.lists(texts_with_spans(), min_size=1, max_size=12))
@example(cases=[("a", []), ("\ufeffMaria", [(1, 6, "PER")])])
@example(cases=[("a", []), ("a \ud800", [(0, 1, "PER")])])
@example(cases=[("\x85\u2028\0\ta\tb", [(0, 7, "PER")])])
def test_what_is_written_is_read_back(tmp_path_factory, format, cases):
    path = tmp_path_factory.mktemp("export") / "all"
    texts, spans = map(list, zip(*cases, strict=True))
    wrong = [
        i
        for i, text in enumerate(texts)
        if re.search("[\ud800-\udfff]", text) or (format == "brat" and text[0] == "\ufeff")
    ]
    if wrong:
        with pytest.raises(ValueError, match=f"^Text {wrong[0]}( begins with a byte order|: )"):
            write_annotations(path, texts, spans, format=format)
        assert not path.exists()
        return
    write_annotations(path, texts, spans, format=format)
    assert read_annotations(path, format=format) == (texts, spans)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("text", "span", "message"),
    [
        *[("Maria", (0, 5, kind), r"spans\[1\]\[0\] has the type") for kind in NO_TYPES],
        ("Maria", (0, 6, "PER"), r"Text 1: the span \(0, 6, 'PER'\) is outside of the text"),
        ("Maria", (-1, 5, "PER"), "Text 1: the span .* is outside of the text"),
        ("Maria", (2, 2, "PER"), "is empty"),
        ("Maria", (0, 5), r"spans\[1\]\[0\] is .*expected \(start, end, type\)"),
        ("Maria", (0, "5", "PER"), r"expected \(start, end, type\)"),
        ("Maria", (0, 2.5, "PER"), r"expected \(start, end, type\)"),
        ("Maria", (0, np.nan, "PER"), r"expected \(start, end, type\)"),
        ("Maria", {"start": 0}, r"expected \(start, end, type\)"),
        (None, (0, 5, "PER"), "Text 1 is None; expected a string"),
        ("Maria", (0, 5, "\ud800"), "Text 1: .* could not be read back"),
    ],
)
def test_what_cannot_be_written(tmp_path, format, text, span, message):
    path = tmp_path / "new"
    with pytest.raises(ValueError, match=message):
        write_annotations(path, ["first", text], [[], [span]], format=format)
    assert not path.exists()


@pytest.mark.parametrize("format", FORMATS)
def test_numbers_of_numpy_are_written(tmp_path, format):
    span = (np.int64(0), np.int32(5), np.str_("PER"))
    write_annotations(tmp_path / "x", ["Maria"], [[span]], format=format)
    assert read_annotations(tmp_path / "x", format=format) == (["Maria"], [[(0, 5, "PER")]])


def test_files_of_brat(tmp_path):
    (tmp_path / "b.txt").write_bytes(TEXT.encode())
    (tmp_path / "b.ann").write_text(
        "T2\tLOC 16 22\tZürich\nT1\tPER 0 5\tMaria\nR1\tLives Arg1:T1 Arg2:T2\n#1\tNote T1\tx\n"
        "T3\tPER 31 33\tJo\nE1\tPER:T1\n*\tEquiv T1 T3\n",
        "utf-8",
    )
    (tmp_path / "a.txt").write_text("none", "utf-8")
    (tmp_path / "a.ann").write_text("", "utf-8")
    assert read_annotations(tmp_path, format="brat") == (["none", TEXT], [[], SPANS])
    assert read_annotations(tmp_path / "b.ann", format="brat") == ([TEXT], [SPANS])
    assert [TEXT[a:b] for a, b, _ in SPANS] == ["Maria", "Zürich", "Jo"]


def test_exports_of_doccano(tmp_path):
    entities = [{"id": 7, "start_offset": a, "end_offset": b, "label": k} for a, b, k in SPANS]
    lines = [
        {"id": 1, "text": TEXT, "label": [list(span) for span in SPANS]},
        {"id": 2, "text": TEXT, "labels": [list(span) for span in SPANS[::-1]]},
        {"id": 3, "text": TEXT, "entities": entities, "relations": []},
        {"id": 4, "text": "none"},
    ]
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n", "utf-8")
    texts, spans = read_annotations(path, format="doccano")
    assert texts == [TEXT] * 3 + ["none"]
    assert spans == [SPANS] * 3 + [[]]


def test_exports_of_label_studio(tmp_path):
    def result(span):
        start, end, kind = span
        value = {"start": start, "end": end, "text": TEXT[start:end], "labels": [kind]}
        return {"from_name": "ner", "to_name": "doc", "type": "labels", "value": value}

    choice = {"from_name": "kind", "type": "choices", "value": {"choices": ["news"]}}
    tasks = [
        {
            "data": {"body": TEXT},
            "annotations": [
                {"was_cancelled": True, "result": [result((0, 5, "PER"))]},
                {"was_cancelled": False, "result": [*map(result, SPANS), choice]},
            ],
        },
        {"data": {"body": "none"}, "annotations": []},
    ]
    minimal = [{"body": TEXT, "label": [result(span)["value"] for span in SPANS]}, {"body": "none"}]
    for content in (tasks, minimal):
        path = tmp_path / "all.json"
        path.write_text(json.dumps(content), "utf-8")
        found = read_annotations(path, format="label-studio", text_key="body")
        assert found == ([TEXT, "none"], [SPANS, []])


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("brat", "T1\tPER 0 99\tMaria", r"line|\.ann: the span \(0, 99, 'PER'\) is empty or outs"),
        ("brat", "x\nT1\tPER 0 5;8 9\tMaria s", "line 2: a span has several parts, 0 5;8 9"),
        ("brat", "T1\tPER zero 5\tMaria", "line 1: 'T1.tPER zero 5.tMaria' is not a span"),
        ("doccano", "\n{", "line 2 is not JSON"),
        ("doccano", '{"body": "x"}', "line 1 has no text under the key 'text'"),
        ("doccano", '{"text": "x", "label": [[0]]}', r"line 1: \[\[0\]\] are not spans"),
        ("doccano", '{"text": "x", "label": [[1, 1, "A"]]}', r"the span \(1, 1, 'A'\) is empty"),
        ("label-studio", "{}", "not a list of tasks"),
        ("label-studio", "[1]", "task 0 has no text"),
        ("label-studio", '[{"text": "x", "label": [{"start": 0}]}]', "task 0: a result lacks"),
    ],
)
def test_bad_files(tmp_path, format, content, message):
    path = tmp_path / "all.ann"
    path.with_suffix(".txt").write_text("Maria sings", "utf-8")
    path.write_text(content, "utf-8")
    with pytest.raises(ValueError, match=message) as raised:
        read_annotations(path, format=format)
    assert "all.ann" in str(raised.value)


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"format must be one of 'brat'.*, got 'conll'"):
        read_annotations(tmp_path, format="conll")
    with pytest.raises(ValueError, match=r"has no \.ann file"):
        read_annotations(tmp_path, format="brat")
    with pytest.raises(ValueError, match="1 texts, but spans for 2"):
        write_annotations(tmp_path / "x", ["a"], [[], []], format="doccano")
    with pytest.raises(ValueError, match="Text 0: brat does not allow the type 'a b'"):
        write_annotations(tmp_path / "new", ["a"], [[(0, 1, "a b")]], format="brat")
    assert not any(tmp_path.iterdir())


def test_one_text_of_brat_by_either_of_its_files(tmp_path):
    texts, spans = ["The cat\n", "b"], [[(4, 7, "X")], []]
    write_annotations(tmp_path, texts, spans, format="brat")
    for name in ("0.ann", "0.txt"):
        assert read_annotations(tmp_path / name, format="brat") == (texts[:1], spans[:1])


def test_hidden_files_that_archives_of_macos_have(tmp_path):
    write_annotations(tmp_path, ["Maria", "Ana"], [[(0, 5, "PER")], []], format="brat")
    expected = read_annotations(tmp_path)
    for name in ("._0.ann", "._0.txt", ".DS_Store"):
        (tmp_path / name).write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X        \xff")
    assert (
        read_annotations(tmp_path, format="brat")
        == expected
        == (["Maria", "Ana"], [[(0, 5, "PER")], []])
    )
    assert read_annotations(tmp_path / "0.txt") == (["Maria"], [[(0, 5, "PER")]])


def test_documents_of_spacy():
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import DocBin

    doc = spacy.blank("en")("Maria Rossi sings in Rome.")
    offsets = [(token.idx, token.idx + len(token)) for token in doc]
    spans = [(0, 11, "PER"), (21, 25, "LOC")]
    labels = spans_to_labels(spans, offsets)
    assert labels_to_docs([labels], [doc]) == [doc]
    assert [(e.start_char, e.end_char, e.label_) for e in doc.ents] == spans
    (stored,) = DocBin(docs=[doc]).get_docs(spacy.blank("en").vocab)
    tokens, found = docs_to_sequences([stored], attributes=("text", "lower_"))
    assert found == [labels]
    assert labels_to_spans(found[0], offsets) == spans
    assert tokens == [[(token.text, token.text.lower()) for token in doc]]
    assert docs_to_sequences(spacy.blank("en").pipe(["a b"])) == ([["a", "b"]], [[None, None]])


def test_sentences_and_tags_of_spacy():
    spacy = pytest.importorskip("spacy")
    words, tags, starts = ["Hi", "!", "Bye"], ["UH", "", "UH"], [True, False, True]
    doc = spacy.tokens.Doc(spacy.blank("en").vocab, words=words, tags=tags, sent_starts=starts)
    found = docs_to_sequences([doc], label="tag_", sentences=True)
    assert found == ([["Hi", "!"], ["Bye"]], [["UH", None], ["UH"]])
    assert docs_to_sequences([doc], label="is_sent_start")[1] == [[True, False, True]]
    assert docs_to_sequences([doc], label="tag")[1][0][1] is None
    for docs, attributes, message in (
        (doc, "text", r"docs is a single document; put it into a list, \[docs\]"),
        ([doc], "tg_", "Tokens of spaCy have no attribute 'tg_'"),
        ([doc], ("text", 3), "Tokens of spaCy have no attribute 3"),
    ):
        with pytest.raises(ValueError, match=message):
            docs_to_sequences(docs, attributes=attributes)
    with pytest.raises(ValueError, match="have no attribute 'tg_'"):
        docs_to_sequences([doc], label="tg_")


def test_entities_of_spacy_at_the_ends_of_sentences_and_where_there_must_be_none():
    spacy = pytest.importorskip("spacy")
    words, starts = ["in", "New", "York", "."], [True, False, True, False]
    doc = spacy.tokens.Doc(spacy.blank("en").vocab, words=words, sent_starts=starts)
    doc.set_ents([spacy.tokens.Span(doc, 1, 3, "LOC")], blocked=[doc[3:4]], default="missing")
    assert docs_to_sequences([doc])[1] == [[None, "B-LOC", "I-LOC", "O"]]
    assert docs_to_sequences([doc], sentences=True)[1] == [[None, "B-LOC"], ["B-LOC", "O"]]


def test_labels_that_do_not_fit_documents():
    spacy = pytest.importorskip("spacy")
    docs = list(spacy.blank("en").pipe(["Rome", "Rome burns"]))
    for labels, message in (
        ([["B-LOC"]], "There are 2 sequences of tokens, but labels for 1"),
        ([["B-LOC"], ["B-LOC"]], "Sequence 1 has 2 tokens, but 1 labels"),
        (["O", "OO"], r"labels\[0\] is 'O', but a list of sequences"),
    ):
        with pytest.raises(ValueError, match=message):
            labels_to_docs(labels, docs)
    with pytest.raises(ValueError, match=re.escape("label")):
        labels_to_docs([["B-LOC"], ["B-LOC", "LOC"]], docs, scheme="IOB2")
    assert not docs[0].ents


# ------------------------------------------------------------- spans of several parts, and overlaps


def apart(folder):
    """A folder of brat with two spans of two parts among others."""
    (folder / "a.txt").write_text("North and South Ostheim trade.", encoding="utf-8")
    lines = ["T1\tLOC 0 5;16 23\tNorth Ostheim", "T2\tLOC 10 23\tSouth Ostheim"]
    (folder / "a.ann").write_text("\n".join(lines), encoding="utf-8")
    (folder / "b.txt").write_text("Velmora exports tin.", encoding="utf-8")
    lines = ["T1\tLOC 0 7\tVelmora", "T2\tX 0 7;16 19\tVelmora tin"]
    (folder / "b.ann").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("parts", "more"),
    [
        ("skip", [[], []]),
        ("split", [[(0, 5, "LOC"), (16, 23, "LOC")], [(0, 7, "X"), (16, 19, "X")]]),
        ("longest", [[(16, 23, "LOC")], [(0, 7, "X")]]),
    ],
)
def test_spans_of_several_parts(parts, more, tmp_path):
    folder = apart(tmp_path)
    with pytest.raises(ValueError, match=r"a.ann, line 1: a span has several parts.*parts='skip'"):
        read_annotations(folder, format="brat")
    with pytest.warns(UserWarning, match=rf"2 span\(s\) had several parts \(parts='{parts}'\)"):
        _, spans = read_annotations(folder, format="brat", parts=parts)
    plain = [[(10, 23, "LOC")], [(0, 7, "LOC")]]
    for found, one, others in zip(spans, plain, more, strict=True):
        assert sorted(found) == sorted([*one, *others])


def test_words_beside_several_parts_are_compared(tmp_path):
    (tmp_path / "a.txt").write_text("North and South Ostheim", encoding="utf-8")
    (tmp_path / "a.ann").write_text("T1\tLOC 0 5;15 22\tNorth Ostheim", encoding="utf-8")
    with pytest.raises(ValueError, match=r"stands beside it|several parts"):
        read_annotations(tmp_path, format="brat", parts="split")


boxes = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 5), st.sampled_from("ab")), max_size=6
).map(lambda found: [(a, a + n, kind) for a, n, kind in found])


@given(boxes)
def test_spans_that_overlap(tmp_path_factory, spans):
    path = tmp_path_factory.mktemp("spans") / "a.jsonl"
    line = json.dumps({"text": "x" * 20, "label": [list(span) for span in spans]})
    path.write_text(line, encoding="utf-8")

    def clash(a, b):
        return not set(range(*a[:2])).isdisjoint(range(*b[:2]))

    pairs = [(i, j) for i in range(len(spans)) for j in range(i) if clash(spans[i], spans[j])]
    clashing = {i for pair in pairs for i in pair}

    def read(overlaps):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = read_annotations(path, format="doccano", overlaps=overlaps)[1][0]
        lost = len(spans) - len(found)
        assert len(caught) == (lost > 0)
        assert not caught or f": {lost} span(s) overlapped" in str(caught[0].message)
        return found

    assert sorted(read("keep")) == sorted(spans)
    alone = [span for i, span in enumerate(spans) if i not in clashing]
    assert sorted(read("skip")) == sorted(alone)
    longest = read("longest")
    assert set(alone) <= set(longest) <= set(spans)
    assert not any(clash(a, b) for a, b in pairwise(longest))
    # Each span left out overlaps one that is at least as long.
    for span in spans:
        rivals = [kept for kept in longest if clash(span, kept)]
        assert max(b - a for a, b, _ in rivals) >= span[1] - span[0]
    if pairs:
        with pytest.raises(ValueError, match=r"overlap. Pass overlaps='longest'"):
            read("raise")
    else:
        assert sorted(read("raise")) == sorted(spans)


SUGGESTED = [
    [(0, 5, "PER", 0.9), (9, 13, "LOC", 0.4)],
    [],
    [(0, 4, "LOC", 0.75)],
]
TO_LABEL = ["Maria in Rome", "nobody", "Oslo is old"]
PLAIN = [[span[:3] for span in spans] for spans in SUGGESTED]


def write_suggestions(folder, format):
    path = folder / ("tasks" if format == "brat" else "tasks.json")
    write_annotations(path, TO_LABEL, format=format, predictions=SUGGESTED)
    return path


@pytest.mark.parametrize("format", ["brat", "doccano", "label-studio"])
def test_suggestions_do_not_come_back_as_gold(tmp_path, format):
    path = write_suggestions(tmp_path, format)
    # Label Studio leaves it to the tool what a task without predictions is.
    with pytest.warns(UserWarning, match=r"3 text\(s\) have suggestions that nobody.*text 0, 1, 2"):
        assert read_annotations(path, format=format) == ([], [])
    with pytest.warns(UserWarning, match="are read with what was suggested"):
        found = read_annotations(path, format=format, unreviewed="keep")
    assert found == (TO_LABEL, PLAIN)


@pytest.mark.parametrize("format", ["brat", "doccano"])
def test_answers_that_differ_from_suggestions_come_back(tmp_path, format):
    path = write_suggestions(tmp_path, format)
    answers = [PLAIN[0][:1], [(0, 6, "PER")], PLAIN[2]]
    beside = path / "suggestions.jsonl" if format == "brat" else f"{path}.suggestions"
    other = tmp_path / "export"
    write_annotations(other, TO_LABEL, answers, format=format)
    with pytest.warns(UserWarning, match=r"1 text\(s\) have suggestions that nobody.*text 2"):
        found = read_annotations(other, format=format, suggestions=beside)
    assert found == (TO_LABEL[:2], answers[:2])
    # Without the file, nobody can tell.
    assert read_annotations(other, format=format) == (TO_LABEL, answers)


def test_what_is_approved_comes_back(tmp_path):
    path = write_suggestions(tmp_path, "doccano")
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    entries[2]["confirmed"] = True
    path.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"2 text\(s\) have suggestions"):
        assert read_annotations(path, format="doccano") == ([TO_LABEL[2]], [PLAIN[2]])


def test_predictions_of_label_studio(tmp_path):
    path = write_suggestions(tmp_path, "label-studio")
    tasks = json.loads(path.read_text(encoding="utf-8"))
    (prediction,) = tasks[0]["predictions"]
    assert prediction["score"] == 0.4
    assert [result["score"] for result in prediction["result"]] == [0.9, 0.4]
    assert tasks[1]["predictions"][0]["result"] == []
    # Somebody has labelled the first, and agrees with the third.
    tasks[0]["annotations"] = [{"result": prediction["result"][:1]}]
    tasks[2]["annotations"] = [{"result": tasks[2]["predictions"][0]["result"]}]
    path.write_text(json.dumps(tasks), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"1 text\(s\) have suggestions.*text 1"):
        found = read_annotations(path)
    assert found == ([TO_LABEL[0], TO_LABEL[2]], [PLAIN[0][:1], PLAIN[2]])


def test_bad_predictions(tmp_path):
    path = tmp_path / "tasks.json"
    for wrong in (1.5, -0.1, "high", None, float("nan")):
        with pytest.raises(ValueError, match=r"predictions\[0\]: .* is not a probability"):
            write_annotations(path, ["ab"], format="doccano", predictions=[[(0, 1, "X", wrong)]])
    for arguments in ({}, {"spans": [[]], "predictions": [[]]}):
        with pytest.raises(TypeError, match="either spans or predictions"):
            write_annotations(path, ["ab"], format="doccano", **arguments)
    with pytest.raises(ValueError, match="1 texts, but predictions for 2"):
        write_annotations(path, ["ab"], format="doccano", predictions=[[], []])
    assert not path.exists()
    write_annotations(path, ["ab"], [[(0, 1, "X")]], format="doccano")
    Path(f"{path}.suggestions").write_text('{"text": "ab"}', encoding="utf-8")
    with pytest.raises(ValueError, match="has no text with suggestions"):
        read_annotations(path, format="doccano")


@pytest.mark.parametrize("format", ["brat", "doccano"])
def test_suggestions_of_numpy_of_a_text_twice_and_of_reviewed_ones(tmp_path, format):
    path = tmp_path / "tasks"
    suggested = [[(np.int64(0), np.int64(1), "X", np.float32(0.5))], []]
    write_annotations(path, ["A b", "A b"], format=format, predictions=suggested)
    with pytest.warns(UserWarning, match=r"2 text\(s\) have suggestions that nobody"):
        assert read_annotations(path, format=format) == ([], [])
    write_annotations(path, ["A b", "A b"], [[(0, 1, "X")], []], format=format)
    assert read_annotations(path, format=format) == (["A b", "A b"], [[(0, 1, "X")], []])


@pytest.mark.parametrize("format", ["brat", "doccano"])
def test_nothing_is_written_where_suggestions_cannot_be(tmp_path, format):
    path = tmp_path / "tasks"
    beside = path / "suggestions.jsonl" if format == "brat" else tmp_path / "tasks.suggestions"
    beside.mkdir(parents=True)
    with pytest.raises(OSError):  # noqa: PT011
        write_annotations(path, ["A b"], format=format, predictions=[[(0, 1, "X")]])
    assert not list(tmp_path.glob("**/0.txt"))
    assert not path.is_file()
    for wrong in ([None], [[1]]):
        with pytest.raises(ValueError, match=r"predictions\[0\]"):
            write_annotations(tmp_path / "new", ["A b"], format=format, predictions=wrong)
    assert not (tmp_path / "new").exists()


def test_a_text_under_a_key_of_verdicts(tmp_path):
    path = tmp_path / "tasks.jsonl"
    for key, text in (("answer", "reject"), ("status", "Skip"), ("status", "new")):
        write_annotations(path, [text], [[(0, 3, "V")]], format="doccano", text_key=key)
        assert read_annotations(path, text_key=key) == ([text], [[(0, 3, "V")]])


@pytest.mark.parametrize("metadata", ["foo", [1], 3, None])
def test_metadata_of_dataturks_that_are_no_object(tmp_path, metadata):
    path = tmp_path / "tasks.jsonl"
    point = {"start": 0, "end": 1, "text": "ab"}
    entry = {"content": "abc", "annotation": [{"label": ["X"], "points": [point]}]}
    path.write_text(json.dumps({**entry, "metadata": metadata}), encoding="utf-8")
    assert read_annotations(path) == (["abc"], [[(0, 2, "X")]])


def test_a_single_document_is_no_list_of_them():
    spacy = pytest.importorskip("spacy")
    with pytest.raises(ValueError, match=r"put it into a list, \[docs\]"):
        labels_to_docs([["O"]], spacy.blank("en")("a"))
