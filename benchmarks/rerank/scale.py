"""Training on a million candidates with a million features: seconds an epoch, and memory.

Every training is a process of its own, which reads the candidates from a file, so that its peak
memory is that of reading and training, and not of making the data.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.common.processes import peak_memory, run_child
from benchmarks.common.runs import append_run
from skstruct import SequenceBatch, VRDAReranker

N_ROWS = 1_000_000  # candidates, and features
GROUP = 50
EPOCHS = 5
PER_ROW = (5, 10, 20, 40)
PREDICTIONS = ("last", "average", "vote")


def measure_scale(path, *, n_rows=N_ROWS, per_row=PER_ROW):
    """Measure all sizes and ways to predict; keep the results in a file."""
    path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        candidates = Path(folder) / "candidates.npz"
        for n in per_row:
            write_candidates(candidates, n_rows, n)
            for prediction in PREDICTIONS:
                found = {"per_row": n, **run_child("rerank.scale", candidates, prediction)}
                append_run(path, found)
                print(found, flush=True)


def write_candidates(path, n_rows, per_row):
    """Random candidates, a few features of which are frequent, and noisy costs."""
    rng = np.random.default_rng(0)
    columns = (rng.zipf(1.3, size=(n_rows, per_row)) - 1) % n_rows
    indptr = np.arange(0, columns.size + 1, per_row)
    X = sp.csr_matrix((np.ones(columns.size), columns.ravel(), indptr), shape=(n_rows, n_rows))
    X.sum_duplicates()
    costs = rng.normal(size=n_rows) - X @ rng.normal(size=n_rows)
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, costs=costs)


def train(path, prediction):
    """Train on the candidates of a file; return what it took, reading included."""
    model = VRDAReranker(max_iter=EPOCHS, l1=1e-4, prediction=prediction, random_state=0)
    model.fit([sp.identity(2, format="csr")] * 2, [0, 1])  # compiles
    before = peak_memory()
    with np.load(path) as kept:
        costs = kept["costs"].reshape(-1, GROUP)
        X = sp.csr_matrix((kept["data"], kept["indices"], kept["indptr"]), shape=[costs.size] * 2)
    batch = SequenceBatch.from_lengths(X, np.full(len(costs), GROUP))
    model.fit(batch, costs)
    return {
        "prediction": prediction,
        "non_zeros": int(batch.X.nnz),
        "data_mib": (batch.X.data.nbytes + batch.X.indices.nbytes + batch.X.indptr.nbytes) / 2**20,
        "peak_mib": peak_memory() - before,
        "seconds": float(np.min(np.diff(model.history_["time"]))),
        "mistakes": model.n_mistakes_,
        "nnz": int(np.count_nonzero(model.coef_)),
    }


def main():
    """Train once; print what it took."""
    print(json.dumps(train(*sys.argv[1:])))


if __name__ == "__main__":
    main()
