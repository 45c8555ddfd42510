"""Training on a million candidates with a million features: seconds an epoch, and memory.

Every training is a process of its own, which reads the candidates from a file, so that its peak
memory is that of reading and training, and not of making the data.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from skstruct import SequenceBatch
from skstruct.rerankers.vrda import VRDAReranker

N_ROWS = N_FEATURES = 1_000_000
GROUP = 50
EPOCHS = 5
PER_ROW = (5, 10, 20, 40)
PREDICTIONS = ("last", "average", "vote")


def measure_scale(results):
    """Measure all sizes and ways to predict; keep them in the results folder."""
    lines = []
    for per_row in PER_ROW:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "candidates.npz"
            write_candidates(path, per_row)
            for prediction in PREDICTIONS:
                command = [sys.executable, __file__, str(path), prediction]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                lines.append({"per_row": per_row, **json.loads(done.stdout)})
                print(lines[-1], flush=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (results / "scale.jsonl").write_text(text, encoding="utf-8")


def write_candidates(path, per_row):
    """Random candidates, a few features of which are frequent, and noisy costs."""
    rng = np.random.default_rng(0)
    columns = (rng.zipf(1.3, size=(N_ROWS, per_row)) - 1) % N_FEATURES
    indptr = np.arange(0, columns.size + 1, per_row)
    X = sp.csr_matrix((np.ones(columns.size), columns.ravel(), indptr), shape=(N_ROWS, N_FEATURES))
    X.sum_duplicates()
    costs = rng.normal(size=N_ROWS) - X @ rng.normal(size=N_FEATURES)
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, costs=costs)


def train(path, prediction):
    """Train on the candidates of a file; return what it took, reading included."""
    model = VRDAReranker(max_iter=EPOCHS, l1=1e-4, prediction=prediction, random_state=0)
    model.fit([sp.identity(2, format="csr")] * 2, [0, 1])  # compiles
    before = peak_memory()
    with np.load(path) as kept:
        X = sp.csr_matrix(
            (kept["data"], kept["indices"], kept["indptr"]), shape=(N_ROWS, N_FEATURES)
        )
        costs = kept["costs"].reshape(-1, GROUP)
    batch = SequenceBatch.from_lengths(X, np.full(N_ROWS // GROUP, GROUP))
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


def peak_memory():
    """Most memory, in MiB, that the process has had; Linux only."""
    # What getrusage says includes the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 2**10


if __name__ == "__main__":
    print(json.dumps(train(*sys.argv[1:])))
