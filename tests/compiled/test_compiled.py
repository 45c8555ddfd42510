"""Compiled kernels: found where they belong, compiled where anything differs."""

import ast
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest
from helpers.environment import without_home
from helpers.kernels import all_kernels
from numba.core import serialize
from numba.core.registry import cpu_target

import skstruct
from skstruct import PerceptronTagger
from skstruct.compiled import cache, keys, rules
from skstruct.compiled.cache import KernelCache
from skstruct.compiled.jit import interrupts_deferred, jit
from skstruct.utils import messages

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

MODULE = """
from skstruct.compiled.jit import jit

@jit
def square(x):
    return x * x

@jit
def sum_of_squares(x):
    total = 0.0
    for value in x:
        total += square(value)
    return total

@jit
def squares(x):
    return x * x
"""
CHECKED = """
@jit
def checked(x):
    if x < 0:
        raise ValueError("below zero", x)
    return x

@jit
def checked_square(x):
    return checked(x) * x

@jit
def twice(x):
    return 2 * checked_square(x)
"""
PRINT_ORIGINS = """
from skstruct.compiled.cache import loaded_kernels
print(" ".join(f"{loaded.kernel}={loaded.origin}" for loaded in loaded_kernels))
"""
SUM = "import numpy, small\nprint(small.sum_of_squares(numpy.arange(4.0)))" + PRINT_ORIGINS
SQUARE = "import small\nprint(small.square(3.0))" + PRINT_ORIGINS


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Empty cache of a test."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(messages, "_logged", set())
    (tmp_path / "small.py").write_text(MODULE)
    return tmp_path / "cache"


def start(code, folder, *arguments, **environment):
    path = os.pathsep.join([str(folder.parent), *filter(None, sys.path)])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "NUMBA_CACHE_DIR": str(folder),
        **environment,
    }
    command = [sys.executable, "-c", code, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, text=True, **pipes)


def run(code, folder, *arguments, **environment):
    """Lines that a fresh process prints, and what it logs."""
    process = start(code, folder, *arguments, **environment)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output.splitlines(), errors


def kernel():
    """A new dispatcher, which has nothing in memory."""

    def double(x):
        return 2 * x

    return jit(double)


def origins():
    return [loaded.origin for loaded in cache.loaded_kernels if loaded.kernel.endswith("double")]


@pytest.fixture
def one_file(folder):
    """The file of one kernel."""
    assert kernel()(1.5) == 3.0
    (path,) = folder.glob("*/*.kernel")
    cache.loaded_kernels.clear()
    return path


@pytest.mark.slow
def test_second_process_loads(folder):
    assert run(SUM, folder)[0] == ["14.0", "small.sum_of_squares=compiler small.square=compiler"]
    # What is inlined needs no code of its own.
    assert run(SUM, folder) == (["14.0", "small.sum_of_squares=cache"], "")


def test_errors_of_called_kernels_arrive(folder):
    (folder.parent / "small.py").write_text(MODULE + CHECKED)
    code = """
import small
for kernel in (small.checked_square, small.twice, small.checked):
    for value in (2.0, -1.0):
        try:
            print(kernel(value))
        except ValueError as error:
            print(error)
"""
    error = "('below zero', -1.0)"
    expected = ["4.0", error, "8.0", error, "2.0", error]
    for _ in range(2):
        assert run(code, folder)[0] == expected
    for path in folder.glob("*/small.twice-*"):
        path.unlink()
    assert run(code, folder)[0] == expected


@pytest.mark.slow
def test_kernel_compiled_here_calls_a_loaded_one(folder):
    run(SQUARE, folder)
    expected = ["14.0", "small.sum_of_squares=compiler small.square=cache"]
    assert run(SUM, folder)[0] == expected
    code = "import small\nsmall.square(2.0)\n" + SUM
    (path,) = folder.glob("*/small.sum*")
    path.unlink()
    expected = ["14.0", "small.square=cache small.sum_of_squares=compiler"]
    assert run(code, folder)[0] == expected


def test_argument_types_have_files_of_their_own(folder):
    assert kernel()(1.5) == 3.0
    assert kernel()(1) == 2
    assert kernel()(np.float32(1.5)) == 3.0
    assert len(list(folder.glob("*/*.kernel"))) == 3


def test_another_source_is_another_folder(one_file, monkeypatch):
    monkeypatch.setattr(keys, "_SOURCES", "0" * 64)
    assert kernel()(1.5) == 3.0
    assert origins() == ["compiler"]
    assert len(list(one_file.parent.parent.iterdir())) == 2


def test_sources_edited_since_the_import_are_neither_loaded_nor_kept(one_file, monkeypatch):
    monkeypatch.setattr(keys, "_STAMPS", [(0, 0), *keys._STAMPS[1:]])
    one_file.write_bytes(b"")
    assert kernel()(1.5) == 3.0
    assert origins() == ["compiler"]
    assert one_file.read_bytes() == b""


def test_every_kernel_source_counts():
    """Those of the chains, and those with kernels, wherever they stand."""
    package = Path(skstruct.__file__).parent
    assert {*package.glob("chain/*.py")} <= {*keys._FILES.values()}
    homes = {kernel.py_func.__module__ for kernel in all_kernels()}
    # Families have members of extensions, too.
    assert {home for home in homes if home.startswith("skstruct.")} <= {*keys._FILES}
    assert len(keys._STAMPS) == len(keys._FILES)


def test_kernels_name_only_what_counts():
    """A constant from a file that no key depends on could change, and the code would be stale."""
    imports = {}
    for kernel in all_kernels():
        code = kernel.py_func.__code__
        if code.co_filename not in imports:
            tree = ast.parse(Path(code.co_filename).read_text(encoding="utf-8"))
            found = (node for node in tree.body if isinstance(node, ast.ImportFrom))
            imports[code.co_filename] = [n for n in found if n.module.startswith("skstruct")]
        for node in imports[code.co_filename]:
            names = {alias.asname or alias.name for alias in node.names}
            assert node.module in keys._FILES or not names & {*code.co_names}, (kernel, node)


MIXED = """from skstruct.compiled.jit import jit

FACTOR = 2.0


class Record(NamedTuple):
    value: float


@set_module("skstruct")
class Estimator:
    def fit(self):
        return 1


def plain(
    x,
):
    return 1


@jit(
    inline="always",
)
def kernel(x):
    return FACTOR * x
"""


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("    def fit(self):\n        return 1", "    def fit(self):\n        return 2", False),
        ("):\n    return 1", "):\n    return 2", False),
        ("FACTOR = 2.0", "FACTOR = 3.0", True),
        ("value: float", "value: int", True),
        ('inline="always"', 'inline="never"', True),
        ("FACTOR * x", "FACTOR + x", True),
    ],
)
def test_only_what_kernels_can_see_counts(before, after, counts):
    name, edited = "skstruct.taggers.new", MIXED.replace(before, after, 1)
    assert edited != MIXED
    texts = [keys._text_of_kernels(name, text.encode()) for text in (MIXED, edited)]
    assert (texts[0] != texts[1]) == counts


def test_a_module_without_kernels_does_not_count():
    text = MIXED.partition("@jit")[0].encode()
    assert keys._text_of_kernels("skstruct.taggers.new", text) == b""
    assert keys._text_of_kernels("skstruct.chain.new", text) == text


def target_name():
    """Name of the folder for the processor that numba compiles for."""
    target = numba.core.registry.cpu_target.target_context
    return keys.folder_name(target.codegen().magic_tuple())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("OPT", 1),
        ("BOUNDSCHECK", 1),
        ("LOOP_VECTORIZE", 0),
        ("ENABLE_AVX", 0),
        ("CPU_NAME", "generic"),
    ],
)
def test_settings_that_change_code_have_folders_of_their_own(setting, value, monkeypatch):
    before = target_name()
    monkeypatch.setattr(numba.config, setting, value)
    assert target_name() != before


def test_versions_have_folders_of_their_own(monkeypatch):
    before = keys.environment()
    monkeypatch.setattr(numba, "__version__", "0.0")
    monkeypatch.setattr(keys.llvmlite, "__version__", "0.0")
    monkeypatch.setattr(np, "__version__", "9.1")
    after = keys.environment()
    assert {key for key in before if before[key] != after[key]} == {"numba", "llvmlite", "numpy"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:10],
        lambda content: content[:-1],
        lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
        lambda content: b"nonsense" * 100,
        lambda content: cache.pack(b"no pickle", b""),
    ],
    ids=["empty", "head", "cut", "flipped bit", "nonsense", "no pickle"],
)
def test_damaged_files_are_compiled_again_and_told_once(one_file, damage, caplog):
    whole = one_file.read_bytes()
    one_file.write_bytes(damage(whole))
    assert kernel()(1.5) == 3.0
    one_file.write_bytes(damage(whole))
    assert kernel()(1.5) == 3.0
    assert origins() == ["compiler"] * 2
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert kernel()(1.5) == 3.0
    assert origins()[-1] == "cache"


def test_a_file_of_other_argument_types_is_refused(one_file):
    other = one_file.with_name(kernel()._cache._file_name((numba.types.int64,)))
    other.write_bytes(one_file.read_bytes())
    assert kernel()(1) == 2
    assert origins() == ["compiler"]


def test_nothing_can_be_written(folder, caplog):
    folder.write_text("not a folder")
    assert kernel()(1.5) == 3.0
    assert kernel()(1) == 2
    (record,) = caplog.records
    assert "cannot be kept" in record.getMessage()


def test_a_folder_that_can_only_be_read_is_read(one_file, monkeypatch):
    places = [one_file.parent.parent, one_file.parent.parent.parent / "second"]
    monkeypatch.setattr(rules, "cache_folders", lambda name: [place / name for place in places])
    monkeypatch.setattr(rules, "replaced", refuse(one_file.parent))
    assert kernel()(1.5) == 3.0
    assert origins() == ["cache"]
    assert kernel()(1) == 2
    assert len(list(places[1].glob("*/*.kernel"))) == 1


def refuse(folder):
    """`replaced` as it is where one folder cannot be written to."""
    replaced = rules.replaced

    def refusing(path):
        if path.parent == folder:
            raise PermissionError
        return replaced(path)

    return refusing


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("what", ["file", "folder", "place"])
@pytest.mark.parametrize("whose", ["the group may write", "others may write", "of another user"])
def test_what_others_may_have_written_is_not_read(
    one_file, caplog, capsys, monkeypatch, what, whose
):
    paths = {"file": one_file, "folder": one_file.parent, "place": one_file.parent.parent}
    path = paths[what]
    if whose != "of another user":
        path.chmod(path.stat().st_mode | (0o020 if "group" in whose else 0o002))
    elif os.geteuid() == 0:
        os.chown(path, 65534, -1)
    elif what == "file":
        pytest.skip("Only root can give a single file away.")
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
        monkeypatch.setattr(rules, "__file__", "/nowhere")
    content = one_file.read_bytes()
    skstruct.show_versions()
    assert ("not used: others" in capsys.readouterr().out) == (what != "file")
    for _ in range(2):
        assert kernel()(1.5) == 3.0
    (record,) = caplog.records
    assert str(one_file.parent) in record.getMessage()
    if what == "file":
        assert one_file.stat().st_mode & 0o022 == 0, "it was replaced"
    else:
        assert origins() == ["compiler", "compiler"]
        assert one_file.read_bytes() == content


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_the_cache_is_read_by_users_who_let_their_group_write(folder, caplog):
    before = os.umask(0)
    try:
        assert kernel()(1.5) == 3.0
        cache.loaded_kernels.clear()
        assert kernel()(1.5) == 3.0
    finally:
        os.umask(before)
    assert origins() == ["cache"]
    assert not caplog.records


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
@pytest.mark.parametrize(
    ("home", "cache_home", "expected"),
    [
        ("/home/me", None, "/home/me/.cache"),
        ("/home/me", "", "/home/me/.cache"),
        ("/home/me", "a/b", "/home/me/.cache"),
        ("/home/me", "/caches", "/caches"),
        (None, "/caches", "/caches"),
        (None, "", None),
        (None, None, None),
        ("a", None, None),
        ("", "", "/.cache"),
    ],
)
def test_the_cache_is_never_in_the_current_folder(monkeypatch, home, cache_home, expected):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    without_home(monkeypatch, home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if cache_home is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
    package, *others = rules.cache_folders("name")
    assert package.parts[-4:] == ("skstruct", "compiled", "__pycache__", "name")
    assert list(map(str, others)) == ([] if expected is None else [f"{expected}/skstruct/name"])


@pytest.mark.slow
def test_no_home_and_no_temporary_folder(folder):
    environment = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "TMPDIR": "/dev/null"}
    code = f"from skstruct.compiled import rules\nrules.__file__ = '/dev/null/x.py'\n{SQUARE}"
    output, log = run(code, folder, NUMBA_CACHE_DIR="", **environment)
    assert output == ["9.0", "small.square=compiler"]
    assert log.count("cannot be kept") == len(log.splitlines()) == 1


@pytest.mark.slow
def test_processes_that_start_at_once(folder):
    processes = [start(SUM, folder) for _ in range(4)]
    for process in processes:
        output, errors = process.communicate()
        assert (output.splitlines()[0], errors) == ("14.0", "")
    assert sorted(path.name.partition("-")[0] for path in folder.glob("*/*")) == [
        "small.square",
        "small.sum_of_squares",
    ]
    assert run(SUM, folder)[0] == ["14.0", "small.sum_of_squares=cache"]


def test_old_folders_are_pruned(folder):
    ages = [0.5, 1, 2, 3, 4, 5, 6]
    for number, days in enumerate(ages):
        old = folder / f"skstruct-{number:020x}"
        old.mkdir(parents=True)
        (old / "some.kernel").touch()
        os.utime(old, (time.time() - days * 24 * 3600,) * 2)
    (folder / "someone's").mkdir()
    assert kernel()(1.5) == 3.0
    kept = {path.name for path in folder.iterdir()}
    assert {"someone's", *(f"skstruct-{number:020x}" for number in range(rules.KEPT))} <= kept
    assert len(kept) == rules.KEPT + 2


def test_folders_in_use_are_marked(one_file):
    day_ago = time.time() - 24 * 3600
    os.utime(one_file.parent, (day_ago, day_ago))
    kernel()(1.5)
    assert one_file.parent.stat().st_mtime > day_ago + 3600


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_files_have_the_usual_permissions(one_file, tmp_path):
    (tmp_path / "plain").touch()
    assert one_file.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.slow
def test_without_compilation(folder):
    assert run(SUM, folder, NUMBA_DISABLE_JIT="1") == (["14.0", ""], "")
    assert not folder.exists()


RENAME = """
from numba.core.codegen import CPUCodeLibrary

method = CPUCodeLibrary._get_module_for_linking
CPUCodeLibrary.__getattr__ = lambda self, name: method.__get__(self)
del CPUCodeLibrary._get_module_for_linking
"""


@pytest.mark.slow
def test_a_numba_that_has_changed_inside_keeps_its_own_cache(folder):
    code = """
import numpy
import small
print(small.sum_of_squares(numpy.arange(4.0)))
print(sum(small.sum_of_squares.stats.cache_hits.values()))
"""
    assert run(RENAME + code, folder)[0] == ["14.0", "0"]
    assert run(RENAME + code, folder)[0] == ["14.0", "1"]
    assert list(folder.glob("*/*.nbi"))
    assert not list(folder.glob("*/*.kernel"))


def test_a_fit_that_compiles_says_so_once(folder, monkeypatch, caplog, capsys):
    class Stop(Exception):
        pass

    def compile_and_stop(self):
        kernel()(1.5)
        kernel()(1)
        raise Stop

    def fit(verbose):
        with pytest.raises(Stop):
            PerceptronTagger(verbose=verbose).fit([[{"a": 1}], [{"b": 1}]], [["x"], ["y"]])

    monkeypatch.setattr(PerceptronTagger, "_check_params", compile_and_stop)
    caplog.set_level(logging.INFO, "skstruct")
    # The second one finds what the first one compiled.
    fit(verbose=1)
    fit(verbose=1)
    assert [record.getMessage() for record in caplog.records] == [messages.COMPILING]
    assert capsys.readouterr().out == f"{messages.COMPILING}\n"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder / "another"))
    fit(verbose=0)
    assert [record.getMessage() for record in caplog.records] == [messages.COMPILING] * 2
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(sys.platform == "win32", reason="No process can send itself a SIGINT.")
def test_an_interrupt_waits_while_code_is_loaded():
    before = signal.getsignal(signal.SIGINT)
    reached = []

    def load(what):
        with interrupts_deferred():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            reached.append(what)

    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            load("end")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        load("ignored")
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached == ["end", "ignored"]


@pytest.mark.skipif(sys.platform == "win32", reason="No process can send itself a SIGINT.")
def test_an_interrupt_is_not_lost_while_llvm_calls_python(monkeypatch):
    """Without care, Python prints the KeyboardInterrupt, and the program goes on."""
    monkeypatch.setattr(KernelCache, "load_overload", lambda *_: None)
    engine = cpu_target.target_context.codegen()._engine._ee
    hook, reached = engine._object_cache_notify, []

    def interrupted(*given):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        hook(*given)
        reached.append("end")

    monkeypatch.setattr(engine, "_object_cache_notify", interrupted)
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            jit(lambda x: x + 41)(1)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached
    monkeypatch.undo()
    assert jit(lambda x: x + 42)(1) == 43


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_an_interrupt_comes_out_of_a_kernel_that_returns_arrays(nth):
    """numba asks Python for the class of each array, and goes on whatever that raises."""

    @jit
    def kernel(n):
        return np.zeros(n), (np.ones(n), n), np.zeros((n, n))

    calls = []

    def interrupt(frame, event, argument):
        if frame.f_code is serialize._numba_unpickle.__code__ and event == "call":
            calls.append(event)
            if len(calls) == nth:
                raise KeyboardInterrupt

    kernel(2)
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt) as raised:
            kernel(2)
    finally:
        sys.settrace(before)
    assert len(calls) >= nth
    assert raised.value.__suppress_context__
    zeros, (ones, n), square = kernel(2)
    assert zeros.tolist() == [0, 0]
    assert ones.tolist() == [1, 1]
    assert square.shape == (n, n)


def test_errors_of_numba_come_out_of_a_kernel_as_they_are():
    with pytest.raises(numba.TypingError):
        jit(lambda x: x.missing)(1)


def test_constants_share_compiled_code():
    def add(x, y):
        return x + y

    inner = jit(add)

    @jit
    def outer(x):
        return inner(x, 0) + inner(x, y=1) + inner(x, x)

    assert outer(3) == 3 + 4 + 6
    assert inner.signatures == [(numba.int64, numba.int64)]
