"""`learn_scheme`: what is learnt is another labelling, and answers are those of y."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
import skops.io
from helpers.marks import compiled
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SpanTaggerCV,
    WordVectorizer,
)
from skstruct.crfsuite import write_model
from skstruct.datasets import convert_labels
from skstruct.export import write_python
from skstruct.input.learnt import learnt_labels
from skstruct.inspection import explain_token, feature_weights, transition_weights
from skstruct.metrics import extract_chunks, token_accuracy_score
from skstruct.model_selection import choose_sequences, find_label_errors

ONLINE = {"max_iter": 3, "tol": None, "random_state": 0}
TAGGERS = [
    CRFTagger(tol=1e-6),
    CRFTagger(solver="sag", tol=1e-4, random_state=0),
    CRFTagger(solver="sgd", **ONLINE),
    CRFTagger(order=2),
    SDCACRF(random_state=0),
    PerceptronTagger(**ONLINE),
    MIRATagger(n_best=2, **ONLINE),
    SAPOTagger(**ONLINE),
    AROWTagger(**ONLINE),
]
NAMES = [type(one).__name__ + str(one.get_params().get("solver", "")) for one in TAGGERS]


def sentences(scheme="IOB2", n_sequences=40, seed=0):
    """Tokens whose features tell a little of their labels; all places of chunks occur."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for number in range(n_sequences):
        labels = []
        while len(labels) < rng.integers(2, 7) or number == 0:
            kind, length = "XY"[rng.integers(2)], rng.integers(1, 4)
            labels += [["O"], [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]][rng.integers(2)]
            if number == 0 and len(labels) > 40:
                break
        told = [label if rng.random() < 0.6 else f"w{rng.integers(5)}" for label in labels]
        X.append([{"w": one, "bias": True} for one in told])
        y.append(labels)
    return X, convert_labels(y, source="IOB2", target=scheme).labels


def in_scheme(y, scheme, source="IOB2"):
    return convert_labels([list(x) for x in y], source=source, target=scheme).labels


# Places of a chunk: first, inner, last, only.
LETTERS = {"IOB2": "BIIB", "IOE2": "IIEE", "BILOU": "BILU", "IOBES": "BIES", "BMES": "BMES"}


def stands_for(learnt, label, scheme, learn_scheme):
    """Whether a learnt label is one of those that a label of y is split into."""
    if "O" in (learnt, label):
        return learnt == label
    place = LETTERS[learn_scheme].index(learnt[0])
    return LETTERS[scheme][place] == label[0] and learnt[1:] == label[1:]


@pytest.mark.parametrize(
    "tagger",
    [compiled(one) if one.get_params().get("order") == 2 else one for one in TAGGERS],
    ids=NAMES,
)
@pytest.mark.parametrize(
    ("scheme", "learnt"), [("IOB2", "IOBES"), ("IOE2", "BILOU"), ("BILOU", "BMES")]
)
def test_all_answers_are_those_of_converted_labels(tagger, scheme, learnt):
    X, y = sentences(scheme)
    given = {} if scheme == "IOB2" else {"constraint": scheme}
    ours = clone(tagger).set_params(learn_scheme=learnt, **given).fit(X, y)
    by_hand = clone(tagger).set_params(constraint=learnt).fit(X, in_scheme(y, learnt, scheme))
    assert ours.classes_.tolist() == sorted({label for labels in y for label in labels})
    assert ours.learned_classes_.tolist() == by_hand.classes_.tolist()
    assert_array_equal(ours.coef_, by_hand.coef_)
    assert_array_equal(ours.transition_, by_hand.transition_)
    X_new, _ = sentences(n_sequences=6, seed=1)
    # Few sequences go another way than many.
    for pool in (X_new, X_new * 20):
        expected = in_scheme(by_hand.predict(pool), scheme, learnt)
        assert ours.predict(pool).tolist() == expected
        for p, q in zip(ours.predict_proba(pool), by_hand.predict_proba(pool), strict=True):
            assert_allclose(p.sum(axis=1), 1.0)
            for column, label in enumerate(ours.classes_):
                which = (stands_for(a, label, scheme, learnt) for a in by_hand.classes_)
                parts = np.flatnonzero(list(which))
                assert_allclose(p[:, column], q[:, parts].sum(axis=1), atol=1e-12)
        for some, others in zip(
            ours.predict_nbest(pool, 4), by_hand.predict_nbest(pool, 4), strict=True
        ):
            assert [one[1:] for one in some] == [one[1:] for one in others]
            labels = in_scheme([one.labels for one in others], scheme, learnt)
            assert [one.labels for one in some] == labels
            assert len({tuple(one) for one in labels}) == len(labels)
        assert ours.predict_spans(pool).tolist() == by_hand.predict_spans(pool).tolist()
    assert ours.score(X, y) == token_accuracy_score(y, ours.predict(X))


@pytest.mark.parametrize("scheme", ["IOB2", "IOE2", "IOBES", "BILOU", "BMES"])
@pytest.mark.parametrize("learnt", ["IOBES", "BILOU", "BMES"])
@pytest.mark.parametrize("without", [None, 1, 3])
def test_valid_labellings_are_one_to_one(scheme, learnt, without):
    """Of all labellings, also where a letter does not occur in y."""
    letters = sorted(set(LETTERS[scheme]))
    classes = sorted({"O", *(f"{a}-X" for a in letters), f"{LETTERS[scheme][3]}-Y"})
    if without is not None:
        classes = sorted(set(classes) - {f"{LETTERS[scheme][without]}-X"})
    labels = learnt_labels(tuple(classes), scheme, learnt)
    for length in (1, 2, 3, 4):
        paths = {
            tuple(path): tuple(labels.outer[list(path)].tolist())
            for path in product(range(len(labels.classes)), repeat=length)
            if is_valid([labels.classes[k] for k in path], learnt)
        }
        valid = [
            codes
            for codes in product(range(len(classes)), repeat=length)
            if is_valid([classes[k] for k in codes], scheme)
        ]
        assert sorted(paths.values()) == sorted(valid)
        assert valid
        offsets = np.arange(len(valid) + 1) * length
        found = labels.read(np.array(valid, np.int32).ravel(), offsets)
        back = dict(zip(map(tuple, found.reshape(-1, length).tolist()), valid, strict=True))
        assert back == paths


def is_valid(labels, scheme):
    """Whether the chunks of a labelling, written anew, give the same labels."""
    chunks = extract_chunks(labels, scheme=scheme)
    length = sum(end - start for start, end, _ in chunks)
    return length == sum(label != "O" for label in labels)


def test_chunks_of_known_labels():
    X, y = sentences()
    ours = CRFTagger(learn_scheme="IOBES").fit(X, y)
    known = [[label if t % 2 else None for t, label in enumerate(labels)] for labels in y]
    for labels, found in zip(known, ours.predict(X, known=known), strict=True):
        assert all(a in (None, b) for a, b in zip(labels, found, strict=True))
    code = {label: k for k, label in enumerate(ours.classes_)}
    for labels, p in zip(known, ours.predict_proba(X, known=known), strict=True):
        for t, label in enumerate(labels):
            assert label is None or np.isclose(p[t, code[label]], 1.0)
    some = ours.predict_nbest(X[:3], 3, known=known[:3])
    for of_one, labels in zip(some, y[:3], strict=True):
        assert all(one.labels[1] == labels[1] for one in of_one)
    with pytest.raises(ValueError, match=r"Sequence 0, token 1.*may not follow"):
        ours.predict([X[0][:2]], known=[["O", "I-X"]])


def test_weights_and_costs_are_those_of_the_labels_of_y():
    X, y = sentences()
    converted = in_scheme(y, "IOBES")
    weights = {"B-X": 3.0, "O": 0.5}
    ours = CRFTagger(learn_scheme="IOBES", class_weight=weights).fit(X, y)
    mean = [np.mean([weights.get(label, 1.0) for label in labels]) for labels in y]
    by_hand = CRFTagger(constraint="IOBES").fit(X, converted, sample_weight=mean)
    assert_array_equal(ours.coef_, by_hand.coef_)
    cost = {("B-X", "O"): 2.0, ("I-Y", "B-Y"): 1.0}
    ours = CRFTagger(learn_scheme="IOBES", label_cost=cost).fit(X, y)
    inner = {("B-X", "O"): 2.0, ("S-X", "O"): 2.0}
    inner |= {(a, b): 1.0 for a in ("I-Y", "E-Y") for b in ("B-Y", "S-Y")}
    by_hand = CRFTagger(constraint="IOBES", label_cost=inner).fit(X, converted)
    assert_array_equal(ours.coef_, by_hand.coef_)
    missed = [
        CRFTagger(**more, label_cost={"missed": 2}).fit(X, labels).coef_
        for more, labels in (({"learn_scheme": "IOBES"}, y), ({"constraint": "IOBES"}, converted))
    ]
    assert_array_equal(*missed)


def test_a_constraint_on_the_labels_of_y_holds():
    X, y = sentences()
    classes = CRFTagger().fit(X, y).classes_.tolist()
    allowed = np.ones((5, 5), bool)
    allowed[classes.index("B-Y"), classes.index("B-X")] = False
    with pytest.raises(ValueError, match="'B-X' may not follow 'B-Y'"):
        CRFTagger(learn_scheme="IOBES", constraint=allowed).fit(X, y)
    fine = [i for i, labels in enumerate(y) if ("B-Y", "B-X") not in set(pairwise(labels))]
    X, y = [X[i] for i in fine], [y[i] for i in fine]
    ours = CRFTagger(learn_scheme="IOBES", constraint=allowed).fit(X, y)
    for some in ours.predict_nbest(X, 20):
        assert all(("B-Y", "B-X") not in set(pairwise(o.labels)) for o in some)


@pytest.mark.parametrize("tagger", [TAGGERS[2], *TAGGERS[5:]], ids=[NAMES[2], *NAMES[5:]])
def test_learning_goes_on(tagger):
    X, y = sentences()
    classes = sorted({label for labels in y for label in labels})
    inner = sorted({label for labels in in_scheme(y, "IOBES") for label in labels})
    ours = clone(tagger).set_params(learn_scheme="IOBES")
    by_hand = clone(tagger).set_params(constraint="IOBES")
    for part in (slice(0, 20), slice(20, 40)):
        ours.partial_fit(X[part], y[part], classes=classes)
        by_hand.partial_fit(X[part], in_scheme(y[part], "IOBES"), classes=inner)
    assert_array_equal(ours.coef_, by_hand.coef_)
    assert ours.classes_.tolist() == classes
    again = [one.set_params(warm_start=True) for one in (ours, by_hand)]
    coefs = [
        one.fit(X, of).coef_ for one, of in zip(again, (y, in_scheme(y, "IOBES")), strict=True)
    ]
    assert_array_equal(*coefs)
    with pytest.raises(ValueError, match="cannot go on from weights for 'IOBES'"):
        ours.set_params(learn_scheme=None).fit(X, y)
    with pytest.raises(ValueError, match="cannot go on"):
        ours.set_params(learn_scheme="BMES").partial_fit(X, y)
    assert ours.predict(X).tolist() == in_scheme(by_hand.predict(X), "IOB2", "IOBES")


@pytest.mark.parametrize("tagger", [TAGGERS[0], TAGGERS[5]], ids=[NAMES[0], NAMES[5]])
def test_validation_scores_are_those_of_the_labels_of_y(tagger):
    (X, y), (X_val, y_val) = sentences(), sentences(seed=2)
    ours = clone(tagger).set_params(learn_scheme="IOBES", max_iter=4, tol=1e-9, random_state=0)
    if hasattr(ours, "average"):
        ours.set_params(average=False)
    y_val[0][0] = "B-NEW"
    with pytest.warns(ConvergenceWarning):
        ours.fit(X, y, X_val=X_val, y_val=y_val)
    assert ours.history_["validation_score"][-1] == pytest.approx(ours.score(X_val, y_val))
    ours.set_params(early_stopping=True, validation_fraction=0.4, max_iter=50).fit(X, y)
    by_hand = clone(ours).set_params(learn_scheme=None, constraint="IOBES")
    by_hand.fit(X, in_scheme(y, "IOBES"))
    # An end that is wrong is one wrong token in IOB2, and often two in IOBES.
    n = min(len(one.history_["validation_score"]) for one in (ours, by_hand))
    pairs = (one.history_["validation_score"][:n] for one in (ours, by_hand))
    more, fewer = pairs
    assert (more >= fewer).all()
    assert (more > fewer).any()


@pytest.mark.parametrize("tagger", [CRFTagger(), TAGGERS[5]], ids=["crf", "perceptron"])
def test_models_are_stored(tagger):
    X, y = sentences()
    tagger = clone(tagger).set_params(learn_scheme="BILOU").fit(X, y)
    data = skops.io.dumps(tagger)
    types = skops.io.get_untrusted_types(data=data)
    for copied in (pickle.loads(pickle.dumps(tagger)), skops.io.loads(data, trusted=types)):
        assert copied.predict(X).tolist() == tagger.predict(X).tolist()
        assert_array_equal(copied.learned_classes_, tagger.learned_classes_)
        assert copied.prune().predict(X).tolist() == tagger.predict(X).tolist()
    anew = tagger.set_params(learn_scheme=None).fit(X, y)
    assert_array_equal(anew.learned_classes_, anew.classes_)


def test_weights_are_shown_by_what_is_learnt():
    X, y = sentences()
    tagger = CRFTagger(learn_scheme="IOBES").fit(X, y)
    assert set(feature_weights(tagger)["label"]) == set(tagger.learned_classes_)
    shown = transition_weights(tagger)
    codes = {label: k for k, label in enumerate(tagger.learned_classes_)}
    assert shown.loc["B-X", "E-X"] == tagger.transition_[codes["B-X"], codes["E-X"]]
    assert shown.loc["B-X", "O"] == -np.inf
    with pytest.raises(ValueError, match="not one of the labels"):
        transition_weights(CRFTagger().fit(X, y), labels=["S-X"])


def test_what_is_around_a_tagger_takes_it():
    X, y = sentences()
    X = [[token["w"] for token in tokens] for tokens in X]
    model = make_pipeline(WordVectorizer(), CRFTagger(learn_scheme="IOBES")).fit(X, y)
    by_hand = make_pipeline(WordVectorizer(), CRFTagger(constraint="IOBES"))
    by_hand.fit(X, in_scheme(y, "IOBES"))
    spans = [SpanTaggerCV(one, cv=2) for one in (model, by_hand)]
    spans[0].fit(X, y)
    spans[1].fit(X, in_scheme(y, "IOBES"))
    assert spans[0].best_score_ == spans[1].best_score_
    assert spans[0].predict(X).tolist() == in_scheme(spans[1].predict(X), "IOB2", "IOBES")
    for strategy in ("spans", "margin"):
        # What is like what depends on marginals.
        how = {"strategy": strategy, "diverse": False}
        found = [choose_sequences(one, X, 5, **how)[1] for one in (model, by_hand)]
        assert_allclose(*found)
    errors = find_label_errors(model, X, y, cv=2)
    assert all(set(e.suggested) <= set(model.classes_) for e in errors)
    search = GridSearchCV(model, {"crftagger__learn_scheme": [None, "IOBES"]}, cv=2).fit(X, y)
    assert len(set(search.cv_results_["mean_test_score"])) == 2


def test_rows_are_sequences_of_one_token():
    X, y = np.eye(3)[[0, 1, 2] * 10], np.array(["B-X", "O", "B-Y"] * 10)
    tagger = CRFTagger(learn_scheme="IOBES").fit(X, y)
    assert tagger.learned_classes_.tolist() == ["O", "S-X", "S-Y"]
    assert_array_equal(tagger.predict(X), y)
    assert_allclose(tagger.predict_proba(X).argmax(axis=1), [0, 2, 1] * 10)


REFUSED = {
    "IOB1": ([["I-X", "B-X"]], {}, "Sequence 0, token 0.*'I-X' may not come first"),
    "named IOB1": ([["I-X", "B-X"]], {"constraint": "IOB1"}, "labels of IOB2.*'IOB1'"),
    "types": ([["X", "O"]], {}, "labels of IOB2.*'runs'"),
    "numbers": ([[1, 0]], {}, "labels of IOB2"),
    "invalid": ([["B-X", "I-X"], ["O", "I-X"]], {}, "Sequence 1, token 1.*may not follow 'O'"),
    "unknown": ([["B-X", None]], {}, "Sequence 0, token 1 has no label"),
    "solver": ([["B-X", "I-X"]], {"solver": "oeg"}, "learn_scheme='IOBES' needs solver="),
    "scheme": ([["B-X", "I-X"]], {"learn_scheme": "IOB1"}, "learn_scheme"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_labels_without_a_map_are_refused(name):
    y, params, message = REFUSED[name]
    X = [[{"w": str(t)} for t in range(len(labels))] for labels in y]
    tagger = CRFTagger(**{"learn_scheme": "IOBES", **params})
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, y)
    assert not hasattr(tagger, "classes_")
    assert tagger._scheme_learnt is None


def test_files_and_explanations_are_refused(tmp_path):
    X, y = sentences()
    tagger = CRFTagger(learn_scheme="IOBES", fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match="another scheme"):
        write_model(tagger, tmp_path / "model.crfsuite")
    with pytest.raises(ValueError, match="another scheme"):
        write_python(tagger, tmp_path / "model.py")
    with pytest.raises(ValueError, match="another scheme"):
        explain_token(tagger, X)


@pytest.mark.parametrize("changed", [{"_scheme_of_y": None}, {"_scheme_of_y": "IOB1"}])
def test_tampered_models_are_refused(changed):
    X, y = sentences()
    tagger = CRFTagger(learn_scheme="IOBES").fit(X, y)
    vars(tagger).update(changed)
    data = skops.io.dumps(tagger)
    with pytest.raises(ValueError, match="scheme"):
        skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
