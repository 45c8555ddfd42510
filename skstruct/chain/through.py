"""Best labellings that pass each label of a token: max-marginals.

The best score of a labelling through a state is the score of the best prefix that ends with it,
plus the score of the best suffix after it,

    b_t[i] = max_s m[i, s] + e_{t+1}[s] + b_{t+1}[s],

so that one pass in each direction serves all labels. Of suffixes with equal scores, the rule for
ties takes the one with the smaller state at the last token where they differ. So suffixes are
ranked from the end of the sequence on.
"""

import numpy as np

# Members for the weights of each kind have to be there before these loops are compiled.
from skstruct.chain import dense, listed, per_token, second_order  # noqa: F401
from skstruct.chain.protocol import (
    best_source,
    edges_of,
    label_of,
    row_into,
    score_edges,
    sources,
    state_rows,
    width,
)
from skstruct.chain.scores import sequence_scores
from skstruct.chain.viterbi import best_prefixes
from skstruct.compiled.jit import inner_jit, inner_lean_jit, jit


@jit
def best_through(rows, offsets, chain, token, codes, scores, labels):
    """Write the best scores of labellings by the label of a token, and some of these labellings.

    Parameters
    ----------
    rows, offsets, chain
        A batch of one sequence, with tokens, and the weights.
    token : int
    codes : ndarray of shape (n_codes,)
        Labels of the token for which labellings are wanted.
    scores : ndarray of shape (n_labels,)
        Receives the scores; minus infinity where no labelling is possible.
    labels : ndarray of shape (n_codes, length), integer
        Receives the labellings.
    """
    length, n_labels = offsets[1], chain.intercept.shape[0]
    emission, edges = np.empty((length, n_labels)), edges_of(chain, length)
    sequence_scores(rows, 0, length, chain, emission)
    score_edges(chain, rows, 0, length, edges)
    states = state_rows(edges, emission, length)
    prefix = states.copy()
    best_prefixes(prefix, length, edges)
    after, following, rank = best_suffixes(states, edges, length, token)
    best = np.full(n_labels, -1)
    for j in range(n_labels):
        scores[j] = -np.inf
    for s in range(width(edges, token)):
        j, x = label_of(edges, token, s), prefix[token, s] + after[s]
        first = best[j] < 0 or (x == scores[j] and rank[s] < rank[best[j]])
        if x > scores[j] or first:
            scores[j], best[j] = x, s
    row = np.empty(states.shape[1])
    for n in range(codes.shape[0]):
        if best[codes[n]] >= 0:
            pass_state(edges, prefix, following, token, best[codes[n]], labels[n], row)


@inner_jit
def best_suffixes(states, edges, length, token):
    """Score of the best suffix after each state of a token, the states in it, and its rank.

    Returns
    -------
    after : ndarray of shape (n_states,)
    following : ndarray of shape (length, n_states)
        The state that follows each state, from the token on.
    rank : ndarray of shape (n_states,)
        Smaller for suffixes, with the state itself, that win a tie.
    """
    n_states = states.shape[1]
    after, better, row = np.zeros(n_states), np.empty(n_states), np.empty(n_states)
    following = np.zeros((length, n_states), np.int64)
    rank, ranked = np.arange(n_states), np.empty(n_states, np.int64)
    counts = np.empty(n_states + 1, np.int64)
    for t in range(length - 1, token, -1):
        n, chosen = width(edges, t - 1), following[t - 1]
        for i in range(n):
            better[i], chosen[i] = -np.inf, -1
        for s in range(width(edges, t)):
            x, (first, last) = states[t, s] + after[s], sources(edges, t, s)
            row_into(edges, t, s, row)
            for i in range(first, last):
                y = row[i - first] + x
                wins_tie = chosen[i] < 0 or (y == better[i] and rank[s] < rank[chosen[i]])
                if y > better[i] or wins_tie:
                    better[i], chosen[i] = y, s
        rank_states(chosen, n, rank, counts, ranked)
        for i in range(n):
            after[i] = better[i]
    return after, following, rank


@inner_lean_jit
def rank_states(chosen, n, rank, counts, ranked):
    """Rank the states before: by what follows, then by number."""
    n_ranks = counts.shape[0] - 1
    for r in range(n_ranks + 1):
        counts[r] = 0
    for i in range(n):
        counts[rank[max(chosen[i], 0)] + 1] += 1
    for r in range(n_ranks):
        counts[r + 1] += counts[r]
    for i in range(n):
        place = rank[max(chosen[i], 0)]
        ranked[i] = counts[place]
        counts[place] += 1
    for i in range(n):
        rank[i] = ranked[i]


@inner_lean_jit
def pass_state(edges, prefix, following, token, s, labels, row):
    """Write the best labelling through a state; ``row`` is workspace."""
    i = s
    labels[token] = label_of(edges, token, s)
    for t in range(token + 1, labels.shape[0]):
        i = max(following[t - 1, i], 0)
        labels[t] = label_of(edges, t, i)
    for t in range(token, 0, -1):
        s = best_source(edges, t, prefix[t - 1], s, row)
        labels[t - 1] = label_of(edges, t - 1, s)
