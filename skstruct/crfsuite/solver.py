"""The solver "crfsuite": CRFsuite itself, through the package python-crfsuite."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skstruct.crfsuite.chain import chain_from_model
from skstruct.crfsuite.file import decode_model
from skstruct.kernels.chain.scores import Chain, TransitionRows
from skstruct.solvers.base import Solution

__all__ = ["Settings", "solve", "train_with_crfsuite"]

# Attributes that stand for the biases of all, first and last tokens; others are column numbers.
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
        Sequences and codes of labels. The weight of a sequence is how often CRFsuite is given it,
        and so a whole number.
    n_features, n_labels : int
        Size of the model.
    l1, l2 : float
        Strengths of the penalties, ours: CRFsuite's ``c2`` is half of `l2`.
    min_freq, all_possible_states, all_possible_transitions : object
        As of `CRFTagger`.
    fit_intercept : bool, default=False
        Whether there are biases, of which CRFsuite has those that occur: it is given an
        attribute for each.
    max_iter : int, default=1000
        Most iterations.
    tol : float, default=1e-4
        CRFsuite stops when ten iterations brought the objective down by less than a third of this
        share; that is about where it is within this share of its minimum.
    verbose : int, default=0
        Whether CRFsuite prints its messages.

    Returns
    -------
    solution : Solution

    Raises
    ------
    ImportError
        If python-crfsuite is not installed.
    ValueError
        If the weight of a sequence is no whole number, or transitions have features.
    """
    if isinstance(training_set.rows, TransitionRows):
        raise ValueError("solver='crfsuite' does not support transition features.")
    try:
        from pycrfsuite import Trainer
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
        # CRFsuite writes models to files and nowhere else.
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
    """Give CRFsuite the sequences, with columns and codes for names."""
    rows, offsets, labels = training_set.rows, training_set.offsets, training_set.labels
    names = [str(column) for column in range(n_features)]
    values = rows.data.tolist() if rows.data.size else [1.0] * len(rows.indices)
    columns, ends = rows.indices.tolist(), rows.indptr.tolist()
    for (first, last), weight in zip(
        pairwise(offsets.tolist()), training_set.sample_weight.tolist(), strict=True
    ):
        if weight != int(weight):
            raise ValueError(
                f"A sequence has the weight {weight}; solver='crfsuite' takes whole numbers only."
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
    """The weights in a model whose names are columns and codes."""
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
    # Copies, so that the large array does not stay alive for the sake of the small ones.
    biases = chain.weights[n_features:].copy()
    return Chain(chain.weights[:n_features], chain.transition, *biases)


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
