"""What the online learners do with transitions, for each kind of their weights.

A rule counts transitions in the way of its edges (`zero_counts`, `add_edge`). The functions here
say how scores come from the weights, and how counts change these.

Most transitions of a large label set never get a weight. So there the learners list those that have
one, or that tell a constraint apart, and change no others. A transition that gets its first weight
joins the list. The weights learned are those without a list, to the last bit. This is for rules
whose update is the difference between labellings. The gradient of a likelihood changes every
transition that is allowed.
"""

from skstruct.chain.dense import Chain, Dense
from skstruct.chain.family import family, needed
from skstruct.chain.listed import (
    Growing,
    GrowingChain,
    first_at_least,
    list_transition,
    read_scores,
)
from skstruct.chain.per_token import PerToken, TransitionChain
from skstruct.chain.protocol import score_edges
from skstruct.chain.second_order import SecondOrder, SecondOrderChain, add_to_pairs, score_triples
from skstruct.kernels._jit import lean_jit
from skstruct.kernels.online.changes import NORM, TOTAL, add_lagged, change_feature_weights

# ------------------------------------------------------------------------------------------- scores


@needed
def scaled_edges(chain, rows, sample, scale, edges):
    """Write the scores of a sample's transitions under the weights times a scale."""


@scaled_edges.of(Chain)
def scaled_dense_edges(chain, rows, sample, scale, edges):
    """Write the matrix."""
    for i in range(edges.log.shape[0]):
        for j in range(edges.log.shape[1]):
            edges.log[i, j] = scale * chain.transition[i, j]


@scaled_edges.of(TransitionChain)
def scaled_token_edges(chain, rows, sample, scale, edges):
    """Write that of each token but the first."""
    score_edges(chain, rows, sample[0], sample[1], edges)
    for t in range(1, sample[1] - sample[0]):
        for i in range(edges.log.shape[1]):
            for j in range(edges.log.shape[2]):
                edges.log[t, i, j] *= scale


@scaled_edges.of(SecondOrderChain)
def scaled_pair_edges(chain, rows, sample, scale, edges):
    """Write those of pairs and of triples."""
    score_triples(edges.pairs, chain.transition, chain.triple, scale, edges.first, edges.log)


@scaled_edges.of(GrowingChain)
def scaled_listed_edges(chain, rows, sample, scale, edges):
    """Update the list; at the same scale, those that have changed are up to date."""
    if chain.scale[0] != scale:
        chain.scale[0] = scale
        read_scores(chain.transition, edges, scale)


# ------------------------------------------------------------------------------------------ changes


@family
def most_changed(chain):
    """Largest number of labels or transitions that change at once."""
    return chain.intercept.shape[0]


@most_changed.of(TransitionChain, GrowingChain)
def most_transitions_changed(chain):
    """All transitions."""
    return chain.transition.size


@needed
def change_transitions(edges, state, rows, sample, difference, gold, counts, step, scratch):
    """Add ``step`` times the counts of transitions to their weights; reset the counts to zero.

    Parameters
    ----------
    edges : Dense or any other
        Their scores, as `scaled_edges` wrote them.
    state : OnlineState
    rows, sample, difference, gold
        Of a sample: its tokens, and the differences and gold labels of these.
    counts : ndarray or NamedTuple
        From `zero_counts`.
    step : float
    scratch : Scratch
    """


@change_transitions.of(Dense)
def change_dense(edges, state, rows, sample, difference, gold, counts, step, scratch):
    """Change the matrix."""
    total, average = state.progress[TOTAL], state.lag.weights.shape[0] > 0
    change_matrix(counts, step, total, state.chain.transition, average, state.lag.transition)


@change_transitions.of(PerToken)
def change_of_tokens(edges, state, rows, sample, difference, gold, counts, step, scratch):
    """Change the matrix, and the weights of the features of transitions."""
    chain, total, average = state.chain, state.progress[TOTAL], state.lag.weights.shape[0] > 0
    n = chain.transition.size
    weights, behind = chain.transition.reshape(n), state.lag.transition.reshape(n)
    for t in range(1, sample[1] - sample[0]):
        d = counts[t].reshape(n)
        n_changed = 0
        for p in range(n):
            if d[p] != 0.0:
                scratch.changed[n_changed] = p
                n_changed += 1
        if n_changed == 0:
            continue
        row, which = sample[0] + t, scratch.changed[:n_changed]
        state.progress[NORM] += change_feature_weights(
            rows.transitions,
            row,
            d,
            which,
            step,
            chain.transition_weights,
            total,
            state.lag.transition_weights,
            scratch.both,
        )
        add_lagged(d, step, total, weights, average, behind)
        for p in range(n):
            d[p] = 0.0


@change_transitions.of(SecondOrder)
def change_pairs(edges, state, rows, sample, difference, gold, counts, step, scratch):
    """Change the matrix of triples, and that of pairs, whose counts include those of triples."""
    total, average = state.progress[TOTAL], state.lag.weights.shape[0] > 0
    chain, lag, where = state.chain, state.lag, edges.pairs.triple
    weights, behind = chain.triple.reshape(chain.triple.size), lag.triple.reshape(lag.triple.size)
    add_to_pairs(edges.pairs, counts)
    for q in range(where.shape[0]):
        d = counts.log[q]
        if d != 0.0:
            weights[where[q]] += step * d
            if average:
                behind[where[q]] += total * (step * d)
            counts.log[q] = 0.0
    change_matrix(counts.first, step, total, chain.transition, average, lag.transition)


@change_transitions.of(Growing)
def change_listed(edges, state, rows, sample, difference, gold, counts, step, scratch):
    """Change the weights of what has a count, and list it."""
    chain, total, average = state.chain, state.progress[TOTAL], state.lag.weights.shape[0] > 0
    n_labels = counts.shape[0]
    n = find_changed_transitions(difference, counts, gold, scratch.changed)
    for code in scratch.changed[:n]:
        i, j = code % n_labels, code // n_labels
        d = counts[i, j]
        chain.transition[i, j] += step * d
        if average:
            state.lag.transition[i, j] += total * (step * d)
        counts[i, j] = 0.0
        score_changed(chain, i, j)


@lean_jit
def change_matrix(counts, step, total, weights, average, lag):
    """Change a matrix of weights and the lag of its average; reset the counts to zero."""
    for i in range(counts.shape[0]):
        add_lagged(counts[i], step, total, weights[i], average, lag[i])
        for j in range(counts.shape[1]):
            counts[i, j] = 0.0


@family
def shrink_more(chain, scale):
    """Multiply the weights by a scale that not all chains have, if there are any."""


@shrink_more.of(SecondOrderChain)
def shrink_triples(chain, scale):
    """Multiply those of triples."""
    for row in chain.triple:
        for j in range(row.shape[0]):
            row[j] *= scale


@shrink_more.of(TransitionChain)
def shrink_token_features(chain, scale):
    """Multiply all rows."""
    for row in chain.transition_weights:
        for p in range(row.shape[0]):
            row[p] *= scale


# -------------------------------------------------------------------------------------------- lists


@lean_jit
def score_changed(chain, i, j):
    """Update the score of a transition whose weight has changed."""
    list_transition(chain.listed, i, j, chain.scale[0] * chain.transition[i, j])


@lean_jit
def find_changed_transitions(difference, counts, gold, codes):
    """Write codes ``j * n_labels + i`` of transitions that change; return their number.

    A transition changes between labels that are gold or that change themselves. The codes are in
    increasing order; ``codes`` has room for all transitions.
    """
    n_labels, n = difference.shape[1], 0
    for t in range(1, gold.shape[0]):
        for j in range(n_labels):
            if difference[t, j] == 0.0 and j != gold[t]:
                continue
            for i in range(n_labels):
                if difference[t - 1, i] == 0.0 and i != gold[t - 1]:
                    continue
                if counts[i, j] != 0.0:
                    n = insert_code(j * n_labels + i, codes, n)
    return n


@lean_jit
def insert_code(code, codes, n):
    """Insert a code into the sorted list unless it is there; return the length of the list."""
    place = first_at_least(code, codes, 0, n)
    if place < n and codes[place] == code:
        return n
    for m in range(n, place, -1):
        codes[m] = codes[m - 1]
    codes[place] = code
    return n + 1
