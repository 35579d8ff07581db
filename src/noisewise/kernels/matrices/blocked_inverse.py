"""The inverse of a positive definite matrix, and a bound of its eigenvalues, by blocks."""

import numpy as np
from numba import njit

from ..compiling.compile_options import PART
from .dense import LOST, dot, inverse_factor

BLOCK = 64  # rows that are factored at once
SMALL = 16  # rows up to which loops multiply, which round alike wherever matrices lie


@njit(**PART)
def cross(A, B):
    """Return AB'."""
    if A.shape[0] > SMALL:
        return np.dot(A, B.T)
    C = np.empty((A.shape[0], B.shape[0]))
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            C[i, j] = dot(A[i], B[j])
    return C


@njit(**PART)
def add(A, B, c):
    """Add cB to the corner of A."""
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            A[i, j] += c * B[i, j]


@njit(**PART)
def part(A, i0, i1, j0, j1):
    """Return a copy of rows i0 to i1, columns j0 to j1."""
    B = np.empty((i1 - i0, j1 - j0))
    for i in range(i0, i1):
        for j in range(j0, j1):
            B[i - i0, j - j0] = A[i, j]
    return B


@njit(**PART)
def invert(H):
    """Return the inverse of H, of which the lower half is read.

    It is N N', N the transpose of the inverse of the Cholesky factor, by blocks of columns.
    """
    d = H.shape[0]
    N, P = np.zeros((d, d)), np.zeros((d, d))
    for first in range(0, d, BLOCK):
        last = min(first + BLOCK, d)
        own, columns = part(H, first, last, first, last), np.zeros((last, last - first))
        known, corner, factor = part(N, 0, first, 0, first), own.copy(), own
        if first > 0:
            factor = np.dot(part(H, first, last, 0, first), known)
            add(corner, cross(factor, factor), -1.0)
            for i in range(last - first):
                corner[i, i] = max(corner[i, i], LOST * own[i, i])
        inside = np.empty(own.shape)
        inverse_factor(corner, inside)
        if first > 0:
            add(columns, cross(cross(known, factor), inside), -1.0)
        for i in range(last - first):
            for j in range(i + 1):
                columns[first + j, i] = inside[i, j]
        for i in range(last):
            for j in range(last - first):
                N[i, first + j] = columns[i, j]
        add(P, cross(columns, columns), 1.0)
    return P


@njit(**PART)
def largest_eigenvalue_bound(P):
    """Return an upper bound of the largest eigenvalue of P >= 0, as `linalg` has it."""
    scale, squares = 0.0, 0.0
    for i in range(P.shape[0]):
        scale += P[i, i]
    Q = np.zeros(P.shape)
    add(Q, P, 1.0 / scale)
    for _ in range(3):
        Q = cross(Q, Q)
    for i in range(Q.shape[0]):
        for j in range(Q.shape[1]):
            squares += Q[i, j] * Q[i, j]
    return scale * squares**0.0625 * (1.0 + 1e-12)
