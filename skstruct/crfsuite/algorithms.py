"""Estimators and parameters that correspond to the algorithms of CRFsuite."""

from __future__ import annotations

from skstruct.taggers.crf import CRFTagger
from skstruct.taggers.mira import MIRATagger
from skstruct.taggers.perceptron import PerceptronTagger

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
# Larger than the size of any update.
_UNLIMITED = 1e12
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
    if algorithm == "arow":
        raise ValueError(
            "algorithm='arow' is not supported. algorithm='pa' is the most similar one, and "
            "algorithm='lbfgs' is usually better."
        )
    given = {name: value for name, value in params.items() if value is not None}
    make = {"lbfgs": _make_lbfgs, "l2sgd": _make_sgd, "ap": _make_perceptron, "pa": _make_mira}
    return make[algorithm](given)


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


def _make_perceptron(given):
    return PerceptronTagger(**_online_settings(given))


def _make_mira(given):
    kind = given.get("pa_type", 1)
    if kind not in (0, 1):
        raise ValueError(f"pa_type={kind!r} is not supported; use 0 or 1.")
    return MIRATagger(
        C=given.get("c", 1.0) if kind == 1 else _UNLIMITED,
        cost="hamming" if given.get("error_sensitive", True) else "zero_one",
        average=bool(given.get("averaging", True)),
        **_online_settings(given),
    )


def _online_settings(given):
    if given.get("min_freq", 0) > 0:
        raise ValueError("min_freq is only supported with algorithm='lbfgs' and 'l2sgd'.")
    return {
        "fit_intercept": False,
        "max_iter": given.get("max_iterations", 100),
        # CRFsuite makes all passes, too.
        "tol": None,
        "random_state": 0,
        "verbose": int(given["verbose"]),
    }
