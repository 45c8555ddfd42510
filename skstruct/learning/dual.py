"""Dual of a CRF's training problem, as an object that is improved step by step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from skstruct import kernels
from skstruct.input.constraints import forbid
from skstruct.input.costs import NO_COST
from skstruct.utils.messages import overflowed
from skstruct.utils.parallel import chain_work, portions

# Gap of a sequence before its first visit.
_UNKNOWN_GAP = 100.0
# Least share of wrong labels in the start.
_LEAST_SHARE = 1e-12
# Largest priority of a sequence before its gap is known.
_MOST_SMOOTH = 1e100
# Work of an update, whose line search tries several steps, relative to inference.
_WORK_OF_UPDATE = 5.0


class Certificate(NamedTuple):
    """Bounds on the objective of the current weights."""

    objective: float  # of the weights
    dual: float  # no weights have an objective below this
    gap: float  # the difference


class CRFDual:
    """``sum_i s_i H(mu_i) - l2 / 2 |w(mu)|^2``, to be maximised over distributions ``mu_i``.

    ``H`` is the entropy, and ``w(mu) = sum_i s_i (F(gold) - E_mu F) / l2`` are the conjugate
    weights. The dual value of any ``mu`` is at most the primal objective of any weights, and at
    the optimum they are the same.

    Parameters
    ----------
    training_set : TrainingSet
        Sequences with at least one token and a positive weight.
    n_features, n_labels : int
        Size of the model.
    l2 : float
        Strength of the penalty, positive.
    fit_intercept : bool
        True if the model has biases.
    dtype : dtype, default=np.float32
        Precision of the stored marginals of transitions. Single precision allows gaps down to some
        1e-11 of the objective.
    possible : Constraint, default=None
        Allowed transitions, first and last labels. The distributions are over allowed labellings.
    cost : ndarray of shape (n_labels, n_labels) or (0, 0), default=NO_COST
        Added to the scores of labels, by the gold label of the token. The dual objective gains the
        costs expected under each distribution: below, they are part of its entropy.

    Attributes
    ----------
    n_sequences : int
        Number of sequences.
    work : float
        Work of an epoch; about 2e8 a second.
    n_updates, n_oracle_calls : int
        Number of updates, and of calls that computed marginals or log-partitions of a sequence.
    """

    def __init__(
        self,
        training_set,
        n_features,
        n_labels,
        *,
        l2,
        fit_intercept,
        dtype=np.float32,
        possible=None,
        cost=NO_COST,
    ):
        self._possible = possible
        offsets, labels, weight = training_set[1:4]
        found = kernels.renumber_features(training_set.rows, offsets, n_features)
        self._rank, rows, self._distinct = found
        options = float(l2), fit_intercept, cost
        self._problem = kernels.Problem(rows, offsets, labels, weight, *options)
        self.n_sequences = n_sequences = len(weight)
        n_rows = len(labels)
        self._shape = n_features, n_labels
        self._dual = kernels.Dual(
            np.empty((n_rows, n_labels)),
            np.empty((n_rows - n_sequences, n_labels**2), dtype),
            np.zeros(n_sequences),
            np.full(n_sequences, _UNKNOWN_GAP),
        )
        self.work = 100.0 * n_sequences + n_rows * n_labels**2
        self.n_updates = self.n_oracle_calls = 0

    def start(self, run, chain=None):
        """Set the dual variables between the gold labels and the marginals of a chain.

        Parameters
        ----------
        run : callable
            From `skstruct.utils.parallel.range_runner`.
        chain : Chain, default=None
            Weights of the marginals. By default, zero, with uniform marginals.
        """
        n_labels = self._shape[1]
        if chain is None and self._possible is not None:
            chain = self._zero_chain()
        if chain is None:
            self._dual.node[:] = 1 / n_labels
            self._dual.transition[:] = 1 / n_labels**2
            slope = self._uniform_slope
        else:
            chain = forbid(chain, self._possible)
            chain = chain._replace(weights=chain.weights[np.argsort(self._rank)])
            transitions = kernels.chain_factors(chain)
            run(
                lambda _, a, b: kernels.set_marginals(
                    self._problem, a, b, chain, transitions, self._dual
                )
            )
            self.n_oracle_calls += self.n_sequences

            def slope(eta):
                return sum(
                    run(lambda _, a, b: kernels.start_slope(self._problem, a, b, self._dual, eta))
                )

        self._set_conjugate_chain(run)
        eta = self._best_share(slope)
        run(lambda _, a, b: kernels.mix_with_gold(self._problem, a, b, self._dual, eta))
        # The conjugate weights are linear in the distributions and zero at the gold labels.
        self._scale_chain(eta)

    def _best_share(self, entropy_slope):
        """Maximise the dual value over the share of the marginals."""
        curvature = self._problem.l2 * self._square_norm()
        if not np.isfinite(curvature):
            raise overflowed(0)

        def slope(log_eta):
            eta = np.exp(log_eta)
            return entropy_slope(eta) - eta * curvature

        low, high = np.log(_LEAST_SHARE), 0.0
        if slope(high) >= 0:
            return 1.0
        if slope(low) <= 0:
            return _LEAST_SHARE
        return float(np.exp(brentq(slope, low, high, xtol=1e-9)))

    def _uniform_slope(self, eta):
        """Derivative of the weighted entropies with respect to the share of uniform marginals."""
        lengths = np.diff(self._problem.offsets)
        weight = self._problem.sample_weight
        n_transitions = weight @ (lengths - 1)
        n_nodes = weight @ (lengths == 1) - weight @ np.maximum(lengths - 2, 0)
        total = 0.0
        for count, size in ((n_transitions, self._shape[1] ** 2), (n_nodes, self._shape[1])):
            other = eta / size
            total += count * (1 - 1 / size) * (np.log1p(other - eta) - np.log(other))
        if len(self._problem.cost):
            mean = self._problem.cost.mean(axis=1)
            total += np.repeat(weight, lengths) @ mean[self._problem.labels]
        return total

    def sampling(self, scheme, nonuniformity):
        """Sampling scheme of the sequences (see `SDCACRF`)."""
        weight = self._problem.sample_weight
        smoothness = np.ones_like(weight)
        if "importance" in scheme:
            radii = kernels.squared_radii(self._problem, self._distinct)
            smoothness = self._problem.l2 + weight * radii
            # Only ratios count, and products must not overflow.
            smoothness /= max(smoothness.max() / _MOST_SMOOTH, 1.0)
        adaptive = "gap" in scheme or scheme == "max"
        factor = weight * smoothness if "gap" in scheme else weight
        largest = scheme == "max"
        priority = factor * self._dual.gap if adaptive else smoothness
        return kernels.Sampling(
            kernels.build_tree(priority, largest),
            factor if adaptive else np.empty(0),
            largest,
            0.0 if scheme == "uniform" else float(nonuniformity),
        )

    def visit_all(self, order, sampling, line_search_tol):
        """Update every sequence, in the order given."""
        for part in self._portions(np.diff(self._problem.offsets)[order]):
            self._update(order[part], np.empty(0), sampling, line_search_tol)

    def visit_some(self, draws, sampling, line_search_tol):
        """Update a sequence for each of the uniform random numbers."""
        # Nobody knows which sequences the draws will choose.
        lengths = np.full(len(draws), len(self._problem.labels) / self.n_sequences)
        for part in self._portions(lengths):
            self._update(np.empty(0, np.int64), draws[part], sampling, line_search_tol)

    def _portions(self, lengths):
        return portions(lengths, _WORK_OF_UPDATE * chain_work(self._shape[1]))

    def _update(self, order, draws, sampling, tol):
        kernels.sdca_updates(
            self._problem, self._distinct, order, draws, self._dual, self._chain, sampling, tol
        )
        self.n_updates += len(order) + len(draws)
        self.n_oracle_calls += len(order) + len(draws)

    def refresh(self, sampling):
        """Update the sampling with the gaps that `certify` computed."""
        if len(sampling.factor) == 0:
            return sampling
        priority = sampling.factor * self._dual.gap
        return sampling._replace(tree=kernels.build_tree(priority, sampling.largest))

    def estimate(self):
        """Estimate the certificate without a pass over the data.

        The dual value is exact up to the precision of the stored marginals. The gap is the sum of
        the gaps of the sequences at their last visits, which is usually too large.
        """
        weight = self._problem.sample_weight
        dual = weight @ self._dual.entropy - self._problem.l2 / 2 * self._square_norm()
        gap = weight @ self._dual.gap
        return Certificate(float(dual + gap), float(dual), float(gap))

    def certify(self, run):
        """Recompute the weights from the dual variables, and both objectives from scratch."""
        entropy = self._set_conjugate_chain(run)
        transitions = kernels.chain_factors(self._chain)
        nll = run(
            lambda _, first, last: kernels.true_gaps(
                self._problem, first, last, self._dual, self._chain, transitions
            )
        )
        self.n_oracle_calls += self.n_sequences
        penalty = self._problem.l2 / 2 * self._square_norm()
        objective = sum(nll) + penalty
        # At the optimum rounding must not put the dual above the objective.
        dual = min(entropy - penalty, objective)
        return Certificate(float(objective), float(dual), float(objective - dual))

    def chain(self):
        """Weights in the order of the features."""
        return self._chain._replace(weights=self._chain.weights[self._rank])

    def weight_norm(self):
        """Norm of all weights."""
        return np.sqrt(self._square_norm())

    def _set_conjugate_chain(self, run):
        """Set the weights to those conjugate to the dual variables; return the sum of entropies."""
        parts = [self._zero_chain() for _ in range(run.n_ranges)]
        entropies = run(
            lambda number, first, last: kernels.conjugate_sum(
                self._problem, first, last, self._dual, parts[number]
            )
        )
        self._chain = parts[0]
        for part in parts[1:]:
            for total, addend in zip(self._chain, part, strict=True):
                total += addend
        self._scale_chain(1 / self._problem.l2)
        return sum(entropies)

    def _zero_chain(self):
        n_features, k = self._shape
        chain = kernels.Chain(np.zeros((n_features, k)), np.zeros((k, k)), *np.zeros((3, k)))
        return chain if self._possible is None else forbid(chain, self._possible)

    def _scale_chain(self, factor):
        # Next to no penalty makes what overflows, which is found later.
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self._chain:
                part *= factor

    def _square_norm(self):
        chain = self._chain if self._possible is None else forbid(self._chain, None)
        return sum(kernels.dot(part.ravel(), part.ravel()) for part in chain)


def marginals_nbytes(n_sequences, n_rows, n_labels, dtype=np.float32):
    """Bytes of the dual variables: nodes in double precision, transitions in `dtype`."""
    return 8 * n_rows * n_labels + np.dtype(dtype).itemsize * (n_rows - n_sequences) * n_labels**2
