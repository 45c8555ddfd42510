"""Files of a wheel and of a source distribution."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from importlib.metadata import version
from pathlib import Path

import pytest
from helpers.links import relative_targets

PROJECT = Path(__file__).parents[1]

pytest.importorskip("setuptools", "77")
if not (PROJECT / "pyproject.toml").exists():
    pytest.skip("These are tests of an installed package.", allow_module_level=True)

BUILD = "from setuptools import build_meta as b; b.build_wheel('.'); b.build_sdist('.')"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Names of the files of both, from a copy of the project, and the metadata."""
    project = tmp_path_factory.mktemp("build") / "project"
    ignore = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "docs")
    shutil.copytree(PROJECT, project, ignore=ignore)
    subprocess.run([sys.executable, "-c", BUILD], cwd=project, check=True, capture_output=True)
    (wheel,), (sdist,) = project.glob("*.whl"), project.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return names, members, message_from_bytes(archive.read(metadata))


def files_below(folder):
    """Names of the files of the project in a folder, without what Python compiles."""
    return {
        path.relative_to(PROJECT).as_posix()
        for path in (PROJECT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_has_the_package_and_nothing_else(built):
    wheel, _, _ = built
    expected = files_below("skstruct")
    assert {"skstruct/__init__.pyi", "skstruct/datasets/data/addresses.txt"} <= expected
    assert {name for name in wheel if ".dist-info/" not in name} == expected
    assert "skstruct/py.typed" in expected
    code = (".py", ".pyi", "/py.typed")
    assert all(path.endswith(code) or "/data/" in path for path in expected)


def test_source_distribution_has_the_tests(built):
    _, sdist, _ = built
    assert files_below("skstruct") | files_below("tests") <= sdist
    assert {"tests/conftest.py", "tests/naive.py", "tests/helpers/__init__.py"} <= sdist
    assert {"pyproject.toml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"} <= sdist


def test_description_has_links_that_a_package_index_can_follow(built):
    _, _, metadata = built
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload()
    assert relative_targets((PROJECT / "README.md").read_text(encoding="utf-8"))
    assert not relative_targets(text)
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(urls)
    assert f"]({urls['Source']}/blob/main/docs/guide/data.rst)" in text


def test_version_is_told_once():
    import skstruct

    try:
        installed = version("skstruct")
    except ModuleNotFoundError:
        pytest.skip("skstruct is not installed.")
    assert skstruct.__version__ == installed


def test_citation_has_the_version():
    import skstruct

    text = (PROJECT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {skstruct.__version__}\n" in text
