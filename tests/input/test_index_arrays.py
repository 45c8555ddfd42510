"""Index arrays of matrices and batches, damaged before or after these were made: refused."""

import pickle
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skstruct import (
    CRFTagger,
    PerceptronReranker,
    PerceptronTagger,
    SequenceBatch,
    SequenceUnion,
    SequenceVectorizer,
    VRDAReranker,
)
from skstruct.dask.shard import read as read_shard
from skstruct.streams import fit_stream

X = sp.csr_matrix(
    (np.array([1.0, 2, 3, 4, 5, 6]), np.array([0, 1, 2, 0, 1, 2]), np.array([0, 2, 3, 4, 6])),
    shape=(4, 3),
)
Y = [["A", "B"], ["B", "A"]]
NAMES = ["a", "b", "c"]


def set_value(name, place, value, dtype=None):
    def damage(matrix):
        array = np.array(getattr(matrix, name), dtype=dtype)
        array[place] = value
        setattr(matrix, name, array)

    return damage


def set_array(name, change):
    return lambda matrix: setattr(matrix, name, change(getattr(matrix, name)))


# Row 2, token 0 of sequence 1, has the entry 3; row 3 those from 4 to 6.
TOKEN = "(Sequence 1, token 0|Group 1, candidate 0)"
DAMAGES = {
    "a column too large": (set_value("indices", 3, 3), f"{TOKEN}: column 3 is not one of the 3"),
    "a huge column": (set_value("indices", 3, 50_000_000), f"{TOKEN}: column 50000000 is not"),
    "a column of 64 bits": (set_value("indices", 3, 2**32, np.int64), f"{TOKEN}: column 42949672"),
    "a negative column": (set_value("indices", 3, -1), f"{TOKEN}: column -1 is not one of the 3"),
    "a row that ends too early": (set_value("indptr", 3, 2), rf"{TOKEN}: \w+.indptr goes from 3"),
    "a row that ends too late": (set_value("indptr", 3, 7), rf"{TOKEN}: \w+.indptr goes from 3"),
    "a negative end": (set_value("indptr", 3, -1), rf"{TOKEN}: \w+.indptr goes from 3 to -1"),
    "another start": (set_value("indptr", 0, 1), "indptr starts at 1"),
    "too few rows": (set_array("indptr", lambda a: a[:-1]), "indptr has 4 numbers; expected 5"),
    "too few values": (set_array("data", lambda a: a[:3]), "data has the shape"),
    "too few indices": (set_array("indices", lambda a: a[:3]), "but there are 3 indices"),
    "columns that are no integers": (
        set_array("indices", lambda a: a.astype(float)),
        "indices is not a 1-D array of integers",
    ),
}
OFFSETS = {
    "offsets beyond the end": [0, 2, 50_000_000],
    "offsets that decrease": [0, 5, 4],
    "negative offsets": [0, -3, 4],
    "offsets that end early": [0, 2, 3],
    "offsets that start late": [1, 2, 4],
    "no integers": [0.0, 2.5, 4.0],
}


def batch(matrix=X, transition_X=None):
    return SequenceBatch(matrix.copy(), [0, 2, 4], feature_names=NAMES, transition_X=transition_X)


def damaged(kind):
    """A batch that was damaged after it was made, and what is said of it."""
    made = batch()
    if kind in OFFSETS:
        made.offsets = np.array(OFFSETS[kind])
        return made, "offsets"
    change, message = DAMAGES[kind]
    change(made.X)
    return made, message


class Returns:
    """A vectoriser of one batch."""

    def __init__(self, made):
        self.made = made

    def transform(self, X):
        return self.made


# Learnt at the first use: all processes that test import this.
@cache
def tagger():
    return PerceptronTagger(max_iter=1, tol=None, random_state=0).fit(batch(), Y)


@cache
def reranker():
    return PerceptronReranker(max_iter=1, random_state=0).fit(batch(), [0, 1])


@cache
def voting():
    return VRDAReranker(prediction="vote", max_iter=1, random_state=0).fit(batch(), [0, 1])


@cache
def vectorizer():
    return SequenceVectorizer().fit([[dict.fromkeys(NAMES, 1.0)]])


CALLS = {
    "fit": lambda b: PerceptronTagger(max_iter=1, random_state=0).fit(b, Y),
    "fit of a CRF": lambda b: CRFTagger(max_iter=1).fit(b, Y),
    "partial_fit": lambda b: PerceptronTagger(random_state=0).partial_fit(b, Y),
    "a stream": lambda b: fit_stream(PerceptronTagger(random_state=0), lambda epoch: [(b, Y)]),
    "predict": lambda b: tagger().predict(b),
    "predict_proba": lambda b: tagger().predict_proba(b),
    "predict_nbest": lambda b: tagger().predict_nbest(b),
    "score": lambda b: tagger().score(b, Y),
    "X_val": lambda b: PerceptronTagger(max_iter=1).fit(batch(), Y, X_val=b, y_val=Y),
    "fit of a reranker": lambda b: PerceptronReranker(random_state=0).fit(b, [0, 1]),
    "predict of a reranker": lambda b: reranker().predict(b),
    "decision_function": lambda b: reranker().decision_function(b),
    "predict_proba of a reranker": lambda b: reranker().predict_proba(b),
    "rank": lambda b: reranker().rank(b),
    "score of a reranker": lambda b: reranker().score(b, [0, 1]),
    "vote": lambda b: voting().predict(b),
    "inverse_transform": lambda b: vectorizer().inverse_transform(b),
    "union": lambda b: SequenceUnion([("x", "passthrough")]).fit_transform(b),
    "a shard": lambda b: read_shard(b, Y, (None, None, None)),
    "a shard with a vectoriser": lambda b: read_shard([["a"]], Y, (Returns(b), None, None)),
    "an item": lambda b: b[1],
    "items": list,
    "a slice": lambda b: b[1:],
    "steps": lambda b: b[::-1],
    "numbers": lambda b: b[[1]],
    "concatenate": lambda b: SequenceBatch.concatenate([batch(), b]),
    "hstack": lambda b: SequenceBatch.hstack([batch(), b]),
    "times": lambda b: b * 2,
    "pickle": pickle.dumps,
    "HTML": lambda b: b._repr_html_(),
}


@pytest.mark.parametrize("kind", [*DAMAGES, *OFFSETS])
def test_what_was_damaged_later_is_refused_at_every_call(kind):
    for name, call in CALLS.items():
        made, message = damaged(kind)
        if name in ("a slice", "numbers", "steps"):
            # In the batch of those selected, it is the first.
            message = message.replace("Sequence 1, token 0", "Sequence [01], token 0")
        with pytest.raises(ValueError, match=message):
            call(made)


# Matrices as the X of a batch, as its features of transitions, as a sequence, and as rows.
READERS = [
    ("1, token 0", lambda m: SequenceBatch(m, [0, 2, 4])),
    ("1, token 0", lambda m: SequenceBatch(X, [0, 2, 4], transition_X=m)),
    ("0, token [23]", lambda m: SequenceBatch.from_sequences([m])),
    ("0, token [23]", lambda m: tagger().predict([m])),
    ("1, token [23]", lambda m: PerceptronTagger().fit([X, m], [["A", "B"] * 2] * 2)),
    ("2, token 0", lambda m: tagger().predict(m)),
    ("2, token 0", lambda m: CRFTagger().fit(m, [*"ABAB"])),
]


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_damaged_matrices_are_refused(kind, make):
    change, message = DAMAGES[kind]
    matrix = make(X)
    change(matrix)
    for place, read in READERS:
        # Stacked under others, a row that ends late is one that ends before it begins.
        said = message.replace("1, token 0", place).partition(" from")[0]
        with pytest.raises(ValueError, match=said):
            read(matrix)


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_transition_features_are_refused(kind):
    change, message = DAMAGES[kind]
    tagger = PerceptronTagger(max_iter=1, tol=None, random_state=0).fit(batch(transition_X=X), Y)
    for call in (tagger.predict, lambda b: tagger.fit(b, Y), lambda b: b[:], lambda b: b * 2):
        made = batch(transition_X=X)
        change(made.transition_X)
        with pytest.raises(ValueError, match=message):
            call(made)
    made = batch(transition_X=X)
    made.transition_X = X[:2]
    for call in (tagger.predict, lambda b: b[1:]):
        with pytest.raises(ValueError, match="transition_X has 2 rows, but X has 4"):
            call(made)


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (sp.csc_matrix, set_value("indices", 1, 10**8), "Column 0 of X: row 100000000 is not one"),
        (sp.csc_array, set_value("indices", 1, -1), "Column 0 of X: row -1 is not one of the 4"),
        (sp.csc_matrix, set_value("indptr", 1, 10**8), "Column 0 of X: X.indptr goes from 0 to"),
        (sp.coo_matrix, set_value("row", 3, 10**8), "Entry 3 of X: row 100000000 is not one of"),
        (sp.coo_matrix, set_value("col", 3, 10**8), "Sequence 1, token 0: column 100000000 is"),
        (sp.coo_matrix, set_value("col", 3, -1), "Sequence 1, token 0: column -1 is not one of"),
        (sp.coo_array, set_array("data", lambda a: a[:2]), "has 2 values, but 6 rows"),
        (sp.bsr_matrix, set_value("indices", 0, 10**8), "Sequence 0, token 0: block 100000000 is"),
        (sp.bsr_matrix, set_array("data", lambda a: a[:1]), "data has the shape"),
        (sp.lil_matrix, lambda m: m.data[2].extend([1.0] * 10**6), "Sequence 1, token 0: X has"),
        (sp.lil_matrix, lambda m: m.rows[2].__setitem__(0, 7), "Sequence 1, token 0: column 7 is"),
        (sp.dia_matrix, set_array("offsets", lambda a: np.tile(a, 9)), "data has the shape"),
    ],
)
def test_other_formats_are_checked_before_they_are_converted(make, change, message):
    matrix = make(X)
    assert_array_equal(SequenceBatch(matrix, [0, 2, 4]).X.toarray(), X.toarray())
    change(matrix)
    with pytest.raises(ValueError, match=message):
        SequenceBatch(matrix, [0, 2, 4])
    with pytest.raises(ValueError, match=message.replace("1, token 0", "[02], token [02]")):
        tagger().predict([matrix])
    with pytest.raises(ValueError, match=message.replace("1, token 0", "2, token 0")):
        tagger().predict(matrix)


@given(
    st.lists(st.integers(-1, 7), min_size=4, max_size=4),
    st.lists(st.integers(-1, 3), min_size=5, max_size=6),
    st.lists(st.integers(-1, 4), min_size=3, max_size=3),
    st.sampled_from([np.int32, np.int64]),
)
def test_arrays_are_read_rightly_or_refused(ends, columns, offsets, dtype):
    """Any integers: what a loop in Python makes of them, or a ValueError where it cannot."""
    matrix = sp.csr_matrix((3, 3))
    matrix.indptr, matrix.indices = np.array(ends, dtype), np.array(columns, dtype)
    matrix.data = np.arange(1.0, len(columns) + 1)
    valid = ends[0] == 0 and ends == sorted(ends) and ends[-1] <= len(columns)
    valid = valid and all(0 <= column < 3 for column in columns[: ends[-1]])
    valid = valid and offsets[0] == 0 and offsets == sorted(offsets) and offsets[-1] == 3
    if not valid:
        with pytest.raises(ValueError, match=r"indptr|column|offsets"):
            SequenceBatch(matrix, offsets)
        return
    expected = np.zeros((3, 3))
    for row, (first, last) in enumerate(pairwise(ends)):
        for k in range(first, last):
            expected[row, columns[k]] += k + 1
    made = SequenceBatch(matrix, offsets)
    assert_array_equal(made.X.toarray(), expected)
    assert made.X.has_canonical_format
    assert_array_equal(np.vstack([x.toarray() for x in made]), expected)
    assert matrix.indices.tolist() == columns


def test_offsets_are_copied():
    offsets = np.array([0, 2, 4])
    made = SequenceBatch(X, offsets)
    expected = tagger().predict(made).tolist()
    offsets[:] = 50_000_000
    assert made.offsets.tolist() == [0, 2, 4]
    assert tagger().predict(made).tolist() == expected
    with pytest.raises(ValueError, match="read-only"):
        made.offsets[1] = 3


def test_duplicates_that_come_later_are_summed():
    made, twice = batch(), X.toarray()
    made.X.indices[1] = 0
    twice[0] = [3, 0, 0]
    expected = SequenceBatch(twice, [0, 2, 4])
    found, wanted = (CRFTagger().fit(b, Y) for b in (made, expected))
    assert_array_equal(found.coef_, wanted.coef_)
    assert made.X.indices.tolist() == [0, 0, 2, 0, 1, 2]


def test_more_columns_than_kernels_can_number():
    wide = sp.csr_matrix((np.ones(2), np.array([0, 2**31 + 5]), np.array([0, 2])), (1, 2**31 + 6))
    with pytest.raises(ValueError, match="2,147,483,654 columns, more than the 2,147,483,647"):
        CRFTagger().fit(SequenceBatch(wide, [0, 1]), [["A"]])
