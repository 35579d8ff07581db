"""The vector loops of a round. Vectors are named by their offsets and padded to whole fours."""

import numpy as np
from numba import njit

from ..compiling.compile_options import INNER, TESTED

ZERO, ONE, TWO, THREE, FOUR = [np.uint64(n) for n in range(5)]


@njit(**INNER)
def copy_and_dot(a, x, d, x0, row, unit, m, u):
    """Copy the vector x, not padded, times ``unit`` to ``row``, padded; return its products.

    They are those with m, u and itself.
    """
    xm, xu, xx = 0.0, 0.0, 0.0
    for j in range(d):
        value = x[x0 + j] * a[unit + j]
        a[row + j] = value
        xm += value * a[m + j]
        xu += value * a[u + j]
        xx += value * value
    for j in range(d, (d + THREE) // FOUR * FOUR):
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


@njit(**INNER)
def plain_sweep(a, d, ld, P, old, x, new, coefficient):
    """Add coefficient old old' to P and set new = P x; return x'Px.

    P is symmetric: only the fours up to the diagonal are read and written, and serve twice. Four
    rows are taken at a time.
    """
    q = 0.0
    for i in range(np.uint64(0), d, FOUR):
        r0 = P + i * ld
        r1, r2, r3 = r0 + ld, r0 + TWO * ld, r0 + THREE * ld
        c0, c1 = coefficient * a[old + i], coefficient * a[old + i + ONE]
        c2, c3 = coefficient * a[old + i + TWO], coefficient * a[old + i + THREE]
        v0, v1, v2, v3 = a[x + i], a[x + i + ONE], a[x + i + TWO], a[x + i + THREE]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(i + FOUR):
            k, v = a[old + j], a[x + j]
            f0, f1 = a[r0 + j] + c0 * k, a[r1 + j] + c1 * k
            f2, f3 = a[r2 + j] + c2 * k, a[r3 + j] + c3 * k
            a[r0 + j], a[r1 + j], a[r2 + j], a[r3 + j] = f0, f1, f2, f3
            a[new + j] += (f0 * v0 + f1 * v1) + (f2 * v2 + f3 * v3)
            s0 += f0 * v
            s1 += f1 * v
            s2 += f2 * v
            s3 += f3 * v
        a[new + i], a[new + i + ONE], a[new + i + TWO], a[new + i + THREE] = s0, s1, s2, s3
    for j in range(d):
        q += a[new + j] * a[x + j]
    return (q,)


if TESTED:
    from .vector_sweep import sweep as sweep
else:
    sweep = plain_sweep
