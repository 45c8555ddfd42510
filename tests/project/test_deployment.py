"""The Dockerfile of the guide, step by step where there is no Docker."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numba
import pytest

import skstruct
from skstruct import CRFTagger
from skstruct.compiled.rules import own_folders
from skstruct.crfsuite import write_model
from skstruct.export import write_python

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "deployment.rst"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGE.exists(), reason="needs the documentation"),
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
]

X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
Y = [["DET", "NOUN"], ["DET", "NOUN"]]
SERVE = f"""
import skops.io
tagger = skops.io.load(
    "/app/model.skops", trusted=["skstruct.CRFTagger", "skstruct.SequenceVectorizer"]
)
print(*tagger.predict({X[:1]!r})[0])
"""

# Files of the kernels that the usual calls need; none of those that came with the package.
USUAL = """
from skstruct.ahead.workload import run_step, steps
from skstruct.compiled.cache import loaded_kernels
for step in steps():
    if step.typical and step.estimator in ("CRFTagger", "SequenceVectorizer"):
        run_step(step)
print(*sorted({k.file for k in loaded_kernels if k.origin in ("cache", "compiler")}))
"""
# Of these, one is left for `skstruct warm` to compile.
LEFT = "skstruct.compiled.rows.sort_rows-"


def dockerfiles():
    """Instructions of the Dockerfiles of the page and their arguments."""
    _, *blocks = PAGE.read_text(encoding="utf-8").split(".. code-block:: docker\n")
    found = []
    for block in blocks:
        lines = re.match(r"(?:\n|   .*\n)+", block).group().split("\n")
        lines = [line.strip() for line in lines]
        assert sum(map(bool, lines)) <= 10
        found.append([tuple(x.split(" ", 1)) for x in lines if x and not x.startswith("#")])
    return found


@pytest.fixture
def steps():
    """The Dockerfile of the library."""
    return dockerfiles()[0]


def files_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def compile_before(package):
    """Put most kernels into the folder of a copy of the package, as if it had compiled them."""
    command = [sys.executable, "-W", "ignore", "-c", USUAL]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    names = run.stdout.split()
    if not any(name.startswith(LEFT) for name in names):
        return None
    folder = next(folder for folder in own_folders() if (folder / names[0]).exists())
    kept = package / "skstruct" / "compiled" / "__pycache__" / folder.name
    kept.mkdir(parents=True)
    for name in names:
        if not name.startswith(LEFT):
            shutil.copy(folder / name, kept)
    return kept


def test_dockerfile(steps, tmp_path):
    skops = pytest.importorskip("skops.io")
    package, app, found = tmp_path / "site-packages", tmp_path / "app", []
    package.mkdir()
    app.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": ""}
    for instruction, words in steps:
        if instruction == "FROM":
            version = re.fullmatch(r"python:3\.(\d+)-slim", words).group(1)
            assert int(version) >= 11
        elif instruction == "RUN" and words.startswith("pip install"):
            project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
            name = project["project"]["name"]
            # The slim image has no git, so that the address is that of an archive.
            assert shlex.split(words)[-1].startswith(project["project"]["urls"]["Source"])
            # What reads the stored model.
            assert any(d.startswith("skops") for d in project["project"]["dependencies"])
            leave_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(Path(skstruct.__file__).parent, package / name, ignore=leave_out)
            kernels = compile_before(package)
        elif instruction == "RUN":
            command = [sys.executable, "-m", *shlex.split(words)]
            subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True)
            assert kernels is None or list(kernels.glob(f"{LEFT}*"))
        elif instruction == "COPY":
            assert words.split() == ["model.skops", "serve.py", "/app/"]
            skops.dump(CRFTagger().fit(X, Y), app / "model.skops")
            (app / "serve.py").write_text(SERVE.replace("/app", app.as_posix()))
        elif instruction == "USER":
            # Whoever has no home and may write nowhere.
            nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}
            environment |= {**nowhere, "PYTHONDONTWRITEBYTECODE": "1"}
        else:
            assert instruction == "CMD"
            _, *words = (word.replace("/app", app.as_posix()) for word in json.loads(words))
            before = files_of(tmp_path)
            # A kernel that `skstruct warm` has forgotten would raise an error.
            environment["SKSTRUCT_KERNELS"] = "compiled"
            run = subprocess.run(
                [sys.executable, *words], env=environment, capture_output=True, text=True
            )
            assert run.returncode == 0, run.stderr
            assert run.stdout.split() == Y[0]
            assert not run.stderr
            assert files_of(tmp_path) == before
        found.append(instruction)
    assert found == ["FROM", "RUN", "RUN", "COPY", "USER", "CMD"]


WITHOUT_LIBRARY = {
    "parser.py": "import parser\nprint(*parser.tag(X[0]))",
    "model.crfsuite": """
import pycrfsuite
tagger = pycrfsuite.Tagger()
tagger.open("/app/model.crfsuite")
print(*tagger.tag(pycrfsuite.ItemSequence(X[0])))
""",
}


@pytest.mark.parametrize(("number", "model"), [(1, "parser.py"), (2, "model.crfsuite")])
def test_dockerfiles_without_the_library(number, model, tmp_path):
    steps, app = dockerfiles()[number], tmp_path / "app"
    instructions = dict(steps)
    assert "skstruct" not in "".join(instructions.values())
    assert instructions["COPY"].split() == [model, "serve.py", "/app/"]
    app.mkdir()
    tagger = CRFTagger(fit_intercept=False).fit(X, Y)
    # All that the image has is the standard library, and what it installs.
    options = ["-S", "-I"]
    if model == "parser.py":
        assert "RUN" not in instructions
        write_python(tagger, app / model)
    else:
        pytest.importorskip("pycrfsuite")
        options = ["-I"]
        assert shlex.split(instructions["RUN"])[-1] == "python-crfsuite"
        write_model(tagger, app / model)
    serve = f"import sys\nsys.path.insert(0, '/app')\nX = {X[:1]!r}\n{WITHOUT_LIBRARY[model]}"
    (app / "serve.py").write_text(serve.replace("/app", app.as_posix()))
    _, *words = (word.replace("/app", app.as_posix()) for word in json.loads(instructions["CMD"]))
    command = [sys.executable, *options, *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.split() == Y[0], run.stderr
