"""Eight columns at a time: the instructions that `skstruct.kernels.rows` is made of.

Each function works on the block of eight columns that starts at column ``j``, and keeps it in a
register while it goes over the rows. The compiler does not find this by itself: it either loads
and stores the block at every row, or works on single columns. On processors with narrower
registers it splits the block.
"""

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

LANES = 8

if numba.config.DISABLE_JIT:

    def sum_block(initial, matrix, rows, values, first, last, j, out):
        """``out = initial + sum_k values[k] * matrix[rows[k]]`` over ``first <= k < last``.

        Of a vector in place of a matrix, what begins at ``rows[k]`` counts as a row.
        """
        width = matrix.shape[1] if matrix.ndim == 2 else 1
        out[j : j + LANES] = initial[j : j + LANES]
        for k in range(first, last):
            place = rows[k] * width + j
            out[j : j + LANES] += values[k] * matrix.ravel()[place : place + LANES]

    def sum_unit_block(initial, matrix, rows, first, last, j, out):
        """The same with values that are all one."""
        sum_block(initial, matrix, rows, np.ones(last), first, last, j, out)

    def scatter_block(x, values, rows, first, last, j, skip, vector):
        """Add ``values[k] * x`` to what begins at ``rows[k]``, but for its first columns."""
        for k in range(first, last):
            vector[rows[k] + j + skip : rows[k] + j + LANES] += values[k] * x[j + skip : j + LANES]

    def scatter_unit_block(x, rows, first, last, j, skip, vector):
        """The same with values that are all one."""
        scatter_block(x, np.ones(last), rows, first, last, j, skip, vector)

    def dot_block(x, matrix, j, out):
        """``out = x @ matrix``."""
        out[j : j + LANES] = x @ matrix[:, j : j + LANES]

    def max_plus_block(x, matrix, j, out):
        """``out = max_i x[i] + matrix[i]``."""
        out[j : j + LANES] = np.max(x[:, None] + matrix[:, j : j + LANES], axis=0)

    def add_top_two(x, i, y, j, out):
        """``out = x[i] + y[j]`` for rows of matrices; returns its largest and the next one."""
        out[:] = x[i] + y[j]
        second, top = np.sort(out)[-2:]
        return top, second

    def outer_block(weight, x, y, j, skip, out):
        """``out += weight * outer(x, y)``, but for the first ``skip`` columns."""
        out[:, j + skip : j + LANES] += weight * np.outer(x, y[j + skip : j + LANES])

else:
    _INT = ir.IntType(64)
    _BLOCK = ir.VectorType(ir.DoubleType(), LANES)
    _LANE_NUMBERS = ir.Constant(ir.VectorType(ir.IntType(64), LANES), list(range(LANES)))
    _FUSED = ("contract",)

    class _Code:
        """Emits the instructions of one block for the arrays of a call."""

        def __init__(self, context, builder):
            self.context, self.builder = context, builder

        def array(self, kind, value):
            return arrayobj.make_array(kind)(self.context, self.builder, value)

        def item(self, array, position):
            return self.builder.load(self.builder.gep(array.data, [position]))

        def block(self, array, position):
            """Where the block at a position is, and what stands there."""
            address = self.builder.gep(array.data, [position])
            address = self.builder.bitcast(address, _BLOCK.as_pointer())
            value = self.builder.load(address)
            value.align = 8
            return address, value

        def store(self, value, address):
            self.builder.store(value, address).align = 8

        def spread(self, number, vector=_BLOCK):
            """The number in all lanes."""
            nothing = ir.Constant(vector, ir.Undefined)
            first = ir.Constant(ir.IntType(32), 0)
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            alone = self.builder.insert_element(nothing, number, first)
            return self.builder.shuffle_vector(alone, nothing, zeros)

        def add_product(self, total, x, block):
            product = self.builder.fmul(x, block, flags=_FUSED)
            return self.builder.fadd(total, product, flags=_FUSED)

        def larger(self, x, y):
            """The larger one in each lane; that of `y` if that of `x` is no number."""
            return self.builder.select(self.builder.fcmp_ordered(">", x, y), x, y)

        def over_rows(self, initial, first, last, step):
            """``step`` of a block and every number from ``first`` to ``last``."""
            register = cgutils.alloca_once(self.builder, _BLOCK)
            self.builder.store(initial, register)
            with cgutils.for_range_slice(self.builder, first, last, _INT(1)) as (k, _):
                self.builder.store(step(self.builder.load(register), k), register)
            return self.builder.load(register)

    @intrinsic
    def sum_block(typing, initial, matrix, rows, values, first, last, j, out):
        """``out = initial + sum_k values[k] * matrix[rows[k]]`` over ``first <= k < last``."""

        def codegen(context, builder, signature, args):
            _sum(_Code(context, builder), signature.args, args)
            return context.get_dummy_value()

        return types.void(
            initial, matrix, rows, values, types.intp, types.intp, types.intp, out
        ), codegen

    @intrinsic
    def sum_unit_block(typing, initial, matrix, rows, first, last, j, out):
        """The same with values that are all one."""

        def codegen(context, builder, signature, args):
            kinds = [*signature.args[:3], None, *signature.args[3:]]
            _sum(_Code(context, builder), kinds, [*args[:3], None, *args[3:]])
            return context.get_dummy_value()

        return types.void(initial, matrix, rows, types.intp, types.intp, types.intp, out), codegen

    def _sum(code, kinds, args):
        initial, matrix, rows, values, first, last, j, out = args
        initial, matrix, rows, out = (
            code.array(kind, array)
            for kind, array in zip(kinds[:3] + kinds[7:], (initial, matrix, rows, out), strict=True)
        )
        width = code.builder.extract_value(matrix.shape, 1) if kinds[1].ndim == 2 else _INT(1)
        if values is not None:
            values = code.array(kinds[3], values)

        def step(total, k):
            row = code.builder.sext(code.item(rows, k), _INT)
            place = code.builder.add(code.builder.mul(row, width), j)
            _, block = code.block(matrix, place)
            if values is None:
                return code.builder.fadd(total, block)
            return code.add_product(total, code.spread(code.item(values, k)), block)

        _, start = code.block(initial, j)
        address, _ = code.block(out, j)
        code.store(code.over_rows(start, first, last, step), address)

    def _square(initial, combine):
        """Code that combines the rows of a square matrix with the items of a vector."""

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, matrix, out = (code.array(signature.args[i], args[i]) for i in (0, 1, 3))
            n_rows = builder.extract_value(matrix.shape, 0)
            width = builder.extract_value(matrix.shape, 1)

            def step(total, i):
                place = builder.add(builder.mul(i, width), args[2])
                _, block = code.block(matrix, place)
                return combine(code, total, code.spread(code.item(x, i)), block)

            address, _ = code.block(out, args[2])
            start = ir.Constant(_BLOCK, [initial] * LANES)
            code.store(code.over_rows(start, _INT(0), n_rows, step), address)
            return context.get_dummy_value()

        return codegen

    def _larger_sum(code, largest, x, block):
        return code.larger(code.builder.fadd(x, block), largest)

    @intrinsic
    def dot_block(typing, x, matrix, j, out):
        """``out = x @ matrix``."""
        return types.void(x, matrix, types.intp, out), _square(0.0, _Code.add_product)

    @intrinsic
    def max_plus_block(typing, x, matrix, j, out):
        """``out = max_i x[i] + matrix[i]``."""
        return types.void(x, matrix, types.intp, out), _square(-np.inf, _larger_sum)

    @intrinsic
    def add_top_two(typing, x, i, y, j, out):
        """``out = x[i] + y[j]`` for rows of matrices; returns its largest and the next one."""

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, y, out = (code.array(signature.args[k], args[k]) for k in (0, 2, 4))
            n = builder.extract_value(out.shape, 0)
            rows = ((x, builder.mul(args[1], n)), (y, builder.mul(args[3], n)))
            top, second = _top_two(code, rows, n, out)
            for half in (4, 2):
                order = [(i + half) % LANES for i in range(LANES)]
                order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
                others = [builder.shuffle_vector(z, z, order) for z in (top, second)]
                top, second = _merge_top_two(code, (top, second), others)
            lanes = [ir.Constant(ir.IntType(32), i) for i in range(2)]
            pairs = ([builder.extract_element(z, lane) for z in (top, second)] for lane in lanes)
            found = _merge_top_two(code, *pairs)
            return context.make_tuple(builder, signature.return_type, found)

        return types.UniTuple(types.float64, 2)(x, types.intp, y, types.intp, out), codegen

    def _top_two(code, rows, n, out):
        """Write the sums; the two largest in each lane."""
        builder, lowest = code.builder, ir.Constant(_BLOCK, [-np.inf] * LANES)
        registers = [cgutils.alloca_once(builder, _BLOCK) for _ in range(2)]
        for register in registers:
            builder.store(lowest, register)
        last = builder.sub(n, _INT(LANES))
        with cgutils.for_range_slice(builder, _INT(0), n, _INT(LANES)) as (start, _):
            at = builder.select(builder.icmp_signed("<", start, last), start, last)
            total = builder.fadd(*(code.block(x, builder.add(row, at))[1] for x, row in rows))
            code.store(total, code.block(out, at)[0])
            skip = code.spread(builder.sub(start, at), _LANE_NUMBERS.type)
            skipped = builder.icmp_signed("<", _LANE_NUMBERS, skip)
            total = builder.select(skipped, lowest, total)
            best = [builder.load(register) for register in registers]
            for new, register in zip(
                _merge_top_two(code, best, (total, lowest)), registers, strict=True
            ):
                builder.store(new, register)
        return [builder.load(register) for register in registers]

    def _merge_top_two(code, a, b):
        (top_a, second_a), (top_b, second_b) = a, b
        greater = code.builder.fcmp_ordered(">", top_b, top_a)
        top = code.builder.select(greater, top_b, top_a)
        lower = code.builder.select(greater, top_a, top_b)
        return top, code.larger(lower, code.larger(second_a, second_b))

    def _add_multiples(code, y, kind, j, skip, first, last, factor, place, target):
        """Add ``factor(k) * y`` to the blocks of the target that are at ``place(k)``."""
        _, block = code.block(code.array(kind, y), j)
        skipped = code.builder.icmp_signed(
            "<", _LANE_NUMBERS, code.spread(skip, _LANE_NUMBERS.type)
        )
        block = code.builder.select(skipped, ir.Constant(_BLOCK, [0.0] * LANES), block)
        with cgutils.for_range_slice(code.builder, first, last, _INT(1)) as (k, _):
            address, total = code.block(target, code.builder.add(place(k), j))
            code.store(factor(total, block, k), address)

    @intrinsic
    def outer_block(typing, weight, x, y, j, skip, out):
        """``out += weight * outer(x, y)``, but for the first ``skip`` columns."""

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, out = (code.array(signature.args[i], args[i]) for i in (1, 5))
            n_rows, width = (builder.extract_value(out.shape, i) for i in (0, 1))

            def add(total, block, i):
                factor = builder.fmul(args[0], code.item(x, i))
                return code.add_product(total, code.spread(factor), block)

            def place(i):
                return builder.mul(i, width)

            _add_multiples(
                code, args[2], signature.args[2], *args[3:5], _INT(0), n_rows, add, place, out
            )
            return context.get_dummy_value()

        return types.void(types.float64, x, y, types.intp, types.intp, out), codegen

    @intrinsic
    def scatter_block(typing, x, values, rows, first, last, j, skip, vector):
        """Add ``values[k] * x`` to what begins at ``rows[k]``, but for its first columns."""

        def codegen(context, builder, signature, args):
            _scatter(_Code(context, builder), signature.args, args)
            return context.get_dummy_value()

        return types.void(x, values, rows, *[types.intp] * 4, vector), codegen

    @intrinsic
    def scatter_unit_block(typing, x, rows, first, last, j, skip, vector):
        """The same with values that are all one."""

        def codegen(context, builder, signature, args):
            kinds = [signature.args[0], None, *signature.args[1:]]
            _scatter(_Code(context, builder), kinds, [args[0], None, *args[1:]])
            return context.get_dummy_value()

        return types.void(x, rows, *[types.intp] * 4, vector), codegen

    def _scatter(code, kinds, args):
        x, values, rows, first, last, j, skip, vector = args
        rows, vector = code.array(kinds[2], rows), code.array(kinds[7], vector)
        if values is not None:
            values = code.array(kinds[1], values)

        def add(total, block, k):
            if values is None:
                return code.builder.fadd(total, block)
            return code.add_product(total, code.spread(code.item(values, k)), block)

        def place(k):
            return code.builder.sext(code.item(rows, k), _INT)

        _add_multiples(code, x, kinds[0], j, skip, first, last, add, place, vector)
