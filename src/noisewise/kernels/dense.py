"""Small symmetric matrices, compiled: both halves are kept, and alike to the last bit.

Rows and matrices are set by loops. An assignment of arrays would take the compiler half a second,
most of it for the sentence about shapes that do not fit.
"""

import math

import numpy as np
from numba import njit

from .compile_options import INNER, PART

LOST = 1e-14  # a pivot below this share of its diagonal entry is lifted to it


@njit(**INNER)
def set_line(a, out):
    """Set a vector."""
    for i in range(a.shape[0]):
        out[i] = a[i]


@njit(**INNER)
def set_matrix(A, out):
    """Set a matrix."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, j] = A[i, j]


@njit(**INNER)
def clear(A):
    """Set a matrix to zero."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 0.0


@njit(**PART)
def times(A, z, out):
    """Set A z, and return z'A z."""
    D = z.shape[0]
    total = 0.0
    for i in range(D):
        inner = 0.0
        for j in range(D):
            inner += A[i, j] * z[j]
        out[i] = inner
        total += inner * z[i]
    return total


@njit(**PART)
def add_outer(A, z, c):
    """Add c z z', both halves alike."""
    for i in range(z.shape[0]):
        cz = c * z[i]
        for j in range(i + 1):
            A[i, j] += cz * z[j]
            A[j, i] = A[i, j]


@njit(**PART)
def invert(A, R, out):
    """Set the inverse of A + R."""
    D = A.shape[0]
    L = np.empty((D, D))
    for i in range(D):
        own = A[i, i] + R[i, i]
        for j in range(i + 1):
            total = A[i, j] + R[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = math.sqrt(max(total, LOST * own))
            else:
                L[i, j] = total / L[j, j]
    for j in range(D):  # the inverse of L, in place
        L[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, D):
            total = 0.0
            for k in range(j, i):
                total += L[i, k] * L[k, j]
            L[i, j] = -total / L[i, i]
    for i in range(D):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, D):
                total += L[k, i] * L[k, j]
            out[i, j] = total
            out[j, i] = total
