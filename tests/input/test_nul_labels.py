"""Labels that end in NUL, which numpy's arrays of strings do not keep, and lists do."""

import numpy as np
import pytest
import skops.io
from sklearn.pipeline import Pipeline

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    NBestReranker,
    PerceptronTagger,
    SAPOTagger,
    TemplateVectorizer,
    crfpp,
    crfsuite,
)
from skstruct.metrics import token_accuracy_score
from skstruct.streams import fit_stream

X = [[{"w": "x"}, {"w": "z"}], [{"w": "z"}]] * 4
Y = [["a\0", "a"], ["a"]] * 4
CLASSES = ["a", "a\0"]
LEARNERS = {
    "perceptron": PerceptronTagger(random_state=0),
    "mira": MIRATagger(random_state=0),
    "sapo": SAPOTagger(random_state=0),
    "arow": AROWTagger(random_state=0),
    "sgd": CRFTagger(solver="sgd", random_state=0),
}
TAGGERS = LEARNERS | {"lbfgs": CRFTagger(), "sdca": SDCACRF(random_state=0)}


def check(tagger):
    assert tagger.classes_.tolist() == CLASSES
    assert tagger.predict(X).tolist() == Y
    assert tagger.score(X, Y) == 1.0
    assert tagger.predict_nbest(X, 1)[0][0].labels == Y[0]


@pytest.mark.parametrize("name", TAGGERS)
def test_fit(name):
    tagger = TAGGERS[name]
    check(tagger.fit(X, Y))
    check(tagger.fit(X, Y, X_val=X, y_val=Y))
    assert tagger.history_["validation_score"][-1] == 1.0
    assert tagger.predict(X[:1], known=[["a", "a"]]).tolist() == [["a", "a"]]
    tagger.set_params(constraint=[[True, False], [True, True]]).fit(X, Y)
    check(tagger)
    tagger.set_params(constraint=None, class_weight={"a\0": 2.0, "a": 1.0}).fit(X, Y)
    check(tagger.set_params(class_weight=None))


@pytest.mark.parametrize("kind", [list, tuple, set, lambda c: np.array(c, dtype=object)])
@pytest.mark.parametrize("name", LEARNERS)
def test_partial_fit(name, kind):
    tagger = LEARNERS[name].__class__(**LEARNERS[name].get_params())
    for _ in range(3):
        tagger.partial_fit(X, Y, classes=kind(CLASSES))
    check(tagger)
    with pytest.raises(ValueError, match="not the same as in the first call"):
        tagger.partial_fit(X, Y, classes=kind(["a", "a\0\0"]))


def test_what_numpy_merges_is_merged():
    with pytest.raises(ValueError, match=r"label 'a\\x00' is not among the classes"):
        PerceptronTagger(random_state=0).partial_fit(X, Y, classes=np.array(CLASSES))


def test_rows():
    tagger = CRFTagger().fit(np.eye(2), CLASSES)
    assert tagger.classes_.tolist() == CLASSES
    assert tagger.predict(np.eye(2)).tolist() == CLASSES
    assert CRFTagger().fit(np.eye(2), np.array(CLASSES)).classes_.tolist() == ["a"]


def test_stored_models_and_checkpoints(tmp_path):
    tagger = CRFTagger().fit(X, Y)
    data = skops.io.dumps(tagger)
    check(skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data)))
    path = tmp_path / "c.skops"
    for n_epochs in (1, 5):
        tagger = PerceptronTagger(random_state=0)
        fit_stream(
            tagger, lambda epoch: [(X, Y)], classes=CLASSES, n_epochs=n_epochs, checkpoint=path
        )
    check(tagger)


def test_rerankers():
    model = NBestReranker(CRFTagger(), n_best=2, cv=2).fit(X * 2, Y * 2)
    assert model.predict(X).tolist() == Y


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap"])
def test_the_drop_in(algorithm, tmp_path):
    crf = crfsuite.CRF(algorithm).fit(X, Y, X, Y)
    assert sorted(crf._labels) == CLASSES
    assert crf.predict(X).tolist() == Y
    assert crf.training_log_.last_iteration["item_accuracy"] == 1
    # A label that does not occur in training is wrong, whatever it is called.
    crf.fit([[{"w": "x"}]], [["\0"]], [[{"w": "x"}, {"w": "x"}]], [["\0", "other"]])
    assert crf.training_log_.last_iteration["item_accuracy"] == 0.5
    with pytest.raises(ValueError, match="NUL"):
        crfsuite.write_model(crf.estimator_, tmp_path / "m.crfsuite")


def test_files_of_other_programs(tmp_path):
    X, vectorizer = [["x", "z"]] * 4, TemplateVectorizer("U0:%x[0,0]\nB")
    tagger = CRFTagger(fit_intercept=False).fit(vectorizer.fit_transform(X), [["a\0", "a"]] * 4)
    with pytest.raises(ValueError, match="NUL"):
        crfpp.write_model(Pipeline([("v", vectorizer), ("t", tagger)]), tmp_path / "m.txt")
    header = "version: 100\ncost-factor: 1\nmaxid: 2\nxsize: 1\n\n"
    text = header + "a\0\na\n\nU0:%x[0,0]\n\n0 U0:x\n\n1\n0\n"
    assert crfpp.read_model(text.encode()).predict([["x"]]).tolist() == [["a\0"]]


def test_scores():
    assert token_accuracy_score([["a\0", "a"]], [["a", "a"]]) == 0.5
