"""Files of word vectors, in all formats."""

import codecs
import gzip

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skstruct.datasets import read_vectors

WORDS = ["the", "caf\u00e9", "x\u00a0y", "New_York"]
TABLE = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def as_text(words=WORDS, end="\n"):
    lines = [
        " ".join([word, *map(repr, row.tolist())]) for word, row in zip(words, TABLE, strict=True)
    ]
    return "".join(line + end for line in lines).encode()


def as_binary(between=b"\n"):
    parts = [w.encode() + b" " + row.tobytes() for w, row in zip(WORDS, TABLE, strict=True)]
    return b"4 3\n" + between.join(parts)


FILES = {
    "glove": as_text(),
    "word2vec": b"4 3\n" + as_text(),
    "fasttext": b"4 3\n" + as_text(end=" \n"),
    "tabs": as_text().replace(b" ", b"\t"),
    "byte order mark": codecs.BOM_UTF8 + b"4 3\n" + as_text(),
    "binary": as_binary(),
    "binary without line ends": as_binary(b""),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_every_format(tmp_path, name, packed):
    path = tmp_path / "vectors"
    path.write_bytes(gzip.compress(FILES[name]) if packed else FILES[name])
    vectors = read_vectors(path)
    assert list(vectors) == WORDS
    assert_array_equal(np.stack(list(vectors.values())), TABLE)
    some = read_vectors(path, ["x\u00a0y", "the", "axolotl"], dtype=np.float64)
    assert list(some) == ["the", "x\u00a0y"]
    assert some["the"].dtype == np.float64
    assert_array_equal(some["the"], TABLE[0])
    assert read_vectors(path, []) == {}


def test_words_with_blanks_and_words_twice(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_bytes(as_text(["new", ". . .", "new york", "new"]))
    vectors = read_vectors(path)
    assert list(vectors) == ["new", ". . .", "new york"]
    assert_allclose(vectors["new"], TABLE[0])
    assert list(read_vectors(path, {". . ."})) == [". . ."]
    path.write_bytes(as_text(["the", "a", "b", "c"]).replace(b"a ", b"\xff ", 1))
    assert list(read_vectors(path)) == ["the", "b", "c"]
    path.write_bytes(as_text(["the", "caf\u00e9", "b", "c"]).decode().encode("latin-1"))
    assert "caf\u00e9" in read_vectors(path, encoding="latin-1")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: no word with numbers"),
        (b"hello\n", "line 1: no word with numbers"),
        (b"the 1 2\ncat 1\n", "line 2 has 1 numbers after the word, but others have 2"),
        (b"2 2\nthe 1 2\ncat 1 2x\n", "line 3: the vector of 'cat' is not made of numbers"),
        (b"3 2\nthe 1 2\ncat 1 2\n", "has 2 words, but its first line says 3"),
        (as_binary()[:-2], "word 4 of 4: no numbers follow"),
        (b"2 1\nab 12345" + b"x" * 20_000, "word 2 of 2: no numbers follow"),
        (gzip.compress(as_text())[:-9], "is damaged: Compressed file ended"),
    ],
)
def test_damaged_files(tmp_path, content, message):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_vectors(path)


def test_what_words_cannot_be(tmp_path):
    with pytest.raises(ValueError, match="words must be several words"):
        read_vectors(tmp_path / "none", "the")
    with pytest.raises(FileNotFoundError):
        read_vectors(tmp_path / "none")


def test_large_files_are_read_once(tmp_path, monkeypatch, capsys):
    """A binary file of several buffers, and a line of progress."""
    monkeypatch.setattr("skstruct.datasets.vectors._BUFFER", 64)
    monkeypatch.setattr("skstruct.datasets.vectors._PERIOD", 0.0)
    path = tmp_path / "vectors"
    rows = np.random.default_rng(1).normal(size=(200, 7)).astype("<f4")
    entries = [b"w%d " % i + row.tobytes() for i, row in enumerate(rows)]
    path.write_bytes(b"200 7\n" + b"\n".join(entries))
    vectors = read_vectors(path, verbose=1)
    assert_array_equal(np.stack(list(vectors.values())), rows)
    assert "% read, 0 words" in capsys.readouterr().out
