"""Labels of chunks that are written in another way than schemes have them."""

import re

import numpy as np
import pytest
from helpers.constraints import LETTERS
from hypothesis import given
from hypothesis import strategies as st

from skstruct import CRFTagger, SpanTaggerCV, predict_spans
from skstruct.datasets import convert_labels, labels_to_spans
from skstruct.inspection import TaggedText
from skstruct.metrics import chunk_f1_score, chunk_report, extract_chunks

WORDS = {"B": "Begin", "I": "Inside", "M": "Middle", "E": "End", "L": "Last", "S": "Single"}
# How a letter and a type are written, and the name of O.
WAYS = {
    "underscore": ("{0}_{1}", "O"),
    "colon": ("{0}:{1}", "O"),
    "bar": ("{0}|{1}", "O"),
    "slash": ("{0}/{1}", "O"),
    "dot": ("{0}.{1}", "O"),
    "blank": ("{0} {1}", "O"),
    "two": ("{0}__{1}", "O"),
    "nothing": ("{0}{1}", "O"),
    "behind": ("{1}-{0}", "O"),
    "behind, underscore": ("{1}_{0}", "O"),
    "behind, nothing": ("{1}{0}", "O"),
    "small": ("{2}-{1}", "o"),
    "small letter": ("{2}_{1}", "O"),
    "behind, small": ("{1}.{2}", "o"),
    "words": ("{3}-{1}", "Outside"),
    "other": ("{0}-{1}", "OTHER"),
    "small outside": ("{0}-{1}", "o"),
}
TEXT = ["B-LOC", "I-LOC", "I-LOC", "O", "B-PER_GEO", "O", "B-PER_GEO", "I-PER_GEO", "B-LOC"]


def written(label, way):
    """A label of a scheme as it is written in another way."""
    pattern, outside = WAYS[way]
    letter, _, kind = label.partition("-")
    if label == "O":
        return outside
    return pattern.format(letter, kind, letter.lower(), WORDS.get(letter, "Unit"))


@given(st.data(), st.sampled_from(sorted(set(LETTERS) & {"IOB2", "IOBES", "BILOU", "BMES"})))
def test_labels_in_all_spellings_are_converted(data, scheme):
    way = data.draw(st.sampled_from(sorted(WAYS)))
    y = convert_labels([TEXT], source="IOB2", target=scheme).labels
    # Anything may follow what shows how labels are written.
    kinds = data.draw(st.lists(st.sampled_from(["LOC", "PER_GEO"])))
    y += convert_labels([[f"B-{kind}" for kind in kinds]], source="IOB2", target=scheme).labels
    spelled = [[written(label, way) for label in labels] for labels in y]
    for target in ("IOB2", "IOBES"):
        expected = convert_labels(y, target=target)
        assert convert_labels(spelled, target=target) == expected
        assert convert_labels(spelled, source=expected.source, target=target) == expected
    # As runs, labels are types, whatever they look like.
    runs = convert_labels(spelled, source="runs", target="IOB2").labels
    assert runs[0][0] == f"B-{spelled[0][0]}"


@pytest.mark.parametrize("way", WAYS)
def test_what_reads_schemes_refuses_other_spellings_and_names_the_way(way):
    y = [[written(label, way) for label in TEXT]] * 6
    X = [[[f"w{t}"] for t in range(len(TEXT))]] * 6
    told = re.escape("skstruct.datasets.convert_labels")
    calls = {
        "f1": lambda: chunk_f1_score(y, y),
        "strict": lambda: chunk_report(y, y, scheme="IOB2"),
        "chunks": lambda: extract_chunks(y[0]),
        "spans": lambda: labels_to_spans(y[0], [(t, t + 1) for t in range(len(TEXT))]),
        "constraint": lambda: CRFTagger(constraint="IOB2").fit(X, y),
        "search": lambda: SpanTaggerCV(CRFTagger(), cv=2).fit(X, y),
        "probabilities": lambda: predict_spans(CRFTagger(max_iter=3).fit(X, y), X),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=told) as raised:
            call()
        assert "takes runs of labels" not in str(raised.value), name
    # What they name works.
    right = convert_labels(y, target="IOB2").labels
    assert right == [TEXT] * 6
    assert CRFTagger(constraint="IOB2", max_iter=3).fit(X, right).predict_spans(X).shape == (6,)


@pytest.mark.parametrize("way", WAYS)
def test_tagged_text_shows_chunks_in_all_spellings(way):
    tokens = [[f"w{t}" for t in range(len(TEXT))]]
    expected = TaggedText.from_predictions(tokens, [TEXT]).to_html()
    found = [[written(label, way) for label in TEXT]]
    assert TaggedText.from_predictions(tokens, found).to_html() == expected


ORDINARY = [
    "B NN_S O",
    "B NN_S VB NN O",
    "NN VB DT IN B",
    "IN LS MD EX SYM UH",
    "BE BED IN O",
    "S_Bahn U_Bahn O",
    "start_date end_date O",
    "first_name middle_name last_name O",
    "shirt_S shirt_M shirt_L O",
    "road_N road_E road_S road_W O",
    "b_side a_side O",
    "e-mail i-phone O",
    "a b m e s i",
    "b i",
    "none other street",
]


@pytest.mark.parametrize("labels", ORDINARY)
def test_ordinary_labels_stay_what_they_are(labels):
    labels = labels.split()
    X = [[[label] for label in labels]] * 4
    found = convert_labels([labels], target="IOB2")
    assert found.source == "runs"
    assert found.labels == [["O" if label == "O" else f"B-{label}" for label in labels]]
    kinds = [span.type for span in CRFTagger(l2=0.01).fit(X, [labels] * 4).predict_spans(X)[0]]
    assert kinds == [label for label in labels if label != "O"]


@pytest.mark.parametrize(
    "labels", ["B-PER_GEO I-PER_GEO O B-LOC", "B-a|b I-a|b", "B I O", "B-S I-S"]
)
def test_types_with_separators_are_not_split(labels):
    labels = labels.split()
    assert convert_labels([labels], source="IOB2", target="IOB2").labels == [labels]
    assert chunk_f1_score([labels], [labels]) == 1


def test_labels_that_may_be_types_are_refused_only_where_a_scheme_can_be_named():
    y = [["B_LOC", "B_LOC", "O", "B_PER"]]
    with pytest.raises(ValueError, match=r"'B_LOC' may mark chunks, 'B-LOC', or types"):
        convert_labels(y, target="IOB2")
    named = convert_labels(y, source="IOB2", target="IOBES").labels
    assert named == [["S-LOC", "S-LOC", "O", "S-PER"]]
    runs = convert_labels(y, source="runs", target="IOBES").labels
    assert runs == [["B-B_LOC", "E-B_LOC", "O", "S-B_PER"]]


@pytest.mark.parametrize("odd", ["X", "I-LOC", "LOC", "<start>"])
def test_a_label_that_is_not_written_like_the_others_is_named(odd):
    y = [["B_LOC", "I_LOC", "O"], ["B_PER", odd]]
    for source in (None, "IOB2"):
        with pytest.raises(ValueError, match=f"Sequence 1, token 1: .*{re.escape(repr(odd))} is n"):
            convert_labels(y, source=source, target="IOB2")
    with pytest.raises(ValueError, match="is not written like them"):
        chunk_f1_score(y, y)


def test_scores_after_conversion_are_those_of_chunks():
    gold, found = [["B_LOC", "I_LOC", "O"]], [["B_LOC", "O", "O"]]
    both = convert_labels(gold + found, target="IOB2").labels
    assert chunk_f1_score(both[:1], both[1:]) == 0
    assert np.isclose(chunk_f1_score(gold, found, scheme="runs"), 2 / 3)
