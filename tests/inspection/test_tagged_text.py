"""HTML of texts and batches: what it marks, and that nothing in a text becomes markup."""

from html.parser import HTMLParser

import numpy as np
import pytest
from helpers.learners import labelled_sequences

from skstruct import CRFTagger, SequenceBatch, SequenceVectorizer
from skstruct.inspection import TaggedText

ATTACK = '<script>alert("x")</script>'


class Reader(HTMLParser):
    """Elements of a page, with their texts; fails where tags do not match."""

    VOID = {"meta"}

    def __init__(self, html):
        super().__init__()
        self.stack, self.elements = [], []
        self.feed(html)
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "attrs": dict(attrs), "text": "", "own": ""}
        self.elements.append(element)
        if tag not in self.VOID:
            self.stack.append(element)

    def handle_endtag(self, tag):
        assert self.stack.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.stack:
            element["text"] += data
        if self.stack:
            self.stack[-1]["own"] += data

    def texts(self, tag, **attrs):
        return [
            element["text"]
            for element in self.elements
            if element["tag"] == tag and attrs.items() <= element["attrs"].items()
        ]


def test_chunks_are_marked():
    labels = [["O", "B-PER", "I-PER", "B-LOC"], ["O"]]
    text = TaggedText.from_predictions([["Call", "Ann", "Lee", "Rome"], ["ok"]], labels)
    page = Reader(text.to_html())
    assert page.texts("mark") == ["Ann LeePER", "RomeLOC"]
    assert page.texts("p") == ["Call Ann LeePER RomeLOC", "ok"]
    hues = {e["attrs"]["style"] for e in page.elements if e["tag"] == "mark"}
    assert len(hues) == 2
    assert text._repr_html_() == text.to_html()


def test_other_labels_are_marked_token_by_token():
    page = Reader(TaggedText.from_predictions([["time", "flies"]], [["NOUN", "VERB"]]).to_html())
    assert page.texts("mark") == ["timeNOUN", "fliesVERB"]
    page = Reader(TaggedText.from_predictions([["2"]], np.array([[7]])).to_html())
    assert page.texts("mark") == ["27"]


def test_probabilities_and_labellings():
    X, y = labelled_sequences(40)
    tagger = CRFTagger(l2=0.1).fit(X, y)
    index = next(i for i, x in enumerate(X) if len(x) == 3)
    tokens = [["one", "two", "three"]]
    page = Reader(TaggedText.from_estimator(tagger, X[index : index + 1], tokens=tokens).to_html())
    proba = tagger.predict_proba(X)[index]
    tips = page.texts("span", **{"class": "tip"})
    assert len(tips) == 3
    for tip, row in zip(tips, proba, strict=True):
        expected = [f"{100 * row[k]:5.1f} %  {'ABC'[k]}" for k in np.argsort(-row)]
        assert tip.split("\n") == expected
    best, second, third = tagger.predict_nbest(X[index : index + 1], n_best=3)[0]
    assert page.texts("summary") == [f"{100 * best.probability:.1f} %"]
    items = page.texts("li")
    assert items[0] == f"{100 * best.probability:.1f} %: as shown"
    for item, found in zip(items[1:], (second, third), strict=True):
        changed = [
            f"{token} {label}"
            for token, label, was in zip(tokens[0], found.labels, best.labels, strict=True)
            if label != was
        ]
        assert item == f"{100 * found.probability:.1f} %: {', '.join(changed)}"


def test_a_single_labelling_has_no_list():
    X, y = labelled_sequences(10)
    text = TaggedText.from_estimator(CRFTagger().fit(X, y), X, n_best=1)
    assert "<li>" not in text.to_html()


def test_nothing_in_a_text_becomes_markup():
    X = [[ATTACK, "&amp;"], ["'\"><img src=x onerror=alert(1)>"]]
    y = [[f"B-{ATTACK}", "O"], [f"B-{ATTACK}"]]
    tagger = CRFTagger().fit([[[token] for token in tokens] for tokens in X], y)
    features = [[[token] for token in tokens] for tokens in X]
    text = TaggedText.from_estimator(tagger, features)
    assert text.tokens == X
    page = Reader(text.to_html())
    known = {"div", "style", "p", "mark", "small", "span", "details", "summary", "ol", "li"}
    assert {element["tag"] for element in page.elements} <= known
    for element in page.elements:
        assert not [name for name in element["attrs"] if name.startswith("on")]
    assert ATTACK in page.texts("mark")[0]
    assert page.texts("small")[0] == ATTACK
    assert "<script" not in text.to_html()
    assert "&amp;amp;" in text.to_html()


def test_the_page_is_self_contained(tmp_path):
    text = TaggedText.from_predictions([["naïve", "Zoë"]], [["O", "B-PER"]])
    text.save(tmp_path / "page.html", title="<b>")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "naïve" in page
    assert "<title>&lt;b&gt;</title>" in page
    assert "prefers-color-scheme: dark" in page
    for outside in ("http", "url(", "@import", "<link", "<script"):
        assert outside not in page


def test_lone_surrogates_can_be_saved(tmp_path):
    text = TaggedText.from_predictions([["\ud800"]], [["B-\ud800"]])
    text.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 0


@pytest.mark.parametrize(
    ("tokens", "labels", "message"),
    [
        ([["a"]], [["O"], ["O"]], "There are 1 sequences of tokens, but labels for 2"),
        ([["a"], ["b"]], [["O"], ["O", "O"]], "Sequence 1 has 1 tokens, but 2 labels"),
        (["a", "b"], [["O"], ["O"]], r"tokens\[0\] is 'a', but a list of sequences is expected"),
        ([["a"], ["b"]], ["O", "O"], r"y_pred\[0\] is 'O', but a list of sequences is expected"),
    ],
)
def test_texts_that_do_not_fit(tokens, labels, message):
    with pytest.raises(ValueError, match=message):
        TaggedText.from_predictions(tokens, labels)


def test_lists_that_do_not_fit():
    for lists in ({"alternatives": []}, {"alternatives": [[]]}, {"gold": []}, {"nbest": []}):
        with pytest.raises(
            ValueError, match=r"labels for 0|but 0 alt|tives for 0|nbest has 0 lists"
        ):
            TaggedText([["a"]], [["O"]], **lists)
    X, y = labelled_sequences(10)
    with pytest.raises(ValueError, match="n_labels must be a positive integer, got -1"):
        TaggedText.from_estimator(CRFTagger().fit(X, y), X, n_labels=-1)


def test_rows_and_iterators():
    X, y = np.eye(2), np.array(["A", "B"])
    text = TaggedText.from_estimator(CRFTagger().fit(X, y), X, gold=y)
    assert text.gold == [["A"], ["B"]]
    X, y = [[["a"], ["b"]], [["c"]]], [["A", "B"], ["A"]]
    text = TaggedText.from_estimator(CRFTagger().fit(X, y), iter(X), gold=iter(y))
    assert (text.tokens, text.gold) == ([["a", "b"], ["c"]], y)


# ----------------------------------------------------------------------------------------- batches


def test_html_of_a_batch():
    X = [[{"word": ATTACK, "length": 2.5}] * 7, [{}], [{"a": 1}], [{"a": 1}], [{"a": 1}]]
    batch = SequenceVectorizer().fit_transform(X)
    page = Reader(batch._repr_html_())
    assert page.texts("code") == [repr(batch)]
    cells = page.texts("td")
    assert cells[:3] == ["0", "0", f"length = 2.5, word:{ATTACK}"]
    assert "… 2 more tokens" in cells
    assert "… 2 more sequences" in cells
    assert "none" in cells
    assert "script" not in {element["tag"] for element in page.elements}


def test_html_of_batches_without_names():
    dense = SequenceBatch.from_lengths(np.arange(20.0).reshape(2, 10), [2])
    cells = Reader(dense._repr_html_()).texts("td")
    assert cells[2].startswith("x1, x2 = 2, x3 = 3")
    assert cells[2].endswith("… 1 more")
    empty = SequenceBatch.from_lengths(np.empty((0, 2)), [0])
    assert Reader(empty._repr_html_()).texts("td") == []


def test_gold_labels_show_what_was_missed_found_wrongly_and_mistyped():
    tokens = [["Ann", "Lee", "met", "Bo", "in", "Rome", "by", "noon"], ["Ann"]]
    gold = [["B-PER", "I-PER", "O", "B-PER", "O", "B-LOC", "O", "O"], ["B-PER"]]
    found = [["B-PER", "I-PER", "O", "O", "O", "B-ORG", "O", "B-LOC"], ["B-PER"]]
    html = Reader(TaggedText.from_predictions(tokens, found, gold=gold).to_html())
    marks = [(e["attrs"].get("class"), e["text"]) for e in html.elements if e["tag"] == "mark"]
    assert marks == [
        (None, "Ann LeePER"),
        ("missed", "BoPER missed"),
        ("mistyped", "RomeORG, not LOC"),
        ("invented", "noonLOC wrong"),
        (None, "AnnPER"),
    ]
    notes = [e["text"] for e in html.elements if e["attrs"].get("class") == "errors"]
    assert len(notes) == 1
    assert set(notes[0].split("; ")) == {
        "mistyped: Rome (ORG, not LOC)",
        "missed: Bo (PER)",
        "found wrongly: noon (LOC)",
    }


def test_a_wrong_boundary_is_shown_with_the_right_one():
    found, gold = [["O", "B-PER", "O"]], [["B-PER", "I-PER", "O"]]
    html = Reader(TaggedText.from_predictions([["Ann", "<Lee>", "a"]], found, gold=gold).to_html())
    marks = [e for e in html.elements if e["tag"] == "mark"]
    assert [e["attrs"]["class"] for e in marks] == ["invented"]
    notes = [e["text"] for e in html.elements if e["attrs"].get("class") == "errors"]
    assert notes == ["found wrongly: <Lee> (PER), for Ann <Lee> (PER)"]


def test_gold_labels_of_single_tokens():
    X, y = labelled_sequences(20)
    tagger = CRFTagger(max_iter=3, tol=0).fit(X, y)
    gold = [[labels[0], *labels[1:]] for labels in y]
    html = Reader(TaggedText.from_estimator(tagger, X, gold=gold).to_html())
    wrong = sum(
        a != b for p, q in zip(tagger.predict(X), y, strict=True) for a, b in zip(p, q, strict=True)
    )
    marks = [e for e in html.elements if e["tag"] == "mark"]
    assert sum(e["attrs"].get("class") == "mistyped" for e in marks) == wrong > 0
    with pytest.raises(ValueError, match="Sequence 0 has 1 tokens, but 2 labels"):
        TaggedText.from_predictions([["a"]], [["O"]], gold=[["O", "O"]])
