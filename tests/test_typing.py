"""Type checkers see the names of the package and the parameters of its estimators."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import skstruct

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


def check(code, folder):
    """Report of mypy, without what it finds in the package itself."""
    path = folder / "user.py"
    path.write_text(code, encoding="utf-8")
    environment = dict(os.environ)
    package = Path(skstruct.__file__).parents[1]
    if package.name != "site-packages":  # where mypy looks by itself
        environment["MYPYPATH"] = str(package)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", str(path)],
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
