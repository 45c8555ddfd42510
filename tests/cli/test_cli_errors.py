"""The command tells what is wrong in a line and by its exit code, whatever it is given."""

import errno
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import warnings
import zipfile
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

import pytest

from skstruct import PerceptronTagger, WordVectorizer
from skstruct.cli import main as cli
from skstruct.cli import models
from skstruct.metrics import chunk_report

posix = pytest.mark.skipif(os.name == "nt", reason="needs devices, modes and shells")
QUICK = ["-q", "-e", "PerceptronTagger", "-p", "random_state=0"]
TOKENS = {"tokens": ["a", "b"], "labels": ["A", "B"]}
COSTS = {"candidates": [{"a": 1.0}, {"b": 2}], "costs": [0.0, 1.0]}
ORACLE = {"candidates": [{"a": 1.0}, {"b": 2}], "oracle": 1}
DEEP = "[" * 100_000 + "]" * 100_000


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments, text=b"", **streams):
    """Run the whole program in this process, with streams of its own or those given."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    streams = {
        "stdin": io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"),
        "stdout": out,
        "stderr": err,
        **streams,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        code = cli.main([str(a) for a in arguments])
        patch.undo()
    for stream in (out, err):
        stream.flush()
    return Ran(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def fails(*arguments, code=2, **streams):
    """Message of a command that fails by the fault of what it is given."""
    ran = run(*arguments, **streams)
    assert ran.code == code, ran
    *_, line = ran.err.splitlines()
    assert line.startswith("Error: "), ran
    return line


def write_json(path, *objects):
    path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file and a model of each kind."""
    folder = tmp_path_factory.mktemp("errors")
    (folder / "a.txt").write_text("a X A\nb Y B\n\nb Y B\na X A\n\n" * 3)
    write_json(folder / "tokens.jsonl", *[TOKENS] * 3)
    write_json(folder / "costs.jsonl", *[COSTS] * 3)
    for name in ("a.txt", "tokens.jsonl"):
        assert run("train", folder / name, "-m", folder / f"{name}.skops", *QUICK).code == 0
    reranker = ["-q", "-e", "PerceptronReranker", "-p", "random_state=0"]
    ran = run("train", folder / "costs.jsonl", "-m", folder / "costs.jsonl.skops", *reranker)
    assert ran.code == 0
    return folder


# One place for all errors. ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ValueError("two\n  lines"), 2, "Error: two lines"),
        (OverflowError("too large"), 2, "Error: too large"),
        (RecursionError("maximum"), 2, "Error: the input is nested too deeply."),
        (FileNotFoundError(errno.ENOENT, "none", "f"), 2, "Error: f: none"),
        (IsADirectoryError(errno.EISDIR, "a folder", "f"), 2, "Error: f: a folder"),
        (OSError(errno.ENOSPC, "full", "f"), 1, "Error: f: full"),
        (OSError(errno.EIO, "broken"), 1, "Error: broken"),
        (OSError("no number"), 1, "Error: no number"),
        (MemoryError(), 1, "Error: there is not enough memory."),
        (MemoryError("needs 9 GB"), 1, "Error: needs 9 GB"),
        (BrokenPipeError(), 141, ""),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (KeyError("x"), 1, "Internal error (KeyError: 'x'). Please report it; "),
        (AssertionError(), 1, "Internal error (AssertionError: ). Please report it; "),
    ],
)
def test_any_error_is_a_line_and_a_code(error, code, told, folder, monkeypatch):
    def load_model(path):
        raise error

    monkeypatch.setattr("skstruct.cli.show.load_model", load_model)
    ran = run("show", folder / "a.txt.skops")
    assert ran.code == code
    assert ran.err.strip().startswith(told)
    assert len(ran.err.strip().splitlines()) == bool(told)
    monkeypatch.setenv("SKSTRUCT_TRACEBACK", "1")
    ran = run("show", folder / "a.txt.skops")
    assert ran.code == code
    if told:
        assert "Traceback (most recent call last):\n" in ran.err
        assert "in load_model\n" in ran.err


def test_folds_that_are_none(folder, tmp_path):
    words = ["train", folder / "a.txt", "-m", tmp_path / "m", "-e", "NBestReranker"]
    assert "cv: fold 0 is 1" in fails(*words, "-p", "cv=(1,2)")


@pytest.mark.parametrize(
    "option",
    ["l2=[" + 200 * "[", "l2={[]: 1}", "verbose=1.5", "random_state=x", "learning_rate=nan"],
)
def test_values_of_parameters_that_are_no_values(option, folder, tmp_path):
    ran = run("train", folder / "a.txt", "-m", tmp_path / "m", "-e", "SAPOTagger", "-p", option)
    assert ran.code == 2
    assert "parameter of SAPOTagger must be" in ran.err


@pytest.mark.parametrize("dtype", ["x", "3", "[1]", "{'a': 1}"])
def test_types_that_are_none(dtype, folder, tmp_path):
    options = ["-m", tmp_path / "m", *QUICK, "-f", f"dtype={dtype}"]
    assert "dtype must be np.float64 or np.float32" in fails("train", folder / "a.txt", *options)


# Text. --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"tokens": "ab"}, '"tokens" is not a list'),
        ({"tokens": None}, '"tokens" is not a list'),
        ({"tokens": ["a", 1.5]}, '"tokens"[1] is 1.5; expected a word'),
        ({"tokens": ["a", None]}, '"tokens"[1] is None; expected a word'),
        ({"labels": [["A"], ["B"]]}, "\"labels\"[0] is ['A']; expected a string or a whole number"),
        ({"labels": ["A", {}]}, '"labels"[1] is {}; expected a string or a whole number'),
        ({"labels": ["A", 0.5]}, '"labels"[1] is 0.5; expected a string or a whole number'),
        ({"labels": {"A": 1}}, '"labels" is not a list'),
        ({"labels": ["A", 1]}, "label 1 is not a string like the first label"),
        ({"candidates": [{}], "costs": [0]}, 'PerceptronTagger needs "tokens"'),
    ],
)
def test_tokens_of_wrong_types(entry, told, tmp_path):
    path = write_json(tmp_path / "bad.jsonl", TOKENS, {**TOKENS, **entry})
    line = fails("train", path, "-m", tmp_path / "m", *QUICK)
    assert re.match(rf"Error: {re.escape(str(path))}, line 2: ", line)
    assert told in line


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"candidates": {"a": 1}}, '"candidates" is not a list'),
        ({"candidates": [{"a": 1}, 3]}, '"candidates"[1] is 3; expected a dict of features'),
        ({"candidates": [{"a": 1}, ["b", 2]]}, "Group 1, candidate 1"),
        ({"candidates": [{"a": None}, {}]}, "Group 1, candidate 0"),
        ({"costs": None}, '"costs" is not a list'),
        ({"costs": [0, "x"]}, "\"costs\"[1] is 'x'; expected a number"),
        ({"oracle": "x"}, '"oracle" is not the number of a candidate'),
        ({"oracle": 1}, "Group 1: 1 is not an array of costs. Give every group"),
        ({"baseline_score": [None, 1]}, '"baseline_score"[0] is None; expected a number'),
        ({"tokens": ["a"], "candidates": None}, '"candidates" is not a list'),
    ],
)
def test_candidates_of_wrong_types(entry, told, tmp_path):
    path = write_json(tmp_path / "bad.jsonl", COSTS, {**COSTS, **entry})
    options = ["-q", "-e", "PerceptronReranker", "-p", "random_state=0"]
    line = fails("train", path, "-m", tmp_path / "m", *options)
    assert re.match(rf"Error: {re.escape(str(path))}, line 2: ", line)
    assert told in line


def test_inputs_for_another_kind_of_model(folder, tmp_path):
    mixed = write_json(tmp_path / "mixed.jsonl", TOKENS, COSTS)
    reverse = write_json(tmp_path / "reverse.jsonl", COSTS, TOKENS)
    both = write_json(tmp_path / "both.jsonl", {**TOKENS, **COSTS})
    for command in ("tag", "evaluate"):
        for path, line in ((mixed, 2), (reverse, 1), (both, 1)):
            told = fails(command, "-m", folder / "tokens.jsonl.skops", path)
            assert f', line {line}: this model needs "tokens", and not "candidates".' in told
        for path, line in ((mixed, 1), (reverse, 2)):
            told = fails(command, "-m", folder / "costs.jsonl.skops", path)
            assert f', line {line}: this model needs "candidates", and not "tokens".' in told
        options = ["--format", "columns", folder / "a.txt"]
        told = fails(command, "-m", folder / "costs.jsonl.skops", *options)
        assert "a reranker reads JSON lines" in told


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([COSTS], "line 1: the score of a choice among candidates needs a model (-m)."),
        ([{**ORACLE, "predicted": [1]}], "line 1: the score of a choice among candidates needs"),
        ([{**TOKENS, "predicted": ["A", "B"]}, ORACLE], "line 2: the score of a choice among"),
        ([TOKENS], 'line 1: "predicted" labels are missing'),
        ([{**TOKENS, "predicted": "AB"}], 'line 1: "predicted" is not a list'),
        ([{**TOKENS, "predicted": ["A"]}], "line 1: there are 2 tokens, but 1 predicted"),
        ([{**TOKENS, "predicted": [[1], {}]}], 'line 1: "predicted"[0] is [1]; expected a string'),
    ],
)
def test_predictions_that_cannot_be_scored(rows, told, tmp_path):
    assert told in fails("evaluate", write_json(tmp_path / "rows.jsonl", *rows))


def test_json_that_is_nested_deeply(folder, tmp_path):
    path = tmp_path / "deep.jsonl"
    model = folder / "tokens.jsonl.skops"
    for line in (DEEP, f'{{"tokens": ["a", {DEEP}], "labels": ["A", "B"]}}'):
        path.write_text(json.dumps(TOKENS) + "\n" + line + "\n")
        for words in (["train", "-m", tmp_path / "m", *QUICK], ["tag", "-m", model], ["evaluate"]):
            told = fails(*words, path)
            assert told == f"Error: {path}, line 2: this is nested too deeply." or "line 1" in told
    # What can be read, if only just, can be written or is an error of the same kind.
    for depth in range(50, 1000, 50):
        path.write_text(f'{{"tokens": ["a"], "other": {depth * "["}{depth * "]"}}}\n')
        ran = run("tag", "-m", model, path)
        assert ran.code == 0 or "line 1: this is nested too deeply" in ran.err


def test_lists_that_are_not_utf8_are_named(folder, tmp_path):
    (tmp_path / "latin").write_bytes("U0:%x[0,0]\n# \xe9\n".encode("latin-1"))
    for option in (["-t"], ["--clusters"], ["--gazetteer", "place="]):
        path = f"{''.join(option[1:])}{tmp_path / 'latin'}"
        told = fails("train", folder / "a.txt", "-m", tmp_path / "m", *QUICK, option[0], path)
        assert told.startswith(f"Error: {tmp_path / 'latin'}, line 2: not utf-8 text")


def test_a_template_may_begin_with_a_byte_order_mark(folder, tmp_path):
    (tmp_path / "template").write_text("# words\nU0:%x[0,0]\n", encoding="utf-8-sig")
    options = ["-m", tmp_path / "m", *QUICK, "-t", tmp_path / "template"]
    assert run("train", folder / "a.txt", *options).code == 0


@pytest.mark.parametrize("value", ["0", "1", "None", "missing"])
def test_a_list_of_names_is_a_file(value, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["-m", tmp_path / "m", *QUICK, "--gazetteer", f"place={value}"]
    told = fails("train", folder / "a.txt", *options)
    assert told.startswith(f"Error: {value}: ")


def test_answers_that_the_encoding_lacks(folder, tmp_path):
    (tmp_path / "a.txt").write_text("a \u00c4\nb B\n\n" * 3, encoding="utf-8")
    run("train", tmp_path / "a.txt", "-m", tmp_path / "m", *QUICK)
    told = fails("tag", "-m", tmp_path / "m", "--encoding", "ascii", text=b"a\nb\n")
    assert told == "Error: '\u00c4' cannot be written in ascii."
    # JSON has escapes.
    text = json.dumps({"tokens": ["a", "b"], "lone": "\ud800"}).encode()
    ran = run("tag", "-m", tmp_path / "m", "--format", "jsonl", text=text)
    assert json.loads(ran.out) == {
        "tokens": ["a", "b"],
        "lone": "\ud800",
        "labels": ["\u00c4", "B"],
    }


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_byte_order_mark_is_written_once(encoding, folder, tmp_path):
    text = "a X\n\nb Y\n\na X\n\n"
    for name in ("one", "two"):
        (tmp_path / name).write_text(text, encoding=encoding)
    options = ["--encoding", encoding, "--batch-size", "1", "-o", tmp_path / "out"]
    ran = run("tag", "-m", folder / "a.txt.skops", *options, tmp_path / "one", tmp_path / "two")
    assert ran.code == 0
    labelled = 2 * "a X A\n\nb Y B\n\na X A\n\n"
    assert (tmp_path / "out").read_bytes() == labelled.encode(encoding)


def test_empty_last_columns_stay(tmp_path):
    (tmp_path / "a.txt").write_text("a\tX\tA\nb\t\tB\n\n" * 3)
    options = ["--separator", "\\t"]
    run("train", tmp_path / "a.txt", "-m", tmp_path / "m", *QUICK, *options)
    assert run("tag", "-m", tmp_path / "m", text=b"a\tX\nb\t\n").out == "a\tX\tA\nb\t\tB\n"


# Labels. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [[1, 0], [True, False], [2**40, -7]])
def test_labels_that_are_numbers_stay_numbers(labels, tmp_path):
    row = {"tokens": ["a", "b"], "labels": labels}
    path, model = write_json(tmp_path / "a.jsonl", *[row] * 3), tmp_path / "m"
    assert run("train", path, "-m", model, *QUICK, "--dev", path).code == 0
    tagger = PerceptronTagger(random_state=0)
    vectorizer = WordVectorizer()
    tagger.fit(vectorizer.fit_transform([row["tokens"]] * 3), [labels] * 3)
    expected = tagger.predict(vectorizer.transform([["a", "b"]]))[0]
    assert expected == labels
    found = json.loads(run("tag", "-m", model, "--n-best", "2", path).out.splitlines()[0])
    assert repr(found["labels"]) == repr(found["n_best"][0]["labels"]) == repr(labels)
    options = ["--marginals", "--all-marginals"]
    found = json.loads(run("tag", "-m", model, *options, path).out.splitlines()[0])
    assert found["probabilities"][0] == found["marginals"][0][str(labels[0])]
    # Labels of column files are text.
    (tmp_path / "a.txt").write_text(f"a {labels[0]}\nb {labels[1]}\n\n")
    options = ["--format", "columns", tmp_path / "a.txt"]
    assert run("tag", "-m", model, *options).out == f"a {labels[0]} {labels[0]}\nb " + (
        f"{labels[1]} {labels[1]}\n\n"
    )
    for words in (["-m", model, path], ["-m", model, *options]):
        scores = json.loads(run("evaluate", "--json", *words).out)
        assert scores["token_accuracy"] == scores["sequence_accuracy"] == 1.0
    path = write_json(tmp_path / "b.jsonl", {**row, "predicted": [str(label) for label in labels]})
    assert json.loads(run("evaluate", "--json", path).out)["token_accuracy"] == 1.0


def test_a_validation_set_of_another_format_has_the_same_labels(tmp_path):
    path = write_json(tmp_path / "a.jsonl", *[{"tokens": ["a", "b"], "labels": [1, 0]}] * 3)
    (tmp_path / "dev.txt").write_text("a 1\nb 0\n\n")
    options = [*QUICK[1:], "-m", tmp_path / "m", "--dev", tmp_path / "dev.txt"]
    assert "Validation set: token accuracy 1.0000" in run("train", path, *options).err


def test_labels_that_are_unknown_have_no_score(folder, tmp_path):
    path = write_json(tmp_path / "a.jsonl", TOKENS, {**TOKENS, "labels": ["A", None]})
    told = fails("evaluate", "-m", folder / "tokens.jsonl.skops", path)
    assert told.startswith(f"Error: {path}, line 2: token 1 has no label")
    row = "{}\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n".format
    (tmp_path / "a.conllu").write_text(row(1, "a", "A") + row(2, "b", "_"))
    told = fails("evaluate", "-m", folder / "tokens.jsonl.skops", tmp_path / "a.conllu")
    assert "a.conllu, line 2: token 1 has no label" in told


def test_chunks_that_only_predictions_hold_are_scored(tmp_path):
    y_true, y_pred = [["O", "O", "O"]], [["B-LOC", "I-LOC", "O"]]
    lines = [" ".join(("w", *pair)) for pair in zip(y_true[0], y_pred[0], strict=True)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    out = run("evaluate", tmp_path / "a.txt").out
    assert "chunk f1: 0.0000\n" in out
    assert chunk_report(y_true, y_pred, digits=4).rstrip() in out
    scores = json.loads(run("evaluate", "--json", tmp_path / "a.txt").out)
    assert scores["chunks"]["LOC"]["precision"] == 0.0
    # Labels of another kind are still scored one by one.
    (tmp_path / "b.txt").write_text("w NN O\nw VB B-LOC\n")
    assert "chunk" not in run("evaluate", tmp_path / "b.txt").out


# Models. ------------------------------------------------------------------------------------------


def forged(schema, arrays, how):
    """Schema and arrays of a stored model, changed."""
    text = json.dumps(schema)
    if how in ("[]", "3", "null", "{}", "{", "[" * 100_000):
        text = how
    elif how == "no arrays":
        arrays = {}
    elif how == "short arrays":
        arrays = {name: content[:100] for name, content in arrays.items()}
    else:
        old, new = how.split(" >> ")
        assert old in text
        text = text.replace(old, new, 1)
    return text, arrays


@pytest.mark.parametrize(
    "how",
    [
        *("[]", "3", "null", "{}", "{", "[" * 100_000, "no arrays", "short arrays"),
        '"Pipeline" >> 3',
        '"DictNode" >> "x"',
        '"__id__": >> "__id__": [], "x":',
        '"content": [ >> "content": 3, "x": [',
        '.npy" >> .py"',
        '"is_json": true >> "content": 3, "is_json": true',
        '"is_json": true >> "content": "{", "is_json": true',
        '"file_layout_" >> "steps"',
        '\\"columns\\" >> \\"x\\"',
    ],
)
def test_models_that_were_forged(how, folder, tmp_path):
    with zipfile.ZipFile(folder / "a.txt.skops") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(files.pop("schema.json"))
    text, arrays = forged(schema, files, how)
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        archive.writestr("schema.json", text)
        for name, content in arrays.items():
            archive.writestr(name, content)
    for words in (["tag", "-m", tmp_path / "m", folder / "a.txt"], ["show", tmp_path / "m"]):
        assert fails(*words).startswith(f"Error: {tmp_path / 'm'}: ")


@pytest.mark.parametrize(
    "layout",
    [3, [], {"format": "x"}, {"format": "columns", "columns": "ab"}, {"columns": [[]]}, {"x": 1}],
)
def test_layouts_that_were_forged(layout, folder, tmp_path):
    model = models.load_model(folder / "a.txt.skops")
    model.estimator.file_layout_ = layout
    models.store_model(model._replace(vectorizer=None, layout=layout), tmp_path / "m")
    assert "is not a layout of files" in fails("tag", "-m", tmp_path / "m", folder / "a.txt")


# Output. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["folder", f"missing{os.sep}new", "link", f"new{os.sep}"])
def test_outputs_are_checked_before_the_work(output, folder, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    if os.name != "nt":
        os.symlink("missing/new", "link")

    def never(*_):
        raise AssertionError("work has begun")

    monkeypatch.setattr("skstruct.cli.train.read_all", never)
    monkeypatch.setattr(models, "_reader_of", never)
    model, text = folder / "a.txt.skops", folder / "a.txt"
    for words in (
        ["train", text, *QUICK, "-m", output],
        ["tag", "-m", model, text, "-o", output],
        ["convert", model, output],
    ):
        told = fails(*words)
        assert output in told
        assert "folder" in told
    (tmp_path / "out" / "a.txt").mkdir(parents=True)
    assert "a.txt" in fails("tag", "-m", model, text, "--output-dir", "out")
    Path("file").write_text("")
    assert "file" in fails("tag", "-m", model, text, "--output-dir", "file/new")


def test_what_is_read_is_not_overwritten(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "a.txt.skops"):
        shutil.copy(folder / name, name)
    Path("t.tpl").write_text("U:%x[0,0]")
    Path("names.txt").write_text("a\n")
    Path("paths.txt").write_text("01\ta\n")
    names = ["a.txt", "t.tpl", "names.txt", "paths.txt"]
    if os.name != "nt":
        os.symlink("a.txt", "link")
        names.append("link")
    read = ["--dev", "link" if "link" in names else "a.txt"]
    before = {name: Path(name).read_bytes() for name in [*names, "a.txt.skops"]}
    tag = ["tag", "-m", "a.txt.skops", "a.txt"]
    lists = ["--gazetteer", "n=names.txt", "--clusters", "paths.txt"]
    commands = [
        *(["train", "a.txt", *read, *lists, "-m", name] for name in names if name != "t.tpl"),
        ["train", "a.txt", "-t", "t.tpl", "-m", "t.tpl"],
        [*tag, "-o", "a.txt.skops"],
        ["convert", "a.txt.skops", "a.txt.skops", "--to", "crfsuite"],
    ]
    for words in commands:
        assert "would be overwritten; name another file." in fails(*words), words
    assert before == {name: Path(name).read_bytes() for name in before}
    # Text is tagged in place.
    assert run(*tag, "-o", "tagged").code == 0
    assert run(*tag, "-o", "a.txt").code == 0
    assert Path("a.txt").read_bytes() == Path("tagged").read_bytes()


@posix
def test_outputs_keep_their_mode(folder, tmp_path):
    model, out = tmp_path / "m", tmp_path / "out"
    for path, words in (
        (model, ["train", folder / "a.txt", *QUICK, "-m", model]),
        (out, ["tag", "-m", folder / "a.txt.skops", folder / "a.txt", "-o", out]),
        (tmp_path / "c", ["convert", folder / "a.txt.skops", tmp_path / "c"]),
    ):
        path.touch(0o600)
        assert run(*words).code == 0
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_size > 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk")
def test_full_disks_are_named(folder):
    for words in (["train", folder / "a.txt", *QUICK, "-m"], ["convert", folder / "a.txt.skops"]):
        told = fails(*words, "/dev/full", code=1)
        assert told == "Error: /dev/full: No space left on device"
    for words in (["show"], ["tag", folder / "a.txt", "-m"]):
        with open("/dev/full", "w") as full:
            told = fails(*words, folder / "a.txt.skops", code=1, stdout=full)
        assert told == "Error: standard output: No space left on device"


class Full(io.StringIO):
    """Standard error of which nothing can be written."""

    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_progress_that_cannot_be_written_ends_nothing(folder, tmp_path):
    ran = run("train", folder / "a.txt", *QUICK[1:], "-m", tmp_path / "m", stderr=Full())
    assert ran.code == 0
    assert run("show", tmp_path / "m").code == 0
    assert run("show", folder / "a.txt", stderr=Full()).code == 2


def test_streams_that_are_closed(folder, tmp_path):
    model = folder / "a.txt.skops"
    for words in (["tag", "-m", model], ["evaluate"], ["train", "-", *QUICK, "-m", tmp_path / "m"]):
        assert "tandard input is closed" in fails(*words, stdin=None)
    text = folder / "a.txt"
    for words in (
        ["tag", "-m", model, text],
        ["evaluate", "-m", model, text],
        ["show", model],
        ["versions"],
        ["train", text, *QUICK, "--cv", "2"],
    ):
        assert "standard output: it is closed" in fails(*words, code=1, stdout=None)
    assert run("train", text, *QUICK, "-m", tmp_path / "m", stdout=None, stderr=None).code == 0
    assert run("show", text, stderr=None).code == 2


@pytest.mark.slow
@posix
def test_descriptors_that_are_closed(folder):
    """Files do not take the place of standard streams."""
    words = [sys.executable, "-m", "skstruct", "tag", "-m", "a.txt.skops", "-", "a.txt"]
    shell = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *map(str, words)]
    done = subprocess.run(
        shell, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: standard output: it is closed\n"


# Several files. -----------------------------------------------------------------------------------


def test_an_empty_file_among_others(folder, tmp_path):
    model, paths = folder / "a.txt.skops", [tmp_path / name for name in ("one", "empty", "two")]
    for path, text in zip(paths, ("a X\nb Y\n", "", "\n\nb Y\n"), strict=True):
        path.write_text(text)
    out = tmp_path / "out"
    assert run("tag", "-m", model, "--output-dir", out, *paths).code == 0
    assert [(out / path.name).read_text() for path in paths] == [
        *("a X A\nb Y B\n", "", "\n\nb Y B\n")
    ]
    assert run("tag", "-m", model, text=b"") == Ran(0, "", "")
    assert "the file has no tokens" in fails("evaluate", "-m", model, paths[1])


def test_files_that_are_done_stay_where_another_fails(folder, tmp_path):
    (tmp_path / "good").write_text("a X\n")
    (tmp_path / "bad").write_text("a\n")
    options = ["-m", folder / "a.txt.skops", "--output-dir", tmp_path / "out"]
    assert "bad, line 1: 1 column" in fails("tag", *options, tmp_path / "good", tmp_path / "bad")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good"]
    assert (tmp_path / "out" / "good").read_text() == "a X A\n"


@pytest.mark.slow
def test_more_files_than_can_be_open(folder, tmp_path):
    pytest.importorskip("resource")
    paths = [tmp_path / f"{i}" for i in range(60)]
    for path in paths:
        path.write_text("a X\n")
    # In a process of its own: what other tests have open would count.
    code = "import resource as r, sys; from skstruct.cli.main import main; "
    code += "r.setrlimit(r.RLIMIT_NOFILE, (40, r.getrlimit(r.RLIMIT_NOFILE)[1])); sys.exit(main())"
    words = ["tag", "-m", folder / "a.txt.skops", "--output-dir", tmp_path / "out", *paths]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 60


@pytest.mark.slow
def test_standard_input_among_files_that_are_tagged_in_parallel(folder, tmp_path):
    (tmp_path / "one").write_text("a X\n\n")
    words = ["tag", "-m", folder / "a.txt.skops", tmp_path / "one", "-", tmp_path / "one"]
    one, two = (run(*words, "-j", jobs, text=b"b Y\n\n") for jobs in "12")
    assert one == two == Ran(0, "a X A\n\nb Y B\n\na X A\n\n", "")


def test_outputs_of_the_same_name(folder, tmp_path):
    paths = [tmp_path / name for name in ("one", "one.gz", "other/one")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("a X\n")
    options = ["-m", folder / "a.txt.skops", "--output-dir", tmp_path / "out"]
    ran = run("tag", *options, paths[0], paths[2])
    assert ran.code == 2
    assert "--output-dir needs files with different names" in ran.err
    assert run("tag", *options, *paths[:2]).code == 0
    assert (tmp_path / "out" / "one").read_text() == "a X A\n"


def test_a_process_that_was_killed(folder, monkeypatch):
    class Killed:
        def __init__(self, **_):
            pass

        def __call__(self, tasks):
            raise BrokenProcessPool("a worker was killed")

    monkeypatch.setattr("skstruct.cli.tag.Parallel", Killed)
    words = ["-m", folder / "a.txt.skops", "-j", "2", folder / "a.txt", folder / "a.txt"]
    assert fails("tag", *words, code=1).startswith("Error: A process of -j was killed")


def test_no_processes_are_none(folder):
    ran = run("tag", "-m", folder / "a.txt.skops", "-j", "0", folder / "a.txt")
    assert ran.code == 2
    assert "0 is neither a number of processors nor -1" in ran.err


# Warnings. ----------------------------------------------------------------------------------------


def warnings_of(*arguments, **streams):
    """Warnings that a command gives, and its exit code is zero."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert run(*arguments, **streams).code == 0
    return [str(warning.message) for warning in caught]


def test_text_with_other_columns_than_in_training(folder):
    model = folder / "a.txt.skops"
    for text in (b"a X\nb Y\n", b"a X A\nb Y B\n"):
        assert warnings_of("tag", "-m", model, text=text) == []
    for command in ("tag", "evaluate"):
        (told,) = warnings_of(command, "-m", model, text=b"\nthis is no token a line\n")
        assert "line 2: 6 columns, but the model was trained on 3" in told
    # Who names the columns knows them.
    options = ["--columns", "1,0", "--label", "-1"]
    assert warnings_of("tag", "-m", model, *options, text=b"X a 1 2 3\n") == []


def test_training_tells_what_can_hardly_be_meant(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"w{i} {i}\n" for i in range(20)))
    (told,) = warnings_of("train", tmp_path / "a.txt", *QUICK, "-m", tmp_path / "m")
    assert told.startswith("The 20 labels of y are all different, ")


@pytest.mark.slow
def test_processes_that_tag_files(folder, tmp_path):
    """One of the files is empty, and the others have nothing to do with the training files."""
    paths = [tmp_path / name for name in ("one", "empty", "two")]
    for path, n_lines in zip(paths, (30, 0, 40), strict=True):
        path.write_text("\u03b1\u03b2\u03b3 \u03b4\u03b5\u03b6\n\n" * n_lines, "utf-8")
    words = ["tag", "-m", folder / "a.txt.skops", "-j", "2", "--output-dir", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, "-m", "skstruct", *words, *paths], capture_output=True, encoding="utf-8"
    )
    assert (done.returncode, done.stdout) == (0, "")
    counts = [len((tmp_path / "out" / path.name).read_bytes().splitlines()) for path in paths]
    assert counts == [60, 0, 80]
    told = done.stderr.splitlines()
    assert 1 <= len(told) <= 2
    assert all(line.startswith("Warning: Nearly no feature of X was seen") for line in told)


# Messages of the library, in the words of the command. --------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a B-X\n".encode("utf-16"), "; pass --encoding utf-16, for example"),
        ("caf\xe9 B-X\n".encode("latin-1"), "; pass --encoding latin-1, for example"),
        (b"a b B\nc\td e B\n", r"; pass --separator '\t' for tabs: "),
        (b"a\nb\n", "either the token or the label is missing; a line has both"),
    ],
)
def test_messages_speak_of_options(content, says, tmp_path):
    (tmp_path / "train.txt").write_bytes(content)
    assert says in fails("train", tmp_path / "train.txt", "-m", tmp_path / "m", *QUICK)


def test_messages_name_parameters_as_options_take_them(tmp_path):
    (tmp_path / "train.txt").write_text("l2=3 I-X\nb O\n")
    told = fails("train", tmp_path / "train.txt", "-m", tmp_path / "m", "-p", "constraint=IOB2")
    assert "under -p constraint=IOB2." in told
    assert "fit -p constraint=IOB1: pass it" in told
    (tmp_path / "train.txt").write_text("l2=3 I-X\nb O\nc B-X\nd I-X\ne I-Y\nf I-X\ng B-X\n")
    told = fails("train", tmp_path / "train.txt", "-m", tmp_path / "m", "-p", "constraint=IOB2")
    assert told.endswith(
        "convert_labels with --repair conlleval repairs them; or leave out -p constraint."
    )
    told = fails("train", tmp_path / "train.txt", "-m", tmp_path / "m", "--to-scheme", "BMES")
    assert told.endswith("--repair drop to take them as outside, or another --scheme.")
    (tmp_path / "train.txt").write_text("l2=3 I-X\nl2=3 a b\n")
    told = fails("train", tmp_path / "train.txt", "-m", tmp_path / "m")
    assert told.rstrip().endswith(": 'l2=3 a b'")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["trian", "a"], "Did you mean train?"),
        (["frobnicate"], "There are train, tag, evaluate, "),
        (["train", "-m", "m", "-e", "crf", __file__], "Did you mean CRFTagger?"),
        (["train", "-m", "m", "-e", "perceptrontager", __file__], "Did you mean PerceptronTagger?"),
        (["train", "-m", "m", "-e", "x", __file__], "'x' is not one of AROWTagger, CRFTagger, "),
    ],
)
def test_what_may_be_meant(words, says):
    told = fails(*words)
    assert says in told
    assert told.count("mean") == says.count("mean")


def test_words_are_not_for_models_of_more_columns(tmp_path):
    (tmp_path / "train.txt").write_text("a A X\nb B Y\n")
    run("train", tmp_path / "train.txt", "-m", tmp_path / "m", *QUICK)
    told = fails("tag", "-m", tmp_path / "m", "--tokenizer", "whitespace", text=b"a b\n")
    assert "the model needs 2 columns a token" in told


# The right line, and what the user gave. ----------------------------------------------------------


def test_errors_of_folds_and_validation_sets_name_their_own_lines(folder, tmp_path):
    wrong = {"tokens": ["a", {"b": [1]}], "labels": ["A", "B"]}
    of_dicts = {"tokens": [{"w": "a"}, {"w": "b"}], "labels": ["A", "B"]}
    wrong["tokens"][0] = {"w": "a"}
    path = write_json(tmp_path / "cv.jsonl", *[of_dicts] * 7, wrong)
    assert f"{path}, line 8: Sequence " in fails("train", path, "--cv", "2", *QUICK)
    good, model = write_json(tmp_path / "good.jsonl", *[of_dicts] * 3), tmp_path / "m"
    dev = write_json(tmp_path / "dev.jsonl", of_dicts, wrong)
    told = fails("train", good, "-m", model, "--dev", dev, *QUICK)
    assert f"{dev}, line 2: X_val, y_val: Sequence 1, token 1" in told


def test_labels_that_the_scheme_lacks_are_named_with_their_line():
    told = fails("evaluate", "--scheme", "IOBES", text=b"a O O\n\nb O O\nc B-X I-X\nd O L-X\n")
    assert told.startswith("Error: standard input, line 5: y_pred[1] has the label 'L-X'")


def test_tokens_with_too_few_columns_name_no_line_of_a_template(folder):
    told = fails("tag", "-m", folder / "a.txt.skops", "--columns", "0", folder / "a.txt")
    assert "Tokens have 1 column(s), but the vectorizer was fitted on 2." in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["train", "tokens.jsonl", "--cv", "2", "--columns", "0"], "--columns is for columns, but"),
        (["evaluate", "tokens.jsonl", "--label", "0"], "--label is for columns, but"),
        (
            ["tag", "-m", "a.txt.skops", "--tokenizer", "whitespace", "--comment", "#", "a.txt"],
            "--comment is for columns, and --tokenizer for plain text.",
        ),
        (["tag", "-m", "a.txt.skops", "--format", "conllu", "--label", "12"], "0 to 9"),
        (
            ["train", "a.txt", "--cv", "2", "--gazetteer", "x=a.txt", "--gazetteer", "x=a.txt"],
            "x is given twice",
        ),
        (["train", "a.txt", "-m", "-"], "a model is not written to standard output"),
        (["evaluate", "--columns", "0,1", "a.txt"], "--columns names one column"),
        (["warm", "-j", "0"], "0 is neither a number of processors nor -1"),
    ],
)
def test_options_that_mean_nothing_are_refused(arguments, told, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert told in fails(*arguments)
    assert not Path("-").exists()


@pytest.mark.parametrize("label", ["B-First Name", "B\nX", ""])
def test_labels_that_no_column_can_hold(label, folder, tmp_path):
    rows = [{"tokens": ["a", "b"], "labels": [label, "O"]}] * 3
    model = tmp_path / "m"
    assert run("train", write_json(tmp_path / "x.jsonl", *rows), "-m", model, *QUICK).code == 0
    told = fails("tag", "-m", model, "--format", "columns", text=b"a\nb\n")
    assert told.startswith(f"Error: standard input, line 1: the label {label!r} does not fit")
    assert run("tag", "-m", model, tmp_path / "x.jsonl").code == 0
    if " " in label:
        options = ["--format", "columns", "--separator", "\\t"]
        assert run("tag", "-m", model, *options, text=b"a\nb\n").out == f"a\t{label}\nb\tO\n"


def test_predictions_are_in_the_column_that_is_named(folder):
    text = b"a X A A 0.9\nb Y B B 0.8\n"
    assert "predictions are numbers, such as 0.9; --columns" in fails("evaluate", text=text)
    assert "are numbers, such as 0.9; " in fails("evaluate", text=b"a X A _\nb Y B 0.9\n")
    assert "accuracy: 0.5000" in run("evaluate", text=b"a X _\nb _ _\n").out
    ran = run("evaluate", "--label", "2", "--columns", "3", text=text)
    assert "token accuracy: 1.0000" in ran.out


@pytest.mark.parametrize("pattern", [r"\b", "(?=a)"])
def test_tokens_without_characters(pattern, tmp_path):
    assert run("train", "-", "-m", tmp_path / "m", *QUICK, text=b"a A\nb B\n").code == 0
    told = fails("tag", "-m", tmp_path / "m", "--tokenizer", pattern, text=b"a b\n")
    assert "standard input, line 1: --tokenizer" in told
