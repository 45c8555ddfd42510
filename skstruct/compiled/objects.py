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
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from skstruct.compiled.jit import inner_lean_jit

# Without a lock of the interpreter, other threads could change what is read.
READABLE = not numba.config.DISABLE_JIT and not sysconfig.get_config_var("Py_GIL_DISABLED")

_ADDRESS, _FLAG, _NOTHING = types.intp, types.intc, types.void


def _c_function(name, n_arguments, returned=_ADDRESS):
    return types.ExternalFunction(name, returned(*[_ADDRESS] * n_arguments))


list_size = _c_function("PyList_Size", 1)
list_item = _c_function("PyList_GetItem", 2)
list_append = _c_function("PyList_Append", 2, _FLAG)
dict_size = _c_function("PyDict_Size", 1)
# Zero where there is none.
dict_item = _c_function("PyDict_GetItemWithError", 2)
# Takes the addresses at which it keeps its place, and writes key and value.
dict_next = _c_function("PyDict_Next", 4, _FLAG)
as_integer = _c_function("PyLong_AsSsize_t", 1)
as_double = _c_function("PyFloat_AsDouble", 1, types.float64)
integer_as_double = _c_function("PyLong_AsDouble", 1, types.float64)
bytes_resize = _c_function("PyByteArray_Resize", 2, _FLAG)
bytes_address = _c_function("PyByteArray_AsString", 1)
error_occurred = _c_function("PyErr_Occurred", 0)
clear_error = _c_function("PyErr_Clear", 0, _NOTHING)
_type_of = _c_function("PyObject_Type", 1)
_release = _c_function("Py_DecRef", 1, _NOTHING)


@inner_lean_jit
def type_of(value):
    """Address of the type of an object."""
    kind = _type_of(value)
    _release(kind)
    return kind


def _viewer(dtype, n_axes):
    """Function that makes an array of what is at an address, which nobody frees."""
    kind = types.Array(dtype, n_axes, "C")

    def codegen(context, builder, signature, args):
        array = arrayobj.make_array(kind)(context, builder)
        address, *shape = args
        size = ir.Constant(address.type, dtype.bitwidth // 8)
        strides = [builder.mul(size, n) for n in shape[1:]] + [size]
        data = builder.inttoptr(address, array.data.type)
        parts = {"data": data, "shape": shape, "strides": strides, "itemsize": size}
        arrayobj.populate_array(array, **parts, meminfo=None)
        return array._getvalue()

    if n_axes == 1:

        @intrinsic
        def view(typing, address, n):
            return kind(_ADDRESS, _ADDRESS), codegen

    else:

        @intrinsic
        def view(typing, address, n_rows, n_columns):
            return kind(_ADDRESS, _ADDRESS, _ADDRESS), codegen

    return view


bytes_at = _viewer(types.uint8, 1)
integers_at = _viewer(types.int64, 1)
codes_at = _viewer(types.int32, 1)
doubles_at = _viewer(types.float64, 1)
matrix_at = _viewer(types.float64, 2)
