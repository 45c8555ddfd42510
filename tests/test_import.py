"""What importing skstruct does, and does not do."""

import subprocess
import sys

import skstruct


def loaded_by(statement):
    """Names of the modules that a fresh process has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return set(result.stdout.split())


def test_names_are_loaded_when_they_are_asked_for():
    assert not {"importlib.abc", "numba", "sklearn", "skstruct.taggers.base"} & loaded_by(
        "import skstruct"
    )
    modules = loaded_by("from skstruct import MIRATagger, TemplateVectorizer, datasets")
    assert {"skstruct.taggers.mira", "skstruct.templates", "skstruct.datasets"} <= modules
    needless = {"sklearn.metrics", "sklearn.model_selection", "sklearn.datasets", "pooch"}
    assert not (needless | {"skstruct.taggers.crf", "skstruct.rerankers.vrda"}) & modules


def test_every_name_is_there():
    assert set(skstruct.__all__) <= set(dir(skstruct))
    for name in skstruct.__all__:
        assert getattr(skstruct, name).__name__.rpartition(".")[2] == name
    assert isinstance(skstruct.__version__, str)
