"""Column files as partitions: the same as in one process, wherever a file is cut."""

import bz2
import gzip
import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skstruct import HashingTemplateVectorizer, PerceptronTagger, datasets
from skstruct.dask import DaskTagger, read_conll

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
fsspec = pytest.importorskip("fsspec")

TEXT = (
    "# first\n-DOCSTART- X O\n\nHe PRP B-NP\nsleeps VBZ B-VP\n\n\n# more\nYes UH O\r\n\r\n"
    "Été NN B-NP\n-DOCSTART- X O\n\nIt PRP B-NP\n\n\n"
)


def read_all(path, **options):
    """Lists of the partitions' sequences and labels, computed one after the other."""
    X, y = read_conll(path, **options)
    parts = [dask.compute(*part, scheduler="synchronous") for part in zip(X, y, strict=True)]
    return tuple(map(list, zip(*parts, strict=True)))


def together(parts):
    X, y = parts
    return list(chain.from_iterable(X)), list(chain.from_iterable(y))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "corpus.conll"
    path.write_bytes(TEXT.encode())
    return path


@pytest.mark.parametrize("suffix", ["conll", "conll.gz", "conll.bz2"])
def test_files_are_partitions(tmp_path, suffix):
    pack = {"conll": bytes, "conll.gz": gzip.compress, "conll.bz2": bz2.compress}[suffix]
    paths = [tmp_path / f"{number}.{suffix}" for number in (2, 0, 1)]
    for path in paths:
        text = TEXT.replace("He", path.name[0])
        path.write_bytes(pack(text.encode()))
    plain = [TEXT.replace("He", path.name[0]).splitlines() for path in paths]
    expected = [datasets.read_conll(lines, comment="#") for lines in plain]
    X, y = read_all([str(path) for path in paths], comment="#")
    assert list(zip(X, y, strict=True)) == expected
    # A glob sorts them.
    X, y = read_all(f"{tmp_path}/*.{suffix}", comment="#")
    assert list(zip(X, y, strict=True)) == [expected[1], expected[2], expected[0]]


def test_a_gzipped_file_need_not_say_so(tmp_path):
    path = tmp_path / "corpus"
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert read_all(path, comment="#") == tuple(
        [part] for part in datasets.read_conll(path, comment="#")
    )
    with pytest.raises(ValueError, match="corpus: a compressed file cannot be cut"):
        read_all(path, comment="#", blocksize=10)
    path.write_bytes(path.read_bytes()[:-9])
    for compression in ("infer", "gzip"):
        with pytest.raises(ValueError, match=f"{path}: the gzip data is truncated"):
            read_all(path, comment="#", compression=compression)


@pytest.mark.parametrize("blocksize", [*range(1, 40), 10**6, "20 B", "1 MB"])
def test_blocks_of_any_size(path, blocksize):
    expected = datasets.read_conll(path, comment="#")
    assert together(read_all(path, comment="#", blocksize=blocksize)) == expected


def result_or_error(read):
    try:
        return read()
    except ValueError as error:
        return str(error)


@given(st.data())
def test_blocks_of_any_text(tmp_path_factory, data):
    """Line ends of any kind, blanks, comments, boundaries, a byte order mark."""
    line = st.sampled_from(["a x", "b y", "é z", "\ufeffa x", "-DOCSTART- x", "# c", "", "", " "])
    end = st.sampled_from(["\n", "\r\n", "\r"])
    lines = data.draw(st.lists(st.tuples(line, end), min_size=1, max_size=20))
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig"]))
    mark = data.draw(st.sampled_from(["", "\ufeff"]))
    path = tmp_path_factory.mktemp("blocks") / "corpus"
    content = (mark + "".join(map("".join, lines))).encode(encoding)
    path.write_bytes(content)
    options = {
        "encoding": encoding,
        "comment": data.draw(st.sampled_from([None, "#", " "])),
        "label": data.draw(st.sampled_from([-1, 1])),
        "skip_docstart": data.draw(st.booleans()),
    }
    blocksize = data.draw(st.integers(1, len(content)))
    expected = result_or_error(lambda: datasets.read_conll(path, **options))
    found = result_or_error(lambda: together(read_all(path, blocksize=blocksize, **options)))
    assert found == expected


@pytest.mark.parametrize(
    "bad",
    [b"too MANY columns B-NP\n", b"few O\n", b"caf\xe9 NN O\n"],
    ids=["too many columns", "too few", "not in the encoding"],
)
@pytest.mark.parametrize("blocksize", [1, 7, 30, None])
def test_errors_name_file_and_line(path, bad, blocksize):
    content = path.read_bytes()
    for place in (content.index(b"sleeps"), content.index(b"Yes"), len(content)):
        path.write_bytes(content[:place] + bad + content[place:])
        with pytest.raises(ValueError, match=rf"^{path}, line \d+: ") as expected:
            datasets.read_conll(path, comment="#")
        with pytest.raises(ValueError, match=r"line") as raised:
            read_all(path, comment="#", blocksize=blocksize)
        assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("blocksize", [None, 1])
@pytest.mark.parametrize("text", ["", "\n\n\n", "# no\n\n# tokens\n"])
def test_a_file_without_tokens(path, text, blocksize):
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{path}: the file has no tokens$"):
        read_all(path, comment="#", blocksize=blocksize)


def test_columns_that_do_not_exist(path):
    with pytest.raises(ValueError, match=rf"^{path}, line 4: 3 columns, so label=3 does not exist"):
        read_all(path, comment="#", label=3, blocksize=20)


def test_unlabelled_files(path):
    X, y = read_conll(path, comment="#", label=None, columns=0, blocksize=9)
    assert y is None
    expected, _ = datasets.read_conll(path, comment="#", label=None, columns=0)
    (parts,) = dask.compute(X, scheduler="synchronous")
    assert list(chain.from_iterable(parts)) == expected


def test_any_file_system():
    memory = fsspec.filesystem("memory")
    with memory.open("/corpora/bad.conll", "wb") as file:
        file.write(TEXT.encode() + b"x\n")
    with memory.open("/corpora/good.conll", "wb") as file:
        file.write(TEXT.encode())
    expected = datasets.read_conll(TEXT.splitlines(), comment="#")
    for blocksize in (None, 11):
        parts = read_all("memory://corpora/good.*", comment="#", blocksize=blocksize)
        assert together(parts) == expected
        with pytest.raises(ValueError, match=r"^memory://.*bad\.conll, line 17: 1 column, but"):
            read_all("memory:///corpora/bad.conll", comment="#", blocksize=blocksize)


@contextmanager
def served_by_s3():
    """Options of a server in this process that speaks the protocol of S3."""
    server = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    server = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield {"key": "a", "secret": "b", "endpoint_url": f"http://{host}:{port}"}
    finally:
        server.stop()


@contextmanager
def served_by_gs():
    """Options of a server in this process that speaks the protocol of Google Cloud Storage."""
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    pytest.importorskip("gcsfs")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = emulator.create_server("127.0.0.1", port, in_memory=True)
    server.start()
    try:
        yield {"token": "anon", "endpoint_url": f"http://127.0.0.1:{port}"}
    finally:
        server.stop()


@contextmanager
def served_by_hdfs():
    """Address of a server in this process that speaks HDFS's protocol over HTTP, and its files."""
    pytest.importorskip("requests")
    with ThreadingHTTPServer(("127.0.0.1", 0), NameNode) as server:
        server.files = {}
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"127.0.0.1:{server.server_port}", server.files
        finally:
            server.shutdown()


class NameNode(BaseHTTPRequestHandler):
    """Hadoop's WebHDFS REST API, as far as one folder of files is read by it."""

    def do_GET(self):
        url = urlsplit(self.path)
        files, path = self.server.files, url.path.removeprefix("/webhdfs/v1/")
        query = dict(parse_qsl(url.query))
        if query["op"] == "LISTSTATUS" and path.rstrip("/") == "corpora":
            self.tell(200, {"FileStatuses": {"FileStatus": list(map(self.status, files))}})
        elif path not in files:
            error = {"exception": "FileNotFoundException", "message": f"no {path}"}
            self.tell(404, {"RemoteException": error})
        elif query["op"] == "GETFILESTATUS":
            self.tell(200, {"FileStatus": self.status(path)})
        elif "at" in query:
            start = int(query["offset"])
            self.answer(200, files[path][start : start + int(query["length"])])
        else:
            # What a file has comes from another server, a data node.
            host, port = self.server.server_address
            self.answer(307, b"", Location=f"http://{host}:{port}{self.path}&at=data")

    def status(self, path):
        name = path.removeprefix("corpora/")
        return {"pathSuffix": name, "length": len(self.server.files[path]), "type": "FILE"}

    def tell(self, code, value):
        self.answer(code, json.dumps(value).encode())

    def answer(self, code, body, **headers):
        self.send_response(code)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Keep standard error empty."""


@pytest.fixture(params=["s3", "gs", "webhdfs"])
def folder(request, monkeypatch):
    """Address of a folder, options, and a function that writes a file into it."""
    for name in ("HTTP_PROXY", "http_proxy", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    if request.param == "webhdfs":
        with served_by_hdfs() as (server, files):
            yield f"webhdfs://{server}/corpora", {}, files.__setitem__
        return
    # Otherwise gcsfs asks for more about a bucket than the server knows.
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    with {"s3": served_by_s3, "gs": served_by_gs}[request.param]() as options:
        files = fsspec.filesystem(request.param, **options)
        files.mkdir("corpora")
        yield f"{request.param}://corpora", {"storage_options": options}, files.pipe


def test_files_elsewhere(folder):
    address, options, write = folder
    options["comment"] = "#"
    texts = [TEXT.replace("He", who) for who in ("She", "We")]
    write("corpora/0.conll", texts[0].encode())
    write("corpora/1.conll.gz", gzip.compress(texts[1].encode()))
    expected = [datasets.read_conll(text.splitlines(), comment="#") for text in texts]
    X, y = read_all(f"{address}/*.conll*", **options)
    assert list(zip(X, y, strict=True)) == expected
    for blocksize in (1, 17, 10**6):
        parts = read_all(f"{address}/0.conll", blocksize=blocksize, **options)
        assert together(parts) == expected[0]
    write("corpora/bad.conll", TEXT.encode() + b"x\n")
    protocol, _ = address.split("//")
    with pytest.raises(ValueError, match=rf"^{protocol}//.*/bad\.conll, line 17: 1 column,"):
        read_all(f"{address}/bad.conll", blocksize=11, **options)
    with pytest.raises(FileNotFoundError, match="matches no file"):
        read_conll(f"{address}/none*", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocksize": 0}, "blocksize must be None, a positive integer or a text .* got 0"),
        ({"blocksize": 2.5}, "blocksize must be .* got 2.5"),
        ({"blocksize": 10, "encoding": "utf-16-be"}, "Files in utf-16-be cannot be cut"),
        ({"blocksize": 10, "compression": "bz2"}, "corpus.conll: a compressed file cannot be cut"),
    ],
)
def test_what_cannot_be_cut_is_refused(path, options, message):
    with pytest.raises(ValueError, match=message):
        read_conll(path, **options)


def test_a_glob_without_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"\*\.conll' matches no file"):
        read_conll(f"{tmp_path}/*.conll")


@pytest.mark.slow
def test_a_cluster_learns_from_files(tmp_path):
    """The partitions of the same data as lists give the same bits; an error names both places."""
    X, y = datasets.load_addresses(return_X_y=True)
    X, y = X[:60], y[:60]
    datasets.write_conll(tmp_path / "a.conll", X[:40], y[:40])
    datasets.write_conll(tmp_path / "b.conll", X[40:], y[40:])
    blocksize = (tmp_path / "a.conll").stat().st_size // 2
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        parts = read_conll(f"{tmp_path}/*.conll", blocksize=blocksize)
        vectorizer = HashingTemplateVectorizer(["U0:%x[0,0]", "U1:%x[-1,0]"], n_features=2**12)
        tagger = DaskTagger(
            PerceptronTagger(max_iter=3, tol=None, random_state=0), vectorizer=vectorizer
        )
        learnt = tagger.fit(*parts).estimator_
        found = dask.compute(*parts)
        assert len(parts[0]) == 3
        assert [len(part) for part in found[0]] == [len(part) for part in found[1]]
        assert list(chain.from_iterable(found[0])) == X
        lists = [[dask.delayed(part, traverse=False) for part in column] for column in found]
        expected = tagger.fit(*lists).estimator_
        assert_array_equal(learnt.coef_, expected.coef_)
        assert_array_equal(learnt.transition_, expected.transition_)
        with (tmp_path / "b.conll").open("a") as file:
            file.write("\nno label here\n")
        with pytest.raises(ValueError, match=r"b\.conll, line \d+: 3 columns") as raised:
            tagger.fit(*read_conll(f"{tmp_path}/*.conll"))
        assert "This happened in partition 1." in raised.value.__notes__
