"""The plain twins of what is written in the compiler's language: `vectors.py`, `gram.py`, `arms.py`
and `exponential.py`.

A twin serves where the vector code can't be compiled, and where nothing is; tests compare them.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ONE, FOUR = np.uint64(1), np.uint64(4)
INTEGER = 1.5 * 2.0**52  # a number added to this is rounded to an integer


def copy_and_dot(
    a: Array, x: Array, d: np.uint64, x0: np.uint64, row: np.uint64, m: np.uint64, u: np.uint64
) -> tuple[float, float, float]:
    """Copy the vector x, not padded, to ``row``, padded; return x.m, x.u and x.x."""
    xm, xu, xx = 0.0, 0.0, 0.0
    for j in range(d):
        value = x[x0 + j]
        a[row + j] = value
        xm += value * a[m + j]
        xu += value * a[u + j]
        xx += value * value
    for j in range(d, (d + FOUR - ONE) // FOUR * FOUR):
        a[row + j] = 0.0
    return xm, xu, xx


def advance(
    a: Array, d: np.uint64, u: np.uint64, k: np.uint64, g: np.uint64, x: np.uint64, move: float,
    r: float,
) -> tuple[float, float]:  # fmt: skip
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


def sweep(
    a: Array, d: np.uint64, ld: np.uint64, P: np.uint64, old: np.uint64, x: np.uint64,
    new: np.uint64, coefficient: float,
) -> tuple[float]:  # fmt: skip
    """Add coefficient old old' to P and set new = P x; return x'Px.

    P is symmetric: only the fours up to the diagonal are read and written.
    """
    q = 0.0
    for i in range(d):
        corner = i // FOUR * FOUR
        row = P + i * ld
        change = coefficient * a[old + i]
        value = a[x + i]
        left, middle = 0.0, 0.0
        for j in range(corner):
            fresh = a[row + j] + change * a[old + j]
            a[row + j] = fresh
            a[new + j] += value * fresh
            left += fresh * a[x + j]
        for j in range(corner, corner + FOUR):
            fresh = a[row + j] + change * a[old + j]
            a[row + j] = fresh
            middle += fresh * a[x + j]
        a[new + i] = left + middle
        q += value * (left + left + middle)
    return (q,)


def squares(
    a: Array, G: Array, d: np.uint64, ld: np.uint64, x: np.uint64, count: np.uint64
) -> None:
    """Add x x' of so many rows to the lower triangle of G."""
    for t in range(count):
        row = x + t * ld
        for i in range(d):
            for j in range(i + ONE):
                G[i * ld + j] += a[row + i] * a[row + j]


def eight_forms(P: Array, x: Array, quads: Array, d: np.uint64) -> None:
    """Set the quadratic forms of eight vectors, the columns of ``x``."""
    for c in range(8):
        quads[c] = 0.0
        for i in range(d):
            inner = 0.0
            for j in range(d):
                inner += P[i, j] * x[j, c]
            quads[c] += inner * x[i, c]


def power_of_two(shifted: float) -> tuple[float]:
    """Return 2^n, given n + `INTEGER`."""
    return (2.0 ** (shifted - INTEGER),)
