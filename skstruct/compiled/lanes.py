"""Instructions that the compiler does not find by itself: blocks of eight columns, and prefetch.

Each function on wide rows, of at least eight columns, keeps up to three blocks of eight columns in
registers while it loops over rows; the last block may begin within the one before. The compiler
loads and stores a block at every row, or works on single columns. On processors with narrower
registers it splits the blocks. Without these functions an epoch of the perceptron takes 1.35 to 1.7
times as long, an iteration of L-BFGS 1.33 to 1.4 times, and prediction 1.5 to 1.7 times.

The weights of a token's features are scattered over a large array, at addresses that are known well
in advance. Without `prefetch`, learners are up to 16 % slower, and prediction in batches 15 to
27 %: scoring spends most of its time on cache misses.
"""

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

LANES = 8
# Numbers that a sum takes in at a time: additions of four blocks do not wait for each other.
GROUP = 4 * LANES
# Rows that use a row of a matrix while it is in a register.
TOGETHER = 4
# The same in single precision, where twice as many rows fit.
PANEL_ROWS = 8
# Number of features to look ahead, and number of doubles in a cache line.
AHEAD = 32
LINE = 8


if numba.config.DISABLE_JIT:

    def prefetch(array, position):
        """Ask for no data: interpreted code gains nothing from it."""

    def sum_wide_rows(initial, matrix, rows, values, threshold, first, last, out):
        """``out = initial + sum_k values[k] * matrix[rows[k]]`` over ``first <= k < last``.

        An `initial` of None is zero, values of None are all one. If ``matrix`` is a vector, rows
        begin at ``rows[k]``. With a threshold, a number ``v`` of the matrix becomes
        ``v - min(max(v, -threshold), threshold)``.
        """
        width = matrix.shape[1] if matrix.ndim == 2 else 1
        out[:] = 0.0 if initial is None else initial
        for k in range(first, last):
            row = matrix.ravel()[rows[k] * width :][: len(out)]
            if threshold is not None:
                row = row - np.minimum(np.maximum(row, -threshold), threshold)
            out += row if values is None else values[k] * row

    def sum_groups(vector, n_groups):
        """Sum of the first groups of four blocks, lane by lane and then over the lanes."""
        blocks = vector[: n_groups * GROUP].reshape(n_groups, GROUP // LANES, LANES)
        lanes = np.zeros(blocks.shape[1:])
        for group in blocks:
            lanes += group
        a, b, c, d = lanes
        lanes = (a + b) + (c + d)
        for half in (4, 2, 1):
            lanes = lanes[:half] + lanes[half : 2 * half]
        return lanes[0]

    def scatter_wide_row(x, values, rows, first, last, vector):
        """Add ``values[k] * x`` to the row that begins at ``rows[k]``; values of None are one."""
        for k in range(first, last):
            vector[rows[k] :][: len(x)] += x if values is None else values[k] * x

    def dot_wide_rows(x, matrix, out):
        """``out = x @ matrix``."""
        out[:] = x @ matrix

    def max_plus_wide_rows(x, matrix, out):
        """``out = max_i x[i] + matrix[i]``."""
        out[:] = np.max(x[:, None] + matrix, axis=0)

    def add_wide_outer(weight, x, y, out):
        """``out += weight * outer(x, y)``."""
        out += weight * np.outer(x, y)

    def add_wide_products(values, t, matrix, rows, out):
        """``out[s] += sum_k values[s, k] * matrix[rows[k]]`` for `TOGETHER` rows from ``t``."""
        total = np.empty(matrix.shape[1])
        for s in range(t, t + TOGETHER):
            sum_wide_rows(None, matrix, rows, values[s], None, 0, len(rows), total)
            out[s] += total

    def add_wide_terms(values, t, matrix, start, first, last, out):
        """``out[s] += values[s, k] * matrix[start + k]`` for ``first <= k < last``, in this order.

        For `TOGETHER` rows from ``t``.
        """
        for k in range(first, last):
            for s in range(t, t + TOGETHER):
                out[s] += values[s, k] * matrix[start + k]

    def add_wide_outers(x, y, places, out):
        """``out += sum_i outer(x[places[i]], y[places[i]])`` over the first `TOGETHER` places."""
        for place in places[:TOGETHER]:
            add_wide_outer(1.0, x[place], y[place], out)

    def write_panel_products(values, n_rows, weights, out):
        """``out[:n_rows] = values[:n_rows] @ matrix``, all in single precision.

        ``weights`` are the columns of the matrix, `LANES` at a time: of shape (n_blocks, n, LANES).
        So many rows of all arrays are a multiple of `PANEL_ROWS`.
        """
        blocks = [values[:n_rows] @ block for block in weights]
        out[:n_rows] = np.concatenate(blocks, axis=1)

    def add_panel_outers(values, places, factors, out):
        """``out += sum_i outer(values[places[i]], factors[i])`` over `PANEL_ROWS` places.

        ``out`` has columns as the weights of `write_panel_products`.
        """
        blocks = factors[:PANEL_ROWS].reshape(PANEL_ROWS, -1, LANES)
        out += np.einsum("in,ibj->bnj", values[places[:PANEL_ROWS]], blocks)

    def add_top_two(x, i, y, j, out):
        """``out = x[i] + y[j]`` for rows of matrices.

        Returns its largest item, the next one, and the first position of the largest, without NaN.
        """
        out[:] = x[i] + y[j]
        numbers = np.where(np.isnan(out), -np.inf, out)
        second, top = np.sort(numbers)[-2:]
        return top, second, np.argmax(numbers)

else:
    _INT = ir.IntType(64)
    _BLOCK = ir.VectorType(ir.DoubleType(), LANES)
    _SINGLE = ir.VectorType(ir.FloatType(), LANES)
    _ZEROS = ir.Constant(_BLOCK, [0.0] * LANES)
    _LANE_NUMBERS = ir.Constant(ir.VectorType(ir.IntType(64), LANES), list(range(LANES)))
    _FUSED = ("contract",)

    class _Code:
        """Builder of the instructions on one block, for the arrays of a call."""

        def __init__(self, context, builder, kind=_BLOCK):
            self.context, self.builder, self.kind = context, builder, kind
            self._align = 8 if kind is _BLOCK else 4

        def array(self, kind, value):
            """Parts of an array; None for None."""
            if kind == types.none:
                return None
            return arrayobj.make_array(kind)(self.context, self.builder, value)

        def item(self, array, position):
            return self.builder.load(self.builder.gep(array.data, [position]))

        def block(self, array, position):
            """Address and value of the block at a position."""
            address = self.builder.gep(array.data, [position])
            address = self.builder.bitcast(address, self.kind.as_pointer())
            value = self.builder.load(address)
            value.align = self._align
            return address, value

        def store(self, value, address):
            self.builder.store(value, address).align = self._align

        def spread(self, number, vector=None):
            vector = self.kind if vector is None else vector
            nothing = ir.Constant(vector, ir.Undefined)
            first = ir.Constant(ir.IntType(32), 0)
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            alone = self.builder.insert_element(nothing, number, first)
            return self.builder.shuffle_vector(alone, nothing, zeros)

        def add_product(self, total, x, block):
            product = self.builder.fmul(x, block, flags=_FUSED)
            return self.builder.fadd(total, product, flags=_FUSED)

        def larger(self, x, y):
            """Elementwise maximum; `y` where `x` is NaN."""
            return self.builder.select(self.builder.fcmp_ordered(">", x, y), x, y)

        def largest_lane(self, block):
            """Maximum over the lanes, in all of them."""
            for half in (4, 2, 1):
                order = [(i + half) % LANES for i in range(LANES)]
                order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
                block = self.larger(self.builder.shuffle_vector(block, block, order), block)
            return block

        def over_columns(self, n, work):
            """Work on ``n`` columns, three blocks at a time, and two or one at the end.

            ``work(starts, skip)`` emits the code for some blocks. The first columns of the last,
            ``skip`` in number, have been in a block before.
            """
            builder = self.builder

            def blocks(start, count):
                starts = [builder.add(start, _INT(i * LANES)) for i in range(count)]
                starts[-1], skip = self.fit(starts[-1], n)
                work(starts, skip)

            one, two, three = (_INT(i * LANES) for i in (1, 2, 3))
            rest = cgutils.alloca_once_value(builder, _INT(0))
            with cgutils.for_range_slice(builder, _INT(0), builder.sub(n, two), three) as (j, _):
                blocks(j, 3)
                builder.store(builder.add(j, three), rest)
            rest = builder.load(rest)
            with builder.if_then(builder.icmp_signed("<", rest, n)):
                is_two = builder.icmp_signed(">", builder.sub(n, rest), one)
                with builder.if_else(is_two) as (then, otherwise):
                    with then:
                        blocks(rest, 2)
                    with otherwise:
                        blocks(rest, 1)

        def fit(self, start, n):
            """Start of a block that is within ``n`` columns, and number of columns to skip."""
            builder, last = self.builder, self.builder.sub(n, _INT(LANES))
            at = builder.select(builder.icmp_signed("<", start, last), start, last)
            return at, builder.sub(start, at)

        def skipped(self, skip):
            """Mask of the first lanes."""
            return self.builder.icmp_signed(
                "<", _LANE_NUMBERS, self.spread(skip, _LANE_NUMBERS.type)
            )

        def over_rows(self, initial, first, last, step):
            """Fold ``step`` over the numbers from ``first`` to ``last``; the state are blocks."""
            registers = [cgutils.alloca_once(self.builder, self.kind) for _ in initial]

            def load():
                return [self.builder.load(register) for register in registers]

            def store(blocks):
                for block, register in zip(blocks, registers, strict=True):
                    self.builder.store(block, register)

            store(initial)
            with cgutils.for_range_slice(self.builder, first, last, _INT(1)) as (k, _):
                store(step(load(), k))
            return load()

    @intrinsic
    def prefetch(typing, array, position):
        """Prefetch ``array.flat[position]`` of a C-contiguous array for reading."""

        def codegen(context, builder, signature, args):
            data = _Code(context, builder).array(signature.args[0], args[0]).data
            address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [address.type, i32, i32, i32])
            name = "llvm.prefetch.p0"
            function = builder.module.globals.get(name)
            if function is None:
                function = ir.Function(builder.module, kind, name)
            # Read access, all cache levels, data cache.
            builder.call(function, [address, *(ir.Constant(i32, value) for value in (0, 3, 1))])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen

    @intrinsic
    def sum_wide_rows(typing, initial, matrix, rows, values, threshold, first, last, out):
        """``out = initial + sum_k values[k] * matrix[rows[k]]`` over ``first <= k < last``.

        An `initial` of None is zero, values of None are all one. If ``matrix`` is a vector, rows
        begin at ``rows[k]``. With a threshold, a number ``v`` of the matrix becomes
        ``v - min(max(v, -threshold), threshold)``.
        """

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            start, weights, places, factors, target = (
                code.array(signature.args[i], args[i]) for i in (0, 1, 2, 3, 7)
            )
            width = builder.extract_value(weights.shape, 1) if matrix.ndim == 2 else _INT(1)
            if threshold != types.none:
                high, low = code.spread(args[4]), code.spread(builder.fneg(args[4]))

            def shrunk(block):
                if threshold == types.none:
                    return block
                within = code.larger(block, low)
                within = builder.select(builder.fcmp_ordered("<", within, high), within, high)
                return builder.fsub(block, within)

            def sum_columns(columns, skip):
                def step(totals, k):
                    row = builder.mul(builder.sext(code.item(places, k), _INT), width)
                    blocks = [shrunk(code.block(weights, builder.add(row, j))[1]) for j in columns]
                    if factors is None:
                        return [builder.fadd(t, b) for t, b in zip(totals, blocks, strict=True)]
                    x = code.spread(code.item(factors, k))
                    return [code.add_product(t, x, b) for t, b in zip(totals, blocks, strict=True)]

                totals = [_ZEROS if start is None else code.block(start, j)[1] for j in columns]
                totals = code.over_rows(totals, args[5], args[6], step)
                for total, j in zip(totals, columns, strict=True):
                    code.store(total, code.block(target, j)[0])

            code.over_columns(builder.extract_value(target.shape, 0), sum_columns)
            return context.get_dummy_value()

        n = types.intp
        return types.void(initial, matrix, rows, values, threshold, n, n, out), codegen

    @intrinsic
    def sum_groups(typing, vector, n_groups):
        """Sum of the first groups of four blocks, lane by lane and then over the lanes."""

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            array = code.array(signature.args[0], args[0])

            def step(totals, k):
                first = builder.mul(k, _INT(GROUP))
                places = (builder.add(first, _INT(j)) for j in range(0, GROUP, LANES))
                blocks = [code.block(array, place)[1] for place in places]
                return [builder.fadd(t, b) for t, b in zip(totals, blocks, strict=True)]

            a, b, c, d = code.over_rows([_ZEROS] * (GROUP // LANES), _INT(0), args[1], step)
            lanes = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
            items = [builder.extract_element(lanes, ir.IntType(32)(i)) for i in range(LANES)]
            while len(items) > 1:
                half = len(items) // 2
                pairs = zip(items[:half], items[half:], strict=True)
                items = [builder.fadd(x, y) for x, y in pairs]
            return items[0]

        return types.float64(vector, types.intp), codegen

    def _fold_rows(initial, combine):
        """Return the code that folds the rows of a matrix and the items of a vector."""

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, matrix, out = map(code.array, signature.args, args)
            n_rows, width = (builder.extract_value(matrix.shape, i) for i in (0, 1))

            def fold_columns(columns, skip):
                def step(totals, i):
                    row, item = builder.mul(i, width), code.spread(code.item(x, i))
                    blocks = [code.block(matrix, builder.add(row, j))[1] for j in columns]
                    return [combine(code, t, item, b) for t, b in zip(totals, blocks, strict=True)]

                start = ir.Constant(_BLOCK, [initial] * LANES)
                totals = code.over_rows([start] * len(columns), _INT(0), n_rows, step)
                for total, j in zip(totals, columns, strict=True):
                    code.store(total, code.block(out, j)[0])

            code.over_columns(width, fold_columns)
            return context.get_dummy_value()

        return codegen

    def _larger_sum(code, largest, x, block):
        return code.larger(code.builder.fadd(x, block), largest)

    @intrinsic
    def dot_wide_rows(typing, x, matrix, out):
        """``out = x @ matrix``."""
        return types.void(x, matrix, out), _fold_rows(0.0, _Code.add_product)

    @intrinsic
    def max_plus_wide_rows(typing, x, matrix, out):
        """``out = max_i x[i] + matrix[i]``."""
        return types.void(x, matrix, out), _fold_rows(-np.inf, _larger_sum)

    def _find_largest(code, top, blocks, n, register):
        """First position and count of the largest item ``top``; the next one into the register."""
        builder = code.builder
        lowest = ir.Constant(_BLOCK, [-np.inf] * LANES)
        builder.store(lowest, register)
        where = cgutils.alloca_once_value(builder, n)
        n_largest = cgutils.alloca_once_value(builder, _INT(0))
        for at, skip, total in blocks:
            total = builder.select(code.skipped(skip), lowest, total)
            equal = builder.fcmp_ordered("==", total, top)
            bits = builder.zext(builder.bitcast(equal, ir.IntType(LANES)), _INT)
            first = builder.add(at, builder.cttz(bits, ir.Constant(ir.IntType(1), 0)))
            none = builder.icmp_signed("==", bits, _INT(0))
            first = builder.select(none, n, first)
            before = builder.load(where)
            found = builder.icmp_signed("<", first, before)
            builder.store(builder.select(found, first, before), where)
            builder.store(builder.add(builder.load(n_largest), builder.ctpop(bits)), n_largest)
            rest = code.larger(builder.select(equal, lowest, total), builder.load(register))
            builder.store(rest, register)
        return where, n_largest

    @intrinsic
    def add_top_two(typing, x, i, y, j, out):
        """``out = x[i] + y[j]`` for rows of matrices.

        Returns its largest item, the next one, and the first position of the largest, without NaN.
        """

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, y, out = (code.array(signature.args[k], args[k]) for k in (0, 2, 4))
            n = builder.extract_value(out.shape, 0)
            lowest = ir.Constant(_BLOCK, [-np.inf] * LANES)

            def blocks():
                """Start of each block, number of columns to skip, and sums."""
                with cgutils.for_range_slice(builder, _INT(0), n, _INT(LANES)) as (start, _):
                    at, skip = code.fit(start, n)
                    rows = ((x, builder.mul(args[1], n)), (y, builder.mul(args[3], n)))
                    pair = (code.block(z, builder.add(row, at))[1] for z, row in rows)
                    yield at, skip, builder.fadd(*pair)

            register = cgutils.alloca_once(builder, _BLOCK)
            builder.store(lowest, register)
            for at, _, total in blocks():
                code.store(total, code.block(out, at)[0])
                builder.store(code.larger(total, builder.load(register)), register)
            top = code.largest_lane(builder.load(register))
            # The next token waits for where the largest is, so that is found before all else.
            where, n_largest = _find_largest(code, top, blocks(), n, register)
            zero = ir.Constant(ir.IntType(32), 0)
            top = builder.extract_element(top, zero)
            second = builder.extract_element(code.largest_lane(builder.load(register)), zero)
            tied = builder.icmp_signed(">", builder.load(n_largest), _INT(1))
            where = builder.load(where)
            nowhere = builder.icmp_signed("==", where, n)
            where = builder.select(nowhere, _INT(0), where)
            found = (top, builder.select(tied, top, second), where)
            return context.make_tuple(builder, signature.return_type, found)

        found = types.Tuple((types.float64, types.float64, types.intp))
        return found(x, types.intp, y, types.intp, out), codegen

    def _add_to_rows(code, y, n, first, last, place, factor, target):
        """Add ``factor(k) * y`` to the row of the target at ``place(k)``; a factor of None is 1."""
        builder = code.builder

        def add_columns(columns, skip):
            blocks = [code.block(y, j)[1] for j in columns]
            blocks[-1] = builder.select(code.skipped(skip), _ZEROS, blocks[-1])
            with cgutils.for_range_slice(builder, first, last, _INT(1)) as (k, _):
                row, x = place(k), factor(k)
                found = [code.block(target, builder.add(row, j)) for j in columns]
                sums = [
                    builder.fadd(total, block) if x is None else code.add_product(total, x, block)
                    for (_, total), block in zip(found, blocks, strict=True)
                ]
                # In reverse: what the last block skips, the one before may have.
                for total, (address, _) in zip(reversed(sums), reversed(found), strict=True):
                    code.store(total, address)

        code.over_columns(n, add_columns)

    @intrinsic
    def add_wide_outer(typing, weight, x, y, out):
        """``out += weight * outer(x, y)``."""

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, y, out = map(code.array, signature.args[1:], args[1:])
            n_rows, width = (builder.extract_value(out.shape, i) for i in (0, 1))

            def place(i):
                return builder.mul(i, width)

            def factor(i):
                return code.spread(builder.fmul(args[0], code.item(x, i)))

            _add_to_rows(code, y, width, _INT(0), n_rows, place, factor, out)
            return context.get_dummy_value()

        return types.void(types.float64, x, y, out), codegen

    @intrinsic
    def add_wide_products(typing, values, t, matrix, rows, out):
        """``out[s] += sum_k values[s, k] * matrix[rows[k]]`` for `TOGETHER` rows from ``t``."""

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, weights, places, target = (
                code.array(signature.args[i], args[i]) for i in (0, 2, 3, 4)
            )
            n, width = (builder.extract_value(part.shape, 1) for part in (x, weights))
            some = [builder.add(args[1], _INT(i)) for i in range(TOGETHER)]
            starts = [builder.mul(row, n) for row in some]

            with cgutils.for_range_slice(builder, _INT(0), width, _INT(LANES)) as (start, _):
                at, skip = code.fit(start, width)

                def step(totals, k):
                    row = builder.sext(code.item(places, k), _INT)
                    _, block = code.block(weights, builder.add(builder.mul(row, width), at))
                    factors = [code.spread(code.item(x, builder.add(s, k))) for s in starts]
                    pairs = zip(totals, factors, strict=True)
                    return [code.add_product(total, factor, block) for total, factor in pairs]

                totals = code.over_rows([_ZEROS] * TOGETHER, _INT(0), n, step)
                for row, total in zip(some, totals, strict=True):
                    place = builder.add(builder.mul(row, width), at)
                    address, before = code.block(target, place)
                    total = builder.fadd(before, total)
                    code.store(builder.select(code.skipped(skip), before, total), address)
            return context.get_dummy_value()

        return types.void(values, types.intp, matrix, rows, out), codegen

    @intrinsic
    def add_wide_terms(typing, values, t, matrix, start, first, last, out):
        """``out[s] += values[s, k] * matrix[start + k]`` for ``first <= k < last``, in this order.

        For `TOGETHER` rows from ``t``. Nothing is fused: processors differ in what they can fuse.
        """

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, weights, target = (code.array(signature.args[i], args[i]) for i in (0, 2, 6))
            n, width = (builder.extract_value(part.shape, 1) for part in (x, weights))
            some = [builder.add(args[1], _INT(i)) for i in range(TOGETHER)]
            starts = [builder.mul(row, n) for row in some]

            with cgutils.for_range_slice(builder, _INT(0), width, _INT(LANES)) as (start, _):
                at, skip = code.fit(start, width)
                places = (builder.add(builder.mul(row, width), at) for row in some)
                found = [code.block(target, place) for place in places]

                def step(totals, k):
                    row = builder.mul(builder.add(args[3], k), width)
                    _, block = code.block(weights, builder.add(row, at))
                    factors = [code.spread(code.item(x, builder.add(s, k))) for s in starts]
                    pairs = zip(totals, factors, strict=True)
                    return [builder.fadd(t, builder.fmul(factor, block)) for t, factor in pairs]

                totals = code.over_rows([before for _, before in found], *args[4:6], step)
                for (address, before), total in zip(found, totals, strict=True):
                    code.store(builder.select(code.skipped(skip), before, total), address)
            return context.get_dummy_value()

        n = types.intp
        return types.void(values, n, matrix, n, n, n, out), codegen

    @intrinsic
    def add_wide_outers(typing, x, y, places, out):
        """``out += sum_i outer(x[places[i]], y[places[i]])`` over the first `TOGETHER` places."""

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, y, places, target = map(code.array, signature.args, args)
            n_rows, width = (builder.extract_value(target.shape, i) for i in (0, 1))
            some = [code.item(places, _INT(i)) for i in range(TOGETHER)]
            starts = [builder.mul(place, n_rows) for place in some]

            with cgutils.for_range_slice(builder, _INT(0), width, _INT(LANES)) as (start, _):
                at, skip = code.fit(start, width)
                of_y = (builder.add(builder.mul(place, width), at) for place in some)
                blocks = [code.block(y, place)[1] for place in of_y]
                blocks = [builder.select(code.skipped(skip), _ZEROS, block) for block in blocks]
                with cgutils.for_range_slice(builder, _INT(0), n_rows, _INT(1)) as (k, _):
                    place = builder.add(builder.mul(k, width), at)
                    address, total = code.block(target, place)
                    for s, block in zip(starts, blocks, strict=True):
                        factor = code.spread(code.item(x, builder.add(s, k)))
                        total = code.add_product(total, factor, block)
                    code.store(total, address)
            return context.get_dummy_value()

        return types.void(x, y, places, out), codegen

    @intrinsic
    def write_panel_products(typing, values, n_rows, weights, out):
        """``out[:n_rows] = values[:n_rows] @ matrix``, all in single precision.

        ``weights`` are the columns of the matrix, `LANES` at a time: of shape (n_blocks, n, LANES).
        So many rows of all arrays are a multiple of `PANEL_ROWS`.
        """

        def codegen(context, builder, signature, args):
            code = _Code(context, builder, _SINGLE)
            x, weights, target = (code.array(signature.args[i], args[i]) for i in (0, 2, 3))
            n, n_blocks = (builder.extract_value(weights.shape, i) for i in (1, 0))
            lanes, zeros = _INT(LANES), ir.Constant(_SINGLE, [0.0] * LANES)
            width = builder.mul(n_blocks, lanes)

            with (
                cgutils.for_range_slice(builder, _INT(0), n_blocks, _INT(1)) as (b, _),
                cgutils.for_range_slice(builder, _INT(0), args[1], _INT(PANEL_ROWS)) as (t, _),
            ):
                first, rows = (
                    builder.mul(b, n),
                    [builder.add(t, _INT(i)) for i in range(PANEL_ROWS)],
                )
                starts = [builder.mul(row, n) for row in rows]

                def step(totals, k):
                    _, block = code.block(weights, builder.mul(builder.add(first, k), lanes))
                    # One factor after the other: registers are few.
                    factors = (code.spread(code.item(x, builder.add(s, k))) for s in starts)
                    pairs = zip(totals, factors, strict=True)
                    return [code.add_product(total, factor, block) for total, factor in pairs]

                totals = code.over_rows([zeros] * PANEL_ROWS, _INT(0), n, step)
                for row, total in zip(rows, totals, strict=True):
                    place = builder.add(builder.mul(row, width), builder.mul(b, lanes))
                    code.store(total, code.block(target, place)[0])
            return context.get_dummy_value()

        return types.void(values, types.intp, weights, out), codegen

    @intrinsic
    def add_panel_outers(typing, values, places, factors, out):
        """``out += sum_i outer(values[places[i]], factors[i])`` over `PANEL_ROWS` places.

        ``out`` has columns as the weights of `write_panel_products`.
        """

        def codegen(context, builder, signature, args):
            code = _Code(context, builder, _SINGLE)
            x, places, y, target = map(code.array, signature.args, args)
            n, n_blocks = (builder.extract_value(target.shape, i) for i in (1, 0))
            lanes = _INT(LANES)
            some = [code.item(places, _INT(i)) for i in range(PANEL_ROWS)]
            starts = [builder.mul(place, n) for place in some]

            with cgutils.for_range_slice(builder, _INT(0), n_blocks, _INT(1)) as (b, _):
                first, width = builder.mul(b, n), builder.mul(n_blocks, lanes)
                of_y = (builder.mul(width, _INT(i)) for i in range(PANEL_ROWS))
                of_y = (builder.add(row, builder.mul(b, lanes)) for row in of_y)
                blocks = [code.block(y, place)[1] for place in of_y]
                with cgutils.for_range_slice(builder, _INT(0), n, _INT(1)) as (k, _):
                    place = builder.mul(builder.add(first, k), lanes)
                    address, total = code.block(target, place)
                    for s, block in zip(starts, blocks, strict=True):
                        factor = code.spread(code.item(x, builder.add(s, k)))
                        total = code.add_product(total, factor, block)
                    code.store(total, address)
            return context.get_dummy_value()

        return types.void(values, places, factors, out), codegen

    @intrinsic
    def scatter_wide_row(typing, x, values, rows, first, last, vector):
        """Add ``values[k] * x`` to the row that begins at ``rows[k]``; values of None are one."""

        def codegen(context, builder, signature, args):
            code = _Code(context, builder)
            x, values, rows, vector = (code.array(signature.args[i], args[i]) for i in (0, 1, 2, 5))

            def place(k):
                return builder.sext(code.item(rows, k), _INT)

            def factor(k):
                return None if values is None else code.spread(code.item(values, k))

            n = builder.extract_value(x.shape, 0)
            _add_to_rows(code, x, n, *args[3:5], place, factor, vector)
            return context.get_dummy_value()

        n = types.intp
        return types.void(x, values, rows, n, n, vector), codegen
