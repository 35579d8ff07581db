"""Arms, compiled: how long they are, their quadratic forms, which index is largest; and ridge
regression, which most policies learn by.

The forms are loops of our own: BLAS would wake its threads for them.
"""

import math

import numpy as np
from numba import float64, int64, njit, void

from . import plain
from .compile_options import INNER, PART, entry
from .dense import add_outer, times, update_inverse
from .simd import WORD, make_intrinsic

TIE = 1e-12
LARGEST = 1e50  # reward, as the readable way has it


@njit(**INNER)
def first_best(index):
    """Return the lowest position whose index equals the largest to a relative 1e-12."""
    top = index[0]
    for i in range(index.shape[0]):
        top = max(top, index[i])
    least = top - TIE * abs(top)
    for i in range(index.shape[0]):
        if index[i] >= least:
            return i
    return -1


@njit(**INNER)
def dot(v, arms, row):
    """Return the product of ``v`` with one row of ``arms``."""
    total = 0.0
    for j in range(arms.shape[1]):
        total += v[j] * arms[row, j]
    return total


@entry(float64(float64[:, ::1]))
def longest(rows):
    """Return the largest squared length of a row, NaN or infinite where a row is."""
    most = 0.0
    for i in range(rows.shape[0]):
        square = 0.0
        for j in range(rows.shape[1]):
            square += rows[i, j] * rows[i, j]
        if not square <= most:
            most = square
            if not most < math.inf:
                return most
    return most


@make_intrinsic(plain.eight_forms, lanes=8)
def eight_forms(build, P, x, quads, d):
    """Set the quadratic forms of eight vectors, the columns of ``x``: its rows are eights.

    Four rows of P are taken at a time; past its end stands the last one, where ``x`` is zero.
    """
    total, last = P.zero(), build.sub(d, WORD(1))
    with P.loop(d, 4) as (i, _):
        lines = [build.add(i, WORD(r)) for r in range(4)]
        past = [build.icmp_unsigned(">", line, last) for line in lines]
        rows = [build.mul(build.select(far, last, line), d)
                for far, line in zip(past, lines, strict=True)]  # fmt: skip

        def products(j):
            column = x.get(build.mul(j, WORD(8)))
            for row in rows:
                yield P.times(P.get_one(row, j), column)

        for line, inner in zip(lines, P.sums(4, products, d, 1), strict=True):
            square = P.times(inner, x.get(build.mul(line, WORD(8))))
            build.store(P.plus(build.load(total), square), total)
    quads.put(build.load(total), WORD(0))


@njit(**PART)
def set_forms(arms, inverse, quads):
    """Set the quadratic forms x'Px of all arms."""
    K, d = arms.shape
    columns, eight = np.zeros((d + 3, 8)), np.empty(8)
    for first in range(0, K, 8):
        n = min(8, K - first)
        for i in range(n):
            for j in range(d):
                columns[j, i] = arms[first + i, j]
        eight_forms(inverse, columns, eight, np.uint64(d))
        for i in range(n):
            quads[first + i] = max(eight[i], 0.0)


@entry(void(float64[:, ::1], float64[:, ::1], float64[::1]))
def forms_of(arms, inverse, quads):
    """`set_forms` for Python."""
    set_forms(arms, inverse, quads)


@entry(int64(float64[:, ::1], float64[::1]))
def best_score(arms, theta):
    """Return the first arm of the largest product with ``theta``."""
    scores = np.empty(arms.shape[0])
    for i in range(arms.shape[0]):
        scores[i] = dot(theta, arms, i)
    return first_best(scores)


@entry(int64(float64[::1]))
def best(index):
    """`first_best` for Python."""
    return first_best(index)


@entry(
    float64(float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64, float64, float64)
)
def add_row(V, inverse, b, x, y, w, steep):
    """Add a row to a ridge regression; return w x'V^-1 x of before.

    The inverse changes by rank one unless that would cancel, at ``steep`` and beyond.
    """
    d = x.shape[0]
    k = np.empty(d)
    q = times(inverse, x, k)
    if 0.0 <= w * q < steep:
        update_inverse(inverse, k, q, w, 1.0)
    add_outer(V, x, w)
    for i in range(d):
        b[i] += w * y * x[i]
    return w * q
