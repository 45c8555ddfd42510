"""A validation set while learning: what is noted, when learning stops, and what is kept."""

import numpy as np
import pytest
from helpers.marks import compiled
from helpers.taggers import assert_same_weights
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SequenceVectorizer,
    crfsuite,
)
from skstruct.learning.monitor import Monitor, Stopping
from skstruct.metrics import chunk_f1_score, chunk_f1_scorer, token_accuracy_scorer

WEIGHTS = ("coef_", "transition_", "intercept_", "start_", "end_")
STOPPING = [
    CRFTagger(l2=0.1),
    CRFTagger(l2=0.1, l1=0.1),
    CRFTagger(solver="sgd", l2=0.1, decay=0.95),
    PerceptronTagger(),
    PerceptronTagger(average=False, n_jobs=2),
    MIRATagger(),
    AROWTagger(),
    SAPOTagger(l2=0.1, decay=0.95),
]
TAGGERS = [*STOPPING, SDCACRF(l2=0.1, random_state=0)]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def name_of(tagger):
    return repr(tagger).replace(" ", "")


@pytest.fixture(params=TAGGERS, ids=name_of)
def tagger(request):
    return clone(request.param).set_params(random_state=0)


@pytest.fixture(params=STOPPING, ids=name_of)
def stopping(request):
    return clone(request.param).set_params(random_state=0, early_stopping=True)


@pytest.fixture(scope="module")
def noisy():
    """Sequences whose labels only half depend on the features, which are multiples of 1/8."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 90)
    X = rng.integers(-8, 9, (lengths.sum(), 12)) / 8
    y = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(len(X), 3)), axis=1)
    y = [part.tolist() for part in np.split(y, np.cumsum(lengths)[:-1])]
    return SequenceBatch.from_lengths(X, lengths), y


@pytest.fixture(scope="module")
def split(noisy):
    X, y = noisy
    return (X[:50], y[:50]), {"X_val": X[50:], "y_val": y[50:]}


def stopping_epoch(merit, tol, patience):
    """Place in the history after which there was no improvement for long enough."""
    best, since = -np.inf, 0
    for epoch, m in enumerate(merit):
        since = 0 if m > best + tol else since + 1
        best = max(best, m)
        if since == patience:
            return epoch
    return None


# ------------------------------------------------------------------------------- only looking on


def test_without_early_stopping_it_is_only_scored(tagger, split):
    train, validation = split
    watched = clone(tagger).fit(*train, **validation)
    tagger.fit(*train)
    assert_same_weights(watched, tagger)
    assert watched.n_iter_ == tagger.n_iter_
    assert "validation_score" not in tagger.history_
    assert watched.history_.keys() == tagger.history_.keys() | {"validation_score"}
    assert watched.history_["validation_score"].shape == watched.history_["epoch"].shape


def test_each_score_is_that_of_the_weights_at_the_time(tagger, split):
    train, validation = split
    weight = np.random.default_rng(0).choice([0.0, 1.0, 5.0], len(validation["y_val"]))
    validation = {**validation, "sample_weight_val": weight}
    # Before SDCA's last epoch nothing is verified, after it everything is.
    tolerance = {} if isinstance(tagger, SDCACRF) else {"tol": 0.0 if tagger.tol else None}
    tagger.set_params(max_iter=4, **tolerance).fit(*train, **validation)
    for k, epoch in enumerate(tagger.history_["epoch"]):
        if epoch == 0:
            continue
        short = clone(tagger).set_params(max_iter=int(epoch)).fit(*train)
        expected = short.score(validation["X_val"], validation["y_val"], weight)
        assert tagger.history_["validation_score"][k] == pytest.approx(expected, abs=1e-12)


def test_verbose_prints_the_scores(tagger, split, capsys):
    tagger.set_params(verbose=2, max_iter=2).fit(*split[0], **split[1])
    *_, last, _ = capsys.readouterr().out.splitlines()
    assert f"validation_score {tagger.history_['validation_score'][-1]:.6g}" in last


# ------------------------------------------------------------------------------------- stopping


def test_stops_in_time_and_keeps_the_best(stopping, split):
    train, validation = split
    stopping.set_params(n_iter_no_change=3, tol=1e-3, max_iter=200)
    stopping.fit(*train, **validation)
    score = stopping.history_["validation_score"]
    best = int(score.argmax())
    assert stopping.score(validation["X_val"], validation["y_val"]) == score[best]
    assert len(score) - 1 == stopping_epoch(score, 1e-3, 3)
    assert stopping.n_iter_ == stopping.history_["epoch"][-1]
    alone = clone(stopping).set_params(
        early_stopping=False, max_iter=int(stopping.history_["epoch"][best])
    )
    if getattr(stopping, "solver", "") != "lbfgs" or stopping.history_["epoch"][best] > 0:
        assert_same_weights(stopping, alone.fit(*train))


def test_a_part_held_out_is_a_validation_set(stopping, noisy):
    """Without shuffling, both ways learn from the same sequences in the same order."""
    X, y = noisy
    stopping.set_params(shuffle=False, validation_fraction=0.3, random_state=5, max_iter=60)
    stopping.fit(X, y)
    order = np.random.RandomState(5).permutation(len(y))
    held, kept = np.sort(order[: round(0.3 * len(y))]), np.sort(order[round(0.3 * len(y)) :])
    other = clone(stopping).fit(
        X[kept], [y[i] for i in kept], X_val=X[held], y_val=[y[i] for i in held]
    )
    assert_allclose(
        stopping.history_["validation_score"], other.history_["validation_score"], atol=1e-12
    )
    assert_same_weights(stopping, other, rtol=1e-9, atol=1e-12)
    assert not np.array_equal(
        stopping.coef_, clone(stopping).set_params(random_state=6).fit(X, y).coef_
    )


def test_the_bound_is_of_the_weights_that_are_kept(split):
    train, validation = split
    tagger = CRFTagger(l2=0.1, early_stopping=True, n_iter_no_change=4, tol=1e-4)
    tagger.fit(*train, **validation)
    best = int(tagger.history_["validation_score"].argmax())
    assert tagger.suboptimality_bound_ == tagger.history_["bound"][best]
    assert best < tagger.n_iter_
    minimum = CRFTagger(l2=0.1, tol=1e-12).fit(*train).history_["objective"][-1]
    assert tagger.history_["objective"][best] - minimum <= tagger.suboptimality_bound_
    assert tagger.suboptimality_bound_ > 1e-4 * minimum


def test_patience():
    for tol in (0.0, 0.1):
        rng = np.random.default_rng(0)
        merits = np.cumsum(rng.normal(0.02, 0.1, 60))
        patience = Monitor(stopping=Stopping(tol=tol, n_iter_no_change=4))
        seen, over = [], None
        for epoch, merit in enumerate(merits):
            assert patience.is_best(merit) == (merit > max(seen, default=-np.inf))
            seen.append(merit)
            if patience.is_over:
                over = epoch
                break
        assert over == stopping_epoch(merits, tol, 4) is not None
    endless = Monitor(stopping=Stopping(tol=None, n_iter_no_change=1))
    assert [endless.is_best(m) for m in (2.0, 1.0, 1.0, 3.0)] == [True, False, False, True]
    assert not endless.is_over


# --------------------------------------------------------------------------- formats and contents


def test_unknown_features_are_ignored_and_unknown_labels_are_wrong(tagger, addresses):
    X, y = addresses
    tagger.set_params(max_iter=2)
    X_val = [[[*token, "never seen before"] for token in sequence] for sequence in X[40:60]]
    y_val = [["new label", *labels[1:]] for labels in y[40:60]]
    tagger.fit(X[:40], y[:40], X_val=X_val, y_val=y_val)
    pairs = [
        (t, p)
        for true, found in zip(y_val, tagger.predict(X_val), strict=True)
        for t, p in zip(true, found, strict=True)
    ]
    right = np.mean([t == p for t, p in pairs])
    assert 0 < right < 1
    assert tagger.history_["validation_score"][-1] == pytest.approx(right, abs=1e-12)
    assert tagger.classes_.tolist() == sorted({label for labels in y[:40] for label in labels})


@pytest.mark.parametrize(
    "make",
    [
        lambda X, y: (list(X), y),
        lambda X, y: ([m.tolist() for m in X], [tuple(labels) for labels in y]),
        lambda X, y: (SequenceBatch.from_sequences(list(X)), np.array([*y, None], object)[:-1]),
    ],
    ids=["matrices", "nested lists", "batch"],
)
def test_any_format_will_do(tagger, split, make):
    train, validation = split
    expected = clone(tagger).set_params(max_iter=3).fit(*train, **validation)
    X_val, y_val = make(validation["X_val"], validation["y_val"])
    tagger.set_params(max_iter=3).fit(*train, X_val=X_val, y_val=y_val)
    assert_array_equal(tagger.history_["validation_score"], expected.history_["validation_score"])


def test_rows_and_grids(tagger):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3, 4))
    y = (X[:, :, 0] > 0).astype(int)
    tagger.set_params(max_iter=2)
    tagger.fit(X[:30], y[:30], X_val=X[30:], y_val=y[30:])
    assert tagger.history_["validation_score"][-1] == tagger.score(X[30:], y[30:])
    rows, labels = X.reshape(-1, 4), np.array(["n", "p"])[y.ravel()]
    tagger.fit(rows[:90], labels[:90], X_val=rows[90:], y_val=labels[90:])
    assert tagger.history_["validation_score"][-1] == tagger.score(rows[90:], labels[90:])


@pytest.mark.parametrize(
    "learner", [CRFTagger(l2=0.1), PerceptronTagger(random_state=0)], ids=name_of
)
def test_features_of_transitions(learner, noisy):
    X, y = noisy
    observed = np.random.default_rng(1).integers(-8, 9, (X.n_rows, 2)) / 8
    X = SequenceBatch(X.X, X.offsets, transition_X=observed)
    learner = clone(learner).set_params(early_stopping=True)
    learner.fit(X[:50], y[:50], X_val=X[50:], y_val=y[50:])
    assert learner.score(X[50:], y[50:]) == learner.history_["validation_score"].max()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_val": None}, "Pass both X_val and y_val"),
        ({"X_val": None}, "Pass both X_val and y_val"),
        ({"X_val": None, "y_val": None, "sample_weight_val": [1]}, "sample_weight_val is given"),
        ({"y_val": [[7], [7, 8]]}, r"X_val, y_val: none of the labels \[7, 8\] occurs"),
        ({"y_val": [["0"], ["1", "0"]]}, "none of the labels"),
        ({"y_val": [[0], [1]]}, "X_val, y_val: Sequence 1 has 2 tokens, but 1 labels"),
        ({"y_val": [[0], [1, 0], [1]]}, "X_val, y_val: X has 2 sequences, but y has labels for 3"),
        ({"y_val": [[0], [1, None]]}, "X_val, y_val: Sequence 1, token 1: label None"),
        ({"X_val": [np.eye(1, 3), np.eye(2, 3)]}, "X_val, y_val: X has 3 features"),
        ({"X_val": [np.full((1, 12), np.nan), np.eye(2, 12)]}, "Sequence 0, token 0"),
        ({"X_val": [[["a"]], [["b"], ["c"]]]}, "X_val, y_val: X has feature dicts"),
        ({"sample_weight_val": [-1, 1]}, r"X_val, y_val: sample_weight_val\[0\] is -1.0; weights"),
        ({"sample_weight_val": np.nan}, "X_val, y_val: sample_weight_val is nan; weights must be"),
        ({"sample_weight_val": [1, np.inf]}, r"X_val, y_val: sample_weight_val\[1\] is inf"),
        ({"sample_weight_val": [0, 0]}, "X_val, y_val: Sample weights must contain"),
        ({"sample_weight_val": [1, 1, 1]}, "X_val, y_val: "),
    ],
)
def test_bad_input(tagger, noisy, change, message):
    X, y = noisy
    validation = {"X_val": [np.eye(1, 12), np.eye(2, 12)], "y_val": [[0], [1, 0]]}
    tagger.set_params(max_iter=2).fit(X[:20], y[:20])
    before = dict(tagger.__dict__)
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, y, **{**validation, **change})
    assert tagger.__dict__ == before
    fresh = clone(tagger)
    with pytest.raises(ValueError, match=message):
        fresh.fit(X, y, **{**validation, **change})
    assert fresh.__dict__ == clone(tagger).__dict__


def test_what_crfsuite_cannot_do(split):
    pytest.importorskip("pycrfsuite")
    with pytest.raises(ValueError, match=r"X_val and y_val need solver=.*, not 'crfsuite'"):
        CRFTagger(solver="crfsuite").fit(*split[0], **split[1])
    with pytest.raises(ValueError, match="early_stopping=True needs solver='lbfgs'"):
        CRFTagger(solver="crfsuite", early_stopping=True).fit(*split[0])


def test_a_fit_that_is_interrupted_changes_nothing(stopping, split, monkeypatch):
    train, validation = split
    stopping.fit(*train, **validation)
    before = dict(stopping.__dict__)
    calls = []

    def interrupt(self, merit):
        calls.append(merit)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return True

    monkeypatch.setattr(Monitor, "is_best", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stopping.fit(*train, **validation)
    assert stopping.__dict__ == before


# --------------------------------------------------------------------------------- among others


def test_a_pipeline_transforms_the_validation_set(addresses):
    X, y = addresses
    tagger = PerceptronTagger(random_state=0, early_stopping=True)
    by_hand = clone(tagger).fit(X[:80], y[:80], X_val=X[80:120], y_val=y[80:120])
    with config_context(enable_metadata_routing=True):
        pipeline = Pipeline(
            [
                ("vectorizer", SequenceVectorizer()),
                ("tagger", clone(tagger).set_fit_request(X_val=True, y_val=True)),
            ],
            transform_input=["X_val"],
        )
        pipeline.fit(X[:80], y[:80], X_val=X[80:120], y_val=y[80:120])
    assert_same_weights(pipeline[-1], by_hand)
    assert_array_equal(
        pipeline[-1].history_["validation_score"], by_hand.history_["validation_score"]
    )


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa"])
def test_the_drop_in_scores_every_iteration(addresses, algorithm):
    X, y = addresses
    held = X[60:90], y[60:90]
    crf = crfsuite.CRF(algorithm=algorithm, max_iterations=5).fit(X[:60], y[:60], *held)
    iterations = crf.training_log_.iterations
    assert len(iterations) == 5
    for entry in iterations:
        short = crfsuite.CRF(algorithm=algorithm, max_iterations=entry["num"])
        found = short.fit(X[:60], y[:60]).predict(held[0])
        pairs = [(t, p) for s in zip(held[1], found, strict=True) for t, p in zip(*s, strict=True)]
        assert entry["item_accuracy"] * len(pairs) == sum(t == p for t, p in pairs)
        whole = np.mean([list(t) == list(p) for t, p in zip(held[1], found, strict=True)])
        assert entry["instance_accuracy_float"] == pytest.approx(whole)
        for label, score in entry["scores"].items():
            assert score.match == sum(t == p == label for t, p in pairs)
            assert score.model == sum(p == label for _, p in pairs)
            assert score.ref == sum(t == label for t, _ in pairs)
    assert len({entry["item_accuracy"] for entry in iterations}) > 1


# Scores of the validation set

SCORED = [
    PerceptronTagger(),
    PerceptronTagger(average=False, n_jobs=2),
    compiled(PerceptronTagger(order=2)),
    MIRATagger(),
    AROWTagger(),
    SAPOTagger(l2=0.1, decay=0.95),
]


@pytest.fixture(params=SCORED, ids=name_of)
def scored(request):
    return clone(request.param).set_params(random_state=0, tol=None, max_iter=6)


@pytest.fixture(scope="module")
def chunks(addresses):
    return tuple(part[:140] for part in addresses)


def test_any_score_is_noted(scored, chunks):
    """Each entry is the score of the weights that a fit of so many epochs ends with."""
    X, y = chunks
    held = X[80:], y[80:]
    tagger = clone(scored).set_params(scoring=chunk_f1_scorer)
    tagger.fit(X[:80], y[:80], X_val=held[0], y_val=held[1])
    scores = tagger.history_["validation_score"]
    for epoch, score in enumerate(scores, 1):
        short = clone(scored).set_params(max_iter=epoch).fit(X[:80], y[:80])
        assert_allclose(score, chunk_f1_score(held[1], short.predict(held[0])))
    assert len(set(scores)) > 1
    plain = clone(scored).fit(X[:80], y[:80], X_val=held[0], y_val=held[1])
    accuracy = clone(scored).set_params(scoring=token_accuracy_scorer)
    accuracy.fit(X[:80], y[:80], X_val=held[0], y_val=held[1])
    assert_allclose(accuracy.history_["validation_score"], plain.history_["validation_score"])
    assert_same_weights(accuracy, plain)


def test_early_stopping_by_any_score(scored, chunks):
    X, y = chunks
    tagger = clone(scored).set_params(early_stopping=True, max_iter=30, tol=1e-3)
    tagger.set_params(scoring=chunk_f1_scorer, n_iter_no_change=3)
    tagger.fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    scores = tagger.history_["validation_score"]
    assert_allclose(tagger.score(X[80:], y[80:]) > 0, True)
    assert_allclose(scores.max(), chunk_f1_score(y[80:], tagger.predict(X[80:])))
    assert len(scores) == min(stopping_epoch(scores, 1e-3, 3) + 1, 30)
    held = tagger.fit(X, y).history_["validation_score"]
    same = clone(tagger).set_params(scoring=lambda *args: chunk_f1_scorer(*args)).fit(X, y)
    assert_array_equal(same.history_["validation_score"], held)


def test_what_a_scorer_gets(chunks):
    X, y = chunks
    strange = [["S-STRANGE", *labels[1:]] for labels in y[80:120]]
    weight = np.arange(40) % 3
    seen = []

    def scoring(tagger, X, y, sample_weight=None):
        seen.append((len(X), y, sample_weight, tagger.classes_))
        return chunk_f1_score(y, tagger.predict(X), sample_weight=sample_weight)

    tagger = PerceptronTagger(scoring=scoring, max_iter=2, tol=None, random_state=0)
    tagger.fit(X[:80], y[:80], X_val=X[80:120], y_val=strange, sample_weight_val=weight)
    length, labels, weights, classes = seen[0]
    assert labels == [s for s, w in zip(strange, weight, strict=True) if w]
    assert length == len(labels)
    assert_array_equal(weights, weight[weight > 0])
    assert "S-STRANGE" not in classes
    predicted = tagger.predict(X[80:120])
    expected = chunk_f1_score(strange, predicted, sample_weight=weight)
    assert_allclose(tagger.history_["validation_score"][-1], expected)
    with pytest.raises(ValueError, match="scoring must return one number, got 'good'"):
        tagger.set_params(scoring=lambda *args: "good").fit(X, y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match="scoring"):
        tagger.set_params(scoring="chunks").fit(X, y)


def test_a_pipeline_that_does_not_transform_the_validation_set(chunks):
    X, y = chunks
    pipeline = Pipeline([("vectorizer", SequenceVectorizer()), ("tagger", PerceptronTagger())])
    validation = {"tagger__X_val": X[80:], "tagger__y_val": y[80:]}
    with pytest.raises(ValueError, match=r'transform_input=\["X_val"\]'):
        pipeline.fit(X[:80], y[:80], **validation)
    with pytest.raises(ValueError, match=r"X_val, y_val") as caught:
        PerceptronTagger().fit(X[:80], y[:80], X_val=X[80:], y_val=y[:3])
    assert "transform_input" not in str(caught.value)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_scorer_gets_features_and_weights_in_the_order_of_the_tagger(
    scored, chunks, early_stopping
):
    X, y = chunks
    got = []

    def scoring(tagger, batch, labels):
        got.append((tagger, batch))
        return tagger.score(X[80:], y[80:])

    tagger = scored.set_params(scoring=scoring, early_stopping=early_stopping, max_iter=3)
    validation = {} if early_stopping else {"X_val": X[80:], "y_val": y[80:]}
    tagger.fit(X[:80], y[:80], **validation)
    scores = tagger.history_["validation_score"]
    best = scores.argmax() if early_stopping else -1
    assert scores[best] == tagger.score(X[80:], y[80:])
    assert_array_equal(got[best][0].coef_, tagger.coef_)
    batch = got[best][1]
    assert_array_equal(batch.feature_names, tagger.feature_names_in_)
    if not early_stopping:
        assert (batch.X != tagger.vectorizer_.transform(X[80:]).X).nnz == 0


def test_a_metric_is_no_scorer(chunks):
    X, y = chunks
    tagger = PerceptronTagger(scoring=chunk_f1_score, random_state=0)
    with pytest.raises(ValueError, match=r"make_scorer\(chunk_f1_score\)"):
        tagger.fit(X, y, X_val=X, y_val=y)
