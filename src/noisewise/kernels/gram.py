"""The Gram matrix of the buffered rows."""

import numpy as np
from numba import float64, njit, void

from .compile_options import PART, entry
from .rounds import numbers_of, offsets

CHUNK, FEW = np.uint64(64), np.uint64(8)
ZERO, ONE, TWO, THREE, FOUR = (np.uint64(i) for i in range(5))


@njit(**PART)
def squares(a, G, d, ld, x, count):
    """Add x x' of so many rows to the lower triangle of G."""
    for t in range(count):
        row = x + t * ld
        for i in range(d):
            value = a[row + i]
            for j in range(i + ONE):
                G[i * ld + j] += value * a[row + j]


@njit(**PART)
def chunk_of_squares(T, G, d, ld):
    """Add T T' to the lower triangle of G, in products of four and four features."""
    for i in range(ZERO, d, FOUR):
        for j in range(ZERO, i + ONE, FOUR):
            i0, j0 = i * CHUNK, j * CHUNK
            i1, i2, i3 = i0 + CHUNK, i0 + TWO * CHUNK, i0 + THREE * CHUNK
            j1, j2, j3 = j0 + CHUNK, j0 + TWO * CHUNK, j0 + THREE * CHUNK
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
            for t in range(CHUNK):
                x0, x1, x2, x3 = T[i0 + t], T[i1 + t], T[i2 + t], T[i3 + t]
                y0, y1, y2, y3 = T[j0 + t], T[j1 + t], T[j2 + t], T[j3 + t]
                s00, s01, s02, s03 = s00 + x0 * y0, s01 + x0 * y1, s02 + x0 * y2, s03 + x0 * y3
                s10, s11, s12, s13 = s10 + x1 * y0, s11 + x1 * y1, s12 + x1 * y2, s13 + x1 * y3
                s20, s21, s22, s23 = s20 + x2 * y0, s21 + x2 * y1, s22 + x2 * y2, s23 + x2 * y3
                s30, s31, s32, s33 = s30 + x3 * y0, s31 + x3 * y1, s32 + x3 * y2, s33 + x3 * y3
            sums = (
                (s00, s01, s02, s03),
                (s10, s11, s12, s13),
                (s20, s21, s22, s23),
                (s30, s31, s32, s33),
            )
            at = i * ld + j
            for r in range(FOUR):
                for s in range(FOUR):
                    G[at + r * ld + s] += sums[r][s]


@entry(void(float64[::1], float64[:, ::1], float64[::1]))
def add_gram(a, gram, room):
    """Move the buffered rows to ``gram`` as x x'; ``room`` is scratch, as large as the inverse."""
    s = numbers_of(a)
    at, d = offsets(s), np.uint64(s.dim)
    row, ld = at.rows, at.width
    left = np.uint64(s.buffered)
    features = np.zeros(ld * CHUNK)
    for i in range(room.shape[0]):
        room[i] = 0.0
    while left >= FEW:
        count = min(left, CHUNK)
        for i in range(d):
            for t in range(count):
                features[i * CHUNK + t] = a[row + t * ld + i]
            for t in range(count, CHUNK):
                features[i * CHUNK + t] = 0.0
        chunk_of_squares(features, room, d, ld)
        row += count * ld
        left -= count
    squares(a, room, d, ld, row, left)
    for i in range(d):
        for j in range(i):
            gram[i, j] += room[i * ld + j]
            gram[j, i] = gram[i, j]
        gram[i, i] += room[i * ld + i]
    s.buffered = 0.0
