"""Feature files of CRFsuite and Wapiti."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skstruct import PerceptronTagger
from skstruct.datasets import read_features

names = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\t\ufeff"), min_size=1).filter(
    str.strip
)
values = st.one_of(st.just(1.0), st.floats(-1e6, 1e6))
tokens = st.dictionaries(names, values, max_size=4)


def escaped(name):
    return name.replace("\\", "\\\\").replace(":", "\\:")


@given(st.lists(st.lists(st.tuples(names, tokens), min_size=1), min_size=1, max_size=4))
def test_what_crfsuite_would_read_comes_back(y_X):
    lines = []
    for sequence in y_X:
        for label, token in sequence:
            parts = [escaped(k) + ("" if v == 1.0 else f":{v!r}") for k, v in token.items()]
            lines.append("\t".join([escaped(label), *parts]))
        lines.append("")
    X, y = read_features(lines)
    assert y == [[label for label, _ in sequence] for sequence in y_X]
    assert [[token for _, token in sequence] for sequence in y_X] == X


def test_files_are_learnt_from(tmp_path):
    path = tmp_path / "train.crfsuite"
    path.write_text("A\tw=a\tw=a\tn:2\nB\tw=b\n\n\nB\tw=b\n", encoding="utf-8")
    X, y = read_features(path)
    assert X == [[{"w=a": 2.0, "n": 2.0}, {"w=b": 1.0}], [{"w=b": 1.0}]]
    assert PerceptronTagger(random_state=0).fit(X, y).predict(X).tolist() == y


def test_a_label_may_begin_with_an_at_sign():
    assert read_features(["@\tw=@user", "\u3000\tw=a"]) == (
        [[{"w=@user": 1.0}, {"w=a": 1.0}]],
        [["@", "\u3000"]],
    )


def test_wapiti_has_the_label_last():
    assert read_features(["u:a *x\tA", "uB\xa0C B", ""], format="wapiti") == (
        [[{"u:a": 1.0, "*x": 1.0}, {"uB\xa0C": 1.0}]],
        [["A", "B"]],
    )


@pytest.mark.parametrize(
    ("lines", "format", "says"),
    [
        (["A\tt:x"], "crfsuite", "<lines>, line 1: 'x' is not the value of an attribute"),
        (["A\ta", "A\tt:inf"], "crfsuite", "line 2: 'inf' is not the value"),
        (["\tw=a"], "crfsuite", "line 1: the label, which comes first, is empty"),
        (["@weight:2", "A\ta"], "crfsuite", "line 1: '@weight:2' is a declaration and no token"),
        (["u:a bigram A"], "wapiti", "line 1: 'bigram' is not a feature of tokens"),
        ([""], "crfsuite", "the file has no tokens"),
        (["A"], "svmlight", "format must be one of"),
    ],
)
def test_what_is_no_feature_file(lines, format, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        read_features(lines, format=format)
