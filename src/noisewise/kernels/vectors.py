"""The vector loops of a round. Vectors are named by their offsets and padded to whole eights."""

import numpy as np
from numba import njit

from . import plain
from .compile_options import INNER
from .simd import NUMBER, WORD, make_intrinsic


@njit(**INNER)
def square(x, d, x0):
    """Return the squared length of the vector at x0, not padded."""
    total = 0.0
    d, x0 = np.uint64(d), np.uint64(x0)
    for j in range(d):
        total += x[x0 + j] * x[x0 + j]
    return (total,)


@njit(**INNER)
def copy_and_dot(a, x, d, x0, row, m, u):
    """Copy the vector x, not padded, to ``row``; return x.m, x.u and x.x."""
    xm, xu, xx = 0.0, 0.0, 0.0
    for j in range(d):
        value = x[x0 + j]
        a[row + j] = value
        xm += value * a[m + j]
        xu += value * a[u + j]
        xx += value * value
    for j in range(d, (d + np.uint64(7)) & ~np.uint64(7)):
        a[row + j] = 0.0
    return xm, xu, xx


@njit(**INNER)
def advance(a, d, u, k, g, x, move, r):
    """Add move k to u and r x to g; return g.u and u.u."""
    gu, uu = 0.0, 0.0
    for j in range(d):
        step = a[u + j] + move * a[k + j]
        gradient = a[g + j] + r * a[x + j]
        a[u + j] = step
        a[g + j] = gradient
        gu += gradient * step
        uu += step * step
    return gu, uu


@make_intrinsic(plain.sweep, results=1)
def sweep(build, write, d, ld, P, old, x, new, coefficient):
    """Add coefficient old old' to P and set new = P x, in one sweep; return x'Px.

    P is symmetric: only the eights up to the diagonal are read and written, and serve twice.
    """
    q = write.zero()
    with write.loop(d, 4) as (i, _):
        rows = [build.add(P, build.mul(build.add(i, WORD(r)), ld)) for r in range(4)]
        entries = [write.get(old, i, WORD(r), kind=NUMBER) for r in range(4)]
        changes = [write.spread(write.times(coefficient, entry)) for entry in entries]
        values = [write.spread(write.get(x, i, WORD(r), kind=NUMBER)) for r in range(4)]

        def changed(j):
            k = write.get(old, j)
            for row, change in zip(rows, changes, strict=True):
                fresh = write.plus(write.get(row, j), write.times(change, k))
                write.put(fresh, row, j)
                yield fresh

        def products(j):
            fresh, value = [*changed(j)], write.get(x, j)
            mirrored = write.get(new, j)
            for each, other in zip(fresh, values, strict=True):
                mirrored = write.plus(mirrored, write.times(each, other))
            write.put(mirrored, new, j)
            return [write.times(each, value) for each in fresh]

        corner = build.and_(i, WORD(-8))
        left = write.sums(4, products, corner)
        value = write.get(x, corner)
        middle = [write.times(each, value) for each in changed(corner)]
        both = [*map(write.plus, left, middle)]
        write.put(write.totals(*both), new, i)
        for value, *parts in zip(values, left, both, strict=True):
            more = write.times(value, write.plus(*parts))
            build.store(write.plus(build.load(q), more), q)
    return [write.total(build.load(q))]
