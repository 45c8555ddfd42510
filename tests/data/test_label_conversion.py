"""Labels as numbers and as spans of characters, and back."""

import re
from itertools import groupby, pairwise

import numpy as np
import pytest
from helpers.constraints import LETTERS
from hypothesis import given
from hypothesis import strategies as st

from skstruct import CRFTagger, PerceptronTagger, metrics
from skstruct.crfsuite import CRF
from skstruct.datasets import (
    convert_labels,
    find_tokens,
    labels_from_ids,
    labels_to_ids,
    labels_to_spans,
    spans_to_labels,
)
from skstruct.metrics import extract_chunks

NAMES = ["O", "B-PER", "I-PER"]
SCHEMES = ["IOB1", "IOB2", "BIO", "IOE1", "IOE2", "IOBES", "BIOES", "BILOU", "BMES"]


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
    for names in ({"O", "B"}, "OB", 3, None):
        with pytest.raises(ValueError, match="names must be an ordered list or a dict"):
            labels_from_ids([[0]], names)
    assert labels_from_ids([[1, 0]], {"0": "O", "1": "B"}) == [["B", "O"]]
    for names in ({"O": 0, "B": 2}, {1: "O"}, {"1": "O"}, {"O": 0, "B": 0}):
        with pytest.raises(ValueError, match=re.escape("numbers of names must be 0, 1, ...")):
            labels_from_ids([[0]], names)


def test_names_and_numbers_in_a_dict():
    for names in ({"I-PER": 2, "B-PER": 1, "O": 0}, {1: "B-PER", 0: "O", 2: "I-PER"}):
        assert labels_from_ids([[0, 1, 2]], names) == [NAMES]
        assert labels_to_ids([NAMES], names) == [[0, 1, 2]]


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
    assert labels_to_spans(labels, offsets) == spans or scheme in ("IOB1", "IOE1")
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


def test_labels_of_an_iterator():
    assert labels_to_spans(iter(["B-A", "O"]), [(0, 1), (2, 3)]) == [(0, 1, "A")]


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
        (lambda: labels_to_spans([["O"]], [(0, 1)]), r"belong to one sequence, but .* \['O'\]"),
        (lambda: spans_to_labels([(0, 3, "a"), (2, 5, "b")], [(0, 5)]), "overlap"),
        (lambda: spans_to_labels([(3, 3, "a")], [(0, 5)]), "is empty"),
        (lambda: spans_to_labels([], [(0, 5), (4, 6)]), "Token 1, .* overlaps the one before"),
        (lambda: spans_to_labels([], [(0, 0)]), "Token 0, .* is empty"),
        (lambda: spans_to_labels([], [(0, 1)], scheme="IOB"), "scheme must be one of 'IOB1'"),
        (lambda: spans_to_labels([], [(0, 1)], alignment="x"), "alignment must be one of"),
        (lambda: labels_to_spans(["O"], []), "1 labels, but 0 tokens"),
        (lambda: find_tokens("a b", ["b"]), "Token 0, 'b', is not what comes next .* 'a b'"),
        (lambda: find_tokens("a b", ["a", ""]), "Token 1, '', is not"),
        (lambda: find_tokens("a 1", ["a", 1]), "Token 1 is 1; expected a string"),
        (lambda: find_tokens("a", [("a", "DT")]), r"Token 0 is \('a', 'DT'\); expected a string"),
        (lambda: find_tokens(None, ["a"]), "The text is None; expected a string"),
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


# ---------------------------------------------------------------------------------------- schemes


def chunks_in(y, scheme):
    return [extract_chunks(labels, scheme=scheme) for labels in y]


@st.composite
def chunked(draw, apart=False):
    """Sequences as lists of (length, type); type None is outside."""
    kinds = st.sampled_from([None, "a", "b-c"])
    y = draw(st.lists(st.lists(st.tuples(st.integers(1, 4), kinds), max_size=5), max_size=4))
    if apart:
        y = [[next(group) for _, group in groupby(parts, lambda part: part[1])] for parts in y]
    return y


def in_bilou(y):
    """Labels of sequences of chunks, written here by hand."""
    labels = []
    for parts in y:
        labels.append([])
        for length, kind in parts:
            letters = "U" if length == 1 else "B" + "I" * (length - 2) + "L"
            labels[-1] += ["O" if kind is None else f"{x}-{kind}" for x in letters]
    return labels


@pytest.mark.parametrize("target", SCHEMES)
@given(chunked())
def test_conversion_keeps_chunks_of_all_schemes(target, y):
    labels = in_bilou(y)
    converted = convert_labels(labels, source="BILOU", target=target)
    assert converted[1:] == ("BILOU", 0)
    assert chunks_in(converted.labels, target) == chunks_in(labels, "BILOU")
    assert convert_labels(converted.labels, source=target, target="BILOU").labels == labels


@given(chunked(apart=True))
def test_runs_and_back(y):
    labels = in_bilou(y)
    runs = convert_labels(labels, source="BILOU", target="runs")
    assert runs.labels == [[label[2:] or "O" for label in row] for row in labels]
    assert convert_labels(runs.labels, source="runs", target="BILOU").labels == labels


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES"])
@pytest.mark.parametrize("repair", ["conlleval", "drop"])
@given(data=st.data())
def test_what_breaks_a_scheme_is_repaired_and_counted(scheme, repair, data):
    letters = LETTERS[scheme]
    labels = st.sampled_from(["O", *(f"{x}-{kind}" for x in letters for kind in "pq")])
    y = data.draw(st.lists(st.lists(labels, max_size=6), max_size=4))
    reading = "conlleval" if repair == "conlleval" else scheme
    found = convert_labels(y, source=scheme, target="IOB2", repair=repair)
    assert chunks_in(found.labels, "IOB2") == chunks_in(y, reading)
    same = convert_labels(y, source=scheme, target=scheme, repair=repair)
    assert found.n_repaired == same.n_repaired
    assert same.n_repaired == sum(
        a != b
        for row, new in zip(y, same.labels, strict=True)
        for a, b in zip(row, new, strict=True)
    )
    # Labels are valid if every token but O is in a chunk of the strict reading, and only then.
    covered = sum(b - a for chunks in chunks_in(y, scheme) for a, b, _ in chunks)
    valid = covered == sum(label != "O" for row in y for label in row)
    assert valid == (same.n_repaired == 0)
    if not valid:
        n = convert_labels(y, source=scheme, target=scheme, repair="conlleval").n_repaired
        with pytest.raises(ValueError, match=rf"so do {n} of .*repair='conlleval'"):
            convert_labels(y, source=scheme, target="BMES")


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES"])
def test_the_scheme_is_inferred(scheme):
    y = in_bilou([[(3, "x"), (1, "x"), (2, "y"), (2, None), (1, "y")], [(2, "x")]])
    labels = convert_labels(y, source="BILOU", target=scheme).labels
    assert convert_labels(labels, target="BILOU") == (y, scheme, 0)
    # A break or two do not change it.
    broken = [labels[0][1], "O", labels[0][0]]
    found = convert_labels([broken, *labels * 9], target="BILOU", repair="drop")
    assert found.source == scheme


@pytest.mark.parametrize(
    ("y", "options", "says"),
    [
        ([["O"], ["B-x", None]], {}, "Sequence 1, token 1: None is no string"),
        ([["B-x", "S-x"]], {"source": "IOB2"}, "token 1: 'S-x' is not a label of 'IOB2'"),
        ([["x"]], {"target": "BIOS"}, "target must be one of"),
        ([["x"]], {"repair": "yes"}, "repair must be one of"),
        ([["B-x", "B-x"]], {"target": "runs"}, "Sequence 0, token 1: 'B-x' breaks the scheme"),
        ([["B-O"]], {"target": "runs"}, "Sequence 0, token 0: 'B-O' breaks the scheme"),
    ],
)
def test_what_cannot_be_converted(y, options, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        convert_labels(y, **{"target": "IOB2", **options})


def test_chunks_that_touch_become_one_run_where_that_is_wanted():
    found = convert_labels([["B-x", "B-x", "I-x"]], target="runs", repair="conlleval")
    assert found == ([["x", "x", "x"]], "IOB2", 2)
    with pytest.raises(ValueError, match="one with the chunk before it, in scheme='runs'"):
        spans_to_labels([(0, 1, "x"), (1, 2, "x")], [(0, 1), (1, 2)], scheme="runs")
