"""Code for eight numbers at a time, spelt out for the compiler.

Left to itself it asks before every short loop whether the vectors overlap, and takes one row of a
matrix at a time. Here a loop is written in its own language, for any width the machine has.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from . import plain
from .compile_options import COMPILED, FAST

NUMBER, WORD, INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
EIGHT = ir.VectorType(NUMBER, 8)


class SimdBuilder:
    """Writes code that works on one array, whose vectors are named by offsets that are added up."""

    def __init__(self, builder, data):
        self.builder, self.data = builder, data

    def place(self, *offsets, kind):
        """Point to a number, or to four or eight of them."""
        at = WORD(0)
        for offset in offsets:
            at = self.builder.add(at, offset)
        return self.builder.bitcast(self.builder.gep(self.data, [at]), kind.as_pointer())

    def get(self, *offsets, kind=EIGHT):
        """Load."""
        return self.builder.load(self.place(*offsets, kind=kind), align=8)

    def put(self, value, *offsets):
        """Store."""
        self.builder.store(value, self.place(*offsets, kind=value.type), align=8)

    def get_part(self, end, j, *offsets):
        """Load the eight at j of a vector that is not padded; zeros stand behind its end."""
        lanes = ir.VectorType(WORD, 8)
        left = self.spread(self.builder.sub(end, j), lanes)
        mask = self.builder.icmp_unsigned(">", left, lanes(list(range(8))))
        place = self.place(j, *offsets, kind=EIGHT)
        arguments = [place, INDEX(8), mask, EIGHT([0.0] * 8)]
        return self.call("llvm.masked.load.v8f64.p0", EIGHT, arguments)

    def call(self, name, result, arguments, **flags):
        """Call one of the compiler's own functions."""
        kind = ir.FunctionType(result, [each.type for each in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, arguments, **flags)

    def spread(self, number, kind=EIGHT):
        """Make eight of one."""
        one = self.builder.insert_element(kind(ir.Undefined), number, INDEX(0))
        return self.pick(one, one, *[0] * 8)

    def pick(self, a, b, *lanes):
        """Take the given ones of the numbers of a, then b."""
        return self.builder.shuffle_vector(a, b, ir.VectorType(INDEX, len(lanes))(lanes))

    def plus(self, a, b):
        """Return a + b."""
        return self.builder.fadd(a, b, flags=FAST)

    def times(self, a, b):
        """Return a b."""
        return self.builder.fmul(a, b, flags=FAST)

    def loop(self, last, step=8):
        """Count from 0 to below ``last``."""
        step = WORD(step) if isinstance(step, int) else step
        return cgutils.for_range_slice(self.builder, WORD(0), last, step, WORD)

    def zero(self):
        """Make room for eight numbers, zero at first."""
        room = cgutils.alloca_once(self.builder, EIGHT)
        self.builder.store(EIGHT([0.0] * 8), room)
        return room

    def sums(self, count, products, last, step=8):
        """Return ``count`` sums over a loop, eight numbers each."""
        sums = [self.zero() for _ in range(count)]
        with self.loop(last, step) as (j, _):
            for each, product in zip(sums, products(j), strict=True):
                self.builder.store(self.plus(self.builder.load(each), product), each)
        return [self.builder.load(each) for each in sums]

    def total(self, value):
        """Add eight numbers up."""
        arguments = [NUMBER(0.0), value]
        return self.call("llvm.vector.reduce.fadd.v8f64", NUMBER, arguments, fastmath=FAST)

    def totals(self, a, b, c, d):
        """Add four eights up, side by side: half the work of one by one."""
        even, odd = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)
        ab = self.plus(self.pick(a, b, *even), self.pick(a, b, *odd))
        cd = self.plus(self.pick(c, d, *even), self.pick(c, d, *odd))
        ab = self.plus(self.pick(ab, ab, 0, 1, 2, 3), self.pick(ab, ab, 4, 5, 6, 7))
        cd = self.plus(self.pick(cd, cd, 0, 1, 2, 3), self.pick(cd, cd, 4, 5, 6, 7))
        return self.plus(self.pick(ab, cd, 0, 1, 4, 5), self.pick(ab, cd, 2, 3, 6, 7))


def spelt(function):
    """Make a function of the compiler's language, or take its namesake in `plain`."""
    return intrinsic(function) if COMPILED else getattr(plain, function.__name__)


def make_intrinsic(code, arrays, offsets, numbers, results):
    """Return type and generator of a function: arrays, then offsets, then numbers; a tuple back.

    ``code`` gets a writer for each array and the other arguments as they are.
    """
    result = types.UniTuple(types.float64, results)

    def generate(context, builder, signature, arguments):
        data = [context.make_array(kind)(context, builder, array).data
                for kind, array in zip(arrays, arguments[: len(arrays)], strict=True)]  # fmt: skip
        found = code(*[SimdBuilder(builder, each) for each in data], *arguments[len(arrays) :])
        return context.make_tuple(builder, result, found)

    return result(*arrays, *[types.uint64] * offsets, *[types.float64] * numbers), generate
