"""Ask the processor to fetch memory that a loop will want soon.

Weights are looked up feature by feature, all over a large array, and the indices say well in
advance where. Without a hint most of the time of scoring is spent waiting for memory.
"""

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

# How many features ahead, and how many doubles a cache line holds.
AHEAD = 32
LINE = 8

if numba.config.DISABLE_JIT:

    def prefetch(array, position):
        """Do nothing: there is no cache to warm for interpreted code."""

else:

    @intrinsic
    def prefetch(typing_context, array, position):
        """Prefetch ``array.flat[position]`` of a C-contiguous array for reading."""

        def codegen(context, builder, signature, args):
            data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
            address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [address.type, i32, i32, i32])
            name = "llvm.prefetch.p0"
            function = builder.module.globals.get(name)
            if function is None:
                function = ir.Function(builder.module, kind, name)
            # For reading, to be kept in all cache levels, data rather than instructions.
            hints = [ir.Constant(i32, value) for value in (0, 3, 1)]
            builder.call(function, [address, *hints])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen
