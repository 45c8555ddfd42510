"""Files of word vectors, in all formats."""

import codecs
import gzip
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, EmbeddingVectorizer, TemplateVectorizer
from skstruct.datasets import WordVectors, read_vectors

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


DAMAGED = gzip.compress(b"2 2\na 1 2\nb 3 4\n")
DAMAGED = DAMAGED[:15] + b"\xff" * 4 + DAMAGED[19:]

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
        (b"", "begins with b'', and not with a word and its vector"),
        (b"hello\n", "and not with a word and its vector"),
        (b"PK\x03\x04\x14\x00 glove.txt", "and not with a word and its vector"),
        (b"the a 1 2\ncat b 3 4\n", "and not with a word and its vector"),
        (b"2 2\nthe 1 2x\ncat 1 2\n", "line 2: the vector of 'the' is not made of numbers"),
        (b"2 3\nthe 1 2\ncat 1 2\n", "line 2 has 2 numbers after the word, but others have 3"),
        (b"2 1\nthe 1 2\ncat 1 2\n", "line 2 has 2 numbers after the word, but line 1 says 1"),
        (b"2 99999999999\nthe 1 2\n", "line 1 says that vectors have 99,999,999,999 numbers"),
        (b"the 1 2\ncat 1\n", "line 2 has 1 numbers after the word, but others have 2"),
        (b"2 2\nthe 1 2\ncat 1 2x\n", "line 3: the vector of 'cat' is not made of numbers"),
        (b"3 2\nthe 1 2\ncat 1 2\n", "has 2 words, but its first line says 3"),
        (as_binary()[:-2], "word 4 of 4: no numbers follow"),
        (b"2 1\nab 1234\x00" + b"x" * 20_000, "is not made of numbers"),
        (b"2 1\nab \x00\x00\x80?" + b"x" * 20_000, "word 2 of 2: no numbers follow"),
        (gzip.compress(as_text())[:-9], "is damaged: Compressed file ended"),
        (DAMAGED, "is damaged: Error -3"),
    ],
)
def test_damaged_files(tmp_path, content, message):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_vectors(path)


def test_files_of_another_kind_have_no_words(tmp_path):
    path = tmp_path / "vectors.npy"
    np.save(path, TABLE)
    with pytest.raises(ValueError, match="and not with a word and its vector"):
        read_vectors(path, ["the"])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_long_vectors(tmp_path, binary, packed):
    """A line is longer than what is read of a file at once."""
    table = np.random.default_rng(0).normal(size=(5, 3000)).astype("<f4")
    lines = [f"w{i} ".encode() for i in range(5)]
    for i, row in enumerate(table):
        lines[i] += row.tobytes() if binary else b" ".join(b"%r" % x for x in row.tolist())
    content = b"5 3000\n" + b"\n".join(lines) + b"\n"
    path = tmp_path / "vectors"
    path.write_bytes(gzip.compress(content) if packed else content)
    vectors = read_vectors(path)
    assert list(vectors) == [f"w{i}" for i in range(5)]
    assert_array_equal(np.stack(list(vectors.values())), table)
    assert list(read_vectors(path, ["w3"])) == ["w3"]


def test_vectors_are_shown_by_their_size():
    vectors = WordVectors({f"w{i}": np.ones(50) for i in range(3000)})
    pipeline = make_pipeline(EmbeddingVectorizer(vectors, normalize=str.lower), CRFTagger())
    assert "vectors=WordVectors(3,000 words, 50 numbers)" in repr(pipeline)
    assert "WordVectors(3,000 words, 50 numbers)" in pipeline._repr_html_()
    assert repr(WordVectors()) == "WordVectors(0 words, 0 numbers)"


@pytest.mark.parametrize("normalize", [None, str.lower, str.casefold])
def test_a_stored_vectorizer_has_its_words(normalize):
    sio = pytest.importorskip("skops.io")
    vectorizer = EmbeddingVectorizer(WordVectors({"a": TABLE[0]}), normalize=normalize)
    stored = sio.dumps(vectorizer.fit([["a", "A"]]))
    types = sio.get_untrusted_types(data=stored)
    assert types == ["skstruct.EmbeddingVectorizer", "skstruct.datasets.WordVectors"]
    for other in (sio.loads(stored, trusted=types), pickle.loads(pickle.dumps(vectorizer))):
        assert other.normalize is normalize
        assert type(other.vectors) is WordVectors
        assert_array_equal(other.transform([["A"]]).X, vectorizer.transform([["A"]]).X)


def test_functions_of_templates_that_are_methods_of_strings():
    sio = pytest.importorskip("skops.io")
    vectorizer = TemplateVectorizer("U0:%x[0,0|up]", functions={"up": str.upper}).fit([["a"]])
    stored = sio.dumps(vectorizer)
    other = sio.loads(stored, trusted=sio.get_untrusted_types(data=stored))
    assert other.functions == {"up": str.upper}
    assert other.get_feature_names_out().tolist() == ["U0:A"]
    state = vectorizer.__getstate__() | {"functions": {"up": {"_method_of_str": "__len__"}}}
    with pytest.raises(ValueError, match="strings have no method '__len__'"):
        TemplateVectorizer().__setstate__(state)


@pytest.mark.parametrize("words", [[["the"]], [b"the"], ["the", None]])
def test_words_that_are_no_strings(tmp_path, words):
    with pytest.raises(ValueError, match="which is no string"):
        read_vectors(tmp_path / "none", words)


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
