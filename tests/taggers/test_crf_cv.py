"""`CRFTaggerCV`: beside grid searches of separate fits, and whatever can go wrong."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.marks import compiled
from helpers.taggers import assert_same_weights
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline

from skstruct import (
    CRFTagger,
    CRFTaggerCV,
    SequenceBatch,
    SequenceVectorizer,
    SpanTaggerCV,
    predict_nbest,
    predict_spans,
)
from skstruct.inspection import PenaltyPathDisplay
from skstruct.metrics import (
    chunk_f1_score,
    chunk_f1_scorer,
    sequence_accuracy_scorer,
    token_accuracy_scorer,
)
from skstruct.model_selection import StratifiedSequenceKFold

L2S = [3.0, 1.0, 0.3, 0.1, 0.03]
EXACT = {"tol": 1e-11, "search_tol": 1e-11}
WEIGHTS = ("coef_", "transition_", "intercept_", "start_", "end_")

# Few values do not enclose the best one, and most tests are about something else.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The best of:UserWarning"),
    pytest.mark.filterwarnings("ignore:Predictions for:UserWarning"),
]


@pytest.fixture(scope="module")
def names():
    """Sentences of words that are names with some probability, and their labels."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(72):
        tokens, labels = [], []
        for _ in range(rng.integers(1, 6)):
            length, is_name = rng.integers(1, 4), rng.random() < 0.4
            words = rng.integers(0, 12 if is_name else 20, length)
            tokens += [{"word": f"w{word}", "few": str(word % 3)} for word in words]
            labels += ["B-X", *["I-X"] * (length - 1)] if is_name else ["O"] * length
        X.append(tokens)
        y.append(labels)
    return X, y


def search(X, y, grid, cv, scoring=None, **params):
    return GridSearchCV(CRFTagger(tol=1e-11, **params), grid, cv=cv, scoring=scoring).fit(X, y)


def assert_same_table(ours, theirs, **tolerance):
    for name, column in theirs.cv_results_.items():
        if name == "params":
            assert ours.cv_results_[name] == column
        elif "time" not in name:
            column = np.asarray(column, dtype=float)
            assert_allclose(ours.cv_results_[name], column, **{"atol": 1e-12, **tolerance})


def test_tables_are_those_of_a_grid_search(names):
    X, y = names
    ours = CRFTaggerCV(L2S, cv=KFold(3), scoring=chunk_f1_scorer, **EXACT).fit(X, y)
    theirs = search(X, y, {"l2": L2S}, KFold(3), chunk_f1_scorer)
    assert_same_table(ours, theirs)
    assert (ours.best_params_, ours.best_index_) == (theirs.best_params_, theirs.best_index_)
    assert_allclose(ours.best_score_, theirs.best_score_)
    assert ours.l2_ == theirs.best_params_["l2"]
    assert_same_weights(ours, theirs.best_estimator_)
    assert_same_weights(ours.best_estimator_, theirs.best_estimator_)
    assert ours.score(X, y) == theirs.score(X, y) == chunk_f1_score(y, ours.predict(X))
    assert len(set(ours.cv_results_["mean_test_score"])) > 2


@pytest.mark.parametrize("l2s", [L2S, [0.03, 3.0, 0.1], [1.0, 1.0, 0.2], [2.0], [1.0, 0.0], 3])
def test_values_in_any_order(names, l2s):
    X, y = names
    ours = CRFTaggerCV(l2s, cv=2, max_iter=3000, **EXACT).fit(X, y)
    l2s = [10, 10**-0.5, 0.01] if l2s == 3 else l2s
    assert_allclose(ours.l2s_, l2s)
    theirs = search(X, y, {"l2": l2s}, 2, max_iter=3000)
    assert_allclose(ours.cv_results_["param_l2"], l2s)
    atol = 0.02 if 0.0 in l2s else 1e-12
    for name in ("split0_test_score", "split1_test_score"):
        assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=atol)


@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"fit_intercept": False, "all_possible_states": True, "all_possible_transitions": True},
        compiled({"order": 2}),
        {"constraint": "IOB2"},
        {"label_cost": {"missed": 2.0}},
        {"min_freq": 2},
        {"class_weight": {"B-X": 3.0}},
        {"class_weight": "balanced"},
    ],
    ids=str,
)
def test_objectives_are_those_of_separate_fits(names, params, many, monkeypatch):
    monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 1 if many else 10**9)
    X, y = names
    ours = CRFTaggerCV(L2S, cv=KFold(2), search_tol=1e-5, **params).fit(X, y)
    for split, (train, _) in enumerate(KFold(2).split(X)):
        for l2, objective in zip(L2S, ours.cv_results_[f"split{split}_objective"], strict=True):
            one = CRFTagger(l2=l2, tol=1e-9, **params)
            one.fit([X[i] for i in train], [y[i] for i in train])
            assert_allclose(objective, one.history_["objective"][-1], rtol=1e-4)


def test_the_path_takes_fewer_iterations(names):
    X, y = names
    ours = CRFTaggerCV(20, cv=KFold(2), search_tol=1e-4).fit(X, y)
    iterations = sum(ours.cv_results_[f"split{split}_n_iter"].sum() for split in range(2))
    separate = sum(
        CRFTagger(l2=l2).fit([X[i] for i in train], [y[i] for i in train]).n_iter_
        for train, _ in KFold(2).split(X)
        for l2 in ours.l2s_
    )
    assert 2 * iterations < separate


def test_l1_penalties(names):
    X, y = names
    params = {"l1s": [0.0, 1.0], "cv": 3, "scoring": chunk_f1_scorer}
    ours = CRFTaggerCV([1.0, 0.1], **params, **EXACT).fit(X, y)
    grid = {"l1": [0.0, 1.0], "l2": [1.0, 0.1]}
    theirs = search(X, y, grid, 3, chunk_f1_scorer)
    assert_same_table(ours, theirs)
    assert ours.best_params_ == theirs.best_params_ == {"l1": ours.l1_, "l2": ours.l2_}
    assert_same_weights(ours, theirs.best_estimator_)
    alone = CRFTaggerCV([1.0, 0.1], l1s=[1.0], cv=3, **EXACT).fit(X, y)
    assert np.mean(alone.coef_ == 0) > 0


def test_groups(names):
    X, y = names
    groups = np.arange(len(X)) % 7
    ours = CRFTaggerCV([1.0, 0.1], cv=GroupKFold(3), **EXACT).fit(X, y, groups=groups)
    theirs = GridSearchCV(CRFTagger(tol=1e-11), {"l2": [1.0, 0.1]}, cv=GroupKFold(3))
    assert_same_table(ours, theirs.fit(X, y, groups=groups))
    assert ours.n_splits_ == 3
    with config_context(enable_metadata_routing=True):
        routed = CRFTaggerCV([1.0, 0.1], cv=GroupKFold(3), **EXACT)
        pipeline = make_pipeline(SequenceVectorizer(), routed).fit(X, y, groups=groups)
    assert_same_table(pipeline[-1], theirs)
    with pytest.raises(ValueError, match="groups"):
        CRFTaggerCV([1.0, 0.1], cv=GroupKFold(3)).fit(X, y)
    with pytest.raises(TypeError, match="'documents'"):
        CRFTaggerCV([1.0, 0.1]).fit(X, y, documents=groups)


def test_labels_that_a_fold_lacks(names):
    X, y = [*names[0]], [*names[1]]
    y[0] = ["B-RARE", *y[0][1:]]
    y[-1] = [*y[-1][:-1], "S-LAST"]
    allowed = np.ones((5, 5), dtype=bool)
    allowed[3, 2] = False
    for params in (
        {},
        {"class_weight": {"S-LAST": 2.0, "O": 0.5}},
        {"class_weight": "balanced"},
    ):
        ours = CRFTaggerCV(L2S, cv=KFold(3), **params, **EXACT).fit(X, y)
        assert ours.classes_.tolist() == ["B-RARE", "B-X", "I-X", "O", "S-LAST"]
        if params.get("class_weight") != {"S-LAST": 2.0, "O": 0.5}:
            assert_same_table(ours, search(X, y, {"l2": L2S}, KFold(3), **params))
    constrained = CRFTaggerCV([1.0, 0.1], cv=KFold(3), constraint=allowed).fit(X, y)
    assert constrained.transition_[3, 2] == -np.inf


def test_sample_weights(names):
    X, y = names
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    params = {"cv": KFold(3), "scoring": chunk_f1_scorer}
    ours = CRFTaggerCV(L2S, **params, **EXACT).fit(X, y, weight)
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(chunk_f1_score).set_score_request(sample_weight=True)
        tagger = CRFTagger(tol=1e-11).set_fit_request(sample_weight=True)
        theirs = GridSearchCV(tagger, {"l2": L2S}, cv=KFold(3), scoring=scorer)
        theirs.fit(X, y, sample_weight=weight)
        routed = CRFTaggerCV(L2S, cv=KFold(3), scoring=scorer, **EXACT)
        routed.set_fit_request(sample_weight=True).fit(X, y, sample_weight=weight)
    assert_same_table(ours, theirs)
    assert_same_table(routed, theirs)
    assert_same_weights(ours, theirs.best_estimator_)
    # A scorer without weights gets none.
    plain = CRFTaggerCV(L2S, cv=KFold(3), scoring=lambda tagger, X, y: float(len(y)))
    counts = plain.fit(X, y, weight).cv_results_["split0_test_score"]
    assert_array_equal(counts, np.sum(weight[:24] > 0))


def test_weight_zero_is_as_if_it_were_not_there(names):
    X, y = names
    kept = np.arange(len(X)) % 4 != 1
    weight = kept.astype(float)
    y = [labels if k else ["STRANGE"] * len(labels) for labels, k in zip(y, kept, strict=True)]
    some = [X[i] for i in np.flatnonzero(kept)], [y[i] for i in np.flatnonzero(kept)]
    number = np.cumsum(kept) - 1
    splits = list(KFold(3).split(X))
    same = [tuple(number[part[kept[part]]] for part in split) for split in splits]
    ours = CRFTaggerCV(L2S, cv=splits).fit(X, y, weight)
    theirs = CRFTaggerCV(L2S, cv=same).fit(*some)
    assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert_same_weights(ours, theirs)


def test_partial_labels(names):
    X, y = names
    rng = np.random.default_rng(2)
    y = [[None if rng.random() < 0.2 else label for label in labels] for labels in y]
    ours = CRFTaggerCV([1.0, 0.1], cv=KFold(2), **EXACT).fit(X, y)
    assert_same_table(ours, search(X, y, {"l2": [1.0, 0.1]}, KFold(2)))


def as_grid(X):
    return X.reshape(-1, 4, X.shape[1])


@pytest.mark.parametrize(
    "scoring",
    [None, token_accuracy_scorer, sequence_accuracy_scorer],
    ids=["none", "tokens", "sequences"],
)
@pytest.mark.parametrize("form", ["rows", "sparse", "grid", "matrices", "batch", "strings"])
def test_every_format(form, scoring):
    rng = np.random.default_rng(3)
    X = rng.integers(-4, 5, (120, 5)) / 4
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + rng.normal(size=(120, 3)), axis=1)]
    if form == "sparse":
        X = sp.csr_array(X)
    elif form == "grid":
        X, y = as_grid(X), y.reshape(-1, 4)
    elif form in ("matrices", "batch"):
        X, y = list(as_grid(X)), y.reshape(-1, 4).tolist()
        X = SequenceBatch.from_sequences(X) if form == "batch" else X
    elif form == "strings":
        X = [[[f"{i}:{value > 0}" for i, value in enumerate(row)]] for row in X]
        y = [[label] for label in y.tolist()]
    ours = CRFTaggerCV([1.0, 0.1], cv=3, scoring=scoring, **EXACT).fit(X, y)
    theirs = search(X, y, {"l2": [1.0, 0.1]}, 3, scoring)
    assert_same_table(ours, theirs)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == theirs.score(X, y)


def test_scikit_learns_scorers_of_rows():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, 0)
    ours = CRFTaggerCV([1.0, 0.01], cv=3, scoring="balanced_accuracy", **EXACT).fit(X, y)
    assert_same_table(ours, search(X, y, {"l2": [1.0, 0.01]}, 3, "balanced_accuracy"))


def test_transition_features():
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 6, 40)
    X = rng.integers(-4, 5, (lengths.sum(), 4)) / 4
    T = rng.integers(-2, 3, (lengths.sum(), 2)) / 2
    labels = np.argmax(X[:, :3] + rng.normal(size=(len(X), 3)), axis=1)
    y = [part.tolist() for part in np.split(labels, np.cumsum(lengths)[:-1])]
    batch = SequenceBatch.from_lengths(X, lengths, transition_X=T)
    ours = CRFTaggerCV([1.0, 0.1], cv=3, **EXACT).fit(batch, y)
    theirs = search(batch, y, {"l2": [1.0, 0.1]}, 3)
    assert_same_table(ours, theirs)
    assert_array_equal(ours.transition_coef_, theirs.best_estimator_.transition_coef_)


def test_every_method_that_predicts(names):
    X, y = names
    ours = CRFTaggerCV([1.0, 0.1], cv=2).fit(X, y)
    tagger = CRFTagger(l2=ours.l2_).fit(X, y)
    assert ours.predict(X).tolist() == tagger.predict(X).tolist()
    assert_array_equal(
        np.concatenate(ours.predict_proba(X)), np.concatenate(tagger.predict_proba(X))
    )
    assert ours.predict_spans(X).tolist() == tagger.predict_spans(X).tolist()
    assert ours.predict_nbest(X, 2).tolist() == tagger.predict_nbest(X, 2).tolist()
    assert predict_spans(ours, X).tolist() == tagger.predict_spans(X).tolist()
    assert predict_nbest(ours, X, 1).tolist() == tagger.predict_nbest(X, 1).tolist()
    assert_array_equal(ours.feature_names_in_, tagger.feature_names_in_)
    assert ours.suboptimality_bound_ == tagger.suboptimality_bound_
    assert ours.n_weights_ == tagger.n_weights_
    spans = SpanTaggerCV(CRFTaggerCV([1.0, 0.1], cv=2), cv=2, thresholds=3).fit(X, y)
    assert set(map(len, spans.predict(X))) == set(map(len, y))


@pytest.mark.parametrize("many", [True, False])
def test_threads_change_no_bit_of_the_search(names, many, monkeypatch):
    monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 1 if many else 10**9)
    X, y = names
    params = {"l1s": [0.0, 0.5], "cv": 3, "scoring": chunk_f1_scorer}
    one, again, two = (
        CRFTaggerCV(L2S, **params, n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 1, 2)
    )
    for other in (again, two):
        assert one.best_params_ == other.best_params_
        for name, column in one.cv_results_.items():
            if "time" not in name:
                assert_array_equal(column, other.cv_results_[name])
    assert_same_weights(one, again)
    assert_same_weights(two, CRFTagger(l2=two.l2_, l1=two.l1_, n_jobs=2).fit(X, y))


def test_without_refit(names):
    X, y = names
    ours = CRFTaggerCV(L2S, cv=2, refit=False).fit(X, y)
    theirs = CRFTaggerCV(L2S, cv=2).fit(X, y)
    assert ours.l2_ == theirs.l2_
    assert not hasattr(ours, "best_estimator_")
    for method in (lambda: ours.predict(X), ours.prune):
        with pytest.raises(NotFittedError, match="refit=True"):
            method()
    assert pickle.loads(pickle.dumps(ours)).l2_ == ours.l2_


def test_copies_and_stored_ones(names):
    X, y = names
    ours = CRFTaggerCV(L2S, cv=2, scoring=chunk_f1_scorer).fit(X, y)
    loaded = pickle.loads(pickle.dumps(ours))
    assert_same_weights(ours, loaded)
    assert loaded.best_params_ == ours.best_params_
    assert loaded.cv_results_["params"] == ours.cv_results_["params"]
    assert loaded.score(X, y) == ours.score(X, y)
    unfitted = clone(ours)
    assert not hasattr(unfitted, "l2_")
    assert_same_weights(unfitted.fit(X, y), ours)


@pytest.mark.parametrize(
    ("l2s", "l1s", "message"),
    [
        ([30.0, 10.0, 3.0], None, "The best of l2s, 3, is the least one"),
        ([1e-2, 1e-3, 1e-4], None, "The best of l2s, 0.01, is the largest one"),
        ([1.0], [10.0, 5.0], "The best of l1s, 5, is the least one"),
        ([1.0, 1e-1, 1e-2], None, None),
        ([0.1], [0.0, 5.0], None),
        ([1.0], None, None),
    ],
)
def test_the_end_of_a_range(l2s, l1s, message):
    rng = np.random.default_rng(6)
    X = [[{"word": str(w)} for w in words] for words in rng.zipf(1.5, (60, 5)) % 50]
    y = [
        [str(int(token["word"]) % 3) if rng.random() < 0.8 else str(rng.integers(3)) for token in s]
        for s in X
    ]

    def scoring(tagger, X, y):
        # Best at l2=0.1.
        return -abs(np.log10(max(tagger.l2, 1e-9)) + 1) - tagger.l1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CRFTaggerCV(l2s, l1s=l1s, cv=2, scoring=scoring).fit(X, y)
    found = [str(w.message) for w in caught if "The best of" in str(w.message)]
    assert len(found) == (message is not None)
    if message is not None:
        assert found[0].startswith(message)
        assert all(w.filename == __file__ for w in caught if "The best of" in str(w.message))


def test_too_few_iterations(names):
    X, y = names
    with pytest.warns(ConvergenceWarning, match="6 of the 6 fits of the search"):
        CRFTaggerCV([1.0, 0.1, 0.01], cv=2, max_iter=1, search_tol=1e-6).fit(X, y)


class Interrupt(BaseException):
    pass


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_fit_leaves_the_estimator(names, n_jobs):
    X, y = names
    calls = []

    def scoring(tagger, X, y):
        calls.append(tagger.l2)
        if len(calls) > 3:
            raise Interrupt
        return 0.5

    tagger = CRFTaggerCV(L2S, cv=3, n_jobs=n_jobs).fit(X[:40], y[:40])
    before = dict(vars(tagger.set_params(scoring=scoring)))
    with pytest.raises(Interrupt):
        tagger.fit(X, y)
    assert vars(tagger) == before
    assert tagger.set_params(scoring=None).predict(X).shape == (len(X),)
    fresh = CRFTaggerCV(L2S, cv=3, scoring=scoring)
    with pytest.raises(Interrupt):
        fresh.fit(X, y)
    assert not [name for name in vars(fresh) if name.endswith("_")]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"l2s": []}, "l2s must be finite numbers"),
        ({"l2s": [1.0, -1.0]}, "l2s must be finite numbers"),
        ({"l2s": [np.nan]}, "l2s must be finite numbers"),
        ({"l2s": ["much"]}, "l2s must be finite numbers"),
        ({"l2s": 0}, "'l2s' parameter"),
        ({"l1s": [[1.0]]}, "l1s must be finite numbers"),
        ({"cv": []}, "cv has no split"),
        ({"scoring": lambda tagger, X, y: "good"}, "scoring must return one number"),
        ({"scoring": "chunks"}, "'chunks' is not a valid scoring value"),
        ({"scoring": chunk_f1_score}, r"metric of labels; .* make_scorer\(chunk_f1_score\)"),
        ({"cv": [([0], [1]), ([], [1])]}, "Fold 1: "),
        ({"order": 2, "l1s": [0.0, 1.0], "constraint": "IOB9"}, "'constraint' parameter"),
        ({"class_weight": {"B-Y": 2.0}}, "B-Y"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_parameters(names, params, message):
    with pytest.raises(ValueError, match=message):
        CRFTaggerCV(**{"l2s": [1.0], "cv": 2, **params}).fit(*names)


def test_the_score_of_the_tagger_takes_routed_weights(names):
    X, y = names
    weight = 1.0 + np.arange(len(X)) % 3
    expected = CRFTaggerCV([1.0, 0.1], cv=2).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        tagger = CRFTaggerCV([1.0, 0.1], cv=2)
        tagger.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        tagger.fit(X, y, sample_weight=weight)
        assert tagger.score(X, y, sample_weight=weight) == expected.score(X, y, weight)
    assert_same_table(tagger, expected)


def test_folds_of_other_splitters(names):
    X, y = names
    for cv in (
        StratifiedSequenceKFold(3),
        ShuffleSplit(2, random_state=0),
        [(np.arange(72) < 40, np.arange(72) >= 40)],
    ):
        ours = CRFTaggerCV([1.0, 0.1], cv=cv, **EXACT).fit(X, y)
        assert ours.n_splits_ == (1 if isinstance(cv, list) else cv.get_n_splits())
    boolean = ours.cv_results_["split0_test_score"]
    theirs = search(X, y, {"l2": [1.0, 0.1]}, [(np.arange(40), np.arange(40, 72))])
    assert_allclose(boolean, theirs.cv_results_["split0_test_score"])


def test_display(names):
    pytest.importorskip("matplotlib")
    X, y = names
    ours = CRFTaggerCV([0.1, 1.0, 0.3], l1s=[0.0, 0.5], cv=3).fit(X, y)
    display = PenaltyPathDisplay.from_estimator(ours)
    results = ours.cv_results_
    assert len(display.lines_) == 2
    for number, line in enumerate(display.lines_):
        assert_array_equal(line.get_xdata(), [0.1, 0.3, 1.0])
        mean = results["mean_test_score"][3 * number : 3 * number + 3]
        assert_array_equal(line.get_ydata(), mean[[0, 2, 1]])
    assert_allclose(display.best_.get_xdata(), [ours.l2_])
    assert_allclose(display.best_.get_ydata(), [ours.best_score_])
    assert display.ax_.get_xscale() == "log"
    with pytest.raises(ValueError, match="fitted CRFTaggerCV"):
        PenaltyPathDisplay.from_estimator(CRFTagger())
