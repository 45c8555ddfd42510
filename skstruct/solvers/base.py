"""The interface of a solver: what it is given, and what it returns.

A solver is a module with two names::

    class Settings(NamedTuple):
        ...     # the parameters of the estimator that the solver reads

    def solve(training_set, model, settings, start, watcher) -> Solution:
        ...     # learn the weights

`solve` gets a `TrainingSet`, the `Model` that says which weights to learn, its `Settings`, the
`Chain` to start from (None for zero) and a `Watcher`. It may let go of the training set before it
returns: nobody else holds it. It calls ``watcher.visit`` once an epoch, and stops when that returns
True. It raises nothing but ValueError and MemoryError for input that it cannot learn from, and
leaves warnings to its caller, in ``Solution.complaint``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skstruct import kernels
from skstruct.input.constraints import forbid
from skstruct.input.training_set import zero_transition_weights
from skstruct.utils.memory import require_memory

if TYPE_CHECKING:
    from skstruct.input.constraints import Constraint

__all__ = ["Complaint", "Model", "Solution", "not_converged", "settings_of"]


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
    """

    n_features: int
    n_labels: int
    n_transition_features: int | None = None
    possible: Constraint | None = None
    order: int = 1

    @property
    def has_transition_features(self):
        """True if transitions have features."""
        return self.n_transition_features is not None

    def without_features(self):
        """The same kind of model without any feature."""
        none = 0 if self.has_transition_features else None
        return self._replace(n_features=0, n_transition_features=none)

    def zero_chain(self):
        """Weights of zero, minus infinity for labellings that are impossible."""
        k = self.n_labels
        chain = kernels.Chain(np.zeros((self.n_features, k)), np.zeros((k, k)), *np.zeros((3, k)))
        if self.has_transition_features:
            weights = zero_transition_weights(self.n_transition_features, k)
            chain = kernels.TransitionChain(*chain, weights)
        elif self.order == 2:
            chain = kernels.SecondOrderChain(*chain, np.zeros((k * k, k)))
        return chain if self.possible is None else forbid(chain, self.possible)

    def require_memory(self, copies, tables, advice=""):
        """Raise an error unless there is memory for the weights.

        Parameters
        ----------
        copies : int
            Number of times that the weights are stored, with averages and gradients.
        tables : int
            Number of further matrices of transitions.
        advice : str, default=""
            Sentence on parameters that need less.

        Raises
        ------
        MemoryError
            If there is not; it says how many bytes are needed, and what needs less.
        """
        k = self.n_labels
        n_transition_features = self.n_transition_features or 0
        features = f"{self.n_features:,} features"
        if n_transition_features:
            features += f", {n_transition_features:,} transition features"
        n_weights = self.n_features * k + k * k * (1 + n_transition_features)
        if self.order == 2:
            features += ", triples"
            n_weights += k**3
            advice = f"order=1 needs less. {advice}"
        require_memory(
            8 * (copies * n_weights + tables * k * k),
            f"The weights of {features} and {k:,} labels, stored {copies} "
            f"{'time' if copies == 1 else 'times'},",
            "Use fewer features (min_freq of a vectorizer, or a hashing vectorizer) or fewer "
            f"labels. {advice}".strip(),
        )


class Complaint(NamedTuple):
    """What a solver is not content with.

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
    """

    chain: kernels.Chain
    history: dict
    n_iter: int
    bound: float | None = None
    n_weights: int | None = None
    complaint: Complaint | None = None
    scale: str | None = None


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
