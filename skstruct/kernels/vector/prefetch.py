"""Prefetch memory that a loop is about to read.

The weights of a token's features are scattered over a large array, at addresses that are known well
in advance. Without prefetching, scoring spends most of its time on cache misses.
"""

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

# Number of features to look ahead, and number of doubles in a cache line.
AHEAD = 32
LINE = 8

if numba.config.DISABLE_JIT:

    def prefetch(array, position):
        """Do nothing, as interpreted code gains nothing from it."""

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
            # Read access, all cache levels, data cache.
            hints = [ir.Constant(i32, value) for value in (0, 3, 1)]
            builder.call(function, [address, *hints])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen
