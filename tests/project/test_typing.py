"""Type checkers see the names of the package and the parameters of its estimators."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import skstruct

pytestmark = pytest.mark.slow

CODE = """
import skstruct
from skstruct import CRFTagger, SequenceVectorizer
from skstruct.metrics import chunk_f1_score

X = SequenceVectorizer().fit_transform([[["a"]]])
tagger: CRFTagger = CRFTagger(l2=1.0).fit(X, [["O"]])
chunk_f1_score([["O"]], tagger.predict(X))
reveal_type(skstruct.PerceptronTagger())
"""
WRONG = """
skstruct.NoSuchName
CRFTagger(no_such_parameter=1)
"""


# Programs of users: each is to pass --strict.
PROGRAMS = {
    "column files": """
from skstruct import PerceptronTagger, WordVectorizer
from skstruct.datasets import convert_labels, read_conll

X, y = read_conll(["a b O"])
y = convert_labels(y, target="IOBES").labels
batch = WordVectorizer().fit_transform(X)
print(PerceptronTagger(max_iter=3).fit(batch, y).predict(batch))
""",
    "scores": """
from skstruct.metrics import chunk_f1_score, token_accuracy_score

f1 = chunk_f1_score([["B-X"]], [["O"]])
print(f"{f1:.2f}", round(f1, 2) + 1.0)
by_type = chunk_f1_score([["B-X"]], [["O"]], average=None)
print(by_type.tolist(), token_accuracy_score([["O"]], [["O"]]))
""",
    "functions": """
from skstruct import CRFTagger, SequenceBatch, SequenceVectorizer


def train(X: list[list[dict[str, float]]], y: list[list[str]]) -> CRFTagger:
    batch: SequenceBatch = SequenceVectorizer().fit_transform(X)
    return CRFTagger(l2=1.0).fit(batch, y)


def accuracy(tagger: CRFTagger, X: SequenceBatch, y: list[list[str]]) -> float:
    return tagger.score(X, y)
""",
}

PACKAGE = Path(skstruct.__file__).parents[1]


def check(code, folder, *options):
    """Report of mypy, without what it finds in the package itself."""
    path = folder / "user.py"
    path.write_text(code, encoding="utf-8")
    environment = dict(os.environ)
    if PACKAGE.name != "site-packages":  # where mypy looks by itself
        environment["MYPYPATH"] = str(PACKAGE)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", *options, str(path)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return run.stdout


def test_mypy_sees_classes_and_parameters(tmp_path):
    pytest.importorskip("mypy")
    report = check(CODE, tmp_path)
    assert 'Revealed type is "skstruct.taggers.perceptron.PerceptronTagger"' in report
    assert "Success: no issues found" in report
    report = check(CODE + WRONG, tmp_path)
    assert "NoSuchName" in report
    assert "no_such_parameter" in report


def test_programs_are_strict(tmp_path):
    """The type of a score depends on its average."""
    pytest.importorskip("mypy")
    code = "\n".join(PROGRAMS.values())
    lines = code.splitlines()
    imports = [line for line in lines if line.startswith("from ")]
    code = "\n".join([*imports, *(line for line in lines if line not in imports)])
    shown = "reveal_type(f1)\nreveal_type(by_type)\n"
    report = check(f"{code}\n{shown}", tmp_path, "--strict")
    assert 'Revealed type is "float"' in report
    assert 'Revealed type is "numpy.ndarray' in report
    assert "Success: no issues found" in report
    report = check(f"{code}\nf1.tolist()\n", tmp_path, "--strict")
    assert '"float" has no attribute "tolist"' in report


def test_pyright_sees_classes_and_parameters(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "user.py").write_text(CODE + WRONG, encoding="utf-8")
    settings = {"extraPaths": [str(PACKAGE)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "user.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    if not run.stdout.startswith("{"):
        pytest.skip(f"pyright cannot be downloaded: {run.stderr[-300:]}")
    found = json.loads(run.stdout)["generalDiagnostics"]
    messages = [(entry["severity"], entry["message"]) for entry in found]
    last = len(CODE.splitlines())
    assert [entry["range"]["start"]["line"] for entry in found] == [last - 1, last + 1, last + 2]
    assert messages == [
        ("information", 'Type of "skstruct.PerceptronTagger()" is "PerceptronTagger"'),
        ("error", '"NoSuchName" is not a known attribute of module "skstruct"'),
        ("error", 'No parameter named "no_such_parameter"'),
    ]
