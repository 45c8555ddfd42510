"""Best labels and marginals of a few sequences, from features as they are read, in one call.

For one sentence, calls from Python into compiled code take longer than the programmes. So one
function sorts the columns, adds up the scores, finds the labels, and checks its input on the way.
It returns False if the input is invalid, or if its answer would not be that of a batch to the last
bit. Its output is then of no use, and the caller runs the code for batches, which also raises the
error.
"""

import numpy as np

from skstruct.chain import dense  # noqa: F401  (its members, before these functions are compiled)
from skstruct.chain.protocol import edges_of, factors_of, forbidding
from skstruct.chain.ranges import NEARLY_ONE, decode_marginals
from skstruct.chain.scores import Rows, longest, sequence_scores
from skstruct.chain.viterbi import viterbi
from skstruct.compiled.jit import inline_lean_jit, inner_jit, inner_lean_jit, jit, lean_jit
from skstruct.compiled.rows import sort_rows

# For a batch, larger values and larger log-partitions are errors.
LARGEST_VALUE = 3e38
MOST_PRECISE = 4e14


@inner_lean_jit
def tidy(rows):
    """Sort the columns of each token; return False if one repeats or a value is too large."""
    for k in range(rows.data.shape[0]):
        if not abs(rows.data[k]) <= LARGEST_VALUE:
            return False
    _, repeats = sort_rows(rows.indptr, rows.indices, rows.data)
    return not repeats


@jit
def label_few(ends, columns, values, offsets, chain, labels):
    """Write the best labels of all tokens.

    Parameters
    ----------
    ends : ndarray of int64 of shape (n_rows + 1,)
        Place at which each token starts. Overwritten, as the next two.
    columns : ndarray of int32 of shape (n_entries,)
        Features of all tokens in any order, negative where they have no column.
    values : ndarray of shape (n_entries,) or (0,)
        Their values; none where all are one.
    offsets : ndarray of int64 of shape (n_sequences + 1,)
        Token at which each sequence starts.
    chain : Chain
        The weights, in arrays that are read only.
    labels : ndarray of int32 of shape (n_rows,)
        Receives the labels.
    """
    rows = Rows(ends, columns, values)
    if not tidy(rows):
        return False
    return best_few(rows, offsets, chain, labels, np.empty(offsets.shape[0] - 1))


@jit
def weigh_few(ends, columns, values, offsets, chain, marginals, log_partition):
    """Write marginals (n_rows, n_labels) and log-partitions (n_sequences,)."""
    rows = Rows(ends, columns, values)
    return tidy(rows) and sum_few(rows, offsets, chain, marginals, log_partition)


@jit
def search_few(ends, columns, values, offsets, chain, labels, scores, marginals, log_partition):
    """Write best labels, their scores, marginals and log-partitions."""
    rows = Rows(ends, columns, values)
    if not (tidy(rows) and sum_few(rows, offsets, chain, marginals, log_partition)):
        return False
    for i in range(log_partition.shape[0]):
        if not abs(log_partition[i]) < MOST_PRECISE:
            return False
    return best_few(rows, offsets, chain, labels, scores)


@inner_jit
def best_few(rows, offsets, chain, labels, scores):
    """Write the best labels and their scores; return False if no labelling is possible."""
    n_sequences, n_labels = offsets.shape[0] - 1, chain.intercept.shape[0]
    length = longest(offsets, 0, n_sequences)
    emission, edges = np.empty((length, n_labels)), edges_of(chain, length)
    for i in range(n_sequences):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, emission)
        scores[i] = viterbi(emission, b - a, edges, labels[a:b])
        if not scores[i] > -np.inf:
            return False
    return True


@inner_jit
def sum_few(rows, offsets, chain, marginals, log_partition):
    """Write marginals and log-partitions; return False if none is possible, or sums underflow."""
    n_sequences = offsets.shape[0] - 1
    # No table of the transitions is kept, so that changes in place have an effect.
    factors = factors_of(edges_of(chain, 0), 0)
    if forbids(chain.start) or forbids(chain.end):
        factors = forbidding(factors)
    decode_marginals(rows, offsets, 0, n_sequences, chain, factors, marginals, log_partition)
    for i in range(n_sequences):
        if not log_partition[i] > -np.inf:
            return False
    return add_up_to_one(marginals)


@lean_jit
def forbids(bias):
    """Return True if a bias is minus infinity."""
    for j in range(bias.shape[0]):
        if bias[j] == -np.inf:
            return True
    return False


@inline_lean_jit
def add_up_to_one(marginals):
    """Return True if the marginals of every token sum to one."""
    for t in range(marginals.shape[0]):
        total = 0.0
        for j in range(marginals.shape[1]):
            total += marginals[t, j]
        if not abs(total - 1.0) <= NEARLY_ONE:
            return False
    return True
