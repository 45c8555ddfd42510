"""Coordinate ascent in the dual of a CRF without dual values: the start of L-BFGS.

The method is SDCA without duality (Shalev-Shwartz, 2016), with an estimated step size.

The weights are conjugate to the stored marginals of all sequences, ``w = sum_i s_i (F(gold) - E_i
F) / l2``, as in `skstruct.learning.sdca`. A visit moves the marginals of one sequence towards
the current weights'. The step size is estimated rather than searched for: were the dual
objective a parabola on the way, with the slope ``a`` at 0 and ``-b`` at 1, its maximum would be at
``a / (a + b)``. The share ``b`` of the weights is computed as if no two tokens had a feature in
common. The share ``a`` of the entropy is summed over tokens, which overestimates it where tokens
depend on each other. Therefore the steps of a sequence become shorter when its marginals are
further from the weights' than at its last visit.

With an L1 penalty the conjugate vector is shrunk: each weight is its entry moved towards zero by
``l1 / l2``, and zero where it is smaller (proximal SDCA; Shalev-Shwartz and Zhang, 2014). State
weights are shrunk while they are gathered, so there is no second vector of them. Transitions that
all tokens share are shrunk and tabulated anew after some tokens only: on short sequences that would
take longer than all else, and a step is an estimate anyway.

Vectors of blocks take part by two products of matrices for each sequence, in single precision:
solvers that go on from here compute the objective anew.

Marginals are stored in single precision, as differences from the gold labels. The vector is
updated by the rounded differences, so it stays conjugate to the last bit. With an L1 penalty those
of a token that would hardly change stay as they are, which saves an epoch 5 to 15 % of its time.
"""

from typing import NamedTuple

import numpy as np

from skstruct.blocks.visits import (
    add_panel_scores,
    load_vectors,
    new_panel,
    read_blocks,
    sum_panel,
    vectors_of_blocks,
    write_blocks,
)
from skstruct.chain.dense import Chain, Dense
from skstruct.chain.family import family, needed
from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.listed import Listed, ListedChain, ListedFactors, read_scores, with_edges
from skstruct.chain.per_token import PerToken, TransitionChain
from skstruct.chain.protocol import (
    add_edge,
    creating,
    edges_of,
    factors_of,
    finish,
    state_of,
    zero_counts,
)
from skstruct.chain.scores import add_cost, longest, path_score
from skstruct.chain.second_order import (
    SecondOrder,
    SecondOrderChain,
    add_to_pairs,
    score_triples,
)
from skstruct.compiled.jit import inline_jit, inner_lean_jit, jit, lean_jit
from skstruct.compiled.lanes import LANES, LINE, prefetch
from skstruct.compiled.rows import squared_distance, sum_in_lanes
from skstruct.learning.layout import (
    add_state_gradient,
    shrink,
    shrink_states,
    squared_feature_norm,
    state_scores,
)
from skstruct.learning.likelihood import add_bias_scores, write_edges
from skstruct.utils.parallel import chain_work, inner_product, portions

# Largest number of bytes that the start may store.
_MOST_MEMORY = 2**31
# Share of the visits in a random order that is uniform; the others are by priority.
_UNIFORM = 0.1
# One minus the share of the estimated step at the first visits.
_FIRST_CAUTION = 0.2
# With two threads an epoch is cut into so many blocks, after each of which the changes of both are
# added up. Steps are shorter by a factor, as each thread does not know what the other one changes.
# Plain addition diverges where sequences share features; a factor of two is always safe with steps
# that maximise the dual (Ma et al., 2015), and needs more epochs.
_BLOCKS, _SHORTER = 16, 1.4
# Least number of occurrences of features for each weight, and least work of an epoch (see
# `chain_work`), that are worth a second thread: adding up takes time for each weight and block.
_OCCURRENCES, _LEAST_WORK = 4, 3e8
# Factors of the share of the estimated step after a step that was too long, and after others.
CAUTION = 0.8
CONFIDENCE = 1.05
LEAST_SHARE = 0.05
# Most numbers to prefetch of an array: 8 kB, a part of the innermost cache.
MOST_PREFETCHED = 2048
# Lower bound of sums of probabilities in denominators.
SMALLEST = 1e-12
# With an L1 penalty, marginals of a token stay as they are if none would change by more. Without
# one, L-BFGS needed up to twice as many iterations after such a start.
LEAST_MOVE = 1e-4
# Tokens for each label after which shared transitions are tabulated anew.
FRESH = 2


class Memory(NamedTuple):
    """State of the sequences at their last visit, all zero before the first."""

    node: np.ndarray  # (n_rows, n_labels) float32, marginals less one for the gold label
    # The same of transitions, float32, in the rows of `count_rows`: (n_sequences, n_labels**2) or
    # (n_sequences, n_listed), summed over each sequence, or (n_rows, n_labels**2) where transitions
    # have features; or (n_sequences, n_labels**2 + n_triples).
    transition: np.ndarray
    divergence: np.ndarray  # (n_sequences,), of the stored marginals from the weights'
    loss: np.ndarray  # (n_sequences,), negative log-likelihood
    caution: np.ndarray  # (n_sequences,), one minus the share of the estimated step


class DualFreeAscent:
    """Epochs of dual-free coordinate ascent.

    Parameters
    ----------
    likelihood : Likelihood
        Sequences to visit.
    free : ndarray of shape (size,)
        One for the weights of the model, zero for pinned positions.
    l2, l1 : float
        Strengths of the penalties.
    memory : Memory
        Zero at first; changed.
    random_state : RandomState instance, default=None
        Source of the orders of the sequences. By default, of a fixed seed.
    visited : bool, default=False
        The memory comes from an earlier epoch.
    run : callable, default=None
        From `skstruct.utils.parallel.range_runner`. With more than one range, two threads visit
        sequences at the same time; the result depends on that, and on nothing else.

    Attributes
    ----------
    loss : float
        Sum of the losses of the sequences at their last visits.
    distance : float
        Estimated distance of the objective from its minimum, usually several times too large.
    """

    def __init__(
        self, likelihood, free, l2, l1, memory, random_state=None, visited=False, run=None
    ):
        self._likelihood = likelihood
        self._free = likelihood.shape.split(free)
        self._l2, self._l1 = l2, l1
        self._memory = memory
        self._random_state = np.random.RandomState(0) if random_state is None else random_state
        self._visited = visited
        shape = likelihood.shape
        placed = [(where.start, block) for block, where in likelihood.blocks]
        self._vectors = vectors_of_blocks(placed, likelihood.n_tokens, shape.n_labels)
        self._squares = np.zeros(likelihood.n_tokens)
        for _, block in placed:
            self._squares += block.squares()
        self._run, self._copies = run, None
        if run is not None and run.n_ranges > 1:
            n_occurrences = len(likelihood.features.places)
            work = likelihood.n_tokens * chain_work(shape.n_labels, shape.kind.order)
            if work >= _LEAST_WORK and n_occurrences >= _OCCURRENCES * shape.cuts[0]:
                self._copies = np.empty((2, len(free)))
        self.loss = self.distance = np.inf

    def epoch(self, vector, theta, n_parts=1):
        """Visit as many sequences as there are.

        Parameters
        ----------
        vector : ndarray of shape (size,)
            The conjugate vector; changed, pinned positions too.
        theta : ndarray of shape (size,)
            The parameters; changed likewise. The vector itself without an L1 penalty.
        n_parts : int, default=1
            Number of parts of the training set that are visited at the same time, if this is one of
            them. Changes are that many times as large, so that their mean over the parts keeps the
            vector conjugate (CoCoA+; Ma et al., 2015).

        Returns
        -------
        successful : bool
            False if the weights got too large; the vectors are then of no use.
        """
        likelihood = self._likelihood
        order = self._order()
        self._visited = True
        likelihood.shape.set_impossible(vector, -np.inf)
        strength = likelihood.sample_weight * n_parts / self._l2
        visit = self._visit if self._copies is None else self._visit_in_blocks
        if not visit(vector, order, strength):
            return False
        if theta is not vector:
            theta[:] = soft_threshold(vector, self._l1 / self._l2)
        self.loss = inner_product(likelihood.sample_weight, self._memory.loss)
        self.distance = self._priority().sum()
        return True

    def _visit(self, vector, order, strength):
        """Visit sequences one after the other."""
        likelihood = self._likelihood
        threshold = self._l1 / self._l2 if self._l1 else None
        chain = likelihood.shape.split(vector)
        shrunk = with_edges(likelihood.edges, likelihood.shape.shrunk(vector, threshold))
        work = chain_work(likelihood.shape.n_labels, likelihood.shape.kind.order)
        longest_one = int(np.diff(likelihood.offsets).max(initial=0))
        panel = new_panel(len(self._vectors.columns), longest_one, likelihood.shape.n_labels)
        for part in portions(np.diff(likelihood.offsets)[order], work):
            where = likelihood.features, self._vectors, panel, self._squares, likelihood.offsets
            where += order[part], likelihood.labels, likelihood.cost
            changed = strength, chain, shrunk, threshold, self._free, self._memory
            if not dual_free_epoch(*where, *changed):
                return False
        return True

    def _visit_in_blocks(self, vector, order, strength):
        """Visit sequences in two threads, which learn of each other after each block."""
        strength, lengths = _SHORTER * strength, np.diff(self._likelihood.offsets)
        self._copies[:] = vector
        for block in np.array_split(order, _BLOCKS):
            halves = halve(block, lengths)
            visits = zip(self._copies, halves, strict=True)
            if not all(self._run.each(lambda visit: self._visit(*visit, strength), visits)):
                return False
            merge_changes(vector, *self._copies, 1 / _SHORTER)
        return True

    def _priority(self):
        return self._likelihood.sample_weight * self._memory.divergence

    def _order(self):
        if self._visited:
            return draw_order(self._priority(), self._random_state)
        return self._random_state.permutation(len(self._likelihood.sample_weight))


def new_memory(likelihood):
    """Memory of the sequences before the first epoch.

    None if it is too large, or vectors are too large or too small for single precision.
    """
    if not all(block.may_be_single() for block, _ in likelihood.blocks):
        return None
    n_rows, n_sequences = likelihood.n_tokens, len(likelihood.sample_weight)
    k = likelihood.shape.n_labels
    n_slabs = n_rows if likelihood.shape.kind.per_token else n_sequences
    n_transitions = likelihood.edges.n_scores + likelihood.shape.n_more
    if 4 * (n_rows * k + n_slabs * n_transitions) > _MOST_MEMORY:
        return None
    return Memory(
        np.zeros((n_rows, k), np.float32),
        np.zeros((n_slabs, n_transitions), np.float32),
        *np.zeros((2, n_sequences)),
        np.full(n_sequences, _FIRST_CAUTION),
    )


def draw_order(priority, random_state):
    """Draw as many sequences as there are, most of them by the square roots of their priorities."""
    n, priority = len(priority), np.sqrt(priority)
    total = priority.sum()
    # Without a finite priority all sequences are alike.
    share = priority / total if 0 < total < np.inf else np.full(n, 1 / n)
    bounds = np.cumsum(_UNIFORM / n + (1 - _UNIFORM) * share)
    places = (np.arange(n) + random_state.random_sample()) / n
    return random_state.permutation(np.minimum(np.searchsorted(bounds, places), n - 1))


def halve(order, lengths):
    """Split visits into two parts of about equally many tokens, all visits of a sequence in one.

    Parameters
    ----------
    order : ndarray
        Numbers of sequences, some of them several times.
    lengths : ndarray of shape (n_sequences,)
        Number of tokens of each sequence.

    Returns
    -------
    first, second : ndarray
        Numbers of sequences, in the given order.
    """
    visited, inverse, counts = np.unique(order, return_inverse=True, return_counts=True)
    # From the longest to the shortest, one after the other: a, b, b, a, a, b, b, ...
    by_work = np.argsort(-counts * lengths[visited], kind="stable")
    side = np.empty(len(visited), bool)
    side[by_work] = (np.arange(len(visited)) + 1) // 2 % 2
    second = side[inverse]
    return order[~second], order[second]


def soft_threshold(vector, threshold):
    """Move the numbers of a vector towards zero; those closer to it than `threshold` become it."""
    return np.copysign(np.maximum(np.abs(vector) - threshold, 0.0), vector)


@jit
def dual_free_epoch(
    features,
    vectors,
    panel,
    squares,
    offsets,
    order,
    labels,
    cost,
    strength,
    chain,
    shrunk,
    threshold,
    free,
    memory,
):
    """Visit all sequences in the given order.

    Parameters
    ----------
    features : FeaturePlaces
        The tokens.
    vectors : Vectors
        The vectors of blocks, whose columns are the places of their weights.
    panel : Panel
        Workspace for vectors.
    squares : ndarray of shape (n_rows,)
        Squared norms of the vectors of each token.
    cost : ndarray of shape (n_labels, n_labels) or (0, 0)
        As `add_cost` takes it.
    strength : ndarray of shape (n_sequences,)
        Weights of the sequences, divided by ``l2``.
    chain : Chain, TransitionChain or SecondOrderChain
        The conjugate vector, changed; ``chain.weights`` is the part of the state weights.
    shrunk : Chain, TransitionChain, ListedChain or SecondOrderChain
        The weights, which are the entries of `chain` shrunk, changed. Its state weights are not
        used. Without a threshold, features of transitions may have the same array as in `chain`.
    threshold : float or None
        ``l1 / l2``. None in place of zero: numba then leaves the other branches out.
    free : Chain, TransitionChain or SecondOrderChain
        One for biases, transitions and triples that may change, zero for others. All entries of
        ``weights`` change, including those that are no weights of the model.
    memory : Memory
        Changed.

    Returns
    -------
    safe : bool
        False if the weights of listed transitions got so large that sums would be slow; the pass
        has ended then.
    """
    length, n_labels = longest(offsets, 0, offsets.shape[0] - 1), chain.transition.shape[0]
    scores, marginals = np.empty((length, n_labels)), np.empty((length, n_labels))
    scale, terms = np.empty(length), np.empty((2, length * n_labels))
    factors = factors_of(edges_of(shrunk, length), length)
    counts = zero_counts(factors.edges, length)
    kept_nodes, kept_edges = memory.node.reshape(-1), memory.transition.reshape(-1)
    fill_panel(vectors, chain.weights, n_labels, threshold, panel)
    most = age = FRESH * n_labels
    least = -1.0 if threshold is None else LEAST_MOVE
    for visit in range(order.shape[0]):
        i = order[visit]
        a, b = offsets[i], offsets[i + 1]
        if visit + 1 < order.shape[0]:
            prefetch_visit(features, offsets, order[visit + 1], factors.edges, memory)
        if a == b:
            continue
        gold = labels[a:b]
        state_scores(features, chain.weights, threshold, n_labels, a, b, scores)
        add_vector_scores(vectors, a, b, panel, scores)
        add_bias_scores(shrunk, b - a, scores)
        add_cost(cost, gold, scores)
        if age >= most:
            shrink_transitions(shrunk, chain, threshold)
            factors, age = current_factors(shrunk, factors), 0
            if gives_up(factors):
                return False
        age += b - a
        write_edges(shrunk, features, a, b, factors.edges)
        gold_score = path_score(scores, b - a, factors.edges, gold)
        log_z = forward_backward(scores, b - a, factors, marginals, scale, 1.0, counts)
        memory.loss[i] = log_z - gold_score
        finish(factors, counts)
        subtract_gold_counts(gold, factors.edges, marginals, counts)
        found = count_rows(factors.edges, counts, b - a)
        row, end = remembered(factors.edges, i, a, b)
        nodes = marginals.reshape(-1)[: (b - a) * n_labels]
        past = kept_nodes[a * n_labels : b * n_labels]
        curvature, square = change_of_nodes(features, squares, a, gold, nodes, past, terms)
        square += change_of_edges(features, a, factors.edges, found, memory.transition[row:end])
        share = step_share(i, curvature, strength[i] * square, memory)
        moved = marginals[: b - a]
        move_tokens(features, a, moved, past, share, -strength[i], least, chain.weights)
        move_vectors(panel, moved, threshold)
        change, width = found.reshape(-1), memory.transition.shape[1]
        move_towards(change, kept_edges[row * width : end * width], share, -strength[i])
        add_change(features, a, b, moved, found, factors.edges, free, chain)
        shrink_rest(shrunk, chain, features, a, b, threshold)
        clear(change)
    write_blocks(vectors.columns, 1, panel.exact, n_labels, chain.weights)
    return True


@inline_jit
def add_change(features, first, last, node, found, edges, free, chain):
    """Add the changes of one sequence to the other entries of the conjugate vector."""
    add_to_features(chain, features, found, first, last)
    add_free(node, chain, free)
    add_free_transitions(edges, found, free, chain)


@inner_lean_jit
def fill_panel(vectors, weights, n_labels, threshold, panel):
    """Copy the weights of vectors into a panel, and shrink them."""
    read_blocks(vectors.columns, 1, weights, n_labels, panel.exact)
    shrink_panel(panel, threshold)


@inner_lean_jit
def shrink_panel(panel, threshold):
    """Shrink the weights in a panel."""
    exact, small = panel.exact.reshape(panel.exact.size), panel.weights.reshape(panel.exact.size)
    for p in range(exact.shape[0]):
        small[p] = shrink(exact[p], threshold)


@inner_lean_jit
def add_vector_scores(vectors, first, last, panel, scores):
    """Add the scores of the vectors of some tokens, if there are any."""
    if vectors.columns.shape[0] > 0:
        load_vectors(vectors, first, last, panel.values)
        add_panel_scores(panel, last - first, scores)


@inner_lean_jit
def move_vectors(panel, change, threshold):
    """Change the weights of the vectors in the panel, and shrink these."""
    size = panel.exact.shape[1] * LANES
    n_changing = sum_panel(panel, change.shape[0], change) if size > 0 else 0
    for i in range(n_changing):
        exact, sums = panel.exact[panel.changing[i]].reshape(size), panel.sums[i].reshape(size)
        for p in range(size):
            exact[p] += sums[p]
    shrink_panel(panel, threshold)


@inline_jit
def subtract_gold_counts(gold, edges, marginals, counts):
    """Subtract the gold labels and transitions from marginals and counts that are finished."""
    for t in range(gold.shape[0]):
        marginals[t, gold[t]] -= 1.0
        if t > 0:
            before, state = state_of(edges, gold, t - 1), state_of(edges, gold, t)
            add_edge(edges, counts, t, before, state, -1.0)


@inline_jit
def prefetch_visit(features, offsets, i, edges, memory):
    """Prefetch what the visit of a sequence will read: it may be anywhere in memory."""
    a, b = offsets[i], offsets[i + 1]
    prefetch_part(features.places, features.indptr[a], features.indptr[b])
    prefetch_part(memory.node, a * memory.node.shape[1], b * memory.node.shape[1])
    first, last = remembered(edges, i, a, b)
    n_transitions = memory.transition.shape[1]
    prefetch_part(memory.transition, first * n_transitions, last * n_transitions)


@inner_lean_jit
def prefetch_part(array, first, last):
    """Prefetch a slice of a flat array of 4-byte numbers, or its beginning if it is long."""
    for p in range(first, min(last, first + MOST_PREFETCHED), 2 * LINE):
        prefetch(array, p)


@inline_jit
def shrink_rest(out, chain, features, first, last, threshold):
    """Shrink biases, and what a visit of some rows has changed but for transitions all share."""
    shrink_visited(out, chain, features, first, last, threshold)
    for j in range(chain.intercept.shape[0]):
        out.intercept[j] = shrink(chain.intercept[j], threshold)
        out.start[j] = shrink(chain.start[j], threshold)
        out.end[j] = shrink(chain.end[j], threshold)


@lean_jit
def clear(x):
    """Set a vector to zero."""
    for p in range(x.shape[0]):
        x[p] = 0.0


@inline_jit
def change_of_nodes(features, squares, first, gold, found, kept, terms):
    """Divergence and squared distance of two node marginals, given as differences from gold.

    The divergence is a quadratic approximation of the sum of both relative entropies. The distance
    is between the expected features. Terms are stored before they are summed, so that the compiler
    works on several at a time.

    Parameters
    ----------
    found, kept : ndarray of shape (length * n_labels,)
        Marginals of the tokens from ``first`` on.
    terms : ndarray of shape (2, >= length * n_labels)
        Workspace.
    """
    size, n_labels = found.shape[0], found.shape[0] // gold.shape[0]
    bent, moved = terms[0, :size], terms[1, :size]
    for p in range(size):
        old = np.float64(kept[p])
        both = abs(found[p]) + abs(old)
        both = both if both > SMALLEST else SMALLEST
        x = found[p] - old
        moved[p] = x * x
        bent[p] = 2.0 * x * x / both
    for t in range(gold.shape[0]):
        p = t * n_labels + gold[t]
        both = 2.0 - (abs(found[p]) + abs(np.float64(kept[p])))
        bent[p] = 2.0 * moved[p] / max(both, SMALLEST)
        norm = 1.0 + squares[first + t] + squared_feature_norm(features, first + t)
        start = np.uint64(t * n_labels)
        for q in range(start, start + np.uint64(n_labels)):
            moved[q] *= norm
    return sum_in_lanes(bent), sum_in_lanes(moved)


@inner_lean_jit
def change_of_edges(features, first, edges, found, kept):
    """Squared distance of the expected features of transitions."""
    square = 0.0
    for t in range(found.shape[0]):
        norm = transition_norm(edges, features, first + 1 + t)
        square += norm * squared_distance(found[t], kept[t])
    return square


@inline_jit
def step_share(i, curvature, fall, memory):
    """Step size from the stored marginals of sequence ``i`` to the new ones."""
    if curvature > memory.divergence[i] > 0.0:
        memory.caution[i] = min(1.0 - CAUTION * (1.0 - memory.caution[i]), 1.0 - LEAST_SHARE)
    else:
        memory.caution[i] = max(1.0 - CONFIDENCE * (1.0 - memory.caution[i]), 0.0)
    memory.divergence[i] = curvature
    if not curvature > 0.0:
        return 0.0
    return (1.0 - memory.caution[i]) * curvature / (curvature + fall)


@inner_lean_jit
def move_towards(found, kept, share, factor):
    """Move ``kept`` towards ``found``, which becomes the change times a factor."""
    for p in range(found.shape[0]):
        old = np.float64(kept[p])
        kept[p] = np.float32(old + share * (found[p] - old))
        found[p] = factor * (kept[p] - old)


@inner_lean_jit
def move_tokens(features, first, found, kept, share, factor, least, weights):
    """Move the marginals of tokens as `move_towards`, and the state weights with them.

    Tokens none of whose marginals would change by more than `least` stay as they are.
    """
    n_labels = found.shape[1]
    for t in range(found.shape[0]):
        past = kept[t * n_labels : (t + 1) * n_labels]
        # A step of NaN is taken, so that it shows in the objective.
        n_far = 0
        for j in range(n_labels):
            n_far += not share * abs(found[t, j] - past[j]) <= least
        if n_far:
            move_towards(found[t], past, share, factor)
            row = first + t
            add_state_gradient(features, found[t : t + 1], n_labels, row, row + 1, weights)
        else:
            clear(found[t])


@inline_jit
def add_free(node, chain, free):
    n_labels = node.shape[1]
    for t in range(node.shape[0]):
        for j in range(n_labels):
            chain.intercept[j] += free.intercept[j] * node[t, j]
    for j in range(n_labels):
        chain.start[j] += free.start[j] * node[0, j]
        chain.end[j] += free.end[j] * node[node.shape[0] - 1, j]


@lean_jit
def merge_changes(vector, first, second, share):
    """Add a share of the changes of two copies to a vector; both become the sum."""
    for p in range(vector.shape[0]):
        old = vector[p]
        if old > -np.inf:
            old += share * ((first[p] - old) + (second[p] - old))
        vector[p] = first[p] = second[p] = old


# ------------------------------------------------------------ transitions, for each kind of weights


@family
def gives_up(factors):
    """Return True if sums are unsafe, and too slow in the log domain for a mere start."""
    return False


@gives_up.of(ListedFactors)
def listed_gives_up(factors):
    """Return True if sums are unsafe: with many labels the log domain is slow."""
    return not factors.safe


@creating
def current_factors(chain, factors):
    """Factors of the changed weights; a token's own scores are tabulated later."""
    return factors


@current_factors.of(Chain)
def current_dense_factors(chain, factors):
    """Tabulate the matrix of transitions."""
    return factors_of(Dense(chain.transition), 0)


@current_factors.of(ListedChain)
def current_listed_factors(chain, factors):
    """Read and tabulate the listed transitions."""
    read_scores(chain.transition, chain.listed, 1.0)
    return factors_of(chain.listed, 0)


@current_factors.of(SecondOrderChain)
def current_pair_factors(chain, factors):
    """Write the scores of pairs and triples, and tabulate them."""
    edges = factors.edges
    score_triples(edges.pairs, chain.transition, chain.triple, 1.0, edges.first, edges.log)
    return factors_of(edges, 0)


@creating
def count_rows(edges, counts, length):
    """View of a sequence's counts as the rows that the memory keeps: one for all tokens."""
    return counts.reshape((1, counts.size))


@count_rows.of(PerToken)
def token_count_rows(edges, counts, length):
    """View of the counts with a row for each token but the first."""
    return counts.reshape((counts.shape[0], -1))[1:length]


@count_rows.of(SecondOrder)
def pair_count_rows(edges, counts, length):
    """View of the counts of pairs, to which triples are added, then of triples."""
    add_to_pairs(edges.pairs, counts)
    return counts.both.reshape((1, counts.both.size))


@family
def remembered(edges, i, first, last):
    """First and end of the rows that the memory keeps of sequence ``i``."""
    return i, i + 1


@remembered.of(PerToken)
def token_remembered(edges, i, first, last):
    """First and end of a range with a row for each token but the first."""
    return first + 1, last


@family
def transition_norm(edges, features, t):
    """Squared norm of a transition, and of its features, if any."""
    return 1.0


@transition_norm.of(PerToken)
def token_transition_norm(edges, features, t):
    """Squared norm of the transition into token ``t`` and of its features."""
    return 1.0 + squared_feature_norm(features.transitions, t)


@family
def add_free_transitions(edges, change, free, chain):
    """Add changes to the free entries of the matrix of transitions; ``change`` has rows."""
    add_free_matrix(change, free.transition, chain.transition)


@inner_lean_jit
def add_free_matrix(change, free, out):
    """Add changes to the free entries of a matrix, which come first in each row."""
    for t in range(change.shape[0]):
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] += free[i, j] * change[t, i * out.shape[1] + j]


@add_free_transitions.of(Listed)
def add_free_listed(edges, change, free, chain):
    """Add changes to the free entries of listed transitions."""
    leaving, out = edges.leaving, chain.transition
    for i in range(out.shape[0]):
        for k in range(leaving.indptr[i], leaving.indptr[i + 1]):
            j = leaving.into[k]
            if free.transition[i, j] > 0.0:
                out[i, j] += change[0, k]


@add_free_transitions.of(SecondOrder)
def add_free_pairs(edges, change, free, chain):
    """Add changes to the free entries of the matrices of pairs and triples."""
    add_free_matrix(change, free.transition, chain.transition)
    n, where = edges.first.size, edges.pairs.triple
    triple, one = chain.triple.reshape(chain.triple.size), free.triple.reshape(free.triple.size)
    for q in range(where.shape[0]):
        triple[where[q]] += one[where[q]] * change[0, n + q]


@family
def add_to_features(chain, features, change, first, last):
    """Add changes to the weights of features of transitions, if there are any."""


@add_to_features.of(TransitionChain)
def add_to_token_features(chain, features, change, first, last):
    """Add changes to the weights of the features of each token's transition."""
    size = chain.transition.size
    weights = chain.transition_weights
    add_state_gradient(features.transitions, change, size, first + 1, last, weights)


@inner_lean_jit
def shrink_matrix(transition, threshold, out):
    for i in range(transition.shape[0]):
        for j in range(transition.shape[1]):
            out[i, j] = shrink(transition[i, j], threshold)


@needed
def shrink_transitions(shrunk, chain, threshold):
    """Shrink the weights of transitions that all tokens share."""


@shrink_transitions.of(Chain, TransitionChain)
def shrink_dense(shrunk, chain, threshold):
    shrink_matrix(chain.transition, threshold, shrunk.transition)


@family
def shrink_visited(shrunk, chain, features, first, last, threshold):
    """Shrink the weights of features of transitions that a visit of some rows has changed."""


@shrink_visited.of(TransitionChain)
def shrink_of_tokens(shrunk, chain, features, first, last, threshold):
    """Shrink the visited weights of transition features, and the matrix of transitions."""
    if threshold is not None:
        vectors = chain.transition_weights, threshold, shrunk.transition_weights
        shrink_states(features.transitions, chain.transition.size, first + 1, last, *vectors)
    shrink_matrix(chain.transition, threshold, shrunk.transition)


@shrink_transitions.of(SecondOrderChain)
def shrink_pairs(shrunk, chain, threshold):
    shrink_matrix(chain.transition, threshold, shrunk.transition)
    shrink_matrix(chain.triple, threshold, shrunk.triple)


@shrink_transitions.of(ListedChain)
def shrink_listed(shrunk, chain, threshold):
    leaving = shrunk.listed.leaving
    for i in range(shrunk.transition.shape[0]):
        for k in range(leaving.indptr[i], leaving.indptr[i + 1]):
            j = leaving.into[k]
            shrunk.transition[i, j] = shrink(chain.transition[i, j], threshold)
