"""The vector loops of a round. Vectors are named by their offsets and padded to whole fours."""

import numpy as np
from numba import njit

from . import plain
from .compile_options import INNER
from .simd import WORD, make_intrinsic


@njit(**INNER)
def square(x, d, x0):
    """Return the squared length of the vector at x0, not padded."""
    total = 0.0
    d, x0 = np.uint64(d), np.uint64(x0)
    for j in range(d):
        total += x[x0 + j] * x[x0 + j]
    return (total,)


@make_intrinsic(plain.copy_and_dot, results=3)
def copy_and_dot(build, write, read, d, x0, row, m, u):
    """Copy the vector x, not padded, to ``row``, padded; return x.m, x.u and x.x."""

    def products(value, j):
        write.put(value, row, j)
        others = write.get(m, j), write.get(u, j), value
        return [write.times(value, other) for other in others]

    corner = build.and_(build.sub(d, WORD(1)), WORD(-4))
    sums = write.sums(3, lambda j: products(read.get(x0, j), j), corner)
    last = products(read.get_some(build.sub(d, corner), x0, corner), corner)
    return [write.total(write.plus(*both)) for both in zip(sums, last, strict=True)]


@make_intrinsic(plain.advance, results=2)
def advance(build, write, d, u, k, g, x, move, r):
    """Add move k to u and r x to g; return g.u and u.u."""
    move, r = write.spread(move), write.spread(r)

    def products(j):
        step = write.plus(write.get(u, j), write.times(move, write.get(k, j)))
        gradient = write.plus(write.get(g, j), write.times(r, write.get(x, j)))
        write.put(step, u, j)
        write.put(gradient, g, j)
        return write.times(gradient, step), write.times(step, step)

    return [write.total(each) for each in write.sums(2, products, d)]


@make_intrinsic(plain.sweep, results=1)
def sweep(build, write, d, ld, P, old, x, new, coefficient):
    """Add coefficient old old' to P and set new = P x, in one sweep; return x'Px.

    P is symmetric: only the fours up to the diagonal are read and written, and serve twice.
    """
    q, coefficient = write.zero(), write.spread(coefficient)
    with write.loop(d) as (i, _):
        lines = [build.add(i, WORD(r)) for r in range(4)]
        rows = [build.add(P, build.mul(line, ld)) for line in lines]
        changes = [write.times(coefficient, write.get_one(old, line)) for line in lines]
        values = [write.get_one(x, line) for line in lines]

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

        left = write.sums(4, products, i)
        value = write.get(x, i)
        middle = [write.times(each, value) for each in changed(i)]
        both = [*map(write.plus, left, middle)]
        write.put(write.totals(*both), new, i)
        for value, *parts in zip(values, left, both, strict=True):
            more = write.times(value, write.plus(*parts))
            build.store(write.plus(build.load(q), more), q)
    return [write.total(build.load(q))]
