"""Best labels and marginals of a few sentences, from lists of tokens, in one call.

For one sentence, calls from Python into compiled code, and arrays for them, take longer than the
programmes. So all that a tagger knows beforehand is in one array of numbers, its *plan*, and all of
a call in one bytearray, its *store*. The kernel gets both by their addresses, with the lists of
tokens (`skstruct.compiled.objects`). It first makes sure that the tagger still has the weights that
the plan was made for. Then it reads the tokens, sorts the columns of each, adds up scores in the
same order as for a batch, and finds the labels. What is invalid, or would not be the answer of a
batch to the last bit, it leaves to the code for batches, which also raises the errors.
"""

import numpy as np

from skstruct.chain.dense import FEW_LABELS, Chain, Dense, DenseFactors, handicaps
from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.listed import Leaving, Listed, ListedFactors
from skstruct.chain.protocol import forbidding
from skstruct.chain.ranges import NEARLY_ONE, normalize
from skstruct.chain.scores import Rows, add_boundary, longest, sequence_scores
from skstruct.chain.viterbi import extend_prefixes, walk_back
from skstruct.compiled.jit import inline_lean_jit, inner_jit, inner_lean_jit, jit, lean_jit
from skstruct.compiled.objects import (
    array_at,
    as_double,
    as_integer,
    bytes_address,
    bytes_resize,
    clear_error,
    dict_item,
    dict_next,
    dict_size,
    error_occurred,
    integer_as_double,
    list_append,
    list_item,
    list_size,
    tuple_item,
    type_of,
)
from skstruct.compiled.rows import sort_rows

# Places of a plan. First the addresses of types, and of True and None.
LIST, DICT, STR, FLOAT, INT, BOOL, TRUE, NONE = range(8)
# Attributes of the tagger: number, addresses of their names and of the objects that they were; then
# the size of its classes in bytes, their address, and a copy's.
N_HELD, NAMES, HELD, N_BYTES, CLASSES, CLASSES_BEFORE = range(8, 14)
# Whether nobody else can change the tagger; zero if all is left to the code for batches; columns by
# attribute (zero if lists are left to it), and by key and value; whether values have single
# precision.
IS_OWN, USABLE, VOCABULARY, TABLES, SINGLE = range(14, 19)
# Sizes, and addresses of the weights and of the objects that are the labels.
N_FEATURES, N_LABELS, WEIGHTS, TRANSITION, INTERCEPT, START, END, LABELS = range(19, 27)
# Factors of the transitions, and the transitions that they were made from (zero if none were).
TABULATED, SHIFT, LINEAR, LINEAR_T, SAFE, FORBIDS = range(27, 33)
# Whether sums are taken over listed transitions; their number, and the fields of the list.
IS_LISTED, N_LISTED, DEFAULT, DEFAULT_SCORE, INDPTR, ORIGIN, SCORE = range(33, 40)
FROM_LABEL, INTO, ORDER = range(40, 43)
N_PLACES = 43

# Places at the start of a store: numbers of sequences and tokens, room for entries and for values
# (none if all are one), entries that were read, the longest sequence, and number of labels.
N_SEQUENCES, N_TOKENS, N_ENTRIES, N_VALUES, N_READ, LENGTH, WIDTH = range(7)
# Place, key and value of the dict that is read; whether a value is not one, and how many columns
# are missing.
PLACE, KEY, VALUE, HAS_VALUES, N_MISSING = range(7, 12)
N_HEAD = 12

# How a call ends: with the answer; left to the code for batches; the tagger has changed; columns of
# keys and values have to be looked up in Python; transitions have to be tabulated; tokens are read,
# and to be decoded without the lock of the interpreter.
DONE, OTHER, STALE, MISSING, UNTABULATED, LARGE = range(6)

# For a batch, larger values and larger log-partitions are errors.
LARGEST_VALUE = 3e38
MOST_PRECISE = 4e14
# Batches of more sequences, and at least so many tokens, are compared with the training data.
NEVER_COMPARED, FEWEST_COMPARED = 8, 20
# Steps of Viterbi, of a tenth of a nanosecond to one, that are done with the lock held, and that
# are done without a look at interrupts.
MOST_LOCKED, MOST_STEPS = 1 << 17, 1 << 29
# For shorter sequences it does not pay to look which labels can be on a best path.
SHORT = 12


@jit(nogil=False)
def ask_few(call):
    """Read sentences, and find what is asked for.

    Parameters
    ----------
    call : address of a tuple
        Several arguments would take longer than to tag a token:

        - a list of lists of tokens, or None where the store has been filled;
        - the dict of the attributes of the tagger;
        - the address of the plan, numbers of int64;
        - the store, a bytearray that receives what was read; see `lay_out`;
        - a list with one empty list for each sequence, which receives its labels, or with nothing;
          keys and values whose columns are missing are appended to it;
        - a bytearray that receives marginals, log-partitions and scores, or None.

    Returns
    -------
    status : int
        `DONE` or another one.
    """
    X, attributes, plan = tuple_item(call, 0), tuple_item(call, 1), tuple_item(call, 2)
    store, labels, sums = tuple_item(call, 3), tuple_item(call, 4), tuple_item(call, 5)
    known = array_at(as_integer(plan), (N_PLACES,), np.int64)
    if not (known[IS_OWN] or is_current(attributes, known)):
        return STALE
    if known[USABLE] == 0:
        return OTHER
    n_wanted = list_size(labels)
    status = take(store, known) if known[NONE] == X else read_lists(X, known, store, labels)
    if status != DONE:
        return status
    head, k = array_at(bytes_address(store), (N_HEAD,), np.int64), known[N_LABELS]
    head[WIDTH] = k
    if n_wanted and n_wanted != head[N_SEQUENCES]:
        return OTHER
    if sums != known[NONE]:
        if not is_tabulated(known):
            return UNTABULATED
        n_bytes = 8 * (head[N_TOKENS] * k + 2 * head[N_SEQUENCES])
        if bytes_resize(sums, n_bytes):
            clear_error()
            return OTHER
    n_steps = head[N_TOKENS] * k * k
    if n_steps > MOST_LOCKED:
        return LARGE if n_steps <= MOST_STEPS else OTHER
    work = array_at(place_of_work(store), (size_of_work(head, k),), np.float64)
    if not decode(known, store, n_wanted > 0, sums, work):
        return OTHER
    if n_wanted:
        write_labels(known, store, labels)
    return DONE


@jit
def decode_few(plan, store, wants_labels, sums):
    """Do the rest for what `ask_few` has read; return True if it has an answer."""
    known, head = (
        array_at(plan, (N_PLACES,), np.int64),
        array_at(bytes_address(store), (N_HEAD,), np.int64),
    )
    work = np.empty(size_of_work(head, known[N_LABELS]))
    return decode(known, store, wants_labels, sums, work)


# --------------------------------------------------------------------------------- is it up to date


@inner_lean_jit
def is_current(attributes, plan):
    """Return True if a tagger has the objects, and the classes, that a plan was made for."""
    names, held = (
        array_at(plan[NAMES], (plan[N_HELD],), np.int64),
        array_at(plan[HELD], (plan[N_HELD],), np.int64),
    )
    for i in range(plan[N_HELD]):
        found = dict_item(attributes, names[i])
        if found != held[i] and not (found == 0 and held[i] == plan[NONE]):
            return False
    return are_equal(plan[CLASSES], plan[CLASSES_BEFORE], plan[N_BYTES])


@inner_lean_jit
def is_tabulated(plan):
    """Return True if the factors belong to the transitions, which may be changed in place."""
    n = 0 if plan[IS_OWN] else 8 * plan[N_LABELS] * plan[N_LABELS]
    return plan[TABULATED] != 0 and are_equal(plan[TRANSITION], plan[TABULATED], n)


@inner_lean_jit
def are_equal(a, b, n):
    """Return True if so many bytes at two addresses are the same."""
    x, y, differ = array_at(a, (n,), np.uint8), array_at(b, (n,), np.uint8), np.uint8(0)
    for i in range(n):
        differ |= x[i] ^ y[i]
    return differ == 0


# ------------------------------------------------------------------------------------------ reading


@inner_jit
def lay_out(store):
    """Offsets, ends, columns, labels and values in a store, after its head."""
    head = array_at(bytes_address(store), (N_HEAD,), np.int64)
    n_rows, n_entries = head[N_TOKENS], head[N_ENTRIES]
    at = bytes_address(store) + 8 * N_HEAD
    offsets = array_at(at, (head[N_SEQUENCES] + 1,), np.int64)
    at += 8 * (head[N_SEQUENCES] + 1)
    ends = array_at(at, (n_rows + 1,), np.int64)
    at += 8 * (n_rows + 1)
    columns = array_at(at, (n_entries,), np.int32)
    at += 4 * even(n_entries)
    labels = array_at(at, (n_rows,), np.int32)
    at += 4 * even(n_rows)
    return offsets, ends, columns, labels, array_at(at, (head[N_VALUES],), np.float64)


@inner_lean_jit
def even(n):
    return n + (n & 1)


@inner_lean_jit
def place_of_work(store):
    """Address of the workspace, behind the values."""
    head = array_at(bytes_address(store), (N_HEAD,), np.int64)
    return bytes_address(store) + size_of_parts(head)


@inner_lean_jit
def size_of_parts(head):
    """Bytes of a store without its workspace."""
    n = N_HEAD + head[N_SEQUENCES] + 1 + head[N_TOKENS] + 1 + head[N_VALUES]
    return 8 * n + 4 * (even(head[N_ENTRIES]) + even(head[N_TOKENS]))


@inner_lean_jit
def size_of_work(head, n_labels):
    """Numbers in the workspace: scores and scales of the longest sequence, and rows of labels."""
    return head[LENGTH] * (n_labels + 1) + 3 * n_labels + 1


@inner_lean_jit
def make_room(store, head, n_labels):
    """Give a store its size; return False if there is no memory."""
    size = size_of_parts(head)
    if head[N_TOKENS] * n_labels * n_labels <= MOST_LOCKED:
        size += 8 * size_of_work(head, n_labels)
    if bytes_resize(store, size):
        clear_error()
        return False
    return True


@inner_lean_jit
def take(store, plan):
    """Prepare what is in the store; see `read_lists`."""
    head = array_at(bytes_address(store), (N_HEAD,), np.int64)
    if not make_room(store, head, plan[N_LABELS]):
        return OTHER
    _, ends, columns, _, values = lay_out(store)
    for k in range(ends[ends.shape[0] - 1]):
        if columns[k] >= plan[N_FEATURES]:
            return OTHER
    for k in range(values.shape[0]):
        if not abs(values[k]) <= LARGEST_VALUE:
            return OTHER
    return DONE if values.shape[0] > columns.shape[0] else tidy(store)


@inner_lean_jit
def tidy(store):
    """Sort the columns of each token, unless one repeats, or there have to be warnings."""
    head = array_at(bytes_address(store), (N_HEAD,), np.int64)
    _, ends, columns, _, values = lay_out(store)
    n_known, repeats = sort_rows(ends, columns, values)
    may_be_strange = head[N_SEQUENCES] > NEVER_COMPARED and head[N_TOKENS] >= FEWEST_COMPARED
    is_strange = may_be_strange and 2 * n_known <= head[N_READ]
    return OTHER if repeats or is_strange else DONE


@inner_lean_jit
def count(X, plan):
    """Numbers of tokens, entries and dicts, and the longest sequence; -1 for any other tokens."""
    n_tokens, n_entries, n_dicts, length = 0, 0, 0, 0
    for i in range(list_size(X)):
        sequence = list_item(X, i)
        if type_of(sequence) != plan[LIST]:
            return -1, 0, 0, 0
        n = list_size(sequence)
        n_tokens, length = n_tokens + n, max(n, length)
        for t in range(n):
            token = list_item(sequence, t)
            kind = type_of(token)
            if kind == plan[LIST]:
                n_entries += list_size(token)
            elif kind == plan[DICT]:
                n_dicts += 1
                n_entries += dict_size(token)
            else:
                return -1, 0, 0, 0
    return n_tokens, n_entries, n_dicts, length


@inner_lean_jit
def read_lists(X, plan, store, missing):
    """Read lists of tokens into a store.

    Returns
    -------
    status : int
        `MISSING` if pairs of keys and values were appended to the list ``missing``; `OTHER` if
        tokens are neither lists of strings nor dicts of strings and numbers, or `tidy` says so.
    """
    if plan[VOCABULARY] == 0:
        return OTHER
    n_tokens, n_entries, n_dicts, length = count(X, plan)
    if n_tokens < 0:
        return OTHER
    n_values = n_entries if n_dicts else 0
    sizes = list_size(X), n_tokens, n_entries, n_values, n_entries, length
    if not make_room(store, sizes, plan[N_LABELS]):
        return OTHER
    head = array_at(bytes_address(store), (N_HEAD,), np.int64)
    for i, size in enumerate(sizes):
        head[i] = size
    head[HAS_VALUES] = head[N_MISSING] = 0
    offsets, ends, columns, _, values = lay_out(store)
    k, row = 0, 0
    offsets[0] = ends[0] = 0
    for i in range(offsets.shape[0] - 1):
        sequence = list_item(X, i)
        for t in range(list_size(sequence)):
            token = list_item(sequence, t)
            if type_of(token) == plan[LIST]:
                k = read_strings(token, plan, columns, values, k)
            else:
                k = read_dict(token, plan, head, columns, values, k, missing)
            if k < 0:
                return OTHER
            row += 1
            ends[row] = k
        offsets[i + 1] = row
    if head[N_MISSING]:
        return MISSING
    if not head[HAS_VALUES]:
        head[N_VALUES] = 0
    return tidy(store)


@inner_lean_jit
def read_strings(token, plan, columns, values, k):
    """Write the known columns of a list from place ``k``; return the next place, or -1."""
    for j in range(list_size(token)):
        name = list_item(token, j)
        if type_of(name) != plan[STR]:
            return -1
        found = dict_item(plan[VOCABULARY], name)
        if found == 0:
            continue
        column = as_integer(found)
        if not 0 <= column < plan[N_FEATURES]:
            clear_error()
            return -1
        columns[k] = column
        if values.shape[0]:
            values[k] = 1.0
        k += 1
    return k


@inner_lean_jit
def read_dict(token, plan, head, columns, values, k, missing):
    """Write known columns and values of a dict from place ``k``; return the next place, or -1."""
    head[PLACE] = 0
    at = head.ctypes.data
    while dict_next(token, at + 8 * PLACE, at + 8 * KEY, at + 8 * VALUE):
        key, value = head[KEY], head[VALUE]
        is_text = type_of(value) == plan[STR]
        x = 1.0 if is_text else number_of(value, plan)
        if type_of(key) != plan[STR] or not abs(x) <= LARGEST_VALUE:
            return -1
        found = dict_item(plan[TABLES], key)
        if found:
            found = dict_item(found, value if is_text else plan[TRUE])
        if found == 0:
            head[N_MISSING] += 1
            if list_append(missing, key) or list_append(missing, value):
                clear_error()
                return -1
            continue
        column = as_integer(found)
        if column >= plan[N_FEATURES] or column < -1 or (column == -1 and error_occurred()):
            clear_error()
            return -1
        if column >= 0:
            columns[k], values[k] = column, x
            k += 1
            head[HAS_VALUES] |= x != 1.0
    return k


@inner_lean_jit
def number_of(value, plan):
    """A number or bool, as its column holds it; NaN for other objects."""
    kind, x = type_of(value), np.nan
    if kind == plan[BOOL]:
        return 1.0 if value == plan[TRUE] else 0.0
    if kind == plan[FLOAT]:
        x = as_double(value)
    elif kind == plan[INT]:
        x = integer_as_double(value)
        if x == -1.0 and error_occurred():
            clear_error()
            return np.nan
    if plan[SINGLE]:
        x = np.float64(np.float32(x))
    # No sign for zero, as for False.
    return x if x != 0.0 else 0.0


# ----------------------------------------------------------------------------------------- decoding


@inner_jit
def chain_of(plan):
    k = plan[N_LABELS]
    weights = array_at(plan[WEIGHTS], (plan[N_FEATURES], k), np.float64)
    biases = (
        array_at(plan[INTERCEPT], (k,), np.float64),
        array_at(plan[START], (k,), np.float64),
        array_at(plan[END], (k,), np.float64),
    )
    return Chain(weights, array_at(plan[TRANSITION], (k, k), np.float64), *biases)


@inner_jit
def decode(plan, store, wants_labels, sums, work):
    """Find labels and sums; return False if a batch would answer otherwise."""
    head = array_at(bytes_address(store), (N_HEAD,), np.int64)
    offsets, ends, columns, labels, values = lay_out(store)
    n, n_rows, k = head[N_SEQUENCES], head[N_TOKENS], plan[N_LABELS]
    rows, chain = Rows(ends, columns, values), chain_of(plan)
    scores = array_at(0, (0,), np.float64)
    if sums != plan[NONE]:
        at = bytes_address(sums)
        marginals, at = array_at(at, (n_rows, k), np.float64), at + 8 * n_rows * k
        log_partition, scores = (
            array_at(at, (n,), np.float64),
            array_at(at + 8 * n, (n,), np.float64),
        )
        if not sum_few(rows, offsets, chain, plan, work, marginals, log_partition):
            return False
        for i in range(n if wants_labels else 0):
            if not abs(log_partition[i]) < MOST_PRECISE:
                return False
    return not wants_labels or best_few(rows, offsets, chain, labels, scores, work)


@inner_lean_jit
def best_few(rows, offsets, chain, labels, scores, work):
    """Write the best labels and, if there is room, their scores; return False if there are none."""
    n_labels = chain.intercept.shape[0]
    row, more = work[:n_labels], work[n_labels : 3 * n_labels + 1]
    handicap, contenders = more[:n_labels], more[n_labels:].view(np.int64)
    length = longest(offsets, 0, offsets.shape[0] - 1)
    emission = work[3 * n_labels + 1 :][: length * n_labels].reshape((length, n_labels))
    edges = Dense(chain.transition)
    if n_labels > FEW_LABELS:
        for j in range(n_labels):
            handicap[j] = np.inf
        if length >= SHORT:
            handicaps(chain.transition, handicap)
    for i in range(offsets.shape[0] - 1):
        a, b = offsets[i], offsets[i + 1]
        write_scores_of(rows, a, b, chain, emission)
        score = 0.0
        if b > a:
            extend_prefixes(emission, b - a, edges, (handicap, contenders), row)
            score = walk_back(emission, b - a, edges, labels[a:b], row)
        if not score > -np.inf:
            return False
        if scores.shape[0]:
            scores[i] = score
    return True


@inner_lean_jit
def write_scores_of(rows, first, last, chain, out):
    """Write the scores of one sequence. Values without columns are scores, but for biases."""
    if rows.data.shape[0] <= rows.indices.shape[0]:
        sequence_scores(rows, first, last, chain, out)
        return
    n_labels = out.shape[1]
    for t in range(first, last):
        for j in range(n_labels):
            out[t - first, j] = chain.intercept[j] + rows.data[t * n_labels + j]
    add_boundary(chain.start, chain.end, out, last - first)


@inner_jit
def sum_few(rows, offsets, chain, plan, work, marginals, log_partition):
    """Write marginals and log-partitions; return False if none is possible, or sums underflow."""
    if plan[IS_LISTED]:
        factors, no_counts = listed_factors(plan), array_at(0, (0,), np.float64)
        return sum_with(factors, rows, offsets, chain, work, marginals, log_partition, no_counts)
    factors, no_counts = dense_factors(plan, chain), array_at(0, (0, 0), np.float64)
    return sum_with(factors, rows, offsets, chain, work, marginals, log_partition, no_counts)


@inner_jit
def dense_factors(plan, chain):
    """Factors of all transitions."""
    k = plan[N_LABELS]
    tables = (
        array_at(plan[SHIFT], (k,), np.float64),
        array_at(plan[LINEAR], (k, k), np.float64),
        array_at(plan[LINEAR_T], (k, k), np.float64),
    )
    return DenseFactors(Dense(chain.transition), *tables, plan[SAFE] != 0, plan[FORBIDS] != 0)


@inner_jit
def listed_factors(plan):
    """Factors of the listed transitions."""
    k, n = plan[N_LABELS], plan[N_LISTED]
    leaving = Leaving(
        array_at(plan[FROM_LABEL], (k + 1,), np.int64),
        array_at(plan[INTO], (n,), np.int32),
        array_at(plan[ORDER], (n,), np.int64),
    )
    into = (
        array_at(plan[DEFAULT_SCORE], (k,), np.float64),
        array_at(plan[INDPTR], (k + 1,), np.int64),
        array_at(plan[ORIGIN], (n,), np.int32),
        array_at(plan[SCORE], (n,), np.float64),
    )
    tables = (
        array_at(plan[SHIFT], (k,), np.float64),
        array_at(plan[DEFAULT], (k,), np.float64),
        array_at(plan[LINEAR], (n,), np.float64),
        array_at(plan[LINEAR_T], (n,), np.float64),
    )
    return ListedFactors(Listed(*into, leaving), *tables, plan[SAFE] != 0, plan[FORBIDS] != 0)


@inner_jit
def sum_with(factors, rows, offsets, chain, work, marginals, log_partition, no_counts):
    """Do the work of `sum_few` with some factors."""
    k, length = marginals.shape[1], longest(offsets, 0, offsets.shape[0] - 1)
    scale, emission = work[:length], work[length:][: length * k].reshape((length, k))
    if forbids(chain.start) or forbids(chain.end):
        factors = forbidding(factors)
    for i in range(offsets.shape[0] - 1):
        a, b = offsets[i], offsets[i + 1]
        write_scores_of(rows, a, b, chain, emission)
        log_partition[i] = forward_backward(
            emission, b - a, factors, marginals[a:b], scale, 0.0, no_counts
        )
        if not log_partition[i] > -np.inf:
            return False
        normalize(marginals, a, b)
    return add_up_to_one(marginals)


@lean_jit
def forbids(bias):
    for j in range(bias.shape[0]):
        if bias[j] == -np.inf:
            return True
    return False


@inline_lean_jit
def add_up_to_one(marginals):
    for t in range(marginals.shape[0]):
        total = 0.0
        for j in range(marginals.shape[1]):
            total += marginals[t, j]
        if not abs(total - 1.0) <= NEARLY_ONE:
            return False
    return True


@inner_lean_jit
def write_labels(plan, store, lists):
    """Append the labels of each sequence to its list."""
    offsets, _, _, labels, _ = lay_out(store)
    names = array_at(plan[LABELS], (plan[N_LABELS],), np.int64)
    for i in range(offsets.shape[0] - 1):
        found = list_item(lists, i)
        for t in range(offsets[i], offsets[i + 1]):
            list_append(found, names[labels[t]])
