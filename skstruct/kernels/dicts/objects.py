"""Python's objects in compiled code, which has their addresses, `id`.

The functions of Python's stable ABI are found in the process. Those that are called here run no
Python code and raise nothing, given the types that are checked before.
"""

from functools import partial

from numba import types

from skstruct.kernels._jit import lean_jit
from skstruct.kernels.vector.prefetch import prefetch

# Positions in arrays ``state``: addresses of types, of True and False, and of two lists; what the
# functions write, a position in a dict, a key, a value and an overflow; the address of the first.
DICT, STR, FLOAT, INT, TRUE, FALSE, KEYS, VALUES = range(8)
PLACE, NEXT_KEY, NEXT_VALUE, OVERFLOW, WHERE = range(8, 13)
# Kinds of values.
TEXT, BOOL, NUMERIC, OTHER = range(4)
# Bytes from the address of a string to its characters, about.
HEADER = 48

_address, _none = types.intp, types.void


def _python(name, result, *arguments):
    return types.ExternalFunction(name, result(*arguments))


next_item = _python("PyDict_Next", types.int32, _address, _address, _address, _address)
size_of_dict = _python("PyDict_Size", _address, _address)
item_of_list = _python("PyList_GetItem", _address, _address, _address)
set_item_of_list = _python("PyList_SetItem", types.int32, _address, _address, _address)
type_of = _python("PyObject_Type", _address, _address)
hash_of = _python("PyObject_Hash", _address, _address)
compare_texts = _python("PyUnicode_Compare", types.int32, _address, _address)
as_double = _python("PyFloat_AsDouble", types.float64, _address)
as_integer = _python("PyLong_AsLongLongAndOverflow", types.int64, _address, _address)
keep = _python("Py_IncRef", _none, _address)
release = _python("Py_DecRef", _none, _address)


# Only other kernels call these, and so their arguments need not be taken from Python.
inner_jit = partial(lean_jit, nogil=False, no_cpython_wrapper=True)
# For what is called once in a loop: passing all arrays costs as much as the look-up.
inlined_jit = partial(inner_jit, inline="always")


@inner_jit
def prefetch_text(address):
    """Prefetch a string, or another object."""
    prefetch(address, 0)
    prefetch(address, HEADER)


@inner_jit
def kind_of(value):
    """Address of the type of an object."""
    kind = type_of(value)
    release(kind)
    return kind


@inner_jit
def advance(token, state):
    """Read the next key and value of a dict; return False at its end."""
    where = state[WHERE]
    return next_item(token, where, where + 8, where + 16) != 0


@inner_jit
def read_value(value, state):
    """Kind of a value, and the number that it is; 1 for text."""
    if value == state[TRUE]:
        return BOOL, 1.0
    if value == state[FALSE]:
        return BOOL, 0.0
    kind = kind_of(value)
    if kind == state[STR]:
        return TEXT, 1.0
    if kind == state[FLOAT]:
        return NUMERIC, as_double(value)
    if kind == state[INT]:
        state[OVERFLOW] = 0
        number = float(as_integer(value, state[WHERE] + 24))
        return (NUMERIC if state[OVERFLOW] == 0 else OTHER), number
    return OTHER, 0.0
