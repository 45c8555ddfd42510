"""Tables that explain a prediction, against enumeration and against decoding again."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.learners import TAGGERS, labelled_sequences
from helpers.marks import compiled
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skstruct import (
    CRFTagger,
    PerceptronTagger,
    SequenceBatch,
    SequenceUnion,
    SequenceVectorizer,
    TemplateVectorizer,
    WordVectorizer,
    crfsuite,
)
from skstruct.inspection import (
    explain_labelling,
    explain_token,
    feature_weights,
    label_alternatives,
    smallest_label_change,
    transition_weights,
)

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


each_order = pytest.mark.parametrize("order", [1, compiled(2)])


@pytest.fixture(params=TAGGERS)
def tagger(request):
    return TAGGERS[request.param]()


@pytest.fixture(scope="module")
def fitted():
    X, y = labelled_sequences(40)
    return CRFTagger(l2=0.1).fit(X, y), X


def random_tagger(seed, length, n_labels=3, n_features=5, constrained=False, order=1):
    """A tagger with random weights, and one sequence."""
    rng = np.random.default_rng(seed)
    X = SequenceBatch.from_lengths(rng.normal(size=(3 * n_labels, n_features)), [n_labels] * 3)
    y = [list(range(n_labels))] * 3
    tagger = CRFTagger(max_iter=1, tol=0, order=order).fit(X, y)
    names = ["coef_", "transition_", "intercept_", "start_", "end_"]
    for name in names + ["transition2_"] * (order > 1):
        setattr(tagger, name, rng.normal(size=getattr(tagger, name).shape) * 2)
    if constrained:
        tagger.transition_[0, 1] = tagger.start_[2] = -np.inf
    values = rng.normal(size=(length, n_features)) * (rng.random((length, n_features)) < 0.7)
    return tagger, SequenceBatch.from_lengths(sp.csr_matrix(values), [length])


def path_score(tagger, batch, path):
    X = batch.X.toarray()
    score = tagger.start_[path[0]] + tagger.end_[path[-1]]
    score += sum(tagger.coef_[k] @ X[t] + tagger.intercept_[k] for t, k in enumerate(path))
    score += sum(tagger.transition_[a, b] for a, b in pairwise(path))
    if hasattr(tagger, "transition2_"):
        score += sum(tagger.transition2_[path[t - 2 : t + 1]] for t in range(2, len(path)))
    return score


# ------------------------------------------------------------------------------- whole labellings


def test_contributions_add_up_to_the_score(tagger):
    X, y = labelled_sequences()
    tagger.fit(X, y)
    for i, found in enumerate(tagger.predict_nbest(X[:6], n_best=3)):
        for labels, score, _ in found:
            table = explain_labelling(tagger, X, index=i, labels=labels)
            assert_allclose(table["contribution"].sum(), score, atol=1e-9)
            assert_allclose(table["contribution"], table["value"] * table["weight"])
        default = explain_labelling(tagger, X, index=i)
        assert_allclose(default["contribution"].sum(), found[0].score, atol=1e-9)


@pytest.mark.slow  # compiles the search for them
def test_transition_features_contribute():
    rng = np.random.default_rng(0)
    X = SequenceBatch(rng.normal(size=(12, 3)), [0, 4, 8, 12], transition_X=rng.random((12, 2)))
    y = [rng.integers(0, 2, 4).tolist() for _ in range(3)]
    tagger = CRFTagger(l2=0.1).fit(X, y)
    assert np.any(tagger.transition_coef_)
    for i, found in enumerate(tagger.predict_nbest(X, n_best=1)):
        table = explain_labelling(tagger, X, index=i)
        assert (table["kind"] == "transition feature").sum() == 2 * 3
        assert_allclose(table["contribution"].sum(), found[0].score)
        for t in range(4):
            alternatives = label_alternatives(tagger, X, index=i, token=t)
            known = [[None] * 4]
            known[0][t] = alternatives["label"].iloc[-1]
            expected = tagger.predict_nbest(X[i : i + 1], n_best=1, known=known)[0][0]
            assert_allclose(alternatives["score"].iloc[-1], expected.score)


def test_names_and_labels_of_the_rows(fitted):
    tagger, X = fitted
    index = next(i for i, x in enumerate(X) if len(x) == 2)
    table = explain_labelling(tagger, X, index=index)
    labels = tagger.predict(X)[index]
    features = table[table["kind"] == "feature"]
    for t, token in enumerate(X[index]):
        names = features.loc[features["token"] == t, "name"].tolist()
        assert names == ["even", f"word:{token['word']}"]
        assert set(table.loc[table["token"] == t, "label"]) == {labels[t]}
    moves = table[table["kind"] == "transition"]
    assert moves[["name", "label"]].to_numpy().tolist() == [list(labels)]


# ---------------------------------------------------------------------------- labels of one token


@each_order
@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans())
def test_alternatives_against_enumeration(order, seed, length, constrained):
    tagger, batch = random_tagger(seed, length, constrained=constrained, order=order)
    scores = {path: path_score(tagger, batch, path) for path in product(range(3), repeat=length)}
    for t in range(length):
        table = label_alternatives(tagger, batch, token=t)
        expected = {
            k: max(score for path, score in scores.items() if path[t] == k) for k in range(3)
        }
        possible = {k: score for k, score in expected.items() if score > -np.inf}
        assert dict(zip(table["label"], table["score"], strict=True)) == pytest.approx(possible)
        assert table["score"].is_monotonic_decreasing
        assert table["difference"].iloc[0] == 0
        proba = tagger.predict_proba(batch)[0][t]
        assert_allclose(table["probability"], proba[table["label"]])
        for row in table.itertuples():
            assert row.labelling[t] == row.label
            assert path_score(tagger, batch, tuple(row.labelling)) == pytest.approx(row.score)


@each_order
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_alternatives_are_those_of_decoding_with_a_known_label(order, seed, length):
    """To the last label where scores are equal: weights are small integers."""
    tagger, batch = random_tagger(seed, length, order=order)
    for name in ("coef_", "transition_", "intercept_", "start_", "end_", "transition2_"):
        if hasattr(tagger, name):
            setattr(tagger, name, np.round(getattr(tagger, name) / 3))
    batch = SequenceBatch(np.round(batch.X), batch.offsets)
    for t in range(length):
        table = label_alternatives(tagger, batch, token=t)
        for row in table.itertuples():
            known = [[row.label if u == t else None for u in range(length)]]
            ((best,),) = tagger.predict_nbest(batch, 1, known=known)
            assert (row.labelling, row.score) == (best.labels, best.score)


def test_alternatives_among_many_labels():
    """Transitions are listed, and each pass serves all labels."""
    tagger, batch = random_tagger(0, 5, n_labels=130)
    few = np.random.default_rng(0).random((130, 130)) < 0.02
    tagger.transition_ = np.where(few, tagger.transition_, 0.0)
    table = label_alternatives(tagger, batch, token=2)
    assert len(table) == 130
    for row in table.iloc[::20].itertuples():
        known = [[None, None, row.label, None, None]]
        ((best,),) = tagger.predict_nbest(batch, 1, known=known)
        assert row.labelling == best.labels
        assert row.score == pytest.approx(best.score)


@each_order
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_differences_add_up_to_the_margin(order, seed, length):
    tagger, batch = random_tagger(seed, length, order=order)
    for t in range(length):
        alternatives = label_alternatives(tagger, batch, token=t)
        table = explain_token(tagger, batch, token=t)
        best, other = alternatives["label"].iloc[:2]
        assert table.columns.tolist()[3:] == [best, other, "difference"]
        assert_allclose(table["difference"].sum(), alternatives["difference"].iloc[1], atol=1e-9)
        assert_allclose(table["difference"], table[best] - table[other])
        assert np.all(np.diff(table["difference"].abs()) <= 0)
        third = alternatives["label"].iloc[2]
        table = explain_token(tagger, batch, token=t, label=third)
        assert_allclose(table["difference"].sum(), alternatives["difference"].iloc[2], atol=1e-9)
        # Neither of the two need be the label predicted.
        table = explain_token(tagger, batch, token=t, label=(other, third))
        assert table.columns.tolist()[3:] == [other, third, "difference"]
        gap = alternatives["difference"].iloc[2] - alternatives["difference"].iloc[1]
        assert_allclose(table["difference"].sum(), gap, atol=1e-9)
        again = explain_token(tagger, batch, token=t, label=(third, other))
        assert_allclose(again["difference"].sum(), -gap, atol=1e-9)


@pytest.mark.parametrize(
    "steps",
    [
        [WordVectorizer()],
        [TemplateVectorizer("U0:%x[0,0]\nU1:%x[-1,0]\nB2:%x[0,0]\nB")],
        [SequenceUnion([("w", WordVectorizer()), ("t", TemplateVectorizer("U0:%x[0,0]"))])],
        [FunctionTransformer(), WordVectorizer()],
    ],
    ids=["words", "template", "union", "two steps"],
)
def test_features_have_the_names_of_the_steps_before(steps):
    """Each feature of a token speaks of that token, or of one beside it."""
    X, y = [["a", "b", "c"], ["b", "a"]], [["A", "B", "A"], ["B", "A"]]
    model = make_pipeline(*steps, CRFTagger(l2=0.1)).fit(X, y)
    names, batch = model[:-1][-1].get_feature_names_out(), model[:-1].transform(X)
    expected = {(0, name) for name in names[np.flatnonzero(batch.X[:1].toarray()[0])]}
    table = explain_labelling(model, X)
    found = table[table["kind"] == "feature"]
    at_first = found[found["token"] == 0]
    assert set(zip(at_first["token"], at_first["name"], strict=True)) == expected
    weights = feature_weights(model)
    for _, row in weights.iterrows():
        code = model[-1].classes_.tolist().index(row["label"])
        assert model[-1].coef_[code, names.tolist().index(row["feature"])] == row["weight"]
    transitions = table.loc[table["kind"] == "transition feature", "name"].tolist()
    if hasattr(model[-1], "n_transition_features_in_"):
        known = model[0].get_transition_feature_names_out()
        assert transitions
        assert {name.split(" ", 1)[1] for name in transitions} <= set(known)


# ------------------------------------------------------------------------------------- what flips


def without(batch, token, columns):
    X = batch.X.toarray()
    X[token, list(columns)] = 0
    return SequenceBatch.from_lengths(X, batch.lengths)


def fewest(tagger, batch, token):
    """Fewest features without which the label changes, by trying all sets."""
    label = tagger.predict(batch)[0][token]
    columns = np.flatnonzero(batch.X.toarray()[token])
    for n in range(1, len(columns) + 1):
        for chosen in combinations(columns, n):
            if tagger.predict(without(batch, token, chosen))[0][token] != label:
                return n
    return None


@each_order
@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
def test_smallest_change_against_all_sets(order, seed, length, constrained):
    tagger, batch = random_tagger(seed, length, constrained=constrained, order=order)
    for t in range(length):
        change = smallest_label_change(tagger, batch, token=t)
        assert change.label == tagger.predict(batch)[0][t]
        expected = fewest(tagger, batch, t)
        if expected is None:
            assert change.new_label is None
            assert len(change.removed) == 0
            continue
        assert len(change.removed) == expected
        columns = [int(name.removeprefix("x")) for name in change.removed["feature"]]
        assert tagger.predict(without(batch, t, columns))[0][t] == change.new_label
        assert np.all(change.removed["difference"] > 0)


def test_smallest_change_of_equal_scores():
    """Without its only feature a token has equal scores: the label that comes first wins."""
    X, y = [[{"a": 1}], [{"b": 1}]], [["one"], ["two"]]
    tagger = CRFTagger(fit_intercept=False).fit(X, y)
    assert smallest_label_change(tagger, X, index=0).new_label is None
    change = smallest_label_change(tagger, X, index=1)
    assert change.new_label == "one"
    assert change.removed["feature"].tolist() == ["b"]


# ---------------------------------------------------------------------------------------- weights


def test_table_of_transitions(fitted):
    tagger, _ = fitted
    table = transition_weights(tagger)
    for i, a in enumerate(tagger.classes_):
        for j, b in enumerate(tagger.classes_):
            assert table.loc[a, b] == tagger.transition_[i, j]
    ends = transition_weights(tagger, labels=["C", "A"], include_ends=True)
    assert ends.index.tolist() == ["(start)", "C", "A"]
    assert ends.columns.tolist() == ["C", "A", "(end)"]
    assert ends.loc["(start)", "A"] == tagger.start_[0]
    assert ends.loc["C", "(end)"] == tagger.end_[2]
    assert np.isnan(ends.loc["(start)", "(end)"])


def test_table_of_features(fitted):
    tagger, _ = fitted
    table = feature_weights(tagger)
    names = tagger.feature_names_in_.tolist()
    assert len(table) == np.count_nonzero(tagger.coef_)
    for label, feature, weight in table.itertuples(index=False):
        assert weight == tagger.coef_[tagger.classes_.tolist().index(label), names.index(feature)]
    for _, of_label in table.groupby("label"):
        assert of_label["weight"].is_monotonic_decreasing
    few = feature_weights(tagger, labels=["B"], n_features=2)
    assert set(few["label"]) == {"B"}
    all_of_b = table[table["label"] == "B"]["weight"]
    positive, negative = all_of_b[all_of_b > 0], all_of_b[all_of_b < 0]
    assert few["weight"].tolist() == [*positive[:2], *negative[-2:]]


# -------------------------------------------------------------------------------------- estimators


def test_pipelines_searches_and_the_drop_in(fitted):
    tagger, X = fitted
    _, y = labelled_sequences(40)
    steps = [("features", SequenceVectorizer()), ("tagger", CRFTagger(l2=0.1))]
    pipeline = Pipeline(steps).fit(X, y)
    search = GridSearchCV(Pipeline(steps), {"tagger__l2": [0.1]}, cv=2).fit(X, y)
    expected = explain_labelling(tagger, X, index=3)
    for model in (pipeline, search):
        pd.testing.assert_frame_equal(explain_labelling(model, X, index=3), expected)
        pd.testing.assert_frame_equal(feature_weights(model), feature_weights(tagger))
    drop_in = crfsuite.CRF(c1=0, c2=0.05).fit(X, y)
    score = explain_labelling(drop_in, X, index=3)["contribution"].sum()
    assert_allclose(score, drop_in.estimator_.predict_nbest(X[3:4])[0][0].score)


def test_numbers_have_names_too():
    X = np.eye(4)
    tagger = PerceptronTagger(random_state=0).fit(X, [0, 1, 0, 1])
    assert explain_labelling(tagger, X, index=2)["name"][0] == "x2"


@pytest.mark.parametrize("format", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_matrices_of_all_formats(format):
    X = sp.identity(4, format=format)
    tagger = PerceptronTagger(random_state=0).fit(X, [0, 1, 0, 1])
    assert explain_labelling(tagger, X, index=2)["name"][0] == "x2"


def test_two_labels_in_a_list_and_iterators(fitted):
    tagger, X = fitted
    pd.testing.assert_frame_equal(
        explain_token(tagger, iter(X), index=3, label=["A", "B"]),
        explain_token(tagger, X, index=3, label=("A", "B")),
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda t, X: explain_labelling(t, X, index=40),
            "index=40, but X has the sequences 0 to",
        ),
        (lambda t, X: explain_labelling(t, X, index=1.0), "index=1.0, but X has the sequences 0"),
        (lambda t, X: explain_labelling(t, X, index="1"), "index='1', but X has the sequences 0"),
        (lambda t, X: explain_labelling(t, []), "index=0, but X has no sequences"),
        (lambda t, X: explain_labelling(t, X, index=0, labels=["A"] * 9), "tokens, but 9 labels"),
        (lambda t, X: label_alternatives(t, X, token=9), "token=9, but the sequence has the"),
        (lambda t, X: explain_token(t, X, token=-1), "token=-1, but the sequence has the tokens 0"),
        (lambda t, X: explain_token(t, X, label="Z"), r"'Z' is not one of the labels of CRFTagger"),
        (lambda t, X: explain_token(t, X, label={}), "{} is not one of the labels of CRFTagger"),
        (lambda t, X: explain_token(t, X, label=t.predict(X)[0][0]), "is labelled . already"),
        (lambda t, X: explain_token(t, X, label=("A", "A")), "A already|Both labels are A"),
        (lambda t, X: smallest_label_change(t, [[]]), "Sequence 0 has no tokens"),
        (
            lambda t, X: feature_weights(t, n_features=0),
            "n_features must be None or a positive integer",
        ),
        (lambda t, X: transition_weights(t, labels=["Q"]), "'Q' is not one of the labels"),
        (lambda t, X: feature_weights(t, labels=[]), "labels must be a list of at least one label"),
        (lambda t, X: feature_weights(t, labels="B-A"), "labels must be a list .* got 'B-A'"),
    ],
)
def test_invalid_input(fitted, call, message):
    with pytest.raises(ValueError, match=message):
        call(*fitted)


def test_impossible_labels_are_named():
    tagger, batch = random_tagger(0, 2, constrained=True)
    with pytest.raises(ValueError, match="Token 0 cannot be labelled 2: no labelling is possible"):
        explain_token(tagger, batch, token=0, label=2)


def test_other_estimators_are_refused(fitted):
    with pytest.raises(TypeError, match=r"Expected a fitted tagger, .* got SequenceVectorizer"):
        transition_weights(SequenceVectorizer())
    with pytest.raises(NotFittedError):
        transition_weights(CRFTagger())


def test_pandas_missing(fitted, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    for call in (explain_labelling, explain_token, label_alternatives, smallest_label_change):
        with pytest.raises(ImportError, match=r'needs pandas: pip install "skstruct\[plot\]"'):
            call(*fitted)
    with pytest.raises(ImportError, match=r"transition_weights needs pandas"):
        transition_weights(fitted[0])
