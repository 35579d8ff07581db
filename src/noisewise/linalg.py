"""Symmetric positive definite matrices: factors, inverses, norms."""

import numpy as np
from scipy.linalg import lapack

from .protocols import Array


def factor(H: Array) -> Array:
    """Return the lower Cholesky factor of ``H``.

    Where rounding has made H indefinite the diagonal is lifted by a few units in its last place.
    """
    for lift in (0.0, 1e-15, 1e-14, 1e-13, 1e-12):
        lifted = H + lift * np.max(np.diag(H)) * np.eye(len(H)) if lift else H
        c, info = lapack.dpotrf(lifted, lower=1, clean=1)
        if info == 0:
            return np.asarray(c)
    raise np.linalg.LinAlgError("matrix is not positive definite to working precision")


def solve(c: Array, v: Array) -> Array:
    """Solve ``H u = v`` from the factor ``c`` of H."""
    return np.asarray(lapack.dpotrs(c, v, lower=1)[0])


def invert(c: Array) -> Array:
    """Return the inverse of H from its factor ``c``."""
    lower = lapack.dpotri(c, lower=1)[0]  # zeros above the diagonal, as in c
    return np.asarray(lower + lower.T * (1 - np.eye(len(c))))


def safe_inverse(H: Array, floor: float) -> tuple[Array, float]:
    """Return an inverse that is not too small, and log det H, for H >= ``floor`` I.

    Where rounding could have cost the small eigenvalues, the inverse of the floor is returned.
    """
    d = len(H)
    c = factor(H)
    P = invert(c)
    doubt = np.finfo(np.float64).eps * d * float(np.trace(H)) * largest_eigenvalue_bound(P)
    return (P if doubt <= 0.1 else np.eye(d) / floor), log_det(c)


def log_det(c: Array) -> float:
    """Return log det H from its factor ``c``."""
    return 2 * float(np.log(np.diag(c)).sum())


def norm(v: Array, M: Array) -> float:
    """Return ||v||_M = sqrt(v'Mv)."""
    return float(np.sqrt(max(float(v @ M @ v), 0.0)))


def largest_eigenvalue_bound(P: Array) -> float:
    """Return an upper bound of the largest eigenvalue of ``P``, within d^(1/16) of it.

    The Frobenius norm of P^8, taken to the power 1/8: three products instead of a decomposition.
    """
    scale = float(np.trace(P))
    Q = P / scale
    for _ in range(3):
        Q = Q @ Q
    return scale * float(np.linalg.norm(Q)) ** 0.125 * (1 + 1e-12)


def minimax_directions(x: Array) -> tuple[Array, Array]:
    """Return P_t x_t, (T, d), and q_t = x_t' P_t x_t, (T,), of the minimax recursion.

    P_T is the pseudo-inverse of sum x x' and P_{t-1} = P_t + (P_t x_t)(P_t x_t)'.
    """
    P = np.linalg.pinv(x.T @ x, rcond=1e-12, hermitian=True)
    directions = np.empty_like(x)
    for t in range(len(x) - 1, -1, -1):
        directions[t] = P @ x[t]
        P += np.outer(directions[t], directions[t])
    return directions, np.einsum("ij,ij->i", x, directions)
