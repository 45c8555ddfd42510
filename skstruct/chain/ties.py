"""Rule for ties, in all programmes.

Of two labellings with the same score, the one with the smaller label at the last token where they
differ comes first. So among the labels that may precede, the first with the largest score is taken.
"""

from skstruct.compiled.jit import inline_lean_jit, inner_lean_jit, lean_jit


@lean_jit
def first_largest(x, n):
    """First position of the maximum of the first ``n`` items."""
    best = 0
    for j in range(1, n):
        if x[j] > x[best]:
            best = j
    return best


@inner_lean_jit
def first_largest_sum(x, y):
    """First position of the maximum of ``x + y``, which have the length of ``y``."""
    best, top = 0, x[0] + y[0]
    for i in range(1, y.shape[0]):
        z = x[i] + y[i]
        if z > top:
            best, top = i, z
    return best


@inline_lean_jit
def next_largest(x, last):
    """Position of the item that comes after the item ``last``: largest first, ties by position."""
    found = -1
    for i in range(x.shape[0]):
        later = x[i] < x[last] or (x[i] == x[last] and i > last)
        if later and (found < 0 or x[i] > x[found]):
            found = i
    return found


@inline_lean_jit
def precedes(a, b, paths):
    """Return True if deviation ``a`` comes before ``b``, both of the same score.

    A deviation is a number of a path, a token, and another state there: a sequence with that state,
    and those of the path after it.
    """
    first = max(a[1], b[1])
    # Deviations from the same path agree after both tokens.
    last = first if a[0] == b[0] else paths.shape[1] - 1
    for t in range(last, first - 1, -1):
        state_a = a[2] if t == a[1] else paths[a[0], t]
        state_b = b[2] if t == b[1] else paths[b[0], t]
        if state_a != state_b:
            return state_a < state_b
    return False


@inline_lean_jit
def goes_first(state, before, other, before_other):
    """Return True if a prefix precedes, or ties with, another one of the same score.

    ``state`` is its last state, and ``before`` the one before.
    """
    return state < other or (state == other and before <= before_other)
