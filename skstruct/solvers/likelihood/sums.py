"""Sums over sequences: the likelihood of a CRF, its gradient, and the diagonal of its Hessian.

Penalty and pinned positions are left to the objective: these sums can be taken anywhere, part by
part of the training set.
"""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.decoding import list_transitions
from skstruct.solvers.layout import squared, sum_of_squares
from skstruct.utils.sparse import count_bytes, read_only, writable

__all__ = ["Likelihood"]


class Likelihood:
    """``sum_i s_i nll_i(w)``, as a function of one parameter vector.

    Parameters
    ----------
    features : StateFeatures or TransitionStateFeatures
        The tokens, with positions in the vector for features.
    training_set : TrainingSet
        Sequences with a positive weight, whose rows are those tokens.
    shape : VectorShape
        Parts of the vector.
    transition : ndarray of bool of shape (n_labels, n_labels)
        Transitions with a weight.
    partial : bool
        True if some labels may be unknown. The likelihood is then that of all labellings that agree
        with the known ones.

    Attributes
    ----------
    shape, partial : object
        As given.
    """

    def __init__(self, features, training_set, shape, transition, partial):
        self.features = features
        self.offsets, self.labels = training_set.offsets, training_set.labels
        self.sample_weight = training_set.sample_weight
        self.shape, self.partial = shape, partial
        self._vectors = []
        self.listed = None
        if shape.may_list and not partial:
            size = shape.cuts[-1] + 3 * shape.n_labels
            zero = shape.constrained(np.zeros(size)).transition
            self.listed = list_transitions(zero, "sums", transition)

    def first_order(self, vector):
        """The same without triples, for a vector of first order."""
        return Likelihood(self.features, self, vector.shape, vector.transition, self.partial)

    def with_list(self, chain):
        """Weights of a chain with listed transitions if that pays, else the same."""
        return chain if self.listed is None else kernels.list_chain(chain, self.listed)

    def value_and_gradient(self, theta, out, run):
        """Likelihood at `theta`; its gradient is written into `out`.

        Parameters
        ----------
        theta : ndarray of shape (size,)
            Parameters.
        out : ndarray of shape (size,)
            Receives the gradient.
        run : callable
            From `skstruct.utils.parallel.range_runner`.

        Returns
        -------
        values : list of float
            Terms of the likelihood, in the order of the sequences.
        """
        return self._sum_over_ranges(self._nll(theta, self.features, False), out, run)

    def curvature(self, theta, out, run):
        """Estimate the diagonal of the Hessian at `theta`; parameters as of the gradient."""
        self._sum_over_ranges(self._nll(theta, squared(self.features), True), out, run)

    def _nll(self, theta, counted, curved):
        """Function that adds the gradient, or the curvature, of a range of sequences."""
        chain, features = self.with_list(self.shape.constrained(theta)), self.features
        labels, weight = self.labels, self.sample_weight
        # The curvature does not depend on labels.
        partial = True if self.partial and not curved else None

        def nll(first, last, out):
            tokens = features, counted, self.offsets, first, last, labels
            return kernels.nll_gradient(*tokens, partial, weight, chain, curved, out)

        return nll

    def _sum_over_ranges(self, function, out, run):
        """Run ``function(first, last, vector)`` on all ranges; the vectors' sum goes to `out`."""
        # The first range writes into the result; each other range has a vector of its own.
        if len(self._vectors) != run.n_ranges - 1:
            self._vectors = [np.empty(len(out)) for _ in range(run.n_ranges - 1)]
        vectors = [out, *self._vectors]
        for vector in vectors:
            vector[:] = 0.0

        def on_range(number, first, last):
            return function(first, last, self.shape.split(vectors[number]))

        results = run(on_range)
        for vector in self._vectors:
            out += vector
        return results

    def __getstate__(self):
        # Without what the last call has left.
        listed = self.listed
        if listed is not None:
            listed = listed._replace(score=np.zeros_like(listed.score))
        return {**vars(self), "listed": listed, "_vectors": []}

    def __setstate__(self, state):
        vars(self).update(state)
        # Arrays that come from another process may be read-only, for which other kernels would be
        # compiled.
        self.features, self.listed = writable(self.features), writable(self.listed)
        self.labels = writable(self.labels)
        self.offsets = read_only(self.offsets)
        self.sample_weight = read_only(self.sample_weight)

    def __sizeof__(self):
        # Schedulers weigh whether to move it to another machine.
        arrays = self.features, self.listed, self.labels, self.offsets, self.sample_weight
        return object.__sizeof__(self) + count_bytes(arrays)

    @property
    def n_tokens(self):
        """Number of tokens."""
        return len(self.labels)

    @property
    def weighted_tokens(self):
        """Sum over the tokens of the weights of their sequences."""
        return self.sample_weight @ np.diff(self.offsets)

    @property
    def sum_of_squares(self):
        """Sum over the tokens of the squared norm of their features."""
        total = sum_of_squares(self.features)
        if isinstance(self.features, kernels.TransitionStateFeatures):
            total += sum_of_squares(self.features.transitions)
        return total
