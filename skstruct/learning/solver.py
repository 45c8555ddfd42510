"""The interface of a solver, and the table of `CRFTagger`'s solvers.

A solver is given a `Model`, returns a `Solution`, and asks a `Watcher` whether to stop.
"""

from collections.abc import Callable
from importlib import import_module
from numbers import Real
from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.chain.kinds import kind_of
from skstruct.decoding import best_labels
from skstruct.input.constraints import Constraint, forbid
from skstruct.input.costs import NO_COST
from skstruct.input.training_set import zero_transition_weights
from skstruct.matrices import read_only


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
        return kind_of(self.order, 1 + self.has_transition_features)

    def _more_shapes(self):
        return self.kind.more_shapes(self.n_labels, self.n_transition_features)

    def zero_chain(self):
        """Weights of zero, minus infinity for labellings that are impossible."""
        k = self.n_labels
        chain = Chain(np.zeros((self.n_features, k)), np.zeros((k, k)), *np.zeros((3, k)))
        for name, shape in self._more_shapes().items():
            of_features = name in self.kind.of_features
            more = zero_transition_weights(shape[0], k) if of_features else np.zeros(shape)
            chain = self.kind(*chain, more)
        return chain if self.possible is None else forbid(chain, self.possible)


class Complaint(NamedTuple):
    """Problem that a solver met.

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
    complaint : Complaint or None
        Text of a `ConvergenceWarning`; None where there is nothing to complain about.
    scale : str or None
        Advice to scale the features, which a tagger adds. It then replaces the remedy.
    reason : {"bound", "gain", "watcher", "settled", "max_iter"} or None
        What ended the fit of "lbfgs": the bound or the gain of ten iterations was small, the
        watcher said so, the stochastic start had settled, or there were no more iterations. None
        where no step decreased the objective, and of other solvers.
    """

    chain: Chain
    history: dict
    n_iter: int
    bound: float | None = None
    n_weights: int | None = None
    complaint: Complaint | None = None
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


def not_converged(n_iter, max_iter, unit, bound, value, tol):
    """Complaint of a solver that ended before it had converged.

    Parameters
    ----------
    n_iter, max_iter : int
        Number of epochs or iterations made, and allowed.
    unit : str
        Name of them.
    bound, value : float
        Bound on the distance from the minimum, and the objective.
    tol : float
        Share of the objective that the bound was to reach.

    Returns
    -------
    complaint : Complaint
    """
    after = f"Did not converge after {n_iter} {unit} (max_iter={max_iter})"
    remedy = "Increase max_iter, tol or l2."
    if n_iter < max_iter:
        # More iterations would not help.
        after += ", as no step decreases the objective any more"
        remedy = "Increase tol or l2."
    distance = ", and the distance from the minimum is unknown"
    # Rounding may put an objective of zero below it.
    if np.isfinite(bound) and value > 0:
        distance = f": bound {bound / value:.2g} > tol {tol:.2g}"
    return Complaint(f"{after}{distance}.", remedy)


# Code of tokens without a label. Labels that training has not seen have codes below it, and count
# as wrong.
_UNKNOWN = -1


class Stopping(NamedTuple):
    """Parameters of early stopping, with values for estimators that do not have it."""

    early_stopping: bool = False
    validation_fraction: float = 0.1
    tol: float | None = 1e-3
    n_iter_no_change: int = 5
    n_jobs: int | None = None


class Watcher:
    """Score a held-out set at every epoch, keep the best weights, and say when to stop.

    It never says so without a held-out set or a figure of merit from the solver.

    Parameters
    ----------
    stopping : Stopping, default=Stopping()
        Parameters of the estimator.
    validation_set : TrainingSet, default=None
        The held-out set. With early stopping and without one, `hold_out` makes it.
    on_prediction : callable, default=None
        Called at every epoch with the labels predicted for the held-out set, an ndarray of codes
        of shape (n_rows,).
    on_epoch : callable, default=None
        ``on_epoch(history, chain)`` is called after every epoch, where ``chain()`` returns the
        weights, and returns True to stop.
    judge : callable, default=None
        ``judge(chain, validation_set)`` returns the score. By default, that is the token accuracy.

    Attributes
    ----------
    best : Chain or None
        Weights of the epoch with the best score; None without early stopping.
    best_entry : int
        Entry of the history that belongs to them.
    """

    def __init__(
        self, stopping=None, validation_set=None, on_prediction=None, on_epoch=None, judge=None
    ):
        self._stopping = Stopping() if stopping is None else stopping
        self._patience = Patience(self._stopping.tol, self._stopping.n_iter_no_change)
        self._on_prediction, self._on_epoch = on_prediction, on_epoch
        self._rank, self._judge_chain, self._judged = None, judge, None
        self.validation_set = validation_set
        self.best, self.best_entry = None, -1

    def hold_out(self, training_set, random_state):
        """Take part of a training set for validation where early stopping needs it.

        Parameters
        ----------
        training_set : TrainingSet
            All sequences.
        random_state : RandomState instance
            Source of the choice; not touched where nothing is held out.

        Returns
        -------
        training_set : TrainingSet
            The sequences to learn from.

        Raises
        ------
        ValueError
            If no sequence would be left to learn from.
        """
        if not self._stopping.early_stopping or self.validation_set is not None:
            return training_set
        counting = training_set.counting()
        fraction = self._stopping.validation_fraction
        n_held = max(1, round(fraction * len(counting)))
        if n_held >= len(counting):
            raise ValueError(
                f"early_stopping with validation_fraction={fraction} leaves no sequence to learn "
                f"from: {len(counting)} in all. Use more sequences or a smaller fraction."
            )
        order = counting[random_state.permutation(len(counting))]
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        self.validation_set = training_set.take(held)
        return training_set.take(kept)

    def renumber_features(self, rank):
        """Renumber the features as the solver does: feature ``f`` becomes ``rank[f]``."""
        self._rank = rank
        data = self.validation_set
        if data is not None:
            rows = read_only(data.rows._replace(indices=rank[data.rows.indices]))
            self.validation_set = data._replace(rows=rows)

    def visit(self, chain, history, merit=None):
        """Score the weights after an epoch, and decide whether to stop.

        Parameters
        ----------
        chain : callable
            Returns the weights; called if there is a held-out set.
        history : History
            Gets the score as ``"validation_score"``.
        merit : float, default=None
            Figure that should grow, for solvers that can stop without a held-out set. Early
            stopping uses the score instead.

        Returns
        -------
        stop : bool
            True if learning is to stop after this epoch.
        """
        stop = self._judge(chain, history, merit)
        if self._on_epoch is None:
            return stop
        return self._on_epoch(history, lambda: self._in_order(chain())) or stop

    def _in_order(self, chain):
        """Weights in the order of the features of the estimator."""
        if self._rank is None:
            return chain
        return chain._replace(weights=chain.weights[self._rank])

    def _score(self, weights):
        data = self.validation_set
        if self._judge_chain is not None:
            return self._judge_chain(self._in_order(weights), self._validation_in_order())
        return token_accuracy(weights, data, self._stopping.n_jobs, self._on_prediction)

    def _validation_in_order(self):
        """Validation set with the features of the estimator, the same one in each call."""
        data = self.validation_set
        if self._rank is not None and self._judged is None:
            indices = np.argsort(self._rank).astype(np.int32)[data.rows.indices]
            self._judged = data._replace(rows=read_only(data.rows._replace(indices=indices)))
        return data if self._rank is None else self._judged

    def _judge(self, chain, history, merit):
        weights = None
        if self.validation_set is not None:
            weights = chain()
            score = self._score(weights)
            history.amend(validation_score=score)
            merit = score if self._stopping.early_stopping else merit
        if merit is None:
            return False
        if self._patience.is_best(merit) and self._stopping.early_stopping:
            self.best, self.best_entry = weights, len(history["epoch"]) - 1
        return self._patience.is_over


class Patience:
    """Count the epochs since a figure improved by more than a tolerance.

    Parameters
    ----------
    tol : float or None
        Least improvement that counts. With None, patience never ends.
    n_iter_no_change : int
        Epochs to wait for an improvement.
    """

    def __init__(self, tol, n_iter_no_change):
        self._tol = tol
        self._n_iter_no_change = n_iter_no_change
        self._best = -np.inf
        self._since = 0

    def is_best(self, merit):
        """Take note of an epoch; return True if it is the best one so far."""
        best = merit > self._best
        self._since = 0 if merit > self._best + (self._tol or 0.0) else self._since + 1
        self._best = max(self._best, merit)
        return best

    @property
    def is_over(self):
        """True when it is time to stop."""
        return self._tol is not None and self._since >= self._n_iter_no_change


def token_accuracy(chain, data, n_jobs, on_prediction=None):
    """Weighted share of the labelled tokens that a chain labels correctly.

    Parameters
    ----------
    chain : Chain
        Weights.
    data : TrainingSet
        Sequences and their gold labels.
    n_jobs : int or None
        Number of threads.
    on_prediction : callable, default=None
        Called with the predicted labels, ndarray of shape (n_rows,).

    Returns
    -------
    accuracy : float
    """
    predicted = best_labels(data.rows, data.offsets, read_only(chain), n_jobs)
    if on_prediction is not None:
        on_prediction(predicted)
    weight = data.weight_of_tokens() * (data.labels != _UNKNOWN)
    return float(np.average(predicted == data.labels, weights=weight))


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
        "l1 no_l2 min_freq constraint label_cost order partial_labels transition_features "
        "validation_set early_stopping settling warm_start bound",
    ),
    "sag": _solver(
        "learning.sag",
        "stochastic average gradient",
        "no_l2 constraint validation_set warm_start bound",
    ),
    "oeg": _solver("learning.oeg", "online exponentiated gradient", "validation_set bound"),
    "sgd": _solver(
        "learning.online",
        "stochastic gradient descent",
        "no_l2 constraint label_cost order partial_labels transition_features validation_set "
        "early_stopping warm_start average structure_alpha mini_length no_tol partial_fit",
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
