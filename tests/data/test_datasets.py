import gzip
import io
import os
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import numpy as np
import pytest
from helpers.environment import without_home
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from skstruct.datasets import (
    fetch_conll2000,
    fetch_conll2002,
    fetch_ocr_letters,
    load_addresses,
    load_digit_sequences,
    read_conll,
)
from skstruct.datasets.loaders import ORIGINALS, parsed_words

SHARED = os.environ.get("SKSTRUCT_DATA")
SMALL = b"He PRP B-NP\nsleeps VBZ B-VP\n\nYes UH O\n\n"
SMALL_DATA = [[("He", "PRP"), ("sleeps", "VBZ")], [("Yes", "UH")]]
SMALL_TARGET = [["B-NP", "B-VP"], ["O"]]


def shared_file(name):
    """Path of a file of the real data, which not every machine has."""
    if SHARED is None or not (Path(SHARED) / name).is_file():
        pytest.skip(f"needs SKSTRUCT_DATA with {name}")
    return Path(SHARED) / name


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def assert_same_sequences(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


# --- read_conll ---------------------------------------------------------------------------------


@pytest.fixture
def column_file(tmp_path):
    def write(content, name="corpus.txt"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    "content",
    [
        SMALL,
        SMALL.rstrip(b"\n"),
        b"\n\n" + SMALL + b"\n\n",
        SMALL.replace(b"\n", b"\r\n"),
        SMALL.replace(b"\n", b"\r"),
        SMALL.replace(b"\n", b" \t \n"),
        SMALL.replace(b" ", b"\t"),
        SMALL.replace(b" ", b"   "),
        SMALL.replace(b"\n", b"\n  "),
        b"\xef\xbb\xbf" + SMALL,
        gzip.compress(SMALL, mtime=0),
        b"-DOCSTART- -X- O\n\n" + SMALL + b"-DOCSTART- -X- O\n",
        b"-DOCSTART-\n" + SMALL,
        SMALL.replace(b"\n\n", b"\n-DOCSTART- -X- O\n"),
    ],
    ids=[
        "plain",
        "no final newline",
        "blank lines",
        "CRLF",
        "CR",
        "trailing blanks",
        "tabs",
        "wide",
        "indented",
        "BOM",
        "gzip",
        "docstart",
        "short docstart",
        "docstart as the only boundary",
    ],
)
def test_read_conll_harmless_differences(column_file, content):
    for name in ("corpus.txt", "corpus.txt.gz"):
        assert read_conll(column_file(content, name)) == (SMALL_DATA, SMALL_TARGET)


def test_read_conll_kinds_of_sources(column_file, tmp_path):
    path = column_file(SMALL)
    expected = SMALL_DATA, SMALL_TARGET
    assert read_conll(str(path)) == expected
    assert read_conll(io.BytesIO(SMALL)) == expected
    assert read_conll(io.BytesIO(gzip.compress(SMALL, mtime=0))) == expected
    assert read_conll(io.StringIO(SMALL.decode())) == expected
    with path.open() as text, path.open("rb") as binary:
        assert read_conll(text) == read_conll(binary) == expected
        assert not text.closed
        assert not binary.closed
    with pytest.raises(FileNotFoundError):
        read_conll(tmp_path / "nowhere.txt")


@pytest.mark.parametrize(
    ("options", "tokens", "labels"),
    [
        ({}, [("a", "b"), ("d", "e")], ["c", "f"]),
        ({"columns": 0}, ["a", "d"], ["c", "f"]),
        ({"columns": -2}, ["b", "e"], ["c", "f"]),
        ({"columns": [1]}, [("b",), ("e",)], ["c", "f"]),
        ({"columns": (1, 0)}, [("b", "a"), ("e", "d")], ["c", "f"]),
        ({"label": 0}, [("b", "c"), ("e", "f")], ["a", "d"]),
        ({"label": 1, "columns": 2}, ["c", "f"], ["b", "e"]),
        ({"label": None}, [("a", "b", "c"), ("d", "e", "f")], None),
        ({"label": None, "columns": 2}, ["c", "f"], None),
    ],
)
def test_read_conll_columns(options, tokens, labels):
    found = read_conll(io.StringIO("a b c\nd e f\n"), **options)
    assert found == ([tokens], None if labels is None else [labels])


def test_read_conll_tokens_are_strings_when_there_is_one_column():
    assert read_conll(io.StringIO("a x\nb y\n")) == ([["a", "b"]], [["x", "y"]])
    assert read_conll(io.StringIO("a\nb\n"), label=None) == ([["a", "b"]], None)


def test_read_conll_separator_allows_blanks_within_columns_and_empty_tokens():
    text = "New York\tB-LOC  \n \t\n\tO\r\n"
    assert read_conll(io.StringIO(text), separator="\t") == (
        [["New York"], [""]],
        [["B-LOC"], ["O"]],
    )


def test_read_conll_keeps_blanks_that_are_no_separators():
    text = "10\u00a0000 B-NUM\n\u3000 O\nnext\u0085line O\n"
    found, _ = read_conll(io.BytesIO(text.encode()))
    assert found == [["10\u00a0000", "\u3000", "next\u0085line"]]


def test_read_conll_comments_and_docstart_are_tokens_unless_told_otherwise():
    text = "# x\na x\n# y\nb y\n"
    assert read_conll(io.StringIO(text), comment="#") == ([["a", "b"]], [["x", "y"]])
    assert read_conll(io.StringIO(text))[0] == [["#", "a", "#", "b"]]
    text = "-DOCSTART- O\na x\n"
    assert read_conll(io.StringIO(text), skip_docstart=False)[0] == [["-DOCSTART-", "a"]]


def test_read_conll_encoding(column_file):
    path = column_file("España B-LOC\n".encode("latin-1"))
    assert read_conll(path, encoding="latin-1")[0] == [["España"]]
    path = column_file("España B-LOC\n".encode("utf-16"))
    assert read_conll(path, encoding="utf-16")[0] == [["España"]]


@pytest.mark.parametrize(
    ("content", "options", "line", "says"),
    [
        (b"a x\nb\n", {}, 2, "1 column, but line 1 has 2"),
        (b"\na x\n\nb y z\n", {}, 4, "3 columns, but line 2 has 2"),
        (b"a x\nb\n", {"columns": 0}, 2, "1 column, but line 1 has 2"),
        (b"a\nb\n", {}, 1, "the token or the label is missing"),
        (b"a x\n", {"label": 2}, 1, "2 columns, so label=2 does not exist"),
        (b"a x\n", {"label": -3}, 1, "2 columns, so label=-3 does not exist"),
        (b"a x\n", {"columns": [0, 5]}, 1, "2 columns, so columns=5 does not exist"),
        (b"a\tx\nb\t\n", {"separator": "\t"}, 2, "the label is empty"),
        (b"a x\n\nb \xe9 y\n", {}, 3, "not utf-8 text (byte 0xe9"),
        (b"", {}, None, "no token"),
        (b"\n \n\t\n", {}, None, "no token"),
        (b"-DOCSTART- -X- O\n\n", {}, None, "no token"),
        (b"# only\n", {"comment": "#"}, None, "no token"),
        (gzip.compress(b"", mtime=0), {}, None, "no token"),
        (gzip.compress(SMALL, mtime=0)[:-9], {}, None, "truncated or damaged"),
        (
            gzip.compress(SMALL, mtime=0)[:12] + b"?" + gzip.compress(SMALL, mtime=0)[13:],
            {},
            None,
            "damaged",
        ),
    ],
)
def test_read_conll_says_what_is_wrong_and_where(column_file, content, options, line, says):
    path = column_file(content, "bad.txt")
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        read_conll(path, **options)
    assert str(caught.value).startswith(f"{path}:" if line is None else f"{path}, line {line}:")


@pytest.mark.parametrize("columns", [[], 1, [0, 1], -1])
def test_read_conll_refuses_columns_without_sense(columns):
    with pytest.raises(ValueError, match="at least one column, and not the label"):
        read_conll(io.StringIO("a x\n"), columns=columns)


# What may be in a column is any text but line ends, the separator and, at the end of a line,
# blanks; an encoding of surrogates does not exist.
def texts(forbidden, min_size):
    characters = st.characters(exclude_categories=["Cs"], exclude_characters=forbidden)
    return st.text(characters, min_size=min_size, max_size=5)


def corpora(column, label):
    def of_width(width):
        row = st.tuples(*[column] * (width - 1), label)
        return st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=4)

    return st.integers(2, 4).flatmap(of_width)


@settings(deadline=None, max_examples=150)
@given(
    corpora(texts("\r\n \t\f\v\ufeff", 1), texts("\r\n \t\f\v", 1)),
    st.sampled_from([" ", "\t", " \t "]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.booleans(),
)
def test_read_conll_gives_back_what_was_written(sentences, separator, newline, encoding, packed):
    lines = newline.join(
        newline.join(separator.join(row) for row in rows) + newline for rows in sentences
    )
    content = lines.encode(encoding)
    stream = io.BytesIO(gzip.compress(content, mtime=0) if packed else content)
    tokens, labels = read_conll(stream, encoding=encoding, skip_docstart=False)
    columns = [row[:-1] for rows in sentences for row in rows]
    if len(columns[0]) == 1:
        columns = [column for (column,) in columns]
    assert [token for sequence in tokens for token in sequence] == columns
    assert labels == [[row[-1] for row in rows] for rows in sentences]
    assert [len(sequence) for sequence in tokens] == [len(rows) for rows in sentences]


@settings(deadline=None, max_examples=100)
@given(corpora(texts("\r\n\t\ufeff", 0), texts("\r\n \t\f\v", 1).filter(str.strip)))
def test_read_conll_gives_back_what_was_written_with_separator(sentences):
    content = "\n".join("".join("\t".join(row) + "\n" for row in rows) for rows in sentences)
    tokens, labels = read_conll(io.StringIO(content), separator="\t", skip_docstart=False)
    assert labels == [[row[-1] for row in rows] for rows in sentences]
    width = len(sentences[0][0])
    assert tokens == [[row[0] if width == 2 else row[:-1] for row in rows] for rows in sentences]


# --- packaged data ------------------------------------------------------------------------------


def test_addresses_are_a_well_formed_corpus():
    addresses = load_addresses()
    tokens, labels = load_addresses(return_X_y=True)
    assert (addresses.data, addresses.target) == (tokens, labels)
    assert len(tokens) == len(labels) == 538
    assert len({" ".join(sequence).lower() for sequence in tokens}) == len(tokens)
    for sequence, sequence_labels in zip(tokens, labels, strict=True):
        assert len(sequence) == len(sequence_labels)
        assert all(token == token.strip() != "" for token in sequence)
        for before, label in pairwise(["O", *sequence_labels]):
            assert not label.startswith("I-") or before[2:] == label[2:], sequence
        assert all(not token.endswith(",") or token == "," for token in sequence), (
            "a comma is a token of its own"
        )
    assert addresses.target_names == sorted({label for sequence in labels for label in sequence})


def test_addresses_have_the_documented_components():
    addresses = load_addresses()
    documented = set(re.findall(r"^([A-Z]{4,})  ", addresses.DESCR, flags=re.MULTILINE))
    occurring = {name[2:] for name in addresses.target_names if name != "O"}
    assert documented == occurring
    assert "Parameters" not in addresses.DESCR
    for component in documented:
        assert sum(f"B-{component}" in labels for labels in addresses.target) >= 30
    touching = [
        before[2:] == label[2:]
        for labels in addresses.target
        for before, label in pairwise(labels)
        if label.startswith("B-")
    ]
    assert any(touching), "only then are IOB2 labels needed"


def test_addresses_are_not_solved_by_a_word_list():
    tokens, labels = load_addresses(return_X_y=True)
    known, right, n_tokens = {}, 0, 0
    for sequence, sequence_labels in zip(tokens[:430], labels[:430], strict=True):
        for token, label in zip(sequence, sequence_labels, strict=True):
            counts = known.setdefault(token, {})
            counts[label] = counts.get(label, 0) + 1
    for sequence, sequence_labels in zip(tokens[430:], labels[430:], strict=True):
        for token, label in zip(sequence, sequence_labels, strict=True):
            counts = known.get(token, {"B-NUMBER": 1})
            right += max(counts, key=counts.get) == label
            n_tokens += 1
    assert 0.3 < right / n_tokens < 0.8


def test_digit_sequences_show_their_digits():
    numbers = load_digit_sequences(n_sequences=200)
    images, digits = load_digits(return_X_y=True)
    digit_of = {image.tobytes(): digit for image, digit in zip(images, digits, strict=True)}
    assert len(numbers.data) == len(numbers.target) == len(numbers.kind) == 200
    for rows, labels in zip(numbers.data, numbers.target, strict=True):
        assert rows.shape == (len(labels), 64)
        assert labels.dtype == np.int64
        assert [digit_of[row.tobytes()] for row in rows] == labels.tolist()
    assert numbers.target_names == list(range(10))


def test_digit_sequences_are_numbers_of_their_kind():
    numbers = load_digit_sequences(n_sequences=600)
    rules = {
        "year": lambda text: re.fullmatch(r"19\d\d|20[0-2]\d", text),
        "date": lambda text: re.fullmatch(
            r"(19\d|20[0-2])\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", text
        ),
        "time": lambda text: re.fullmatch(r"([01]\d|2[0-3])[0-5][05]", text),
        "phone": lambda text: re.fullmatch(r"[2-8]\d\d55501\d\d", text),
        "price": lambda text: re.fullmatch(r"[1-9]\d{0,2}(00|49|95|99)", text),
        "count": lambda text: (
            5 <= len(text) <= 12 and (text in "0123456789" * 3 or text in "9876543210" * 3)
        ),
    }
    assert set(numbers.kind) == set(rules)
    for kind, labels in zip(numbers.kind, numbers.target, strict=True):
        assert rules[kind]("".join(map(str, labels))), (kind, labels)


def test_digit_sequences_of_train_and_test_share_no_image_and_differ():
    images = {}
    for subset in ("train", "test"):
        # Different seeds, since users may well use one for training and another for testing.
        data = [
            load_digit_sequences(subset=subset, random_state=seed, return_X_y=True)[0]
            for seed in (0, 1)
        ]
        images[subset] = {row.tobytes() for part in data for rows in part for row in rows}
    assert images["train"].isdisjoint(images["test"])
    train = load_digit_sequences(subset="train", return_X_y=True)[1]
    test = load_digit_sequences(subset="test", return_X_y=True)[1]
    same = sum(np.array_equal(one, other) for one, other in zip(train, test, strict=True))
    assert same < 25


def test_digit_sequences_random_state_and_noise():
    first, again = (load_digit_sequences(n_sequences=20, return_X_y=True) for _ in range(2))
    other = load_digit_sequences(n_sequences=20, random_state=1, return_X_y=True)
    assert_same_sequences(first[0], again[0])
    assert_same_sequences(first[1], again[1])
    assert any(not np.array_equal(one, two) for one, two in zip(first[1], other[1], strict=True))

    rng = np.random.RandomState(0)
    assert_same_sequences(
        load_digit_sequences(n_sequences=20, random_state=rng, return_X_y=True)[1], first[1]
    )

    noisy = load_digit_sequences(n_sequences=20, noise=2.0, return_X_y=True)
    assert_same_sequences(noisy[1], first[1])
    pixels, clean = np.concatenate(noisy[0]), np.concatenate(first[0])
    assert pixels.min() >= 0
    assert pixels.max() <= 16
    inside = (clean > 6) & (clean < 10)
    assert np.std((pixels - clean)[inside]) == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"subset": "dev"}, "subset must be one of 'all', 'train', 'test', got 'dev'"),
        ({"n_sequences": 0}, "n_sequences must be at least 1"),
        ({"noise": -1.0}, "noise must not be negative"),
        ({"noise": float("nan")}, "noise must not be negative"),
    ],
)
def test_digit_sequences_bad_options(options, says):
    with pytest.raises(ValueError, match=says):
        load_digit_sequences(**options)


# --- fetchers: where they look and what they download ------------------------------------------


class Reply(NamedTuple):
    body: bytes
    status: int = 200
    missing: int = 0  # bytes that are announced but never come
    encoding: str | None = None


class Server(ThreadingHTTPServer):
    """Web server on this machine. `replies` are by path, `requests` the paths asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies, self.requests = {}, []

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/")
        self.server.requests.append(name)
        reply = self.server.replies.get(name, Reply(b"no such file", status=404))
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(reply.body) + reply.missing))
        if reply.encoding:
            self.send_header("Content-Encoding", reply.encoding)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty folder for downloads, on a machine without the real data."""
    monkeypatch.delenv("SKSTRUCT_DATA", raising=False)
    return tmp_path / "home"


@pytest.fixture
def register(monkeypatch, server):
    """Have the server, or other addresses, stand in for those of a public original."""

    def register(key, *urls, content=None):
        original = ORIGINALS[key]
        if content is not None:
            original = original._replace(expected=original.fingerprint(content))
        urls = tuple(server.url(url) if "/" not in url else url for url in urls)
        monkeypatch.setitem(ORIGINALS, key, original._replace(urls=urls))

    return register


def test_fetch_downloads_once(server, home, register):
    register("conll2000/train", "train", content=SMALL)
    server.replies["train"] = Reply(gzip.compress(SMALL, mtime=0))
    for _ in range(2):
        corpus = fetch_conll2000(data_home=home)
        assert corpus.data == SMALL_DATA
        assert corpus.target == SMALL_TARGET
        assert corpus.target_names == ["B-NP", "B-VP", "O"]
        assert corpus.DESCR.startswith("Fetch the corpus of the CoNLL-2000")
    assert fetch_conll2000(data_home=str(home), return_X_y=True) == (SMALL_DATA, SMALL_TARGET)
    assert server.requests == ["train"]
    assert files_below(home) == [home / "conll2000" / "train.txt.gz"]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(SMALL),
        Reply(gzip.compress(SMALL, mtime=0)),
        Reply(gzip.compress(SMALL, mtime=0), encoding="gzip"),
    ],
    ids=["plain", "gzip", "unpacked on the way"],
)
def test_fetch_recognises_the_content_however_it_is_packed(server, home, register, reply):
    register("conll2000/train", "train", content=SMALL)
    server.replies["train"] = reply
    assert fetch_conll2000(data_home=home, return_X_y=True) == (SMALL_DATA, SMALL_TARGET)


def test_fetch_tries_the_next_address(server, home, register):
    register("conll2000/test", "gone", "wrong", "cut", "right", content=SMALL)
    server.replies["wrong"] = Reply(b"<html>Please log in</html>")
    server.replies["cut"] = Reply(SMALL[:9], missing=100)
    server.replies["right"] = Reply(SMALL)
    assert fetch_conll2000(subset="test", data_home=home).data == SMALL_DATA
    assert server.requests == ["gone", "wrong", "cut", "right"]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(SMALL.replace(b"He", b"We")), "wrong checksum"),
        (Reply(b""), "wrong checksum"),
        (Reply(SMALL[:9]), "wrong checksum"),
        (Reply(SMALL[:9], missing=20), ""),  # the message is urllib3's
        (Reply(gzip.compress(SMALL, mtime=0)[:-5]), "truncated or damaged"),
        (Reply(gzip.compress(SMALL, mtime=0), missing=20), ""),
        (Reply(SMALL, encoding="gzip"), ""),
        (Reply(b"no", status=404), "404"),
        (Reply(b"no", status=403), "403"),
        (Reply(b"no", status=500), "500"),
        (None, "refused"),
    ],
    ids=[
        "altered",
        "empty",
        "short",
        "cut connection",
        "short gzip",
        "cut connection, gzip",
        "damaged on the way",
        "404",
        "403",
        "500",
        "no network",
    ],
)
def test_fetch_failures_leave_nothing_and_say_what_to_do(server, home, register, reply, says):
    if reply is None:
        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
            url = f"http://127.0.0.1:{closed.server_port}/train"
    else:
        url = server.url("train")
        server.replies["train"] = reply
    register("conll2000/train", url, content=SMALL)
    with pytest.raises(OSError, match="The download failed") as caught:
        fetch_conll2000(data_home=home)
    message = str(caught.value)
    assert says in message
    assert f"get it from {url}" in message
    assert f"save it unchanged as {home / 'conll2000' / 'train.txt.gz'}" in message
    assert "SKSTRUCT_DATA to a folder with conll2000/train.txt.gz" in message
    assert files_below(home.parent) == []


def test_fetch_without_download(server, home, register):
    register("conll2002-ned/testa", "ned.testa", content=SMALL)
    with pytest.raises(OSError, match=r"ned.testa is missing, and download_if_missing=False"):
        fetch_conll2002(language="ned", subset="testa", data_home=home, download_if_missing=False)
    assert server.requests == []


def test_fetch_into_a_folder_that_cannot_be_written(server, home, register):
    register("conll2000/train", "train", content=SMALL)
    server.replies["train"] = Reply(SMALL)
    home.write_bytes(b"a file, not a folder")
    with pytest.raises(OSError, match=r"cannot be written.*Pass a folder of yours as data_home="):
        fetch_conll2000(data_home=home)


def test_fetch_interrupted_while_storing(server, home, register, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    register("conll2000/train", "train", content=SMALL)
    server.replies["train"] = Reply(SMALL)
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"train.txt.gz cannot be written.*No space left"):
        fetch_conll2000(data_home=home)
    assert files_below(home) == []


def test_fetch_takes_what_the_user_put_there(server, home, register):
    register("conll2002-esp/testb", "esp.testb")
    folder = home / "conll2002-esp"
    folder.mkdir(parents=True)
    (folder / "esp.testb").write_bytes(SMALL)
    options = {"subset": "testb", "data_home": home}
    assert fetch_conll2002(**options).data == SMALL_DATA
    # The prepared file comes first.
    (folder / "testb.txt.gz").write_bytes(gzip.compress(b"La\tDA\tB-LOC\n", mtime=0))
    assert fetch_conll2002(**options).data == [[("La", "DA")]]
    assert server.requests == []
    (folder / "testb.txt.gz").write_bytes(b"La\tDA\tB-LOC\nCoru")
    with pytest.raises(ValueError, match=r"testb.txt.gz, line 2: 1 column, but line 1 has 3"):
        fetch_conll2002(**options)


def test_fetch_looks_into_skstruct_data_first(server, home, register, monkeypatch, tmp_path):
    register("conll2000/train", "train", content=SMALL)
    register("conll2000/test", "test", content=SMALL)
    server.replies.update(train=Reply(SMALL), test=Reply(SMALL))
    shared = tmp_path / "shared"
    for folder, word in ((shared, b"shared"), (home, b"home")):
        (folder / "conll2000").mkdir(parents=True)
        (folder / "conll2000" / "train.txt.gz").write_bytes(
            gzip.compress(word + b" NN O\n", mtime=0)
        )
    monkeypatch.setenv("SKSTRUCT_DATA", str(shared))
    assert fetch_conll2000(data_home=home).data == [[("shared", "NN")]]
    assert server.requests == []
    # What is not there is looked for, and downloaded to, data_home.
    assert fetch_conll2000(subset="test", data_home=home).data == SMALL_DATA
    assert (home / "conll2000" / "test.txt.gz").is_file()
    assert len(files_below(shared)) == 1


@pytest.mark.parametrize("exists", [True, False])
def test_fetch_downloads_to_skstruct_data(server, home, register, monkeypatch, tmp_path, exists):
    register("conll2000/train", "train", content=SMALL)
    server.replies["train"] = Reply(SMALL)
    shared = tmp_path / "shared"
    if exists:
        shared.mkdir()
    monkeypatch.setenv("SKSTRUCT_DATA", str(shared))
    assert fetch_conll2000().data == SMALL_DATA
    assert files_below(tmp_path) == [shared / "conll2000" / "train.txt.gz"]


@pytest.mark.parametrize("read_only", [True, False])
def test_fetch_downloads_to_the_home_folder(
    server, home, register, monkeypatch, tmp_path, read_only
):
    register("conll2000/train", "train", content=SMALL)
    server.replies["train"] = Reply(SMALL)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    if read_only:
        # Permissions would not stop the administrator, who may be running this.
        shared = tmp_path / "shared"
        shared.mkdir()
        monkeypatch.setenv("SKSTRUCT_DATA", str(shared))
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != shared)
    assert fetch_conll2000().data == SMALL_DATA
    assert files_below(tmp_path) == [home / "skstruct_data" / "conll2000" / "train.txt.gz"]


@pytest.mark.parametrize("name", [None, "folder"])
@pytest.mark.skipif(os.name != "posix", reason="Windows names no home folder by HOME")
def test_fetch_downloads_nothing_to_the_current_folder(
    server, home, register, monkeypatch, tmp_path, name
):
    register("conll2000/train", "train", content=SMALL)
    server.replies["train"] = Reply(SMALL)
    without_home(monkeypatch, name)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="There is no home folder for downloads"):
        fetch_conll2000()
    assert not server.requests
    assert not list(tmp_path.iterdir())
    assert fetch_conll2000(data_home=home).data == SMALL_DATA


def test_originals_come_over_https_and_have_checksums():
    for original in ORIGINALS.values():
        assert all(url.startswith("https://") for url in original.urls)
        assert re.fullmatch("[0-9a-f]{64}", original.expected)


@pytest.mark.parametrize(
    ("fetch", "options", "says"),
    [
        (fetch_conll2000, {"subset": "dev"}, "subset must be one of 'train', 'test', got 'dev'"),
        (fetch_conll2002, {"subset": "test"}, "'train', 'testa', 'testb', got 'test'"),
        (fetch_conll2002, {"language": "deu"}, "language must be one of 'esp', 'ned'"),
        (fetch_ocr_letters, {"subset": "all"}, "subset must be one of 'train', 'test'"),
    ],
)
def test_fetch_bad_options(home, fetch, options, says):
    with pytest.raises(ValueError, match=says):
        fetch(data_home=home, **options)


# --- the format of letter.data ------------------------------------------------------------------


def letter_data(words):
    """Write (fold, letters, pixels) in the format of letter.data."""
    lines, n_letters = [], 0
    for word_id, (fold, letters, pixels) in enumerate(words, start=1):
        for position, (letter, row) in enumerate(zip(letters, pixels, strict=True), start=1):
            n_letters += 1
            next_id = -1 if position == len(letters) else n_letters + 1
            head = [n_letters, letter, next_id, word_id, position, fold]
            lines.append("\t".join(map(str, [*head, *row])) + "\t\n")
    return "".join(lines).encode()


@pytest.fixture
def words():
    rng = np.random.RandomState(3)
    return [
        (fold, letters, rng.randint(2, size=(len(letters), 128)).astype(np.uint8))
        for fold, letters in [(0, "ommanding"), (3, "a"), (9, "mbraces"), (0, "xpert"), (1, "a")]
    ]


def test_ocr_letters_from_the_original(server, home, register, words):
    content = letter_data(words)
    register("ocr", "letter.data.gz", content=content)
    server.replies["letter.data.gz"] = Reply(gzip.compress(content, mtime=0))
    for subset, expected in {"test": [0, 3], "train": [1, 2, 4]}.items():
        letters = fetch_ocr_letters(subset=subset, data_home=home)
        assert_same_sequences(letters.data, [words[i][2] for i in expected])
        assert ["".join(word) for word in letters.target] == [words[i][1] for i in expected]
        assert letters.target_names == sorted(set("".join(words[i][1] for i in expected)))
        X, y = fetch_ocr_letters(subset=subset, data_home=home, return_X_y=True)
        assert_same_sequences(X, letters.data)
        assert_same_sequences(y, letters.target)
    assert server.requests == ["letter.data.gz"]
    assert files_below(home) == [home / "ocr" / "letter.data.gz"]


def test_ocr_letters_checksum_is_of_the_words(words):
    fingerprint = ORIGINALS["ocr"].fingerprint
    content = letter_data(words)
    right = fingerprint(content)
    assert fingerprint(gzip.compress(content.replace(b"\n", b"\r\n"), mtime=0)) == right
    assert fingerprint(letter_data(words[::-1])) == right
    moved = [(1 if fold == 0 else fold, letters, pixels) for fold, letters, pixels in words]
    other_letter = [(fold, letters.replace("x", "y"), pixels) for fold, letters, pixels in words]
    other_pixel = [(fold, letters, pixels.copy()) for fold, letters, pixels in words]
    other_pixel[3][2][4, 127] ^= 1
    for wrong in (words[1:], moved, other_letter, other_pixel):
        assert fingerprint(letter_data(wrong)) != right


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda lines: [], "the last word is incomplete"),
        (lambda lines: lines[:4], "the last word is incomplete"),
        (lambda lines: [*lines[:3], lines[3][:100]], "line 4: not a line of letter.data"),
        (lambda lines: [lines[0] + b"0\t", *lines[1:]], "line 1: not a line of letter.data"),
        (lambda lines: [lines[0][:-2] + b"7\t", *lines[1:]], "line 1: not a line of letter.data"),
        (lambda lines: [b"<html>", b"</html>"], "line 1: not a line of letter.data"),
    ],
    ids=["empty", "cut between letters", "cut", "long", "not a bit", "web page"],
)
def test_ocr_letters_malformed(home, words, spoil, says):
    content = b"\n".join(spoil(letter_data(words).splitlines()))
    path = home / "ocr" / "letter.data.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"letter.data.gz.*{says}"):
        fetch_ocr_letters(data_home=home)


# --- the real corpora ---------------------------------------------------------------------------

# Sentences, tokens and labels as the organisers of the shared tasks counted them, the Dutch
# tokens without document boundaries.
PUBLISHED = {
    "conll2000/train": (8936, 211727, 22),
    "conll2000/test": (2012, 47377, None),
    "conll2002-esp/train": (8323, 264715, 9),
    "conll2002-esp/testa": (1915, 52923, None),
    "conll2002-esp/testb": (1517, 51533, None),
    "conll2002-ned/train": (15806, 202644, 9),
    "conll2002-ned/testa": (2895, 37687, None),
    "conll2002-ned/testb": (5195, 68875, None),
}


def fetch_text(key, **options):
    corpus, subset = key.split("/")
    if corpus == "conll2000":
        return fetch_conll2000(subset=subset, **options)
    return fetch_conll2002(language=corpus.removeprefix("conll2002-"), subset=subset, **options)


@pytest.mark.parametrize("key", PUBLISHED)
def test_real_text_corpora_have_their_published_size(key):
    shared_file(ORIGINALS[key].prepared)
    corpus = fetch_text(key, download_if_missing=False)
    n_sentences, n_tokens, n_labels = PUBLISHED[key]
    assert len(corpus.data) == n_sentences
    assert sum(map(len, corpus.data)) == sum(map(len, corpus.target)) == n_tokens
    assert n_labels in (None, len(corpus.target_names))
    assert all(len(token) == 2 for sentence in corpus.data for token in sentence)
    strays = [
        label
        for labels in corpus.target
        for before, label in pairwise(["O", *labels])
        if label.startswith("I-") and before[2:] != label[2:]
    ]
    assert len(strays) == ("esp" in key), "one known mistake in each of the Spanish files"


@pytest.mark.parametrize("key", [key for key in PUBLISHED if "ned" not in key])
def test_real_text_corpora_match_the_checksums_of_the_originals(key, server, home, register):
    prepared = shared_file(ORIGINALS[key].prepared)
    content = gzip.decompress(prepared.read_bytes()).replace(b"\t", b" ")
    register(key, "original")
    server.replies["original"] = Reply(content)
    assert fetch_text(key, data_home=home, return_X_y=True) == read_conll(prepared)
    assert server.requests == ["original"]


@pytest.mark.parametrize("key", ["conll2002-ned/testa", "conll2002-ned/testb"])
def test_real_dutch_corpora_with_document_boundaries(key, server, home, register):
    # Where the boundaries are is not known here, so that the checksum cannot be tested.
    prepared = shared_file(ORIGINALS[key].prepared)
    sentences = gzip.decompress(prepared.read_bytes()).replace(b"\t", b" ").split(b"\n\n")
    sentences[::40] = [b"-DOCSTART- -DOCSTART- O\n" + text for text in sentences[::40]]
    content = b"\n\n".join(sentences)
    register(key, "original", content=content)
    server.replies["original"] = Reply(content)
    assert fetch_text(key, data_home=home, return_X_y=True) == read_conll(prepared)


def test_real_ocr_letters(server, home, register, monkeypatch):
    shared_file("ocr.npz")
    expected = {}
    with monkeypatch.context() as context:
        context.setenv("SKSTRUCT_DATA", SHARED)
        for subset, n_words, n_letters in (("train", 6251, 47535), ("test", 626, 4617)):
            X, y = expected[subset] = fetch_ocr_letters(
                subset=subset, download_if_missing=False, return_X_y=True
            )
            assert len(X) == len(y) == n_words
            assert sum(map(len, X)) == sum(map(len, y)) == n_letters
            assert {row.shape[1] for row in X} == {128}

    # The original mixes the folds; a download from it is the same data.
    test = [(0, "".join(y), X) for X, y in zip(*expected["test"], strict=True)]
    words = []
    for i, (X, y) in enumerate(zip(*expected["train"], strict=True)):
        words.append((1 + i % 9, "".join(y), X))
        words += test[i // 10 : i // 10 + 1] if i % 10 == 0 else []
    content = letter_data(words)
    assert len(parsed_words(content, "letter.data")) == 6877
    register("ocr", "letter.data.gz")
    server.replies["letter.data.gz"] = Reply(gzip.compress(content, compresslevel=1, mtime=0))
    for subset, (X, y) in expected.items():
        found = fetch_ocr_letters(subset=subset, data_home=home, return_X_y=True)
        assert_same_sequences(found[0], X)
        assert_same_sequences(found[1], y)
    assert server.requests == ["letter.data.gz"]
