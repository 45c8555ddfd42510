"""Files written whole or not at all: modes, links, killed processes, errors that name the path."""

import contextlib
import errno
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from skstruct import PerceptronTagger
from skstruct.crfsuite import CRF, Trainer
from skstruct.datasets import write_annotations, write_conll
from skstruct.inspection import TaggedText
from skstruct.streams import fit_stream
from skstruct.utils import files
from skstruct.utils.files import check_writable, replaced, write_whole

posix = pytest.mark.skipif(os.name == "nt", reason="needs modes, links and signals")
SEQUENCES, LABELS = [["a", "b"]], [["A", "B"]]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_a_file_keeps_its_mode(mode, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    with replaced(path) as file:
        # Nobody else can read what is not complete.
        (unfinished,) = set(tmp_path.iterdir()) - {path}
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
def test_a_new_file_has_the_mode_that_open_gives_it(tmp_path):
    write_whole(tmp_path / "file", b"new")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode


@posix
def test_links_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/file")
    for content in (b"new", b"newer"):
        write_whole(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "file").read_bytes() == content


@posix
def test_pipes_are_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    check_writable(tmp_path / "pipe")
    write_whole(tmp_path / "pipe", b"content")
    assert reader.communicate(timeout=60)[0] == b"content"


def test_a_file_stays_as_it_was_if_writing_fails(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with replaced(path) as file:
            file.write(b"half")
            raise ValueError("interrupted")

    with pytest.raises(ValueError, match="interrupted"):
        write_half()
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [b"old"]


@posix
@pytest.mark.parametrize("old", [b"old", None])
def test_an_interrupt_at_any_moment_leaves_no_unfinished_file(old, tmp_path):
    """Interrupted before each instruction, in turn, of the library's code that writes a file."""
    path = tmp_path / "file"
    for n_instructions in range(10_000):
        if old is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(old)
        try:
            with interrupted_after(n_instructions, {files.__file__, contextlib.__file__}):
                write_whole(path, b"new")
        except KeyboardInterrupt:
            pass
        else:
            break
        left = {found.name: found.read_bytes() for found in tmp_path.iterdir()}
        before = {} if old is None else {"file": old}
        assert left in (before, {"file": b"new"}), n_instructions
    assert 100 < n_instructions < 9_999
    assert path.read_bytes() == b"new"


@contextlib.contextmanager
def interrupted_after(n_instructions, sources):
    """Raise KeyboardInterrupt before an instruction in these source files, as a signal may."""
    left = n_instructions

    def trace(frame, event, arg):
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return trace

    def trace_sources(frame, event, arg):
        return trace if frame.f_code.co_filename in sources else None

    before = sys.gettrace()
    sys.settrace(trace_sources)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("next_one", ["same", "other", "check"])
def test_what_a_killed_process_leaves_is_removed_by_the_next(next_one, tmp_path):
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"old")
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from skstruct.utils.files import replaced\n"
            "with replaced(sys.argv[1]) as file:\n"
            "    file.write(b'half'), file.flush(), print(flush=True), sys.stdin.read()\n",
            path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    child.stdout.readline()
    # Another process that writes takes nothing away from one that is alive.
    check_writable(other)
    assert len(list(tmp_path.iterdir())) == 2
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    {
        "same": lambda: write_whole(path, b"new"),
        "other": lambda: write_whole(other, b"new"),
        "check": lambda: check_writable(path),
    }[next_one]()
    assert {found.name for found in tmp_path.iterdir()} <= {"file", "other"}


def test_two_may_write_the_same_file_at_once(tmp_path):
    path = tmp_path / "file"
    with replaced(path) as first, replaced(path) as second:
        first.write(b"first")
        second.write(b"second, which is complete before")
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [b"first"]


def obstacles(folder):
    """Paths that cannot be written, and what is wrong with them."""
    (folder / "folder").mkdir()
    (folder / "file").write_bytes(b"")
    yield folder / "folder", errno.EISDIR
    yield f"{folder / 'new'}{os.sep}", errno.EISDIR
    yield folder / "missing" / "new", errno.ENOENT
    if os.name != "nt":
        yield folder / "file" / "new", errno.ENOTDIR
        (folder / "link").symlink_to("missing/new")
        yield folder / "link", errno.ENOENT
        (folder / "loop").symlink_to("loop")
        yield folder / "loop", errno.ELOOP
        yield folder / (300 * "n"), errno.ENAMETOOLONG
        if os.geteuid():
            (folder / "folder").chmod(0o500)
            yield folder / "folder" / "new", errno.EACCES
            (folder / "file").chmod(0o400)
            yield folder / "file", errno.EACCES


def test_what_cannot_be_written_is_known_before(tmp_path):
    for path, code in obstacles(tmp_path):
        for write in (check_writable, lambda path: write_whole(path, b"new")):
            with pytest.raises(OSError, match=re.escape(repr(os.fspath(path)))) as caught:
                write(path)
            assert caught.value.errno == code
            assert caught.value.filename == os.fspath(path)


def written(path):
    """Functions of the library that write a file."""
    crf, X = CRF(max_iterations=2, model_filename=path), [[["a"], ["b"]]]
    trainer = Trainer(verbose=False)
    trainer.append(X[0], LABELS[0])
    trainer.set_params({"max_iterations": 2})
    fitted = CRF(max_iterations=2).fit(X, LABELS)

    def stream():
        perceptron = PerceptronTagger(random_state=0)
        fit_stream(perceptron, lambda epoch: [(X, LABELS)], checkpoint=path)

    return {
        "write_conll": lambda: write_conll(path, SEQUENCES, LABELS),
        "write_annotations": lambda: write_annotations(path, ["a"], [[]], format="doccano"),
        "CRF": lambda: crf.fit(X, LABELS),
        "Trainer": lambda: trainer.train(path),
        "save": lambda: TaggedText(SEQUENCES, LABELS).save(path),
        "dump": lambda: fitted.tagger_.dump(path),
        "fit_stream": stream,
    }


@posix
def test_writers_of_the_library_keep_modes_and_name_the_path(tmp_path):
    path, missing = str(tmp_path / "file"), str(tmp_path / "missing" / "file")
    for name, write in written(path).items():
        write()
        os.chmod(path, 0o600)
        write()
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, name
        Path(path).unlink()
    for write in written(missing).values():
        with pytest.raises(OSError, match=re.escape(missing)) as caught:
            write()
        assert "unfinished" not in str(caught.value)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk")
def test_a_full_disk_is_an_error_with_the_path():
    with pytest.raises(OSError, match=re.escape("No space left on device: '/dev/full'")):
        write_whole("/dev/full", b"content")
