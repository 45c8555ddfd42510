"""Python's lists, dicts and numbers in kernels, which get them by their addresses, from `id`.

To turn one sentence into arrays in Python takes several times as long as to tag it. A kernel that
asks Python's C interface takes a quarter of that, and Python creates no object meanwhile.

Kernels that do so hold the lock of the interpreter (``jit(nogil=False)``). While they read lists,
dicts, strings and numbers of exactly these types, no other code of Python runs, so that nothing
they look at changes. References are borrowed. All functions are part of the stable interface.
"""

import sysconfig

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from skstruct.compiled.jit import inner_lean_jit

# Without a lock of the interpreter, other threads could change what is read.
READABLE = not numba.config.DISABLE_JIT and not sysconfig.get_config_var("Py_GIL_DISABLED")

_ADDRESS = types.intp

list_size = types.ExternalFunction("PyList_Size", _ADDRESS(_ADDRESS))
list_item = types.ExternalFunction("PyList_GetItem", _ADDRESS(_ADDRESS, _ADDRESS))
list_append = types.ExternalFunction("PyList_Append", types.intc(_ADDRESS, _ADDRESS))
tuple_item = types.ExternalFunction("PyTuple_GetItem", _ADDRESS(_ADDRESS, _ADDRESS))
dict_size = types.ExternalFunction("PyDict_Size", _ADDRESS(_ADDRESS))
# Zero where there is none.
dict_item = types.ExternalFunction("PyDict_GetItemWithError", _ADDRESS(_ADDRESS, _ADDRESS))
# Takes the addresses at which it keeps its place, and writes key and value.
dict_next = types.ExternalFunction(
    "PyDict_Next", types.intc(_ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS)
)
as_integer = types.ExternalFunction("PyLong_AsSsize_t", _ADDRESS(_ADDRESS))
as_double = types.ExternalFunction("PyFloat_AsDouble", types.float64(_ADDRESS))
integer_as_double = types.ExternalFunction("PyLong_AsDouble", types.float64(_ADDRESS))
bytes_resize = types.ExternalFunction("PyByteArray_Resize", types.intc(_ADDRESS, _ADDRESS))
bytes_address = types.ExternalFunction("PyByteArray_AsString", _ADDRESS(_ADDRESS))
error_occurred = types.ExternalFunction("PyErr_Occurred", _ADDRESS())
clear_error = types.ExternalFunction("PyErr_Clear", types.void())
_type_of = types.ExternalFunction("PyObject_Type", _ADDRESS(_ADDRESS))
_release = types.ExternalFunction("Py_DecRef", types.void(_ADDRESS))


@inner_lean_jit
def type_of(value):
    kind = _type_of(value)
    _release(kind)
    return kind


@intrinsic
def array_at(typing, address, shape, dtype):
    """Array of what is at an address, in a shape (a tuple), which nobody frees."""
    kind = types.Array(dtype.dtype, len(shape), "C")

    def codegen(context, builder, signature, args):
        array = arrayobj.make_array(kind)(context, builder)
        sizes = cgutils.unpack_tuple(builder, args[1])
        size = ir.Constant(args[0].type, kind.dtype.bitwidth // 8)
        # Of a vector or a matrix.
        strides = [builder.mul(size, n) for n in sizes[1:]] + [size]
        data = builder.inttoptr(args[0], array.data.type)
        parts = {"data": data, "shape": sizes, "strides": strides, "itemsize": size}
        arrayobj.populate_array(array, **parts, meminfo=None)
        return array._getvalue()

    return kind(_ADDRESS, types.UniTuple(_ADDRESS, len(shape)), dtype), codegen
