"""Only kernels call those without a wrapper for Python, which would run in Python there."""

import pytest

from skstruct import SDCACRF, AROWTagger, CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger
from skstruct.compiled.jit import Kernel
from skstruct.datasets import load_addresses
from skstruct.learning import lbfgs
from skstruct.learning.layout import state_scores


@pytest.fixture(autouse=True)
def _refuse_inner_kernels(monkeypatch):
    def call(kernel, *args):
        assert not kernel.targetoptions.get("no_cpython_wrapper"), kernel.py_func.__qualname__
        return call_of_kernel(kernel, *args)

    call_of_kernel = Kernel.__call__
    monkeypatch.setattr(Kernel, "__call__", call)
    # The start of CRFTagger, too.
    monkeypatch.setattr(lbfgs, "MANY_TOKENS", 1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "tagger",
    [
        CRFTagger(max_iter=2),
        CRFTagger(max_iter=2, l1=0.1),
        CRFTagger(max_iter=2, order=2),
        CRFTagger(max_iter=2, solver="sgd"),
        SDCACRF(max_iter=2),
        SAPOTagger(max_iter=2),
        PerceptronTagger(max_iter=2),
        PerceptronTagger(max_iter=2, order=2),
        MIRATagger(max_iter=2, n_best=2),
        AROWTagger(max_iter=2),
    ],
    ids=str,
)
def test_python_calls_no_inner_kernel(tagger):
    tokens, y = load_addresses(return_X_y=True)
    X, y = [[["word=" + word] for word in line] for line in tokens[:30]], y[:30]
    tagger.set_params(random_state=0).fit(X, y)
    for batch in (X, X[:1]):
        assert len(tagger.predict(batch)) == len(batch)
        assert len(tagger.predict_nbest(batch, n_best=2)) == len(batch)
    if hasattr(tagger, "predict_proba"):
        assert len(tagger.predict_proba(X)) == len(X)


def test_an_inner_kernel_is_refused_here():
    with pytest.raises(AssertionError, match="state_scores"):
        state_scores()
