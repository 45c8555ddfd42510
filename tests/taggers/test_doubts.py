"""Warnings of what was learnt, or is asked, and can hardly be meant; none where it can."""

import os
import warnings
from pathlib import Path

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceVectorizer,
    TemplateVectorizer,
    WordVectorizer,
)
from skstruct.datasets import load_addresses, read_conll
from skstruct.inspection import check_fit

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
    tagger = clone(tagger).fit(X, y)
    assert {label for labels in tagger.predict(X) for label in labels} == {"O"}
    (doubt,) = check_fit(tagger, X, iter(y))
    assert doubt.startswith("Predictions have 0 of the 12 chunks of y")
    assert ("label_cost" in doubt) == hasattr(tagger, "label_cost")


def test_the_share_of_chunks_decides():
    # A feature of their own tells some of the names.
    X, y = rare_names(200, 100)
    for n_told, is_doubtful in ((9, True), (11, False)):
        for i in range(n_told):
            X[i][0] = {"a": 1.0, "name": 5.0}
        doubts = check_fit(CRFTagger(l2=0.01).fit(X, y), X, y)
        assert len(doubts) == is_doubtful
        if is_doubtful:
            assert f"have {n_told} of the 100 chunks" in doubts[0]


def test_few_names_and_labels_of_other_kinds_are_no_reason():
    X, y = rare_names(60, 9)
    assert check_fit(CRFTagger().fit(X, y), X, y) == []
    X, y = rare_names(60, 30)
    y = [[{"B-X": "NN", "O": "VB"}[label] for label in labels] for labels in y]
    assert check_fit(CRFTagger().fit(X, y), X, y) == []


def test_unknown_labels_do_not_count():
    X, y = rare_names(60, 20)
    y = [[None if label == "B-X" and i < 12 else label for label in y[i]] for i in range(60)]
    assert check_fit(CRFTagger().fit(X, y), X, y) == []


@pytest.mark.parametrize("tagger", TAGGERS, ids=str)
def test_labels_that_are_all_different(tagger):
    X = [[{"w": f"{i}-{t}"} for t in range(4)] for i in range(5)]
    y = [[f"{i}-{t}" for t in range(4)] for i in range(5)]
    (doubt,) = check_fit(clone(tagger).fit(X, y), X, y)
    assert doubt.startswith("The 20 labels of y are all different")
    y[0][0] = y[0][1]
    assert check_fit(clone(tagger).fit(X, y), X, y) == []
    X, y = X[:2], [["a", "b", "c", "d"], ["e", "f", "g", "h"]]
    assert check_fit(clone(tagger).fit(X, y), X, y) == []


def test_pipelines_and_data_that_do_not_fit_together():
    X, y = load_addresses(return_X_y=True)
    X, y = list(X[:100]), list(y[:100])
    model = make_pipeline(WordVectorizer(), PerceptronTagger(random_state=0)).fit(X, y)
    assert check_fit(model, X, y) == []
    with pytest.raises(ValueError, match="X has 100 sequences, but y has 99"):
        check_fit(model, X, y[1:])
    with pytest.raises(ValueError, match="Sequence 3: X and y"):
        check_fit(model, X, [*y[:3], [*y[3], "O"], *y[4:]])
    with pytest.raises(TypeError, match="Expected a fitted tagger"):
        check_fit(MaxAbsScaler(), X, y)


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
