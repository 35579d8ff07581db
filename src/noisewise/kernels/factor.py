"""A new inverse, of H with the curvatures that a pass has noted, and the step that follows."""

import math

import numpy as np
from numba import float64, njit, void

from . import anchor
from .anchor import BUFFER, THREE, TWO, numbers_of, offsets
from .compile_options import PART, entry
from .dense import inverse_factor, set_inverse
from .gram import CHUNK, chunk_of_squares


@njit(**PART)
def add_buffer(s, a, G):
    """Add the rows of the buffer to the lower half of G; their curvatures become those of H."""
    at, d = offsets(s), np.uint64(s.dim)
    width = np.int64(at.width)
    features, total = np.empty(np.int64(CHUNK) * width), np.zeros(width * width)
    numbers, row, left = at.numbers, at.rows, np.uint64(s.buffered)
    while left > 0:
        count = min(left, CHUNK)
        features[:] = 0.0
        for t in range(count):
            curvature = a[numbers + THREE * BUFFER + t]
            a[numbers + TWO * BUFFER + t] = curvature
            root = math.sqrt(curvature)
            for i in range(d):
                features[i * CHUNK + t] = root * a[row + t * at.width + i]
        chunk_of_squares(features, total, d, at.width)
        numbers, row, left = numbers + count, row + count * at.width, left - count
    for i in range(d):
        for j in range(i + 1):
            G[i, j] += total[i * at.width + j]


@njit(**PART)
def take(s, a, P, least):
    """Take an inverse, the eigenvalues of whose H are at least ``least``, and step."""
    at, d = offsets(s), np.uint64(s.dim)
    for i in range(d):
        for j in range(d):
            a[at.inverse + i * at.width + j] = P[i, j]
    # the new H is at least that share of the old one; curvatures may be lost altogether
    s.leverage /= max(s.stale_low, 1e-100)
    s.smallest = max(least, s.ridge)
    s.stale_low = s.stale_high = 1.0
    s.stale_sum = s.loss = s.pending = 0.0
    s.factors += 1.0
    anchor.restep(s, a)


@njit(**PART)
def largest_eigenvalue_bound(P):
    """Return an upper bound of the largest eigenvalue of P > 0, as `linalg` has it."""
    d = P.shape[0]
    scale, squared = 0.0, 0.0
    for i in range(d):
        scale += P[i, i]
    Q, R = np.empty((d, d)), np.empty((d, d))
    for i in range(d):
        for j in range(d):
            Q[i, j] = P[i, j] / scale
    for _ in range(3):
        for i in range(d):
            for j in range(i + 1):
                total = 0.0
                for k in range(d):
                    total += Q[i, k] * Q[j, k]
                R[i, j] = total
                R[j, i] = total
        Q, R = R, Q
    for i in range(d):
        for j in range(d):
            squared += Q[i, j] * Q[i, j]
    return scale * squared**0.0625 * (1.0 + 1e-12)


@entry(void(float64[::1], float64[:, ::1]))
def renew(a, G):
    """Take the inverse of H, of which G holds the rows that are not in the buffer, and step."""
    s = numbers_of(a)
    M = np.empty(G.shape)
    add_buffer(s, a, G)
    for i in range(G.shape[0]):
        G[i, i] += s.ridge
    inverse_factor(G, M)
    set_inverse(M, G)
    s.bounding = 2.0 * s.count
    take(s, a, G, 1.0 / largest_eigenvalue_bound(G))


@entry(void(float64[::1], float64[:, ::1]))
def complete(a, G):
    """Make G that of all rows."""
    add_buffer(numbers_of(a), a, G)
    for i in range(G.shape[0]):
        for j in range(i):
            G[j, i] = G[i, j]


@entry(void(float64[::1], float64[:, ::1], float64))
def install(a, P, least):
    """Take an inverse that was computed elsewhere, and step."""
    take(numbers_of(a), a, P, least)
