"""Files of a wheel and of a source distribution."""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from importlib.metadata import version
from pathlib import Path

import pytest
from helpers.links import relative_targets
from packaging.version import Version

PROJECT = Path(__file__).parents[2]

pytest.importorskip("setuptools", "77")
if not (PROJECT / "pyproject.toml").exists():
    pytest.skip("These are tests of an installed package.", allow_module_level=True)

BUILD = "from setuptools import build_meta as b; b.build_wheel('.'); b.build_sdist('.')"


def copy_of_project(folder):
    ignore = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "docs")
    return Path(shutil.copytree(PROJECT, folder / "project", ignore=ignore))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Names of the files of both, from a copy of the project, and the metadata."""
    project = copy_of_project(tmp_path_factory.mktemp("build"))
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


@pytest.mark.slow
def test_wheel_has_the_package_and_nothing_else(built):
    wheel, _, _ = built
    expected = files_below("skstruct")
    assert "skstruct/datasets/data/addresses.txt" in expected
    assert {name for name in wheel if ".dist-info/" not in name} == expected
    assert "skstruct/py.typed" in expected
    code = (".py", ".pyi", "/py.typed", "/export/runtime.js", "/export/runtime.d.ts")
    assert all(path.endswith(code) or "/data/" in path for path in expected)


@pytest.mark.slow
def test_source_distribution_has_the_tests(built):
    _, sdist, _ = built
    assert files_below("skstruct") | files_below("tests") <= sdist
    assert {"tests/conftest.py", "tests/naive.py", "tests/helpers/__init__.py"} <= sdist
    assert {"pyproject.toml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"} <= sdist


@pytest.mark.slow
def test_description_has_links_that_a_package_index_can_follow(built):
    _, _, metadata = built
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload()
    assert relative_targets((PROJECT / "README.md").read_text(encoding="utf-8"))
    assert not relative_targets(text)
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(urls)
    assert f"]({urls['Source']}/blob/main/docs/guide/quickstart.rst)" in text
    assert f'src="{urls["Source"]}/raw/main/docs/_static/address-light.svg"' in text
    assert 'src="docs' not in text
    assert 'srcset="docs' not in text


@pytest.mark.slow
def test_an_editable_installation_is_a_path(tmp_path):
    """Type checkers find the package there, as they would not by an import hook."""
    project = copy_of_project(tmp_path)
    code = "from setuptools import build_meta as b; b.build_editable('..')"
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".pth"))
        assert archive.read(name).decode().strip() == str(project)


def test_version_is_told_once():
    import skstruct

    try:
        installed = version("skstruct")
    except ModuleNotFoundError:
        pytest.skip("skstruct is not installed.")
    assert skstruct.__version__ == installed


@pytest.fixture
def sources(tmp_path):
    """Copies of the files that tell the version, and the script that sets it."""
    places = ("pyproject.toml", "CITATION.cff", "conda.recipe/recipe.yaml", "skstruct/__init__.py")
    for name in (".ci/set_version.py", *places):
        if not (PROJECT / name).exists():
            pytest.skip("needs the repository")
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(PROJECT / name, tmp_path / name)
    return tmp_path


def set_version(sources, tag):
    command = [sys.executable, sources / ".ci" / "set_version.py", tag]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("tag", ["v1.2.3", "v0.10.0rc1", "v1.0.0.post1"])
def test_a_tag_is_the_version_of_a_release(sources, tag):
    files = [path for path in sources.rglob("*") if path.is_file()]
    before = {path: path.read_text(encoding="utf-8") for path in files}
    assert set_version(sources, tag).returncode == 0
    new = str(Version(tag))
    project = tomllib.loads((sources / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == new
    code = (sources / "skstruct" / "__init__.py").read_text(encoding="utf-8")
    names = {}
    exec(next(line for line in code.splitlines() if line.startswith("__version__")), names)
    assert names["__version__"] == new
    assert f"\nversion: {new}\n" in (sources / "CITATION.cff").read_text(encoding="utf-8")
    recipe = (sources / "conda.recipe" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'\n  version: "{new}"\n' in recipe
    for path, text in before.items():
        changed = sum(
            a != b
            for a, b in zip(
                text.splitlines(), path.read_text(encoding="utf-8").splitlines(), strict=True
            )
        )
        assert changed == (path.name != "set_version.py")


@pytest.mark.parametrize("tag", ["1.2.3", "v1.2", "v1.2.3-rc1", "main", "v1.02.3"])
def test_other_tags_change_nothing(sources, tag):
    before = (sources / "pyproject.toml").read_bytes()
    done = set_version(sources, tag)
    assert done.returncode == 1
    assert "is not the tag of a release" in done.stderr
    assert (sources / "pyproject.toml").read_bytes() == before


def test_a_file_without_a_version_changes_nothing(sources):
    (sources / "CITATION.cff").write_text("cff-version: 1.2.0\n")
    before = (sources / "pyproject.toml").read_bytes()
    done = set_version(sources, "v1.2.3")
    assert "CITATION.cff has 0 lines with a version" in done.stderr
    assert (sources / "pyproject.toml").read_bytes() == before


def test_releases_are_built_with_the_version_of_their_tag():
    path = PROJECT / ".github" / "workflows" / "wheels.yml"
    if not path.exists():
        pytest.skip("needs the repository")
    jobs = path.read_text(encoding="utf-8").split("\n  compiled:\n")[1].split("\n  pure:\n")
    for job, build in zip(jobs, (".ci/build-wheel", "python -m build"), strict=True):
        assert 0 < job.index('set_version.py "$GITHUB_REF_NAME"') < job.index(build)


def test_citation_has_the_version():
    import skstruct

    text = (PROJECT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {skstruct.__version__}\n" in text
