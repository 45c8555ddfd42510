"""A few sentences by the short way: what a batch gives, to the last bit, by current weights."""

import pickle
from copy import copy
from functools import lru_cache

import numpy as np
import pytest
from helpers.learners import TAGGERS, labelled_sequences
from helpers.marks import compiled
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skstruct import (
    CRFTagger,
    EmbeddingVectorizer,
    PerceptronTagger,
    SequenceUnion,
    SequenceVectorizer,
)
from skstruct.ahead.workload import label_like_crfsuite, label_one_sentence
from skstruct.compiled.cache import loaded_kernels
from skstruct.crfsuite import CRF
from skstruct.crfsuite.online import OnlineCRF
from skstruct.taggers import prediction
from skstruct.taggers.few import MOST_LOCKED, ask_few, decode_few
from skstruct.taggers.short import answer, label_few, search_few, weigh_few

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Nearly no feature", "ignore:Fewer than"
)

X, Y = labelled_sequences(40, seed=1)
# The same words with numbers, and as attribute strings.
X = [
    [
        {**token, "n": t / 2} if (t + i) % 3 else [f"word:{token['word']}", "even"]
        for t, token in enumerate(sentence)
    ]
    for i, sentence in enumerate(X)
]
SCHEME = {"A": "B-X", "B": "I-X", "C": "O"}
KINDS = {
    **TAGGERS,
    "OnlineCRF": lambda: OnlineCRF(max_iter=3, random_state=0),
    "constraint": lambda: CRFTagger(constraint="IOB2", max_iter=4, tol=0),
    "order=2": lambda: CRFTagger(order=2, max_iter=4, tol=0),
    "many labels": lambda: PerceptronTagger(max_iter=2, tol=None, random_state=0),
    "70 labels": lambda: PerceptronTagger(max_iter=2, tol=None, random_state=0),
}
# Where weights or labels need functions that the short way does not call.
LONG = {"order=2"}


def labels_for(kind):
    """Labels of `X` that a tagger can learn."""
    if kind == "constraint":
        named = [[SCHEME[label] for label in labels] for labels in Y]
        for labels in named:
            for t, label in enumerate(labels):
                if label == "I-X" and (t == 0 or labels[t - 1] == "O"):
                    labels[t] = "B-X"
        return named
    n = {"many labels": 110, "70 labels": 70}.get(kind)
    if n is None:
        return Y
    count = iter(range(10_000))
    return [[f"{next(count) % n}" for _ in labels] for labels in Y]


@lru_cache
def fitted(kind):
    return KINDS[kind]().fit(X, labels_for(kind))


class Name(str):
    """A subclass of str with a hash of its own."""

    __slots__ = ()

    def __hash__(self):
        return 7

    __eq__ = str.__eq__


words = st.sampled_from([f"w{i}" for i in range(10)])
numbers = st.sampled_from([0, 1, 1.0, True, False, 0.5, -2, 3])
strange = st.sampled_from([1e30, np.float64(0.25), np.True_, 2**70])
values = st.one_of(words, numbers, strange, st.booleans(), words.map(Name), words.map(str.encode))
keys = st.sampled_from(["word", "even", "n", "other", b"word"])
dicts = st.dictionaries(keys, st.one_of(values, st.lists(words, max_size=2)), max_size=4)
plain_dicts = st.dictionaries(
    st.sampled_from(["word", "even", "n"]), st.one_of(words, st.booleans(), numbers), max_size=3
)
names = st.sampled_from(["word:w1", "word:w2", "word:w3", "even", "n", "unseen"])
strings = st.lists(names, max_size=4)
unique = st.lists(names, max_size=4, unique=True)
tokens = st.one_of(dicts, strings, unique.map(tuple), unique.map(set))


def sentences(token):
    return st.lists(st.lists(token, max_size=5), min_size=1, max_size=12)


inputs = st.one_of(*map(sentences, (plain_dicts, unique, strings, dicts, tokens)))


def takes_the_short_way(tagger, X):
    """Whether a compiled function reads and labels some sentences."""
    return answer(tagger, X, bytearray(), [[] for _ in X])


def bits(answer):
    """What tells answers apart, to the last bit."""
    if isinstance(answer, np.ndarray) and answer.dtype == object:
        return [bits(part) for part in answer]
    if isinstance(answer, np.ndarray):
        return answer.shape, answer.dtype, answer.tobytes()
    if isinstance(answer, (list, tuple)):
        return type(answer).__name__, [bits(part) for part in answer]
    return type(answer).__name__, answer.hex() if isinstance(answer, float) else answer


QUESTIONS = {
    "predict": lambda tagger, X: tagger.predict(X),
    "predict_proba": lambda tagger, X: tagger.predict_proba(X),
    "predict_nbest": lambda tagger, X: tagger.predict_nbest(X, n_best=1),
}


@pytest.mark.parametrize("kind", [compiled(kind) if kind == "order=2" else kind for kind in KINDS])
@settings(max_examples=30, deadline=None)
@given(X=inputs)
def test_the_bits_of_a_batch(kind, X):
    tagger = fitted(kind)
    batch = tagger.vectorizer_.transform(X)
    assert batch.X is not None  # its arrays are there, so the short way is not taken
    assert takes_the_short_way(tagger, QUESTION) == (kind not in LONG)
    for ask in QUESTIONS.values():
        assert outcome(ask, tagger, X) == outcome(ask, tagger, batch)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - LONG))
@settings(max_examples=20, deadline=None)
@given(X=st.one_of(sentences(plain_dicts), sentences(unique)))
def test_plain_sentences_take_the_short_way(kind, X):
    # More of them might be so strange that there has to be a warning.
    for ask in (label_few, weigh_few, search_few):
        assert ask(fitted(kind), X[:8]) is not None


@settings(max_examples=30, deadline=None)
@given(X=inputs)
def test_the_drop_in(X):
    crf = drop_in()
    batch = crf.estimator_.vectorizer_.transform(X)
    expected = crf.estimator_.predict(batch)
    assert crf.predict(X).tolist() == expected.tolist()
    proba = crf.estimator_.predict_proba(batch)
    for sentence, labels, p in zip(X, expected, proba, strict=True):
        assert crf.predict_single(sentence) == labels
        columns = [crf.estimator_.classes_.tolist().index(label) for label in crf.classes_]
        rows = [dict(zip(crf.classes_, row, strict=True)) for row in p[:, columns].tolist()]
        assert crf.predict_marginals_single(sentence) == rows
        assert crf.predict_marginals([sentence])[0] == rows


@lru_cache
def drop_in():
    return CRF(max_iterations=5).fit(X, Y)


def test_tokens_without_attributes_have_labels():
    crf, tagger = drop_in(), fitted("CRF")
    for question in ([[[]]], [[{}]], [[()]], [[[]], []]):
        batch = tagger.vectorizer_.transform(question)
        assert len(tagger.predict(question)[0]) == 1
        assert bits(tagger.predict(question)) == bits(tagger.predict(batch))
        assert tagger.predict(question, known=[[None], []][: len(question)])[0] == [
            *tagger.predict(batch)[0]
        ]
        assert len(crf.predict(question)[0]) == len(crf.predict_single(question[0])) == 1


def without_short_way(ask, *args):
    """What is answered, or raised, without the short way."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("label_few", "weigh_few", "search_few"):
            patch.setattr(prediction, name, lambda *_: None)
        return outcome(ask, *args)


def outcome(ask, *args):
    try:
        return bits(ask(*args))
    except Exception as error:
        return type(error), str(error)


BAD = [
    [],
    [["Rue", "de"]],
    "Rue",
    None,
    [None],
    [[None]],
    [[{"n": float("nan")}]],
    [[{"n": float("inf")}]],
    [[{"n": 1e300}]],
    [[{"n": 10**400}]],
    [[{"n": 1j}]],
    [[{"even": 1 + 0j}]],
    [[{"n": None}]],
    [[{3: "a"}]],
    [[["even", 3]]],
    [[["even", None]]],
    [[["even", True]]],
    [[{"word": "w1"}, "w1"]],
    [[{"word": "w1"}], [{"word": "w1"}, {"n": np.ones((2, 2))}]],
    [[1.0, 2.0]],
    [[[1.0, 2.0]]],
    [[[["even"]]]],
    [{"word": "w1"}],
    np.ones((3, 2)),
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("number", range(len(BAD)))
def test_the_same_errors(number, question):
    ask, tagger = QUESTIONS[question], fitted("CRF")
    found = outcome(ask, tagger, BAD[number])
    assert found == without_short_way(ask, tagger, BAD[number])
    assert issubclass(found[0], Exception)


@pytest.mark.parametrize(
    "options",
    [{"n_best": 1.0}, {"n_best": 0}, {"search": "no"}, {"beam_width": 0}, {"normalize": "no"}],
)
def test_parameters_of_nbest_are_checked(options):
    with pytest.raises(ValueError, match="must be"):
        fitted("CRF").predict_nbest([[["even"]]], **{"n_best": 1, **options})


def test_not_fitted():
    for tagger in (CRFTagger(), PerceptronTagger(), CRF()):
        with pytest.raises(NotFittedError):
            tagger.predict([[["even"]]])
    with pytest.raises(NotFittedError):
        CRF().predict_single([["even"]])
    with pytest.raises(ValueError, match="fitted on numbers"):
        CRFTagger(max_iter=2).fit(np.eye(4), [0, 1, 0, 1]).predict([[["even"]]])


def test_impossible_labellings_are_errors():
    tagger = copy(fitted("constraint"))
    start = tagger.start_.copy()
    start[:] = -np.inf
    tagger.start_ = start
    for ask in QUESTIONS.values():
        with pytest.raises(ValueError, match="Sequence 0"):
            ask(tagger, [[["even"]]])


def test_scores_beyond_rounding():
    tagger = copy(fitted("CRF"))
    tagger.intercept_ = tagger.intercept_ + 1e17
    for ask in QUESTIONS.values():
        batch = tagger.vectorizer_.transform(X[:2])
        assert outcome(ask, tagger, X[:2]) == outcome(ask, tagger, batch)


QUESTION = [[{"word": "w1", "even": False}, {"word": "w2"}, {"word": "w7", "n": 0.5}]]


def check(tagger, question=QUESTION):
    """Compare with a batch, which has no memory."""
    batch = tagger.vectorizer_.transform(question)
    for ask in QUESTIONS.values():
        assert outcome(ask, tagger, question) == outcome(ask, tagger, batch)


def answers(tagger):
    return bits(tagger.predict_proba(QUESTION))


@pytest.mark.parametrize("kind", ["CRF", "SGD", "perceptron", "SAPO", "OnlineCRF"])
def test_a_new_fit_is_noticed(kind):
    tagger = KINDS[kind]().fit(X, Y)
    before = answers(tagger)
    tagger.fit(X[:20], [labels[::-1] for labels in Y[:20]])
    assert answers(tagger) != before
    check(tagger)
    tagger.fit(X, [["D" if label == "A" else label for label in labels] for labels in Y])
    check(tagger)
    assert set(tagger.classes_.tolist()) == {"B", "C", "D"}


@pytest.mark.parametrize("kind", ["SGD", "perceptron", "SAPO", "AROW", "OnlineCRF"])
def test_portions_are_noticed(kind):
    tagger = KINDS[kind]().fit(X, Y)
    for seed in range(4):
        before = answers(tagger)
        tagger.partial_fit(*labelled_sequences(10, seed=seed))
        assert answers(tagger) != before
        check(tagger)


WEIGHTS = ("coef_", "transition_", "intercept_", "start_", "end_")


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("kind", ["CRF", "perceptron"])
@pytest.mark.parametrize("change", ["in place", "C", "F", "float32"])
def test_other_weights_are_noticed(name, kind, change):
    tagger = KINDS[kind]().fit(X, Y)
    before, weights = answers(tagger), getattr(tagger, name)
    other = np.random.default_rng(0).normal(size=weights.shape)
    if change == "in place":
        weights[...] = other
    else:
        dtype = np.float32 if change == "float32" else np.float64
        setattr(tagger, name, np.array(other, dtype, order="F" if change == "F" else "C"))
    assert answers(tagger) != before
    check(tagger)
    getattr(tagger, name)[...] *= 0.5
    check(tagger)


def test_other_classes_vectorisers_and_parameters_are_noticed():
    tagger = KINDS["CRF"]().fit(X, Y)
    check(tagger)
    tagger.classes_ = np.array(["P", "Q", "R"], dtype=object)
    check(tagger)
    tagger.classes_[0] = "S"
    check(tagger)
    assert set(tagger.predict(QUESTION)[0]) <= {"Q", "R", "S"}
    vectorizer = copy(tagger.vectorizer_)
    names = vectorizer.feature_names_
    tagger.vectorizer_ = vectorizer.restrict(np.arange(len(names))[::-1], indices=True)
    check(tagger)
    tagger.n_jobs = 0
    check(tagger, [*QUESTION, *QUESTION])
    with pytest.raises(ValueError, match="n_jobs"):
        tagger.predict(QUESTION * 2)


def test_pruned_weights():
    tagger = CRFTagger(l1=1.0, max_iter=20).fit(X, Y)
    before = answers(tagger)
    assert tagger.prune().n_features_in_ < len(fitted("CRF").vectorizer_.vocabulary_)
    assert answers(tagger) == before
    check(tagger)


def test_weights_of_a_wrong_shape_are_refused():
    tagger = copy(fitted("CRF"))
    answers(tagger)
    tagger.coef_ = tagger.coef_[:, :-1]
    with pytest.raises(ValueError, match="shape"):
        tagger.predict(QUESTION)


def test_a_vectoriser_with_more_features_reads_nothing_beyond_the_weights():
    tagger = KINDS["CRF"]().fit(X, Y)
    answers(tagger)
    tagger.vectorizer_.fit([*X, [[f"more {i}"] for i in range(1000)]])
    assert not takes_the_short_way(tagger, QUESTION)


def test_weights_are_not_held_by_what_is_stored():
    tagger = KINDS["CRF"]().fit(X, Y)
    size = len(pickle.dumps(tagger))
    before = answers(tagger)
    assert len(pickle.dumps(tagger)) == size
    restored = pickle.loads(pickle.dumps(tagger))
    assert answers(restored) == before
    assert takes_the_short_way(restored, QUESTION)
    draft = copy(tagger)
    draft.fit(X, Y)
    assert not any(name.startswith("_short") for name in vars(draft))


def test_the_drop_in_notices_other_weights():
    crf = CRF(max_iterations=3).fit(X, Y)
    sentence = QUESTION[0]
    for weight in (3.0, -3.0):
        bias = np.zeros(3)
        bias[1] = weight
        crf.estimator_.intercept_ = bias
        assert crf.predict_single(sentence) == crf.predict(QUESTION)[0]
        marginals = crf.predict_marginals_single(sentence)
        assert marginals == crf.predict_marginals(QUESTION)[0]
        assert (marginals[0][crf.estimator_.classes_[1]] > 0.5) == (weight > 0)


def test_many_sequences_that_are_strange_are_still_warned_of():
    tagger = fitted("CRF")
    with pytest.warns(UserWarning, match="Nearly no feature"):
        tagger.predict([[{"other": "a"}] * 3] * 20)


def test_pipelines():
    plain = [[dict(token) for token in x if isinstance(token, dict)] for x in X]
    y = [labels[: len(x)] for x, labels in zip(plain, Y, strict=True)]
    model = Pipeline([("same", FunctionTransformer()), ("tagger", CRFTagger(max_iter=3))])
    model.fit(plain, y)
    tagger = model.named_steps["tagger"]
    assert_array_equal(model.predict(plain[:1])[0], tagger.predict(plain)[0])
    assert takes_the_short_way(tagger, QUESTION)


VECTORS = {f"w{i}": np.random.default_rng(i).normal(size=5).astype(np.float32) for i in range(7)}


def words_of(X):
    """The tokens that are dicts, of which vectors can be looked up."""
    return [[token for token in x if isinstance(token, dict)] for x in X]


@lru_cache
def beside_vectors(kind):
    """A tagger of features beside vectors of three words, and what makes its batches."""
    vectors = EmbeddingVectorizer(VECTORS, column="word", offsets=(-1, 0, 1))
    union = SequenceUnion([("dicts", SequenceVectorizer()), ("vectors", vectors)])
    y = [
        [label for token, label in zip(*pair, strict=True) if isinstance(token, dict)]
        for pair in zip(X, labels_for(kind), strict=True)
    ]
    # Other tokens are left out of y, too, which the scheme forbids.
    if kind == "constraint":
        y = [["B-X" if label == "I-X" else label for label in labels] for labels in y]
    return KINDS[kind]().fit(union.fit_transform(words_of(X)), y), union


def in_full(union, X):
    """A batch that is too large to be one of a few, and its first sequences."""
    return union.transform([*X, *[X[0]] * 64])[: len(X)]


FEW_WORDS = [
    [{"word": "w1"}, {"word": "w99", "n": 0.5, "new": 1}],
    [],
    [{"word": "w2", "even": "?"}],
]


@pytest.mark.parametrize(
    "kind", ["CRF", "perceptron", "constraint", "70 labels", compiled("order=2")]
)
def test_vectors_beside_a_few_tokens(kind):
    tagger, union = beside_vectors(kind)
    for X_few in (FEW_WORDS, words_of(X)[:5] * 10, [[]]):
        few, full = union.transform(X_few), in_full(union, X_few)
        for ask in (label_few, weigh_few, search_few):
            assert (ask(tagger, few) is None) == (kind in LONG)
        for ask in QUESTIONS.values():
            assert outcome(ask, tagger, few) == outcome(ask, tagger, full)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("in_place", [True, False])
def test_other_weights_are_noticed_beside_vectors(name, in_place):
    tagger, union = beside_vectors("CRF")
    tagger = copy(tagger)
    few, full = union.transform(FEW_WORDS), in_full(union, FEW_WORDS)
    before = bits(tagger.predict_proba(few))
    setattr(tagger, name, getattr(tagger, name).copy())
    assert bits(tagger.predict_proba(few)) == before
    other = np.random.default_rng(0).normal(size=getattr(tagger, name).shape)
    if in_place:
        getattr(tagger, name)[...] = other
    else:
        setattr(tagger, name, other)
    assert bits(tagger.predict_proba(few)) != before
    for ask in QUESTIONS.values():
        assert outcome(ask, tagger, few) == outcome(ask, tagger, full)


@pytest.mark.parametrize("array", ["table", "numbers", "offsets", "none possible", "names"])
def test_errors_beside_vectors(array):
    tagger, union = beside_vectors("CRF")
    tagger, batch = copy(tagger), union.transform(FEW_WORDS)
    ((_, block),) = batch.blocks
    if array == "table":
        block.table = block.table.copy()
        block.table[0, 2], message = np.nan, "Sequence 0, token 0: feature .* is nan"
    elif array == "numbers":
        block.numbers[0, 1], message = 99, "row 0 .* has the number 99"
    elif array == "offsets":
        batch.offsets, message = np.array([0, 9]), "end at the number of rows, 3"
    elif array == "names":
        names = np.array([f"f{i}" for i in range(batch.n_features)], object)
        tagger.feature_names_in_, batch.feature_names = names, names[::-1]
        message = "feature names of X differ"
    else:
        tagger.start_, message = np.full_like(tagger.start_, -np.inf), "Sequence 0"
    for ask in QUESTIONS.values():
        with pytest.raises(ValueError, match=message):
            ask(tagger, batch)


def test_all_inputs_share_one_compiled_function():
    for step in (label_one_sentence, label_like_crfsuite):
        step("CRFTagger", {})
    tagger, crf = fitted("CRF"), drop_in()
    n_loaded = len(loaded_kernels)
    kinds = ["even"], ("even",), {"n": 1}, {"n": 0.5, "even": True}, {"word": "new"}, {}
    for token in kinds:
        for sentences in ([[token]], [[token] * 3, []], [[token] * (MOST_LOCKED // 9 + 1)]):
            for ask in QUESTIONS.values():
                ask(tagger, sentences)
            crf.predict(sentences), crf.predict_marginals(sentences)
            crf.predict_single(sentences[0]), crf.predict_marginals_single(sentences[0])
            crf.tagger_.set(sentences[0])
            assert crf.tagger_.tag() == crf.tagger_.tag(sentences[0])
            crf.tagger_.marginal("A", 0)
    compiled = [kernel for kernel in loaded_kernels[n_loaded:] if "few" in kernel.kernel]
    assert compiled == []
    assert len(ask_few.signatures) == len(decode_few.signatures) == 1


@pytest.mark.parametrize("n_tokens", [0, 1, 4, MOST_LOCKED // 9 + 1])
def test_marginals_after_tag_and_set(n_tokens):
    tagger, sentence = drop_in().tagger_, [["even"], {"word": "w1", "n": 0.5}] * n_tokens
    sentence = sentence[:n_tokens]
    batch = drop_in().estimator_.vectorizer_.transform([sentence])
    assert batch.X is not None
    proba = drop_in().estimator_.predict_proba(batch)[0]
    expected = drop_in().estimator_.predict(batch)[0]
    places = [*range(min(n_tokens, 4)), *range(n_tokens)[-2:]]

    def check_marginals():
        for place in places:
            for label in tagger.labels():
                code = drop_in().estimator_.classes_.tolist().index(label)
                assert tagger.marginal(label, place) == proba[place, code]
        for place in (-1, n_tokens):
            with pytest.raises(ValueError, match="out of range"):
                tagger.marginal("A", place)

    assert tagger.tag(sentence) == expected
    # What the caller changes later is not seen.
    kept, sentence[:] = sentence.copy(), [["odd"]]
    check_marginals()
    assert tagger.tag() == expected
    tagger.set(kept)
    kept.clear()
    check_marginals()
    assert tagger.tag() == expected


def test_columns_beyond_the_weights_are_not_read():
    tagger = KINDS["CRF"]().fit(X, Y)
    expected = answers(tagger)
    vocabulary = tagger.vectorizer_.vocabulary_
    for column in (10**6, -5, 2**70, "no", 1.5):
        vocabulary["even"] = column
        assert not answer(tagger, [[["even"]]], bytearray(), [[]])
    vocabulary["even"] = vocabulary["word:w1"]
    assert answer(tagger, [[["even"]]], bytearray(), [[]])
    assert answers(tagger) == expected


def test_values_that_are_new_each_time_are_forgotten():
    tagger = KINDS["CRF"]().fit(X, Y)
    codes = tagger.vectorizer_.known_codes()
    codes._most = 50
    for i in range(200):
        token = {"word": f"new {i}", f"key {i}": "a"}
        assert answer(tagger, [[token]], bytearray(), [[]])
        assert sum(map(len, codes.values())) < 500
    check(tagger)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(("place", "value"), [(0, -3), (0, 1), (1, 10**7), (1, -(10**7)), (-1, 1)])
def test_offsets_that_were_written_to_are_refused(n, place, value):
    sentences = [[{"w": "a"}, {"w": "b"}, {"w": "c"}], [{"w": "b"}, {"w": "a"}]] * 3
    labels = [["x", "y", "z"], ["y", "x"]] * 3
    vectors = {word: np.eye(3)[i] for i, word in enumerate("abc")}
    words = SequenceVectorizer()
    union = SequenceUnion([("words", words), ("v", EmbeddingVectorizer(vectors, column="w"))])
    for vectorizer in (words, union):
        vectorizer.fit(sentences)
        tagger = CRFTagger(max_iter=3).fit(vectorizer.transform(sentences), labels)
        for method in (tagger.predict, tagger.predict_proba, tagger.predict_nbest):
            batch = vectorizer.transform(sentences[:n])
            batch.offsets.flags.writeable = True
            batch.offsets[place] = value
            with pytest.raises(ValueError, match=r"offsets must|offsets decrease|does not fit"):
                method(batch)
