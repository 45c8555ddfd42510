"""Negative log-likelihood of a CRF, its gradient, and the diagonal of its Hessian.

Where some labels are unknown, the likelihood is that of all labellings that agree with the others.
"""

from copy import copy

import numpy as np
from scipy.special import logsumexp

from skstruct.blocks.protocol import one_blas_thread
from skstruct.chain.dense import Chain, Dense, DenseFactors
from skstruct.chain.family import family, needed
from skstruct.chain.forward_backward import forward_backward, subtract_agreeing
from skstruct.chain.listed import ListedFactors, with_edges
from skstruct.chain.per_token import TransitionChain
from skstruct.chain.protocol import creating, edges_of, factors_of, finish, zero_counts
from skstruct.chain.scores import add_boundary, add_cost, longest, path_score
from skstruct.chain.second_order import (
    PairFactors,
    SecondOrderChain,
    add_to_pairs,
)
from skstruct.compiled.jit import inline_jit, inner_lean_jit, jit
from skstruct.compiled.rows import add_matrix
from skstruct.decoding import list_transitions
from skstruct.input.costs import NO_COST
from skstruct.learning.layout import (
    add_state_gradient,
    squared,
    state_scores,
)
from skstruct.matrices import count_bytes, read_only, writable
from skstruct.utils.parallel import inner_product


class Likelihood:
    """``sum_i s_i nll_i(w)``, as a function of one parameter vector.

    Parameters
    ----------
    features : FeaturePlaces or TransitionFeaturePlaces
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
    cost : ndarray of shape (n_labels, n_labels) or (0, 0), default=NO_COST
        Added to the scores of the labels, by the gold label of the token; nothing is where that is
        unknown.
    blocks : list of (Block, slice), default=()
        Blocks of vectors, and the places of their weights in the vector.

    Attributes
    ----------
    shape, partial, cost, blocks : object
        As given.
    edges : Listed or Dense
        The transitions: those with a weight, if it pays to list them. Scores are not read.
    precise : bool
        True by default. Products with blocks in single precision are then in double precision.
    """

    precise = True

    def __init__(self, features, training_set, shape, transition, partial, cost=NO_COST, blocks=()):
        self.features = features
        self.offsets, self.labels = training_set.offsets, training_set.labels
        self.sample_weight = training_set.sample_weight
        self.shape, self.partial, self.cost = shape, partial, cost
        self.blocks, self._vectors, self._of_blocks = blocks, [], None
        self._scores = None
        zero = shape.no_transitions()
        if shape.kind.may_list and not partial:
            self.edges = list_transitions(zero, "sums", transition)
        else:
            self.edges = Dense(zero)

    def first_order(self, vector):
        """The same without triples, for a vector of first order."""
        model = vector.shape, vector.transition, self.partial, self.cost
        return Likelihood(self.features, self, *model, blocks=self.blocks)

    def with_scores(self, scores):
        """The same, where labels of tokens have further scores, (n_tokens, n_labels)."""
        others = copy(self)
        others._scores, others._vectors, others._of_blocks = scores, [], None
        return others

    @property
    def residual(self):
        """Marginals minus gold labels, times the weights; of the last gradient `with_scores`."""
        return self._of_blocks

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
        return self._sum(theta, self.features, False, out, run)

    def curvature(self, theta, out, run):
        """Estimate the diagonal of the Hessian at `theta`; parameters as of the gradient."""
        self._sum(theta, squared(self.features), True, out, run)

    def _sum(self, theta, counted, curved, out, run):
        """Run `nll_gradient` on all ranges of sequences; the sum of what it adds goes to `out`."""
        chain, features = with_edges(self.edges, self.shape.constrained(theta)), self.features
        labels, weight = self.labels, self.sample_weight
        # The curvature depends on labels only by their costs.
        partial = True if self.partial and not curved else None
        # The first range writes into the result; each other range has a vector of its own.
        if len(self._vectors) != run.n_ranges - 1:
            self._vectors = [np.empty(len(out)) for _ in range(run.n_ranges - 1)]
        vectors = [out, *self._vectors]
        for vector in vectors:
            vector[:] = 0.0

        of_blocks = self._score_blocks(theta, run)

        def on_range(number, first, last):
            tokens = features, counted, self.offsets, first, last, labels, self.cost
            vector = self.shape.split(vectors[number])
            return nll_gradient(*tokens, partial, weight, chain, curved, of_blocks, vector)

        results = run(on_range)
        for vector in self._vectors:
            out += vector
        if self.blocks:
            self._add_gradient_of_blocks(of_blocks, curved, out, run)
        return results

    def _score_blocks(self, theta, run):
        """Scores of the labels of all tokens that no features have; empty if there are none."""
        k, is_needed = self.shape.n_labels, bool(self.blocks) or self._scores is not None
        if self._of_blocks is None:
            self._of_blocks = np.empty((self.n_tokens if is_needed else 0, k))
        if is_needed:
            self._of_blocks[:] = 0.0 if self._scores is None else self._scores
            with one_blas_thread():
                for block, where in self.blocks:
                    weights = theta[where].reshape(-1, k)
                    block.add_scores(weights, self._of_blocks, run, precise=self.precise)
        return self._of_blocks

    def _add_gradient_of_blocks(self, residual, curved, out, run):
        """Add the gradient or the diagonal of the weights of blocks."""
        with one_blas_thread():
            for block, where in self.blocks:
                part = out[where].reshape(-1, self.shape.n_labels)
                add = block.add_curvature if curved else block.add_gradient
                add(residual, part, run, precise=self.precise)

    def __getstate__(self):
        # Without the buffers of the last call.
        return {**vars(self), "_vectors": [], "_of_blocks": None}

    def __setstate__(self, state):
        vars(self).update(state)
        # Arrays that come from another process may be read-only, for which other kernels would be
        # compiled.
        self.features, self.edges = writable(self.features), writable(self.edges)
        self.labels = writable(self.labels)
        self.offsets = read_only(self.offsets)
        self.sample_weight, self.cost = read_only(self.sample_weight), read_only(self.cost)

    def __sizeof__(self):
        # Schedulers use the size to decide whether to move it to another machine.
        arrays = self.features, self.edges, self.labels, self.offsets, self.sample_weight
        of_blocks = sum(block.nbytes for block, _ in self.blocks)
        return object.__sizeof__(self) + count_bytes(arrays) + of_blocks

    @property
    def n_tokens(self):
        return len(self.labels)

    @property
    def weighted_tokens(self):
        """Sum over the tokens of the weights of their sequences."""
        return inner_product(self.sample_weight, np.diff(self.offsets))

    @property
    def at_zero(self):
        """Logarithm of the sum over all labellings where the weights are zero.

        It is what the negative log-likelihood is there, or above it where some labels are unknown
        or some labellings impossible.
        """
        if not len(self.cost):
            return self.weighted_tokens * np.log(self.shape.n_labels)
        # The last one is for tokens without a label, whose code is -1.
        of_token = np.append(logsumexp(self.cost, axis=1), np.log(self.shape.n_labels))
        weight = np.repeat(self.sample_weight, np.diff(self.offsets))
        return inner_product(weight, of_token[self.labels])

    @property
    def n_occurrences(self):
        """Number of occurrences of features, without those that are zero."""
        of_blocks = sum(block.count() for block, _ in self.blocks)
        return of_blocks + sum(len(features.places) for features in self.features.sets())

    @property
    def sum_of_squares(self):
        """Sum over the tokens of the squared norm of their features."""
        of_blocks = sum(block.sum_of_squares() for block, _ in self.blocks)
        return of_blocks + sum(
            np.square(part.data).sum() if part.data.size else len(part.places)
            for part in self.features.sets()
        )


@jit
def nll_gradient(
    features,
    counted,
    offsets,
    first,
    last,
    labels,
    cost,
    partial,
    weights,
    chain,
    curved,
    of_blocks,
    out,
):
    """Weighted sum of the negative log-likelihoods of the sequences ``first:last``.

    Parameters
    ----------
    features : FeaturePlaces
        The tokens.
    counted : FeaturePlaces
        The same, or with squared values for the Hessian: the factors of the gradient's rows.
    chain : Chain, TransitionChain, ListedChain or SecondOrderChain
        The weights; ``chain.weights`` is the vector of state weights. Transitions that are not
        listed get no gradient.
    labels : ndarray of shape (n_rows,)
        Gold labels; where they are unknown, as `subtract_agreeing` takes them.
    cost : ndarray of shape (n_labels, n_labels) or (0, 0)
        As `add_cost` takes it.
    partial : True or None
        True if some labels may be unknown. None if all are known: numba then leaves the other
        branches out, so each kind of data compiles only what it needs.
    weights : ndarray of shape (n_sequences,)
        Those of the sequences.
    curved : bool
        Estimate the diagonal of the Hessian instead of the gradient. For state weights it is exact
        but for the correlation of a feature's tokens; counts of transitions are taken for Poisson.
    of_blocks : ndarray of shape (n_rows, n_labels) or (0, n_labels)
        Scores of labels from blocks, if there are any; overwritten with the factors of their rows
        in the gradient or the diagonal.
    out : Chain, TransitionChain or SecondOrderChain
        The gradient or the diagonal is added here.
    """
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    marginals = np.empty((length, n_labels))
    scale = np.empty(length)
    factors = factors_of(edges_of(chain, length), length)
    edges = factors.edges
    counts = zero_counts(edges, length)
    nll = 0.0
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        if a == b:
            continue
        weight, gold = weights[i], labels[a:b]
        state_scores(features, chain.weights, None, n_labels, a, b, scores)
        add_bias_scores(chain, b - a, scores)
        if of_blocks.shape[0] > 0:
            add_matrix(of_blocks[a:b], scores)
        add_cost(cost, gold, scores)
        write_edges(chain, features, a, b, edges)
        gold_score = 0.0
        if partial is not None:
            kept = scores[: b - a].copy()
        elif not curved:
            gold_score = path_score(scores, b - a, edges, gold)
        log_z = forward_backward(scores, b - a, factors, marginals, scale, weight, counts)
        if partial is not None:
            gold_score = subtract_agreeing(kept, gold, factors, weight, marginals, counts)
        elif curved:
            to_variances(marginals, b - a, weight)
        else:
            subtract_gold(marginals, gold, weight, counts, out)
        nll += weight * (log_z - gold_score)
        if of_blocks.shape[0] > 0:
            copy_matrix(marginals[: b - a], of_blocks[a:b])
        add_biases(marginals, b - a, out)
        add_state_gradient(counted, marginals, n_labels, a, b, out.weights)
        end_sequence(out, counted, a, b, counts)
    finish(factors, counts)
    add_counts(factors, counts, out)
    return nll


@inner_lean_jit
def copy_matrix(source, out):
    """Copy a matrix into another."""
    for t in range(source.shape[0]):
        for j in range(source.shape[1]):
            out[t, j] = source[t, j]


@inner_lean_jit
def add_bias_scores(chain, length, out):
    for t in range(length):
        for j in range(out.shape[1]):
            out[t, j] += chain.intercept[j]
    add_boundary(chain.start, chain.end, out, length)


@inline_jit
def subtract_gold(marginals, gold, weight, counts, out):
    """Turn marginals into ``weight * (marginals - gold)``, and subtract the gold transitions."""
    for t in range(gold.shape[0]):
        marginals[t, gold[t]] -= 1.0
        for j in range(marginals.shape[1]):
            marginals[t, j] *= weight
        if t > 0:
            add_gold(out, counts, t, gold, -weight)


@inline_jit
def to_variances(marginals, length, weight):
    """Turn marginals into the variances of the labels, times `weight`."""
    for t in range(length):
        for j in range(marginals.shape[1]):
            p = marginals[t, j]
            marginals[t, j] = weight * max(p * (1.0 - p), 0.0)


@inline_jit
def add_biases(difference, length, out):
    """Add the contribution of one sequence to the biases."""
    for t in range(length):
        for j in range(difference.shape[1]):
            out.intercept[j] += difference[t, j]
    for j in range(difference.shape[1]):
        out.start[j] += difference[0, j]
        out.end[j] += difference[length - 1, j]


# ------------------------------------------------------------------------------------------- scores


@creating
def write_edges(chain, features, first, last, edges):
    """Write the scores of the transitions of one sequence; none where all share theirs."""


@write_edges.of(TransitionChain)
def write_token_edges(chain, features, first, last, edges):
    n_transitions = chain.transition.size
    scores = edges.log.reshape(edges.log.shape[0], n_transitions)
    bias = chain.transition.reshape(n_transitions)
    where = n_transitions, first + 1, last
    state_scores(features.transitions, chain.transition_weights, None, *where, scores[1:])
    for t in range(1, last - first):
        for p in range(n_transitions):
            scores[t, p] += bias[p]


# ----------------------------------------------------------------------------------------- gradient


@needed
def add_gold(out, counts, t, gold, weight):
    """Add the transition of a labelling into token ``t`` to the gradient, or to final counts."""


@add_gold.of(Chain)
def add_dense_gold(out, counts, t, gold, weight):
    out.transition[gold[t - 1], gold[t]] += weight


@add_gold.of(TransitionChain)
def add_token_gold(out, counts, t, gold, weight):
    counts[t, gold[t - 1], gold[t]] += weight


@add_gold.of(SecondOrderChain)
def add_gold_triple(out, counts, t, gold, weight):
    """Add to the matrices of pairs and, from the third token on, of triples."""
    out.transition[gold[t - 1], gold[t]] += weight
    if t > 1:
        out.triple[gold[t - 2] * out.transition.shape[0] + gold[t - 1], gold[t]] += weight


@family
def end_sequence(out, features, first, last, counts):
    """Add the counts of one sequence to the gradient; nothing where all have the same counts."""


@end_sequence.of(TransitionChain)
def end_token_sequence(out, features, first, last, counts):
    """Add them to the gradient of the matrix and of features; reset them to zero."""
    n_transitions = out.transition.size
    flat = counts.reshape(counts.shape[0], n_transitions)
    for t in range(1, last - first):
        add_matrix(counts[t], out.transition)
    add_state_gradient(
        features.transitions, flat[1:], n_transitions, first + 1, last, out.transition_weights
    )
    for t in range(last - first):
        for p in range(n_transitions):
            flat[t, p] = 0.0


@family
def add_counts(factors, counts, out):
    """Add the counts of all sequences, which are finished, to the gradient."""


@add_counts.of(DenseFactors)
def add_dense_counts(factors, counts, out):
    add_matrix(counts, out.transition)


@add_counts.of(PairFactors)
def add_pair_counts(factors, counts, out):
    """Add the counts of triples, and to the pairs' their sums over the label before."""
    add_to_pairs(factors.edges.pairs, counts)
    add_matrix(counts.first, out.transition)
    triple, where = out.triple.reshape(out.triple.size), factors.edges.pairs.triple
    for q in range(where.shape[0]):
        triple[where[q]] += counts.log[q]


@add_counts.of(ListedFactors)
def add_listed_counts(factors, counts, out):
    leaving = factors.edges.leaving
    for i in range(out.transition.shape[0]):
        for k in range(leaving.indptr[i], leaving.indptr[i + 1]):
            out.transition[i, leaving.into[k]] += counts[k]
