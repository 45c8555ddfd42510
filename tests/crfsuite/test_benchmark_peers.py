"""CRF++ and Wapiti, as the benchmarks run them, beside `CRFTagger` on the same objective."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import peers

from skstruct import CRFTagger

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / "benchmarks").is_dir(), reason="needs the folder of the benchmarks"
    ),
]
LEARN = """
import json, sys
sys.path.append(root)
from benchmarks.which_tagger import learners

learner = getattr(learners, name)(parameters, 0)
seconds = learner.fit(X, y)
found = learner.tag(learner.inputs(new))
print(json.dumps({"labels": found, "seconds": seconds, **learner.megabytes()}))
"""
REFUSE = """
import sys
sys.path.append(root)
from benchmarks.which_tagger.learners import names_of

print(names_of(["a b", "c"]), names_of({"x": 1.0}))
try:
    names_of({"x": 0.5})
except ValueError as error:
    print(error)
"""
EVERYTHING = {
    "all_possible_states": True,
    "all_possible_transitions": True,
    "fit_intercept": False,
    "max_iter": 2000,
}


@pytest.fixture(scope="module")
def corpus(addresses):
    X, y = addresses
    # Tokens with different numbers of attributes, one of which has a space.
    X = [
        [[*token, "capital letter"] if "X" in token[-1] else token for token in sequence]
        for sequence in X
    ]
    return X[:150], y[:150], X[150:250]


def learn(peer, name, parameters, corpus):
    X, y, new = corpus
    printed = peer.run(LEARN, root=str(ROOT), name=name, parameters=parameters, X=X, y=y, new=new)
    # Only the last line is ours: Wapiti and CRF++ say how far they are.
    return json.loads(printed.splitlines()[-1])


def share_of_equal(theirs, ours):
    assert [len(labels) for labels in theirs] == [len(labels) for labels in ours]
    return np.mean(np.concatenate(theirs) == np.concatenate(ours.tolist()))


def test_crfpp_learns_what_crftagger_learns(corpus):
    found = learn(peers.crfpp(), "CRFppLearner", {"-c": "2", "-e": "0.000001"}, corpus)
    X, y, new = corpus
    width = max(len(token) for sequence in X for token in sequence)

    def padded(sequences):
        return [
            [{**dict.fromkeys(token, 1), "_": width - len(token)} for token in sequence]
            for sequence in sequences
        ]

    crf = CRFTagger(l2=1 / 2, tol=1e-6, **EVERYTHING).fit(padded(X), y)
    assert share_of_equal(found["labels"], crf.predict(padded(new))) > 0.998
    assert found["seconds"] > 0
    assert found["crf++"] > 0


def test_wapiti_learns_what_crftagger_learns(corpus):
    parameters = {"rho1": 0.2, "rho2": 0.1, "stopwin": 10**6, "stopeps": 1e-12}
    found = learn(peers.wapiti(), "WapitiLearner", parameters, corpus)
    X, y, new = corpus
    crf = CRFTagger(l1=0.2, l2=0.1, tol=1e-6, **EVERYTHING).fit(X, y)
    assert share_of_equal(found["labels"], crf.predict(new)) > 0.998
    assert found["seconds"] > 0
    assert found["wapiti"] > 0


def test_values_other_than_one_are_refused():
    lines = peers.Peer("json").run(REFUSE, root=str(ROOT)).splitlines()
    assert lines[0] == "['a_b', 'c'] ['x']"
    assert lines[1] == "This system has no features with values other than 0 and 1."
