"""`ConformalTagger`: thresholds and promises against enumeration, and bad input."""

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skstruct import (
    ConformalTagger,
    CRFTagger,
    PerceptronTagger,
    SequenceVectorizer,
    SpanTaggerCV,
    WordVectorizer,
    predict_candidates,
    predict_sets,
)
from skstruct.crfsuite import CRF
from skstruct.metrics import extract_chunks

RISKS = ("missed", "missed_by_sequence", "labelling")


def sentences(n_sequences, seed=0, *, types=("X",), noise=0.3):
    """Sentences whose names are hard to tell from other words."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        tokens, labels = [], []
        for _ in range(rng.integers(1, 4)):
            is_name, kind = rng.random() < 0.5, rng.choice(types)
            for t in range(rng.integers(1, 3)):
                label = f"{'I' if t else 'B'}-{kind}" if is_name else "O"
                told = rng.choice(["O", "B-X", "I-X"]) if rng.random() < noise else label
                tokens.append({"w": f"{told}{rng.integers(3)}"})
                labels.append(label)
        X.append(tokens)
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def fitted():
    """A tagger, and data that it has not seen."""
    return CRFTagger(l2=0.3).fit(*sentences(40)), *sentences(60, seed=1)


def select(values, which):
    return [values[i] for i in which]


def by_enumeration(tagger, x):
    """Probabilities of all labellings of a sequence, and of all spans."""
    classes = tagger.classes_.tolist()
    logs = {}
    emission = tagger.intercept_ + tagger.vectorizer_.transform([x]).X @ tagger.coef_.T
    for codes in product(range(len(classes)), repeat=len(x)):
        total = tagger.start_[codes[0]] + tagger.end_[codes[-1]]
        total += sum(emission[t, code] for t, code in enumerate(codes))
        total += sum(tagger.transition_[a, b] for a, b in pairwise(codes))
        logs[tuple(classes[code] for code in codes)] = total
    z = np.logaddexp.reduce(list(logs.values()))
    labellings = {labels: np.exp(value - z) for labels, value in logs.items()}
    spans = {}
    for labels, p in labellings.items():
        for chunk in extract_chunks(list(labels)):
            spans[tuple(chunk)] = spans.get(tuple(chunk), 0.0) + p
    return labellings, spans


def losses_by_hand(tagger, X, y, risk, alpha, threshold):
    """Loss of each sequence above the bound, for sequences that count; None for others."""
    losses = []
    for x, labels in zip(X, y, strict=True):
        labellings, spans = by_enumeration(tagger, x)
        if risk == "labelling":
            losses.append(float(labellings[tuple(labels)] < threshold) - alpha)
            continue
        chunks = [tuple(chunk) for chunk in extract_chunks(labels)]
        missed = sum(spans.get(chunk, 0.0) < threshold for chunk in chunks)
        if risk == "missed":
            losses.append(missed - alpha * len(chunks))
        elif chunks:
            losses.append(missed / len(chunks) - alpha)
    return losses


@pytest.mark.parametrize("risk", RISKS)
def test_the_threshold_is_the_largest_that_keeps_the_promise(fitted, risk):
    tagger, X, y = fitted
    alpha, most = 0.25, 4
    found = ConformalTagger(FrozenEstimator(tagger), risk=risk, alpha=alpha, max_chunks=most)
    found.fit(X, y)
    worst = most * (1 - alpha) if risk == "missed" else 1 - alpha

    def keeps(threshold):
        return sum(losses_by_hand(tagger, X, y, risk, alpha, threshold)) + worst <= 1e-9

    (threshold,) = found.thresholds_
    assert 0 < threshold < 1
    assert keeps(threshold * (1 - 1e-9))
    assert not keeps(threshold * (1 + 1e-9))
    assert found.kinds_.tolist() == ["all"]
    assert found.n_calibration_ == len(X)


@pytest.mark.parametrize("risk", RISKS)
def test_candidates_are_all_that_are_above_the_threshold(fitted, risk):
    tagger, X, y = fitted
    found = ConformalTagger(FrozenEstimator(tagger), risk=risk, alpha=0.3, max_chunks=4).fit(X, y)
    (threshold,) = found.thresholds_
    predict = found.predict_sets if risk == "labelling" else found.predict_candidates
    for x, some in zip(X, predict(X), strict=True):
        labellings, spans = by_enumeration(tagger, x)
        expected = labellings if risk == "labelling" else spans
        expected = {key: p for key, p in expected.items() if p >= threshold * (1 - 1e-9)}
        keys = [tuple(one.labels) if risk == "labelling" else one[:3] for one in some]
        assert set(keys) == set(expected)
        assert len(keys) == len(expected)
        for key, one in zip(keys, some, strict=True):
            assert_allclose(one.probability, expected[key], rtol=1e-9)


def excess(tagger, x, labels):
    """How far the loss of one sequence is above alpha; None where it does not count."""
    measures, n = None, len(extract_chunks(labels))
    if tagger.risk == "labelling" or n:
        measures = tagger.measure([x], [labels])["missed"]
    if tagger.risk == "missed":
        return 0.0 if measures is None else n * (measures - tagger.alpha)
    return None if measures is None else measures - tagger.alpha


@pytest.mark.parametrize("labels", ["right", "random"])
@pytest.mark.parametrize("risk", RISKS)
def test_the_promise_holds_for_whichever_sequence_is_new(fitted, risk, labels):
    """Of any sequences in random order, the mean over the last one is what the promise is about."""
    tagger, X, y = fitted
    X, y = X[:40], y[:40]
    if labels == "random":
        rng = np.random.default_rng(3)
        y = [rng.permutation(row).tolist() for row in y]
    found = ConformalTagger(FrozenEstimator(tagger), risk=risk, alpha=0.4, max_chunks=3)
    above = []
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i]
        found.fit(select(X, others), select(y, others))
        above.append(excess(found, X[i], y[i]))
    above = [one for one in above if one is not None]
    assert np.mean(above) <= 1e-12
    # Nor is much given away: two units of the largest loss, spread over all.
    largest = 3 if risk == "missed" else 1
    assert np.mean(above) >= -2 * largest / len(above)


def test_groups_are_the_units_of_the_promise(fitted):
    """The mean loss over the groups, each of which is the new one in turn."""
    tagger, X, y = fitted
    groups = np.arange(len(X)) // 4
    found = ConformalTagger(FrozenEstimator(tagger), risk="missed_by_sequence", alpha=0.3)
    shares = []
    for group in range(groups.max() + 1):
        new = np.flatnonzero(groups == group)
        rest = np.flatnonzero(groups != group)
        found.fit(select(X, rest), select(y, rest), groups=groups[rest])
        assert found.n_calibration_ == groups.max()
        shares.append(found.measure(select(X, new), select(y, new))["missed"])
    assert 0.3 - 2 / len(shares) <= np.mean(shares) <= 0.3


def test_groups_stay_on_one_side():
    X, y = sentences(60)
    groups = np.repeat(np.arange(12), 5).astype(str)
    seen = []

    class Watched(CRFTagger):
        def fit(self, X, y):
            seen.append([id(x[0]) for x in X])
            return super().fit(X, y)

    tagger = ConformalTagger(Watched(), risk="missed_by_sequence", alpha=0.5, calibration=4)
    tagger.set_params(random_state=0).fit(X, y, groups=groups)
    learnt = {groups[i] for i, x in enumerate(X) if id(x[0]) in set(seen[0])}
    assert len(learnt) == 8
    assert len(seen[0]) == 40
    assert tagger.n_calibration_ == 4
    with pytest.raises(ValueError, match="groups has the shape"):
        tagger.fit(X, y, groups=groups[1:])


def test_a_threshold_for_each_type(fitted):
    X, y = sentences(80, types=("X", "Y"))
    tagger = CRFTagger(l2=0.3).fit(*sentences(60, seed=2, types=("X", "Y")))
    found = ConformalTagger(FrozenEstimator(tagger), alpha=0.3, max_chunks=3, by="type").fit(X, y)
    assert found.kinds_.tolist() == ["X", "Y"]
    for kind, threshold in zip(found.kinds_, found.thresholds_, strict=True):
        # Chunks of the other type are not there, as far as this one is concerned.
        only = [[a if a.endswith(kind) else "O" for a in row] for row in y]
        alone = ConformalTagger(FrozenEstimator(tagger), alpha=0.3, max_chunks=3).fit(X, only)
        assert alone.thresholds_ == [threshold]
    assert found.thresholds_[0] != found.thresholds_[1]
    bound = dict(zip(found.kinds_, found.thresholds_, strict=True))
    expected = ConformalTagger(FrozenEstimator(tagger), alpha=0.3, max_chunks=3).fit(X, y)
    expected.thresholds_[:] = min(bound.values())
    expected = [
        [span for span in some if span.probability >= bound[span.type]]
        for some in expected.predict_candidates(X)
    ]
    assert found.predict_candidates(X).tolist() == expected


@pytest.mark.parametrize("risk", RISKS)
def test_a_threshold_for_each_class(fitted, risk):
    tagger, X, y = fitted

    def long(x):
        return "long" if len(x) > 3 else "short"

    options = {"risk": risk, "alpha": 0.4, "max_chunks": 3}
    found = ConformalTagger(FrozenEstimator(tagger), by=long, **options).fit(X, y)
    assert found.kinds_.tolist() == ["long", "short"]
    for kind, threshold in zip(found.kinds_, found.thresholds_, strict=True):
        which = [i for i, x in enumerate(X) if long(x) == kind]
        alone = ConformalTagger(FrozenEstimator(tagger), **options)
        alone.fit(select(X, which), select(y, which))
        assert alone.thresholds_ == [threshold]
        method = "predict_sets" if risk == "labelling" else "predict_candidates"
        ours = getattr(found, method)(select(X, which)).tolist()
        assert ours == getattr(alone, method)(select(X, which)).tolist()
    found.set_params(by=lambda x: "new")
    with pytest.raises(ValueError, match="Sequence 0 is of the class 'new', for which there is no"):
        getattr(found, method)(X)
    kinds = iter(["a", 1, "a"])
    found.set_params(by=lambda x: next(kinds))
    with pytest.raises(ValueError, match="Sequence 1: by returned"):
        found.fit(X[:3], y[:3])


def test_unknown_labels_are_not_calibrated_on(fitted):
    tagger, X, y = fitted
    partly = [[None, *row[1:]] if i % 3 == 0 else row for i, row in enumerate(y)]
    whole = [i for i in range(len(X)) if i % 3]
    found = ConformalTagger(FrozenEstimator(tagger), alpha=0.4, max_chunks=3).fit(X, partly)
    alone = ConformalTagger(FrozenEstimator(tagger), alpha=0.4, max_chunks=3)
    alone.fit(select(X, whole), select(y, whole))
    assert found.thresholds_ == alone.thresholds_
    assert found.measure(X, partly) == alone.measure(select(X, whole), select(y, whole))
    with pytest.raises(ValueError, match="No sequence has all of its labels"):
        found.fit(X, [[None] * len(row) for row in y])


@pytest.mark.parametrize(
    "estimator",
    [
        CRFTagger(l2=0.3),
        make_pipeline(SequenceVectorizer(), CRFTagger(l2=0.3)),
        CRF(c2=0.1),
        PerceptronTagger(random_state=0),
        SpanTaggerCV(CRFTagger(l2=0.3), cv=2, thresholds=5),
    ],
    ids=["tagger", "pipeline", "drop-in", "perceptron", "threshold"],
)
def test_estimators(estimator):
    X, y = sentences(80)
    tagger = ConformalTagger(
        estimator, alpha=0.4, max_chunks=3, calibration=0.5, random_state=0
    ).fit(X, y)
    again = clone(tagger).fit(X, y)
    assert again.thresholds_ == tagger.thresholds_
    assert list(tagger.predict(X)) == list(tagger.estimator_.predict(X))
    assert tagger.score(X, y) == tagger.estimator_.score(X, y)
    assert hasattr(tagger, "predict_proba") == hasattr(estimator, "predict_proba")
    assert tagger.classes_.tolist() == ["B-X", "I-X", "O"]
    assert tagger.measure(*sentences(300, seed=5))["missed"] < 0.5
    found = ConformalTagger(FrozenEstimator(tagger.estimator_), alpha=0.4, max_chunks=3).fit(X, y)
    assert list(found.predict(X)) == list(tagger.predict(X))


def test_pipelines_and_searches_that_end_in_one():
    X, y = sentences(80)
    inner = ConformalTagger(CRFTagger(), alpha=0.4, max_chunks=3, calibration=0.5, random_state=0)
    pipeline = make_pipeline(SequenceVectorizer(), inner).fit(X, y)
    search = GridSearchCV(pipeline, {"conformaltagger__estimator__l2": [0.3, 1]}, cv=2).fit(X, y)
    alone = clone(inner).fit(X, y)
    assert predict_candidates(pipeline, X).tolist() == predict_candidates(alone, X).tolist()
    best = search.best_estimator_
    expected = best[-1].predict_candidates(best[0].transform(X)).tolist()
    assert predict_candidates(search, X).tolist() == expected
    pipeline.set_params(conformaltagger__risk="labelling").fit(X, y)
    expected = pipeline[-1].predict_sets(pipeline[0].transform(X)).tolist()
    assert predict_sets(pipeline, X).tolist() == expected
    with pytest.raises(TypeError, match=r"Expected a ConformalTagger.*got CRFTagger"):
        predict_candidates(CRFTagger().fit(X, y), X)


def test_measures_by_hand(fitted):
    tagger, X, y = fitted
    found = ConformalTagger(FrozenEstimator(tagger), alpha=0.4, max_chunks=3).fit(X, y)
    missed, by_sequence, n_chunks = 0, [], 0
    for some, labels in zip(found.predict_candidates(X), y, strict=True):
        chunks = {tuple(chunk) for chunk in extract_chunks(labels)}
        left = chunks - {span[:3] for span in some}
        missed, n_chunks = missed + len(left), n_chunks + len(chunks)
        by_sequence += [len(left) / len(chunks)] if chunks else []
    measures = found.measure(X, y)
    assert_allclose(measures["missed"], missed / n_chunks)
    assert_allclose(measures["missed_by_sequence"], np.mean(by_sequence))
    n_candidates = sum(map(len, found.predict_candidates(X)))
    assert_allclose(measures["candidates"], n_candidates / n_chunks)
    with pytest.raises(ValueError, match="y has no chunk"):
        found.measure(X, [["O"] * len(row) for row in y])


def test_numbers_and_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(3, size=80)
    X[np.arange(80), y] += 1.0
    tagger = ConformalTagger(CRFTagger(), alpha=0.3, max_chunks=1, by="type", random_state=0)
    tagger.set_params(calibration=0.5).fit(X, y)
    assert tagger.kinds_.tolist() == ["0", "1", "2"]
    assert {span.type for some in tagger.predict_candidates(X) for span in some} == {0, 1, 2}
    assert tagger.predict(X).shape == (80,)
    assert tagger.n_features_in_ == 3
    as_floats = clone(tagger).fit(X, y.astype(float))
    assert as_floats.kinds_.tolist() == ["0.0", "1.0", "2.0"]
    assert as_floats.thresholds_.tolist() == tagger.thresholds_.tolist()


def refusals():
    _, y = sentences(60, seed=1)
    odd = [[label.replace("X", "Z") for label in row] if i % 4 == 0 else row
           for i, row in enumerate(y)]  # fmt: skip
    return {
        "few chunks": ({}, y, r"alpha=0.05 needs 380 chunks to choose a threshold, but \d+ are"),
        "few sequences": (
            {"risk": "missed_by_sequence", "alpha": 0.01},
            y,
            "alpha=0.01 needs 99 sequences or groups with chunks to choose",
        ),
        "few labellings": (
            {"risk": "labelling", "alpha": 0.01},
            y,
            "alpha=0.01 needs 99 sequences or groups to choose",
        ),
        "a rare type": (
            {"by": "type", "alpha": 0.05, "max_chunks": 3},
            [*odd[:8], *y[8:]],
            "alpha=0.05 needs 19 sequences or groups with 'Z' to choose a threshold, but 1 are",
        ),
        "a new type": (
            {"alpha": 0.1, "max_chunks": 3},
            odd,
            r"No threshold reaches \d+ of the true chunks \(\d+ Z\).*The smallest alpha that",
        ),
        "few best": (
            {"risk": "labelling", "alpha": 0.2, "max_labellings": 1},
            y,
            r"\d+ right labellings.*are not among the 1 best.*The smallest alpha",
        ),
        "types of labellings": ({"risk": "labelling", "by": "type"}, y, "pass by=None"),
        "no alpha": ({"alpha": 0}, y, "'alpha' parameter of ConformalTagger must be"),
        "no risk": ({"risk": "all"}, y, "'risk' parameter of ConformalTagger must be"),
    }


@pytest.mark.parametrize(("params", "y", "message"), refusals().values(), ids=refusals())
def test_refusals(fitted, params, y, message):
    tagger, X, _ = fitted
    found = ConformalTagger(FrozenEstimator(tagger), **params)
    with pytest.raises(ValueError, match=message):
        found.fit(X, y)
    assert not hasattr(found, "thresholds_")


@pytest.mark.parametrize("risk", RISKS)
def test_the_smallest_alpha_that_is_named_can_be_kept(fitted, risk):
    tagger, X, y = fitted
    y = [[label.replace("X", "Z") for label in row] if i % 4 == 0 else row
         for i, row in enumerate(y)]  # fmt: skip
    found = ConformalTagger(FrozenEstimator(tagger), risk=risk, alpha=0.1, max_chunks=3)
    with pytest.raises(ValueError, match="The smallest alpha that can be kept is") as told:
        found.fit(X, y)
    smallest = float(str(told.value).split("kept is ")[1].split(";")[0].rstrip("."))
    found.set_params(alpha=smallest).fit(X, y)
    with pytest.raises(ValueError, match="The smallest alpha"):
        found.set_params(alpha=smallest - 0.002).fit(X, y)


def test_methods_of_the_other_risk(fitted):
    tagger, X, y = fitted
    found = ConformalTagger(FrozenEstimator(tagger), alpha=0.4, max_chunks=3)
    with pytest.raises(NotFittedError):
        found.predict_candidates(X)
    with pytest.raises(ValueError, match="call predict_candidates"):
        found.fit(X, y).predict_sets(X)
    with pytest.raises(ValueError, match="call predict_sets"):
        found.set_params(risk="labelling").fit(X, y).predict_candidates(X)


def test_many_chunks_are_told(fitted):
    tagger, X, y = fitted
    most = max(range(len(y)), key=lambda i: len(extract_chunks(y[i])))
    with pytest.warns(UserWarning, match=f"group {most} has 3 chunks, more than max_chunks=2"):
        ConformalTagger(FrozenEstimator(tagger), alpha=0.4, max_chunks=2).fit(X, y)


def test_a_failed_fit_changes_nothing(fitted):
    tagger, X, y = fitted
    found = ConformalTagger(FrozenEstimator(tagger), alpha=0.4, max_chunks=3).fit(X, y)
    before = vars(found).copy()
    with pytest.raises(ValueError, match="Sequence 0 has"):
        found.fit(X, [row[1:] for row in y])
    found.set_params(alpha=0.001)
    with pytest.raises(ValueError, match=r"alpha=0.001 needs"):
        found.fit(X, y)
    assert vars(found) == {**before, "alpha": 0.001}


def random_labels(n_sequences=200, seed=0):
    """Words that say nothing about labels, many of them."""
    rng = np.random.default_rng(seed)
    X = [[f"w{word}" for word in rng.integers(60, size=3)] for _ in range(n_sequences)]
    return X, [rng.choice(["O", "B-X"], 3).tolist() for _ in X]


def test_steps_outside_that_have_read_labels_are_told():
    X, y = random_labels()
    inside = make_pipeline(WordVectorizer(label_statistics=True), CRFTagger())
    outside = make_pipeline(
        WordVectorizer(label_statistics=True),
        ConformalTagger(CRFTagger(), alpha=0.4, max_chunks=3, random_state=0),
    )
    with pytest.warns(UserWarning, match=r"X has features made of labels.*Put the steps"):
        outside.fit(X, y)
    tagger = ConformalTagger(inside, alpha=0.4, max_chunks=3, random_state=0).fit(X, y)
    assert len(tagger.thresholds_) == 1
    dicts = [[{"w": word, "label_statistics": "X!1"} for word in row] for row in X]
    with pytest.warns(UserWarning, match="X has features made of labels"):
        tagger.set_params(estimator=CRFTagger()).fit(dicts, y)
    batch = WordVectorizer(label_statistics=True).fit_transform(X, y)
    with pytest.warns(UserWarning, match="X has features made of labels"):
        tagger.fit(batch[:150], y[:150])


def test_the_promise_holds_with_random_labels_and_statistics_of_them():
    """Inside, what is held out is not counted."""
    missed, chunks = 0.0, 0
    X, y = random_labels(800)
    model = make_pipeline(WordVectorizer(label_statistics=True), CRFTagger(l2=0.01))
    for seed in range(6):
        tagger = ConformalTagger(model, alpha=0.2, max_chunks=3, random_state=seed)
        order = np.random.default_rng(seed).permutation(800)
        tagger.fit(select(X, order[:300]), select(y, order[:300]))
        of_test = sum(len(extract_chunks(y[i])) for i in order[300:])
        test = select(X, order[300:]), select(y, order[300:])
        missed += tagger.measure(*test)["missed"] * of_test
        chunks += of_test
    assert missed / chunks < 0.2 + 0.02
