"""The sweep over an inverse in vector code, four numbers at a time.

Of four rows and a column the compiler would make one after the other; this reads each number once.
It uses how numba represents arrays and loops, which it does not document.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ..compiling.compile_options import FAST

WORD, INDEX = ir.IntType(64), ir.IntType(32)
FOUR = ir.VectorType(ir.DoubleType(), 4)
Value: TypeAlias = ir.Value


@intrinsic
def sweep(typing, a, d, ld, P, old, x, new, coefficient):  # type: ignore[no-untyped-def]
    """Do what `plain_sweep` of vectors.py does."""
    return types.UniTuple(types.float64, 1)(a, *[types.uint64] * 6, types.float64), _generate


def _generate(c: BaseContext, build: ir.IRBuilder, kind: Signature, values: list[Value]) -> Value:
    memory = c.make_array(kind.args[0])(c, build, values[0]).data
    d, ld, P, old, x, new, coefficient = values[1:]

    def place(*offsets: Value) -> Value:
        at = WORD(0)
        for offset in offsets:
            at = build.add(at, offset)
        return build.gep(memory, [at])

    def get(*offsets: Value) -> Value:
        return build.load(build.bitcast(place(*offsets), FOUR.as_pointer()), align=8)

    def put(value: Value, *offsets: Value) -> None:
        build.store(value, build.bitcast(place(*offsets), FOUR.as_pointer()), align=8)

    def pick(one: Value, other: Value, *lanes: int) -> Value:
        return build.shuffle_vector(one, other, ir.VectorType(INDEX, 4)(lanes))

    def spread(number: Value) -> Value:
        one = build.insert_element(FOUR(ir.Undefined), number, INDEX(0))
        return pick(one, one, 0, 0, 0, 0)

    def plus(one: Value, other: Value) -> Value:
        return build.fadd(one, other, flags=FAST)

    def times(one: Value, other: Value) -> Value:
        return build.fmul(one, other, flags=FAST)

    def zero() -> Value:
        return cgutils.alloca_once_value(build, FOUR([0.0] * 4))

    def add(value: Value, total: Value) -> None:
        build.store(plus(build.load(total), value), total)

    def loop(last: Value) -> AbstractContextManager[tuple[Value, Value]]:
        return cgutils.for_range_slice(build, WORD(0), last, WORD(4), WORD)

    q, coefficient = zero(), spread(coefficient)
    with loop(d) as (i, _):
        lines = [build.add(i, WORD(r)) for r in range(4)]
        rows = [build.add(P, build.mul(line, ld)) for line in lines]
        changes = [times(coefficient, spread(build.load(place(old, line)))) for line in lines]
        numbers = [spread(build.load(place(x, line))) for line in lines]
        sums = [zero() for _ in lines]

        def changed(j: Value) -> Iterator[Value]:
            k = get(old, j)
            for row, change in zip(rows, changes, strict=True):
                fresh = plus(get(row, j), times(change, k))
                put(fresh, row, j)
                yield fresh

        for total in sums:  # they are made once, before all loops
            build.store(FOUR([0.0] * 4), total)
        with loop(i) as (j, _):
            fresh, value, mirrored = [*changed(j)], get(x, j), get(new, j)
            for each, number in zip(fresh, numbers, strict=True):
                mirrored = plus(mirrored, times(each, number))
            put(mirrored, new, j)
            for each, total in zip(fresh, sums, strict=True):
                add(times(each, value), total)
        left, value = [build.load(total) for total in sums], get(x, i)
        whole = [plus(one, times(each, value)) for one, each in zip(left, changed(i), strict=True)]
        # four sums over four numbers, side by side
        even, odd = (0, 4, 2, 6), (1, 5, 3, 7)
        ab = plus(pick(*whole[:2], *even), pick(*whole[:2], *odd))
        cd = plus(pick(*whole[2:], *even), pick(*whole[2:], *odd))
        put(plus(pick(ab, cd, 0, 1, 4, 5), pick(ab, cd, 2, 3, 6, 7)), new, i)
        for number, one, other in zip(numbers, left, whole, strict=True):
            add(times(number, plus(one, other)), q)
    total = build.load(q)
    halves = plus(total, pick(total, total, 2, 3, 0, 1))
    ends = [build.extract_element(halves, INDEX(r)) for r in range(2)]
    return c.make_tuple(build, kind.return_type, [plus(*ends)])
