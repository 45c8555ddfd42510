"""Kernels where a program is not an ordinary process of an ordinary installation."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import numba
import pytest

import skstruct
from skstruct import PerceptronReranker
from skstruct.compiled import cache
from skstruct.compiled.rules import host_baselines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
]

PACKAGE = Path(skstruct.__file__).parent
INNER = """
from skstruct.compiled.jit import jit

@jit
def factor(x):
    return 2.0 * x
"""
OUTER = """
from skstruct.compiled.jit import jit
from skstruct.chain.inner import factor

@jit
def total(x):
    return factor(x) + 1.0
"""
USE = """
from skstruct.chain.outer import total
from skstruct.compiled.cache import loaded_kernels
print(total(3.0), *sorted({loaded.origin for loaded in loaded_kernels}))
"""
USE_OR_TELL = """
from skstruct.chain.outer import total
try:
    total(3.0)
except RuntimeError as error:
    print(error)
"""
ARCHIVE = """
from skstruct.compiled.archive import write_archive
from skstruct.compiled.cache import unpack
from skstruct.compiled.rules import folder, own_folders

paths = own_folders()[0].glob("*.kernel")
folder().mkdir()
codes = {path.name: unpack(path.read_bytes())[0] for path in paths}
write_archive(folder() / f"{BASELINE}.zip", codes)
"""
APPLICATION = (
    USE
    + """
import skstruct
from skstruct.datasets import load_addresses
print(len(load_addresses().data), skstruct.PerceptronTagger.__name__)
"""
)
# What the application would do without, and takes minutes to pack.
NOT_PACKED = ["dask", "distributed", "IPython", "matplotlib", "pandas", "pytest", "setuptools"]
FIT = """
from skstruct import PerceptronReranker
from skstruct.compiled.cache import loaded_kernels
PerceptronReranker(random_state=0).fit([[{"a": 1.0}, {"b": 1.0}]], [[0, 1]])
print(*sorted({loaded.origin for loaded in loaded_kernels}))
"""


def fit_and_tell(_):
    """Number of this process, and where its kernels came from."""
    cache.loaded_kernels.clear()
    PerceptronReranker(random_state=0).fit([[{"a": 1.0}, {"b": 1.0}]], [[0, 1]])
    return os.getpid(), sorted({loaded.origin for loaded in cache.loaded_kernels})


@pytest.fixture(scope="module")
def compiled_before():
    """Kernels of a reranker that a process of its own has compiled, or that came along."""
    subprocess.run([sys.executable, "-c", FIT], check=True, capture_output=True)


def assert_loaded(found):
    assert os.getpid() not in {number for number, _ in found}
    assert all(origins and "compiler" not in origins for _, origins in found)


def test_loky_workers_load(compiled_before):
    run = joblib.Parallel(n_jobs=2, backend="loky")
    assert_loaded(run(joblib.delayed(fit_and_tell)(i) for i in range(2)))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Copy of the package with two small kernels more, one of which calls the other, and a cache.

    A process has compiled them.
    """
    folder = tmp_path_factory.mktemp("first")
    # With bytecode, which takes longer to make than all that is done here.
    shutil.copytree(PACKAGE, folder / "skstruct", ignore=shutil.ignore_patterns("archives"))
    shutil.rmtree(folder / "skstruct" / "compiled" / "__pycache__", ignore_errors=True)
    (folder / "skstruct" / "chain" / "inner.py").write_text(INNER)
    (folder / "skstruct" / "chain" / "outer.py").write_text(OUTER)
    (folder / "cache").mkdir()
    assert run(USE, folder, folder / "cache") == ["7.0", "compiler"]
    return folder


@pytest.fixture
def package(first, tmp_path):
    """Folder of another copy, at another path, beside a copy of the cache."""
    return shutil.copytree(first, tmp_path / "copy")


@pytest.fixture
def shared(package):
    """The cache of that copy."""
    return package / "cache"


def run(code, package, shared, **environment):
    """Words that a process prints, with the package of a folder (or a zip) and a cache."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(package),
        "NUMBA_CACHE_DIR": str(shared),
        **environment,
    }
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=environment, cwd=shared, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_an_edited_kernel_is_never_run_in_its_old_form(package, shared):
    """Nor where two versions share a cache. Here the package was moved, too."""
    inner = package / "skstruct" / "chain" / "inner.py"
    inner.write_text(INNER.replace("2.0", "5.0"))
    assert run(USE, package, shared) == ["16.0", "compiler"]
    assert run(USE, package, shared) == ["16.0", "cache"]
    # What was compiled before, at another path.
    inner.write_text(INNER)
    assert run(USE, package, shared) == ["7.0", "cache"]


def test_kernels_are_forbidden_to_compile(package, shared, tmp_path):
    (tmp_path / "empty").mkdir()
    message = run(USE_OR_TELL, package, tmp_path / "empty", SKSTRUCT_KERNELS="compiled")
    assert message[:3] == ["The", "kernel", "skstruct.chain.outer.total"]
    assert run(USE, package, shared, SKSTRUCT_KERNELS="compiled") == ["7.0", "cache"]


def test_kernels_in_a_process_with_other_threads(compiled_before):
    code = (
        f"from concurrent.futures import ThreadPoolExecutor\ndef fit(_):\n    exec({FIT!r}, {{}})\n"
    )
    code += "with ThreadPoolExecutor(4) as pool: list(pool.map(fit, range(4)))"
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert result.stdout
    assert "compiler" not in result.stdout


@pytest.fixture(scope="module")
def shipped(first, tmp_path_factory):
    """The copy of the package, with an archive that has the kernels of `USE`."""
    folder = shutil.copytree(first, tmp_path_factory.mktemp("shipped") / "package")
    run(f"BASELINE = {BASELINE!r}\n{ARCHIVE}", folder, folder / "cache")
    return folder


BASELINE = next(iter(host_baselines()), None)
needs_baseline = pytest.mark.skipif(BASELINE is None, reason="no wheels for this processor")


@needs_baseline
def test_a_package_in_a_zip(shipped, tmp_path):
    packed = tmp_path / "package.zip"
    with zipfile.ZipFile(packed, "w") as members:
        for path in (shipped / "skstruct").rglob("*"):
            if "__pycache__" not in path.parts:
                members.write(path, path.relative_to(shipped))
    (tmp_path / "empty").mkdir()
    expected = ["7.0", BASELINE, "538", "PerceptronTagger"]
    assert run(APPLICATION, packed, tmp_path / "empty") == expected
    assert not list((tmp_path / "empty").iterdir())
    # Those that are not shipped are compiled, and kept.
    assert run(USE, packed, tmp_path / "empty", SKSTRUCT_KERNELS="local") == ["7.0", "compiler"]
    assert run(USE, packed, tmp_path / "empty", SKSTRUCT_KERNELS="local") == ["7.0", "cache"]


@needs_baseline
def test_an_application_made_by_pyinstaller(shipped, tmp_path):
    pytest.importorskip("PyInstaller")
    (tmp_path / "application.py").write_text(APPLICATION)
    hooks = shipped / "skstruct" / "_pyinstaller"
    options = ["--paths", str(shipped), "--additional-hooks-dir", str(hooks)]
    options += [f"--exclude-module={name}" for name in NOT_PACKED]
    command = [sys.executable, "-m", "PyInstaller", "--log-level", "WARN", *options]
    environment = {**os.environ, "PYTHONPATH": str(shipped)}
    subprocess.run([*command, "application.py"], cwd=tmp_path, check=True, env=environment)
    empty = tmp_path / "empty"
    empty.mkdir()
    application = tmp_path / "dist" / "application" / "application"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(empty)}
    output = subprocess.run([application], env=environment, stdout=subprocess.PIPE, check=True)
    assert output.stdout.decode().split() == ["7.0", BASELINE, "538", "PerceptronTagger"]
    assert not list(empty.iterdir())
