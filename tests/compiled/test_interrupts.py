"""Ctrl-C at any moment: a KeyboardInterrupt, and nothing is changed or left behind.

Each kind of case runs in a process of its own, which a wrong kernel would crash.
"""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.kernels import kernels_that_python_calls
from numba.core.types import BaseTuple, NamedTuple, NamedUniTuple
from sklearn.exceptions import ConvergenceWarning

import skstruct
from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    HashingTemplateVectorizer,
    MIRATagger,
    NBestReranker,
    PerceptronReranker,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SequenceVectorizer,
    SGDReranker,
    TemplateVectorizer,
    TruncatedGradientReranker,
    VRDAReranker,
    crfsuite,
    datasets,
)

pytestmark = pytest.mark.slow

# Moments of an interrupt, in seconds after the start of a call.
MOMENTS = 0.005, 0.03, 0.15
# The interrupt is answered within a second of the processor; slow machines get some more.
PATIENCE = 5.0
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
    "mira": MIRATagger(**ENDLESS),
    "arow": AROWTagger(**ENDLESS),
    "sapo": SAPOTagger(**ENDLESS),
    "crf, lbfgs": CRFTagger(**EXACT),
    "crf, l1": CRFTagger(l1=1e-6, **EXACT),
    "crf, sgd": CRFTagger(solver="sgd", **ENDLESS),
    "crf, sag": CRFTagger(solver="sag", **EXACT),
    "crf, oeg": CRFTagger(solver="oeg", **EXACT),
    "sdca": SDCACRF(**EXACT),
    "n-best reranker": NBestReranker(
        PerceptronTagger(tol=None, max_iter=300, random_state=0), VRDAReranker(**LONG)
    ),
}
LEARN_IN_PORTIONS = {
    "perceptron": PerceptronTagger(random_state=0),
    "mira": MIRATagger(random_state=0),
    "arow": AROWTagger(random_state=0),
    "sapo": SAPOTagger(random_state=0),
    "crf, sgd": CRFTagger(solver="sgd", random_state=0),
}
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nU02:%x[0,0]/%x[1,0]\nB"
VECTORIZERS = {
    "dicts": SequenceVectorizer(),
    "templates": TemplateVectorizer(TEMPLATE),
    "templates, threads": TemplateVectorizer(TEMPLATE, n_jobs=2),
    "hashing": HashingTemplateVectorizer(TEMPLATE),
}


def rerankers():
    """Fits of the rerankers, which have no threads."""
    data = groups()
    for name, reranker in RERANKERS.items():
        yield name, reranker.set_params(max_iter=1).fit(*data), partial(fit, LONG, data)


def taggers(n_jobs=None):
    """Fits of the taggers."""
    data = sequences()
    for name, tagger in TAGGERS.items():
        limits = {k: v for k, v in tagger.get_params().items() if k.endswith("max_iter")}
        if n_jobs is not None:
            if "n_jobs" not in tagger.get_params(deep=False) or name == "n-best reranker":
                continue  # joblib keeps its workers
            tagger.set_params(n_jobs=n_jobs)
        tagger.set_params(**dict.fromkeys(limits, 1)).fit(*data)
        yield name, tagger, partial(fit, limits, data)


def fit(limits, data, estimator):
    """Fit with a limit that is not the one of the first fit."""
    first = {name: estimator.get_params()[name] for name in limits}
    # Without `set_params`, whose changes would be kept.
    try:
        estimator.set_params(**limits).fit(*data)
    finally:
        estimator.set_params(**first)


def threads():
    """Fits of the taggers in two threads."""
    yield from taggers(n_jobs=2)


def other_methods():
    """Learn in portions, predict in three forms, vectorise, read and write."""
    batch, y = sequences()
    portion = sequences(20_000)
    for name, tagger in LEARN_IN_PORTIONS.items():
        tagger.partial_fit(batch, y)
        yield f"partial_fit, {name}", tagger, lambda t: t.partial_fit(*portion)
    for n_jobs in (1, 2):
        tagger = CRFTagger(max_iter=2, n_jobs=n_jobs).fit(batch, y)
        yield f"predict, {n_jobs}", tagger, forever(lambda t: t.predict(batch), tagger)
        yield f"predict_proba, {n_jobs}", tagger, forever(lambda t: t.predict_proba(batch), tagger)
        yield f"predict_nbest, {n_jobs}", tagger, forever(lambda t: t.predict_nbest(batch), tagger)
    tokens = [[f"word{i * j % 97}" for i in range(12)] for j in range(300)]
    dicts = [[{"word": token, "length": len(token)} for token in row] for row in tokens]
    columns = [[(token,) for token in row] for row in tokens]
    for name, vectorizer in VECTORIZERS.items():
        X = dicts if name == "dicts" else columns
        vectorizer.fit(X)
        yield (
            f"fit_transform, {name}",
            vectorizer,
            forever(lambda v, X=X: v.fit_transform(X), vectorizer),
        )
        yield f"transform, {name}", vectorizer, forever(lambda v, X=X: v.transform(X), vectorizer)
    text = "\n\n".join("\n".join(f"{token} O" for token in row) for row in tokens)
    Path("corpus.conll").write_text(text, encoding="utf-8")
    yield "read_conll", None, forever(lambda _: datasets.read_conll("corpus.conll"))
    tagger = CRFTagger(max_iter=2, fit_intercept=False).fit(dicts, tokens)
    crfsuite.write_model(tagger, "whole.crfsuite")
    yield (
        "write_model",
        tagger,
        forever(lambda t: crfsuite.write_model(t, "whole.crfsuite"), tagger),
    )
    yield "read_model", None, forever(lambda _: crfsuite.read_model("whole.crfsuite"))


def forever(call, subject=None):
    """Function that calls another one until an interrupt ends it.

    It is called once before, so that all is compiled.
    """
    call(subject)

    def repeat(estimator):
        while True:
            call(estimator)

    return repeat


@pytest.mark.skipif(sys.platform == "win32", reason="No process can send itself a SIGINT.")
@pytest.mark.parametrize("cases", ["rerankers", "taggers", "threads", "other_methods"])
def test_an_interrupt_changes_nothing(cases, tmp_path):
    # This package, and the helpers of the tests.
    path = os.pathsep.join(
        map(str, [Path(skstruct.__file__).parents[1], Path(__file__).parents[1]])
    )
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__, cases],
        env=os.environ | {"PYTHONPATH": path, "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("no kernel returns a record\n")


def interrupt_all(cases):
    warnings.simplefilter("ignore", ConvergenceWarning)  # of the first fits
    # Ignored where the tests run in the background of a shell.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, estimator, call in globals()[cases]():
        print(name, end=": ", flush=True)
        n_interrupted = sum(interrupt(estimator, call, seconds) for seconds in MOMENTS)
        if n_interrupted < len(MOMENTS) / 2:
            raise AssertionError("The calls are too short.")
        print("unchanged", flush=True)
    wrong = list(entries_that_return_records())
    if wrong:
        raise AssertionError(f"These kernels return a NamedTuple to Python: {wrong}.")
    print("no kernel returns a record")


def interrupt(estimator, call, seconds):
    """Call, and check what an interrupt leaves behind; False if it came after the call."""
    before, files, finished, sent = pickle.dumps(estimator), folder(), False, []

    def send():
        # In time of the processor, of which a busy machine gives a process little.
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, send)
    try:
        timer.start()
        call(estimator)
        finished = True
        time.sleep(10)
    except KeyboardInterrupt:
        late = time.process_time() - sent[0]
    else:
        raise AssertionError("The interrupt was lost.")
    if finished:
        return False
    if late > PATIENCE:
        raise AssertionError(f"The interrupt after {seconds} s was answered {late} s later.")
    timer.join()
    if pickle.dumps(estimator) != before:
        raise AssertionError(f"The interrupt after {seconds} s left the estimator changed.")
    if folder() != files:
        raise AssertionError(f"The interrupt after {seconds} s left files: {folder() - files}.")
    # A thread that was just being started ends at once, but nobody waits for it.
    patience = time.perf_counter() + PATIENCE
    while threading.active_count() > 1 and time.perf_counter() < patience:
        time.sleep(0.001)
    if threading.active_count() > 1:
        raise AssertionError(f"The interrupt after {seconds} s left threads.")
    return True


def folder():
    """Files of the working directory and of the one for temporary files."""
    return set(os.listdir()) | set(os.listdir(tempfile.gettempdir()))


def entries_that_return_records():
    """Kernels that Python code uses and whose result numba would make by Python code."""
    for kernel in kernels_that_python_calls():
        if any(holds_record(s.return_type) for s in kernel.nopython_signatures):
            yield kernel.__name__


def holds_record(kind):
    if isinstance(kind, (NamedTuple, NamedUniTuple)):
        return True
    return isinstance(kind, BaseTuple) and any(map(holds_record, kind))


def groups():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(20, 30)) for _ in range(300)]
    return X, rng.integers(0, 20, size=len(X)).tolist()


def sequences(n_sequences=200):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 20, size=n_sequences)
    X = sp.random(lengths.sum(), 500, 0.02, format="csr", random_state=0)
    y = [rng.choice(list("abcde"), size=n).tolist() for n in lengths]
    return SequenceBatch.from_lengths(X, lengths), y


if __name__ == "__main__":
    interrupt_all(sys.argv[1])
