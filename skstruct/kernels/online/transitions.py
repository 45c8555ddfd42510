"""What the online learners do with transitions, for each kind of their weights.

A rule counts transitions in the way of its edges (`zero_counts`, `add_edge`). The functions here
say how scores come from the weights, and how counts change these.

Most transitions of a large label set never get a weight. So there the learners list those that have
one, or that tell a constraint apart, and change no others. A transition that gets its first weight
joins the list. The weights learned are those without a list, to the last bit. This is for rules
whose update is the difference between labellings. The gradient of a likelihood changes every
transition that is allowed.
"""

from skstruct.chain.dense import Chain
from skstruct.chain.family import family, needed
from skstruct.chain.listed import GrowingChain, first_at_least, list_transition, read_scores
from skstruct.chain.per_token import TransitionChain
from skstruct.chain.protocol import score_edges
from skstruct.chain.second_order import SecondOrderChain
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
    """Write the matrix of pairs, and for each label in the middle that of triples."""
    k = edges.first.shape[0]
    for i in range(k):
        for j in range(k):
            edges.first[i, j] = scale * chain.transition[i, j]
        for h in range(k):
            for j in range(k):
                edges.log[i, h, j] = edges.first[i, j] + scale * chain.triple[h * k + i, j]


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
def change_transitions(chain, state, rows, sample, difference, gold, counts, step, scratch):
    """Add ``step`` times the counts of transitions to their weights; reset the counts to zero.

    Parameters
    ----------
    chain : Chain or any other weights
        Those of the state, which decide what is done.
    state : OnlineState
    rows, sample, difference, gold
        Of a sample: its tokens, and the differences and gold labels of these.
    counts : ndarray
        From `zero_counts`.
    step : float
    scratch : Scratch
    """


@change_transitions.of(Chain)
def change_dense(chain, state, rows, sample, difference, gold, counts, step, scratch):
    """Change the matrix."""
    total, average = state.progress[TOTAL], state.lag.weights.shape[0] > 0
    weights, lag = chain.transition, state.lag.transition
    for i in range(counts.shape[0]):
        add_lagged(counts[i], step, total, weights[i], average, lag[i])
        for j in range(counts.shape[1]):
            counts[i, j] = 0.0


@change_transitions.of(TransitionChain)
def change_of_tokens(chain, state, rows, sample, difference, gold, counts, step, scratch):
    """Change the matrix, and the weights of the features of transitions."""
    total, average = state.progress[TOTAL], state.lag.weights.shape[0] > 0
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


@change_transitions.of(SecondOrderChain)
def change_pairs(chain, state, rows, sample, difference, gold, counts, step, scratch):
    """Change the matrix of pairs, whose counts include those of triples, and that of triples."""
    total, average = state.progress[TOTAL], state.lag.weights.shape[0] > 0
    k, lag = chain.transition.shape[0], state.lag
    for i in range(k):
        for h in range(k):
            d, p = counts.log[i, h], h * k + i
            add_lagged(d, step, total, chain.triple[p], average, lag.triple[p])
            for j in range(k):
                counts.first[i, j] += d[j]
                d[j] = 0.0
        d = counts.first[i]
        add_lagged(d, step, total, chain.transition[i], average, lag.transition[i])
        for j in range(k):
            d[j] = 0.0


@change_transitions.of(GrowingChain)
def change_listed(chain, state, rows, sample, difference, gold, counts, step, scratch):
    """Change the weights of what has a count, and list it."""
    total, average = state.progress[TOTAL], state.lag.weights.shape[0] > 0
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
