"""The solver "crfsuite": CRFsuite itself, through the package python-crfsuite."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skstruct import kernels
from skstruct.crfsuite.chain import chain_from_model
from skstruct.crfsuite.file import decode_model
from skstruct.solvers.base import Solution

__all__ = ["Settings", "solve", "train_with_crfsuite"]

# Attributes for the biases of all, first and last tokens. The others are column numbers.
_BIASES = ("all", "first", "last")


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


def solve(training_set, model, settings, start, watcher):
    """Learn as `skstruct.solvers.base` says; CRFsuite starts from zero and is not watched."""
    size = model.n_features, model.n_labels
    return train_with_crfsuite(training_set, *size, **settings._asdict())


def train_with_crfsuite(
    training_set,
    n_features,
    n_labels,
    *,
    l1=0.0,
    l2=1.0,
    min_freq=0,
    all_possible_states=False,
    all_possible_transitions=False,
    fit_intercept=False,
    max_iter=1000,
    tol=1e-4,
    verbose=0,
):
    """Train with CRFsuite's L-BFGS.

    Parameters
    ----------
    training_set : TrainingSet
        Sequences and codes of labels. Weights of sequences must be whole numbers: CRFsuite gets
        a sequence as many times as its weight says.
    n_features, n_labels : int
        Numbers of features and labels.
    l1, l2 : float
        Strengths of the penalties, as in `CRFTagger`. CRFsuite's ``c2`` is half of `l2`.
    min_freq, all_possible_states, all_possible_transitions : object
        As in `CRFTagger`.
    fit_intercept : bool, default=False
        If True, learn biases, by an attribute for each. CRFsuite has only those that occur.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-4
        Stop when the last ten iterations improved the objective by less than a third of this share.
        The objective is then about within this share of its minimum.
    verbose : int, default=0
        If positive, CRFsuite prints its messages.

    Returns
    -------
    solution : Solution

    Raises
    ------
    ImportError
        If python-crfsuite is not installed.
    ValueError
        If the weight of a sequence is not a whole number, or X has transition features.
    """
    if isinstance(training_set.rows, kernels.TransitionRows):
        raise ValueError("solver='crfsuite' does not support transition features.")
    try:
        from pycrfsuite import Trainer  # optional
    except ImportError:
        raise ImportError(
            "solver='crfsuite' needs python-crfsuite: pip install python-crfsuite."
        ) from None
    trainer = Trainer(algorithm="lbfgs", verbose=bool(verbose))
    trainer.set_params(
        {
            "feature.minfreq": float(min_freq),
            "feature.possible_states": bool(all_possible_states),
            "feature.possible_transitions": bool(all_possible_transitions),
            "c1": float(l1),
            "c2": l2 / 2,
            "max_iterations": int(max_iter),
            "epsilon": 0.0,
            "delta": tol / 3,
        }
    )
    _append(trainer, training_set, n_features, fit_intercept)
    with tempfile.TemporaryDirectory() as folder:
        # CRFsuite can write a model only to a file.
        path = Path(folder) / "model.crfsuite"
        trainer.train(str(path))
        data = path.read_bytes()
    log = trainer.logparser
    return Solution(
        _read_chain(data, n_features, n_labels),
        _history(log.iterations),
        len(log.iterations),
        n_weights=log.featgen_num_features or 0,
    )


def _append(trainer, training_set, n_features, fit_intercept):
    """Append the sequences to the trainer, with columns and codes as names."""
    rows, offsets, labels = training_set.rows, training_set.offsets, training_set.labels
    names = [str(column) for column in range(n_features)]
    values = rows.data.tolist() if rows.data.size else [1.0] * len(rows.indices)
    columns, ends = rows.indices.tolist(), rows.indptr.tolist()
    weights = training_set.sample_weight.tolist()
    for i, (first, last) in enumerate(pairwise(offsets.tolist())):
        weight = weights[i]
        if weight != int(weight):
            raise ValueError(
                f"Sequence {i} has the weight {weight}; solver='crfsuite' supports only whole "
                "numbers. Use another solver, or round the weights."
            )
        if last == first or weight == 0:
            continue
        items = [
            {names[c]: v for c, v in zip(columns[a:b], values[a:b], strict=True)}
            for a, b in pairwise(ends[first : last + 1])
        ]
        if fit_intercept:
            for item in items:
                item["all"] = 1.0
            items[0]["first"] = items[-1]["last"] = 1.0
        for _ in range(int(weight)):
            trainer.append(items, [str(code) for code in labels[first:last].tolist()])


def _read_chain(data, n_features, n_labels):
    """Weights of a model in which columns and codes are the names."""
    model = decode_model(data)
    number_of = {name: n_features + k for k, name in enumerate(_BIASES)}
    columns = [number_of[name] if name in number_of else int(name) for name in model.attributes]
    codes = [int(name) for name in model.labels]
    chain = chain_from_model(
        model,
        np.array(columns, np.int64),
        np.array(codes, np.int64),
        (n_features + len(_BIASES), n_labels),
        max_bytes=np.inf,
    )
    # Copies, because views would keep the large array alive.
    biases = chain.weights[n_features:].copy()
    return kernels.Chain(chain.weights[:n_features], chain.transition, *biases)


def _history(iterations):
    columns = {
        "objective": "loss",
        "gradient_norm": "error_norm",
        "weight_norm": "feature_norm",
    }
    history = {"epoch": np.array([entry["num"] for entry in iterations], np.int64)}
    history["time"] = np.cumsum([entry.get("time", 0.0) for entry in iterations])
    for ours, theirs in columns.items():
        history[ours] = np.array([entry.get(theirs, np.nan) for entry in iterations])
    return history
