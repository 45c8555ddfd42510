"""Estimators and parameters that correspond to the algorithms of CRFsuite."""

import math
from typing import NamedTuple

from joblib.parallel import get_active_backend

from skstruct.crfsuite.online import OnlineCRF
from skstruct.learning.lbfgs import BLIND_STEPS, has_stalled
from skstruct.taggers.crf import CRFTagger
from skstruct.utils.messages import short_repr

_ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}


class Parameter(NamedTuple):
    """A parameter of CRFsuite."""

    theirs: str  # name in python-crfsuite
    default: object  # of the type that values have
    help: str
    rule: tuple = ("", lambda value: True)  # that values keep: in words, and as a function

    @property
    def ours(self):
        """Name in sklearn-crfsuite."""
        return _OTHER_NAMES.get(self.theirs, self.theirs.replace(".", "_"))


_OTHER_NAMES = {
    "feature.minfreq": "min_freq",
    "feature.possible_states": "all_possible_states",
    "feature.possible_transitions": "all_possible_transitions",
    "type": "pa_type",
}
# Twice or three times such a number is finite, too.
_PENALTY = "at least 0 and below 1e300", lambda value: 0 <= value < 1e300
_POSITIVE = "above 0 and below 1e300", lambda value: 0 < value < 1e300
_COUNT = "at least 0", lambda value: value >= 0
# Below zero, it keeps features whose values add up to less than zero.
_MIN_FREQ = Parameter(
    "feature.minfreq",
    0.0,
    "Least frequency of a feature with a weight.",
    ("between -1e300 and 1e300", lambda value: -1e300 < value < 1e300),
)
_VARIANCE = "above 0 and at most 1e100", lambda value: 0 < value <= 1e100
_COMMON = (
    _MIN_FREQ,
    Parameter("feature.possible_states", False, "Weights for all pairs of attribute and label."),
    Parameter("feature.possible_transitions", False, "Weights for all pairs of labels."),
)


def _iterations(default):
    return Parameter("max_iterations", default, "Largest number of iterations.", _COUNT)


_C2 = Parameter("c2", 1.0, "Strength of the L2 penalty.", _PENALTY)
_PERIOD = Parameter("period", 10, "Iterations over which the improvement is measured.")
_LOSS = Parameter("epsilon", 0.0, "Stop when the mean loss is below this.")
_DELTA = "Stop when the objective improves by less than this share."
# Parameters of each algorithm, in the order of CRFsuite.
PARAMETERS = {
    "lbfgs": (
        *_COMMON,
        Parameter("c1", 0.0, "Strength of the L1 penalty.", _PENALTY),
        _C2,
        _iterations(2**31 - 1),
        Parameter("num_memories", 6, "Number of past steps that L-BFGS remembers."),
        Parameter("epsilon", 1e-5, "Stop when the gradient is this small."),
        _PERIOD,
        Parameter("delta", 1e-5, _DELTA, _PENALTY),
        Parameter("linesearch", "MoreThuente", "Line search of L-BFGS."),
        Parameter("max_linesearch", 20, "Largest number of trials of the line search."),
    ),
    "l2sgd": (
        # Every feature has a weight.
        _MIN_FREQ._replace(rule=("0 or less with algorithm='l2sgd'", lambda value: value <= 0)),
        *_COMMON[1:],
        _C2,
        _iterations(1000),
        _PERIOD,
        Parameter("delta", 1e-6, _DELTA, _PENALTY),
        Parameter("calibration.eta", 0.1, "First step size to be tried."),
        Parameter("calibration.rate", 2.0, "Ratio of tried step sizes."),
        Parameter("calibration.samples", 1000.0, "Sequences to try on."),
        Parameter("calibration.candidates", 10, "Step sizes to try."),
        Parameter("calibration.max_trials", 20, "Largest number of them."),
    ),
    "ap": (*_COMMON, _iterations(100), _LOSS),
    "pa": (
        *_COMMON,
        Parameter(
            "type",
            1,
            "0: no slack; 1: linear slack; 2: squared slack.",
            ("0, 1 or 2", lambda value: value in (0, 1, 2)),
        ),
        Parameter("c", 1.0, "Aggressiveness: the larger, the larger the updates.", _POSITIVE),
        Parameter("error_sensitive", True, "The margin grows with the number of wrong labels."),
        Parameter("averaging", True, "Predict with the average of the weights."),
        _iterations(100),
        _LOSS,
    ),
    "arow": (
        *_COMMON,
        Parameter("variance", 1.0, "Variance of every weight at first.", _VARIANCE),
        Parameter("gamma", 1.0, "Regularisation: the larger, the smaller the updates.", _POSITIVE),
        _iterations(100),
        _LOSS,
    ),
}
# CRFsuite stops when the last iterations improved the objective by less than a share `delta`, about
# this many times `delta` above the minimum. A fit that is provably as close stops, too.
_DELTAS_ABOVE_MINIMUM = 3
# With a large `delta`, CRFsuite ends nearer the minimum than that: no fit is further away than this
# share, unless CRFsuite's own rule ends it.
_MOST_ABOVE_MINIMUM = 0.01
# Threads of L-BFGS, and so the parts of its sums: a constant, so that all machines agree.
_THREADS = 2
_NO_LIMIT = 2**31 - 1
# Up to this many iterations, CRFsuite ends further from the minimum than an ascent that has
# settled. After 200 it is .02 to .12 % above the minimum.
_MOST_TO_SETTLE = 100


def algorithm_named(name):
    """Short name of an algorithm; ValueError if the name is unknown."""
    algorithm = str(name).lower()
    algorithm = _ALIASES.get(algorithm, algorithm)
    if algorithm not in PARAMETERS:
        known = ", ".join(map(repr, PARAMETERS))
        raise ValueError(f"algorithm={name!r} is unknown; use one of {known}.")
    return algorithm


def read_value(parameter, value):
    """Value of a parameter, given as a number, bool or text, in the type of its default.

    Raises
    ------
    ValueError
        If it is not a number, not a whole one where it must be, or out of range.
    """
    kind = type(parameter.default)
    if kind is str:
        return str(value)
    text = value.strip().lower() if isinstance(value, str) else value
    try:
        number = {"true": 1.0, "false": 0.0}[text] if text in ("true", "false") else float(text)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    # CRFsuite itself reads other text as 0, and drops decimals.
    if math.isnan(number) or (kind is not float and not number.is_integer()):
        what = {float: "a number", int: "a whole number", bool: "True or False"}[kind]
        raise ValueError(f"{parameter.ours}={short_repr(value)} is not {what}.")
    rule, is_kept = parameter.rule
    if not is_kept(number):
        raise ValueError(f"{parameter.ours}={short_repr(value)} must be {rule}.")
    return kind(number)


def most_iterations(params):
    """Largest number of iterations with the parameters of `CRF`; None if there is no limit."""
    most = make_estimator(params).max_iter
    return None if most == _NO_LIMIT else most


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
        If the algorithm is unknown, or a parameter is not one of its own or its value is invalid.
    """
    algorithm, values = _read(params)
    # CRFsuite prints the numbers of every iteration.
    values["verbose"] = 2 * bool(params.get("verbose"))
    most = values["max_iterations"]
    if algorithm == "lbfgs":
        # If one of its parameters is set, CRFsuite's own rule is followed.
        own_rule = any(params.get(name) is not None for name in ("delta", "period"))
        _, configured = get_active_backend()
        return _make_crf(
            values,
            l1=values["c1"],
            # CRFsuite has no limit where it is 0.
            max_iter=most or _NO_LIMIT,
            stop_when_settled=0 < most <= _MOST_TO_SETTLE and not own_rule,
            n_jobs=_THREADS if configured is None else None,
        )
    if algorithm == "l2sgd" and most > 0:
        return _make_crf(values, solver="sgd", max_iter=most, random_state=0)
    # Without iterations all weights stay zero, whatever the algorithm.
    rule = "ap" if algorithm == "l2sgd" else algorithm
    average = values.get("averaging", rule == "ap")
    return _with_values(
        OnlineCRF(rule=rule, average=average, max_iter=most, random_state=0), values
    )


def stopping_rule(params):
    """Rule by which CRFsuite's L-BFGS stops with these parameters; None for other algorithms.

    Returns
    -------
    is_over : callable or None
        ``is_over(history)`` returns True at the iteration at which CRFsuite would stop.
    """
    algorithm, values = _read(params)
    if algorithm != "lbfgs":
        return None
    period, delta, epsilon = (values[name] for name in ("period", "delta", "epsilon"))

    def is_over(history):
        if history["gradient_norm"][-1] <= epsilon * max(1.0, history["weight_norm"][-1]):
            return True
        # CRFsuite's line search takes long steps from the start. Our steps do not count before
        # the curvature is known: they may be short.
        counted = len(history["objective"]) - BLIND_STEPS
        return 0 < period < counted and has_stalled(history, delta, period)

    return is_over


def _read(params):
    algorithm = params.get("algorithm")
    algorithm = "lbfgs" if algorithm is None else algorithm_named(algorithm)
    own = {parameter.ours: parameter for parameter in PARAMETERS[algorithm]}
    for name in sorted({p.ours for ps in PARAMETERS.values() for p in ps} - set(own)):
        if params.get(name) is not None:
            raise ValueError(
                f"algorithm={algorithm!r} has no parameter {name!r}; leave it at None."
            )
    values = {
        name: parameter.default if params.get(name) is None else read_value(parameter, params[name])
        for name, parameter in own.items()
    }
    return algorithm, values


def _make_crf(values, **settings):
    tol = min(_DELTAS_ABOVE_MINIMUM * values["delta"], _MOST_ABOVE_MINIMUM)
    # `CRFTagger` sums absolute values, so that none is below zero.
    values["min_freq"] = max(values["min_freq"], 0.0)
    tagger = CRFTagger(l2=2.0 * values["c2"], fit_intercept=False, tol=tol, **settings)
    return _with_values(tagger, values)


def _with_values(estimator, values):
    """Set the parameters of an estimator that have the names of CRFsuite's."""
    return estimator.set_params(**{n: values[n] for n in values.keys() & estimator.get_params()})
