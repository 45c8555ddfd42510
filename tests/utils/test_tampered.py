"""Stored models and checkpoints that were tampered with: a ValueError, or right answers."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from skstruct import PerceptronTagger, SequenceBatch
from skstruct.taggers.prediction import ALWAYS_LEARNT

pytest.importorskip("skops.io")

PROGRAM = Path(__file__).parents[1] / "helpers" / "tampering.py"


@pytest.mark.slow
def test_whatever_is_changed_is_refused_or_harmless():
    """A third of the changes, in a process of its own, which a crash would end."""
    # Helpers of the tests are found from here.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, PROGRAM, "3"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    assert run.returncode == 0, [*lines, run.stderr[-2000:]]
    n_changes, what = lines[-1].split(" changes, ")
    assert what == "0 with a wrong result"
    assert int(n_changes) > 1300


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_nbest"])
@pytest.mark.parametrize("name", [*ALWAYS_LEARNT, "transition_coef_"])
def test_assigned_weights_of_a_wrong_shape_are_refused(name, method):
    edges = np.arange(8.0).reshape(4, 2)
    batch = SequenceBatch(np.eye(4, 3), [0, 2, 4], transition_X=edges)
    tagger = PerceptronTagger(random_state=0).fit(batch, [["A", "B"], ["B", "A"]])
    expected = str(getattr(tagger, method)(batch))
    weights = getattr(tagger, name)
    # Other types and orders are fine.
    for same in (weights.copy("F"), weights.copy("C"), weights.astype("longdouble")):
        setattr(tagger, name, same)
        assert str(getattr(tagger, method)(batch)) == expected
    for other in (weights[:1], weights[..., :1], np.concatenate([weights, weights])):
        setattr(tagger, name, other)
        with pytest.raises(ValueError, match=f"{name} has the shape"):
            getattr(tagger, method)(batch)


def test_other_classes_do_not_fit_what_was_learnt():
    batch = SequenceBatch(np.eye(4, 3), [0, 2, 4])
    tagger = PerceptronTagger(random_state=0).partial_fit(batch, [["A", "B"], ["B", "A"]])
    tagger.classes_ = np.array(["A", "B", "C"])
    with pytest.raises(ValueError, match="3 classes do not fit"):
        tagger.partial_fit(batch, [["A", "C"], ["B", "A"]])


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array])
def test_sparse_weights_are_stored_and_checked(kind):
    batch = SequenceBatch(np.eye(4, 3), [0, 2, 4])
    tagger = PerceptronTagger(random_state=0).fit(batch, [["A", "B"], ["B", "A"]])
    expected = tagger.predict_proba(batch).tolist()
    tagger.coef_ = kind(tagger.coef_)
    again = pickle.loads(pickle.dumps(tagger))
    assert_array_equal(again.predict_proba(batch).tolist(), expected)
    for name, place, number in (
        ("indices", 0, 10**6),
        ("indices", 0, -5),
        ("indptr", 1, 10**6),
        ("data", 0, np.nan),
    ):
        state = tagger.__getstate__()
        state["coef_"] = state["coef_"].copy()
        getattr(state["coef_"], name)[place] = number
        with pytest.raises(ValueError, match="stored PerceptronTagger is damaged"):
            PerceptronTagger.__new__(PerceptronTagger).__setstate__(state)
