"""Arms, compiled: how long they are, their quadratic forms, which index is largest; and ridge
regression, which most policies learn by.

The forms are loops of our own: BLAS would wake its threads for them.
"""

import math

import numpy as np
from numba import float64, int64, njit, void

from ..compiling.compile_options import INNER, PART, entry
from ..matrices.dense import add_outer, add_to_inverse, dot
from ..matrices.vectors import FOUR, ONE, THREE, TWO, ZERO

TIE = 1e-12
SIDE = np.uint64(64)  # arms side by side
EIGHT = np.uint64(8)
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
def are_within(arms, limit):
    """Whether all arms are finite, and their squared lengths at most ``limit``."""
    within = True
    for k in range(arms.shape[0]):
        within = within and dot(arms[k], arms[k]) <= limit  # NaN fails it too
    return within


@entry(int64(float64[::1], int64[::1]), nogil=False)
def set_best(index, best):
    """Set ``best`` to the positions of the largest, in order; 0 where some are equal, or NaN."""
    last = best.shape[0]
    order = np.empty(last + 1, dtype=np.int64)  # one more, which must not be equal
    held = 0
    for k in range(index.shape[0]):
        if math.isnan(index[k]):
            return 0
        j = min(held, last)
        if held <= last:
            held += 1
        elif not index[k] > index[order[j]]:
            continue
        while j > 0 and index[k] > index[order[j - 1]]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
    for j in range(held - 1):
        if index[order[j + 1]] >= index[order[j]] - TIE * abs(index[order[j]]):
            return 0
    for j in range(last):
        best[j] = order[j]
    return 1


@entry(float64(float64[:, ::1]))
def longest(rows):
    """Return the largest squared length of a row, NaN or infinite where a row is."""
    most = 0.0
    for i in range(rows.shape[0]):
        square = dot(rows[i], rows[i])
        if not square <= most:
            most = square
            if not most < math.inf:
                return most
    return most


@njit(**PART)
def set_forms(arms, inverse, quads):
    """Set the quadratic forms x'Px of all arms, of a symmetric P: 64 of them side by side.

    Their features lie a constant apart, and four columns of P are taken at a time.
    """
    K, d = np.uint64(arms.shape[0]), np.uint64(arms.shape[1])
    work, half, total = np.empty((d + TWO) * SIDE), d * SIDE, (d + ONE) * SIDE
    for first in range(ZERO, K, SIDE):
        n = min(SIDE, K - first)
        width = (n + EIGHT - ONE) // EIGHT * EIGHT
        for c in range(width):
            arm = min(first + c, K - ONE)
            for j in range(d):
                work[j * SIDE + c] = arms[arm, j]
            work[total + c] = 0.0
        for i in range(d):
            for c in range(width):
                work[half + c] = 0.0
            corner = i // FOUR * FOUR
            for j in range(ZERO, corner, FOUR):
                p0, p1 = inverse[i, j], inverse[i, j + ONE]
                p2, p3 = inverse[i, j + TWO], inverse[i, j + THREE]
                x = j * SIDE
                for c in range(x, x + width):
                    left = p0 * work[c] + p1 * work[c + SIDE]
                    right = p2 * work[c + TWO * SIDE] + p3 * work[c + THREE * SIDE]
                    work[half + c - x] += left + right
            for j in range(corner, i):
                p = inverse[i, j]
                for c in range(width):
                    work[half + c] += p * work[j * SIDE + c]
            p, x = inverse[i, i], i * SIDE
            for c in range(width):
                work[total + c] += work[x + c] * (2.0 * work[half + c] + p * work[x + c])
        for c in range(n):
            quads[first + c] = max(work[total + c], 0.0)


@entry(void(float64[:, ::1], float64[:, ::1], float64[::1]))
def forms_of(arms, inverse, quads):
    """`set_forms` for Python."""
    set_forms(arms, inverse, quads)


@entry(int64(float64[:, ::1], float64[::1]))
def best_score(arms, theta):
    """Return the first arm of the largest product with ``theta``."""
    scores = np.empty(arms.shape[0])
    for i in range(arms.shape[0]):
        scores[i] = dot(theta, arms[i])
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
    grown = add_to_inverse(inverse, x, w, steep, np.empty(x.shape[0]))
    add_outer(V, x, w)
    for i in range(x.shape[0]):
        b[i] += w * y * x[i]
    return grown
