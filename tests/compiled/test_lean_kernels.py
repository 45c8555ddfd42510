"""Kernels that count no references: none may be owed when all is done."""

import gc
from itertools import pairwise

import numpy as np
import pytest
from helpers.kernels import all_kernels
from helpers.marks import compiled
from numba.core.runtime import _nrt_python, rtsys
from numba.core.types import Array, BaseTuple

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
)

LEARNERS = [
    CRFTagger(max_iter=3, tol=1),
    CRFTagger(max_iter=3, tol=1, constraint="IOB2"),
    CRFTagger(solver="sgd", max_iter=2, tol=None, random_state=0),
    CRFTagger(solver="sag", max_iter=2, tol=1, random_state=0),
    CRFTagger(solver="oeg", max_iter=2, tol=1, random_state=0),
    SDCACRF(max_iter=2, tol=1, random_state=0),
    PerceptronTagger(max_iter=2, tol=None, random_state=0),
    MIRATagger(n_best=3, max_iter=2, tol=None, random_state=0),
    AROWTagger(max_iter=2, tol=None, random_state=0),
    SAPOTagger(n_best=3, search="beam", max_iter=2, tol=None, random_state=0),
]
SECOND_ORDER = [
    CRFTagger(max_iter=3, tol=1, constraint="IOB2", order=2),
    AROWTagger(order=2, max_iter=2, tol=None, random_state=0),
]


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """Let numba count what it allocates and frees; what was there before is no garbage."""
    gc.freeze()
    # The start of CRFTagger, too.
    monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 1)
    _nrt_python.memsys_enable_stats()
    yield
    _nrt_python.memsys_disable_stats()
    gc.unfreeze()


def n_alive():
    gc.collect()
    stats = rtsys.get_allocation_stats()
    return stats.alloc - stats.free, stats.mi_alloc - stats.mi_free


def work(learner, n_labels):
    """Learn, and predict in every way."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 1, 5, 5, 12, 15])
    batch = SequenceBatch(rng.normal(size=(15, 4)), offsets)
    labels = np.array(["O", "B-a", "I-a", *(f"B-{i}" for i in range(10))])[:n_labels]
    numbers = np.r_[np.arange(15) % n_labels]
    # Whatever the order, an inside label follows its own kind.
    numbers[numbers == 2] = 1
    y = [labels[numbers[a:b]].tolist() for a, b in pairwise(offsets)]

    tagger = learner.fit(batch, y)
    tagger.predict(batch)
    tagger.predict_nbest(batch, n_best=2)
    if hasattr(tagger, "predict_proba"):
        tagger.predict_proba(batch)


@pytest.mark.parametrize(
    "learner", [*LEARNERS, *map(compiled, SECOND_ORDER)], ids=lambda learner: repr(learner)[:60]
)
@pytest.mark.parametrize("n_labels", [3, 13])
def test_nothing_is_left_allocated(learner, n_labels):
    work(learner, n_labels)
    before = n_alive()
    for _ in range(3):
        work(learner, n_labels)
    assert n_alive() == before


@pytest.mark.parametrize(
    "learners", [LEARNERS, compiled(SECOND_ORDER)], ids=["first order", "second order"]
)
def test_lean_kernels_return_no_arrays(learners):
    def holds_an_array(kind):
        parts = kind.types if isinstance(kind, BaseTuple) else [kind]
        return any(isinstance(part, Array) for part in parts)

    for learner in learners:
        work(learner, 3)
    returned = {
        (kernel.__name__, overload.signature.return_type)
        for kernel in all_kernels()
        if kernel.targetoptions.get("_nrt") is False
        for overload in kernel.overloads.values()
    }
    assert returned
    assert [name for name, kind in returned if holds_an_array(kind)] == []
