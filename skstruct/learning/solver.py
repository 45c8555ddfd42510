"""The interface of a solver, and the table of `CRFTagger`'s solvers.

A solver is given a `Model`, returns a `Solution`, and tells a
`Monitor` of every epoch, which says when to stop.
"""

from collections.abc import Callable
from importlib import import_module
from numbers import Real
from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.chain.kinds import kind_of
from skstruct.input.constraints import Constraint, forbid
from skstruct.input.costs import NO_COST
from skstruct.input.training_set import zero_transition_weights


class Model(NamedTuple):
    """Size of a model, and the labellings that it allows.

    Attributes
    ----------
    n_features, n_labels : int
        Number of features and of labels.
    n_transition_features : int or None
        Number of transition features; None where transitions have none.
    possible : Constraint or None
        Labels that may follow each other, come first and last; None allows all.
    order : int
        2 if triples of labels have weights, too, else 1.
    cost : ndarray of shape (n_labels, n_labels) or (0, 0)
        Cost of each label, the column, in place of each gold label while learning; empty if there
        is none.
    """

    n_features: int
    n_labels: int
    n_transition_features: int | None = None
    possible: Constraint | None = None
    order: int = 1
    cost: np.ndarray = NO_COST

    @property
    def has_transition_features(self):
        return self.n_transition_features is not None

    def without_features(self):
        """The same kind of model without any feature."""
        none = 0 if self.has_transition_features else None
        return self._replace(n_features=0, n_transition_features=none)

    @property
    def kind(self):
        """Class of the weights; None if there is no such chain."""
        return kind_of(self.order, 1 + self.has_transition_features)

    def zero_chain(self):
        """Weights of zero, minus infinity for labellings that are impossible."""
        k, kind = self.n_labels, self.kind
        parts = [np.zeros((self.n_features, k)), np.zeros((k, k)), *np.zeros((3, k))]
        for name, shape in kind.more_shapes(k, self.n_transition_features).items():
            of_features = name in kind.of_features
            parts.append(zero_transition_weights(shape[0], k) if of_features else np.zeros(shape))
        chain = kind(*parts)
        return chain if self.possible is None else forbid(chain, self.possible)


class Notice(NamedTuple):
    """What a solver tells the user, such as that it has not converged.

    Attributes
    ----------
    fact : str
        Sentence on what has happened.
    remedy : str
        Sentence on what the user can do; empty where nothing can be said.
    """

    fact: str
    remedy: str = ""


class Solution(NamedTuple):
    """Weights that a solver has found, and how it found them.

    Attributes
    ----------
    chain : Chain
        The weights.
    history : dict of ndarray
        Columns of ``history_``, one entry an epoch.
    n_iter : int
        Number of epochs or iterations.
    bound : float or None
        The objective is at most this far above its minimum; None where that is unknown.
    n_weights : int or None
        Number of weights of the model; None where the solver does not count them.
    notice : Notice or None
        Text of a `ConvergenceWarning`; None where there is none.
    scale : str or None
        Advice to scale the features, which a tagger adds. It then replaces the remedy.
    reason : {"bound", "gain", "monitor", "settled", "max_iter"} or None
        What ended the fit of "lbfgs": the bound or the gain of ten iterations was small, the
        monitor said so, the stochastic start had settled, or there were no more iterations. None
        where no step decreased the objective, and of other solvers.
    """

    chain: Chain
    history: dict
    n_iter: int
    bound: float | None = None
    n_weights: int | None = None
    notice: Notice | None = None
    scale: str | None = None
    reason: str | None = None


def settings_of(kind, estimator):
    """Collect the parameters of an estimator that a record of settings has fields for.

    Parameters
    ----------
    kind : type
        A NamedTuple. Its defaults stand for parameters that the estimator does not have.
    estimator : estimator
        Source of the values.

    Returns
    -------
    settings : kind
    """
    params = estimator.get_params(deep=False)
    return kind(**{name: params[name] for name in kind._fields if name in params})


def not_converged(n_iter, unit, bound, value, settings):
    """Notice of a solver that ended before it had converged.

    Parameters
    ----------
    n_iter : int
        Number of epochs or iterations.
    unit : str
        Name of them.
    bound, value : float
        Bound on the distance from the minimum, and the objective.
    settings : Settings
        With `max_iter`, and `tol`, the share of the objective that the bound was to reach.

    Returns
    -------
    notice : Notice
    """
    after = f"Did not converge after {n_iter} {unit} (max_iter={settings.max_iter})"
    remedy = "Increase max_iter, tol or l2."
    if n_iter < settings.max_iter:
        # More iterations would not help.
        after += ", as no step decreases the objective any more"
        remedy = "Increase tol or l2."
    distance = ", and the distance from the minimum is unknown"
    # Rounding may put an objective of zero below it.
    if np.isfinite(bound) and value > 0:
        distance = f": bound {bound / value:.2g} > tol {settings.tol:.2g}"
    return Notice(f"{after}{distance}.", remedy)


# The solvers of `CRFTagger`, and what each of them supports. Parameter checks, error messages and
# the table in the user guide are made from these two tables, so a new solver needs one entry here
# and one module. Modules are imported by name, since all import this one.


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
    "learn_scheme": Ability("labels of another scheme", "learn_scheme"),
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
    """An entry of `SOLVERS`.

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


def _solver(module, method, supports):
    return Solver(f"skstruct.{module}", method, frozenset(supports.split()))


SOLVERS = {
    "lbfgs": _solver(
        "learning.lbfgs",
        "limited-memory BFGS",
        "l1 no_l2 min_freq constraint learn_scheme label_cost order partial_labels "
        "transition_features validation_set early_stopping settling warm_start bound",
    ),
    "sag": _solver(
        "learning.sag",
        "stochastic average gradient",
        "no_l2 constraint learn_scheme validation_set warm_start bound",
    ),
    "oeg": _solver("learning.oeg", "online exponentiated gradient", "validation_set bound"),
    "sgd": _solver(
        "learning.online",
        "stochastic gradient descent",
        "no_l2 constraint learn_scheme label_cost order partial_labels transition_features "
        "validation_set early_stopping warm_start average structure_alpha mini_length no_tol "
        "partial_fit",
    ),
    "crfsuite": _solver(
        "crfsuite.solver",
        "L-BFGS of CRFsuite, by python-crfsuite",
        "l1 no_l2 min_freq warm_start",
    ),
}


def load(solver):
    return import_module(SOLVERS[solver].module)


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
