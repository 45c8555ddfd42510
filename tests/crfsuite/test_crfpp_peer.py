"""Models that CRF++ learnt, read; models of ours, read by CRF++; and its objective.

CRF++ comes with the package crfpy. Where that is not installed, pip puts it into the folder that
SKSTRUCT_PEERS names. It runs in a process of its own.
"""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from helpers import peers
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, PerceptronTagger, TemplateVectorizer, crfpp
from skstruct.datasets import load_addresses, write_conll

pytestmark = pytest.mark.slow

TEMPLATE = ["U00:%x[-1,0]", "U01:%x[0,0]", "U02:%x[1,0]", "U03:%x[-1,0]/%x[0,0]", "B"]
TAG = """
import json
from CRFPP import Tagger

tagger = Tagger(f"-m {model} -v2")
answers = []
for sentence in sentences:
    tagger.clear()
    for token in sentence:
        tagger.add(token)
    assert tagger.parse()
    sizes = range(len(sentence)), range(tagger.ysize())
    answers.append([[tagger.prob(i, j) for j in sizes[1]] for i in sizes[0]])
print(json.dumps({"labels": [tagger.yname(j) for j in range(tagger.ysize())], "proba": answers}))
"""


@pytest.fixture(scope="module")
def run():
    """Run Python code beside CRF++; what it prints is returned."""
    return peers.crfpp().run


@pytest.fixture(scope="module")
def addresses():
    X, y = load_addresses(return_X_y=True)
    return X[:120], y[:120], X[120:180]


@pytest.fixture(scope="module")
def learnt(run, addresses, tmp_path_factory):
    """Folder with a model of CRF++, and what it printed while it learnt."""
    folder = tmp_path_factory.mktemp("crfpp")
    X, y, _ = addresses
    write_conll(folder / "train.txt", X, y)
    (folder / "template").write_text("\n".join(TEMPLATE) + "\n", encoding="utf-8")
    options = ["-t", "-c", "2", "-e", "0.000001", "-p", "1"]
    files = [str(folder / name) for name in ("template", "train.txt", "model")]
    code = "from CRFPP import crfpp_learn\ncrfpp_learn(['crf_learn', *arguments])"
    return folder, run(code, arguments=options + files)


def marginals(run, path, sentences):
    """Labels and marginals of CRF++, by a binary model."""
    found = json.loads(run(TAG, model=str(path), sentences=sentences))
    return found["labels"], [np.array(of_sentence) for of_sentence in found["proba"]]


def test_what_it_learnt_is_read(run, learnt, addresses):
    folder, _ = learnt
    labels, expected = marginals(run, folder / "model", addresses[2])
    model = crfpp.read_model(folder / "model.txt")
    order = [labels.index(label) for label in model.classes_]
    for ours, theirs in zip(model.predict_proba(addresses[2]), expected, strict=True):
        # Its binary models have weights in single precision.
        assert_allclose(ours, theirs[:, order], atol=1e-4)


def test_its_objective_has_the_same_minimum(learnt, addresses):
    values = [float(x) for x in re.findall(r"obj=([0-9.]+)", learnt[1])]
    assert all(b <= a * 1.5 for a, b in pairwise(values[1:]))
    everything = {"all_possible_states": True, "all_possible_transitions": True}
    crf = CRFTagger(l2=1 / 2, fit_intercept=False, tol=1e-6, max_iter=1000, **everything)
    crf.fit(TemplateVectorizer(TEMPLATE).fit_transform(addresses[0]), addresses[1])
    assert_allclose(values[-1], crf.history_["objective"][-1], rtol=1e-4)


@pytest.mark.parametrize(
    "tagger", [CRFTagger(l2=0.5), PerceptronTagger(max_iter=5, tol=None, random_state=0)], ids=str
)
@pytest.mark.parametrize("more", [[], ["B01:%x[0,0]"]], ids=["words", "words and transitions"])
def test_it_reads_what_we_write(tagger, more, run, addresses, tmp_path):
    X, y, new = addresses
    model = make_pipeline(TemplateVectorizer([*TEMPLATE, *more]), tagger).fit(X, y)
    crfpp.write_model(model, tmp_path / "model.txt")
    code = "from CRFPP import crfpp_learn\ncrfpp_learn(['crf_learn', '--convert', *paths])"
    run(code, paths=[str(tmp_path / "model.txt"), str(tmp_path / "model")])
    labels, found = marginals(run, tmp_path / "model", new)
    order = [labels.index(label) for label in model.classes_]
    for theirs, ours in zip(found, model.predict_proba(new), strict=True):
        assert_allclose(theirs[:, order], ours, atol=1e-3)
