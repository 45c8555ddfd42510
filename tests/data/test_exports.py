"""Variants of the exports of annotation tools, and offsets that count something else."""

import json
import re
import warnings
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skstruct.datasets import read_annotations

TEXT = "Ships leave Ostheim for Velmora"
SPANS = [(12, 19, "LOC"), (24, 31, "LOC")]
SHIP = "\N{SHIP}\N{EARTH GLOBE EUROPE-AFRICA}"


def region(span, text=TEXT, key="labels"):
    start, end, kind = span
    return {"start": start, "end": end, "text": text[start:end], key: [kind]}


def results(spans=SPANS, text=TEXT, to_name="text", kind="labels"):
    return [
        {"id": f"r{i}", "from_name": "ner", "to_name": to_name, "type": kind, "value": value}
        for i, value in enumerate(region(span, text) for span in spans)
    ]


@pytest.fixture
def read(tmp_path):
    """Function that reads an object, or a list of the objects of lines, with a tool's reader."""

    def read(content, format, **options):
        path = tmp_path / "all.json"
        content = content if isinstance(content, str) else json.dumps(content)
        path.write_text(content, "utf-8")
        return read_annotations(path, format=format, **options)

    return read


# ----------------------------------------------------------------------------------- Label Studio

DATA = {"text": TEXT}
REMARK = {**region(SPANS[0]), "choices": ["sure"]}
REMARK.pop("labels")
TASKS = {
    "annotations": {"data": DATA, "annotations": [{"result": results()}]},
    "completions": {"data": DATA, "completions": [{"result": results()}]},
    "both keys": {"data": DATA, "annotations": [], "completions": [{"result": results()}]},
    "other names": {"data": DATA, "annotations": [{"result": results(to_name="page")}]},
    "cancelled": {
        "data": DATA,
        "annotations": [
            {"result": results(SPANS[:1]), "was_cancelled": True},
            {"result": results(SPANS[1:]), "skipped": True},
            {"result": results(), "was_cancelled": False},
        ],
    },
    "annotators who agree": {
        "data": DATA,
        "annotations": [{"id": 1, "result": results()}, {"id": 2, "result": results()[::-1]}],
        "predictions": [{"result": results(SPANS[:1])}],
    },
    "other results": {
        "data": DATA,
        "annotations": [
            {
                "result": [
                    *results(),
                    {"type": "choices", "to_name": "text", "value": {"choices": ["news"]}},
                    {"type": "choices", "to_name": "text", "value": REMARK},
                    {"type": "textarea", "value": {"start": 0, "end": 5, "text": ["a remark"]}},
                    {"type": "rectanglelabels", "value": {"x": 1, "rectanglelabels": ["FACE"]}},
                    {"type": "relation", "from_id": "r0", "to_id": "r1"},
                ]
            }
        ],
    },
    "no text beside": {
        "data": DATA,
        "annotations": [
            {
                "result": [
                    {"to_name": "page", "value": {"start": a, "end": b, "labels": [kind]}}
                    for a, b, kind in SPANS
                ]
            }
        ],
    },
    "JSON-MIN": {**DATA, "label": [region(span) for span in SPANS], "annotator": 1},
    "JSON-MIN, another control": {**DATA, "id": 3, "ner": [region(span) for span in SPANS]},
    "JSON-MIN, two controls": {
        **DATA,
        "ner": [region(SPANS[0])],
        "places": [region(SPANS[1]), REMARK],
        "kind": ["a", "b"],
        "meta": {"offset": 3},
    },
}


@pytest.mark.parametrize("name", TASKS)
def test_variants_of_label_studio(read, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read([TASKS[name]], "label-studio") == ([TEXT], [SPANS])


@pytest.mark.parametrize(
    "task",
    [
        {"data": DATA, "annotations": [{"result": []}], "meta": {"start": 1}},
        {**DATA, "id": 3, "annotator": 1, "sentiment": "good", "tags": ["a"], "box": [{"x": 1}]},
    ],
)
def test_tasks_without_spans(read, task):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read([task, task], "label-studio") == ([TEXT, TEXT], [[], []])


# What is read of a task beside a good one, and what is said about it.
CANCELLED = {"result": results(), "was_cancelled": True}
NO_GOLD = {
    "nothing": ({"data": DATA}, [], "have no annotation"),
    "empty": ({"data": DATA, "annotations": []}, [], "have no annotation"),
    "null": ({"data": DATA, "annotations": None}, [], "have no annotation"),
    "drafts": (
        {"data": DATA, "completions": [], "drafts": [{"result": results()}]},
        [],
        "have no annotation",
    ),
    "predictions": (
        {"data": DATA, "predictions": [{"result": results()}]},
        SPANS,
        "predictions of a model alone",
    ),
    "cancelled": ({"data": DATA, "annotations": [CANCELLED, CANCELLED]}, None, "left out"),
    "not accepted": (
        {"data": DATA, "annotations": [{"result": results(), "reviews": [{"accepted": False}]}]},
        None,
        "rejected, and were left out",
    ),
    "cancelled task": (
        {"data": DATA, "annotations": [{"result": results()}], "was_cancelled": True},
        None,
        "'was_cancelled': True and were left out",
    ),
}


@pytest.mark.parametrize("name", NO_GOLD)
def test_tasks_that_are_no_gold(read, name):
    task, spans, said = NO_GOLD[name]
    with pytest.warns(UserWarning, match=rf"1 task\(s\) .*{said}.*\(task 1\)") as caught:
        texts, found = read([TASKS["annotations"], task], "label-studio")
    assert len(caught) == 1
    assert found == ([SPANS] if spans is None else [SPANS, spans])
    assert texts == [TEXT] * len(found)


def test_the_annotation_that_is_the_ground_truth_is_read(read):
    other, right = {"result": results(SPANS[:1])}, {"result": results(), "ground_truth": True}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read([{"data": DATA, "annotations": [other, right]}], "auto")[1] == [SPANS]


@pytest.mark.parametrize(
    ("more", "is_read", "said"),
    [
        ({"answer": "reject"}, False, "'answer': 'reject' and were left out"),
        ({"answer": "ignore"}, False, "'answer': 'ignore' and were left out"),
        ({"status": "SKIPPED"}, False, "'status': 'SKIPPED' and were left out"),
        ({"rejected": True}, False, "'rejected': True and were left out"),
        ({"annotation_approver": None}, True, "'annotation_approver': None, so may not be"),
        ({"confirmed": False}, True, "'confirmed': False, so may not be approved"),
        ({"status": "in_progress"}, True, "'status': 'in_progress', so may not be approved"),
    ],
)
def test_entries_that_are_no_gold(read, more, is_read, said):
    good = {"text": TEXT, "spans": [{"start": 12, "end": 19, "label": "LOC"}], "answer": "accept"}
    lines = "\n".join(map(json.dumps, [good, {**good, **more}]))
    for format in ("doccano", "prodigy", "auto"):
        with pytest.warns(UserWarning, match=rf"1 text\(s\) have {said}.*\(line 2\)") as caught:
            texts, spans = read(lines, format)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert texts == [TEXT] * (1 + is_read)
        assert spans == [SPANS[:1]] * (1 + is_read)


def test_entries_with_accepting_words(read):
    entry = {"text": TEXT, "label": [[12, 19, "LOC"]], "answer": "accept", "skipped": False}
    entry.update(annotation_approver="ana", status="done", rejected="false", answerer="ignore")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read([entry], "auto") == ([TEXT], [SPANS[:1]])


def test_several_annotators_of_a_text(read):
    spans = [
        {"start_offset": a, "end_offset": b, "label": kind, "user": user}
        for user, found in ((1, SPANS), (2, SPANS[:1]))
        for a, b, kind in found
    ]
    with pytest.warns(UserWarning, match="several annotations that differ; the first"):
        assert read([{"text": TEXT, "annotations": spans}], "doccano")[1] == [SPANS]
    agreed = [*spans, {**spans[1], "user": 2}]
    ana, ben = (
        {"text": TEXT, "spans": [{"start": a, "end": b, "label": kind} for a, b, kind in found]}
        for found in (SPANS, SPANS[:1])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read([{"text": TEXT, "annotations": agreed}], "doccano")[1] == [SPANS]
        assert read([{**ana, "_annotator_id": 1}, {**ana, "_annotator_id": 2}], "prodigy")[1]
    with pytest.warns(UserWarning, match=r"another annotator .* other spans \(entry 1\)"):
        assert len(read([{**ana, "_annotator_id": 1}, {**ben, "_annotator_id": 2}], "prodigy")[0])


PAIRS = [[TEXT, {"entities": [list(span) for span in SPANS]}], ["No ship", {"entities": []}]]
READ = [TEXT, "No ship"], [SPANS, []]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(PAIRS),
        json.dumps(PAIRS, indent=2),
        "\n".join(map(json.dumps, PAIRS)),
        "\n" + json.dumps(PAIRS[0]) + "\n\n" + json.dumps(PAIRS[1]) + "\n",
        json.dumps({"classes": ["LOC"], "annotations": PAIRS}),
        json.dumps({"classes": ["LOC"], "annotations": PAIRS}, indent=1),
    ],
)
def test_pairs_of_spacy_and_ner_annotator(read, content):
    for format in ("auto", "spacy", "ner-annotator", "doccano"):
        assert read(content, format) == READ
    assert read(json.dumps(PAIRS[0]), "spacy") == ([TEXT], [SPANS])


def test_texts_that_ner_annotator_has_not_annotated(read):
    content = {"classes": [], "annotations": [PAIRS[0], None]}
    with pytest.warns(UserWarning, match=r"1 text\(s\) are null and were left out \(entry 1\)"):
        assert read(json.dumps(content), "auto") == ([TEXT], [SPANS])


def of_dataturks(spans, stored=None):
    points = [{"start": a, "end": b - 1, "text": stored or TEXT[a:b]} for a, b, _ in spans]
    return {
        "content": TEXT,
        "annotation": [{"label": ["LOC"], "points": [point]} for point in points],
        "extras": None,
        "metadata": {"status": "done", "evaluation": "NONE", "first_done_at": 1527844872000},
    }


def test_exports_of_dataturks(read):
    several = of_dataturks(SPANS)
    several["annotation"][0]["label"] = ["LOC", "CITY"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for entries in ([of_dataturks(SPANS)], json.dumps(of_dataturks(SPANS))):
            assert read(entries, "auto") == ([TEXT], [SPANS])
        assert read([several], "dataturks")[1] == [[SPANS[0], (12, 19, "CITY"), SPANS[1]]]
    with pytest.warns(UserWarning, match="have no annotation; they are read as without spans"):
        assert read([{**of_dataturks([]), "annotation": None}], "auto") == ([TEXT], [[]])
    with pytest.raises(ValueError, match=r"entry 0: the span \(12, 19, 'LOC'\) is 'Ostheim' in"):
        read([of_dataturks(SPANS, "Velmora")], "auto")
    with pytest.raises(ValueError, match=r"entry 0: .* has no 'label' and 'points'"):
        read([{"content": TEXT, "annotation": [{"label": ["LOC"]}]}], "auto")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps([1]), "entry 0 has no text: expected an object with a text and spans, or a p"),
        (json.dumps(PAIRS) + "\n{}", "line 2: this follows a list of all entries"),
        (json.dumps([[TEXT, {"entities": [[0, 99, "LOC"]]}]]), r"\(0, 99, 'LOC'\) is empty or out"),
        (json.dumps([{"id": 1, "paragraphs": [{"raw": TEXT}]}]), "No key has a text: this is no e"),
        ('TRAIN_DATA = [("a", {})]', "line 1 is not JSON"),
    ],
)
def test_other_json_is_refused(read, content, message):
    with pytest.raises(ValueError, match=message):
        read(content, "auto")


@pytest.mark.parametrize("name", TASKS)
def test_label_studio_is_told_from_other_json(read, name):
    assert read([TASKS[name]], "auto") == ([TEXT], [SPANS])


def test_several_texts_of_a_task(read):
    data = {"title": "Velmora news", "body": TEXT, "lead": "Velmora"}
    title = [(0, 7, "TITLE")]
    both = [*results(title, data["title"], "title"), *results(to_name="body")]
    # Objects that have other names than the texts.
    renamed = [*results(title, data["title"], "t1"), *results(to_name="t2")]
    for result in (both, renamed):
        tasks = [{"data": data, "annotations": [{"result": result}]}]
        assert read(tasks, "label-studio", text_key="title") == ([data["title"]], [title])
        assert read(tasks, "label-studio", text_key="body") == ([TEXT], [SPANS])
    minimal = {**data, "a": [region(title[0], data["title"])], "b": [region(s) for s in SPANS]}
    assert read([minimal], "label-studio", text_key="body") == ([TEXT], [SPANS])
    unknown = [{k: v for k, v in r.items() if k != "value"} for r in renamed]
    for entry, r in zip(unknown, renamed, strict=True):
        entry["value"] = {k: v for k, v in r["value"].items() if k != "text"}
    tasks = [{"data": data, "annotations": [{"result": unknown}]}]
    with pytest.raises(ValueError, match=r"all.json, task 0 .*several objects \('t1', 't2'\)"):
        read(tasks, "label-studio", text_key="body")
    tasks = [{"data": data, "annotations": [{"result": results(to_name="body")}]}]
    with pytest.warns(UserWarning, match="1 task.* all of another text than text_key"):
        assert read(tasks, "label-studio", text_key="title") == ([data["title"]], [[]])


def test_what_is_not_read_is_said_once(read):
    one, other = {"result": results()}, {"result": results(SPANS[:1])}
    tasks = [
        {"data": DATA, "annotations": [one, other]},
        {"data": DATA, "annotations": [other]},
        {"data": DATA, "annotations": [{"result": []}, other]},
    ]
    with pytest.warns(UserWarning, match=r"all\.json: 2 task.* several .*\(task 0, 2\)") as caught:
        assert read(tasks, "label-studio")[1] == [SPANS, SPANS[:1], []]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    task = {"data": DATA, "annotations": [], "predictions": [one]}
    with pytest.warns(
        UserWarning, match=r"all\.json: 7 text.* nobody has reviewed.*out \(text 0.* 4, \.\.\.\)"
    ) as caught:
        assert read([task] * 7, "label-studio") == ([], [])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="are read with what was suggested"):
        assert read([task], "label-studio", unreviewed="keep")[1] == [SPANS]


def without(key, value):
    return {k: v for k, v in value.items() if k != key}


def task_with(value):
    return {"data": DATA, "annotations": [{"result": [{"to_name": "text", "value": value}]}]}


WRONG_TASKS = [
    ({"data": DATA, "tagging": [{"result": results()}]}, "the keys 'tagging'"),
    ({"data": DATA, "annotations": [12]}, "under the key 'annotations', .*12.* are not annota"),
    ({"data": DATA, "annotations": [{"results": []}]}, "'annotations', .* with a 'result' each"),
    ({"data": DATA, "annotations": "x"}, "under the key 'annotations', 'x' are not annotations"),
    ({"data": DATA, "annotations": [{"result": ["x"]}]}, "'x' is not a result"),
    ({"data": DATA, "annotations": [{"result": [{"v": region(SPANS[0])}]}]}, "with a 'value'"),
    ({"data": DATA, "annotations": {}}, "under the key 'annotations', {} are not annotations"),
    ({"data": DATA, "predictions": [], "tags": [{"result": results()}]}, "the keys 'tags'"),
    ({"data": {"body": TEXT}}, "no text under the key 'text'; its keys are 'body'"),
    (task_with("x"), "'x' is not the value of a result"),
    (task_with(region(SPANS[0], key="hypertextlabels")), "lacks start, end or labels .*Ostheim"),
    (task_with({"start": "/p[1]", "end": "/p[1]", "paragraphlabels": ["A"]}), "lacks start, end"),
    (task_with({"start": 0.5, "end": 1.5, "labels": ["A"]}), "lacks start, end or labels"),
    (task_with({**region(SPANS[0]), "labels": []}), "lacks start, end or labels"),
    (task_with({**region(SPANS[0]), "labels": "LOC"}), "lacks start, end or labels"),
    (task_with({**region(SPANS[0]), "labels": [None]}), "lacks start, end or labels"),
    (task_with(without("labels", region(SPANS[0]))), "lacks start, end or labels"),
    (task_with(without("end", region(SPANS[0]))), "lacks start, end or labels"),
    ({**DATA, "ner": [[12, 19, "LOC"]]}, "under the keys 'ner'"),
    ({**DATA, "ner": {"spans": [[12, 19, "LOC"]]}}, "under the keys 'ner'"),
    ({**DATA, "ner": [{"begin": 12, "end": 19, "label": "LOC"}]}, "lacks start, end or labels"),
]


@pytest.mark.parametrize(("task", "message"), WRONG_TASKS)
def test_unknown_variants_of_label_studio(read, task, message):
    with pytest.raises(ValueError, match=rf"all\.json, task 1.*{message}"):
        read([{"data": DATA, "annotations": []}, task], "label-studio")


def test_files_that_are_no_list_of_tasks(read):
    with pytest.raises(
        ValueError, match=r"not a list of tasks.* its keys are 'data', 'annotations'"
    ):
        read(TASKS["annotations"], "label-studio")
    for format in ("label-studio", "doccano"):
        with pytest.raises(ValueError, match=r"all\.json.* is nested too deeply"):
            read("[" * 100_000, format)


# ---------------------------------------------------------------------------------------- doccano

TRIPLES = [list(span) for span in SPANS]
OBJECTS = [{"id": 1, "start_offset": a, "end_offset": b, "label": k} for a, b, k in SPANS]
LINES = {
    "label": {**DATA, "label": TRIPLES},
    "labels": {**DATA, "labels": TRIPLES},
    "label, objects": {**DATA, "label": OBJECTS},
    "entities": {**DATA, "entities": OBJECTS, "relations": [{"from_id": 1, "to_id": 2}]},
    "entities beside no label": {**DATA, "label": [], "entities": OBJECTS},
    "annotations": {**DATA, "annotations": OBJECTS, "meta": {"offset": 3}},
    "spans": {**DATA, "spans": [{"start": a, "end": b, "label": k} for a, b, k in SPANS]},
    "spans, triples": {**DATA, "spans": TRIPLES},
    "twice the same": {**DATA, "label": TRIPLES, "entities": OBJECTS},
}


@pytest.mark.parametrize("name", LINES)
def test_variants_of_doccano(read, name):
    line, other = LINES[name], {"id": 2, "text": "none", "tags": ["a"]}
    expected = [TEXT, "none"], [SPANS, []]
    assert read("\n".join(map(json.dumps, (line, other))), "doccano") == expected
    assert read(json.dumps([line, other], indent=1), "doccano") == expected


def test_numbers_of_types_are_read_as_text(read):
    numbered = [{**entry, "label": 7} for entry in OBJECTS]
    found = [(a, b, "7") for a, b, _ in SPANS]
    assert read({**DATA, "annotations": numbered}, "doccano") == ([TEXT], [found])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"tags": TRIPLES}, "'tags'.* all keys are 'text', 'tags'"),
        ({"ner": {"spans": OBJECTS}}, "the keys 'ner'"),
        ({"entity": [["LOC", 12, 19]]}, "the keys 'entity'"),
        ({"label": ["positive"]}, "'positive'.* are not spans .*under the key 'label'"),
        ({"label": "positive"}, "are not spans .*under the key 'label'"),
        ({"labels": [[12, 19]]}, "are not spans .*under the key 'labels'"),
        ({"spans": [{"from": 12, "to": 19, "label": "LOC"}]}, "are not spans .* key 'spans'"),
        ({"label": TRIPLES, "entities": OBJECTS[:1]}, "different spans .*'label', 'entities'"),
        *[
            ({"label": [[12, 19, kind]]}, "are not spans")
            for kind in (None, ["LOC"], "", 1.5, True)
        ],
        *[({"label": [[a, 19, "LOC"]]}, "are not spans") for a in ("12", 12.5, None, [12])],
        ({"label": [[12, 32, "LOC"]]}, r"\(12, 32, 'LOC'\) is empty or outside of the text"),
    ],
)
def test_unknown_variants_of_doccano(read, entry, message):
    lines = [{"text": "none"}, {**DATA, **entry}]
    with pytest.raises(ValueError, match=rf"all\.json, line 2.*{message}"):
        read("\n".join(map(json.dumps, lines)), "doccano")
    with pytest.raises(ValueError, match=rf"all\.json, entry 1.*{message}"):
        read(lines, "doccano")


# ---------------------------------------------------------------------------------------- offsets

# How tools count the characters before a place.
COUNTS = {
    "code points": len,
    "UTF-16": lambda before: len(before.encode("utf-16-le")) // 2,
    "LF": lambda before: len(before.replace("\r\n", "\n")),
    "CRLF": lambda before: len(re.sub("(?<!\r)\n", "\r\n", before)),
    "UTF-16 and LF": lambda before: len(before.replace("\r\n", "\n").encode("utf-16-le")) // 2,
}


def write_brat(folder, text, offsets, stored):
    (folder / "a.txt").write_bytes(text.encode())
    lines = [
        f"T{i}\tLOC {a} {b}\t{words}\n"
        for i, ((a, b), words) in enumerate(zip(offsets, stored, strict=True))
    ]
    (folder / "a.ann").write_bytes("".join(lines).encode())
    return folder


def write_label_studio(folder, text, offsets, stored):
    values = [
        {"start": a, "end": b, "text": words, "labels": ["LOC"]}
        for (a, b), words in zip(offsets, stored, strict=True)
    ]
    task = {"data": {"text": text}, "annotations": [{"result": [{"value": v} for v in values]}]}
    (folder / "a.json").write_text(json.dumps([task]), "utf-8")
    return folder / "a.json"


WRITE = {"brat": write_brat, "label-studio": write_label_studio}


def export(folder, format, text, spans, count):
    """Path of an export of a tool that counts in its own way."""
    offsets = [(count(text[:a]), count(text[:b])) for a, b in spans]
    stored = [re.sub("\r\n|\r|\n", " ", text[a:b]) for a, b in spans]
    return WRITE[format](folder, text, offsets, stored)


@pytest.mark.parametrize("format", WRITE)
@pytest.mark.parametrize("count", COUNTS)
def test_offsets_that_count_something_else(tmp_path, format, count):
    for end in ("\r\n", "\n"):
        text = f"{SHIP} leave{end}at dawn.{end}Ostheim{end}News from Tarnwick: {SHIP} {end}x"
        words = [SHIP, "leave", "Ostheim", f"Ostheim{end}News", "Tarnwick", "x"]
        spans = sorted((text.rindex(word), text.rindex(word) + len(word)) for word in words)
        path = export(tmp_path, format, text, spans, COUNTS[count])
        expected = [(a, b, "LOC") for a, b in spans]
        assert read_annotations(path, format=format) == ([text], [expected])


@st.composite
def texts_with_spans(draw):
    """A text, and spans that cut no line end."""
    pieces = st.sampled_from(["a", "b", " ", "\r\n", "\n", "\N{SHIP}"])
    pieces = draw(st.lists(pieces, min_size=1, max_size=20))
    ends = list(accumulate(map(len, pieces), initial=0))
    cuts = sorted(draw(st.sets(st.sampled_from(ends), min_size=2, max_size=6)))
    return "".join(pieces), list(zip(cuts[::2], cuts[1::2], strict=False))


@pytest.mark.parametrize("format", WRITE)
@given(case=texts_with_spans(), count=st.sampled_from(sorted(COUNTS)))
def test_spans_have_the_words_beside_them_or_there_is_an_error(
    tmp_path_factory, format, case, count
):
    text, spans = case
    folder = tmp_path_factory.mktemp("export")
    path = export(folder, format, text, spans, COUNTS[count])
    try:
        _, (found,) = read_annotations(path, format=format)
    except ValueError as error:
        found, message = None, str(error)
    if found is None:
        assert count != "code points"
        assert re.search(rf"{path}.*the span \(\d+, \d+, 'LOC'\)", message)
        return
    words = [["".join(text[a:b].split()) for a, b, *_ in some] for some in (found, spans)]
    assert words[0] == words[1]
    if count == "code points":
        assert [span[:2] for span in found] == spans


def test_offsets_that_fit_in_no_way_or_in_two(tmp_path):
    (tmp_path / "a.txt").write_text("Ostheim waits", "utf-8")
    (tmp_path / "a.ann").write_text("T1\tLOC 0 7\tOstheim\nT2\tLOC 8 13\twaited\n", "utf-8")
    message = r"a\.ann, line 2: the span \(8, 13, 'LOC'\) is 'waits' in the text, but 'waited'"
    with pytest.raises(ValueError, match=message):
        read_annotations(tmp_path, format="brat")
    # One before is a line end, or a character of two units.
    (tmp_path / "a.txt").write_bytes(f"\r\n{SHIP[0]}aba\r\n".encode())
    (tmp_path / "a.ann").write_text("T1\tLOC 4 5\ta\n", "utf-8")
    with pytest.raises(ValueError, match=r"line 1: .*'b'.* Several other ways"):
        read_annotations(tmp_path, format="brat")


def test_words_that_are_not_beside_are_not_compared(tmp_path):
    (tmp_path / "a.txt").write_text("Ostheim waits", "utf-8")
    (tmp_path / "a.ann").write_bytes(b"T1\tLOC 0 7\r\nT2\tLOC 8 13\t\r\n")
    found = read_annotations(tmp_path, format="brat")[1]
    assert found == [[(0, 7, "LOC"), (8, 13, "LOC")]]


def test_a_byte_order_mark_that_brat_counts(tmp_path):
    for shift in (0, 1):
        (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfOstheim waits")
        (tmp_path / "a.ann").write_text(f"T1\tLOC {shift} {7 + shift}\tOstheim\n", "utf-8-sig")
        assert read_annotations(tmp_path, format="brat") == (["Ostheim waits"], [[(0, 7, "LOC")]])


@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n"])
def test_parts_on_both_sides_of_a_line_end(tmp_path, end):
    text = f"They sail to New{end}Ostheim now."
    (tmp_path / "a.txt").write_bytes(text.encode())
    start = text.index("Ostheim")
    spans = [f"13 16;{start} {start + 7}", f"13 {start + 7}"]
    if end == "\r\n":
        # With line ends that count as one.
        spans.append(f"13 16;{start - 1} {start + 6}")
    for span in spans:
        (tmp_path / "a.ann").write_text(f"T1\tLOC {span}\tNew Ostheim\n", "utf-8")
        assert read_annotations(tmp_path, format="brat")[1] == [[(13, start + 7, "LOC")]]
    (tmp_path / "a.ann").write_text(f"T1\tLOC 5 9;{start} {start + 7}\tsail Ostheim\n", "utf-8")
    with pytest.raises(ValueError, match=r"line 1: a span has several parts, 5 9;"):
        read_annotations(tmp_path, format="brat")
