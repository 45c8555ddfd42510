"""Several annotators from the command: a file each, told together by their tokens."""

import json
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.pipeline import make_pipeline

from skstruct import AnnotatorCRF, WordVectorizer
from skstruct.cli import main as cli
from skstruct.cli.models import load_model
from skstruct.datasets import load_addresses, read_conll, write_conll

X, Y = load_addresses(return_X_y=True)
X, Y = [list(x) for x in X[:40]], [list(y) for y in Y[:40]]
HASTY = [["O"] * len(y) if i % 2 else y for i, y in enumerate(Y)]
# Each has left out some; the second goes through the sentences in another order.
GIVEN = {
    "ann": list(range(36)),
    "bob": list(range(39, 3, -1)),
    "hasty": list(range(40)),
}
LABELS = {"ann": Y, "bob": Y, "hasty": HASTY}
QUICK = ["-e", "AnnotatorCRF", "-p", "max_iter=2", "-q"]
# Before click 8.2, standard error is a part of the standard output unless this is said.
APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def run(*arguments, code=0):
    found = CliRunner(**APART).invoke(cli.skstruct, [str(one) for one in arguments])
    assert found.exit_code == code, found.stderr or found.exception
    return found


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of three annotators, in the folder in which the command runs."""
    monkeypatch.chdir(tmp_path)
    for name, numbers in GIVEN.items():
        labels = [LABELS[name][i] for i in numbers]
        write_conll(f"{name}.txt", [X[i] for i in numbers], labels)
    return [f"{name}.txt" for name in GIVEN]


@pytest.fixture(scope="module")
def crowd():
    """The same model, trained in Python; and what it learns from."""
    order = [*range(36), *range(39, 35, -1)]
    y = [{name: LABELS[name][i] for name in GIVEN if i in GIVEN[name]} for i in order]
    given = [X[i] for i in order]
    return make_pipeline(WordVectorizer(), AnnotatorCRF(max_iter=2)).fit(given, y), given, y


def test_files_are_annotators_and_sequences_their_tokens(files, crowd):
    expected, given, y = crowd
    said = run("train", *files, *QUICK[:-1], "-m", "m.skops", "--consensus", "all.txt").stderr
    assert "40 different sequences of 3 annotators" in said
    model = load_model("m.skops").as_estimator()
    assert model[-1].annotators_.tolist() == ["ann", "bob", "hasty"]
    np.testing.assert_array_equal(model[-1].confusion_, expected[-1].confusion_)
    np.testing.assert_array_equal(model[-1].coef_, expected[-1].coef_)
    agreed, proba = expected[-1].consensus(expected[:-1].transform(given), y)
    tokens, labels = read_conll("all.txt")
    assert tokens == given
    assert labels == [list(one) for one in agreed]
    flat = [(a, b) for i, one in enumerate(y) for a, b in zip(one["hasty"], agreed[i], strict=True)]
    share = np.mean([a == b for a, b in flat])
    assert f"Annotator hasty: {len(flat)} labels, {share:.1%} as agreed on" in said
    run("train", *files, *QUICK, "-m", "m.skops", "--consensus", "all.jsonl")
    lines = list(map(json.loads, Path("all.jsonl").read_text("utf-8").splitlines()))
    assert [line["labels"] for line in lines] == labels
    best = [p.max(axis=1) for p in proba]
    for line, p in zip(lines, best, strict=True):
        assert np.all(np.array(line["probabilities"]) <= p + 1e-6)
    assert sum(line["tokens"] == x for line, x in zip(lines, given, strict=True)) == 40
    shown = run("show", "m.skops", "-n", "0").stdout
    assert "annotator hasty: labels " in shown
    tagged = run("tag", "-m", "m.skops", "ann.txt").stdout.split("\n\n")[0].splitlines()
    assert [line.split()[-1] for line in tagged] == list(expected.predict(X[:1])[0])


def test_sequences_that_occur_twice_are_told_by_their_turn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, labels in (("a", "AB"), ("b", "BA")):
        write_conll(f"{name}.txt", [["x"], ["x"]], [[label] for label in labels])
    (tmp_path / "sub").mkdir()
    write_conll("sub/b.txt", [["x"]], [["A"]])
    files = ["a.txt", "b.txt", "sub/b.txt"]
    said = run("train", *files, *QUICK[:-1], "-m", "m.skops", "--features", "none").stderr
    assert "2 different sequences of 3 annotators" in said
    # Two files of the same name are told by their paths.
    assert load_model("m.skops").estimator.annotators_.tolist() == ["a", "b.txt", "sub/b.txt"]


def test_cross_validation_counts_the_labels_of_each(files):
    assert run("train", *files, *QUICK, "--cv", "2").stdout.count("agreement") == 3


def test_tokens_that_fit_into_no_column_leave_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        line = json.dumps({"tokens": ["New York", "x"], "labels": ["A", "B"]})
        Path(f"{name}.jsonl").write_text(line + "\n", "utf-8")
    arguments = "train", "a.jsonl", "b.jsonl", *QUICK, "-m", "m.skops", "--consensus"
    told = run(*arguments, "all.txt", code=1)
    assert "'New York'" in str(told.exception)
    assert load_model("m.skops").estimator.annotators_.tolist() == ["a", "b"]
    run(*arguments, "all.jsonl")
    assert json.loads(Path("all.jsonl").read_text("utf-8"))["labels"] == ["A", "B"]


def test_scheme_and_validation_set(files):
    said = run(
        "train", *files, *QUICK[:-1], "-m", "m.skops", "--to-scheme", "IOBES", "--dev", "ann.txt"
    ).stderr
    assert "Validation set: token accuracy" in said
    classes = load_model("m.skops").estimator.classes_.tolist()
    assert {label[0] for label in classes} >= set("BES")


def test_files_without_a_common_sequence_are_warned_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_conll("a.txt", [["x"]], [["A"]])
    write_conll("b.txt", [["y"]], [["B"]])
    with pytest.warns(UserWarning, match="No two files have a sequence in common"):
        run("train", "a.txt", "b.txt", *QUICK, "-m", "m.skops", "--features", "none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--consensus", "x", "-e", "CRFTagger"], "--consensus is for -e AnnotatorCRF with -m"),
        (["--consensus", "./m.skops"], "name the same file"),
        (["--consensus", "all.conllu"], "writes columns or JSON lines"),
        (["--consensus", "ann.txt"], "ann.txt is read, too"),
        (["-f", "label_statistics=true"], "needs one labelling of each sequence"),
        (["--early-stopping"], "Invalid parameter 'early_stopping'"),
        (["-p", "prior_any=0"], "The 'prior_any' parameter of AnnotatorCRF"),
    ],
)
def test_wrong_usage_is_told(arguments, message, files):
    said = run("train", *files, *QUICK, "-m", "m.skops", *arguments, code=2).stderr
    assert message in " ".join(said.split())
