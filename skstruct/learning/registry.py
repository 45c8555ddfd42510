"""The solvers of `CRFTagger`, and what each of them supports.

Parameter checks, error messages and the table in the user guide are made from these two tables, so
a new solver needs one entry here and one module (see `skstruct.learning.solver`). Modules are
imported by name, since some belong to a higher layer.
"""

from collections.abc import Callable
from importlib import import_module
from numbers import Real
from typing import NamedTuple


def _is_given(value):
    return value is not None


class Ability(NamedTuple):
    """Something that only some solvers support.

    Attributes
    ----------
    title : str
        Row of the table in the guide.
    parameter : str or None
        Parameter of the estimator that asks for it; None where the data do.
    is_asked_for : callable
        Returns True for values of the parameter that need it; by default, all but None.
    """

    title: str
    parameter: str | None = None
    is_asked_for: Callable = _is_given


def _but(neutral):
    """Function that returns True for any value but one."""
    return lambda value: value != neutral


ABILITIES = {
    "l1": Ability("L1 penalty", "l1", _but(0)),
    "no_l2": Ability("no L2 penalty (``l2=0``)", "l2", lambda value: value == 0),
    "min_freq": Ability("minimum frequency of features", "min_freq", _but(0)),
    "constraint": Ability("constraint on labellings", "constraint"),
    "label_cost": Ability("cost of wrong labels", "label_cost"),
    "order": Ability("second order (``order=2``)", "order", _but(1)),
    "partial_labels": Ability("partly labelled sequences"),
    "transition_features": Ability("transition features"),
    "validation_set": Ability("validation set (``X_val``, ``y_val``)"),
    "early_stopping": Ability("early stopping", "early_stopping", _but(False)),
    "settling": Ability("stop near the minimum", "stop_when_settled", _but(False)),
    "warm_start": Ability("warm start", "warm_start", _but(False)),
    "average": Ability("averaged weights", "average", _but(False)),
    "structure_alpha": Ability("structure regularisation", "structure_alpha", _but(1)),
    "mini_length": Ability("structure regularisation by length", "mini_length"),
    "no_tol": Ability("fixed number of epochs (``tol=None``)", "tol", lambda value: value is None),
    "partial_fit": Ability("``partial_fit``"),
    "bound": Ability("bound on the distance from the minimum"),
}


class Solver(NamedTuple):
    """An entry of the registry.

    Attributes
    ----------
    module : str
        Module with `Settings` and `solve`.
    method : str
        Name of the method, for the guide.
    supports : frozenset of str
        Keys of `ABILITIES`.
    """

    module: str
    method: str
    supports: frozenset


def _solver(module, method, *abilities):
    return Solver(f"skstruct.{module}", method, frozenset(abilities))


SOLVERS = {
    "lbfgs": _solver(
        "learning.lbfgs",
        "limited-memory BFGS",
        *("l1", "no_l2", "min_freq", "constraint", "label_cost", "order", "partial_labels"),
        *("transition_features", "validation_set", "early_stopping", "settling", "warm_start"),
        "bound",
    ),
    "sag": _solver(
        "learning.sag",
        "stochastic average gradient",
        *("no_l2", "constraint", "validation_set", "warm_start", "bound"),
    ),
    "oeg": _solver("learning.oeg", "online exponentiated gradient", "validation_set", "bound"),
    "sgd": _solver(
        "learning.online",
        "stochastic gradient descent",
        *("no_l2", "constraint", "label_cost", "order", "partial_labels", "transition_features"),
        *(
            "validation_set",
            "early_stopping",
            "warm_start",
            "average",
            "structure_alpha",
            "mini_length",
            "no_tol",
        ),
        "partial_fit",
    ),
    "crfsuite": _solver(
        "crfsuite.solver",
        "L-BFGS of CRFsuite, by python-crfsuite",
        *("l1", "no_l2", "min_freq", "warm_start"),
    ),
}


def load(solver):
    """Module of a solver."""
    return import_module(SOLVERS[solver].module)


def load_all():
    """Import the modules of all solvers, so that no fit imports one."""
    for solver in SOLVERS:
        load(solver)


def require(solver, ability, what):
    """Raise a ValueError that names the solvers to take, unless this one supports an ability.

    Parameters
    ----------
    solver : str
        Key of `SOLVERS`.
    ability : str
        Key of `ABILITIES`.
    what : str
        Subject of the message: what the caller asked for.
    """
    if ability in SOLVERS[solver].supports:
        return
    able = [repr(name) for name in solvers_with(ability)]
    verb = "need" if " and " in what else "needs"
    raise ValueError(f"{what} {verb} solver={_either(able)}, not {solver!r}.")


def solvers_with(ability):
    """Names of the solvers that support an ability."""
    return [name for name, entry in SOLVERS.items() if ability in entry.supports]


def check_parameters(solver, params):
    """Raise a ValueError for a parameter that asks for more than a solver supports.

    Parameters
    ----------
    solver : str
        Key of `SOLVERS`.
    params : dict
        Parameters of the estimator.
    """
    for name, ability in ABILITIES.items():
        if ability.parameter is not None and ability.is_asked_for(params[ability.parameter]):
            value = params[ability.parameter]
            is_short = value is None or isinstance(value, (str, Real))
            what = f"{ability.parameter}={value!r}" if is_short else ability.parameter
            require(solver, name, what)


def support_table():
    """Rows of the table in the guide: a title, and for each solver True or False."""
    return [
        (ability.title, *(name in solver.supports for solver in SOLVERS.values()))
        for name, ability in ABILITIES.items()
    ]


def _either(names):
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
