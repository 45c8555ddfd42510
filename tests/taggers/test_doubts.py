"""Warnings of what was learnt, or is asked, and can hardly be meant; none where it can."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SequenceVectorizer,
    SpanTaggerCV,
    TemplateVectorizer,
    WordVectorizer,
)
from skstruct.datasets import load_addresses, read_conll
from skstruct.input.training_set import TrainingSet, batch_rows
from skstruct.metrics import extract_chunks
from skstruct.taggers.base import training_chunks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TAGGERS = [
    CRFTagger(max_iter=40),
    CRFTagger(solver="sgd", max_iter=10, random_state=0),
    SDCACRF(max_iter=10, random_state=0),
    PerceptronTagger(random_state=0),
    MIRATagger(max_iter=5, random_state=0),
    SAPOTagger(max_iter=5, random_state=0),
    AROWTagger(random_state=0),
]
NEARLY_NONE = "Nearly no feature of X was seen in training"


def told(call):
    """Warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        call()
    kinds = [w for w in caught if w.category is UserWarning]
    return [str(warning.message) for warning in kinds]


def rare_names(n, n_names):
    """Sequences of four tokens without a telling feature; the first ones begin with a name."""
    X = [[{"a": 1.0}, {"a": 1.0}, {"a": 1.0}, {"a": 1.0}] for _ in range(n)]
    y = [["B-X" if i < n_names else "O", "O", "O", "O"] for i in range(n)]
    return X, y


# Learning. ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tagger", TAGGERS, ids=str)
def test_nothing_but_o_was_learnt(tagger):
    X, y = rare_names(60, 12)
    predicted = tagger.fit(X, y).predict(X)
    assert {label for labels in predicted for label in labels} == {"O"}
    (message,) = told(lambda: tagger.fit(X, y))
    assert message.startswith(
        "Predictions for 12 sequences of the training set hold 0 chunks, where their labels hold 12"
    )


def test_the_share_of_chunks_decides():
    # A feature of their own tells some of the names.
    X, y = rare_names(200, 100)
    for n_told, is_doubtful in ((9, True), (11, False)):
        for i in range(n_told):
            X[i][0] = {"a": 1.0, "name": 5.0}
        messages = told(lambda: CRFTagger(l2=0.01).fit(X, y))
        assert len(messages) == is_doubtful
        if is_doubtful:
            assert f"hold {n_told} chunks, where their labels hold 100" in messages[0]


def test_few_names_and_labels_of_other_kinds_are_no_reason():
    X, y = rare_names(60, 9)
    assert told(lambda: CRFTagger().fit(X, y)) == []
    X, y = rare_names(60, 30)
    y = [[{"B-X": "NN", "O": "VB"}[label] for label in labels] for labels in y]
    assert told(lambda: CRFTagger().fit(X, y)) == []


def test_sequences_without_weight_or_labels_do_not_count():
    X, y = rare_names(60, 20)
    weight = [0.0] * 12 + [1.0] * 48
    assert told(lambda: CRFTagger().fit(X, y, sample_weight=weight)) == []
    y = [[None if label == "B-X" and i < 12 else label for label in y[i]] for i in range(60)]
    assert told(lambda: CRFTagger().fit(X, y)) == []


def test_what_is_learnt_stays_the_same_to_the_bit(monkeypatch):
    X, y = load_addresses(return_X_y=True)
    batch = WordVectorizer().fit_transform(X[:50])
    fits = [PerceptronTagger(random_state=0, max_iter=3).fit(batch, y[:50])]
    monkeypatch.setattr("skstruct.taggers.base.training_chunks", lambda *_: None)
    fits.append(PerceptronTagger(random_state=0, max_iter=3).fit(batch, y[:50]))
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_array_equal(fits[0].transition_, fits[1].transition_)


@pytest.mark.parametrize("tagger", TAGGERS, ids=str)
def test_nothing_is_labelled_where_mistakes_or_loss_tell_enough(tagger, monkeypatch):
    X, y = load_addresses(return_X_y=True)
    batch = WordVectorizer().fit_transform(X[:200])
    monkeypatch.setattr("skstruct.taggers.base.best_labels", None)
    assert told(lambda: tagger.fit(batch, y[:200])) == []


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_half_of_the_chunks_is_the_limit(weight):
    """Chunks are those of conlleval: the labels of the third sequence are two."""
    y = [["B-X", "B-X", "O", "O"], ["O"], ["I-X", "I-Y"], ["O", "B-Y"]]
    classes, codes = np.unique(np.concatenate(y), return_inverse=True)
    batch = SequenceBatch.from_lengths(np.zeros((9, 1)), [4, 1, 2, 2])
    given = batch_rows(batch), batch.offsets, codes.astype(np.int32), np.full(4, weight)
    chunks = training_chunks(TrainingSet(*given), classes)
    assert len(chunks.some.offsets) == 4
    n_chunks = len([chunk for labels in y for chunk in extract_chunks(labels)])
    assert n_chunks == 5
    assert chunks.mistakes == pytest.approx(n_chunks / 2 / 9)
    assert chunks.loss == pytest.approx(np.log(2) * n_chunks * weight / 2)


def test_transition_features_and_a_large_batch():
    """The sequences that are labelled again are a part of those with names."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 500)
    X = rng.normal(size=(lengths.sum(), 2))
    batch = SequenceBatch.from_lengths(X, lengths, transition_X=X)
    y = [["B-X" if i % 2 else "O"] + ["O"] * (n - 1) for i, n in enumerate(lengths.tolist())]
    (message,) = told(lambda: CRFTagger(l2=1e6, max_iter=5).fit(batch, y))
    assert "for 100 sequences of the training set hold 0 chunks" in message


@pytest.mark.parametrize("tagger", TAGGERS, ids=str)
def test_labels_that_are_all_different(tagger):
    X = [[{"w": f"{i}-{t}"} for t in range(4)] for i in range(5)]
    y = [[f"{i}-{t}" for t in range(4)] for i in range(5)]
    (message,) = told(lambda: tagger.fit(X, y))
    assert message.startswith("The 20 labels of y are all different")
    y[0][0] = y[0][1]
    assert told(lambda: tagger.fit(X, y)) == []
    assert told(lambda: tagger.fit(X[:2], [["a", "b", "c", "d"], ["e", "f", "g", "h"]])) == []


def test_who_tunes_a_threshold_is_not_told_and_no_filter_of_other_threads_changes():
    class Watched(CRFTagger):
        def fit(self, X, y):
            filters.append(list(warnings.filters))
            return super().fit(X, y)

    X, y = rare_names(60, 12)
    filters, order = [], np.random.default_rng(0).permutation(60)
    tagger = SpanTaggerCV(Watched(max_iter=40), cv=2)
    before = list(warnings.filters)
    tagger.fit([X[i] for i in order], [y[i] for i in order])
    assert filters == [before] * 3
    assert told(lambda: tagger.fit(X, y)) == []
    assert len(told(lambda: tagger.estimator.fit(X, y))) == 1


def test_a_warning_that_is_an_error_leaves_the_tagger_as_it_was():
    tagger = CRFTagger().fit([[{"a": 1}]], [["A"]])
    before = dict(vars(tagger))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with pytest.raises(UserWarning, match="hold 0 chunks"):
            tagger.fit(*rare_names(60, 12))
    assert vars(tagger) == before


# Predicting. --------------------------------------------------------------------------------------


def dicts(sequences, name="word"):
    return [[{"bias": 1.0, name: w, f"{name}[-2:]": w[-2:]} for w in words] for words in sequences]


def numbers(sequences):
    """Numbers that all tokens have, and a word that few of them have in common."""
    return [[{"n": len(w), "x": w, "y": w + w, "z": 3 * w} for w in words] for words in sequences]


def attributes(sequences):
    return [[[f"w={word}", f"end={word[-2:]}"] for word in words] for words in sequences]


def vectorised():
    """Function that makes X of words, vectoriser; the words of others for them."""
    X, _ = load_addresses(return_X_y=True)
    X = [list(words) for words in X]
    other = [["\u03b1\u03b2\u03b3", "\u03b4\u03b5\u03b6\u03b7"] for _ in range(20)]
    pairs = [[(word, word[-1:]) for word in words] for words in X]
    other_pairs = [[(word, "\u03b7") for word in words] for words in other]
    return {
        "dicts": (SequenceVectorizer(), dicts(X), dicts(X, "token")),
        "attributes": (SequenceVectorizer(), attributes(X), attributes(other)),
        "words": (WordVectorizer(), X, other),
        "columns": (WordVectorizer(), pairs, other_pairs),
        "gazetteers": (
            WordVectorizer(gazetteers={f"g{i}": ["Rome"] for i in range(60)}),
            X,
            other,
        ),
        "template": (TemplateVectorizer(), pairs, other_pairs),
        "one line": (TemplateVectorizer("U0:%x[0,0]\nU1:%x[-1,0]"), X, other),
    }


@pytest.mark.parametrize("kind", vectorised())
def test_nearly_no_feature_was_seen(kind):
    vectorizer, X, other = vectorised()[kind]
    vectorizer.fit(X[:300])
    (message,) = told(lambda: vectorizer.transform(other[:200]))
    assert message.startswith(NEARLY_NONE)
    assert told(lambda: vectorizer.transform(X[300:])) == []
    # A few tokens are no reason, nor is a part of the text.
    assert told(lambda: vectorizer.transform(other[:1])) == []
    assert told(lambda: vectorizer.transform([*other[:50], *X[300:400]])) == []


def test_taggers_warn_where_they_vectorise():
    X, y = load_addresses(return_X_y=True)
    tagger = PerceptronTagger(random_state=0, max_iter=2).fit(dicts(X), y)
    for method in (tagger.predict, lambda X: tagger.score(X, y)):
        (message,) = told(lambda method=method: method(dicts(X, "token")))
        assert message.startswith(NEARLY_NONE)
        assert told(lambda method=method: method(dicts(X))) == []


def test_a_number_that_all_tokens_have_may_tell_them_apart():
    X, _ = load_addresses(return_X_y=True)
    vectorizer = SequenceVectorizer().fit(numbers(X[:300]))
    assert told(lambda: vectorizer.transform(numbers([["\u03b1" * n] for n in range(1, 40)]))) == []


def test_a_pruned_tagger_knows_few_features():
    X, y = load_addresses(return_X_y=True)
    tagger = CRFTagger(l1=5.0, max_iter=30).fit(attributes(X), y).prune()
    assert tagger.n_features_in_ < 200
    assert told(lambda: tagger.predict(attributes(X))) == []


# Ordinary corpora. --------------------------------------------------------------------------------


@pytest.mark.skipif("SKSTRUCT_DATA" not in os.environ, reason="needs corpora")
@pytest.mark.parametrize("name", ["conll2002-esp", "jnlpba"])
@pytest.mark.parametrize("n", [10, 200])
def test_ordinary_names_are_no_reason(n, name):
    folder = Path(os.environ["SKSTRUCT_DATA"]) / name
    X, y = read_conll(folder / "train.txt.gz")
    test = next(path for path in sorted(folder.iterdir()) if path.name.startswith("test"))
    vectorizer = WordVectorizer()
    batch = vectorizer.fit_transform(X[:n])
    for tagger in TAGGERS:
        assert told(lambda tagger=tagger: tagger.fit(batch, y[:n])) == []
    assert told(lambda: vectorizer.transform(read_conll(test)[0][:200])) == []
