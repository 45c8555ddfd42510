"""Every score against seqeval, sklearn-crfsuite, scikit-learn or a plain-Python twin."""

import pickle
import re
import warnings
from collections import Counter
from functools import cache, partial
from itertools import groupby, pairwise

import numpy as np
import pandas as pd
import pytest
import seqeval.metrics
import seqeval.scheme
import sklearn.metrics
from helpers.taggers import object_array
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn_crfsuite import metrics as crfsuite_metrics

from skstruct import CRFTagger, PerceptronReranker, PerceptronTagger, metrics
from skstruct.metrics import (
    chunk_f1_score,
    chunk_precision_recall_fscore_support,
    chunk_precision_score,
    chunk_recall_score,
    chunk_report,
    extract_chunks,
    sequence_accuracy_score,
    token_accuracy_score,
)

TYPES = ["LOC", "PER", "NP-SBJ"]
AVERAGES = ["micro", "macro", "weighted", None]
STRICT = ["IOB1", "IOB2", "IOE2", "IOBES", "BILOU"]
# Schemes that seqeval does not know, or not all of.
OWN = ["IOE1", "BMES"]
LETTERS = {
    "conlleval": "BIES",
    "IOB1": "BI",
    "IOB2": "BI",
    "IOE1": "IE",
    "IOE2": "IE",
    "IOBES": "BIES",
    "BILOU": "BILU",
    "BMES": "BMES",
}
SCORERS = {
    "chunk_f1": (metrics.chunk_f1_scorer, chunk_f1_score),
    "chunk_precision": (metrics.chunk_precision_scorer, chunk_precision_score),
    "chunk_recall": (metrics.chunk_recall_scorer, chunk_recall_score),
    "token_accuracy": (metrics.token_accuracy_scorer, token_accuracy_score),
    "sequence_accuracy": (metrics.sequence_accuracy_scorer, sequence_accuracy_score),
}

# ------------------------------------------------------------------------------- random labels


def label_strategy(letters, types=TYPES, bare=True):
    labels = ["O"] + [f"{letter}-{kind}" for letter in letters for kind in types]
    return st.sampled_from(labels + list(letters) * bare)


def batches(labels, min_length=0):
    """Pairs (y_true, y_pred) that agree often enough for correct chunks to occur."""
    token = st.tuples(labels, labels, st.booleans()).map(
        lambda triple: (triple[0], triple[0] if triple[2] else triple[1])
    )
    sequences = st.lists(st.lists(token, min_size=min_length, max_size=8), min_size=1, max_size=5)
    return sequences.filter(any).map(
        lambda rows: tuple([[token[side] for token in row] for row in rows] for side in (0, 1))
    )


def batches_of(scheme):
    return batches(label_strategy(LETTERS[scheme]))


# ---------------------------------------------------------------------------------------- twins

# Within one type a sequence is a string of letters, "." where a token is of another type.
CHUNK_PATTERNS = {
    "conlleval": r"S|[BI]I*E?|E",
    "IOB1": r"(?<=[BI])BI*|I+",
    "IOB2": r"BI*",
    "IOBES": r"S|BI*E",
    "IOE1": r"I*E(?=[IE])|I+",
    "IOE2": r"I*E",
    "BILOU": r"U|BI*L",
    "BMES": r"S|BM*E",
}


def naive_chunks(labels, scheme):
    parsed = [(label[0], label[2:] or "_") if label != "O" else (".", None) for label in labels]
    chunks = []
    for kind in {kind for _, kind in parsed if kind is not None}:
        letters = "".join(letter if other == kind else "." for letter, other in parsed)
        matches = re.finditer(CHUNK_PATTERNS[scheme], letters)
        chunks.extend((match.start(), match.end(), kind) for match in matches)
    return sorted(chunks)


def naive_starts(previous, current):
    (tag, kind), (next_tag, next_kind) = previous, current
    if next_tag == "O":
        return False
    return tag in "OES" or next_tag in "BS" or kind != next_kind


def naive_ends(previous, current):
    (tag, kind), (next_tag, next_kind) = previous, current
    if tag == "O":
        return False
    return tag in "ES" or next_tag in "OBS" or kind != next_kind


def naive_conlleval(y_true, y_pred):
    """Count chunks in one pass over the tokens, as conlleval does, never building a chunk.

    Returns three counters over the types: correct, predicted and true chunks.
    """
    correct, predicted, true = Counter(), Counter(), Counter()
    outside = ("O", "_")
    last_true = last_pred = outside
    agree = False
    for row_true, row_pred in zip(y_true, y_pred, strict=True):
        for label_true, label_pred in zip([*row_true, "O"], [*row_pred, "O"], strict=True):
            now_true, now_pred = (
                (label[0], label[2:] or "_") for label in (label_true, label_pred)
            )
            ends = naive_ends(last_true, now_true), naive_ends(last_pred, now_pred)
            starts = naive_starts(last_true, now_true), naive_starts(last_pred, now_pred)
            if agree and all(ends):
                correct[last_true[1]] += 1
            agree = agree and not any(ends)
            true[now_true[1]] += starts[0]
            predicted[now_pred[1]] += starts[1]
            if all(starts):
                agree = now_true[1] == now_pred[1]
            elif any(starts):
                agree = False
            last_true, last_pred = now_true, now_pred
    return correct, predicted, true


def seqeval_scores(y_true, y_pred, scheme, **options):
    if scheme == "conlleval":
        score = seqeval.metrics.sequence_labeling.precision_recall_fscore_support
        return score(y_true, y_pred, **options)
    score = seqeval.metrics.v1.precision_recall_fscore_support
    return score(y_true, y_pred, scheme=getattr(seqeval.scheme, scheme), **options)


def drop_seqeval_iob1_quirk(y_true, y_pred):
    """Drop sequences with neighbours B-X, B-Y: there seqeval forgets a valid chunk B-X."""

    def odd(row):
        return any(a[0] == b[0] == "B" and a != b for a, b in pairwise(row))

    kept = [(a, b) for a, b in zip(y_true, y_pred, strict=True) if a and not (odd(a) or odd(b))]
    assume(kept)
    return tuple([list(row) for row in side] for side in zip(*kept, strict=True))


# ------------------------------------------------------------------------------------- chunks


@pytest.mark.parametrize("scheme", ["conlleval", *STRICT, *OWN])
@given(data=st.data())
def test_chunks_equal_regular_expressions(scheme, data):
    labels = data.draw(st.lists(label_strategy(LETTERS[scheme]), max_size=12))
    assert extract_chunks(labels, scheme=scheme) == naive_chunks(labels, scheme)


@given(labels=st.lists(label_strategy("BIES"), max_size=12))
def test_lenient_chunks_equal_seqeval(labels):
    theirs = seqeval.metrics.sequence_labeling.get_entities(labels)
    assert extract_chunks(labels) == [(start, last + 1, kind) for kind, start, last in theirs]


@pytest.mark.parametrize("scheme", STRICT)
@given(data=st.data())
def test_strict_chunks_equal_seqeval(scheme, data):
    labels = data.draw(st.lists(label_strategy(LETTERS[scheme]), min_size=1, max_size=12))
    if scheme == "IOB1":
        (labels,), _ = drop_seqeval_iob1_quirk([labels], [labels])
    entities = seqeval.scheme.Tokens(labels, getattr(seqeval.scheme, scheme)).entities
    theirs = [(entity.start, entity.end, entity.tag) for entity in entities]
    assert extract_chunks(labels, scheme=scheme) == theirs


def test_documented_difference_from_seqeval_in_strict_iob1():
    labels = ["I-LOC", "B-LOC", "B-PER"]
    entities = seqeval.scheme.Tokens(labels, seqeval.scheme.IOB1).entities
    theirs = [(entity.start, entity.end, entity.tag) for entity in entities]
    ours = extract_chunks(labels, scheme="IOB1")
    assert ours == naive_chunks(labels, "IOB1")
    assert set(theirs) < set(ours)


# In what follows a sentence is a list of (length, type); type None is a stretch outside.
sentences = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from([None, *TYPES])), min_size=1, max_size=6
)


def write_labels(sentence, scheme):
    labels = []
    for i, (length, kind) in enumerate(sentence):
        touches_last = i > 0 and sentence[i - 1][1] == kind
        touches_next = i + 1 < len(sentence) and sentence[i + 1][1] == kind
        letters = ["I"] * length
        if scheme == "BMES":
            letters = ["M"] * length
        if scheme in ("IOB2", "IOBES", "BILOU", "BMES") or (scheme == "IOB1" and touches_last):
            letters[0] = "B"
        if scheme in ("IOE2", "IOBES", "BILOU", "BMES") or (scheme == "IOE1" and touches_next):
            letters[-1] = "E" if scheme != "BILOU" else "L"
        if scheme in ("IOBES", "BILOU", "BMES") and length == 1:
            letters = ["U"] if scheme == "BILOU" else ["S"]
        labels += [f"{letter}-{kind}" if kind else "O" for letter in letters]
    return labels


@pytest.mark.parametrize("written", ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES"])
@given(sentence=sentences)
def test_chunks_come_back_from_every_scheme(written, sentence):
    stops = np.cumsum([length for length, _ in sentence]).tolist()
    spans = zip(sentence, stops, strict=True)
    chunks = [(stop - length, stop, kind) for (length, kind), stop in spans if kind]
    labels = write_labels(sentence, written)
    assert extract_chunks(labels) == chunks
    assert extract_chunks(labels, scheme=written) == chunks


@given(labels=st.lists(label_strategy("IE"), max_size=12))
def test_ends_mirror_beginnings(labels):
    mirrored = [label.replace("E", "B", 1) if label[0] == "E" else label for label in labels[::-1]]
    for one, other in (("IOE1", "IOB1"), ("IOE2", "IOB2")):
        found = extract_chunks(mirrored, scheme=other)
        turned = [(len(labels) - b, len(labels) - a, kind) for a, b, kind in found[::-1]]
        assert extract_chunks(labels, scheme=one) == turned


@given(labels=st.lists(st.sampled_from(["O", "author", "B-title", "I-title"]), max_size=12))
def test_runs_are_those_of_groupby(labels):
    expected, end = [], 0
    for label, run in groupby(labels):
        start, end = end, end + len(list(run))
        expected += [(start, end, label)] if label != "O" else []
    assert extract_chunks(labels, scheme="runs") == expected


@given(labels=st.lists(label_strategy("BIES"), max_size=12))
def test_names_of_one_scheme_agree(labels):
    letters = {"E": "L", "S": "U"}
    as_bilou = [letters.get(label[0], label[0]) + label[1:] for label in labels]
    assert extract_chunks(labels, scheme="BIOES") == extract_chunks(labels, scheme="IOBES")
    assert extract_chunks(as_bilou, scheme="BILOU") == extract_chunks(labels, scheme="IOBES")
    assert extract_chunks(as_bilou) == extract_chunks(labels)
    as_bmes = ["M" + label[1:] if label[0] == "I" else label for label in labels]
    assert extract_chunks(as_bmes, scheme="BMES") == extract_chunks(labels, scheme="IOBES")
    assert extract_chunks(as_bmes) == extract_chunks(labels)
    assert extract_chunks(np.array(labels, dtype=object)) == extract_chunks(tuple(labels))


def test_chunks_are_plain_python():
    ((start, stop, kind),) = extract_chunks(np.array(["B-NP", "I-NP"]))
    assert (type(start), type(stop), type(kind)) == (int, int, str)


# ------------------------------------------------------------------------- scores against seqeval


@pytest.mark.parametrize("scheme", ["conlleval", *STRICT])
@pytest.mark.parametrize("zero_division", [0, 1])
@given(data=st.data())
def test_scores_equal_seqeval(scheme, zero_division, data):
    y_true, y_pred = data.draw(batches_of(scheme))
    if scheme == "IOB1":
        y_true, y_pred = drop_seqeval_iob1_quirk(y_true, y_pred)
    found = [naive_chunks(row, scheme) for row in y_true + y_pred]
    # Without any chunk seqeval's means are of nothing: nan, or a ZeroDivisionError.
    assume(any(found))
    for average in AVERAGES:
        options = {"average": average, "zero_division": zero_division}
        theirs = seqeval_scores(y_true, y_pred, scheme, **options)
        options["scheme"] = scheme
        ours = chunk_precision_recall_fscore_support(y_true, y_pred, **options)
        for our, their in zip(ours, theirs, strict=True):
            assert_allclose(our, their, rtol=1e-12)
        single = chunk_precision_score, chunk_recall_score, chunk_f1_score
        for score, our in zip(single, ours, strict=False):
            assert_array_equal(score(y_true, y_pred, **options), our)


@pytest.mark.parametrize("scheme", ["conlleval", "IOB2", "IOBES"])
@given(data=st.data(), digits=st.integers(0, 5))
def test_report_equals_seqeval(scheme, data, digits):
    y_true, y_pred = data.draw(batches_of(scheme))
    assume(any(naive_chunks(row, scheme) for row in y_true + y_pred))
    options = {"digits": digits, "zero_division": 0}
    if scheme != "conlleval":
        options |= {"mode": "strict", "scheme": getattr(seqeval.scheme, scheme)}
    theirs = seqeval.metrics.classification_report
    our_text = chunk_report(y_true, y_pred, scheme=scheme, digits=digits)
    their_text = theirs(y_true, y_pred, **options)
    # seqeval's F1 goes through rounded ratios, which may tip a tie in the last digit.
    assert re.sub(r"\d", "#", our_text) == re.sub(r"\d", "#", their_text)
    ours, expected = (list(map(float, re.findall(r" ([\d.]+)", t))) for t in (our_text, their_text))
    assert ours == pytest.approx(expected, abs=1.001 * 0.1**digits)
    as_dict = chunk_report(y_true, y_pred, scheme=scheme, output_dict=True)
    expected = theirs(y_true, y_pred, output_dict=True, **options)
    assert list(as_dict) == list(expected)
    for name, row in as_dict.items():
        assert row == pytest.approx(expected[name])


@given(batch=batches_of("conlleval"))
def test_scores_equal_conlleval(batch):
    correct, predicted, true = naive_conlleval(*batch)
    types = sorted(+(true + predicted))
    ours = chunk_precision_recall_fscore_support(*batch, labels=types)
    ratios = [
        [correct[kind] / counts[kind] if counts[kind] else 0.0 for kind in types]
        for counts in (predicted, true)
    ]
    assert_array_equal(ours[0], ratios[0])
    assert_array_equal(ours[1], ratios[1])
    assert_array_equal(ours[3], [true[kind] for kind in types])
    precision = correct.total() / max(predicted.total(), 1)
    recall = correct.total() / max(true.total(), 1)
    f1 = 2 * precision * recall / (precision + recall) if correct.total() else 0.0
    assert chunk_f1_score(*batch) == pytest.approx(f1)


@given(batch=batches(label_strategy("BI", bare=False)), zero_division=st.sampled_from([0.0, 1.0]))
def test_labels_choose_types(batch, zero_division):
    y_true, y_pred = batch
    chosen = ["PER", "nowhere", "LOC"]

    def reduce(rows):
        return [["O" if label.endswith("SBJ") else label for label in row] for row in rows]

    options = {"labels": chosen, "zero_division": zero_division}
    for average in AVERAGES:
        ours = chunk_precision_recall_fscore_support(y_true, y_pred, average=average, **options)
        # Without the third type nothing but the chosen ones is left to count.
        without = chunk_precision_recall_fscore_support(
            reduce(y_true), reduce(y_pred), average=average, **options
        )
        for a, b in zip(ours, without, strict=True):
            assert_array_equal(a, b)
    correct, predicted, true = naive_conlleval(y_true, y_pred)
    precision, _, f1, support = chunk_precision_recall_fscore_support(y_true, y_pred, **options)
    assert support.tolist() == [true[kind] for kind in chosen]
    assert (precision * [predicted[kind] for kind in chosen]) == pytest.approx(
        [correct[kind] for kind in chosen]
    )
    assert f1[1] == zero_division


# ------------------------------------------------- scores against scikit-learn and sklearn-crfsuite

SINGLES = ["O", "S-LOC", "S-PER", "S-ORG"]


@given(batch=batches(st.sampled_from(SINGLES)))
def test_chunks_of_one_token_equal_flat_scores_of_sklearn_crfsuite(batch):
    pairs = {
        chunk_precision_score: crfsuite_metrics.flat_precision_score,
        chunk_recall_score: crfsuite_metrics.flat_recall_score,
        chunk_f1_score: crfsuite_metrics.flat_f1_score,
    }
    for ours, flat in pairs.items():
        for average in AVERAGES:
            expected = flat(*batch, labels=SINGLES[1:], average=average, zero_division=0)
            score = ours(*batch, labels=["LOC", "PER", "ORG"], average=average)
            assert_allclose(score, expected, rtol=1e-12)


@pytest.mark.parametrize("zero_division", [0.0, 1.0, np.nan])
@given(
    tokens=st.lists(
        st.tuples(st.sampled_from(SINGLES), st.sampled_from(SINGLES), st.integers(1, 3)),
        min_size=1,
        max_size=12,
    )
)
def test_plain_arrays_equal_scikit_learn(zero_division, tokens):
    y_true, y_pred, weights = (np.array(column) for column in zip(*tokens, strict=True))
    assert token_accuracy_score(y_true, y_pred) == sklearn.metrics.accuracy_score(y_true, y_pred)
    accuracy = sklearn.metrics.accuracy_score(y_true, y_pred, sample_weight=weights)
    for score in token_accuracy_score, sequence_accuracy_score:
        assert score(y_true, y_pred, sample_weight=weights) == pytest.approx(accuracy)
    options = {"zero_division": zero_division, "sample_weight": weights}
    for average in AVERAGES:
        options["average"] = average
        ours = chunk_precision_recall_fscore_support(
            y_true, y_pred, labels=["LOC", "PER", "ORG"], **options
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = sklearn.metrics.precision_recall_fscore_support(
                y_true, y_pred, labels=SINGLES[1:], **options
            )
        for our, their in zip(ours[:3], theirs, strict=False):
            assert_allclose(our, their, rtol=1e-12)


@given(batch=batches(st.sampled_from(["DET", "NOUN", "VERB"]), min_length=1))
def test_accuracies_equal_sklearn_crfsuite_and_seqeval(batch):
    flat = crfsuite_metrics.flat_accuracy_score(*batch)
    assert token_accuracy_score(*batch) == pytest.approx(flat)
    assert token_accuracy_score(*batch) == pytest.approx(seqeval.metrics.accuracy_score(*batch))
    # Given lists of one length, sklearn-crfsuite counts equal tokens, not equal sequences;
    # an object array keeps it from seeing a matrix.
    whole = crfsuite_metrics.sequence_accuracy_score(*map(object_array, batch))
    assert sequence_accuracy_score(*batch) == pytest.approx(whole)


@given(batch=batches(st.integers(0, 2)))
def test_integer_labels(batch):
    as_str = [[[f"{label}" for label in row] for row in side] for side in batch]
    assert token_accuracy_score(*batch) == token_accuracy_score(*as_str)
    assert sequence_accuracy_score(*batch) == sequence_accuracy_score(*as_str)


# ------------------------------------------------------------------------------- weights and forms


@given(batch=batches_of("conlleval"), data=st.data())
def test_integer_weights_equal_repetition(batch, data):
    n_sequences = len(batch[0])
    weights = data.draw(st.lists(st.integers(0, 3), min_size=n_sequences, max_size=n_sequences))
    repeated = [
        [row for row, weight in zip(side, weights, strict=True) for _ in range(weight)]
        for side in batch
    ]
    assume(any(repeated[0]))
    types = ["LOC", "PER", "NP-SBJ", "_"]
    for average in AVERAGES:
        options = {"average": average, "labels": types}
        ours = chunk_precision_recall_fscore_support(*batch, sample_weight=weights, **options)
        expected = chunk_precision_recall_fscore_support(*repeated, **options)
        for a, b in zip(ours, expected, strict=True):
            assert_allclose(a, b, rtol=1e-12)
    for score in token_accuracy_score, sequence_accuracy_score:
        assert score(*batch, sample_weight=weights) == pytest.approx(score(*repeated))


ROWS_TRUE = [["B-NP", "I-NP", "O"], ["B-VP", "I-VP", "I-VP"], ["O", "B-NP", "B-NP"]]
ROWS_PRED = [["B-NP", "I-NP", "O"], ["B-VP", "O", "I-VP"], ["O", "B-VP", "B-NP"]]
ragged = {
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "object array of lists": object_array,
    "object array of arrays": lambda rows: object_array([np.array(row) for row in rows]),
    "object array of object arrays": lambda rows: object_array(
        [np.array(row, dtype=object) for row in rows]
    ),
    "list of arrays": lambda rows: [np.array(row) for row in rows],
    "series of lists": pd.Series,
}
rectangular = {
    "2-D array": np.array,
    "2-D object array": lambda rows: np.array(rows, dtype=object),
    "data frame": pd.DataFrame,
}


def every_score(y_true, y_pred):
    return [score(y_true, y_pred) for _, score in SCORERS.values()] + [
        chunk_report(y_true, y_pred),
        chunk_report(y_true, y_pred, scheme="IOB2"),
    ]


@pytest.mark.parametrize("form", [*ragged, *rectangular])
def test_forms_of_labels(form):
    convert = (ragged | rectangular)[form]
    expected = every_score(ROWS_TRUE, ROWS_PRED)
    assert every_score(convert(ROWS_TRUE), convert(ROWS_PRED)) == expected
    assert every_score(ROWS_TRUE, convert(ROWS_PRED)) == expected


@pytest.mark.parametrize("form", ragged)
def test_forms_of_ragged_labels(form):
    y_true, y_pred = ([*rows, [], [*rows[0], "I-NP"]] for rows in (ROWS_TRUE, ROWS_PRED))
    convert = ragged[form]
    assert every_score(convert(y_true), convert(y_pred)) == every_score(y_true, y_pred)


FLAT_TRUE, FLAT_PRED = ["B-NP", "I-NP", "O", "I-VP"], ["B-NP", "B-NP", "I-NP", "O"]


@pytest.mark.parametrize("form", [np.array, partial(np.array, dtype=object), pd.Series])
def test_labels_of_an_array_are_sequences_of_length_one(form):
    expected = every_score([[label] for label in FLAT_TRUE], [[label] for label in FLAT_PRED])
    assert every_score(form(FLAT_TRUE), form(FLAT_PRED)) == expected
    # As from scikit-learn's tools, which take lists apart and get arrays from predict.
    assert every_score(FLAT_TRUE, form(FLAT_PRED)) == expected


def test_empty_sequences_separate_nothing():
    with_gaps = [
        [[], *(part for row in side for part in (row, []))] for side in (ROWS_TRUE, ROWS_PRED)
    ]
    assert chunk_report(*with_gaps) == chunk_report(ROWS_TRUE, ROWS_PRED)
    assert token_accuracy_score(*with_gaps) == token_accuracy_score(ROWS_TRUE, ROWS_PRED)
    hits = [a == b for a, b in zip(*with_gaps, strict=True)]
    assert sequence_accuracy_score(*with_gaps) == np.mean(hits)


@pytest.mark.parametrize("zero_division", [0.0, 1.0, np.nan])
def test_no_chunk_at_all(zero_division):
    y = [["O", "O"], ["O"]]
    for average in AVERAGES[:3]:
        scores = chunk_precision_recall_fscore_support(
            y, y, average=average, zero_division=zero_division
        )
        assert_array_equal(scores, [zero_division] * 3 + [0])
    assert [len(column) for column in chunk_precision_recall_fscore_support(y, y)] == [0] * 4
    assert list(chunk_report(y, y, output_dict=True)) == ["micro avg", "macro avg", "weighted avg"]
    assert "weighted avg" in chunk_report(y, y)


def test_a_type_with_the_name_of_an_average():
    y = [["B-micro avg", "B-NP"]]
    assert chunk_report(y, y).count("micro avg") == 2
    with pytest.raises(ValueError, match="a dict has room for one row 'micro avg'"):
        chunk_report(y, y, output_dict=True)


@pytest.mark.parametrize("digits", [-1, 1.5, None, "2"])
def test_digits_that_are_none(digits):
    with pytest.raises(ValueError, match="digits must be an integer that is not negative"):
        chunk_report([["B-NP"]], [["B-NP"]], digits=digits)


def test_report_with_weights_has_short_numbers():
    report = chunk_report(ROWS_TRUE, ROWS_PRED, sample_weight=[1 / 3, 1, 1], digits=3)
    support = np.array([1 / 3 + 2, 1.0])
    rows = dict(line.split(maxsplit=1) for line in report.splitlines()[2:4])
    assert [rows[kind].split()[-1] for kind in ("NP", "VP")] == [f"{s:.3f}" for s in support]


# ------------------------------------------------------------------------------------------ errors

ALL_SCORES = [
    chunk_precision_score,
    chunk_recall_score,
    chunk_f1_score,
    chunk_precision_recall_fscore_support,
    chunk_report,
    token_accuracy_score,
    sequence_accuracy_score,
]
CHUNK_SCORES = ALL_SCORES[:5]
AVERAGED_SCORES = ALL_SCORES[:4]


@pytest.mark.parametrize("score", ALL_SCORES)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        (
            [["O"], [], ["O"], ["O"] * 5, ["O"]],
            [["O"], [], ["O"], ["O"] * 4, []],
            "y_true[3] has 5 labels but y_pred[3] has 4",
        ),
        ([["O"], ["O"]], [["O", "O"]], "y_true has 2 sequences but y_pred has 1"),
        ([], [], "y_true has no sequences"),
        ([["O"]], np.array([]), "y_pred has no sequences"),
        ([[], []], [[], []], "y_true has no labels"),
        (np.empty((2, 0)), [[], []], "y_true has no labels"),
        (None, [["O"]], "y_true must be a list or array of labels, got NoneType"),
        ([["O"]], "O", "y_pred must be a list or array of labels, got str"),
        (
            [["O"], "O"],
            [["O"], ["O"]],
            "y_true mixes labels and sequences of labels: y_true[0] is a list, y_true[1] a str",
        ),
        ([["O"], [], [["O"]]], [["O"], [], ["O"]], "y_true[2] has the label ['O']: "),
        ([["O"], ["O"]], [["O"], [None]], "y_pred[1] has the label None: "),
    ],
)
def test_errors_name_the_sequence(score, y_true, y_pred, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        score(y_true, y_pred)


@pytest.mark.parametrize("score", [*ALL_SCORES, partial(chunk_f1_score, scheme="IOB2")])
@pytest.mark.parametrize("form", [list, tuple])
def test_a_sequence_without_the_list_around_it(score, form):
    message = re.escape("y_true[0] is the label 'B-NP', but a list of sequences of labels")
    with pytest.raises(ValueError, match=message):
        score(form(FLAT_TRUE), form(FLAT_PRED))
    for y_true, y_pred in ((["O"], [["O"]]), ([["O"]], ["O"])):
        with pytest.raises(ValueError, match=r"y_(true|pred)\[0\] is the label 'O', but a list of"):
            score(y_true, y_pred)


@pytest.mark.parametrize("score", [token_accuracy_score, sequence_accuracy_score])
def test_strings_are_not_compared_with_numbers(score):
    message = re.escape(
        "y_true has labels such as 1, but y_pred such as '1': a string and a number"
    )
    with pytest.raises(ValueError, match=message):
        score([[1, 0]], [["1", "0"]])
    with pytest.raises(ValueError, match="y_true has labels such as 'A', but y_pred such as 0"):
        token_accuracy_score([[None, "A"]], [[0, 1]])
    assert score([[1, 0]], [[1.0, 0.0]]) == 1.0


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_of_a_sequence_without_the_list_around_it(name):
    X, y = make_words([3])
    tagger = WordTagger().fit(X, y)
    with pytest.raises(ValueError, match="a list of sequences of labels is expected"):
        SCORERS[name][0](tagger, X, y[0][: len(X)])


def test_extract_chunks_takes_one_sequence():
    for labels in ("BIO", None, 3, {"B-A": 1}):
        with pytest.raises(ValueError, match="a list or array of the labels of a sequence, got"):
            extract_chunks(labels)
    for labels in ([["B-A"], ["O"]], (["O"],), np.array([["O", "B-A"]])):
        with pytest.raises(ValueError, match="belong to one sequence, but one of them is"):
            extract_chunks(labels)


@pytest.mark.parametrize("score", CHUNK_SCORES)
def test_labels_in_place_of_types(score):
    y = [["B-A", "I-A", "O", "B-B-A", "I"]]
    for labels in (["A", "B-A"], ["nowhere"], ["S-nowhere"], ["_"], np.array(["A"])):
        score(y, y, labels=labels)
    for name, kind in (("I-A", "A"), ("S-A", "A"), ("L-B-A", "B-A"), ("B", "_")):
        message = (
            rf"labels must be types of chunks, but '{name}' is a label: pass the type '{kind}'"
        )
        with pytest.raises(ValueError, match=message):
            score(y, y, labels=["A", name])
    with pytest.raises(ValueError, match="'O' is a label: leave it out"):
        score(y, y, labels=["A", "O"])
    assert chunk_f1_score([["B-O"]], [["B-O"]], labels=["O"]) == 1.0
    for labels in ([1], [None], [["A"]], 5, {"A": 1}):
        with pytest.raises(ValueError, match="labels must be a list of distinct chunk types, got"):
            score(y, y, labels=labels)


@pytest.mark.parametrize("score", CHUNK_SCORES)
@pytest.mark.parametrize(
    ("label", "scheme", "message"),
    [
        (7, "conlleval", "y_pred[2] has the label 7: labels of chunks must be str"),
        (
            "NP",
            "conlleval",
            "y_pred[2] has the label 'NP': the labels of scheme='conlleval' are 'O' or one of",
        ),
        ("X-NP", "conlleval", "y_pred[2] has the label 'X-NP': "),
        ("BI-NP", "conlleval", "y_pred[2] has the label 'BI-NP': "),
        ("b-NP", "conlleval", "y_pred[2] has the label 'b-NP': "),
        ("-NP", "conlleval", "y_pred[2] has the label '-NP': "),
        ("", "conlleval", "y_pred[2] has the label '': "),
        (
            "E-NP",
            "IOB1",
            "y_pred[2] has the label 'E-NP': the labels of scheme='IOB1' are 'O' or one of B, I, ",
        ),
        ("S-NP", "IOB2", "y_pred[2] has the label 'S-NP': "),
        ("L-NP", "IOBES", "y_pred[2] has the label 'L-NP': "),
        ("S-NP", "BILOU", "y_pred[2] has the label 'S-NP': "),
    ],
)
def test_errors_name_the_label(score, label, scheme, message):
    y_true = [["O", "O"], [], ["O", "B-NP"]]
    y_pred = [["O", "O"], [], ["B-NP", label]]
    with pytest.raises(ValueError, match=re.escape(message)):
        score(y_true, y_pred, scheme=scheme)
    in_sequence = message.replace("y_pred[2]", "labels[1]")
    with pytest.raises(ValueError, match=re.escape(in_sequence)):
        extract_chunks(y_pred[2], scheme=scheme)


@pytest.mark.parametrize("score", CHUNK_SCORES)
def test_errors_of_options(score):
    y = [["B-NP"], ["O"]]
    with pytest.raises(ValueError, match=r"scheme must be one of 'conlleval', .*, got 'IOB'"):
        score(y, y, scheme="IOB")
    for labels in "NP", ["NP", "VP", "NP"]:
        with pytest.raises(ValueError, match="labels must be a list of distinct chunk types"):
            score(y, y, labels=labels)
    for value in ("warn", None):
        with pytest.raises(ValueError, match=f"zero_division must be a number, .* got {value!r}"):
            score(y, y, zero_division=value)
    if score in AVERAGED_SCORES:
        with pytest.raises(ValueError, match=r"average must be one of .*, got 'samples'"):
            score(y, y, average="samples")


@pytest.mark.parametrize("score", ALL_SCORES)
@pytest.mark.parametrize("weights", [[1.0], [1.0, 2.0, 3.0], [[1.0], [2.0]]])
def test_errors_of_weights(score, weights):
    y = [["B-NP"], ["O"]]
    with pytest.raises(ValueError, match=r"sample_weight .*one (weight )?for each sequence"):
        score(y, y, sample_weight=weights)


# ----------------------------------------------------------------------------------------- scorers


class WordTagger(BaseEstimator):
    """Gives every word the label that it had most often, `unknown` to new and rare words."""

    def __init__(self, unknown="O", min_count=1):
        self.unknown = unknown
        self.min_count = min_count

    def fit(self, X, y):
        counts = {}
        for words, labels in zip(X, y, strict=True):
            for word, label in zip(words, labels, strict=True):
                counts.setdefault(word, Counter())[label] += 1
        self.classes_ = np.unique([label for labels in y for label in labels])
        self.label_of_ = {
            word: max(sorted(counter), key=counter.get)
            for word, counter in counts.items()
            if counter.total() >= self.min_count
        }
        return self

    def predict(self, X):
        get = self.label_of_.get
        return object_array([[get(word, self.unknown) for word in words] for words in X])


class WordClassifier(ClassifierMixin, WordTagger):
    pass


def make_words(lengths):
    rng = np.random.default_rng(0)
    sentences = [
        [(length, TYPES[rng.integers(2)] if i % 2 else None) for i, length in enumerate(row)]
        for row in (rng.integers(1, 4, size=size) for size in lengths)
    ]
    y = [write_labels(sentence, "IOB2") for sentence in sentences]
    # A word gives its label away, but a fifth of the time another word stands in its place.
    X = [[label if rng.random() < 0.8 else f"w{rng.integers(9)}" for label in row] for row in y]
    return X, y


def split_scores(tagger, X, y, cv, score, **params):
    """What cross-validation should find, computed by hand."""
    scores = []
    for train, test in cv.split(X):
        fitted = type(tagger)(**params).fit([X[i] for i in train], [y[i] for i in train])
        scores.append(score([y[i] for i in test], fitted.predict([X[i] for i in test])))
    return scores


@pytest.mark.parametrize("tagger", [WordTagger(), WordClassifier()], ids=["plain", "classifier"])
@pytest.mark.parametrize("form", [list, object_array])
def test_grid_search_with_scorer(tagger, form):
    X, y = make_words(range(2, 14))
    cv = KFold(3)
    grid = {"min_count": [1, 100]}
    search = GridSearchCV(
        tagger, grid, scoring=metrics.chunk_f1_scorer, cv=cv, error_score="raise"
    ).fit(form(X), form(y))
    for i, min_count in enumerate(grid["min_count"]):
        expected = split_scores(tagger, X, y, cv, chunk_f1_score, min_count=min_count)
        found = [search.cv_results_[f"split{fold}_test_score"][i] for fold in range(3)]
        assert found == expected
    # One of the candidates gives every word the label O.
    assert search.best_params_["min_count"] == 1
    predicted = search.predict(form(X))
    assert search.score(form(X), form(y)) == chunk_f1_score(y, predicted)


@pytest.mark.parametrize("tagger", [WordTagger(), WordClassifier()], ids=["plain", "classifier"])
@pytest.mark.parametrize("lengths", [range(2, 14), [6] * 12], ids=["ragged", "equal"])
def test_cross_validate_with_all_scorers(tagger, lengths):
    X, y = make_words(lengths)
    if len(set(lengths)) == 1:
        X, y = ([row[:6] for row in side] for side in (X, y))
    cv = KFold(4)
    scoring = {name: scorer for name, (scorer, _) in SCORERS.items()}
    result = cross_validate(tagger, X, y, scoring=scoring, cv=cv, error_score="raise")
    for name, (_, score) in SCORERS.items():
        assert result[f"test_{name}"].tolist() == split_scores(tagger, X, y, cv, score)
    predicted = cross_val_predict(tagger, X, object_array(y), cv=cv)
    assert token_accuracy_score(y, predicted) == crfsuite_metrics.flat_accuracy_score(y, predicted)


@pytest.mark.parametrize("labels", [["O", "B-NP"], ["O", "B-NP", "B-VP"]])
def test_scorers_with_an_ordinary_classifier(labels):
    rng = np.random.default_rng(0)
    y = rng.choice(labels, size=60)
    X = rng.normal(size=(60, 3)) + np.searchsorted(np.unique(y), y)[:, None]
    classifier = LogisticRegression().fit(X, y)
    predicted = classifier.predict(X)
    f1 = sklearn.metrics.f1_score(y, predicted, labels=labels[1:], average="micro")
    assert metrics.chunk_f1_scorer(classifier, X, y) == pytest.approx(f1)
    accuracy = classifier.score(X, y)
    assert metrics.token_accuracy_scorer(classifier, X, y) == pytest.approx(accuracy)
    assert metrics.sequence_accuracy_scorer(classifier, X, y) == pytest.approx(accuracy)


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_pickle_and_take_weights(name):
    scorer, score = SCORERS[name]
    X, y = make_words(range(2, 9))
    tagger = WordTagger().fit(X, y)
    copy = pickle.loads(pickle.dumps(scorer))
    predicted = tagger.predict(X)
    assert copy(tagger, X, y) == scorer(tagger, X, y) == score(y, predicted)
    weights = np.linspace(0, 1, len(y))
    assert copy(tagger, X, y, sample_weight=weights) == score(y, predicted, sample_weight=weights)
    assert repr(copy) == repr(scorer)


@cache
def scores_with_weights():
    """Functions of the weights of two sequences: all scores, and `score` of the estimators."""
    scores, y, costs = {}, [["O"], ["B-a"]], [[0.0, 1.0], [1.0, 0.0]]
    for name in metrics.__all__:
        if name.endswith("_score"):
            scores[name] = partial(getattr(metrics, name), y, y)
    X = [np.eye(2)[:1], np.eye(2)[1:]]
    for tagger in (CRFTagger(), PerceptronTagger(random_state=0)):
        scores[type(tagger).__name__] = partial(tagger.fit(X, y).score, X, y)
    groups = [np.eye(2), np.eye(2)]
    reranker = PerceptronReranker(random_state=0).fit(groups, costs)
    return scores | {"reranker": partial(reranker.score, groups, costs)}


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in metrics.__all__ if name.endswith("_score")),
        *("CRFTagger", "PerceptronTagger", "reranker"),
    ],
)
def test_weights_that_say_nothing(name):
    score = scores_with_weights()[name]
    assert score(sample_weight=[0, 1]) in (-1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"add up to zero|at least one non-zero"):
        score(sample_weight=[0, 0])
    for bad in (np.nan, np.inf, -1.0):
        with pytest.raises(ValueError, match=r"(?i)nan|inf|negative"):
            score(sample_weight=[1, bad])
