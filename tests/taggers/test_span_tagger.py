"""`SpanTaggerCV`: its threshold against one searched by hand, its labels, and bad input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import skstruct
from skstruct import (
    CRFTagger,
    CRFTaggerCV,
    NBestReranker,
    PerceptronTagger,
    SequenceVectorizer,
    SpanTaggerCV,
    predict_nbest,
    predict_spans,
)
from skstruct.crfsuite import CRF, ItemSequence
from skstruct.inspection import SpanThresholdDisplay
from skstruct.metrics import chunk_f1_score, extract_chunks

FORMS = {
    "IOB1": {"B": "I", "I": "I", "E": "I", "S": "I"},
    "IOB2": {"B": "B", "I": "I", "E": "I", "S": "B"},
    "IOBES": {"B": "B", "I": "I", "E": "E", "S": "S"},
    "BILOU": {"B": "B", "I": "I", "E": "L", "S": "U"},
}


@pytest.fixture(scope="module")
def names():
    """Sentences in which words are now names, now not."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(60):
        tokens, labels = [], []
        for _ in range(rng.integers(1, 5)):
            length = rng.integers(1, 4)
            is_name = rng.random() < 0.4
            words = rng.integers(0, 6 if is_name else 9, length)
            tokens += [{"word": f"w{word}", "few": str(word % 3)} for word in words]
            inner = ["B-X", *["I-X"] * (length - 2), "E-X"] if length > 1 else ["S-X"]
            labels += inner if is_name else ["O"] * length
        X.append(tokens)
        y.append(labels)
    return X, y


def in_scheme(y, scheme):
    form = FORMS[scheme]
    return [[label if label == "O" else form[label[0]] + label[1:] for label in s] for s in y]


def counts(y_true, y_pred):
    true = {(i, *chunk) for i, labels in enumerate(y_true) for chunk in extract_chunks(labels)}
    pred = {(i, *chunk) for i, labels in enumerate(y_pred) for chunk in extract_chunks(labels)}
    return len(true & pred), len(pred), len(true)


def test_the_threshold_is_that_of_a_search_by_hand(names):
    X, y = names[0], in_scheme(names[1], "IOB2")
    thresholds = [0.1, 0.15, 0.2, 0.25, 0.4]
    tagger = SpanTaggerCV(
        CRFTagger(l2=0.03), thresholds=thresholds, cv=KFold(3), store_cv_results=True
    ).fit(X, y)
    total = np.zeros((len(thresholds), 3))
    for train, test in KFold(3).split(X):
        crf = CRFTagger(l2=0.03).fit([X[i] for i in train], [y[i] for i in train])
        for number, threshold in enumerate(thresholds):
            spans = crf.predict_spans([X[i] for i in test], threshold=threshold)
            for i, found in zip(test, spans, strict=True):
                true = {tuple(chunk) for chunk in extract_chunks(y[i])}
                found = {span[:3] for span in found}
                total[number] += len(true & found), len(found), len(true)
    correct, pred, true = total.T
    assert_allclose(tagger.cv_results_["precision"], correct / pred)
    assert_allclose(tagger.cv_results_["recall"], correct / true)
    assert_allclose(tagger.cv_results_["scores"], 2 * correct / (pred + true))
    best = np.argmax(2 * correct / (pred + true))
    assert tagger.best_threshold_ == thresholds[best]
    assert_allclose(tagger.best_score_, 2 * correct[best] / (pred[best] + true[best]))
    assert len(set(tagger.cv_results_["scores"])) > 1


@pytest.mark.parametrize("scheme", FORMS)
def test_labels_are_in_the_scheme_of_y(names, scheme):
    X, y = names[0], in_scheme(names[1], scheme)
    tagger = SpanTaggerCV(CRFTagger(l2=0.1), cv=3, thresholds=9).fit(X, y)
    assert tagger.scheme_ == scheme
    predicted = tagger.predict(X)
    spans = tagger.predict_spans(X)
    assert [len(labels) for labels in predicted] == [len(labels) for labels in y]
    strict = "conlleval" if scheme == "IOB1" else scheme
    for labels, found in zip(predicted, spans, strict=True):
        assert [tuple(c) for c in extract_chunks(labels, scheme=strict)] == [s[:3] for s in found]
    assert_allclose(tagger.score(X, y), chunk_f1_score(y, predicted))


def test_labels_without_prefixes(names):
    X = names[0]
    y = [[label[2:] or "O" for label in labels] for labels in names[1]]
    tagger = SpanTaggerCV(CRFTagger(l2=0.1), cv=3).fit(X, y)
    assert tagger.scheme_ == "runs"
    predicted = tagger.predict(X)
    assert {label for labels in predicted for label in labels} == {"O", "X"}
    assert_allclose(tagger.score(X, y), chunk_f1_score(y, predicted, scheme="runs"))


@pytest.mark.parametrize("label", ["NP", "I-NP"])
def test_the_chunks_of_labels_are_those_that_were_chosen(label):
    """Two chunks in a row would be one."""
    X, y = [[{"w": "a"}] * 2] * 8, [[label, "O"], ["O", label], [label] * 2, ["O"] * 2] * 2
    tagger = SpanTaggerCV(CRFTagger(), cv=2, thresholds=[0.2]).fit(X, y)
    (spans,), (labels,) = tagger.predict_spans(X[:1]), tagger.predict(X[:1])
    scheme = "runs" if label == "NP" else "conlleval"
    assert [span[:3] for span in spans] == extract_chunks(labels, scheme=scheme)
    assert set(labels) <= set(tagger.classes_)


@pytest.mark.parametrize("beta", ["1", "0.5", "2"])
def test_f_beta(names, beta):
    X, y = names[0], in_scheme(names[1], "IOB2")
    tagger = SpanTaggerCV(CRFTagger(), scoring=f"f{beta}", cv=3, store_cv_results=True).fit(X, y)
    p, r = tagger.cv_results_["precision"], tagger.cv_results_["recall"]
    b = float(beta) ** 2
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num((1 + b) * p * r / (b * p + r))
    assert_allclose(tagger.cv_results_["scores"], expected)


def test_precision_at_a_wished_recall(names):
    X, y = names[0], in_scheme(names[1], "IOB2")
    scoring = "precision at recall 0.3"
    tagger = SpanTaggerCV(CRFTagger(l2=0.03), scoring=scoring, cv=3, store_cv_results=True).fit(
        X, y
    )
    results = tagger.cv_results_
    reached = results["recall"] >= 0.3
    assert reached.any()
    assert tagger.best_score_ == results["precision"][reached].max()
    best = results["thresholds"] == tagger.best_threshold_
    assert results["recall"][best] >= 0.3


def test_a_recall_that_no_threshold_reaches(names):
    X, y = names[0], in_scheme(names[1], "IOB2")
    tagger = SpanTaggerCV(CRFTagger(), scoring="precision at recall 1", cv=3, store_cv_results=True)
    with pytest.warns(UserWarning, match="No threshold reaches a recall of 1; ") as told:
        tagger.fit(X, y)
    assert told[0].filename == __file__
    largest = tagger.cv_results_["recall"].max()
    assert f"{largest:.4f}" in str(told[0].message)
    assert tagger.best_score_ == largest - 1


def test_a_scorer_of_ones_own(names):
    X, y = names[0], in_scheme(names[1], "IOB2")
    tagger = SpanTaggerCV(CRFTagger(), scoring=lambda p, r: r, cv=3, store_cv_results=True)
    tagger.fit(X, y)
    assert tagger.best_score_ == tagger.cv_results_["recall"].max()


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(SequenceVectorizer(), CRFTagger(l2=0.1)),
        CRF(c2=0.1),
        PerceptronTagger(random_state=0),
    ],
    ids=["pipeline", "drop-in", "perceptron"],
)
def test_estimators(names, estimator):
    X, y = names[0], in_scheme(names[1], "IOB2")
    tagger = SpanTaggerCV(estimator, cv=3, thresholds=20).fit(X, y)
    again = clone(tagger).fit(X, y)
    assert again.best_threshold_ == tagger.best_threshold_
    assert list(again.predict(X)) == list(tagger.predict(X))
    spans = predict_spans(tagger.estimator_, X, threshold=tagger.best_threshold_)
    assert list(spans) == list(tagger.predict_spans(X))
    best = [found[0].labels for found in predict_nbest(tagger.estimator_, X, 1)]
    assert best == [list(labels) for labels in tagger.estimator_.predict(X)]


def test_it_is_an_estimator_of_scikit_learn(names):
    X, y = names[0], in_scheme(names[1], "IOB2")
    tagger = SpanTaggerCV(CRFTagger(), cv=3)
    assert tagger.get_params()["estimator__l2"] == 1.0
    scores = cross_val_score(tagger, X, y, cv=2)
    assert scores.shape == (2,)
    assert (scores > 0).all()
    groups = np.arange(len(X)) % 4
    by_groups = SpanTaggerCV(CRFTagger(), cv=GroupKFold(2)).fit(X, y, groups=groups)
    splits = list(GroupKFold(2).split(X, y, groups))
    assert (
        by_groups.best_threshold_ == SpanTaggerCV(CRFTagger(), cv=splits).fit(X, y).best_threshold_
    )


def test_processes_and_sample_weights(names):
    X, y = names[0], in_scheme(names[1], "IOB2")
    weight = np.linspace(0.5, 2, len(X))
    one = SpanTaggerCV(CRFTagger(), cv=2).fit(X, y, sample_weight=weight)
    two = SpanTaggerCV(CRFTagger(), cv=2, n_jobs=2).fit(X, y, sample_weight=weight)
    assert one.best_score_ == two.best_score_
    assert one.best_threshold_ == two.best_threshold_
    np.testing.assert_array_equal(one.estimator_.coef_, two.estimator_.coef_)
    weighted = CRFTagger().fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(one.estimator_.coef_, weighted.coef_)


def test_without_refit(names):
    X, y = names[0], in_scheme(names[1], "IOB2")
    split = [next(KFold(3).split(X))]
    tagger = SpanTaggerCV(CRFTagger(), cv=split, refit=False).fit(X, y)
    alone = CRFTagger().fit([X[i] for i in split[0][0]], [y[i] for i in split[0][0]])
    np.testing.assert_array_equal(tagger.estimator_.coef_, alone.coef_)
    with pytest.raises(ValueError, match="refit=False needs a cv of one split, but it has 3"):
        SpanTaggerCV(CRFTagger(), cv=3, refit=False).fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"scoring": "accuracy"}, "scoring must be 'f1' or another F-beta"),
        ({"scoring": "precision at recall 1.5"}, "scoring must be"),
        ({"thresholds": [0.5, 1.5]}, "thresholds must be numbers from 0 to 1"),
        ({"thresholds": []}, "thresholds must be numbers from 0 to 1"),
        ({"thresholds": 0}, "thresholds"),
    ],
)
def test_bad_parameters(names, params, message):
    with pytest.raises(ValueError, match=message):
        SpanTaggerCV(CRFTagger(), **params).fit(*names)


def test_bad_labels(names):
    X, y = names
    with pytest.raises(ValueError, match="y has no chunk"):
        SpanTaggerCV(CRFTagger()).fit(X, [["O"] * len(labels) for labels in y])
    with pytest.raises(ValueError, match="Sequence 0, token 1: label 1 is not a string"):
        SpanTaggerCV(CRFTagger()).fit([[{"w": "a"}] * 2] * 9, [["O", 1]] * 9)


def test_what_folds_cannot_be_scored_with(names):
    X, y = names[0][:8], in_scheme(names[1], "IOB2")[:8]

    def fit(y=y, *, scoring="f1", cv=2, **params):
        SpanTaggerCV(CRFTagger(), thresholds=[0.2, 0.5], scoring=scoring, cv=cv).fit(X, y, **params)

    with pytest.raises(ValueError, match="cv has no split"):
        fit(cv=[])
    with pytest.raises(ValueError, match="y has no chunk in the test sequences of cv"):
        fit([*y[:7], ["O"] * len(y[7])], cv=[(list(range(7)), [7])])
    with pytest.raises(ValueError, match="Sequence 7, token 0: the label is None"):
        fit([*y[:7], [None, *y[7][1:]]])
    with pytest.raises(ValueError, match="Sequence 0: its labels must be a list"):
        fit(["B-X"] * 8)
    with pytest.raises(ValueError, match="sample_weight has 2 weights for 8 sequences"):
        fit(sample_weight=[1, 2])
    for wrong in (1.0, [1.0], [1.0, np.nan]):
        with pytest.raises(ValueError, match="scoring must return a number for each of the 2"):
            fit(scoring=lambda precision, recall, wrong=wrong: wrong)


def rare(seed=0):
    """Sequences of which only one has the label B-RARE."""
    X = [[{"w": "in"}, {"w": "Rome"}], [{"w": "Rome"}], [{"w": "in"}]] * 8 + [[{"w": "x"}]]
    return X, [["O", "B-LOC"], ["B-LOC"], ["O"]] * 8 + [["B-RARE"]]


@pytest.mark.parametrize(
    "params",
    [
        {"label_cost": {("B-RARE", "O"): 2}},
        {"label_cost": {"missed": 2}},
        {"label_cost": np.ones((3, 3)) - np.eye(3)},
        {"class_weight": {"B-RARE": 2}},
        {"constraint": np.ones((3, 3), bool)},
    ],
    ids=["pair", "missed", "matrix", "weight", "constraint"],
)
def test_folds_that_lack_a_label(params):
    """In all searches; a fold is learnt from as if the label were named nowhere."""
    X, y = rare()
    tagger = CRFTagger(**params)
    split = [(list(range(24)), [24])]
    with pytest.raises(ValueError, match="not among the classes"):
        # As it is, a tagger refuses a label that it does not know.
        CRFTagger(label_cost={("B-RARE", "O"): 2}).fit(X[:24], y[:24])
    for estimator in (tagger, make_pipeline(SequenceVectorizer(), tagger)):
        found = SpanTaggerCV(estimator, cv=split, refit=False).fit(X, y)
        assert found.classes_.tolist() == ["B-LOC", "O"]
        assert SpanTaggerCV(estimator, cv=3).fit(X, y).classes_.tolist() == ["B-LOC", "B-RARE", "O"]
    CRFTaggerCV([1, 0.1], cv=3, **params).fit(X, y)
    NBestReranker(tagger, n_best=2, cv=3).fit(X, y)


def test_what_does_not_fit_all_labels_is_still_refused():
    X, y = rare()
    for params in ({"label_cost": {("B-NONE", "O"): 2}}, {"constraint": np.ones((2, 2), bool)}):
        with pytest.raises(ValueError, match="classes"):
            SpanTaggerCV(CRFTagger(**params), cv=3).fit(X, y)


def test_folds_without_a_weight_are_named():
    X, y = rare()
    X, y, split = X[:24], y[:24], [(range(12), range(12, 24)), (range(12, 24), range(12))]
    split = [tuple(map(list, parts)) for parts in split]
    weight = np.repeat([0.0, 1.0], 12)
    with pytest.raises(ValueError, match="Fold 0: none of the sequences that it learns from has a"):
        SpanTaggerCV(CRFTagger(), cv=split).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="Fold 0: none of the sequences that it learns from has a"):
        CRFTaggerCV([1, 0.1], cv=split).fit(X, y, sample_weight=weight)
    with pytest.raises(
        ValueError, match="Fold 0: none of the sequences that it tests has a weight"
    ):
        CRFTaggerCV([1, 0.1], cv=split).fit(X, y, sample_weight=1 - weight)


BAD_Y = {
    "flat": [1, 2] * 6,
    "flat, str": ["B-A", "O"] * 6,
    "None": [None] * 12,
    "one None": [["O", "B-A"], None] * 6,
    "no y": None,
    "number": 7,
    "array": np.arange(12),
    "shorter": [["O"], ["O"]] * 6,
    "fewer": [["O", "O"]],
    "nested": [[["O"], ["O"]], [["O"]]] * 6,
    "mixed": [["O", 1], ["O"]] * 6,
    "floats": [[1.5, 2.0], [2.5]] * 6,
    "NaN": [["O", np.nan], ["O"]] * 6,
    "bytes": [[b"O", b"O"], [b"B-A"]] * 6,
    "sets": [{"O", "B"}, {"O"}] * 6,
}


@pytest.mark.parametrize("y", BAD_Y.values(), ids=BAD_Y)
def test_estimators_that_split_y_refuse_what_a_tagger_refuses(y):
    X = [[{"w": "a"}, {"w": "c"}], [{"w": "b"}]] * 6
    with pytest.raises(ValueError) as of_tagger:  # noqa: PT011
        CRFTagger().fit(X, y)
    for estimator in (
        SpanTaggerCV(CRFTagger(), cv=2),
        CRFTaggerCV([1, 0.1], cv=2),
        NBestReranker(CRFTagger(), n_best=2, cv=2),
    ):
        with pytest.raises(ValueError) as told:  # noqa: PT011
            estimator.fit(X, y)
        assert str(told.value) == str(of_tagger.value)


@pytest.mark.parametrize("X", [None, "abc", [], 7], ids=str)
def test_x_that_is_no_batch(X):
    with pytest.raises(ValueError) as of_tagger:  # noqa: PT011
        CRFTagger().fit(X, [["O"]] * 4)
    with pytest.raises(ValueError) as told:  # noqa: PT011
        SpanTaggerCV(CRFTagger(), cv=2).fit(X, [["O"]] * 4)
    assert str(told.value) == str(of_tagger.value)
    with pytest.raises(ValueError, match="batch"):
        SpanTaggerCV(make_pipeline(SequenceVectorizer(), CRFTagger()), cv=2).fit(X, [["O"]] * 4)


def test_numbers_and_rows():
    """Chunks are those of the same labels as strings; other tokens have the tagger's labels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    X[np.arange(60), y] += 1.0
    tagger = SpanTaggerCV(CRFTagger(), cv=3, thresholds=[0.7, 0.8]).fit(X, y)
    named = clone(tagger).fit(X, np.array(["a", "b", "c"])[y])
    assert named.best_score_ == tagger.best_score_
    predicted = tagger.predict(X)
    assert predicted.shape == (60,)
    for label, name, best in zip(
        predicted, named.predict(X), tagger.estimator_.predict(X), strict=True
    ):
        assert label == (best if name == "O" else "abc".index(name))
    assert_allclose(tagger.score(X, y), chunk_f1_score(
        [[str(label)] for label in y], [[str(label)] for label in predicted], scheme="runs"
    ))  # fmt: skip
    assert tagger.n_features_in_ == 3


def test_item_sequences_of_the_drop_in():
    X, y = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}]], [["B-X", "O"], ["O"]]
    crf, items = CRF().fit(X, y), list(map(ItemSequence, X))
    assert predict_spans(crf, items).tolist() == predict_spans(crf, X).tolist()
    assert CRFTagger().fit(items, y).predict(items).tolist() == y
    with pytest.raises(NotFittedError, match="This CRF instance is not fitted"):
        predict_spans(CRF(), X)


def test_a_failed_fit_changes_nothing(names):
    X, y = names[0], in_scheme(names[1], "IOB2")
    tagger = SpanTaggerCV(CRFTagger(), cv=2).fit(X, y)
    before = vars(tagger).copy()
    with pytest.raises(ValueError, match="Sequence 0 has"):
        tagger.fit(X, [labels[1:] for labels in y])
    assert vars(tagger) == before


def test_an_estimator_without_a_tagger(names):
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(TypeError, match="Expected a fitted tagger"):
        predict_spans(LogisticRegression().fit([[0.0], [1.0]], [0, 1]), [[0.0]])
    assert skstruct.SpanTaggerCV is SpanTaggerCV


def test_the_display_shows_the_scores_of_thresholds(names):
    pytest.importorskip("matplotlib")
    X, y = names[0], in_scheme(names[1], "IOB2")
    tagger = SpanTaggerCV(CRFTagger(l2=0.03), cv=3, store_cv_results=True).fit(X, y)
    display = SpanThresholdDisplay.from_estimator(tagger, name="here")
    results = tagger.cv_results_
    recall, precision = display.line_.get_data()
    np.testing.assert_array_equal(recall, results["recall"])
    np.testing.assert_array_equal(precision, results["precision"])
    best = results["thresholds"] == tagger.best_threshold_
    assert display.best_.get_data() == (results["recall"][best], results["precision"][best])
    assert display.plot(ax=display.ax_).ax_ is display.ax_
    with pytest.raises(ValueError, match="SpanTaggerCV with store_cv_results=True, got CRFTagger"):
        SpanThresholdDisplay.from_estimator(tagger.estimator_)


def test_weights_of_tokens_are_split_like_sequences():
    X = [[{"w": "in"}, {"w": "Rome"}], [{"w": "Rome"}], [{"w": "in"}]] * 8
    y = [["O", "B-LOC"], ["B-LOC"], ["O"]] * 8
    ones = [[1.0] * len(labels) for labels in y]
    taggers = [
        SpanTaggerCV(PerceptronTagger(random_state=0), cv=2).fit(X, y, **params)
        for params in ({}, {"sample_weight": ones})
    ]
    assert_allclose(*(tagger.estimator_.coef_ for tagger in taggers))
    assert taggers[0].best_threshold_ == taggers[1].best_threshold_
