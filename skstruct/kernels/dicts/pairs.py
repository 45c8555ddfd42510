"""Numbers of the features of dicts, which are read where they are.

Compiled code finds the functions of Python's stable ABI in its process. Those that are called here
run no Python code and raise nothing, given the types that are checked before. The kernel keeps the
GIL, so that nobody changes the objects meanwhile. Objects are passed as their addresses, `id`.

A pair is a key and a text, True or False. A number belongs to the pair of its key and True.
"""

import numpy as np
from numba import types

from skstruct.kernels._jit import jit, lean_jit

# Positions of the addresses of objects in the argument ``objects``.
DICT, STR, FLOAT, INT, TRUE, FALSE, KEYS, VALUES = range(8)
# Kinds of values.
TEXT, BOOL, NUMERIC, OTHER = range(4)
# Columns of an entry: hashes and addresses of its key and value, and its number.
KEY_HASH, VALUE_HASH, KEY, VALUE, NUMBER = range(5)
N_COLUMNS = 5
# Counts in the argument ``state``: entries, the next number, values other than 1 of this call.
ENTRIES, NEXT, OTHER_VALUES = range(3)
N_COUNTS = 3
# Tokens mostly have the same keys in the same order, often with the same values. So many positions
# of a dict are told apart.
N_REMEMBERED = 64
# In place of the hash of True or False; no text has it.
NO_HASH = -1

_address, _none = types.intp, types.void


def _python(name, result, *arguments):
    return types.ExternalFunction(name, result(*arguments))


next_item = _python("PyDict_Next", types.int32, _address, _address, _address, _address)
item_of_list = _python("PyList_GetItem", _address, _address, _address)
set_item_of_list = _python("PyList_SetItem", types.int32, _address, _address, _address)
type_of = _python("PyObject_Type", _address, _address)
hash_of = _python("PyObject_Hash", _address, _address)
compare_texts = _python("PyUnicode_Compare", types.int32, _address, _address)
as_double = _python("PyFloat_AsDouble", types.float64, _address)
as_integer = _python("PyLong_AsLongLongAndOverflow", types.int64, _address, _address)
keep = _python("Py_IncRef", _none, _address)
release = _python("Py_DecRef", _none, _address)


@lean_jit(nogil=False)
def kind_of(value):
    """Address of the type of an object."""
    kind = type_of(value)
    release(kind)
    return kind


@jit(nogil=False)
def number_pairs(
    tokens, n_tokens, objects, remembered, slots, entries, state, limit, codes, positions, values
):
    """Write the numbers of the features of a sequence; new pairs get the next numbers.

    Parameters
    ----------
    tokens : int
        Address of a list of at least `n_tokens` items.
    objects : ndarray of shape (8,)
        Addresses of types, of True and False, and of two lists, which keep the keys and values of
        the entries alive.
    remembered : ndarray of shape (N_REMEMBERED, 4)
        The key and the value that came last at each position, if an entry has the same objects:
        address and hash of the key, address of the value, number. Zero for none.
    slots : ndarray
        Numbers of entries, or -1; at least half of them. A power of two.
    entries : ndarray of shape (capacity, N_COLUMNS)
        Room for all pairs, also those that turn out to be new.
    state : ndarray of shape (N_COUNTS,)
    limit : float
        Largest absolute value allowed.
    codes : ndarray
        Receives the number of each feature. Another thread may add features to a dict before the
        kernel reads it; more than there is room for are refused.
    positions, values : ndarray
        Receive the positions of numbers other than 1, and these numbers.

    Returns
    -------
    n : int
        Number of features; -1 if one is not of the types above or too large, or there are too many.
    """
    place = np.zeros(4, np.int64)
    where = place.ctypes.data
    n = 0
    state[OTHER_VALUES] = 0
    for t in range(n_tokens):
        token = item_of_list(tokens, t)
        if kind_of(token) != objects[DICT]:
            return -1
        place[0] = n_keys = 0
        while next_item(token, where, where + 8, where + 16):
            if n == codes.shape[0]:
                return -1
            key, value = place[1], place[2]
            last = remembered[n_keys % N_REMEMBERED]
            n_keys += 1
            if last[0] != key or last[2] != value:
                if last[0] != key and kind_of(key) != objects[STR]:
                    return -1
                kind, number = read_value(value, objects, place, where)
                if kind == OTHER or not abs(number) <= limit:
                    return -1
                key_hash = last[1] if last[0] == key else hash_of(key)
                found = objects[TRUE] if kind == NUMERIC else value
                e = find_entry(objects, slots, entries, state, key, key_hash, found, kind == TEXT)
                entry = entries[e]
                if kind == NUMERIC and number != 1.0:
                    positions[state[OTHER_VALUES]] = n
                    values[state[OTHER_VALUES]] = number
                    state[OTHER_VALUES] += 1
                if entry[KEY] == key:
                    last[0], last[1], last[3] = key, key_hash, entry[NUMBER]
                    last[2] = value if entry[VALUE] == value else 0
                codes[n] = entry[NUMBER]
            else:
                codes[n] = last[3]
            n += 1
    return n


@lean_jit(nogil=False)
def read_value(value, objects, place, where):
    """Kind of a value, and the number that it is; 1 for text."""
    if value == objects[TRUE]:
        return BOOL, 1.0
    if value == objects[FALSE]:
        return BOOL, 0.0
    kind = kind_of(value)
    if kind == objects[STR]:
        return TEXT, 1.0
    if kind == objects[FLOAT]:
        return NUMERIC, as_double(value)
    if kind == objects[INT]:
        place[3] = 0
        number = float(as_integer(value, where + 24))
        return (NUMERIC if place[3] == 0 else OTHER), number
    return OTHER, 0.0


@lean_jit(nogil=False)
def find_entry(objects, slots, entries, state, key, key_hash, value, is_text):
    """Return the position of the entry of a pair, a new one if there is none."""
    value_hash = hash_of(value) if is_text else NO_HASH
    slot = first_slot(key_hash, value_hash, slots.shape[0])
    while slots[slot] >= 0:
        entry = entries[slots[slot]]
        if (
            entry[KEY_HASH] == key_hash
            and entry[VALUE_HASH] == value_hash
            and (entry[VALUE] == value or (is_text and compare_texts(entry[VALUE], value) == 0))
            and (entry[KEY] == key or compare_texts(entry[KEY], key) == 0)
        ):
            return slots[slot]
        slot = (slot + 1) & (slots.shape[0] - 1)
    e = slots[slot] = state[ENTRIES]
    entry = entries[e]
    entry[KEY_HASH], entry[VALUE_HASH] = key_hash, value_hash
    entry[KEY], entry[VALUE], entry[NUMBER] = key, value, state[NEXT]
    # The lists have room: the new items take the place of None.
    keep(key)
    set_item_of_list(objects[KEYS], e, key)
    keep(value)
    set_item_of_list(objects[VALUES], e, value)
    state[ENTRIES] += 1
    state[NEXT] += 1
    return e


@lean_jit
def first_slot(key_hash, value_hash, n_slots):
    """Slot at which the search for a pair begins."""
    mixed = np.uint64(key_hash) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(value_hash)
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(n_slots - 1))


@lean_jit
def fill_slots_of_pairs(entries, n_entries, slots):
    """Enter all entries into empty slots."""
    for e in range(n_entries):
        slot = first_slot(entries[e, KEY_HASH], entries[e, VALUE_HASH], slots.shape[0])
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = e
