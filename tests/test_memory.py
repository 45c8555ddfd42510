"""Fits that would need too much memory say so before they allocate it."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from skstruct import (
    SDCACRF,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
)
from skstruct.utils import memory
from skstruct.utils.memory import as_size, require_memory, usable_memory

TAGGERS = {
    "perceptron": PerceptronTagger(),
    "perceptron, shards": PerceptronTagger(n_jobs=4, average=False),
    "mira": MIRATagger(),
    "sapo": SAPOTagger(),
    "lbfgs": CRFTagger(),
    "sgd": CRFTagger(solver="sgd"),
    "sag": CRFTagger(solver="sag"),
    "oeg": CRFTagger(solver="oeg"),
    "sdca": SDCACRF(),
}
# Arrays of weights that a fit certainly needs at once.
COPIES = {"perceptron": 2, "perceptron, shards": 4, "mira": 2, "sag": 2}


def data(n_features, n_labels):
    X = sp.eye_array(n_features, format="csr")
    return SequenceBatch(X, np.array([0, n_features])), [
        (np.arange(n_features) % n_labels).tolist()
    ]


@pytest.mark.parametrize("name", TAGGERS)
def test_a_fit_without_enough_memory_says_what_needs_less(name, monkeypatch):
    tagger = TAGGERS[name]
    X, y = data(1000, 10)
    needed = 8 * COPIES.get(name, 1) * (1000 + 10) * 10
    monkeypatch.setattr(memory, "usable_memory", lambda: needed - 1)
    before = dict(vars(tagger))
    with pytest.raises(MemoryError, match=r"1,000 features and 10 labels.*fewer features"):
        tagger.fit(X, y)
    assert vars(tagger) == before


def test_the_weights_of_lbfgs_are_counted(monkeypatch):
    X, y = data(1000, 10)
    monkeypatch.setattr(memory, "usable_memory", lambda: 100_000)
    with pytest.raises(MemoryError, match=r"L-BFGS.* need .*min_freq"):
        CRFTagger(all_possible_states=True).fit(X, y)
    monkeypatch.setattr(memory, "usable_memory", lambda: 2_000_000)
    CRFTagger(all_possible_states=True, max_iter=1, tol=1e9).fit(X, y)


def test_sizes_are_readable():
    sizes = [0, 1023, 1024, 300 * 2**20, 11.2 * 2**30, 5000 * 2**30]
    found = ["0 bytes", "1,023 bytes", "1 KiB", "300 MiB", "11.2 GiB", "5,000.0 GiB"]
    assert [as_size(n) for n in sizes] == found


def test_there_is_some_memory():
    assert usable_memory() > 2**20
    require_memory(1000, "A thousand bytes", "")
    with pytest.raises(
        MemoryError, match=r"^They need .* GiB, and this process may use .*\. Rest\.$"
    ):
        require_memory(2 * usable_memory() + 2**60, "They", "Rest.")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sets a limit of Linux")
def test_the_limit_of_the_process_is_known():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))\n"
        "from skstruct.utils.memory import usable_memory; print(int(usable_memory()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) <= 2**33
