"""Numbers of the features of dicts, which are read where they are.

The kernels keep the GIL, so that nobody changes the objects meanwhile.

A pair is a key and a text, True or False. A number belongs to the pair of its key and True.
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import lean_jit
from skstruct.kernels.dicts.objects import (
    DICT,
    FALSE,
    KEYS,
    NEXT_KEY,
    NEXT_VALUE,
    NUMERIC,
    OTHER,
    PLACE,
    STR,
    TEXT,
    TRUE,
    VALUES,
    WHERE,
    advance,
    compare_texts,
    hash_of,
    inlined_jit,
    inner_jit,
    item_of_list,
    keep,
    kind_of,
    prefetch_text,
    read_value,
    set_item_of_list,
    size_of_dict,
)
from skstruct.kernels.vector.prefetch import prefetch

# Columns of an entry: hash and addresses of a pair, and its number.
HASH, KEY, VALUE, NUMBER = range(4)
N_COLUMNS = 4
# Columns of a feature on its way, after those of its pair: the value as it came, hash of the key,
# whether the value is text, the feature, and its position in the dict.
CAME, KEY_HASH, IS_TEXT, FEATURE, POSITION = range(3, 8)
N_COLUMNS_OF_FEATURES = 8
# Columns of what is remembered: the key, its hash, the value, and the number.
LAST_KEY, LAST_HASH, LAST_VALUE, LAST_NUMBER = range(4)
# Counts in ``state``: entries, the next number, values other than 1 of this call.
ENTRIES, NEXT, OTHER_VALUES = range(WHERE + 1, WHERE + 4)
LENGTH_OF_STATE = WHERE + 4
# Tokens mostly have the same keys in the same order, often with the same values. So many positions
# of a dict are told apart.
N_REMEMBERED = 64
# Objects are scattered over the memory, and each leads to the next one. Where many features take
# a step before one of them takes the next step, the memory has been fetched by then.
BLOCK = 64
TOKENS_AHEAD = 8
# In place of the hash of True or False; no text has it.
NO_HASH = -1


class PairTable(NamedTuple):
    """Pairs that have come so far.

    Parameters
    ----------
    state : ndarray of shape (LENGTH_OF_STATE,)
        The lists that it has the addresses of keep the keys and values of the entries alive.
    block : ndarray of shape (BLOCK, N_COLUMNS_OF_FEATURES)
        Room for features that are looked up together.
    remembered : ndarray of shape (N_REMEMBERED, 4)
        The key and the value that came last at each position, if an entry has the same objects:
        address and hash of the key, address of the value, number. Zero for none.
    slots : ndarray of int32
        Numbers of entries, or -1; at least half of them. A power of two.
    entries : ndarray of shape (capacity, N_COLUMNS)
    """

    state: np.ndarray
    block: np.ndarray
    remembered: np.ndarray
    slots: np.ndarray
    entries: np.ndarray


class FoundNumbers(NamedTuple):
    """Room for the number of each feature, and positions and values of numbers other than 1."""

    codes: np.ndarray
    positions: np.ndarray
    values: np.ndarray


@lean_jit(nogil=False)
def count_features(tokens, n_tokens, state):
    """Count the features in a list of tokens; -1 if one is not a dict."""
    n = 0
    for t in range(n_tokens):
        prefetch(item_of_list(tokens, min(t + TOKENS_AHEAD, n_tokens - 1)), 0)
        token = item_of_list(tokens, t)
        if kind_of(token) != state[DICT]:
            return -1
        n += size_of_dict(token)
        # Fetches the table of the dict while the next tokens are counted.
        state[PLACE] = 0
        advance(token, state)
    return n


@lean_jit(nogil=False)
def number_pairs(tokens, n_tokens, table, limit, found):
    """Write the numbers of the features of tokens; new pairs get the next numbers.

    Parameters
    ----------
    tokens : int
        Address of a list of at least `n_tokens` items.
    table : PairTable
        With room for all pairs, also those that turn out to be new.
    limit : float
        Largest absolute value allowed.
    found : FoundNumbers
        Another thread may add features to a dict before the kernel reads it; more than there is
        room for are refused.

    Returns
    -------
    n : int
        Number of features; -1 if one is not of the types above or too large, or there are too many.
    """
    state, block = table.state, table.block
    n = n_waiting = 0
    state[OTHER_VALUES] = 0
    for t in range(n_tokens):
        token = item_of_list(tokens, t)
        if kind_of(token) != state[DICT]:
            return -1
        state[PLACE] = position = 0
        while advance(token, state):
            if n == found.codes.shape[0]:
                return -1
            key, value = state[NEXT_KEY], state[NEXT_VALUE]
            last = table.remembered[position % N_REMEMBERED]
            if last[LAST_KEY] == key and last[LAST_VALUE] == value:
                found.codes[n] = last[LAST_NUMBER]
            else:
                if n_waiting == BLOCK:
                    if not number_block(n_waiting, table, limit, found):
                        return -1
                    n_waiting = 0
                if last[LAST_KEY] != key:
                    prefetch(key, 0)
                prefetch_text(value)
                feature = block[n_waiting]
                feature[KEY], feature[CAME] = key, value
                feature[FEATURE], feature[POSITION] = n, position % N_REMEMBERED
                n_waiting += 1
            position += 1
            n += 1
    return n if number_block(n_waiting, table, limit, found) else -1


@inner_jit
def number_block(n_waiting, table, limit, found):
    """Write the numbers of features; return False if a key or value is of another type."""
    block = table.block
    for i in range(n_waiting):
        if not read_feature(block[i], table, limit, found):
            return False
        prefetch(table.slots, first_slot(block[i, HASH], table.slots))
    for i in range(n_waiting):
        e = table.slots[first_slot(block[i, HASH], table.slots)]
        if e >= 0:
            prefetch(table.entries, e * N_COLUMNS)
            prefetch(table.entries, e * N_COLUMNS + N_COLUMNS - 1)
    for i in range(n_waiting):
        e = table.slots[first_slot(block[i, HASH], table.slots)]
        if e >= 0:
            if table.entries[e, KEY] != block[i, KEY]:
                prefetch_text(table.entries[e, KEY])
            if table.entries[e, VALUE] != block[i, VALUE]:
                prefetch_text(table.entries[e, VALUE])
    for i in range(n_waiting):
        feature = block[i]
        entry = table.entries[find_entry(feature, table.slots, table.entries, table.state)]
        found.codes[feature[FEATURE]] = entry[NUMBER]
        if entry[KEY] == feature[KEY]:
            last = table.remembered[feature[POSITION]]
            last[LAST_KEY], last[LAST_HASH] = feature[KEY], feature[KEY_HASH]
            last[LAST_VALUE] = feature[CAME] if entry[VALUE] == feature[CAME] else 0
            last[LAST_NUMBER] = entry[NUMBER]
    return True


@inlined_jit
def read_feature(feature, table, limit, found):
    """Find out the pair of a feature, and its hash; return False for other types."""
    state = table.state
    key, value = feature[KEY], feature[CAME]
    last = table.remembered[feature[POSITION]]
    if last[LAST_KEY] != key and kind_of(key) != state[STR]:
        return False
    kind, number = read_value(value, state)
    if kind == OTHER or not abs(number) <= limit:
        return False
    if kind == NUMERIC and number != 1.0:
        found.positions[state[OTHER_VALUES]] = feature[FEATURE]
        found.values[state[OTHER_VALUES]] = number
        state[OTHER_VALUES] += 1
    feature[VALUE] = state[TRUE] if kind == NUMERIC else value
    feature[IS_TEXT] = kind == TEXT
    feature[KEY_HASH] = last[LAST_HASH] if last[LAST_KEY] == key else hash_of(key)
    value_hash = np.uint64(hash_of(value) if kind == TEXT else NO_HASH)
    h = np.uint64(feature[KEY_HASH]) * np.uint64(0x9E3779B97F4A7C15) ^ value_hash
    feature[HASH] = h ^ h >> np.uint64(32)
    return True


@inlined_jit
def find_entry(feature, slots, entries, state):
    """Return the position of the entry of a pair, a new one if there is none."""
    slot = first_slot(feature[HASH], slots)
    while slots[slot] >= 0:
        if is_pair(entries[slots[slot]], feature, state):
            return np.int64(slots[slot])
        slot = (slot + 1) & (slots.shape[0] - 1)
    e = state[ENTRIES]
    slots[slot] = e
    entry = entries[e]
    entry[HASH], entry[KEY], entry[VALUE] = feature[HASH], feature[KEY], feature[VALUE]
    entry[NUMBER] = state[NEXT]
    # The lists have room: the new items take the place of None.
    keep(entry[KEY])
    set_item_of_list(state[KEYS], e, entry[KEY])
    keep(entry[VALUE])
    set_item_of_list(state[VALUES], e, entry[VALUE])
    state[ENTRIES] += 1
    state[NEXT] += 1
    return e


@inlined_jit
def is_pair(entry, feature, state):
    """Return True if an entry is that of the pair of a feature."""
    if entry[HASH] != feature[HASH]:
        return False
    if entry[VALUE] != feature[VALUE]:
        # What is not text cannot be compared.
        if not feature[IS_TEXT] or entry[VALUE] == state[TRUE] or entry[VALUE] == state[FALSE]:
            return False
        if compare_texts(entry[VALUE], feature[VALUE]) != 0:
            return False
    return entry[KEY] == feature[KEY] or compare_texts(entry[KEY], feature[KEY]) == 0


@inner_jit
def first_slot(pair_hash, slots):
    """Slot at which the search for a pair begins."""
    return pair_hash & (slots.shape[0] - 1)


@lean_jit
def fill_slots_of_pairs(entries, n_entries, slots):
    """Enter all entries into empty slots."""
    for e in range(n_entries):
        slot = first_slot(entries[e, HASH], slots)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = e
