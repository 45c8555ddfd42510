"""Column files sequence by sequence: the same as at once, and no more than is asked for."""

import csv
import gzip
import io
from itertools import count, islice
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skstruct.datasets import conll, iter_conll, read_conll, write_conll
from skstruct.datasets import conll as text_lines

TEXT = "-DOCSTART- X O\n\nHe PRP B-NP\nsleeps VBZ B-VP\n\n\nYes UH O\r\n\nÉté NN B-NP\n# x y\n"
EXPECTED = (
    [[("He", "PRP"), ("sleeps", "VBZ")], [("Yes", "UH")], [("Été", "NN")]],
    [["B-NP", "B-VP"], ["O"], ["B-NP"]],
)


def test_equal_tokens_and_labels_are_one_object():
    X, y = read_conll(["a DET O", "cat NOUN B", "", "a DET O"])
    assert X[0][0] == ("a", "DET")
    assert X[0][0] is X[1][0]
    assert y[0][0] is y[1][0]
    (X, y), (words, _) = read_conll(["a x O", "a y O"]), read_conll(["a O", "a O"])
    assert X[0][0][0] is X[0][1][0]
    assert words[0][0] is words[0][1]


def together(sequences):
    tokens, labels = zip(*sequences, strict=True)
    return list(tokens), list(labels)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("piece", [1, 2, 7, 1 << 16])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_pieces_may_end_anywhere(tmp_path, packed, piece, encoding):
    content = TEXT.encode(encoding)
    path = tmp_path / "corpus"
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    with patch.object(text_lines, "_PIECE", piece):
        for source in (path, str(path), io.BytesIO(path.read_bytes())):
            assert together(iter_conll(source, comment="#", encoding=encoding)) == EXPECTED
        assert read_conll(path, comment="#", encoding=encoding) == EXPECTED
        assert read_conll(TEXT.split("\n"), comment="#") == EXPECTED
        assert together(iter_conll(io.StringIO(TEXT), comment="#")) == EXPECTED


@pytest.mark.parametrize(
    "lines",
    [
        TEXT.split("\n"),
        TEXT.splitlines(keepends=True),
        [line.encode() for line in TEXT.split("\n")],
        (line for line in TEXT.encode().splitlines(keepends=True)),
        tuple(TEXT.splitlines()),
    ],
    ids=["lines", "lines with ends", "bytes", "generator", "tuple"],
)
def test_lines_of_any_iterable(lines):
    assert together(iter_conll(lines, comment="#")) == EXPECTED


@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=9),
    st.integers(1, 10),
)
def test_batches(sequences, batch_size):
    lines = [line for s in sequences for line in [*(f"{token} x-{token}" for token in s), ""]]
    batches = list(iter_conll(lines, batch_size=batch_size))
    assert [s for X, _ in batches for s in X] == sequences
    assert [s for _, y in batches for s in y] == [[f"x-{t}" for t in s] for s in sequences]
    assert {len(X) for X, _ in batches[:-1]} <= {batch_size}
    assert 1 <= len(batches[-1][0]) <= batch_size
    unlabelled = list(iter_conll(lines, batch_size=batch_size, label=None, columns=0))
    assert [X for X, _ in unlabelled] == [X for X, _ in batches]
    assert all(y is None for _, y in unlabelled)


def test_a_stream_without_an_end():
    lines = (line for n in count() for line in (f"word{n} LABEL", ""))
    batches = iter_conll(lines, batch_size=2)
    assert list(islice(batches, 2)) == [
        ([["word0"], ["word1"]], [["LABEL"], ["LABEL"]]),
        ([["word2"], ["word3"]], [["LABEL"], ["LABEL"]]),
    ]
    # Nothing was read beyond the end of the second batch.
    assert next(lines) == "word4 LABEL"


def test_a_file_is_open_only_while_it_is_read(tmp_path):
    path = tmp_path / "corpus"
    path.write_text(TEXT, encoding="utf-8")
    file = path.open("rb")
    with patch.object(text_lines, "open", lambda *_: file, create=True):
        sequences = iter_conll(path, comment="#")
        next(sequences)
        assert not file.closed
        list(sequences)
    assert file.closed
    with pytest.raises(FileNotFoundError):
        next(iter_conll(tmp_path / "nowhere"))


def test_members_of_a_gzipped_file():
    parts = [gzip.compress(part.encode(), mtime=0) for part in TEXT.split("sleeps", 1)]
    whole = parts[0] + gzip.compress(b"sleeps", mtime=0) + parts[1] + b"\0" * 5
    for piece in (1, 3, 1 << 16):
        with patch.object(text_lines, "_PIECE", piece):
            assert together(iter_conll(io.BytesIO(whole), comment="#")) == EXPECTED
            with pytest.raises(
                ValueError, match="<file object>: the gzip data is truncated or dam"
            ):
                list(iter_conll(io.BytesIO(whole + b"rest"), comment="#"))
            with pytest.raises(ValueError, match="its end is missing"):
                list(iter_conll(io.BytesIO(whole[:-20]), comment="#"))


@pytest.mark.parametrize("piece", [1, 4, 1 << 16])
def test_errors_name_the_line_and_come_when_it_is_read(piece):
    with patch.object(text_lines, "_PIECE", piece):
        sequences = iter_conll(io.BytesIO(b"a x\r\n\nb y\n\nc \xe9 z\n"))
        if piece == 1:
            assert next(sequences) == (["a"], ["x"])
        with pytest.raises(ValueError, match=r"<file object>, line 5: not utf-8 text \(byte 0xe9"):
            list(sequences)
        sequences = iter_conll(io.BytesIO(b"a x\n\nb y z\n"))
        assert next(sequences) == (["a"], ["x"])
        with pytest.raises(ValueError, match="line 3: 3 columns, but line 1 has 2"):
            next(sequences)
    with pytest.raises(ValueError, match="<lines>: the file has no tokens"):
        list(iter_conll([]))
    for size in (0, -1, 1.5, "2"):
        with pytest.raises(ValueError, match="batch_size must be None or a positive integer"):
            iter_conll([], batch_size=size)


def test_a_token_may_be_a_blank_of_unicode():
    lines = ["a", "\u3000", "b", " ", "\xa0"]
    for separator in (None, "\t"):
        tokens, _ = read_conll(lines, label=None, separator=separator)
        assert tokens == [["a", "\u3000", "b"], ["\xa0"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "0"}, "columns has '0'; a column is a whole number"),
        ({"columns": ["word"]}, "columns has 'word'; a column is"),
        ({"columns": slice(1)}, r"columns has slice\(.*; a column is"),
        ({"label": "z"}, "label has 'z'; a column is"),
        ({"separator": 3}, "separator must be a string that is not empty, or None, got 3"),
        ({"separator": ""}, "separator must be a string that is not empty, or None, got ''"),
        ({"comment": ""}, "comment must be a prefix of lines, or None, got ''"),
        ({"comment": 3}, "comment must be a prefix of lines, or None, got 3"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        read_conll(["a x"], **options)


def test_numbers_of_numpy_are_columns():
    assert read_conll(["a b x"], columns=np.int64(1), label=np.int64(-1)) == ([["b"]], [["x"]])


def test_streams_remember_few_lines():
    lines = [f"word{n % 50} LABEL{n % 3}" if n % 7 else "" for n in range(1000)]
    with patch.object(conll, "_REMEMBERED", 10):
        streamed = list(iter_conll(lines))
    assert streamed == list(zip(*read_conll(lines), strict=True))


KAGGLE = (
    "Sentence #,Word,POS,Tag\r\n"
    "Sentence: 1,Thousands,NNS,O\r\n"
    ',"""",``,O\r\n'
    ',",",",",O\r\n'
    ",caf\xe9,NN,B-geo\r\n"
    "Sentence: 2,London,NNP,B-geo\r\n"
    ",.,.,O\r\n"
)
KAGGLE_TOKENS = [
    [("Thousands", "NNS"), ('"', "``"), (",", ","), ("caf\xe9", "NN")],
    [("London", "NNP"), (".", ".")],
]
KAGGLE_LABELS = [["O", "O", "O", "B-geo"], ["B-geo", "O"]]


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sentence_column": "Sentence #"},
        {"sentence_column": 0, "header": True},
        {"columns": ["Word", "POS"], "label": "Tag"},
        {"columns": [1, "POS"], "label": 3, "sentence_column": -4},
    ],
)
def test_sentences_of_a_csv_file(tmp_path, separator, options):
    path = tmp_path / "ner.csv"
    rows = csv.reader(KAGGLE.splitlines())
    with path.open("w", encoding="latin-1", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    options = {**options, "separator": separator, "encoding": "latin-1"}
    assert read_conll(path, **options) == (KAGGLE_TOKENS, KAGGLE_LABELS)
    found = list(iter_conll(path, **options))
    assert found == list(zip(KAGGLE_TOKENS, KAGGLE_LABELS, strict=True))


@given(st.lists(st.lists(st.sampled_from("ab,;\" '|"), min_size=1), min_size=1), st.data())
def test_a_sentence_begins_where_its_column_changes(sentences, data):
    every = data.draw(st.booleans())
    blank = data.draw(st.booleans())
    file = io.StringIO()
    writer = csv.writer(file)
    for i, words in enumerate(sentences):
        for t, word in enumerate(words):
            writer.writerow([i if every or t == 0 else "", word, "O"])
        if blank:
            file.write("\n")
    X, y = read_conll(io.StringIO(file.getvalue()), separator=",", sentence_column=0)
    assert sentences == X
    assert y == [["O"] * len(words) for words in sentences]


def test_headers():
    lines = ["word pos tag", "He PRP O", "", "Yes UH O"]
    expected = [[("He", "PRP")], [("Yes", "UH")]], [["O"], ["O"]]
    assert read_conll(lines) == read_conll(lines, header=True) == expected
    assert read_conll(lines, columns="word", label="tag")[0] == [["He"], ["Yes"]]
    assert read_conll(lines, header=False)[0][0][0] == ("word", "pos")
    # Names need not be usual ones where a column is asked for.
    assert read_conll(["x y z", *lines[1:]], label="z") == expected
    assert len(read_conll(["x y z", *lines[1:]])[0][0]) == 2
    assert read_conll(["word O", "tag O"])[0] == [["word", "tag"]]
    # What is written is read back.
    with pytest.raises(ValueError, match="could not be read back as a token, but as names of"):
        write_conll(io.StringIO(), [["word"]], [["tag"]])


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (KAGGLE.splitlines(), {}, r"line 3: 1 column, .*; pass separator=',' for commas"),
        (["a,O", "b,O"], {}, r"line 1: 1 column, .*; pass separator=',' for commas"),
        (["a;N;O", "b;N;O"], {}, r"line 1: 1 column, .*; pass separator=';' for semicolons"),
        (["a O", "b\tc\tO"], {}, r"line 2: 3 columns, .*; pass separator='\\t' for tabs"),
        (["1,a,O"], {"separator": ",", "sentence_column": 2}, "is the column of the label"),
        (["1,a,O"], {"separator": ",", "sentence_column": 5}, "sentence_column=5 does not exist"),
        (["1,a", "2,b"], {"separator": ",", "sentence_column": 0}, "2 columns, so either the t"),
        (["a b", "1 O"], {"label": "c"}, "line 1: label has 'c'; .* header: 'a', 'b'"),
        (["a b"], {"label": "b", "header": False}, "label has 'b'; .* header, which there is not"),
        (['",NN,O', "b,NN,O"], {"separator": ","}, "line 1: 1 column"),
    ],
)
def test_columns_that_cannot_be_found(lines, options, message):
    with pytest.raises(ValueError, match=message):
        read_conll(lines, **options)


@given(
    st.lists(st.lists(st.tuples(*[st.text("a,;\" '", min_size=1)] * 2), min_size=1), min_size=1),
    st.sampled_from([",", ";"]),
)
def test_quotes_are_written_and_read(tokens, separator):
    file = io.StringIO()
    labels = [["O"] * len(sequence) for sequence in tokens]
    write_conll(file, tokens, labels, separator=separator)
    assert read_conll(io.StringIO(file.getvalue()), separator=separator) == (tokens, labels)


def test_a_field_that_the_csv_module_does_not_read_is_named():
    large = "x" * 140_000
    with pytest.raises(ValueError, match=r"line 2.*field larger than field limit"):
        read_conll(['"a",O', f'"{large}",O'], separator=",")
    with pytest.raises(ValueError, match="field larger than field limit"):
        write_conll(io.StringIO(), [[large + ","]], [["O"]], separator=",")
