"""Estimators and parameters that correspond to the algorithms of CRFsuite."""

from __future__ import annotations

from skstruct.crfsuite.online import OnlineCRF
from skstruct.taggers.crf import CRFTagger

__all__ = ["algorithm_named", "make_estimator", "parameters_of"]

_ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}
_COMMON = {
    "min_freq",
    "all_possible_states",
    "all_possible_transitions",
    "max_iterations",
}
_CALIBRATION = {
    f"calibration_{name}" for name in ("eta", "rate", "samples", "candidates", "max_trials")
}
# Parameters of each algorithm.
_PARAMETERS = {
    "lbfgs": {
        *("c1", "c2", "num_memories", "epsilon", "period", "delta"),
        *("linesearch", "max_linesearch"),
    },
    "l2sgd": {"c2", "period", "delta"} | _CALIBRATION,
    "ap": {"epsilon"},
    "pa": {"pa_type", "c", "error_sensitive", "averaging", "epsilon"},
    "arow": {"variance", "gamma", "epsilon"},
}
_NO_LIMIT = 2**31 - 1
# CRFsuite stops when the last ten iterations improved the objective by less than a share `delta`.
# It is then about this many times `delta` above the minimum.
_DELTAS_ABOVE_MINIMUM = 3


def algorithm_named(name):
    """Short name of an algorithm; ValueError if the name is unknown."""
    algorithm = _ALIASES.get(name.lower(), name.lower())
    if algorithm not in _PARAMETERS:
        known = ", ".join(map(repr, _PARAMETERS))
        raise ValueError(f"algorithm={name!r} is unknown; use one of {known}.")
    return algorithm


def parameters_of(algorithm):
    """Set of the names of an algorithm's parameters."""
    return _PARAMETERS[algorithm] | _COMMON


def make_estimator(params):
    """Unfitted estimator that learns what CRFsuite learns with these parameters.

    Parameters
    ----------
    params : dict
        Parameters of `skstruct.crfsuite.CRF`; None stands for CRFsuite's default.

    Returns
    -------
    estimator : estimator

    Raises
    ------
    ValueError
        If the algorithm is unknown, or a parameter is not one of its own or not supported.
    """
    algorithm = algorithm_named(params.get("algorithm") or "lbfgs")
    for name in sorted(set().union(*_PARAMETERS.values()) - parameters_of(algorithm)):
        if params.get(name) is not None:
            raise ValueError(
                f"algorithm={algorithm!r} has no parameter {name!r}; leave it at None."
            )
    given = {name: value for name, value in params.items() if value is not None}
    if algorithm == "lbfgs":
        return _make_lbfgs(given)
    return _make_sgd(given) if algorithm == "l2sgd" else _make_online(algorithm, given)


def _make_lbfgs(given):
    max_iter = given.get("max_iterations", _NO_LIMIT)
    return CRFTagger(l1=given.get("c1", 0.0), max_iter=max_iter, **_crf_settings(given))


def _make_sgd(given):
    max_iter = given.get("max_iterations", 1000)
    return CRFTagger(solver="sgd", max_iter=max_iter, random_state=0, **_crf_settings(given))


def _crf_settings(given):
    return {
        "l2": 2.0 * given.get("c2", 1.0),
        "min_freq": given.get("min_freq", 0),
        "all_possible_states": bool(given.get("all_possible_states", False)),
        "all_possible_transitions": bool(given.get("all_possible_transitions", False)),
        "fit_intercept": False,
        "tol": _DELTAS_ABOVE_MINIMUM * given.get("delta", 1e-5),
        "verbose": int(given["verbose"]),
    }


def _make_online(algorithm, given):
    names = ("min_freq", "all_possible_states", "all_possible_transitions", "pa_type", "c")
    names += ("error_sensitive", "variance", "gamma", "epsilon")
    return OnlineCRF(
        algorithm=algorithm,
        average=algorithm == "ap" or (algorithm == "pa" and given.get("averaging", True)),
        max_iter=given.get("max_iterations", 100),
        random_state=0,
        verbose=int(given["verbose"]),
        **{name: given[name] for name in names if name in given},
    )
