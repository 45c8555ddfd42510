"""Data frames with one token a row: batches of them, and predictions beside them."""

import pickle
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone

from skstruct import (
    CRFTagger,
    EmbeddingVectorizer,
    HashingTemplateVectorizer,
    PerceptronTagger,
    SequenceBatch,
    SequenceUnion,
    SequenceVectorizer,
    TemplateVectorizer,
    WordVectorizer,
)
from skstruct.crfsuite import CRF

TABLE = {
    "doc_id": [7, 7, 3, 3, 3],
    "token": ["Rue", "5", "the", None, "Rue"],
    "length": [3, 1, 3, 0, 3],
    "title": [True, False, False, False, True],
    "label": ["A", "B", "A", "B", "A"],
}
SCATTERED = [0, 2, 1, 3, 4]
X_DICTS = [
    [{"token": "Rue", "length": 3, "title": True}, {"token": "5", "length": 1, "title": False}],
    [
        {"token": "the", "length": 3, "title": False},
        {"length": 0, "title": False},
        {"token": "Rue", "length": 3, "title": True},
    ],
]


def polars_frame(table):
    return pytest.importorskip("polars").DataFrame(table)


@pytest.fixture(params=[pd.DataFrame, polars_frame], ids=["pandas", "polars"])
def make(request):
    return request.param


def by_name(batch):
    """Batch with the columns in the order of their names."""
    order = np.argsort(batch.feature_names.astype(str))
    return batch.X[:, order], batch.feature_names[order].tolist()


def test_features_are_those_of_feature_dicts(make):
    batch, labels = SequenceBatch.from_frame(make(TABLE), "doc_id", label="label")
    expected = SequenceVectorizer().fit_transform(X_DICTS)
    X, names = by_name(batch)
    assert names == expected.feature_names.tolist()
    assert_array_equal(X.toarray(), expected.X.toarray())
    assert_array_equal(batch.offsets, [0, 2, 5])
    assert labels == [["A", "B"], ["A", "B", "A"]]


def test_numbers_and_bools_make_a_dense_batch(make):
    batch = SequenceBatch.from_frame(make(TABLE), "doc_id", columns=["length", "title"])
    assert_array_equal(batch.X, [[3, 1], [1, 0], [3, 0], [0, 0], [3, 1]])
    assert batch.feature_names.tolist() == ["length", "title"]


def test_scattered_groups_are_put_together_and_back(make):
    frame = make({name: [column[i] for i in SCATTERED] for name, column in TABLE.items()})
    batch, labels = SequenceBatch.from_frame(frame, "doc_id", label="label")
    together, _ = SequenceBatch.from_frame(make(TABLE), "doc_id", label="label")
    assert_array_equal(batch.X.toarray(), together.X.toarray())
    back = SequenceBatch.to_frame(labels, frame, "doc_id", names="label")
    assert type(back) is type(frame)
    assert list(back["label"]) == list(frame["label"])


def test_predictions_of_an_iterator_and_columns_with_numbers():
    frame = pd.DataFrame({0: [1, 2, 1], "token": ["the", "a", "cat"]})
    assert SequenceBatch.from_frame(frame, 0).lengths.tolist() == [2, 1]
    found = SequenceBatch.to_frame(iter([["A", "B"], ["C"]]), frame, 0)
    assert found["predicted"].tolist() == ["A", "C", "B"]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), min_size=1, max_size=12))
def test_sequences_are_pandas_groups(rows):
    frame = pd.DataFrame(rows, columns=["g", "h"], index=[2 * i for i in range(len(rows))])
    frame["row"] = range(len(rows))
    frame["name"] = [f"t{i}" for i in range(len(rows))]
    for group in ("g", ["g", "h"]):
        batch, y = SequenceBatch.from_frame(frame, group, columns=["row"], label="name")
        parts = [part for _, part in frame.groupby(group, sort=False)]
        assert y == [part["name"].tolist() for part in parts]
        assert_array_equal(batch.lengths, list(map(len, parts)))
        assert_array_equal(batch.X[:, 0], np.concatenate([part["row"] for part in parts]))
        back = SequenceBatch.to_frame(y, frame, group, names="back")
        assert back["back"].tolist() == frame["name"].tolist()
        assert back.index.equals(frame.index)


def test_new_tokens_get_the_features_of_the_tagger(make):
    frame = make(TABLE)
    X, y = SequenceBatch.from_frame(frame, "doc_id", label="label")
    tagger = CRFTagger(tol=1e-12, all_possible_states=True).fit(X, y)
    new = make({"doc_id": [1, 1], "token": ["Rue", "unseen"], "length": [3, 4], "title": [1, 0]})
    batch = SequenceBatch.from_frame(new, "doc_id", feature_names=tagger.feature_names_in_)
    dicts = [
        [{"token": "Rue", "length": 3, "title": 1}, {"token": "unseen", "length": 4, "title": 0}]
    ]
    by_dicts = CRFTagger(tol=1e-12, all_possible_states=True).fit(X_DICTS, y)
    assert_allclose(tagger.predict_proba(batch)[0], by_dicts.predict_proba(dicts)[0], atol=1e-5)
    with pytest.raises(ValueError, match="do not have the feature 'length'"):
        SequenceBatch.from_frame(
            new, "doc_id", columns=["token", "title"], feature_names=tagger.feature_names_in_
        )


@pytest.mark.parametrize("values", [[None, None], [np.nan, np.nan], pd.Categorical([None, None])])
def test_a_column_of_strings_may_be_without_values(values):
    frame = pd.DataFrame({"doc_id": [1, 1], "token": ["a", "b"], "before": [None, "a"]})
    known = SequenceBatch.from_frame(frame, "doc_id").feature_names
    new = pd.DataFrame({"doc_id": [1, 1], "token": ["b", "a"], "before": values})
    batch = SequenceBatch.from_frame(new, "doc_id", feature_names=known)
    expected = [[name == token for name in known] for token in ("token:b", "token:a")]
    assert_array_equal(batch.X.toarray(), expected)
    with pytest.raises(ValueError, match="values of 'before' are not strings: convert them"):
        SequenceBatch.from_frame(new.assign(before=[1, 2]), "doc_id", feature_names=known)
    with pytest.raises(ValueError, match="Row 0: the number 'before' is missing"):
        SequenceBatch.from_frame(new.assign(before=[np.nan, 1]), "doc_id", feature_names=known)


BATCHES_OF_FRAMES = {
    "from_sequences": SequenceBatch.from_sequences,
    "from_lengths": lambda frames: SequenceBatch.from_lengths(
        pd.concat(frames), list(map(len, frames))
    ),
    "init": lambda frames: SequenceBatch(
        pd.concat(frames), np.cumsum([0, *map(len, frames)])
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", BATCHES_OF_FRAMES)
def test_batches_keep_the_names_of_columns(way):
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")) for n in (3, 1, 4)]
    y = [["A", "B", "A"], ["B"], ["A", "A", "B", "B"]]
    make = BATCHES_OF_FRAMES[way]
    assert make(frames).feature_names.tolist() == ["a", "b", "c"]
    tagger = CRFTagger().fit(make(frames), y)
    assert tagger.predict(make(frames)).tolist() == tagger.predict(frames).tolist()
    with pytest.raises(ValueError, match="feature names of X differ"):
        tagger.predict(make([frame[["b", "a", "c"]] for frame in frames]))
    numbered = [frame.set_axis(range(3), axis=1) for frame in frames]
    assert make(numbered).feature_names is None
    if way == "from_sequences":
        with pytest.raises(
            ValueError, match="columns of sequence 2 differ from those of sequence 0"
        ):
            make([*frames[:2], frames[2][["b", "a", "c"]]])


VECTORIZERS_OF_COLUMNS = {
    "templates": TemplateVectorizer("U0:%x[0,0]"),
    "hashing": HashingTemplateVectorizer("U0:%x[0,0]", n_features=64),
    "words": WordVectorizer(),
    "embeddings": EmbeddingVectorizer({"the": [1.0, 0.0], "DT": [0.0, 1.0]}),
}


@pytest.mark.parametrize("name", VECTORIZERS_OF_COLUMNS)
def test_vectorizers_tell_columns_by_their_names(name):
    frames = [pd.DataFrame({"word": ["the", w], "pos": ["DT", "NN"]}) for w in ("cat", "dog")]
    swapped = [frame[["pos", "word"]] for frame in frames]
    vectorizer = clone(VECTORIZERS_OF_COLUMNS[name])
    with pytest.raises(ValueError, match="columns of sequence 1 differ from those of sequence 0"):
        vectorizer.fit_transform([frames[0], swapped[1]])
    batch = vectorizer.fit_transform(frames)
    rows = [frame.to_numpy().tolist() for frame in frames]
    assert abs(vectorizer.transform(rows).X - batch.X).sum() == 0
    if name == "hashing":
        return
    assert vectorizer.feature_names_in_.tolist() == ["word", "pos"]
    for other in (vectorizer, pickle.loads(pickle.dumps(vectorizer))):
        with pytest.raises(ValueError, match=r"has the columns \['pos', 'word'\], but"):
            other.transform([rows[0], *swapped])
    assert not hasattr(vectorizer.fit(rows), "feature_names_in_")


def test_probabilities_beside_the_frame(make):
    frame = make(TABLE)
    X, y = SequenceBatch.from_frame(frame, "doc_id", label="label")
    tagger = CRFTagger().fit(X, y)
    proba = tagger.predict_proba(X)
    found = SequenceBatch.to_frame(proba, frame, "doc_id", names=tagger.classes_)
    assert list(found.columns) == ["A", "B"]
    assert_array_equal(found.to_numpy(), np.concatenate(proba))


def test_missing_labels_are_unknown(make):
    table = dict(TABLE, label=["A", None, "A", "B", None])
    X, y = SequenceBatch.from_frame(make(table), "doc_id", label="label")
    assert y == [["A", None], ["A", "B", None]]
    assert CRFTagger().fit(X, y).classes_.tolist() == ["A", "B"]
    table = dict(TABLE, label=[1, None, 0, 1, 0])
    _, y = SequenceBatch.from_frame(make(table), "doc_id", label="label")
    assert y == [[1, None], [0, 1, 0]]
    assert {type(label) for label in y[1]} == {int}


def test_strings_of_every_type():
    expected, _ = by_name(SequenceBatch.from_frame(pd.DataFrame(TABLE), "doc_id"))
    for dtype in ("object", "category", "string"):
        frame = pd.DataFrame(TABLE).astype({"token": dtype})
        assert_array_equal(
            by_name(SequenceBatch.from_frame(frame, "doc_id"))[0].toarray(), expected.toarray()
        )
    flags = pd.DataFrame({"g": [0, 0, 0], "flag": [True, None, False]})
    batch = SequenceBatch.from_frame(flags, "g")
    assert sp.issparse(batch.X)
    assert_array_equal(batch.X.indptr, [0, 1, 1, 2])
    assert_array_equal(batch.X.data, [1, 0])
    assert batch.keep_zeros


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        ({}, {"group": "doc"}, "no column 'doc'; it has"),
        ({}, {"group": []}, "group is empty"),
        ({}, {"group": "doc_id", "columns": []}, "no column with features"),
        ({}, {"group": "doc_id", "label": "tag"}, "no column 'tag'"),
        ({"doc_id": [1, None, 2, 2, 2]}, {"group": "doc_id"}, "Row 1: the group 'doc_id' is miss"),
        ({"length": [1, 2, None, 2, 2]}, {"group": "doc_id"}, "Row 2: the number 'length' is miss"),
        ({"length": [1.0, 2, 0, np.inf, 2]}, {"group": "doc_id"}, "Row 3: the number 'length'"),
        ({"token": [["a"]] * 5}, {"group": "doc_id"}, "Row 0: the value of 'token' is"),
        ({"at": [datetime(2020, 1, 1)] * 5}, {"group": "doc_id"}, "The column 'at' has dates"),
        ({"at": [timedelta(1), None] + [timedelta(2)] * 3}, {"group": "doc_id"}, "has dates"),
        (
            {"a": ["b:c"] * 5, "a:b": ["c"] * 5},
            {"group": "doc_id"},
            "Two columns make the feature 'a:b:c'; rename one of them",
        ),
        ({}, {"group": 0}, "no column 0; it has"),
        ({}, {"group": "doc_id", "label": ["label"]}, r"no column \['label'\]; it has"),
        (
            {"label": [0.5, 1, 1, 1, 1]},
            {"group": "doc_id", "label": "label"},
            "Row 0: label 0.5",
        ),
    ],
)
def test_errors_name_the_row_and_the_column(make, changes, arguments, message):
    with pytest.raises(ValueError, match=message):
        SequenceBatch.from_frame(make({**TABLE, **changes}), **arguments)


def test_errors_of_whole_frames(make):
    with pytest.raises(ValueError, match="no rows"):
        SequenceBatch.from_frame(make({name: [] for name in TABLE}), "doc_id")
    with pytest.raises(ValueError, match="Expected a data frame of pandas or polars, got list"):
        SequenceBatch.from_frame([], "doc_id")
    frame = make(TABLE)
    with pytest.raises(ValueError, match="2 sequences, but there are predictions for 1"):
        SequenceBatch.to_frame([["A"]], frame, "doc_id")
    with pytest.raises(ValueError, match="Sequence 1 has 3 rows in the frame, but 2 predictions"):
        SequenceBatch.to_frame([["A", "A"], ["A", "A"]], frame, "doc_id")
    with pytest.raises(ValueError, match=r"2 name\(s\), but there are 1 columns"):
        SequenceBatch.to_frame([["A", "A"], ["A"] * 3], frame, "doc_id", names=["a", "b"])
    with pytest.raises(ValueError, match="several columns with the name 'a'"):
        SequenceBatch.from_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]), "a")
    with pytest.raises(ValueError, match="The name 0 of a column is not a string"):
        SequenceBatch.from_frame(pd.DataFrame([[1, 2]], columns=["a", 0]), "a")


def test_frames_of_tokens_are_no_sequences_of_length_one(make):
    frame = make(TABLE)
    tagger = CRFTagger()
    with pytest.raises(ValueError, match=r"Column 'token' .* SequenceBatch.from_frame"):
        tagger.fit(frame[["doc_id", "token"]], frame["label"])
    assert not vars(tagger).keys() & {"classes_", "coef_"}
    with pytest.warns(UserWarning, match=r"length one. SequenceBatch.from_frame") as record:
        tagger.fit(frame[["doc_id", "length"]], frame["label"])
    assert record[0].filename == __file__
    for vectorizer in (SequenceVectorizer(), TemplateVectorizer("U:%x[0,0]")):
        with pytest.raises(ValueError, match=r"data frame; .* SequenceBatch.from_frame"):
            vectorizer.fit(frame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_series_of_lists_are_sequences(library):
    series = pytest.importorskip(library).Series
    X = [[{"w": "a"}, {"w": "b"}], [{"w": "a"}]]
    y = [["A", "B"], ["A"]]
    expected = CRFTagger().fit(X, y)
    for X_series in (series(X), series([[["w:a"], ["w:b"]], [["w:a"]]])):
        tagger = CRFTagger().fit(X_series, series(y))
        assert_array_equal(tagger.coef_, expected.coef_)
        assert tagger.predict(X_series).tolist() == expected.predict(X).tolist()
    words = [["a", "b"], ["a"]]
    vectorizer = TemplateVectorizer("U:%x[0,0]")
    assert_array_equal(
        vectorizer.fit_transform(series(words)).X.toarray(),
        vectorizer.fit_transform(words).X.toarray(),
    )


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_output_is_a_batch_where_frames_are_asked_for(output):
    words = [["a", "b"], ["a"]]
    parts = [
        ("templates", TemplateVectorizer("U:%x[0,0]")),
        ("hashed", HashingTemplateVectorizer("U:%x[0,0]", n_features=8)),
        ("vectors", EmbeddingVectorizer({"a": [1.0], "b": [2.0]})),
    ]
    for _, vectorizer in [*parts, ("union", SequenceUnion(parts))]:
        expected = vectorizer.fit_transform(words)
        with config_context(transform_output=output):
            found = vectorizer.fit(words).transform(words)
        assert isinstance(found, SequenceBatch)
        for batch in (found, expected):
            batch.X = sp.csr_matrix(batch.X)
        assert (found.X != expected.X).nnz == 0


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_lists_of_frames_of_strings_name_the_way(kind):
    library = pytest.importorskip(kind)
    frame = library.DataFrame({"word": ["Ana", "sings"], "size": [1, 2]})
    y = [["B", "O"]] * 4
    calls = [
        lambda: CRFTagger().fit([frame] * 4, y),
        lambda: PerceptronTagger(random_state=0).fit([frame] * 4, y),
        lambda: CRF().fit([frame] * 4, y),
        lambda: SequenceBatch.from_sequences([frame] * 4),
        lambda: CRFTagger().fit([[{"a": 1}] * 2] * 4, y).predict([frame] * 4),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"frame") as raised:
            call()
        assert "column 'word' has strings" in str(raised.value)
        assert "to_dict" in str(raised.value)
    records = frame.to_dict("records") if kind == "pandas" else frame.to_dicts()
    assert CRFTagger(l2=0.1).fit([records] * 4, y).predict([records]).tolist() == y[:1]
    vectors = {"Ana": [1.0, 2.0]}
    for column in ("word", 0):
        X = EmbeddingVectorizer(vectors, column=column, scale=1).fit_transform(
            [frame[["word"]]] * 4
        )
        assert X.X[:2].tolist() == [[1, 2], [0, 0]]
    with pytest.raises(ValueError, match="Sequence 0 has no column 'pos'"):
        EmbeddingVectorizer(vectors, column="pos").fit([frame])


def test_lengths_as_in_hmmlearn_name_the_way():
    X, lengths, y = np.eye(5), [2, 3], ["a", "b", "a", "b", "a"]
    told = r"SequenceBatch\.from_lengths\(X, lengths\)"
    for tagger in (CRFTagger(), PerceptronTagger(random_state=0)):
        with pytest.raises(TypeError, match=told):
            tagger.fit(X, y, lengths=lengths)
        with pytest.raises(ValueError, match=told):
            tagger.fit(X, y, lengths)
        tagger.fit(SequenceBatch.from_lengths(X, lengths), [y[:2], y[2:]])
        for method in (tagger.predict, tagger.predict_proba, tagger.predict_nbest):
            with pytest.raises(TypeError, match=told):
                method(X, lengths=lengths)
