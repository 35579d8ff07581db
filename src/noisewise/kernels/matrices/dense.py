"""Small vectors and symmetric matrices, compiled: both halves are kept, and alike to the last bit.

Rows and matrices are set by loops. An assignment of arrays would take the compiler half a second,
most of it for the sentence about shapes that do not fit.
"""

import math

import numpy as np
from numba import njit

from ..compiling.compile_options import INNER, PART

LOST = 1e-14  # a pivot below this share of its diagonal entry is lifted to it


@njit(**INNER)
def dot_to(a, b, n):
    """Return the product of the first n numbers of a and b."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@njit(**INNER)
def dot(a, b):
    """Return a.b, where b may be longer."""
    return dot_to(a, b, a.shape[0])


@njit(**INNER)
def largest(a):
    """Return the largest number."""
    most = -math.inf
    for i in range(a.shape[0]):
        most = max(most, a[i])
    return most


@njit(**INNER)
def softmax(a, depth, out):
    """Set shares proportional to the exponentials of numbers, at most ``depth`` below the largest.

    ``out`` may be ``a``.
    """
    most, total = largest(a), 0.0
    for k in range(a.shape[0]):
        out[k] = math.exp(max(a[k] - most, -depth))
        total += out[k]
    for k in range(a.shape[0]):
        out[k] /= total


@njit(**INNER)
def log_sum_exp(a):
    """Return the logarithm of the sum of exponentials."""
    most, total = largest(a), 0.0
    for i in range(a.shape[0]):
        total += math.exp(a[i] - most)
    return most + math.log(total)


@njit(**INNER)
def set_line(a, out):
    """Set a vector."""
    for i in range(a.shape[0]):
        out[i] = a[i]


@njit(**PART)
def set_matrix(A, out):
    """Set a matrix."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, j] = A[i, j]


@njit(**PART)
def clear(A):
    """Set a matrix to zero."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 0.0


@njit(**PART)
def symmetrise(A):
    """Set the upper half of a matrix to the lower one."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[j, i] = A[i, j]


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
def update_inverse(P, k, q, w, gamma):
    """Change P = A^-1 to the inverse of gamma A + w z z', given k = P z and q = z'P z.

    Returns f = w / (gamma + w q): the new P z is f k / w, and a residual r moves P b by f r k.
    """
    f, grown = w / (gamma + w * q), 1.0 / gamma
    for i in range(k.shape[0]):
        fk = f * k[i]
        for j in range(i + 1):
            P[i, j] = (P[i, j] - fk * k[j]) * grown
            P[j, i] = P[i, j]
    return f


@njit(**PART)
def add_to_inverse(P, z, w, steep, k):
    """Add w z z' to the matrix of which P is the inverse, and return w z'Pz of before.

    Sets ``k`` to P z of before. Nothing is added where that is negative, or at least ``steep`` and
    digits would cancel.
    """
    q = times(P, z, k)
    if 0.0 <= w * q < steep:
        update_inverse(P, k, q, w, 1.0)
    return w * q


@njit(**PART)
def inverse_factor(A, M):
    """Set M, lower triangular with M A M' = I, the inverse of the Cholesky factor of A.

    The lower half of A is read. A pivot that rounding has made too small does not end it.
    """
    D = A.shape[0]
    L = np.empty((D, D))
    for i in range(D):
        for j in range(i):
            L[i, j] = (A[i, j] - dot_to(L[j], L[i], j)) / L[j, j]
        pivot = max(A[i, i] - dot_to(L[i], L[i], i), LOST * A[i, i])
        L[i, i] = math.sqrt(pivot)
        for k in range(D):
            M[i, k] = 0.0
        for j in range(i):
            f = L[i, j] / L[i, i]
            for k in range(j + 1):
                M[i, k] -= f * M[j, k]
        M[i, i] = 1.0 / L[i, i]


@njit(**PART)
def set_inverse(M, out):
    """Set M'M, the inverse of the matrix of which M is the `inverse_factor`."""
    D = M.shape[0]
    clear(out)
    for i in range(D):
        for j in range(i + 1):
            f = M[i, j]
            for k in range(j + 1):
                out[j, k] += f * M[i, k]
    symmetrise(out)


@njit(**PART)
def solve(M, b, out):
    """Set M'M b, the solution for the matrix of which M is the `inverse_factor`."""
    D = M.shape[0]
    for i in range(D):
        out[i] = 0.0
    for i in range(D):
        c = dot_to(M[i], b, i + 1)
        for j in range(i + 1):
            out[j] += c * M[i, j]


@njit(**PART)
def invert(A, R, out):
    """Set the inverse of A + R; ``out`` may be A."""
    D = A.shape[0]
    M = np.empty((D, D))
    for i in range(D):
        for j in range(i + 1):
            out[i, j] = A[i, j] + R[i, j]
    inverse_factor(out, M)
    set_inverse(M, out)
