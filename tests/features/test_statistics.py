"""`LabelStatistics`: a naive twin, what must not leak, kinds of tokens, storing, pipelines."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, cross_val_score
from sklearn.pipeline import make_pipeline

from skstruct import (
    CRFTagger,
    CRFTaggerCV,
    LabelStatistics,
    SpanTaggerCV,
    TemplateVectorizer,
    WordVectorizer,
)
from skstruct.datasets import load_addresses

X = [["in", "Rome"], ["Rome", "is", "old"], ["in", "Oslo"], ["old", "rome"]]
Y = [["O", "B-LOC"], ["B-PER", "I-PER", "O"], ["O", "B-LOC"], ["O", "B-LOC"]]


def column(sequences):
    """The statistics of sequences of tuples."""
    return [[token[-1] for token in sequence] for sequence in sequences]


def naive_statistic(word, sequences):
    """Statistic of a word in pairs of words and labels, in plain Python."""
    found = Counter()
    for words, labels in sequences:
        for other, label in zip(words, labels, strict=True):
            if other.lower() == word.lower() and label is not None:
                found[label.partition("-")[2] or label] += 1
    n = sum(found.values())
    if n == 0:
        return "new"
    bound = max(bound for bound in (1, 2, 5) if bound <= n)
    chunks = {kind: times for kind, times in found.items() if kind != "O"}
    if not chunks:
        return f"O{bound}"
    kind = min(chunks, key=lambda kind: (-chunks[kind], kind))
    return f"{kind}{'!' if 2 * chunks[kind] >= n else '?'}{bound}"


tokens = st.tuples(st.sampled_from("aAbBc"), st.sampled_from(["B-X", "I-Y", "O", "O", None]))
corpora = st.lists(st.lists(tokens, max_size=6), min_size=2, max_size=7)


def split(corpus):
    """Words and labels of a corpus of pairs."""
    return tuple([[token[i] for token in sequence] for sequence in corpus] for i in (0, 1))


@given(corpus=corpora, n_folds=st.integers(2, 7))
@settings(max_examples=200, deadline=None)
def test_statistics_are_those_of_a_naive_twin(corpus, n_folds):
    words, labels = split(corpus)
    n_folds = min(n_folds, len(words))
    pairs = list(zip(words, labels, strict=True))
    statistics = LabelStatistics(cv=n_folds)
    trained = column(statistics.fit_transform(words, labels))
    for train, test in KFold(n_folds).split(words):
        others = [pairs[i] for i in train]
        for i in test:
            assert trained[i] == [naive_statistic(word, others) for word in words[i]]
    for sequence, found in zip(words, column(statistics.transform(words)), strict=True):
        assert found == [naive_statistic(word, pairs) for word in sequence]


# What must not leak. ------------------------------------------------------------------------------


@given(corpus=corpora, labels=st.data())
@settings(max_examples=100, deadline=None)
def test_labels_of_a_fold_change_no_training_column_of_it(corpus, labels):
    words, given_labels = split(corpus)
    folds = list(KFold(2).split(words))
    for _, test in folds:
        changed = [list(sequence) for sequence in given_labels]
        for i in test:
            kinds = st.sampled_from(["B-X", "B-Z", "O"])
            n = len(changed[i])
            changed[i] = labels.draw(st.lists(kinds, min_size=n, max_size=n))
        parameters = {"cv": folds, "scheme": "IOB2"}
        before, after = (
            column(LabelStatistics(**parameters).fit_transform(words, y))
            for y in (given_labels, changed)
        )
        assert [before[i] for i in test] == [after[i] for i in test]


@pytest.fixture(scope="module")
def random_labels():
    """Sequences of words, many of them rare, and labels that do not depend on them."""
    rng = np.random.default_rng(0)
    words = [[f"w{n}" for n in rng.zipf(1.3, 8).clip(max=5000)] for _ in range(1200)]
    labels = [rng.choice(["B-X", "O"], len(sequence)).tolist() for sequence in words]
    return words, labels


def flat_scores(train, test, y_train, y_test):
    """Training and test accuracy of a logistic regression on words and statistics."""
    features = [
        [{str(place): value for place, value in enumerate(token)} for s in part for token in s]
        for part in (train, test)
    ]
    vectorizer = DictVectorizer().fit(features[0])
    y = [[label for labels in part for label in labels] for part in (y_train, y_test)]
    found = [vectorizer.transform(part) for part in features]
    model = LogisticRegression(max_iter=500).fit(found[0], y[0])
    return [model.score(*pair) for pair in zip(found, y, strict=True)]


def test_random_labels_bring_nothing(random_labels):
    """Held out, statistics of random labels are worth nothing.

    In training, "all less one fold" tells beside the word itself something of the labels of that
    fold. Accuracy rises from .589 with words alone to .609, and to .613 with folds of one sequence.
    """
    words, y = random_labels
    (train, test), (y_train, y_test) = ((part[:800], part[800:]) for part in (words, y))
    plain = [[[(word,) for word in s] for s in part] for part in (train, test)]
    alone = flat_scores(*plain, y_train, y_test)

    def scores(cv):
        statistics = LabelStatistics(cv=cv)
        columns = statistics.fit_transform(train, y_train), statistics.transform(test)
        return flat_scores(*columns, y_train, y_test)

    folds, one_by_one = scores(None), scores(LeaveOneOut())
    assert abs(folds[1] - 0.5) < 0.03
    assert folds[0] - alone[0] < 0.03
    assert folds[0] < one_by_one[0]


class Spy(LabelStatistics):
    """Notes how many sequences each fit sees."""

    seen = []

    def fit_transform(self, X, y, **params):
        """Fit and note."""
        self.seen.append(len(X))
        return super().fit_transform(X, y, **params)


def test_every_fold_around_fits_its_own():
    words, y = load_addresses(return_X_y=True)
    words, y = words[:60], y[:60]
    Spy.seen.clear()
    lines = ["U0:%x[0,0]", "U1:%x[0,1]"]
    pipeline = make_pipeline(Spy(), TemplateVectorizer(lines), CRFTagger(max_iter=5))
    pipeline.set_params(crftagger__tol=1.0)
    cross_val_score(pipeline, words, y, cv=3)
    assert Spy.seen == [40, 40, 40]
    GridSearchCV(pipeline, {"spy__counts": [(1, 2)]}, cv=2, refit=False).fit(words, y)
    assert Spy.seen[3:] == [30, 30]
    SpanTaggerCV(pipeline, cv=2).fit(words, y)
    assert Spy.seen[5:] == [30, 30, 60]
    last = make_pipeline(
        Spy(), TemplateVectorizer(lines), CRFTaggerCV([1.0], cv=2, max_iter=5, search_tol=1.0)
    )
    last.fit(words, y)
    assert Spy.seen[8:] == [60]


# Rules. -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [GroupKFold(3), 3, None])
def test_groups_say_nothing_about_each_other(cv):
    words = [["a"], ["a"], ["b"], ["a"], ["b"], ["c"]]
    y, groups = [["B-X"]] * 6, [1, 1, 2, 2, 3, 3]
    statistics = LabelStatistics(cv=cv)
    found = column(statistics.fit_transform(words, y, groups=groups))
    assert found == [["X!1"], ["X!1"], ["X!1"], ["X!2"], ["X!1"], ["new"]]
    if cv is None:
        assert column(statistics.fit_transform(words, y, groups=[1] * 6)) == [["new"]] * 6


def test_folds_must_test_each_sequence_once():
    with pytest.raises(ValueError, match="must test each sequence once, but tests sequence 0 2"):
        LabelStatistics(cv=[([1], [0]), ([1], [0])]).fit_transform(X[:2], Y[:2])
    with pytest.raises(ValueError, match="sequence 1 0 times"):
        LabelStatistics(cv=[([1], [0])]).fit_transform(X[:2], Y[:2])
    masks = [(np.array([False, True]), np.array([True, False])), ([0], [1])]
    found = LabelStatistics(cv=masks).fit_transform(X[:2], Y[:2])
    assert found == LabelStatistics(cv=2).fit_transform(X[:2], Y[:2])


def test_a_single_sequence_is_new():
    assert column(LabelStatistics().fit_transform(X[:1], Y[:1])) == [["new", "new"]]


def test_weights_decide_the_type_and_nothing_else():
    words, y = [["a"]] * 3, [["B-X"], ["B-X"], ["B-Y"]]

    def statistic(weights):
        return column(LabelStatistics().fit(words, y, sample_weight=weights).transform([["a"]]))

    assert statistic(None) == [["X!2"]]
    assert statistic([0.1, 0.1, 0.7]) == [["Y!2"]]
    # A sequence without weight is not there.
    assert statistic([1, 0, 0]) == [["X!1"]]
    assert statistic([0, 0, 0]) == [["new"]]
    with pytest.raises(ValueError, match="sample_weight"):
        statistic([1, -1, 1])


def test_unknown_labels_count_for_nothing():
    statistics = LabelStatistics().fit([["a", "a", "b"]], [["B-X", None, None]])
    assert column(statistics.transform([["a", "b"]])) == [["X!1", "new"]]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["NOUN", "VERB", "NOUN"], "NOUN!2"), ([3, 4, 3], "3!2"), (["B", "I", "O"], "_!2")],
)
def test_labels_without_types(labels, expected):
    statistics = LabelStatistics().fit([["a", "a", "a"]], [labels])
    assert column(statistics.transform([["a"]])) == [[expected]]


def test_portions_add_up():
    whole = LabelStatistics().fit(X, Y)
    parts = LabelStatistics()
    for i in range(len(X)):
        parts.partial_fit(X[i : i + 1], Y[i : i + 1], sample_weight=[1.0])
    assert parts.words_ == whole.words_
    assert parts.types_ == whole.types_
    assert parts.occurrences_.tolist() == whole.occurrences_.tolist()
    assert parts.transform(X) == whole.transform(X)


# Formats. -----------------------------------------------------------------------------------------


def test_columns_stand_beside_tokens_of_all_kinds():
    expected = column(LabelStatistics().fit_transform(X, Y))
    flat = [value for sequence in expected for value in sequence]
    pairs = [[(word, "t") for word in words] for words in X]
    assert column(LabelStatistics().fit_transform(pairs, Y)) == expected
    assert LabelStatistics().fit_transform(pairs, Y)[0][0] == ("in", "t", expected[0][0])
    turned = [[["t", word] for word in words] for words in X]
    assert column(LabelStatistics(column=1).fit_transform(turned, Y)) == expected
    dicts = [[{"word": word, "n": 1} for word in words] for words in X]
    found = LabelStatistics(column="word").fit_transform(dicts, Y)
    assert [token["label_statistics"] for sequence in found for token in sequence] == flat
    assert found[0][0]["n"] == 1
    assert "label_statistics" not in dicts[0][0]
    frames = [pd.DataFrame({"word": words, "n": 1}, index=[7, 8, 9][: len(words)]) for words in X]
    for name in ("word", 0):
        found = LabelStatistics(column=name).fit_transform(frames, Y)
        assert pd.concat(found)["label_statistics"].tolist() == flat
        assert found[0].index.tolist() == [7, 8]
    arrays = [np.array(sequence, dtype=object) for sequence in pairs]
    assert column(LabelStatistics().fit_transform(arrays, Y)) == expected
    once = (iter(words) for words in X)
    assert column(LabelStatistics().fit_transform(once, Y)) == expected


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({}, [["a"], [None]], "Sequence 1, token 0"),
        ({}, "text", "expected a list of sequences"),
        ({"column": "word"}, [["a"], ["b"]], "no string for the key 'word'"),
        ({"column": 2}, [["a"], ["b"]], "column=2"),
        ({"counts": (2, 2)}, [["a"], ["b"]], "counts must be positive integers"),
        ({"counts": ()}, [["a"], ["b"]], "counts must be positive integers"),
        ({"normalize": len}, [["a"], ["b"]], "normalize must return strings, but returned 1"),
        ({"normalize": int}, [["a"], ["b"]], "normalize raised ValueError"),
        ({}, [["a"], ["b", "c"]], "Sequence 1 has 2 tokens, but 1 labels"),
    ],
)
def test_bad_input_leaves_the_estimator_as_it_was(parameters, X, message):
    statistics = LabelStatistics().fit([["x"]], [["O"]]).set_params(**parameters)
    before = statistics.words_
    for fit in (statistics.fit, statistics.fit_transform, statistics.partial_fit):
        with pytest.raises(ValueError, match=message):
            fit(X, [["O"], ["O"]])
    assert statistics.words_ is before


def test_labels_are_needed():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        LabelStatistics().fit(X, None)
    with pytest.raises(NotFittedError):
        LabelStatistics().transform(X)


def test_storing():
    statistics = LabelStatistics().fit(X, Y)
    data = skops.io.dumps(statistics)
    trusted = skops.io.get_untrusted_types(data=data)
    assert trusted == ["skstruct.LabelStatistics"]
    for other in (skops.io.loads(data, trusted=trusted), pickle.loads(pickle.dumps(statistics))):
        assert other.normalize is str.lower
        assert other.transform(X) == statistics.transform(X)
        assert other.partial_fit(X, Y).occurrences_.tolist() != statistics.occurrences_.tolist()
    assert clone(statistics).get_params() == statistics.get_params()


# In `WordVectorizer`. -----------------------------------------------------------------------------


def names_at(vectorizer, batch):
    return [
        [{name for name in token if not name.startswith("Ulabels")} for token in sequence]
        for sequence in vectorizer.inverse_transform(batch)
    ]


def statistics_at(vectorizer, batch):
    return [
        [
            [name[len("Ulabels+0:") :] for name in token if name.startswith("Ulabels+0:")]
            for token in s
        ]
        for s in vectorizer.inverse_transform(batch)
    ]


def test_word_vectorizer_has_the_same_statistics():
    words, y = load_addresses(return_X_y=True)
    words, y, new = words[:100], y[:100], words[100:140]
    statistics, plain = LabelStatistics(), WordVectorizer().fit(words)
    vectorizer = WordVectorizer(label_statistics=True)
    batch = vectorizer.fit_transform(words, y)
    expected = statistics.fit_transform(words, y)
    assert statistics_at(vectorizer, batch) == [[[v] for v in s] for s in column(expected)]
    assert names_at(vectorizer, batch) == names_at(plain, plain.transform(words))
    learnt = {value for sequence in column(expected) for value in sequence}
    expected = [[[v] if v in learnt else [] for v in s] for s in column(statistics.transform(new))]
    assert statistics_at(vectorizer, vectorizer.transform(new)) == expected
    # Twice, as results of functions are remembered.
    assert statistics_at(vectorizer, vectorizer.transform(new)) == expected
    for other in (pickle.loads(pickle.dumps(vectorizer)), clone(vectorizer).fit(words, y)):
        found = other.transform(new)
        assert (found.X != vectorizer.transform(new).X).nnz == 0


def test_word_vectorizer_needs_labels_for_statistics_only():
    assert WordVectorizer().fit(X).n_features_ == WordVectorizer().fit(X, Y).n_features_
    vectorizer = WordVectorizer(label_statistics=True)
    with pytest.raises(ValueError, match="label_statistics=True requires y"):
        vectorizer.fit(X)
    with pytest.raises(ValueError, match="Sequence 0 has 2 tokens, but 1 labels"):
        vectorizer.fit(X, [["O"], *Y[1:]])
    assert not hasattr(vectorizer, "template_")
    bad = LabelStatistics(column=1)
    with pytest.raises(ValueError, match="words of a WordVectorizer are in column 0"):
        WordVectorizer(label_statistics=bad).fit(X, Y)


def test_lines_of_ones_own_take_no_other_values():
    """Functions around the statistics would be those of all labels, the own ones included."""
    lines = ["Uown:%x[-1,0|labels]/%x[0,0|labels]"]
    vectorizer = WordVectorizer(label_statistics=True, extra_template=lines).fit(X, Y)
    names = vectorizer.get_feature_names_out().tolist()
    single = {name[len("Ulabels+0:") :] for name in names if name.startswith("Ulabels+0:")}
    pairs = [name[len("Uown:") :].split("/") for name in names if name.startswith("Uown:")]
    assert {value for pair in pairs for value in pair} <= single | {"_B-1"}
    for line in ("U:%x[0,0|lower|labels]", "U:%x[0,0|labels|lower]", "U:%X[0,0|labels]"):
        vectorizer = WordVectorizer(label_statistics=True, extra_template=[line])
        with pytest.raises(ValueError, match="'labels' takes the word"):
            vectorizer.fit(X, Y)


def test_a_statistic_of_their_own():
    mine = LabelStatistics(counts=(1,), cv=2)
    vectorizer = WordVectorizer(label_statistics=mine).fit(X, Y)
    assert vectorizer.label_statistics_.counts == (1,)
    assert not hasattr(mine, "words_")
    vectorizer.set_params(label_statistics__counts=(1, 3))
    assert mine.counts == (1, 3)
    vectorizer.set_params(label_statistics=False).fit(X)
    assert not hasattr(vectorizer, "label_statistics_")


def test_metadata_is_routed():
    groups, weights = np.array([0, 0, 1, 1]), np.array([1.0, 1.0, 0.0, 1.0])
    words = WordVectorizer(label_statistics=LabelStatistics(cv=GroupKFold(2)))
    plain = clone(words).fit(X, Y, groups=groups, sample_weight=weights)
    expected = plain.get_feature_names_out().tolist()
    with config_context(enable_metadata_routing=True):
        words.set_fit_request(groups=True, sample_weight=True)
        tagger = CRFTagger().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(words, tagger)
        pipeline.fit(X, Y, groups=groups, sample_weight=weights)
        assert pipeline[0].get_feature_names_out().tolist() == expected
        assert pipeline[0].label_statistics_.occurrences_.sum() == 7
        # Without a request, weights of the tagger concern the tagger alone.
        pipeline = make_pipeline(WordVectorizer(), tagger).fit(X, Y, sample_weight=weights)
        assert pipeline[0].n_features_ > 0
    named = {"wordvectorizer__groups": groups, "wordvectorizer__sample_weight": weights}
    pipeline = make_pipeline(clone(words), CRFTagger()).fit(X, Y, **named)
    assert pipeline[0].get_feature_names_out().tolist() == expected
