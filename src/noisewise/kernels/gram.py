"""The Gram matrix of the buffered rows."""

import numpy as np
from numba import float64, void

from . import plain
from .anchor import numbers_of, offsets
from .compile_options import entry
from .simd import WORD, make_intrinsic

CHUNK = np.uint64(64)  # rows that stay in the nearest cache


@make_intrinsic(plain.squares, lanes=8)
def squares(build, write, gram, d, ld, x, count):
    """Add x x' of so many rows to the lower triangle of G, four by eight numbers at a time."""
    with write.loop(d, 4) as (i, _), write.loop(build.add(i, WORD(4))) as (j, _):

        def products(t):
            row = write.get(x, t, j)
            for r in range(4):
                yield write.times(write.get_one(x, t, i, WORD(r)), row)

        for r, more in enumerate(write.sums(4, products, build.mul(count, ld), ld)):
            at = build.mul(build.add(i, WORD(r)), ld), j
            gram.put(gram.plus(gram.get(*at), more), *at)


@entry(void(float64[::1], float64[:, ::1], float64[::1]))
def add_gram(a, gram, room):
    """Move the buffered rows to ``gram`` as x x'; ``room`` is scratch, as large as the inverse."""
    s = numbers_of(a)
    at, d = offsets(s), np.uint64(s.dim)
    rows, ld = at.rows, at.width
    left = np.uint64(s.buffered)
    room[:] = 0.0
    while left > 0:
        some = left if left < CHUNK else CHUNK
        squares(a, room, d, ld, rows, some)
        rows += some * ld
        left -= some
    for i in range(d):
        for j in range(i):
            gram[i, j] += room[i * ld + j]
            gram[j, i] = gram[i, j]
        gram[i, i] += room[i * ld + i]
    s.buffered = 0.0
