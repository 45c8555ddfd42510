"""Protocol of chains: the functions that programmes are written in.

A chain is up to three records of arrays, and members of the families below for their classes:

- *weights* of a model, as a learner or a tagger holds them (`Chain`, `TransitionChain`, ...), whose
  class says in attributes the `order` of the chain, which of its fields have a row for each feature
  (`of_features`), whether transitions may be listed (`may_list`), whether each token has scores of
  its own (`per_token`), and what there is beyond the fields of `Chain` (`more_shapes`, `n_more`);
- *edges*, the scores of the transitions of one sequence (`Dense`, `PerToken`, ...), which
  `edges_of` makes once for many sequences and `score_edges` fills in for each;
- *factors*, their exponentials, with the edges in a field ``edges``; `factors_of` makes them.

Programmes run over *states*, numbered from zero at each token. A state is a label, or whatever else
determines its label: a pair of labels, a label and an age. The states that can precede a state,
its *sources*, are a range of the states of the token before. ``t`` counts tokens from zero, and
transitions lead from token ``t - 1`` into token ``t``, so ``t`` is at least one for them.

Edges **need** three members: `width`, `sources` and `score`. Where states are not labels, they need
`label_of` and a call of `have_states`, and `state_of` if labellings are to be scored. Then all
programmes run: searches reasonably fast, sums in the log domain, with counts of each transition at
each token.

The others make a chain fast. Members of one group belong together:

- maxima: `row_into`, `step_max` with its workspace `max_buffer`, `best_source`, and for the n best
  `n_steps`, `step_number` and `most_sources`;
- sums in the linear domain: `factors_of`, `prepare`, `forbidding`, `factor`, `add_shift`,
  `step_sum`, `step_back` with their workspace `sum_buffer`, `reached`, `sum_of`;
- counts: `zero_counts`, `add_edge`, and in the linear domain `collect`, `pending`, `finish`.

Order of calls, for one sequence: `state_rows`, `max_buffer`, `step_max` for each token from the
second to the last, `best_source` from the last to the second. For sums `prepare`, `add_shift` and
`step_sum` in that direction, `collect` and `step_back` in the other, `fold`. `finish` comes once,
after any number of sequences that are counted together.

Members that fill arrays create none (`family`); those that create arrays say so (`creating`).
A default may read edges through other families only: it is compiled for every class, even for those
that never use it.
"""

from functools import partial, singledispatch
from typing import NamedTuple

import numpy as np

from skstruct.chain.family import family, needed
from skstruct.chain.ties import first_largest
from skstruct.compiled.jit import inner_jit

creating = partial(family, compiler=inner_jit)

# ----------------------------------------------------------------------------------- states, scores


@needed
def width(edges, t):
    """Number of states at token ``t``, the first so many items of a row."""


@needed
def sources(edges, t, s):
    """First and end of the range of states of token ``t - 1`` that may precede state ``s``."""


@needed
def score(edges, t, i, s):
    """Score of the transition from a source ``i`` into state ``s``; minus infinity forbids it."""


@family
def label_of(edges, t, s):
    """Label of state ``s``."""
    return s


@family
def state_of(edges, labels, t):
    """State that a labelling passes at token ``t``."""
    return labels[t]


@family
def n_states(edges, length):
    """Largest number of states at a token of a sequence."""
    n = 0
    for t in range(length):
        n = max(n, width(edges, t))
    return n


@creating
def state_rows(edges, scores, length):
    """Scores of states, made from the labels': the same array where states are labels."""
    return scores


@creating
def alpha_rows(edges, marginals, length):
    """Array for the marginals of states: the labels' where states are labels."""
    return marginals


@family
def fold(edges, alpha, length, marginals):
    """Add up the marginals of states with the same label, where states are not labels."""


def have_states(*classes):
    """Register edges whose states are not labels: rows are then made for states."""
    state_rows.of(*classes)(scores_by_label)
    alpha_rows.of(*classes)(alpha_of_states)
    fold.of(*classes)(fold_by_label)


def scores_by_label(edges, scores, length):
    """Member of `state_rows`: each state has the score of its label."""
    rows = np.zeros((length, n_states(edges, length)))
    for t in range(length):
        for s in range(width(edges, t)):
            rows[t, s] = scores[t, label_of(edges, t, s)]
    return rows


def alpha_of_states(edges, marginals, length):
    """Member of `alpha_rows`: an array of its own."""
    return np.zeros((length, n_states(edges, length)))


def fold_by_label(edges, alpha, length, marginals):
    """Member of `fold`: sums over the states of a label."""
    for t in range(length):
        for j in range(marginals.shape[1]):
            marginals[t, j] = 0.0
        for s in range(width(edges, t)):
            marginals[t, label_of(edges, t, s)] += alpha[t, s]


# ------------------------------------------------------------------------------------------- maxima


@family
def row_into(edges, t, s, out):
    """Write the scores of the transitions from all sources of state ``s``, from ``out[0]`` on."""
    first, last = sources(edges, t, s)
    for i in range(first, last):
        out[i - first] = score(edges, t, i, s)


@creating
def max_buffer(edges, length):
    """Workspace of `step_max` for a sequence."""
    return np.empty(n_states(edges, length))


@family
def step_max(edges, buffer, t, previous, out):
    """``out[s] = max_i previous[i] + score(i, s)`` over the sources ``i``."""
    for s in range(width(edges, t)):
        first, last = sources(edges, t, s)
        row_into(edges, t, s, buffer)
        high = -np.inf
        for i in range(first, last):
            x = previous[i] + buffer[i - first]
            high = x if x > high else high
        out[s] = high


@family
def best_source(edges, t, prefix, s, row):
    """First of the sources with the largest ``prefix[i] + score(i, s)``; ``row`` is workspace."""
    first, last = sources(edges, t, s)
    row_into(edges, t, s, row)
    for i in range(first, last):
        row[i - first] += prefix[i]
    return first + first_largest(row, last - first)


@family
def n_steps(edges, length):
    """Number of different rows of `row_into` in a sequence."""
    return length * n_states(edges, length)


@family
def step_number(edges, length, t, s):
    """Number of the row of state ``s`` of token ``t`` among them."""
    return t * n_states(edges, length) + s


@family
def most_sources(edges, length):
    """Largest number of sources of a state."""
    return n_states(edges, length)


# --------------------------------------------------------------------------------------------- sums


class NoFactors(NamedTuple):
    """Factors of a chain whose sums are taken in the log domain only."""

    edges: NamedTuple


@creating
def factors_of(edges, length):
    """Factors for sequences of up to a length, tabulated where all of them share their scores."""
    return NoFactors(edges)


@creating
def prepare(factors, length):
    """Tabulate the factors of one sequence where it has scores of its own.

    Returns
    -------
    safe : bool
        Sums in the linear domain cannot lose an item that counts.
    forbids : bool
        Some labellings are impossible, so an item that underflows may be all that is left.
    """
    return False, True


@creating
def forbidding(factors):
    """Factors for state scores that may be minus infinity."""
    return factors


@family
def factor(factors, t, i, s):
    """Factor of a transition, ``exp(score - shift)``."""
    return 1.0


@family
def add_shift(factors, t, row):
    """Add the shift of the factors into each state of token ``t`` to the scores of states."""


@creating
def sum_buffer(factors, n):
    """Workspace for rows of ``n`` states; the first two rows belong to the programme."""
    return np.empty((2, n))


@family
def step_sum(factors, buffer, t, previous, out):
    """``out[s] = sum_i previous[i] factor(i, s)``; the items of ``previous`` sum to one."""


@family
def step_back(factors, buffer, t, q, out):
    """``out[i] = sum_s factor(i, s) q[s]``."""


@family
def reached(factors, t, s, previous):
    """Return True if a source of positive probability can be followed by state ``s``."""
    first, last = sources(factors.edges, t, s)
    found = False
    for i in range(first, last):
        found |= previous[i] > 0.0 and factor(factors, t, i, s) > 0.0
    return found


@family
def sum_of(factors, row, n):
    """Sum of the first ``n`` items of a row; its order decides the last bits."""
    total = 0.0
    for s in range(n):
        total += row[s]
    return total


# ------------------------------------------------------------------------------------------- counts


@creating
def zero_counts(edges, length):
    """Counts of transitions, zero: by default ``counts[t, i, s]`` for each token."""
    n = n_states(edges, length)
    return np.zeros((length, n, n))


@family
def add_edge(edges, counts, t, i, s, weight):
    """Add to the count of a transition."""
    counts[t, i, s] += weight


@family
def collect(factors, buffer, t, weight, alpha, q, counts):
    """``counts[i, s] += weight alpha[i] q[s]``, times the factor unless `finish` will do that."""


@family
def pending(factors, t, i, s):
    """The factor by which `finish` will multiply the count of a transition; one if it will not."""
    return 1.0


@family
def finish(factors, counts):
    """Multiply counts by what `collect` leaves out; see `pending`."""


# ------------------------------------------------------------------------------- weights of a model


@needed(compiler=inner_jit)
def edges_of(chain, length):
    """Edges for sequences of up to a length, in arrays of their own, which can be written to.

    So programmes are compiled once for read-only and for writable weights.
    """


@family
def score_edges(chain, rows, first, last, edges):
    """Fill in the edges of one sequence, the rows ``first:last``; none where all share theirs."""


@singledispatch
def chain_factors(chain):
    """Factors of the weights of a model, made in Python for calls of kernels.

    Their arrays are writable as in a fit, so that kernels are compiled once for both. A
    field ``forbids`` is True if some labellings are impossible.
    """
    raise TypeError(f"{type(chain).__name__} has no chain_factors, which weights need.")


@creating
def factors_for(chain, factors, length):
    """Factors for the sequences of a call, from those that it was given for all sequences."""
    return factors
