"""Compiled kernels that come with the package: used where they fit, and nowhere else."""

import itertools
import logging
import multiprocessing
import zipfile
from importlib import resources

import numba
import pytest

from skstruct.compiled import archive, cache, keys, rules
from skstruct.compiled.jit import jit
from skstruct.utils import messages

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

BASELINE = "some-processor"


def triple(x):
    """A kernel in Python."""
    return 3 * x


def kernel():
    """A new dispatcher, which has nothing in memory."""
    return jit(triple)


def origins():
    return [loaded.origin for loaded in cache.loaded_kernels if loaded.kernel.endswith("triple")]


@pytest.fixture(autouse=True)
def _no_named_processor(monkeypatch):
    """With one, no archive is used."""
    monkeypatch.setattr(numba.config, "CPU_NAME", None)
    monkeypatch.setattr(numba.config, "CPU_FEATURES", None)


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    """File of an archive that has one kernel, which the user's cache has not."""
    monkeypatch.setattr(messages, "_logged", set())
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "builder"))
    monkeypatch.setattr(rules, "all_baselines", lambda: {BASELINE: frozenset()})
    monkeypatch.setattr(rules, "folder", lambda: tmp_path)
    assert kernel()(2.0) == 6.0
    (built,) = tmp_path.glob("builder/*/*.kernel")
    path = tmp_path / f"{BASELINE}.zip"
    archive.write_archive(path, {built.name: cache.unpack(built.read_bytes())[0]})
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "user"))
    rules._open.cache_clear()
    cache.loaded_kernels.clear()
    yield path
    rules._open.cache_clear()


def test_what_is_shipped_is_not_compiled(shipped):
    assert kernel()(2.0) == 6.0
    assert origins() == [BASELINE]
    assert not (shipped.parent / "user").exists()


def test_other_argument_types_are_compiled_and_kept(shipped):
    assert kernel()(2) == 6
    assert kernel()(2) == 6
    assert origins() == ["compiler", "cache"]


def test_kernels_compiled_here_call_those_that_are_shipped(shipped):
    inner = kernel()
    assert inner(2.0) == 6.0

    @jit
    def outer(x):
        return inner(x) + 1.0

    assert outer(2.0) == 7.0
    # Archives have no bitcode, which is compiled here.
    assert origins() == [BASELINE, "compiler"]
    assert inner(2.0) == 6.0
    assert jit(lambda x: inner(x) + 2.0)(2.0) == 8.0
    assert origins() == [BASELINE, "compiler"]


@pytest.mark.parametrize(
    "part", ["sources", "numba", "llvmlite", "numpy", "python", "OPT", "format"]
)
def test_another_environment(shipped, monkeypatch, part):
    ours = keys.environment()
    monkeypatch.setattr(rules, "environment", lambda: {**ours, part: f"{ours[part]}-other"})
    assert kernel()(2.0) == 6.0
    assert origins() == ["compiler"]
    assert rules.archive_report() == [f"{BASELINE}: made for another {part}"]


def test_a_processor_that_lacks_a_feature(shipped, monkeypatch):
    monkeypatch.setattr(rules, "all_baselines", lambda: {BASELINE: frozenset(["telepathy"])})
    assert kernel()(2.0) == 6.0
    assert origins() == ["compiler"]
    assert rules.archive_report() == [f"{BASELINE}: this processor lacks telepathy"]


@pytest.mark.parametrize("machine", ["x86_64", "AMD64", "aarch64", "arm64"])
def test_baselines_build_on_each_other(monkeypatch, machine):
    monkeypatch.setattr(rules.platform, "machine", lambda: machine)
    needed = list(rules.all_baselines().values())
    assert needed
    assert all(better > worse for better, worse in itertools.pairwise(needed))


def test_an_unknown_processor(monkeypatch):
    monkeypatch.setattr(rules.platform, "machine", lambda: "abacus")
    assert rules.archive_report() == ["none for this kind of processor"]


@pytest.mark.parametrize(("name", "value"), [("CPU_NAME", "generic"), ("CPU_FEATURES", "")])
def test_a_processor_that_the_user_names(shipped, monkeypatch, name, value):
    monkeypatch.setattr(numba.config, name, value)
    assert kernel()(2.0) == 6.0
    assert origins() == ["compiler"]


def test_local_kernels_on_demand(shipped, monkeypatch):
    monkeypatch.setenv("SKSTRUCT_KERNELS", "local")
    assert kernel()(2.0) == 6.0
    assert origins() == ["compiler"]
    assert "SKSTRUCT_KERNELS" in rules.archive_report()[0]


def test_native_kernels_come_first(shipped, monkeypatch):
    monkeypatch.setenv("SKSTRUCT_KERNELS", "local")
    kernel()(2.0)
    monkeypatch.delenv("SKSTRUCT_KERNELS")
    kernel()(2.0)
    cache.mark_native()
    kernel()(2.0)
    assert origins() == ["compiler", BASELINE, "cache"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: b"nonsense" * 100,
        lambda content: content.replace(b"about.json", b"above.json"),
    ],
    ids=["empty", "cut", "nonsense", "no about.json"],
)
def test_a_damaged_archive_is_not_used_and_told_once(shipped, damage, caplog):
    shipped.write_bytes(damage(shipped.read_bytes()))
    assert kernel()(2.0) == 6.0
    assert kernel()(2) == 6
    assert origins() == ["compiler"] * 2
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_damaged_kernel_in_an_archive(shipped, caplog):
    content = bytearray(shipped.read_bytes())
    with zipfile.ZipFile(shipped) as members:
        (member,) = (i for i in members.infolist() if i.filename != "about.json")
    content[member.header_offset + len(member.filename) + 500] ^= 1
    shipped.write_bytes(bytes(content))
    assert kernel()(2.0) == 6.0
    assert origins() == ["compiler"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_an_archive_is_no_file_of_the_cache(shipped):
    with pytest.raises(ValueError, match="damaged"):
        cache.unpack(shipped.read_bytes())


def test_the_same_kernels_make_the_same_archive(tmp_path):
    codes = {"room.a-1.kernel": b"one", "room.b-2.kernel": b"two"}
    for name, found in (("one", codes), ("two", dict(reversed(codes.items())))):
        archive.write_archive(tmp_path / name, found)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def _origin_in_a_child(queue):
    cache.loaded_kernels.clear()
    kernel()(2.0)
    queue.put(origins())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_read_the_archive(shipped):
    kernel()(2.0)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_origin_in_a_child, args=(queue,)) for _ in range(4)]
    for child in children:
        child.start()
    assert [queue.get(timeout=60) for _ in children] == [[BASELINE]] * 4
    for child in children:
        child.join()


def test_archives_are_looked_for_in_the_package():
    assert rules.folder() == resources.files("skstruct.compiled") / "archives"
