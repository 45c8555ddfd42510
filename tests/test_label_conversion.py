"""Labels as numbers and as spans of characters, and back."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skstruct import CRFTagger, PerceptronTagger, metrics
from skstruct.crfsuite import CRF
from skstruct.datasets import (
    find_tokens,
    labels_from_ids,
    labels_to_ids,
    labels_to_spans,
    spans_to_labels,
)

NAMES = ["O", "B-PER", "I-PER"]
SCHEMES = ["IOB1", "IOB2", "IOBES", "BIOES", "BILOU"]


@given(st.lists(st.lists(st.sampled_from([-100, 0, 1, 2]))))
def test_ids_round_trip(ids):
    labels = labels_from_ids(ids, NAMES)
    assert labels == [[None if id < 0 else NAMES[id] for id in row] for row in ids]
    assert labels_to_ids(labels, NAMES) == ids


def test_features_of_datasets():
    datasets = pytest.importorskip("datasets")
    tags = datasets.Sequence(datasets.ClassLabel(names=NAMES))
    features = datasets.Features(
        {"tokens": datasets.Sequence(datasets.Value("string")), "ner": tags}
    )
    data = datasets.Dataset.from_dict(
        {"tokens": [["Ana", "Paz", "va"], ["ve", "Eva"]], "ner": [[1, 2, 0], [-100, 1]]},
        features=features,
    )
    y = labels_from_ids(data["ner"], data.features["ner"])
    assert y == [["B-PER", "I-PER", "O"], [None, "B-PER"]]
    assert labels_to_ids(y, data.features["ner"].feature) == [[1, 2, 0], [-100, 1]]
    X = [[[token] for token in tokens] for tokens in data["tokens"]]
    tagger = CRFTagger(constraint="IOB2").fit(X, y)
    predicted = labels_to_ids(tagger.predict(X), data.features["ner"])
    assert data.add_column("predicted", predicted)["predicted"][0] == [1, 2, 0]


def test_arrays_of_ids():
    assert labels_from_ids(np.array([[0, 1], [2, -100]]), NAMES) == [
        ["O", "B-PER"],
        ["I-PER", None],
    ]


@pytest.mark.parametrize("bad", [3, -1, 1.5, "O", None])
def test_bad_ids(bad):
    with pytest.raises(ValueError, match=r"Sequence 1, token 1: .* is neither the number of"):
        labels_from_ids([[0], [1, bad]], NAMES)


def test_bad_names():
    with pytest.raises(ValueError, match="Sequence 0, token 1: the label 'X' is not among"):
        labels_to_ids([["O", "X"]], NAMES)
    for names in (["a", "a"], [1, 2]):
        with pytest.raises(ValueError, match="names must be different strings"):
            labels_from_ids([[0]], names)


def test_minus_100_is_no_class():
    X = [[["a"], ["b"]], [["a"]]]
    y = [[0, -100], [1]]
    with pytest.raises(ValueError, match=r"Sequence 0, token 1: -100 .*labels_from_ids"):
        CRFTagger().fit(X, y)
    assert CRFTagger().fit(X, [[0, None], [1]]).classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"y_true\[0\] has the label -100: it stands for no label"):
        metrics.token_accuracy_score(y, [[0, 1], [1]])


def test_numbers_where_names_are_needed():
    with pytest.raises(ValueError, match=r"labels of chunks must be str; .*labels_from_ids"):
        metrics.chunk_f1_score([[0, 1]], [[0, 1]])
    with pytest.raises(ValueError, match=r"Class 0 does not fit .*labels_from_ids"):
        CRFTagger(constraint="IOB2").fit([[["a"], ["b"]]], [[0, 1]])


@st.composite
def annotated(draw):
    """Offsets of tokens, and spans that begin and end with tokens."""
    gaps = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=9))
    offsets, end = [], 0
    for gap, length in gaps:
        offsets.append((end + gap, end + gap + length))
        end += gap + length
    cuts = sorted(draw(st.sets(st.integers(0, len(offsets)), max_size=6)))
    spans = []
    for first, stop in pairwise(cuts):
        kind = draw(st.sampled_from(["x", "y-z", None]))
        if kind:
            spans.append((offsets[first][0], offsets[stop - 1][1], kind))
    return offsets, spans


@pytest.mark.parametrize("scheme", SCHEMES)
@given(annotated())
def test_spans_round_trip(scheme, case):
    offsets, spans = case
    for alignment in ("strict", "expand", "contract"):
        labels = spans_to_labels(spans[::-1], offsets, scheme=scheme, alignment=alignment)
        assert labels_to_spans(labels, offsets, scheme=scheme) == spans
    assert labels_to_spans(labels, offsets) == spans or scheme == "IOB1"
    CRFTagger(constraint=scheme).fit([[[str(t)] for t in range(len(labels))]], [labels])


@given(annotated())
def test_spacy_gives_the_same_labels(case):
    spacy = pytest.importorskip("spacy")
    from spacy.training import offsets_to_biluo_tags

    offsets, spans = case
    words, spaces = [], []
    for t, (start, end) in enumerate(offsets):
        before = offsets[t - 1][1] if t else 0
        # spaCy makes a token of every further blank, so there is none in these texts.
        words.append("w" * (end - start))
        if t:
            spaces.append(start > before)
    doc = spacy.tokens.Doc(spacy.blank("en").vocab, words=words, spaces=[*spaces, False])
    ours = [(token.idx, token.idx + len(token)) for token in doc]
    moved = {a: i for i, (a, _) in enumerate(offsets)}
    ends = {b: i for i, (_, b) in enumerate(offsets)}
    spans = [(ours[moved[a]][0], ours[ends[b]][1], kind) for a, b, kind in spans]
    assert spans_to_labels(spans, ours, scheme="BILOU") == offsets_to_biluo_tags(doc, spans)
    assert find_tokens(doc.text, words) == ours


def test_spans_between_tokens():
    offsets = [(0, 3), (4, 6), (7, 13)]
    with pytest.raises(ValueError, match="span from 0 to 5 does not begin and end where tokens do"):
        spans_to_labels([(0, 5, "a")], offsets)
    assert spans_to_labels([(0, 5, "a")], offsets, alignment="expand") == ["B-a", "I-a", "O"]
    assert spans_to_labels([(0, 5, "a")], offsets, alignment="contract") == ["B-a", "O", "O"]
    assert spans_to_labels([(1, 2, "a")], offsets, alignment="contract") == ["O", "O", "O"]
    assert spans_to_labels([(3, 4, "a")], offsets, alignment="expand") == ["O", "O", "O"]
    with pytest.raises(ValueError, match="token in common"):
        spans_to_labels([(0, 1, "a"), (2, 3, "b")], offsets, alignment="expand")


@pytest.mark.parametrize("kind", [["LOC"], ("LOC",), None, 3, 1.5, float("nan"), b"LOC", "", {}])
@pytest.mark.parametrize("alignment", ["strict", "expand", "contract"])
def test_types_that_are_no_strings(kind, alignment):
    with pytest.raises(
        ValueError, match=r"spans\[1\] has the type .* is a string that is not empty"
    ):
        spans_to_labels([(0, 1, "a"), (2, 9, kind)], [(0, 1), (2, 9)], alignment=alignment)


@pytest.mark.parametrize(
    "span", [(0, 1), (0, 1, "a", "b"), 5, None, "abc", {"start": 0}, (None, 1, "a"), ("0", 1, "a")]
)
def test_spans_that_are_no_triples_of_numbers(span):
    with pytest.raises(ValueError, match=r"spans\[0\] is .*; expected \(start, end, type\)"):
        spans_to_labels([span], [(0, 1)])
    with pytest.raises(ValueError, match=r"spans.* is .*(expected|not a list of spans)"):
        spans_to_labels((0, 1, "a"), [(0, 1)])


def test_whole_numbers_of_other_types():
    spans = [(np.int32(0), 3.0, np.str_("a"))]
    assert spans_to_labels(spans, np.array([[0, 3]])) == ["B-a"]
    assert labels_to_spans(["B-a"], [(0.0, np.int64(3))]) == [(0, 3, "a")]
    for bad in ((0, 2.5), (0, np.nan), (0, np.inf), ("0", "3"), (0,), 3):
        with pytest.raises(
            ValueError, match=r"Token 0 is .*; expected its first character and its"
        ):
            spans_to_labels([], [bad])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: labels_to_ids(["O", "O"], NAMES), r"labels\[0\] is 'O', but a list of sequences"),
        (lambda: labels_from_ids([0, 1], NAMES), r"ids\[0\] is 0, but a list of sequences"),
        (lambda: labels_from_ids([[0], 1], NAMES), r"ids\[1\] is 1, but a list of sequences"),
        (lambda: labels_to_spans("O", [(0, 1)]), "labels must be a list or array .* got 'O'"),
        (lambda: labels_to_spans([["O"]], [(0, 1)]), r"those of one sequence, but .* \['O'\]"),
        (lambda: spans_to_labels([(0, 3, "a"), (2, 5, "b")], [(0, 5)]), "overlap"),
        (lambda: spans_to_labels([(3, 3, "a")], [(0, 5)]), "is empty"),
        (lambda: spans_to_labels([], [(0, 5), (4, 6)]), "Token 1, .* overlaps the one before"),
        (lambda: spans_to_labels([], [(0, 0)]), "Token 0, .* is empty"),
        (lambda: spans_to_labels([], [(0, 1)], scheme="BIO"), "scheme must be one of 'IOB1'"),
        (lambda: spans_to_labels([], [(0, 1)], alignment="x"), "alignment must be one of"),
        (lambda: labels_to_spans(["O"], []), "1 labels, but 0 tokens"),
        (lambda: find_tokens("a b", ["b"]), "Token 0, 'b', is not what comes next .* 'a b'"),
        (lambda: find_tokens("a b", ["a", ""]), "Token 1, '', is not"),
    ],
)
def test_bad_spans(call, message):
    with pytest.raises(ValueError, match=message):
        call()


SCORES = [
    metrics.chunk_f1_score,
    metrics.chunk_report,
    metrics.sequence_accuracy_score,
    metrics.token_accuracy_score,
]


@pytest.mark.parametrize("score", SCORES)
def test_scores_say_what_to_do_with_tokens_without_a_label(score):
    """The way from -100 by `labels_from_ids` ends with what to do, or with a score."""
    gold = labels_from_ids([[1, 2, -100, 0]], ["O", "B-LOC", "I-LOC"])
    predicted = [["B-LOC", "I-LOC", "O", "O"]]
    advice = "leave such tokens out of y_true and y_pred"
    if score is metrics.token_accuracy_score:
        assert score(gold, predicted) == 1.0
    else:
        with pytest.raises(ValueError, match=rf"y_true\[0\] has the label None: .* {advice}"):
            score(gold, predicted)
    with pytest.raises(ValueError, match=rf"y_pred\[0\] has the label None: .* {advice}"):
        score(predicted, gold)
    kept = [label is not None for label in gold[0]]
    without = [[label for label, k in zip(y[0], kept, strict=True) if k] for y in (gold, predicted)]
    score(*([labels] for labels in without))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_learners_say_what_to_do_with_tokens_without_a_label(method):
    X, tagger = [[["a"], ["b"]]], PerceptronTagger()
    learn = getattr(tagger, method)
    message = r"Sequence 0, token 1: -100 .*labels_from_ids replaces it by None, .* Others need"
    with pytest.raises(ValueError, match=message):
        learn(X, [[1, -100]])
    advice = "Use one of these, or leave tokens without a label out of X and y"
    with pytest.raises(ValueError, match=f"Sequence 0, token 1 has no label; .* {advice}"):
        learn(X, [["O", None]])
    with pytest.raises(ValueError, match=r"Sequence 0, token 1: .* leave such tokens out of X and"):
        tagger.fit(X, [["O", "A"]], X_val=X, y_val=[["O", None]])
    with pytest.raises(
        ValueError, match=r"token 1: labels must be strings; got None. Leave tokens"
    ):
        CRF().fit(X, [["O", None]])
