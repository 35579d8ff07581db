"""An orthonormal basis of the span of scaled rows, which all ridges of a mixture share.

Rows in n directions of many columns are learnt in n coordinates: a ridge does not see rotations.
A basis is a matrix of capacity x columns; its rows from the rank on are 0.
"""

import math

import numpy as np

from ...numerics.blas import matmul, one_thread
from ...protocols import Array

WITHIN = 1e-10  # what is left of a row outside the span, of its length, that is rounding


def widened(basis: Array, rank: int, rows: Array) -> int:
    """Add the directions in which rows leave the span; return the rank.

    >>> basis = np.zeros((2, 3))
    >>> widened(basis, 0, np.array([[0.0, 2.0, 0.0], [0.0, 3.0, 4.0], [0.0, 1.0, 1.0]])), basis
    (2, array([[0., 1., 0.],
           [0., 0., 1.]]))
    """
    for row in rows:
        known, left = basis[:rank], row
        for _ in range(2):  # once more, for what rounding left
            left = left - matmul(matmul(known, left), known)
        length = math.sqrt(float(left @ left))
        if length > WITHIN * math.sqrt(float(row @ row)):
            basis[rank] = left / length
            rank += 1
    return rank


@one_thread
def scaled(basis: Array, rank: int, factors: Array) -> tuple[Array, Array]:
    """Return the basis of rows whose columns are multiplied, and L: coordinates x become xL.

    That is the decomposition :math:`DQ = Q'R` with R the transpose of L.
    """
    made, R = np.zeros_like(basis), np.eye(len(basis))
    Q, R[:rank, :rank] = np.linalg.qr((basis[:rank] * factors).T)
    made[:rank] = Q.T
    return made, R.T


def stretched(basis: Array, column: int, factor: float) -> tuple[Array, float]:
    r"""Multiply one column; return the direction e and the factor t of the coordinates.

    With q the column, :math:`QD^2Q^\top = I + (f^2 - 1)qq^\top` is the square of
    :math:`T = I + (t - 1)ee^\top`, e along q. The basis becomes :math:`T^{-1}QD`, in place.

    >>> basis = np.array([[0.6, 0.8]])
    >>> direction, t = stretched(basis, 1, 0.5)
    >>> direction, round(t**2, 2), (basis * t).round(2)
    (array([1.]), 0.52, array([[0.6, 0.4]]))
    """
    q = basis[:, column].copy()
    square = min(float(q @ q), 1.0)
    basis[:, column] *= factor
    if square == 0:
        return q, 1.0
    t, e = math.sqrt(1 + (factor * factor - 1) * square), q / math.sqrt(square)
    basis += np.outer((1 / t - 1) * e, matmul(e, basis))
    return e, t
