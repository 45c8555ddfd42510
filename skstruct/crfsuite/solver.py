"""The solver "crfsuite": CRFsuite itself, through the package python-crfsuite."""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.crfsuite.file import decode_model
from skstruct.crfsuite.model import chain_from_model
from skstruct.learning.solver import Notice, Solution
from skstruct.utils.messages import DataError

# Attributes are named by numbers: of columns, and three more, for the biases of all, first
# and last tokens.
_N_BIASES = 3


class Settings(NamedTuple):
    """Parameters of `CRFTagger` that the solver reads."""

    l1: float
    l2: float
    min_freq: float
    all_possible_states: bool
    all_possible_transitions: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    verbose: int


def solve(training_set, model, settings, start, monitor):
    """Learn as `skstruct.learning.solver` says; CRFsuite starts from zero and is not watched.

    CRFsuite gets a sequence as many times as its weight says, which has to be a whole number.
    Biases are weights of three attributes, and labels that these do not occur with have none.
    CRFsuite stops when the last ten iterations improved the objective by less than a third of
    `tol`; the objective is then within about `tol` of its minimum. It takes vectors as sparse
    columns only.
    """
    training_set = training_set.without_blocks()
    if len(training_set.rows.sets()) > 1:
        raise ValueError("solver='crfsuite' does not support transition features.")
    try:
        from pycrfsuite import Trainer  # optional
    except ImportError:
        raise ImportError(
            "solver='crfsuite' needs python-crfsuite: pip install python-crfsuite."
        ) from None
    trainer = Trainer(algorithm="lbfgs", verbose=bool(settings.verbose))
    trainer.set_params(
        {
            "feature.minfreq": float(settings.min_freq),
            "feature.possible_states": bool(settings.all_possible_states),
            "feature.possible_transitions": bool(settings.all_possible_transitions),
            "c1": float(settings.l1),
            "c2": settings.l2 / 2,
            "max_iterations": int(settings.max_iter),
            "epsilon": 0.0,
            "delta": settings.tol / 3,
        }
    )
    n_features, n_labels = model.n_features, model.n_labels
    _append(trainer, training_set, n_features, settings.fit_intercept)
    with tempfile.TemporaryDirectory() as folder:
        # CRFsuite can write a model only to a file.
        path = Path(folder) / "model.crfsuite"
        trainer.train(str(path))
        data = path.read_bytes()
    log, notice = trainer.logparser, None
    n_iter = len(log.iterations)
    if any("maximum number of iterations" in line for line in log.log):
        fact = f"Did not converge after {n_iter} iterations (max_iter={settings.max_iter})."
        notice = Notice(fact, "Increase max_iter, tol or l2.")
    return Solution(
        _read_chain(data, n_features, n_labels),
        _history(log.iterations),
        n_iter,
        n_weights=log.featgen_num_features or 0,
        notice=notice,
    )


def _append(trainer, training_set, n_features, fit_intercept):
    """Append the sequences to the trainer, with columns and codes as names."""
    rows, offsets, labels = training_set.rows, training_set.offsets, training_set.labels
    names = [str(number) for number in range(n_features + _N_BIASES)]
    every, first_bias, last_bias = names[n_features:]
    values = rows.data.tolist() if rows.data.size else [1.0] * len(rows.indices)
    columns, ends = rows.indices.tolist(), rows.indptr.tolist()
    weights = training_set.sample_weight.tolist()
    for i, (first, last) in enumerate(pairwise(offsets.tolist())):
        weight = weights[i]
        if weight != int(weight):
            raise DataError(
                f"{{place}} has the weight {weight}; solver='crfsuite' supports only whole "
                "numbers. Use another solver, or round the weights.",
                i,
            )
        if last == first or weight == 0:
            continue
        items = [
            {names[c]: v for c, v in zip(columns[a:b], values[a:b], strict=True)}
            for a, b in pairwise(ends[first : last + 1])
        ]
        if fit_intercept:
            for item in items:
                item[every] = 1.0
            items[0][first_bias] = items[-1][last_bias] = 1.0
        for _ in range(int(weight)):
            trainer.append(items, [str(code) for code in labels[first:last].tolist()])


def _read_chain(data, n_features, n_labels):
    """Weights of a model in which columns and codes are the names."""
    model = decode_model(data)
    columns, codes = (np.array(x, dtype=int) for x in (model.attributes, model.labels))
    shape = n_features + _N_BIASES, n_labels
    chain = chain_from_model(model, columns, codes, shape, max_bytes=np.inf)
    # Copies, because views would keep the large array alive.
    biases = chain.weights[n_features:].copy()
    return Chain(chain.weights[:n_features], chain.transition, *biases)


def _history(iterations):
    history = {"epoch": np.array([entry["num"] for entry in iterations], np.int64)}
    history["time"] = np.cumsum([entry.get("time", 0.0) for entry in iterations])
    ours = "objective", "gradient_norm", "weight_norm"
    for name, theirs in zip(ours, ("loss", "error_norm", "feature_norm"), strict=True):
        history[name] = np.array([entry.get(theirs, np.nan) for entry in iterations])
    return history
