"""Ctrl-C during `fit`: a KeyboardInterrupt, and an estimator that is unchanged.

Each case runs in a process of its own, which a wrong kernel would crash.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.types import BaseTuple, NamedTuple, NamedUniTuple
from sklearn.exceptions import ConvergenceWarning

import skstruct
from skstruct import (
    SDCACRF,
    CRFTagger,
    MIRATagger,
    NBestReranker,
    PerceptronReranker,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SGDReranker,
    TruncatedGradientReranker,
    VRDAReranker,
    kernels,
)

SECONDS = (0.01, 0.05, 0.1, 0.2, 0.3)  # after the start of a fit
ENDLESS = {"tol": None, "max_iter": 1_000_000, "random_state": 0}
LONG = {"max_iter": 20_000, "random_state": 0}
EXACT = {"l2": 1e-6, "tol": 1e-300, "max_iter": 1_000_000, "random_state": 0}
RERANKERS = {
    "vrda": VRDAReranker(**LONG),
    "vrda, vote": VRDAReranker(prediction="vote", **LONG),
    "perceptron": PerceptronReranker(**LONG),
    "sgd": SGDReranker(**LONG),
    "truncated gradient": TruncatedGradientReranker(**LONG),
}
TAGGERS = {
    "perceptron": PerceptronTagger(**ENDLESS),
    "perceptron, shards": PerceptronTagger(n_jobs=2, **ENDLESS),
    "mira": MIRATagger(**ENDLESS),
    "sapo": SAPOTagger(**ENDLESS),
    "crf, lbfgs": CRFTagger(**EXACT),
    "crf, sgd": CRFTagger(solver="sgd", **ENDLESS),
    "crf, sag": CRFTagger(solver="sag", **EXACT),
    "crf, oeg": CRFTagger(solver="oeg", **EXACT),
    "sdca": SDCACRF(**EXACT),
    "n-best reranker": NBestReranker(
        PerceptronTagger(tol=None, max_iter=300, random_state=0), VRDAReranker(**LONG)
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="No process can send itself a SIGINT.")
@pytest.mark.parametrize("cases", ["RERANKERS", "TAGGERS"])
def test_an_interrupted_fit_changes_nothing(cases):
    package = str(Path(skstruct.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__, cases],
        env=os.environ | {"PYTHONPATH": package},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("unchanged") == len(globals()[cases])


def interrupt_all(cases):
    warnings.simplefilter("ignore", ConvergenceWarning)  # of the first fits
    data = groups() if cases == "RERANKERS" else sequences()
    for name, estimator in globals()[cases].items():
        print(name, end=": ", flush=True)
        limits = {k: v for k, v in estimator.get_params().items() if k.endswith("max_iter")}
        estimator.set_params(**dict.fromkeys(limits, 1)).fit(*data).set_params(**limits)
        n_interrupted = sum(interrupt(estimator, data, seconds) for seconds in SECONDS)
        if n_interrupted < 2:
            raise AssertionError("The fits are too short.")
        print("unchanged", flush=True)
    wrong = list(entries_that_return_records())
    if wrong:
        raise AssertionError(f"These kernels return a NamedTuple to Python: {wrong}.")


def interrupt(estimator, data, seconds):
    """Fit, and check what an interrupt leaves behind; False if it came after the fit."""
    before, finished = pickle.dumps(vars(estimator)), False
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        estimator.fit(*data)
        finished = True
        time.sleep(10)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("The interrupt was lost.")
    if not finished and pickle.dumps(vars(estimator)) != before:
        raise AssertionError(f"A fit that was interrupted after {seconds} s left something behind.")
    return not finished


def entries_that_return_records():
    """Kernels that Python code uses and whose result numba would make by Python code."""
    for name in kernels.__all__:
        signatures = getattr(getattr(kernels, name), "nopython_signatures", ())
        if any(holds_record(signature.return_type) for signature in signatures):
            yield name


def holds_record(kind):
    if isinstance(kind, (NamedTuple, NamedUniTuple)):
        return True
    return isinstance(kind, BaseTuple) and any(map(holds_record, kind))


def groups():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(20, 30)) for _ in range(300)]
    return X, rng.integers(0, 20, size=len(X)).tolist()


def sequences():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 20, size=200)
    X = sp.random(lengths.sum(), 500, 0.02, format="csr", random_state=0)
    y = [rng.choice(list("abcde"), size=n).tolist() for n in lengths]
    return SequenceBatch.from_lengths(X, lengths), y


if __name__ == "__main__":
    interrupt_all(sys.argv[1])
