"""What fits keep, and files that ask for more memory than there is."""

import gc
import pickle
import subprocess
import sys
import tracemalloc
import weakref
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from skstruct import (
    CRFTagger,
    SequenceBatch,
    SequenceVectorizer,
    WordVectorizer,
    crfpp,
)
from skstruct.crfsuite import CRF, read_model
from skstruct.crfsuite.file import CRFsuiteModel, encode_model
from skstruct.input.training_set import TrainingSet
from skstruct.learning import lbfgs as batch_solver
from skstruct.learning import objective as layout
from skstruct.learning.likelihood import Likelihood
from skstruct.learning.objective import CRFObjective
from skstruct.matrices import pieces
from skstruct.templates.learnt import LearntFeatures
from skstruct.utils import memory
from skstruct.utils.memory import as_size, require_memory, usable_memory


def data(n_features, n_labels):
    X = sp.eye_array(n_features, format="csr")
    return SequenceBatch(X, np.array([0, n_features])), [
        (np.arange(n_features) % n_labels).tolist()
    ]


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


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sets a limit of Linux")
def test_the_limit_of_the_process_is_known():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))\n"
        "from skstruct.utils.memory import usable_memory; print(int(usable_memory()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) <= 2**33


# What is kept


def test_tokens_of_a_batch_take_four_bytes_a_feature():
    """Features that are all one have no values."""
    X = [[{f"f{k}": f"{(7 * t + k) % 13}" for k in range(19)} for t in range(50)]] * 4
    batch = SequenceVectorizer().fit_transform(X)
    arrays = batch.X.indices, batch.X.indptr, batch.offsets
    n_bytes = sum(array.nbytes for array in arrays) + batch.X.data.base.nbytes
    assert batch.X.nnz == 19 * batch.n_rows
    assert n_bytes <= 90 * batch.n_rows
    assert_array_equal(batch.X.data, 1.0)


@pytest.mark.parametrize("params", [{}, {"l1": 0.1}])
def test_lbfgs_lets_go_before_all_weights_are_made(monkeypatch, params):
    """The largest arrays of a fit are not there at the same time."""
    events = []
    method = "minimize_proximal" if params else "minimize_lbfgs"
    steps, unpack = getattr(batch_solver, method), CRFObjective.unpack

    def watched(*arguments, **more):
        try:
            yield from steps(*arguments, **more)
        finally:
            events.append("directions end")

    def watched_unpack(objective, theta):
        events.append("weights begin")
        return unpack(objective, theta)

    monkeypatch.setattr(batch_solver, method, watched)
    monkeypatch.setattr(CRFObjective, "unpack", watched_unpack)
    X, y = data(30, 3)
    CRFTagger(**params).fit(X, y)
    assert events == ["directions end", "weights begin"]


def test_lbfgs_lets_go_of_the_tokens_before_all_weights_are_made(monkeypatch):
    tokens, alive, unpack = [], [], CRFObjective.unpack

    def watched_init(likelihood, features, *arguments, **more):
        tokens.append(weakref.ref(features.places))
        init(likelihood, features, *arguments, **more)

    def watched_unpack(objective, theta):
        gc.collect()
        alive.append(tokens[0]() is not None)
        return unpack(objective, theta)

    init = Likelihood.__init__
    monkeypatch.setattr(Likelihood, "__init__", watched_init)
    monkeypatch.setattr(CRFObjective, "unpack", watched_unpack)
    CRFTagger().fit(*data(30, 3))
    assert alive == [False]


@pytest.mark.parametrize("size", [1, 2, 5, 1 << 16])
def test_transitions_are_counted_piece_by_piece(monkeypatch, size):
    """Also where sequences are empty, and labels unknown, at the border of a piece."""
    monkeypatch.setattr(layout, "pieces", lambda sequence: pieces(sequence, size))
    labels, weights = [[], [0, 1, 1, -1, 0], [], [2], [1, 2, 2, 0], []], [1, 0.5, 3, 1, 2.25, 1]
    expected = np.zeros((3, 3))
    for sequence, weight in zip(labels, weights, strict=True):
        for a, b in pairwise(sequence):
            if min(a, b) >= 0:
                expected[a, b] += weight
    offsets = np.cumsum([0, *map(len, labels)])
    codes = np.array([code for sequence in labels for code in sequence], np.int32)
    training_set = TrainingSet(None, offsets, codes, np.array(weights))
    assert_array_equal(layout.transition_frequency(training_set, 3), expected)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("tagger", [CRFTagger(max_iter=3), CRF(max_iterations=3)])
def test_lbfgs_lets_go_of_what_it_has_packed(monkeypatch, tagger):
    """Feature dicts become a matrix, which nobody needs once the objective is there."""
    matrices, alive = [], []
    init, bound = CRFObjective.__init__, batch_solver._bound

    def watched_init(objective, training_set, *arguments, **more):
        matrices.append(weakref.ref(training_set.rows.indices))
        init(objective, training_set, *arguments, **more)

    def watched_bound(*arguments):
        gc.collect()
        alive.append(matrices[0]() is not None)
        return bound(*arguments)

    monkeypatch.setattr(CRFObjective, "__init__", watched_init)
    monkeypatch.setattr(batch_solver, "_bound", watched_bound)
    tagger.fit([[{"word": "a"}, {"word": "b"}], [{"word": "c"}]], [["A", "B"], ["A"]])
    assert alive
    assert not any(alive)


def test_learning_makes_no_dict_of_names():
    X = [[{"word": f"w{t}"} for t in range(5)]]
    tagger = CRFTagger().fit(X, [["A", "B", "A", "A", "B"]])
    assert "vocabulary_" not in vars(tagger.vectorizer_)
    assert tagger.vectorizer_.vocabulary_ == {f"word:w{t}": t for t in range(5)}
    tagger.fit([[{"word": "other"}]], [["A"]])
    assert tagger.vectorizer_.vocabulary_ == {"word:other": 0}


# Small files and inputs that ask for much


def many_labels(n_labels):
    """Text model of CRF++ with labels and next to nothing else."""
    labels = "".join(f"l{i}\n" for i in range(n_labels))
    weights = "0\n" * n_labels
    head = f"version: 100\ncost-factor: 1\nmaxid: {n_labels}\nxsize: 1\n\n"
    return f"{head}{labels}\nU0:%x[0,0]\nB\n\n0 U0:a\n\n{weights}".encode()


def crfsuite_model(n_labels):
    """CRFsuite's model of many labels and one attribute."""
    labels = [f"l{i:05}" for i in range(n_labels)]
    nothing = np.empty((0, 2), np.int64), np.empty(0)
    one = np.zeros((1, 2), np.int64), np.ones(1)
    return encode_model(CRFsuiteModel(labels, ["a"], *one, *nothing))


@pytest.mark.parametrize(
    ("read", "model"), [(crfpp.read_model, many_labels), (read_model, crfsuite_model)]
)
def test_models_of_many_labels_say_what_they_need(monkeypatch, read, model):
    needed = 8 * 2000 * 2001
    with monkeypatch.context() as patched:
        patched.setattr(memory, "usable_memory", lambda: needed - 1)
        with pytest.raises(MemoryError, match=r"2,000 labels.* need .* MiB, and this process may"):
            read(model(2000))
    assert len(read(model(3)).classes_) == 3
    with pytest.raises(ValueError, match="32768 classes; at most 32767 are supported"):
        read(model(1 << 15))


def test_a_model_of_many_labels_takes_one_matrix():
    """It has no other transitions than zero, which take no memory before they are written to."""
    tracemalloc.start()
    model = crfpp.read_model(many_labels(3000))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1.2 * 8 * 3000**2
    assert model.predict([["a", "b"]]).tolist() == [["l0", "l0"]]


def test_zeros_of_stored_models_are_counted(monkeypatch):
    tagger = CRFTagger(max_iter=1, tol=1e9).fit(*data(100, 100))
    stored = pickle.dumps(tagger)
    with monkeypatch.context() as patched:
        patched.setattr(memory, "usable_memory", lambda: 8 * 100 * 100 - 1)
        with pytest.raises(MemoryError, match=r"stored CRFTagger cannot be loaded: .* need 78 KiB"):
            pickle.loads(stored)
    assert pickle.loads(stored).n_features_in_ == 100


def test_a_part_of_a_model_that_finds_no_memory_is_not_damaged(monkeypatch):
    stored = pickle.dumps(WordVectorizer().fit([["a", "b"]]))

    def fail(features, state):
        raise MemoryError("none is left")

    monkeypatch.setattr(LearntFeatures, "_read_state", fail)
    with pytest.raises(MemoryError, match=r"stored WordVectorizer cannot .* none is left"):
        pickle.loads(stored)


def test_zeros_are_counted_before_they_are_there():
    """By the declared shape, and not by what the file says."""
    tagger = CRFTagger(max_iter=1, tol=1e9).fit(*data(100, 100))
    state = tagger.__getstate__()
    for shape in ((100, 2**40), (2**40, 100), (-100, -100), (100,), ()):
        state["coef_"] = state["coef_"] | {"shape": np.array(shape, np.int64)}
        with pytest.raises(ValueError, match=r"an array has the shape|do not fit their places"):
            CRFTagger.__new__(CRFTagger).__setstate__(state)
