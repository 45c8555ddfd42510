"""CoNLL-U files: what counts as a word, and files written again; column files written."""

import gc
import io
import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skstruct import CRFTagger
from skstruct.datasets import iter_conll, read_conll, read_conllu, write_conll, write_conllu

SENTENCES = """\
# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\tNote=x y
1\tvamos\tir\tVERB\t_\tMood=Imp\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\t_\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_

# text = Ana come y Eva también
1\tAna\tAna\tPROPN\tNNP\t_\t2\tnsubj\t_\t_
2\tcome\tcomer\tVERB\tVB\t_\t0\troot\t_\t_
3\ty\ty\tCCONJ\t_\t_\t4\tcc\t_\t_
4\tEva\tEva\tPROPN\tNNP\t_\t2\tconj\t_\t_
4.1\tcome\tcomer\tVERB\tVB\t_\t_\t_\t2:conj\t_
5\ttambién\ttambién\tADV\t_\t_\t4\torphan\t_\t_
6\t_\t_\tSYM\t_\t_\t4\tpunct\t_\t_

"""
WORDS = [["vamos", "nos", "a", "el", "mar"], ["Ana", "come", "y", "Eva", "también", "_"]]
TAGS = [
    ["VERB", "PRON", "ADP", None, "NOUN"],
    ["PROPN", "VERB", "CCONJ", "PROPN", "ADV", "SYM"],
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "es.conllu"
    path.write_text(SENTENCES, encoding="utf-8")
    return path


def test_words_without_ranges_and_empty_nodes(path):
    assert read_conllu(path) == (WORDS, TAGS)
    assert read_conllu(io.StringIO(SENTENCES), label=None) == (WORDS, None)
    tokens, labels = read_conllu(path, columns=["form", "lemma"], label="xpos")
    assert tokens[0][0] == ("vamos", "ir")
    assert labels == [[None] * 5, ["NNP", "VB", None, "NNP", None, None]]


def test_a_missing_label_is_unknown(path):
    X, y = read_conllu(path)
    tagger = CRFTagger().fit([[[word] for word in sentence] for sentence in X], y)
    assert "_" not in tagger.classes_


def test_the_words_of_the_package_conllu(path):
    conllu = pytest.importorskip("conllu")
    sentences = conllu.parse(SENTENCES)
    words = [[w for w in sentence if isinstance(w["id"], int)] for sentence in sentences]
    columns = ("form", "lemma", "deprel")
    expected = [[tuple(word[name] for name in columns) for word in words_] for words_ in words]
    tokens, labels = read_conllu(path, columns=columns)
    assert tokens == expected
    assert labels == [
        [None if word["upos"] == "_" else word["upos"] for word in words_] for words_ in words
    ]


def test_writing_keeps_everything_else(path, tmp_path):
    again = tmp_path / "again.conllu"
    write_conllu(again, TAGS, like=path)
    assert again.read_text(encoding="utf-8") == SENTENCES
    others = [[f"X{t}" for t in range(len(sentence))] for sentence in WORDS]
    write_conllu(path, others, like=path, label="xpos")
    assert read_conllu(path, label="xpos") == (WORDS, others)
    assert read_conllu(path) == (WORDS, TAGS)
    text = path.read_text(encoding="utf-8")
    kept = [
        line for line in SENTENCES.splitlines() if not line[:2].strip("123456").startswith("\t")
    ]
    assert [line for line in text.splitlines() if line in kept] == kept


@given(st.lists(st.lists(st.sampled_from(["A", "B-x", None, "a b"]), min_size=1), min_size=1))
def test_conllu_round_trip(labels):
    lines = []
    for row in labels:
        lines += ["# a comment"] + [f"{t + 1}\tw{t}" + 8 * "\t_" for t in range(len(row))] + [""]
    file = io.StringIO()
    write_conllu(file, labels, like=lines, label="misc")
    assert read_conllu(file.getvalue().split("\n"), label="misc")[1] == labels


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (TAGS[:1], "There are 2 sequences of tokens, but labels for 1"),
        ([TAGS[0], TAGS[1][:2]], "Sequence 1 has 6 tokens, but 2 labels"),
        ([[*TAGS[0][:4], "a\tb"], TAGS[1]], "Sequence 0, token 4: the label"),
        ([[*TAGS[0][:4], ""], TAGS[1]], "Sequence 0, token 4: the label"),
        ([[*TAGS[0][:4], 3], TAGS[1]], "Sequence 0, token 4: the label 3"),
    ],
)
def test_bad_labels_change_no_file(path, labels, message):
    with pytest.raises(ValueError, match=message):
        write_conllu(path, labels, like=path)
    assert path.read_text(encoding="utf-8") == SENTENCES


def test_bad_files():
    with pytest.raises(ValueError, match="line 2: 3 columns, but 10 are expected, separated by t"):
        read_conllu(["# text", "1\ta\tb"])
    with pytest.raises(ValueError, match="'pos' is not a column of the file; they are id, form"):
        read_conllu(["1\ta"], label="pos")
    with pytest.raises(ValueError, match="the file has no tokens"):
        read_conllu(["1-2\ta" + 8 * "\t_"])


# Blanks of all kinds, characters that split lines elsewhere in Python, and those that some encoding
# lacks or takes for another.
CHARACTERS = "ab-#_ \t\r\n\0\u00a0\u2028\x1c\x85\x0b\x1f\x8b\u8b1f\ufeffé¥\ud800\udc80"
fields = st.one_of(
    st.text(st.sampled_from(CHARACTERS), max_size=3), st.sampled_from(["-DOCSTART-", "a", "é"])
)


@st.composite
def corpora(draw):
    """Tokens of one or two columns, and labels."""
    width = draw(st.integers(1, 2))
    row = st.tuples(*[fields] * width, st.one_of(fields, st.just("O")))
    sequences = draw(st.lists(st.lists(row, min_size=1, max_size=3), min_size=1, max_size=3))
    tokens = [[row[0] if width == 1 else row[:-1] for row in rows] for rows in sequences]
    return tokens, [[row[-1] for row in rows] for rows in sequences]


def plain_file(tokens, labels, separator, encoding):
    """Content of a column file, written without a check."""
    rows = [
        [[token] if isinstance(token, str) else token for token in sequence] for sequence in tokens
    ]
    lines = [
        [(separator or " ").join([*row, label]) for row, label in zip(part, given, strict=True)]
        for part, given in zip(rows, labels, strict=True)
    ]
    return "".join("".join(f"{line}\n" for line in part) + "\n" for part in lines).encode(encoding)


@settings(max_examples=200, deadline=None)
@given(
    corpus=corpora(),
    separator=st.sampled_from([None, "\t", "|", " "]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "shift_jis"]),
    reader=st.sampled_from([{}, {"comment": "#"}, {"skip_docstart": False}]),
)
def test_written_files_are_read_back(tmp_path_factory, corpus, separator, encoding, reader):
    path = tmp_path_factory.mktemp("written") / "a.txt"
    options = {"separator": separator, "encoding": encoding, **reader}
    try:
        path.write_bytes(plain_file(*corpus, separator, encoding))
        readable = read_conll(path, **options) == corpus
    except ValueError:
        readable = False
    path.write_text("as it was")
    if readable:
        write_conll(path, *corpus, **options)
        assert read_conll(path, **options) == corpus
        return
    with pytest.raises(ValueError, match=r"^Sequence \d+, token \d+: .* could not be read back"):
        write_conll(path, *corpus, **options)
    assert path.read_text() == "as it was"


@pytest.mark.parametrize(
    ("tokens", "options", "message"),
    [
        ([["a"], ["b", "-DOCSTART-"]], {}, "Sequence 1, token 1: .* pass skip_docstart=False"),
        ([["\ufeffa"]], {}, "Sequence 0, token 0: .* a byte order mark is dropped"),
        ([["a"], ["#"]], {"comment": "#"}, "Sequence 1, token 0: .* comments that begin with '#'"),
        ([["a"], ["\ud800"]], {}, "Sequence 1, token 0: .* could not be read back .* in utf-8"),
        ([["a"], ["€"]], {"encoding": "latin-1"}, "Sequence 1, token 0: .* choose another enc"),
        ([["\x1f\x8b"]], {"encoding": "latin-1"}, "Sequence 0, token 0: .* could not be read"),
        ([["a"], ["¥"]], {"encoding": "shift_jis"}, "Sequence 1, token 0: .* could not be read"),
        ([["a", "b\r"]], {}, "Sequence 0, token 1: .* could not be read back"),
        ([["a", ""]], {}, "Sequence 0, token 1: .* could not be read back"),
        ([[()]], {}, r"Sequence 0, token 0: \[\] could not be read back"),
        ([], {}, "There is no sequence"),
        (["He", "is"], {}, r"tokens\[0\] is 'He', but a list of sequences is expected"),
        ([["a"], None], {}, r"tokens\[1\] is None, but a list of sequences is expected"),
        ([["a", {"word": "a"}]], {}, "Sequence 0, token 1: .* is neither a string nor a tuple"),
        ([["a", 3]], {}, "Sequence 0, token 1: 3 is neither a string nor a tuple"),
    ],
)
def test_what_cannot_be_written(tmp_path, tokens, options, message):
    path = tmp_path / "a.txt"
    with pytest.raises(ValueError, match=message):
        write_conll(path, tokens, **options)
    assert not path.exists()


def test_labels_of_a_flat_list():
    with pytest.raises(
        ValueError, match=r"labels\[0\] is 'O', but a list of sequences is expected"
    ):
        write_conll(io.StringIO(), [["a"], ["b"]], ["O", "O"])
    with pytest.raises(
        ValueError, match=r"labels\[0\] is 'O', but a list of sequences is expected"
    ):
        write_conllu(io.StringIO(), ["O"], like=["1\tgo" + 8 * "\t_"])


def test_file_objects_have_their_own_encoding(tmp_path):
    with open(tmp_path / "a.txt", "w", encoding="latin-1") as file:
        with pytest.raises(ValueError, match=r"Sequence 1, token 0: .* in latin-1"):
            write_conll(file, [["é"], ["€"]])
        write_conll(file, [["é"]], [["O"]])
    assert read_conll(tmp_path / "a.txt", encoding="latin-1") == ([["é"]], [["O"]])
    with (
        open(tmp_path / "b.txt", "w", encoding="ascii", errors="replace") as file,
        pytest.raises(ValueError, match=r"Sequence 0, token 0: .* in ascii"),
    ):
        write_conll(file, [["é"]])


@settings(deadline=None)
@given(
    labels=st.lists(st.lists(st.one_of(fields, st.none()), min_size=1, max_size=3), min_size=1),
    column=st.sampled_from(["id", "form", "upos", "misc"]),
)
def test_written_treebanks_are_read_back(tmp_path_factory, labels, column):
    path = tmp_path_factory.mktemp("written") / "a.conllu"
    lines = []
    for row in labels:
        lines += ["# a comment"] + [f"{t + 1}\tw{t}" + 8 * "\t_" for t in range(len(row))] + [""]
    path.write_text("as it was")
    try:
        write_conllu(path, labels, like=lines[1:], label=column)
        message = ""
    except ValueError as error:
        message = str(error)
    if not message:
        assert read_conllu(path, columns="lemma", label=column)[1] == labels
        return
    assert path.read_text() == "as it was"
    place = re.match(r"Sequence (\d+), token (\d+): ", message)
    label = labels[int(place[1])][int(place[2])]
    odd = {"", "_", "\ufeff"} | set("#\t\r\n\ud800\udc80")
    assert not label.strip() or set(label) & odd or label[-1] == " " or label == "_"


def test_files_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    X, y = [[("He", "PRP"), ("is", "VBZ")], [("é", "UH")]], [["A", "B"], ["O"]]
    write_conll(path, X, y, encoding="latin-1")
    assert read_conll(path, encoding="latin-1") == (X, y)
    write_conll(path, X)
    assert read_conll(path, label=None) == (X, None)
    for bad, message in [
        ([[("a", "b"), ("c",)]], "Sequence 0, token 1: 1 columns, but 2 before"),
        ([["a"], []], "Sequence 1 is empty"),
        ([["a"], ["b\n"]], "Sequence 1, token 0"),
        ([["a"], [(3.5,)]], "Sequence 1, token 0: 3.5 is not a string"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_conll(path, bad)
        assert read_conll(path, label=None) == (X, None)
    with pytest.raises(ValueError, match="Sequence 0 has 2 tokens, but 1 labels"):
        write_conll(path, X, [["A"], ["B"]])
    with pytest.raises(ValueError, match="2 sequences of tokens, but labels for 1"):
        write_conll(path, X, [["A"]])


@pytest.mark.parametrize("read", [read_conll, read_conllu, lambda path: list(iter_conll(path))])
def test_files_are_closed_after_errors(tmp_path, monkeypatch, read):
    path, opened = tmp_path / "bad.txt", []
    path.write_text("a b\nc d e\n" + "f g\n" * 50_000)

    def open_and_note(*args, _open=open):
        opened.append(_open(*args))
        return opened[-1]

    with warnings.catch_warnings(), monkeypatch.context() as patch:
        warnings.simplefilter("error", ResourceWarning)
        patch.setattr("builtins.open", open_and_note)
        with pytest.raises(ValueError, match="line"):
            read(path)
        gc.collect()
    assert [file.closed for file in opened] == [True]


def test_a_file_is_closed_when_reading_stops_early(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b\n\n" * 50_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        sequences = iter_conll(path)
        assert next(sequences) == (["a"], ["b"])
        sequences.close()
        gc.collect()


# ------------------------------------------------------------------------------------ CoNLL-U Plus


def test_columns_of_conllu_plus_have_the_names_of_the_first_line(tmp_path):
    lines = [
        "# global.columns = ID FORM UPOS PARSEME:MWE",
        "# text = take place",
        "1-2\ttakeplace\t_\t_",
        "1\ttake\tVERB\t1:VID",
        "2\tplace\tNOUN\t_",
        "",
    ]
    assert read_conllu(lines) == ([["take", "place"]], [["VERB", "NOUN"]])
    found = read_conllu(lines, columns=("form", "UPOS"), label="parseme:mwe")
    assert found == ([[("take", "VERB"), ("place", "NOUN")]], [["1:VID", None]])
    with pytest.raises(ValueError, match="'lemma' is not a column of the file; they are id, form"):
        read_conllu(lines, columns="lemma")
    path = tmp_path / "plus.cupt"
    write_conllu(path, [["A", None]], like=lines, label="parseme:mwe")
    assert path.read_text().splitlines()[3:5] == ["1\ttake\tVERB\tA", "2\tplace\tNOUN\t_"]
    path.write_text("\n".join([*lines, "1\ta\tb"]))
    with pytest.raises(ValueError, match=r"plus.cupt, line 7: 3 columns, but line 4 has 4"):
        read_conllu(path)
