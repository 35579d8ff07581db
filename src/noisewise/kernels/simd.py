"""Vector code, four or eight numbers at a time, written in the compiler's own language.

Left to itself the compiler asks before every short loop whether the vectors overlap, and takes one
row of a matrix at a time. What is written here serves any width the machine has. It stays only
where it pays (`python -m benchmarks.intrinsics`), and each has a twin in `plain.py`.
"""

import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import cache, wraps
from typing import TypeAlias

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.errors import NumbaError
from numba.core.targetconfig import ConfigStack
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from .compile_options import ALONE, COMPILED, FAST

NUMBER, WORD, INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
Twin: TypeAlias = Callable[..., object]
Writer: TypeAlias = Callable[..., Iterable[ir.Value] | None]
Values: TypeAlias = list[ir.Value]
Generate: TypeAlias = Callable[..., ir.Value]


class SimdBuilder:
    """Writes code that works on one array, whose vectors are named by offsets that are added up.

    It takes ``lanes`` numbers at a time. What was stored by fours should be loaded by fours: a load
    that spans two recent stores waits for both.
    """

    def __init__(self, builder: ir.IRBuilder, data: ir.Value, lanes: int) -> None:
        self.builder, self.data, self.lanes = builder, data, lanes
        self.vector = ir.VectorType(NUMBER, lanes)

    def place(self, *offsets: ir.Value, kind: ir.Type) -> ir.Value:
        """Point to a number, or to several."""
        at = WORD(0)
        for offset in offsets:
            at = self.builder.add(at, offset)
        return self.builder.bitcast(self.builder.gep(self.data, [at]), kind.as_pointer())

    def get(self, *offsets: ir.Value) -> ir.Value:
        """Load a vector."""
        return self.builder.load(self.place(*offsets, kind=self.vector), align=8)

    def get_one(self, *offsets: ir.Value) -> ir.Value:
        """Load a number, and make a vector of it."""
        return self.spread(self.builder.load(self.place(*offsets, kind=NUMBER), align=8))

    def get_some(self, count: ir.Value, *offsets: ir.Value) -> ir.Value:
        """Load the first ``count`` numbers of a vector; the others are 0, and not touched."""
        words = ir.VectorType(WORD, self.lanes)
        limit = self.builder.insert_element(words(ir.Undefined), count, INDEX(0))
        limit = self.pick(limit, limit, *[0] * self.lanes)
        mask = self.builder.icmp_signed("<", words([*range(self.lanes)]), limit)
        place = self.place(*offsets, kind=self.vector)
        kind = ir.FunctionType(self.vector, [place.type, INDEX, mask.type, self.vector])
        name = f"llvm.masked.load.v{self.lanes}f64.p0"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        zeros = self.vector([0.0] * self.lanes)
        return self.builder.call(function, [place, INDEX(8), mask, zeros])

    def put(self, value: ir.Value, *offsets: ir.Value) -> None:
        """Store."""
        self.builder.store(value, self.place(*offsets, kind=value.type), align=8)

    def spread(self, number: ir.Value) -> ir.Value:
        """Make a vector of one number."""
        one = self.builder.insert_element(self.vector(ir.Undefined), number, INDEX(0))
        return self.pick(one, one, *[0] * self.lanes)

    def pick(self, a: ir.Value, b: ir.Value, *lanes: int) -> ir.Value:
        """Take the given ones of the numbers of a, then b."""
        return self.builder.shuffle_vector(a, b, ir.VectorType(INDEX, len(lanes))(lanes))

    def plus(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return a + b."""
        return self.builder.fadd(a, b, flags=FAST)

    def times(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return a b."""
        return self.builder.fmul(a, b, flags=FAST)

    def loop(self, last: ir.Value, step: int | ir.Value = 0) -> AbstractContextManager[ir.Value]:
        """Count from 0 to below ``last``, by vectors unless a step is given."""
        step = WORD(step or self.lanes) if isinstance(step, int) else step
        return cgutils.for_range_slice(self.builder, WORD(0), last, step, WORD)

    def zero(self) -> ir.Value:
        """Make room for a vector, zero at first."""
        room = cgutils.alloca_once(self.builder, self.vector)
        self.builder.store(self.vector([0.0] * self.lanes), room)
        return room

    def sums(
        self,
        count: int,
        products: Callable[[ir.Value], Iterable[ir.Value]],
        last: ir.Value,
        step: int | ir.Value = 0,
    ) -> list[ir.Value]:
        """Return ``count`` sums over a loop, vectors each."""
        sums = [self.zero() for _ in range(count)]
        with self.loop(last, step) as (j, _):
            for each, product in zip(sums, products(j), strict=True):
                self.builder.store(self.plus(self.builder.load(each), product), each)
        return [self.builder.load(each) for each in sums]

    def total(self, value: ir.Value) -> ir.Value:
        """Add the numbers of a vector up."""
        kind = ir.FunctionType(NUMBER, [NUMBER, self.vector])
        name = f"llvm.vector.reduce.fadd.v{self.lanes}f64"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [NUMBER(0.0), value], fastmath=FAST)

    def totals(self, a: ir.Value, b: ir.Value, c: ir.Value, d: ir.Value) -> ir.Value:
        """Add four vectors of four numbers up, side by side: half the work of one by one."""
        even, odd = (0, 4, 2, 6), (1, 5, 3, 7)
        ab = self.plus(self.pick(a, b, *even), self.pick(a, b, *odd))
        cd = self.plus(self.pick(c, d, *even), self.pick(c, d, *odd))
        return self.plus(self.pick(ab, cd, 0, 1, 4, 5), self.pick(ab, cd, 2, 3, 6, 7))


def make_intrinsic(twin: Twin, results: int = 0, lanes: int = 4) -> Callable[[Writer], Twin]:
    """Make a function of vector code, or else of ``twin``, a plain loop with the same arguments.

    The decorated function gets the compiler's builder and the arguments, a `SimdBuilder` of so many
    ``lanes`` for each array, and returns what the tuple holds that goes back. The twin serves where
    its code can't be compiled, which is tried, and where nothing is.
    """

    def made(write: Writer) -> Twin:
        def declare(choose: Callable[[tuple[types.Type, ...]], Generate]) -> Twin:
            @wraps(write)
            def declared(typing: object, *kinds: types.Type) -> tuple[Signature, Generate]:
                fit = [each if isinstance(each, types.Array | types.Float) else types.uint64
                       for each in kinds]  # fmt: skip
                result = types.UniTuple(types.float64, results) if results else types.none
                return result(*fit), choose(kinds)

            return intrinsic(declared)

        def vector_code(
            context: BaseContext, build: ir.IRBuilder, kind: Signature, values: Values
        ) -> ir.Value:
            given = [
                SimdBuilder(build, context.make_array(each)(context, build, value).data, lanes)
                if isinstance(each, types.Array) else value
                for each, value in zip(kind.args, values, strict=True)
            ]  # fmt: skip
            found = write(build, *given)
            if found is None:
                return context.get_dummy_value()
            return context.make_tuple(build, kind.return_type, found)

        def call_twin(
            context: BaseContext, build: ir.IRBuilder, kind: Signature, values: Values
        ) -> ir.Value:
            made = context.compile_subroutine(build, twin, kind, flags=ConfigStack().top().copy())
            return context.call_internal(build, made.fndesc, kind, values)

        alone = declare(lambda kinds: vector_code)

        @cache
        def compiles(kinds: tuple[types.Type, ...]) -> bool:
            try:
                njit(**ALONE)(lambda given: alone(*given)).compile((types.Tuple(kinds),))
            except (NumbaError, RuntimeError) as error:
                what = f"vector code of {write.__name__} ({type(error).__name__})"
                text = f"can't compile the {what}; a plain loop serves, which is slower"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
                return False
            return True

        chosen = declare(lambda kinds: vector_code if compiles(kinds) else call_twin)
        return chosen if COMPILED else twin

    return made
