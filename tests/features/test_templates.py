import enum
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from skstruct import (
    CRFTagger,
    PerceptronTagger,
    SequenceBatch,
    SequenceVectorizer,
)
from skstruct.datasets import load_addresses, read_conll
from skstruct.templates import HashingTemplateVectorizer, TemplateVectorizer, numbering
from skstruct.templates.reader import plan_of

X_SMALL = [
    [("the", "DT"), ("cat", "NN"), ("sat", "VBD")],
    [],
    [("the", "DT"), ("Dog2", "NN")],
    [("cat", "NN")],
]

# The 19 templates of text chunking: windows of words and parts of speech.
CHUNKING = [f"U0{i + 2}:%x[{i},0]" for i in range(-2, 3)]
CHUNKING += ["U05:%x[-1,0]/%x[0,0]", "U06:%x[0,0]/%x[1,0]"]
CHUNKING += [f"U1{i + 2}:%x[{i},1]" for i in range(-2, 3)]
CHUNKING += [f"U1{i + 7}:%x[{i},1]/%x[{i + 1},1]" for i in range(-2, 2)]
CHUNKING += [f"U2{i + 2}:%x[{i},1]/%x[{i + 1},1]/%x[{i + 2},1]" for i in range(-2, 1)]


# The naive twin: names, token by token, for the vectoriser of attribute strings to count.


def naive_value(sequence, place, column):
    if place < 0:
        return f"_B{place}"
    if place >= len(sequence):
        return f"_B+{place - len(sequence) + 1}"
    token = sequence[place]
    return str(token if isinstance(token, str) else token[column])


def naive_name(line, sequence, t):
    def fill(match):
        return naive_value(sequence, t + int(match[1]), int(match[2]))

    return re.sub(r"%x\[([-+]?\d+),(\d+)\]", fill, line)


def naive_attributes(lines, X, kinds="U"):
    lines = [line for line in lines if line[0] in kinds]
    return [[[naive_name(line, s, t) for line in lines] for t in range(len(s))] for s in X]


def assert_same_by_name(batch, names, expected):
    """The same matrix as `expected`, but for the order of columns."""
    names = list(names)
    assert sorted(names) == list(expected.feature_names)
    columns = np.argsort(np.array(names, dtype=object))
    np.testing.assert_array_equal(batch.offsets, expected.offsets)
    assert (batch.X[:, columns] != expected.X).nnz == 0
    assert batch.X.has_canonical_format
    assert sp.csr_matrix(batch.X).indices.dtype == np.int32


def check_against_twin(lines, X_train, X_test, min_freq=1):
    reference = SequenceVectorizer(min_freq=min_freq)
    vectorizer = TemplateVectorizer(lines, min_freq=min_freq)
    expected = reference.fit_transform(naive_attributes(lines, X_train))
    batch = vectorizer.fit_transform(X_train)
    names = vectorizer.get_feature_names_out()
    assert_same_by_name(batch, names, expected)
    assert_same_by_name(vectorizer.transform(X_train), names, expected)
    for X in (X_test, X_train + X_test):
        expected = reference.transform(naive_attributes(lines, X))
        batch = vectorizer.transform(X)
        assert_same_by_name(batch, names, expected)
        assert vectorizer.inverse_transform(batch) == reference.inverse_transform(expected)


# Values and texts that can be cut in more than one way, or be mistaken for boundaries.
values = st.sampled_from(["a", "b", "a/", "/b", "/", "", "ab", "1", "_B-1", "_B+1", "é\U0001f600"])
macros = st.builds("%x[{},{}]".format, st.integers(-3, 3), st.integers(0, 1))
texts = st.sampled_from(["", "/", "1", "a", ":"])
template_lines = st.builds(
    lambda start, parts: "U" + start + "".join(macro + text for macro, text in parts),
    texts,
    st.lists(st.tuples(macros, texts), max_size=3),
)
templates = st.lists(template_lines, min_size=1, max_size=5).map(lambda lines: [*lines, "B"])
sequences = st.lists(st.tuples(values, values), max_size=5)
batches = st.lists(sequences, min_size=1, max_size=4)


@given(lines=templates, X_train=batches, X_test=batches, min_freq=st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_matches_the_naive_twin(lines, X_train, X_test, min_freq):
    counts = Counter(
        name for s in naive_attributes(lines, X_train) for token in s for name in set(token)
    )
    assume(any(n >= min_freq for n in counts.values()))
    check_against_twin(lines, X_train, X_test, min_freq)


@given(lines=templates, X_train=batches, X_test=batches)
@settings(max_examples=100, deadline=None)
def test_features_whose_hashes_collide_are_told_apart(lines, X_train, X_test):
    assume(any(X_train))
    hashes = numbering._BYTE_HASHES
    try:
        # All names of one length have the same hash.
        numbering._BYTE_HASHES = np.full(256, 7, np.uint64)
        plan_of.cache_clear()
        check_against_twin(lines, X_train, X_test)
    finally:
        numbering._BYTE_HASHES = hashes
        plan_of.cache_clear()


def test_templates_with_many_parts():
    # More combinations than a 64-bit number can tell apart.
    window = "/".join(f"%x[{i},0]" for i in range(-20, 21))
    rng = np.random.default_rng(0)
    X = [[(c,) for c in rng.choice(list("abcd"), size=n)] for n in (30, 1, 30, 7)]
    check_against_twin([f"U:{window}", "U1:%x[0,0]"], X + X[:1], [X[1], X[2][3:]])


@pytest.mark.slow
@pytest.mark.skipif("SKSTRUCT_DATA" not in os.environ, reason="needs the data")
def test_conll2000_exactly():
    folder = Path(os.environ["SKSTRUCT_DATA"]) / "conll2000"
    X_train, X_test = (read_conll(folder / f"{part}.txt.gz")[0] for part in ("train", "test"))
    check_against_twin(CHUNKING, X_train[:2000], X_test[:500])
    check_against_twin(CHUNKING, X_train[:1000], X_test[:200], min_freq=3)


# Formats of tokens.


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_change_nothing(n_jobs):
    words = np.random.default_rng(0).integers(500, size=(300, 20)).astype(str).tolist()
    template = [*CHUNKING[:7], "B01:%x[0,0]", "U:%x[0,0|suffix1]"]
    for vectorizer in (TemplateVectorizer(template), HashingTemplateVectorizer(template)):
        vectorizer.fit(words[:200])
        expected = vectorizer.transform(words)
        found = vectorizer.set_params(n_jobs=n_jobs).transform(words)
        assert (found.X != expected.X).nnz == 0
        assert (found.transition_X != expected.transition_X).nnz == 0
        assert vectorizer.transform([[], []]).n_rows == 0


def test_forms_of_input_are_the_same():
    lines = ["U0:%x[-1,0]/%x[0,0]", "U1:%x[1,1]"]
    expected = TemplateVectorizer(lines).fit_transform(X_SMALL)
    filled = [s for s in X_SMALL if s]
    for X in (
        (sequence for sequence in X_SMALL),
        [[list(token) for token in sequence] for sequence in X_SMALL],
        tuple(map(tuple, X_SMALL)),
        [pd.DataFrame(sequence, columns=["word", "pos"]) for sequence in X_SMALL],
        [(iter(sequence)) for sequence in X_SMALL],
        [np.array(sequence, dtype=object).reshape(-1, 2) for sequence in X_SMALL],
        [[np.array(token) for token in sequence] for sequence in X_SMALL],
    ):
        vectorizer = TemplateVectorizer(lines)
        batch = vectorizer.fit_transform(X)
        assert joblib.hash(batch) == joblib.hash(expected)
        assert joblib.hash(vectorizer.transform(filled)) == joblib.hash(
            TemplateVectorizer(lines).fit_transform(filled)
        )


def test_a_token_of_one_column_is_its_string():
    words = [[word for word, _ in sequence] for sequence in X_SMALL]
    tuples = [[(word,) for word in sequence] for sequence in words]
    lines = ["U:%x[0,0]", "U1:%x[-1,0]"]
    for X in (tuples, words):
        vectorizer = TemplateVectorizer(lines).fit(X)
        assert vectorizer.n_columns_ == 1
        names = [[sorted(token) for token in s] for s in naive_attributes(lines, words)]
        for again in (tuples, words):
            inverse = vectorizer.inverse_transform(vectorizer.transform(again))
            assert [[sorted(token) for token in s] for s in inverse] == names


class Tag(str, enum.Enum):  # noqa: UP042 - its str is not its value
    NOUN = "noun"


def test_values_are_what_str_makes_of_them():
    tokens = [("a", 1), ("a", True), ("a", np.int64(2)), ("a", np.bool_(False)), ("a", "1")]
    tokens += [(Tag.NOUN, np.str_("x"))]
    vectorizer = TemplateVectorizer(["U:%x[0,0]=%x[0,1]"])
    found = vectorizer.inverse_transform(vectorizer.fit_transform([tokens]))
    names = ["U:a=1", "U:a=True", "U:a=2", "U:a=False", "U:a=1", "U:noun=x"]
    assert found == [[{name: 1.0} for name in names]]
    assert {type(name) for name in vectorizer.get_feature_names_out()} == {str}


def test_columns_do_not_depend_on_the_order_of_sequences():
    forward = TemplateVectorizer(CHUNKING).fit(X_SMALL)
    backward = TemplateVectorizer(CHUNKING).fit(X_SMALL[::-1])
    names = forward.get_feature_names_out()
    assert list(names) == list(backward.get_feature_names_out())
    # By line, and within a line by values.
    assert list(names) == sorted(names)
    assert joblib.hash(forward.transform(X_SMALL)) == joblib.hash(backward.transform(X_SMALL))


def test_more_sequences_than_are_read_at_a_time():
    X = [[f"w{i % 700}", f"v{i % 11}"] for i in range(9000)]
    check_against_twin(["U0:%x[0,0]/%x[1,0]", "U1:%x[-1,0]"], X, X[:10])
    X[8999] = ["a", None]
    with pytest.raises(ValueError, match="Sequence 8999, token 1: None is not a valid token"):
        TemplateVectorizer("U:%x[0,0]").fit(iter(X))


# Templates.


def test_sources_of_templates(tmp_path):
    text = "# Unigrams\n\nU0:%x[-1,0]/%x[0,0]\n  U1:%x[1,1]  # next\nB\n"
    path = tmp_path / "template.txt"
    path.write_text(text, "utf-8")
    lines = ["U0:%x[-1,0]/%x[0,0]", "U1:%x[1,1]"]
    expected = TemplateVectorizer(lines).fit(X_SMALL).get_feature_names_out()
    for template in (text, path, str(path), tuple(lines), text.splitlines()):
        vectorizer = TemplateVectorizer(template).fit(X_SMALL)
        assert list(vectorizer.get_feature_names_out()) == list(expected)


def names_of(line, X, **params):
    """Names at each token, of a template of one line."""
    vectorizer = TemplateVectorizer([line], **params)
    tokens = vectorizer.inverse_transform(vectorizer.fit_transform(X))
    return [[next(iter(token), None) for token in sequence] for sequence in tokens]


@pytest.mark.parametrize(
    ("macro", "expected"),
    [
        ("%x[0,0|lower]", ["the", "mcgill-99", "élan!"]),
        ("%X[0,0]", ["the", "mcgill-99", "élan!"]),
        ("%x[0,0|shape]", ["Xxx", "XxXxxx-dd", "Xxxx!"]),
        ("%x[0,0|shortshape]", ["Xx", "XxXx-d", "Xx!"]),
        ("%x[0,0|digits]", ["The", "McGill-00", "Élan!"]),
        ("%x[0,0|length]", ["3", "9", "5"]),
        ("%x[0,0|prefix2]", ["Th", "Mc", "Él"]),
        ("%x[ 0 , 0 | lower | suffix4 ]", ["the", "l-99", "lan!"]),
        ("%x[-1,0|suffix1]", ["_B-1", "e", "9"]),
        ("%X[+1,0]", ["mcgill-99", "élan!", "_B+1"]),
        ("%x[@1,0]", ["The", "The", "The"]),
        ("%x[@-1,0|lower]", ["élan!", "élan!", "élan!"]),
        ("%x[@-4,0]", ["_B-1", "_B-1", "_B-1"]),
        ("%x[@5,0]", ["_B+2", "_B+2", "_B+2"]),
        (r'%m[0,0,"\d\d*$"]', ["", "99", ""]),
        (r'%m[0,0,"^.?.?"]', ["Th", "Mc", "Él"]),
        (r'%m[0,0,"^\u\l"]', ["Th", "Mc", "Él"]),
        (r'%M[0,0,"^\u\l*\u"]', ["", "mcg", ""]),
        (r'%m[0,0,"\p"]', ["", "-", "!"]),
        (r'%m[0,0,"\A"]', ["", "-", "!"]),
        (r'%m[0,0,"\U\L"]', ["", "cG", "n!"]),
        (r'%m[0,0,"\W\w"]', ["", "-9", ""]),
        (r'%m[0,0|lower,"^m*."]', ["t", "m", "é"]),
        (r'%t[0,0,"^\u\a*$"]', ["true", "false", "false"]),
        (r'%t[-1,0,"\d$"]', ["_B-1", "false", "true"]),
        (r'%t[0,0,"#"]', ["false", "false", "false"]),
        (r'%t[0,0,"\-9"]', ["false", "true", "false"]),
        (r'%t[0,0,"l(.)"]', ["false", "false", "false"]),
    ],
)
def test_macros(macro, expected):
    X = [["The", "McGill-99", "Élan!"]]
    assert names_of("U1:" + macro, X) == [["U1:" + value for value in expected]]
    assert names_of("u" + macro + "/%x[0,0]", X) == [
        [f"u{value}/{word}" for value, word in zip(expected, X[0], strict=True)]
    ]


def test_absolute_positions_in_short_and_empty_sequences():
    X = [["a", "b", "c"], [], ["d"]]
    assert names_of("U%x[@2,0]", X) == [["Ub"] * 3, [], ["U_B+1"]]
    assert names_of("U%x[@-2,0]", X) == [["Ub"] * 3, [], ["U_B-1"]]


def test_functions_of_the_user_see_each_value_once():
    seen = []

    def known(word):
        seen.append(word)
        return {"cat": "animal", "the": True, "sat": 3}.get(word)

    found = names_of("U:%x[0,0|known]/%x[1,0|known]", [["the", "cat", "sat", "the", "dog"]] * 3,
                     functions={"known": known})  # fmt: skip
    # No feature where the function returns None.
    assert found == [["U:True/animal", "U:animal/3", "U:3/True", None, None]] * 3
    assert sorted(seen) == ["cat", "dog", "sat", "the"]


def test_functions_are_called_again_only_for_new_values():
    seen = []

    def last(word):
        seen.append(word)
        return word[-1:]

    lines = ["U0:%x[0,0|last]", "U1:%x[-1,0|last|lower]/%x[0,0]", "U2:%x[0,1|suffix1]"]
    vectorizer = TemplateVectorizer(lines, functions={"last": last}).fit(X_SMALL)
    seen.clear()
    X = [[("the", "X"), ("dog", "DT")], [("Cat", "VBD"), ("dog", "NN")]]
    batch = vectorizer.transform(X)
    assert sorted(seen) == ["Cat", "Cat", "dog", "dog"]
    # Stored and loaded, it has forgotten what it called them for.
    loaded = pickle.loads(pickle.dumps(vectorizer.set_params(functions=None)))
    loaded.set_params(functions={"last": last})
    np.testing.assert_array_equal(loaded.transform(X).X.toarray(), batch.X.toarray())
    # Another function of the same name is not taken for the one before.
    loaded.set_params(functions={"last": lambda word: "t" if word == "the" else None})
    vectorizer.set_params(functions=loaded.functions)
    for v in (loaded, vectorizer):
        assert v.inverse_transform(v.transform([[("the", "X"), ("cat", "X")]])) == [
            [{"U0:t": 1.0, "U1:_B-1/the": 1.0}, {}]
        ]


@given(X_train=batches, X_test=batches, min_freq=st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_what_functions_made_is_remembered_right(X_train, X_test, min_freq):
    lines = ["U0:%x[0,0|prefix1]", "U1:%x[-1,0|suffix1]/%x[0,0|odd]", "U2:%x[1,1]"]
    functions = {"odd": lambda value: len(value) if len(value) % 2 else None}
    vectorizer = TemplateVectorizer(lines, functions=functions, min_freq=min_freq)
    try:
        vectorizer.fit(X_train)
    except ValueError:
        assume(False)
    forgetful = TemplateVectorizer(lines, functions=functions, min_freq=min_freq)
    forgetful.__setstate__({**vectorizer.__getstate__(), "functions": functions})
    expected = forgetful.transform(X_train + X_test).X.toarray()
    np.testing.assert_array_equal(vectorizer.transform(X_train + X_test).X.toarray(), expected)


def test_functions_of_the_user_come_before_the_ready_ones():
    assert names_of("U:%x[0,0|lower]", [["A"]], functions={"lower": lambda word: word * 2}) == [
        ["U:AA"]
    ]


def test_functions_apply_to_unseen_words():
    vectorizer = TemplateVectorizer("U0:%x[0,0|suffix2]\nU1:%x[0,0]").fit([["walking", "sat"]])
    batch = vectorizer.transform([["talking", "bat", "sat"]])
    assert vectorizer.inverse_transform(batch) == [
        [{"U0:ng": 1.0}, {"U0:at": 1.0}, {"U0:at": 1.0, "U1:sat": 1.0}]
    ]


def test_lines_with_the_same_text_count_together():
    batch = TemplateVectorizer(["U:%x[-1,0]", "U:%x[0,0]", "U:%x[0,1]"]).fit_transform(
        [[("a", "a"), ("a", "b")]]
    )
    # a, b and the boundary
    assert sorted(batch.X.toarray().ravel().tolist()) == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_default_template(n_columns):
    X = [[("Cats", "N", "x")[:n_columns], ("sleep", "V", "y")[:n_columns]]]
    vectorizer = TemplateVectorizer().fit(X)
    names = set(vectorizer.get_feature_names_out())
    assert {"UW-1:Cats", "UW+0+1:Cats/sleep", "US+0:Xxxx", "Usuffix3:eep"} <= names
    assert ("UC1-1+0:N/V" in names) == (n_columns > 1)
    assert ("UC2+0+1+2:x/y/_B+1" in names) == (n_columns > 2)
    written = TemplateVectorizer(vectorizer.template_)
    assert joblib.hash(written.fit_transform(X)) == joblib.hash(vectorizer.transform(X))


BAD_TEMPLATES = {
    "type": (["# fine", "X00:%x[0,0]"], "Template line 2, 'X00:%x[0,0]': a line must start with"),
    "no file": ("unigrams.txt", "template 'unigrams.txt' has no macro such as"),
    "macro": ("U:%x[0]", "Template line 1, 'U:%x[0]': cannot read '%x[0]'; expected %x[row,"),
    "command": ("U:%z[0,0]", "cannot read '%z[0,0]'"),
    "indirect": ("U:%x[*0,0]", "cannot read '%x[*0,0]'"),
    "negative column": ("U:%x[0,-1]", "cannot read '%x[0,-1]'"),
    "percent": ("U:100%", "cannot read '%'"),
    "no pattern": ("U:%m[0,0]", "'%m[0,0]' needs a pattern in quotes"),
    "pattern": ('U:%x[0,0,"a"]', "takes no pattern"),
    "star": ('U:%t[0,0,"^*"]', "nothing to repeat before '*' in the pattern '^*'"),
    "stars": ('U:%t[0,0,"a**"]', "nothing to repeat before '*' in the pattern 'a**'"),
    "absolute": ("U:%x[@0,0]", "absolute positions count from 1, or from -1 at the end"),
    "no column": ("U0:%x[0,1]\nU1:%x[0,2]", "Template line 2, 'U1:%x[0,2]': there is no column 2; "
                  "tokens have 2 column(s), counted from 0."),
    "function": ("U:%x[0,0|stem]", "unknown function 'stem'; known are digits, fail, length"),
    "prefix": ("U:%x[0,0|prefix0]", "unknown function 'prefix0'"),
    "result": ("U:%x[0,0|fail]", "Template line 1, 'U:%x[0,0|fail]': 'fail' returned 0.5"),
    "observed": ("U%x[0,0]\nB:%x[0,2]", "Template line 2, 'B:%x[0,2]': there is no column 2"),
    "observed alone": ("B01:%x[0,0]", "The template has no line that makes features"),
    "empty": ("# nothing\n", "The template has no line that makes features"),
    "only pairs": (["B"], "The template has no line that makes features"),
    "number": (3, "template must be a string, the path of a file or a list of strings, got 3"),
    "numbers": ([3], "template must be a string, the path of a file or a list of strings"),
}  # fmt: skip


def fail(word):
    return 0.5


@pytest.mark.parametrize("vectorizer_type", [TemplateVectorizer, HashingTemplateVectorizer])
@pytest.mark.parametrize(("template", "message"), BAD_TEMPLATES.values(), ids=BAD_TEMPLATES)
def test_bad_templates_are_named(template, message, vectorizer_type):
    vectorizer = vectorizer_type(template, functions={"fail": fail})
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        vectorizer.fit(X_SMALL).transform(X_SMALL)
    assert message in str(caught.value)


def test_a_missing_file():
    with pytest.raises(FileNotFoundError, match=r"missing\.txt"):
        TemplateVectorizer(Path("missing.txt")).fit(X_SMALL)


# Bad input.

BAD_BATCHES = {
    "empty": ([], "Found an empty batch: at least one sequence is required."),
    "generator": (iter([]), "Found an empty batch: at least one sequence is required."),
    "string": ("ab", "X is 'ab'; expected a list of sequences."),
    "None": (None, "X is None; expected a list of sequences."),
    "frame": (pd.DataFrame({"a": ["b"]}), "expected a list of sequences."),
    "flat": ([("a", "b")], "okens have 1 column(s), "),
    "strings": (["the", "cat"], "Sequence 0 is 'the'; expected a list of tokens."),
    "number": ([[("a", "b")], 3], "Sequence 1 is 3; expected a list of tokens."),
    "dict": ([[("a", "b"), {"a": "b"}]],
             "Sequence 0, token 1: {'a': 'b'} is a dict; expected a string or a tuple"),
    "none": ([[("a", "b")], [None]], "Sequence 1, token 0: None is not a valid token; expected"),
    "ragged": ([[("a", "b")], [], [("c", "d"), ("e",)]], "Sequence 2, token 1: the token ('e',) "
               "has 1 column(s), but the first token has 2."),
    "mixed": ([[("a", "b"), "cd"]], "Sequence 0, token 1: the token ('cd',) has 1 column(s)"),
    "no column": ([[()]], "Sequence 0, token 0: the token has no columns."),
    "None value": ([[("a", "b")], [], [("a", "b"), (None, "b")]],
                   "Sequence 2, token 1: column 0 is None; expected a string or an integer."),
    "float": ([[("a", "b"), (1.0, "b")]], "Sequence 0, token 1: column 0 is 1.0; expected"),
    "nan": ([pd.DataFrame({"w": ["a", np.nan], "p": ["b", "c"]})],
            "Sequence 0, token 1: column 0 is nan; expected a string or an integer."),
    "bytes": ([[(b"a", "b")]], "Sequence 0, token 0: column 0 is b'a'; expected"),
    "list": ([[(["a"], "b")]], "Sequence 0, token 0: column 0 is ['a']; expected"),
}  # fmt: skip


@pytest.mark.parametrize(("X", "message"), BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_bad_input_is_named(X, message):
    lines = ["U:%x[0,0]", "U1:%x[0,1]"]
    fitted = TemplateVectorizer(lines).fit(X_SMALL)
    hashing = HashingTemplateVectorizer(lines)
    for method in (TemplateVectorizer(lines).fit, fitted.transform, hashing.transform):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            method(X)
        assert message in str(caught.value)


def test_transform_wants_as_many_columns_as_fit():
    vectorizer = TemplateVectorizer("U:%x[0,0]").fit(X_SMALL)
    with pytest.raises(ValueError, match=r"Tokens have 1 column\(s\), but .* was fitted on 2"):
        vectorizer.transform([["a"]])


def test_columns_that_no_template_uses_are_not_looked_at():
    assert names_of("U:%x[0,0]", [[("a", None), ("b", 0.5)]]) == [["U:a", "U:b"]]


@pytest.mark.parametrize(("X", "min_freq"), [([[]], 1), (X_SMALL, 3)])
def test_nothing_to_learn(X, min_freq):
    with pytest.raises(ValueError, match=r"Found no token|No feature occurs in at least 3"):
        TemplateVectorizer(["U:%x[0,0]"], min_freq=min_freq).fit(X)


def test_empty_sequences_are_kept():
    for vectorizer in (TemplateVectorizer().fit(X_SMALL), HashingTemplateVectorizer()):
        batch = vectorizer.transform([[], []])
        assert batch.lengths.tolist() == [0, 0]
        assert batch.X.shape == (0, vectorizer.transform(X_SMALL).n_features)
        assert vectorizer.transform([[], X_SMALL[0], []]).lengths.tolist() == [0, 3, 0]


@pytest.mark.parametrize(
    "params", [{"min_freq": 0}, {"min_freq": 1.5}, {"dtype": int}, {"functions": [str.lower]}]
)
def test_bad_parameters(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        TemplateVectorizer(**params).fit(X_SMALL)


@pytest.mark.parametrize("method", ["transform", "inverse_transform", "get_feature_names_out"])
def test_unfitted(method):
    with pytest.raises(NotFittedError):
        getattr(TemplateVectorizer(), method)([])


@pytest.mark.parametrize("X", [[["new"], [None]], [], [[]]])
def test_a_failed_fit_changes_nothing(X):
    vectorizer = TemplateVectorizer().fit(X_SMALL)
    before = joblib.hash(vectorizer)
    with pytest.raises(ValueError, match=r"column 0|not a valid token|Found no token|empty batch"):
        vectorizer.fit(X)
    assert joblib.hash(vectorizer) == before


def test_inverse_transform_of_something_else():
    vectorizer = TemplateVectorizer().fit(X_SMALL)
    n = vectorizer.n_features_
    for batch in (SequenceBatch(np.ones((2, n + 1)), [0, 2]), np.ones((2, n))):
        with pytest.raises(ValueError, match=f"Expected a SequenceBatch of {n} features, got"):
            vectorizer.inverse_transform(batch)


# The hashing vectoriser.


def naive_column(name, n_features):
    """The column of a name, from the name itself."""
    mask = 2**64 - 1
    h = 0
    for byte in name.encode("utf-8"):
        h = (h * 0x9E3779B97F4A7C55 + int(numbering._BYTE_HASHES[byte])) & mask
    for _ in range(2):
        h = ((h ^ (h >> 32)) * 0xD6E8FEB86659FD93) & mask
    h ^= h >> 32
    return (h >> 32) * n_features >> 32


@given(lines=templates, X=batches, n_features=st.sampled_from([1, 7, 1000, 2**20]))
@settings(max_examples=60, deadline=None)
def test_hashed_columns_follow_from_names(lines, X, n_features):
    batch = HashingTemplateVectorizer(lines, n_features=n_features).transform(X)
    assert batch.X.has_canonical_format
    expected = np.zeros((batch.n_rows, n_features)) if n_features <= 1000 else None
    tokens = [token for s in naive_attributes(lines, X) for token in s]
    for r, token in enumerate(tokens):
        columns = Counter(naive_column(name, n_features) for name in token)
        row = batch.X[r]
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == columns
        if expected is not None:
            expected[r, list(columns)] = list(columns.values())
    if expected is not None:
        np.testing.assert_array_equal(batch.X.toarray(), expected)


def test_hashed_columns_are_spread_evenly():
    X = [[f"word{i}" for i in range(20_000)]]
    batch = HashingTemplateVectorizer("U:%x[0,0]", n_features=1000).transform(X)
    counts = np.bincount(batch.X.indices, minlength=1000)
    # Chi-squared with 999 degrees of freedom: five standard deviations around its mean.
    assert abs(((counts - 20) ** 2 / 20).sum() - 999) < 5 * np.sqrt(2 * 999)


@pytest.mark.slow
def test_hashed_columns_do_not_depend_on_the_process():
    code = (
        "import joblib; from skstruct.templates import HashingTemplateVectorizer as V;"
        "print(joblib.hash(V().transform([[('the', 'DT'), ('cat', 'NN')], [('é', 'X')]])))"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(hashes) == 1
    assert re.fullmatch(r"\w{32}\n", hashes.pop())


def test_hashed_batches_made_separately_fit_together():
    vectorizer = HashingTemplateVectorizer(CHUNKING, n_features=5000)
    parts = [vectorizer.partial_fit().transform([sequence]) for sequence in X_SMALL]
    whole = vectorizer.fit_transform(X_SMALL)
    assert joblib.hash(SequenceBatch.concatenate(parts)) == joblib.hash(whole)


@pytest.mark.parametrize("n_features", [0, 2**31, 10.0])
def test_bad_number_of_columns(n_features):
    with pytest.raises(ValueError, match="n_features"):
        HashingTemplateVectorizer(n_features=n_features).transform(X_SMALL)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_learner_of_streams():
    X, y = load_addresses(return_X_y=True)
    vectorizer = HashingTemplateVectorizer(n_features=2**16)
    tagger = PerceptronTagger(max_iter=5, random_state=0)
    classes = sorted({label for labels in y for label in labels})
    for _ in range(5):
        for start in range(0, 200, 50):
            batch = vectorizer.transform(X[start : start + 50])
            tagger.partial_fit(batch, y[start : start + 50], classes=classes)
    assert tagger.score(vectorizer.transform(X[200:300]), y[200:300]) > 0.7


# Among scikit-learn's tools.


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_tunes_the_template():
    X, y = load_addresses(return_X_y=True)
    X, y = X[:150], y[:150]
    pipeline = make_pipeline(TemplateVectorizer(), PerceptronTagger(max_iter=3, random_state=0))
    templates = ["U0:%x[0,0]", "U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[1,0]\nU3:%x[0,0|shape]", None]
    grid = {"templatevectorizer__template": templates, "templatevectorizer__min_freq": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=KFold(3), error_score="raise").fit(X, y)
    scores = search.cv_results_["mean_test_score"].reshape(2, 3)
    for i, min_freq in enumerate((1, 2)):
        for j, template in enumerate(templates):
            expected = []
            for train, test in KFold(3).split(X):
                vectorizer = TemplateVectorizer(template, min_freq=min_freq)
                batch = vectorizer.fit_transform([X[k] for k in train])
                tagger = PerceptronTagger(max_iter=3, random_state=0)
                tagger.fit(batch, [y[k] for k in train])
                X_test = vectorizer.transform([X[k] for k in test])
                expected.append(tagger.score(X_test, [y[k] for k in test]))
            assert scores[i, j] == pytest.approx(np.mean(expected))
    # A word alone says less than a word and its surroundings.
    assert scores[0, 0] < scores[0, 1] < scores[0, 2]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pipeline_with_memory(tmp_path):
    X, y = load_addresses(return_X_y=True)
    scores = []
    for _ in range(2):
        pipeline = make_pipeline(
            TemplateVectorizer(),
            PerceptronTagger(max_iter=2, random_state=0),
            memory=joblib.Memory(tmp_path, verbose=0),
        )
        scores.append(pipeline.fit(X[:50], y[:50]).score(X[:50], y[:50]))
    assert scores[0] == scores[1] > 0.5


def test_clone_and_parameters():
    vectorizer = TemplateVectorizer(["U:%x[0,0]"], min_freq=2, dtype=np.float32).fit(X_SMALL)
    copy = clone(vectorizer)
    assert copy.get_params() == vectorizer.get_params()
    assert not hasattr(copy, "template_")
    batch = copy.fit_transform(X_SMALL)
    assert batch.X.dtype == np.float32
    assert joblib.hash(batch) == joblib.hash(vectorizer.transform(X_SMALL))


def test_pickle_keeps_everything_and_caches_nothing():
    vectorizer = TemplateVectorizer().fit(X_SMALL)
    before = joblib.hash(vectorizer)
    size = len(pickle.dumps(vectorizer))
    expected = vectorizer.transform(X_SMALL)
    assert len(pickle.dumps(vectorizer)) == size
    assert joblib.hash(vectorizer) == before
    copy = pickle.loads(pickle.dumps(vectorizer))
    assert joblib.hash(copy) == before
    assert joblib.hash(copy.transform(X_SMALL)) == joblib.hash(expected)


def test_fitting_again_forgets():
    vectorizer = TemplateVectorizer("U:%x[0,0]").fit([["a", "b"]])
    vectorizer.transform([["a"]])
    vectorizer.fit([["b", "c", "d"]])
    assert list(vectorizer.get_feature_names_out()) == ["U:b", "U:c", "U:d"]
    assert vectorizer.inverse_transform(vectorizer.transform([["a", "d"]])) == [[{}, {"U:d": 1.0}]]


def test_tags():
    assert TemplateVectorizer().__sklearn_tags__().requires_fit
    assert not HashingTemplateVectorizer().__sklearn_tags__().requires_fit


# Features of transitions.


def naive_transitions(lines, X):
    """Those of tokens, but for first tokens, which no transition leads to."""
    lines = [line for line in lines if "%" in line]
    found = naive_attributes(lines, X, "Bb*")
    return [[[], *sequence[1:]] if sequence else [] for sequence in found]


def transitions_of(batch):
    return SequenceBatch(batch.transition_X, batch.offsets)


observing = st.lists(
    st.builds(lambda kind, line: kind + line[1:], st.sampled_from("Bb*"), template_lines),
    min_size=1,
    max_size=4,
)


@given(lines=observing, X_train=batches, X_test=batches, min_freq=st.integers(1, 2))
@settings(max_examples=100, deadline=None)
def test_transition_features_match_the_naive_twin(lines, X_train, X_test, min_freq):
    assume(any(X_train) and any("%" in line for line in lines))
    # No other line makes features with these names.
    token_lines = ["U-words:%x[0,0]", *("U" + line[1:] for line in lines if line[0] == "*")]
    lines = ["U-words:%x[0,0]", *lines]
    vectorizer = TemplateVectorizer(lines, min_freq=min_freq)
    reference = SequenceVectorizer(min_freq=min_freq)
    tokens = naive_attributes(lines, X_train, "U*")
    counts = Counter(name for s in tokens for token in s for name in set(token))
    assume(any(n >= min_freq for n in counts.values()))
    batch = vectorizer.fit_transform(X_train)
    # The first matrix is what it would be without them.
    alone = TemplateVectorizer(token_lines, min_freq=min_freq).fit_transform(X_train)
    assert batch.n_features == alone.n_features == len(vectorizer.get_feature_names_out())
    assert batch.X.sum() == alone.X.sum()
    names = vectorizer.get_transition_feature_names_out()
    expected = naive_transitions(lines, X_train)
    counts = Counter(name for s in expected for token in s for name in set(token))
    assert sorted(names) == sorted(name for name, n in counts.items() if n >= min_freq)
    if len(names) == 0:
        assert batch.transition_X.shape == vectorizer.transform(X_train).transition_X.shape
        return
    assert_same_by_name(transitions_of(batch), names, reference.fit_transform(expected))
    for X in (X_train, X_test):
        expected = reference.transform(naive_transitions(lines, X))
        assert_same_by_name(transitions_of(vectorizer.transform(X)), names, expected)


@given(lines=observing, X=batches, n_columns=st.sampled_from([1, 7, 1000]))
@settings(max_examples=50, deadline=None)
def test_hashed_transition_features_follow_from_names(lines, X, n_columns):
    assume(any("%" in line for line in lines))
    vectorizer = HashingTemplateVectorizer(
        ["U:%x[0,0]", *lines], n_features=50, n_transition_features=n_columns
    )
    batch = vectorizer.transform(X)
    expected = np.zeros((batch.n_rows, n_columns))
    tokens = [token for s in naive_transitions(lines, X) for token in s]
    for r, token in enumerate(tokens):
        for name in token:
            expected[r, naive_column(name, n_columns)] += 1
    np.testing.assert_array_equal(batch.transition_X.toarray(), expected)
    assert batch.n_features == 50


@pytest.mark.parametrize("vectorizer_type", [TemplateVectorizer, HashingTemplateVectorizer])
def test_without_such_lines_there_is_no_second_matrix(vectorizer_type):
    for template in ("U:%x[0,0]\nB", "U:%x[0,0]\nB01", None):
        assert vectorizer_type(template).fit(X_SMALL).transform(X_SMALL).transition_X is None
    vectorizer = TemplateVectorizer("U:%x[0,0]\nB").fit(X_SMALL)
    assert vectorizer.get_transition_feature_names_out().shape == (0,)


def test_names_of_transition_features():
    vectorizer = TemplateVectorizer("U0:%x[0,0]\nB1:%x[-1,1]>%x[0,1|lower]").fit(X_SMALL)
    assert vectorizer.get_transition_feature_names_out().tolist() == ["B1:DT>nn", "B1:NN>vbd"]
    assert set(vectorizer.get_feature_names_out()) == {"U0:the", "U0:cat", "U0:sat", "U0:Dog2"}
    batch = vectorizer.transform(X_SMALL)
    assert batch.transition_X.toarray().tolist() == [
        [0, 0], [1, 0], [0, 1], [0, 0], [1, 0], [0, 0],
    ]  # fmt: skip
    tokens = vectorizer.inverse_transform(batch)
    assert tokens[0][1] == {"U0:cat": 1.0}


def test_sequences_of_one_token_show_no_transition():
    vectorizer = TemplateVectorizer("U0:%x[0,0]\nB1:%x[0,0]").fit([["a"], ["b"]])
    assert vectorizer.transform([["a", "b"]]).transition_X.shape == (2, 0)
    assert vectorizer.transform([[], []]).transition_X.shape == (0, 0)
    assert HashingTemplateVectorizer("U0:%x[0,0]\nB1:%x[0,0]").transform([[]]).n_rows == 0


def test_transition_features_are_forgotten_and_kept():
    vectorizer = TemplateVectorizer("U0:%x[0,0]\nB1:%x[0,0]").fit(X_SMALL)
    again = pickle.loads(pickle.dumps(vectorizer))
    assert joblib.hash(again.transform(X_SMALL)) == joblib.hash(vectorizer.transform(X_SMALL))
    size = len(pickle.dumps(vectorizer))
    vectorizer.transform(X_SMALL)
    assert len(pickle.dumps(vectorizer)) == size
    vectorizer.set_params(template="U0:%x[0,0]").fit(X_SMALL)
    assert vectorizer.transform(X_SMALL).transition_X is None


@pytest.mark.parametrize(
    "vectorizer",
    [TemplateVectorizer(), HashingTemplateVectorizer(n_features=64, n_transition_features=32)],
)
@pytest.mark.parametrize("tagger", [CRFTagger(l2=0.01), PerceptronTagger(random_state=0)])
def test_labels_that_change_where_a_transition_says_so(vectorizer, tagger):
    """The word says whether the label changes, and nothing says what it is but the first word."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(40):
        state = rng.integers(2)
        X.append([["on", "off"][state]])
        y.append([int(state)])
        for step in rng.integers(2, size=6):
            state ^= step
            X[-1].append(["stay", "turn"][step])
            y[-1].append(int(state))
    lines = ["U0:%x[0,0]", "B1:%x[0,0]"]
    pipeline = make_pipeline(clone(vectorizer).set_params(template=lines), clone(tagger))
    assert pipeline.fit(X[:30], y[:30]).score(X[30:], y[30:]) == 1.0
    pipeline.set_params(**{f"{type(vectorizer).__name__.lower()}__template": lines[:1]})
    assert pipeline.fit(X[:30], y[:30]).score(X[30:], y[30:]) < 0.8


# -------------------------------------------------------------------------- functions that raise


def test_functions_that_raise_are_named_with_line_and_token():
    X = [[("a", "x"), ("b", "y")], [("c", "y"), ("b", "q")]]

    def known(text):
        return {"X": "1", "Y": "2"}[text]

    vectorizer = TemplateVectorizer(
        "U00:%x[0,0]\nU01:%x[0,1|upper|known]", functions={"upper": str.upper, "known": known}
    )
    message = r"Sequence 1, token 1: Template line 2, .*'known' raised KeyError: 'Q', .*value 'Q'"
    with pytest.raises(ValueError, match=message) as caught:
        vectorizer.fit(X)
    assert isinstance(caught.value.__cause__, KeyError)
    vectorizer.fit(X[:1])
    with pytest.raises(ValueError, match="Sequence 0, token 1: Template line 2"):
        vectorizer.transform(X[1:])
