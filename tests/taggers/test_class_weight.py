"""Class weights: scikit-learn's on single tokens, the mean over the tokens of a sequence."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import check_class_weight_classifiers

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    metrics,
)
from skstruct.input.training_set import weigh_sequences

WEIGHTS = ("coef_", "transition_", "intercept_", "start_", "end_")
TAGGERS = [
    CRFTagger(l2=0.5, tol=1e-10),
    CRFTagger(solver="sgd", l2=0.5, random_state=0, max_iter=5, tol=None),
    SDCACRF(l2=0.5, tol=1e-8, random_state=0),
    PerceptronTagger(random_state=0, max_iter=5, tol=None),
    MIRATagger(random_state=0, max_iter=5, tol=None),
    AROWTagger(random_state=0, max_iter=5, tol=None),
    SAPOTagger(l2=0.5, random_state=0, max_iter=5, tol=None),
]


def name_of(tagger):
    return f"{type(tagger).__name__}-{getattr(tagger, 'solver', '')}"


@pytest.fixture(params=TAGGERS, ids=name_of)
def tagger(request):
    return clone(request.param)


@pytest.fixture(scope="module")
def ragged():
    """Sequences of unequal lengths, one of them empty, whose label 2 is rare."""
    rng = np.random.default_rng(0)
    lengths = np.array([3, 1, 0, 5, 4, 2, 6, 3, 1, 4])
    X = rng.normal(size=(lengths.sum(), 4))
    y = rng.choice(3, len(X), p=[0.6, 0.3, 0.1])
    y[:3] = 0, 1, 2
    labels = [part.tolist() for part in np.split(y, np.cumsum(lengths)[:-1])]
    return SequenceBatch.from_lengths(X, lengths), labels


def mean_weights(y, weight_of):
    return np.array([np.mean([weight_of[label] for label in part]) if part else 1.0 for part in y])


def balanced(y, sample_weight):
    """The textbook formula, token by token."""
    count = {}
    for labels, weight in zip(y, sample_weight, strict=True):
        for label in labels:
            count[label] = count.get(label, 0.0) + weight
    total = sum(count.values())
    return {label: total / (len(count) * n) for label, n in count.items()}


@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.5, 1: 1, 2: 7.0}, {2: 3}, {}])
def test_a_sequence_counts_as_much_as_its_tokens_on_average(tagger, ragged, class_weight):
    X, y = ragged
    sample_weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    weight_of = class_weight
    if class_weight == "balanced":
        weight_of = balanced(y, sample_weight)
    means = mean_weights(y, {0: 1.0, 1: 1.0, 2: 1.0, **weight_of})
    tagger.set_params(class_weight=class_weight).fit(X, y, sample_weight)
    other = clone(tagger).set_params(class_weight=None).fit(X, y, sample_weight * means)
    for name in WEIGHTS:
        assert_allclose(getattr(tagger, name), getattr(other, name), rtol=1e-12, atol=1e-14)
    if class_weight:
        plain = clone(other).fit(X, y, sample_weight)
        assert not np.allclose(plain.coef_, tagger.coef_)


@given(st.data())
def test_against_a_plain_loop(data):
    y = data.draw(st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=6))
    n = len(y)
    sample_weight = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n))
    )
    labels = np.array([label for part in y for label in part], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in y])])
    used = {label for part, s in zip(y, sample_weight, strict=True) for label in part if s > 0}
    found = weigh_sequences("balanced", np.arange(4), labels, offsets, sample_weight)
    weight_of = balanced([p for p, s in zip(y, sample_weight, strict=True) if s > 0],
                         sample_weight[sample_weight > 0])  # fmt: skip
    assert set(weight_of) == used
    expected = sample_weight * mean_weights(y, {**dict.fromkeys(range(4), 0.0), **weight_of})
    counting = sample_weight > 0
    assert_allclose(found[counting], expected[counting], rtol=1e-14)
    assert_array_equal(found[~counting], 0)


def test_tokens_without_a_label_are_left_out():
    labels = np.array([0, -1, 1, -1, -1, 1], np.int32)
    offsets = np.array([0, 3, 5, 6])
    found = weigh_sequences({0: 2.0, 1: 4.0}, np.arange(2), labels, offsets, np.ones(3))
    assert_array_equal(found, [3.0, 1.0, 4.0])
    found = weigh_sequences("balanced", np.arange(2), labels, offsets, np.ones(3))
    assert_allclose(found, [(1.5 + 0.75) / 2, 1.0, 0.75])


@pytest.mark.parametrize("kind", [CRFTagger, SDCACRF])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", ["balanced", {"a": 0.2, "b": 3, "c": 1.5}, {"b": 10}])
def test_single_tokens_are_weighted_as_by_logistic_regression(kind, weighted, class_weight):
    X, y = make_classification(
        150, 5, n_informative=4, n_redundant=0, n_classes=3, weights=[0.7, 0.2], random_state=0
    )
    y = np.array(["a", "b", "c"])[y]
    sample_weight = np.random.default_rng(0).integers(0, 4, len(y)) if weighted else None
    settings = {"fit_intercept": False, "class_weight": class_weight}
    reference = LogisticRegression(C=0.5, tol=1e-10, max_iter=5000, **settings)
    reference.fit(X, y, sample_weight)
    tagger = kind(l2=2.0, tol=1e-10, **settings, random_state=0).fit(X, y, sample_weight)
    assert_allclose(tagger.predict_proba(X), reference.predict_proba(X), atol=1e-4)
    plain = kind(l2=2.0, fit_intercept=False, random_state=0).fit(X, y, sample_weight)
    assert not np.allclose(plain.predict_proba(X), reference.predict_proba(X), atol=1e-2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_check_of_scikit_learn(tagger):
    # Margins and scores of samples this noisy take a smaller step than the one for text.
    if isinstance(tagger, SAPOTagger) or getattr(tagger, "solver", "") == "sgd":
        tagger.set_params(learning_rate=1e-4)
    check_class_weight_classifiers(type(tagger).__name__, tagger)


def test_history_and_certificate_are_of_the_weighted_objective(ragged):
    X, y = ragged
    class_weight = {0: 1.0, 1: 2.0, 2: 8.0}
    weight = mean_weights(y, class_weight)
    for kind in (CRFTagger, SDCACRF):
        tagger = kind(l2=0.5, tol=1e-9, class_weight=class_weight, random_state=0).fit(X, y)
        objective = naive.crf_objective(list(X), y, naive.weights_of(tagger), 0.5, weight)
        assert_allclose(tagger.history_["objective"][-1], objective, rtol=1e-7)
    minimum = CRFTagger(l2=0.5, tol=1e-12, class_weight=class_weight).fit(X, y)
    assert tagger.duality_gap_ >= objective - minimum.history_["objective"][-1] - 1e-9


def test_balanced_is_for_whole_training_sets(ragged):
    X, y = ragged
    tagger = PerceptronTagger(class_weight="balanced", random_state=0)
    with pytest.raises(ValueError, match="'balanced' needs all labels at once"):
        tagger.partial_fit(X, y)
    assert not hasattr(tagger, "classes_")
    weighted = PerceptronTagger(class_weight={2: 5.0}, random_state=0).partial_fit(X, y)
    means = mean_weights(y, {0: 1.0, 1: 1.0, 2: 5.0})
    plain = PerceptronTagger(random_state=0).partial_fit(X, y, sample_weight=means)
    assert_array_equal(weighted.coef_, plain.coef_)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 1.0, 7: 2.0}, r"class_weight has weights for \[7\], which are not among the classes"),
        ({"0": 1.0}, r"weights for \['0'\]"),
        ({0: -1.0}, "class_weight has -1.0 for 0; weights must be finite and not negative"),
        ({0: np.nan}, "class_weight has nan for 0"),
        ({0: np.inf}, "class_weight has inf for 0"),
        ({0: "heavy"}, "class_weight has 'heavy' for 0"),
        ({0: 0, 1: 0, 2: 0}, "at least one non-zero number"),
        ("even", "The 'class_weight' parameter"),
        ([1, 2, 3], "The 'class_weight' parameter"),
    ],
)
def test_invalid_class_weights(tagger, ragged, class_weight, message):
    tagger.set_params(class_weight=class_weight)
    before = dict(tagger.__dict__)
    with pytest.raises(ValueError, match=message):
        tagger.fit(*ragged)
    assert tagger.__dict__ == before


def test_a_label_that_a_part_of_the_data_lacks(ragged):
    """As in scikit-learn: no error where every class that there is has a weight."""
    X, y = ragged
    weights = {0: 1.0, 1: 2.0, 2: 3.0, 9: 4.0}
    tagger = CRFTagger(class_weight=weights).fit(X, y)
    plain = CRFTagger(class_weight={0: 1.0, 1: 2.0, 2: 3.0}).fit(X, y)
    assert_array_equal(tagger.coef_, plain.coef_)


def test_labels_that_look_like_numbers():
    X, y = [[["a"], ["b"]], [["a"]]] * 3, [["1", "2"], ["1"]] * 3
    tagger = CRFTagger(class_weight={"1": 3.0}, tol=1e-9).fit(X, y)
    plain = CRFTagger(tol=1e-9).fit(X, y, [2.0, 3.0] * 3)
    assert_allclose(tagger.coef_, plain.coef_, atol=1e-6)


@pytest.mark.parametrize("kind", [CRFTagger, PerceptronTagger])
def test_balanced_weights_find_more_of_a_rare_label(kind):
    """In short sequences, where the mean over the tokens does not level all of them."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 4, 600)
    y = rng.choice(2, lengths.sum(), p=[0.95, 0.05])
    X = SequenceBatch.from_lengths(y[:, None] + rng.normal(size=(len(y), 2)), lengths)
    labels = [part.tolist() for part in np.split(y, np.cumsum(lengths)[:-1])]
    recall = {}
    for class_weight in (None, "balanced"):
        tagger = kind(class_weight=class_weight, random_state=0).set_params(max_iter=50)
        found = np.concatenate(tagger.fit(X[:300], labels[:300]).predict(X[300:]))
        recall[class_weight] = np.mean(found[np.concatenate(labels[300:]) == 1])
    assert recall["balanced"] > recall[None] + 0.2


def test_a_grid_of_class_weights(addresses):
    X, y = addresses[0][:60], addresses[1][:60]
    grid = {"class_weight": [None, "balanced", {"O": 0.1}]}
    search = GridSearchCV(
        PerceptronTagger(random_state=0, max_iter=3, tol=None), grid,
        cv=2, scoring=metrics.chunk_f1_scorer, error_score="raise",
    ).fit(X, y)  # fmt: skip
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) == 3
    assert not np.isnan(scores).any()


def test_rows_with_balanced_weights_in_cross_validation():
    """What `compute_sample_weight` says of single tokens."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, 80, p=[0.7, 0.2, 0.1])
    offsets = np.arange(81)
    found = weigh_sequences("balanced", np.arange(3), y.astype(np.int32), offsets, np.ones(80))
    assert_allclose(found, compute_sample_weight("balanced", y), rtol=1e-14)
