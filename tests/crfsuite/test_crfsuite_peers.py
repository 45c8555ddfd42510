"""The test suites of python-crfsuite and sklearn-crfsuite, with their imports served by skstruct.

The suites come with the source distributions, which pip downloads into the folder that
SKSTRUCT_PEERS names, unless they are there. Nothing of theirs but the tests is used, and
test_logparser.py is not: it feeds a parser with the text of CRFsuite's messages.
"""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.slow

PLUGIN = "import skstruct.crfsuite\n\nskstruct.crfsuite.install()\n"


def source_distribution(name, version):
    """Path of the archive, downloaded if it is not there."""
    folder = Path(os.environ["SKSTRUCT_PEERS"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace('-', '_')}-{version}.tar.gz"
    if not path.exists():
        # What it is built with comes in wheels: Cython takes minutes to build.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", name, "--dest", str(folder), f"{name}=={version}"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if found.returncode or not path.exists():
            pytest.skip(f"{name} {version} cannot be downloaded: {found.stderr[-300:]}")
    return path


def unpack_tests(archive, folder):
    """Write the tests of a source distribution into a folder."""
    with tarfile.open(archive) as content:
        for member in content.getmembers():
            name = Path(member.name).name
            if name != "test_logparser.py" and re.fullmatch(r"[^/]+/tests/\w+\.py", member.name):
                (folder / name).write_bytes(content.extractfile(member).read())


@pytest.mark.skipif(
    "SKSTRUCT_PEERS" not in os.environ, reason="needs the source distributions of the peers"
)
@pytest.mark.parametrize(
    ("name", "version", "least"),
    [("sklearn-crfsuite", "0.5.0", 44), ("python-crfsuite", "0.9.12", 41)],
)
def test_all_of_it_passes(name, version, least, tmp_path):
    suite = tmp_path / "suite"
    suite.mkdir()
    unpack_tests(source_distribution(name, version), suite)
    (tmp_path / "serve_skstruct.py").write_text(PLUGIN, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "serve_skstruct"]
    command += ["-p", "no:cacheprovider", "--junit-xml", "found.xml", "suite"]
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(tmp_path), str(root), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True,
        text=True, check=False, timeout=900,
    )  # fmt: skip
    cases = list(ElementTree.parse(tmp_path / "found.xml").iter("testcase"))
    outcomes = [{child.tag for child in case} for case in cases]
    assert not any({"failure", "error"} & outcome for outcome in outcomes), run.stdout[-6000:]
    passed = sum(not {"failure", "error", "skipped"} & outcome for outcome in outcomes)
    assert passed >= least, run.stdout[-3000:]
    assert run.returncode == 0


def test_install_serves_every_import(tmp_path):
    # In a process of its own, because modules are replaced.
    program = f"""
import sys
{PLUGIN}
import pycrfsuite, sklearn_crfsuite
from pycrfsuite import BaseTrainer, CRFSUITE_VERSION, CRFSuiteError, ItemSequence, Tagger, Trainer
from pycrfsuite._logparser import TrainLogParser
from sklearn_crfsuite import CRF, metrics, scorers
from sklearn_crfsuite.estimator import CRF as same
from sklearn_crfsuite.metrics import flat_classification_report, flat_f1_score
from sklearn_crfsuite.utils import flatten
assert CRF is same is skstruct.crfsuite.CRF
assert pycrfsuite.Tagger is skstruct.crfsuite.Tagger
X, y = [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]]
crf = CRF().fit(X, y)
assert flat_f1_score(y, crf.predict(X), average="macro") == 1
assert "macro" in flat_classification_report(y, crf.predict(X), ["A", "B"], digits=3)
assert scorers.flat_accuracy(crf, X, y) == scorers.sequence_accuracy(crf, X, y) == 1
assert metrics.flat_fbeta_score(y, y, 0.5, average="micro") == 1
assert metrics.sequence_accuracy_score([[1, 2], [3]], [[3], [1, 2]]) == 0
for call, error, message in (
    (lambda: flat_f1_score(y, y, ["A"], average="macro"), TypeError, "flat_f1_score takes 2"),
    (lambda: flat_classification_report(y, y, ["A"], ["a"]), TypeError, "takes 3 positional"),
    (lambda: metrics.sequence_accuracy_score(y, y[:1]), ValueError, "y_true has 2 sequences, but"),
):
    try:
        call()
    except error as raised:
        assert message in str(raised)
    else:
        raise AssertionError(message)
assert "pycrfsuite._pycrfsuite" in sys.modules and flatten(y) == ["A", "B", "B"]
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
