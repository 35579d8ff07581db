"""Symmetric positive definite matrices: factors, inverses, norms, projections."""

import math
from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..support.arrays import Array
from ..support.interruptible import interruptible
from .blas import SMALL_PRODUCT, matmul, one_thread

P = ParamSpec("P")
R = TypeVar("R")
OfMatrix = Callable[Concatenate[Array, P], R]

# entries of a matrix up to which OpenBLAS shares nothing: it begins with an inverse of 5 rows (Zen
# 4) and a Cholesky factor of 64 rows
TINY, SMALL = 16, 256
EPS = float(np.finfo(np.float64).eps)
LARGE = 500  # rows of a matrix whose decomposition is worth a thread
DOUBT = 1e-8  # relative error of an inverse above which it is widened


def one_thread_beyond(entries: int) -> Callable[[OfMatrix[P, R]], OfMatrix[P, R]]:
    """Let a function run with one BLAS thread where its first argument, a matrix, is larger."""

    def mark(function: OfMatrix[P, R]) -> OfMatrix[P, R]:
        alone = one_thread(function)

        @wraps(function)
        def apart(matrix: Array, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return (function if matrix.size <= entries else alone)(matrix, *args, **kwargs)

        return apart

    return mark


@cache
def lapack() -> ModuleType:
    """Return scipy's LAPACK, imported when needed: it takes a while."""
    from scipy.linalg import lapack

    return lapack


@one_thread_beyond(SMALL_PRODUCT)
def factor(H: Array) -> Array:
    """Return the lower Cholesky factor of ``H``.

    Where rounding has made H indefinite the diagonal is lifted by a few units in its last place.
    """
    for lift in (0.0, 1e-15, 1e-14, 1e-13, 1e-12):
        lifted = H + lift * np.max(np.diag(H)) * np.eye(len(H)) if lift else H
        c, info = lapack().dpotrf(lifted, lower=1, clean=1)
        if info == 0:
            return np.asarray(c)
    raise np.linalg.LinAlgError("matrix is not positive definite to working precision")


@one_thread_beyond(SMALL_PRODUCT)
def solve(c: Array, v: Array) -> Array:
    """Solve ``H u = v`` from the factor ``c`` of H."""
    return np.asarray(lapack().dpotrs(c, v, lower=1)[0])


@one_thread_beyond(SMALL)
def solve_safely(H: Array, v: Array, least: float = 1e-8) -> Array | None:
    """Solve ``H u = v``; None if the condition of H is above 1/``least``, as far as can be seen.

    A tenth of the time that eigenvalues take.

    >>> solve_safely(np.diag([2.0, 4.0]), np.ones(2))
    array([0.5 , 0.25])
    >>> solve_safely(np.diag([1.0, 1e-9]), np.ones(2)) is None
    True
    """
    c, info = lapack().dpotrf(H, lower=1, clean=1)
    if info or not lapack().dpocon(c, float(np.abs(H).sum(axis=0).max()), uplo="L")[0] > least:
        return None
    return solve(c, v)


@one_thread_beyond(TINY)
def invert(c: Array) -> Array:
    """Return the inverse of H from its factor ``c``."""
    lower = lapack().dpotri(c, lower=1)[0]  # zeros above the diagonal, as in c
    return np.asarray(lower + lower.T * (1 - np.eye(len(c))))


@one_thread_beyond(SMALL)
def safe_inverse(H: Array, floor: float) -> tuple[Array, float]:
    """Return an inverse that is not too small, and log det H, for H >= ``floor`` I.

    Where rounding could have changed the small eigenvalues by more than `DOUBT` of them, all are
    lowered by what is not known of them, down to the floor, and the inverse is lifted by what a
    quadratic form of it can lose.
    """
    c = factor(H)
    P, unsure = invert(c), EPS * len(H) * float(np.trace(H))
    if unsure * largest_eigenvalue_bound(P) > DOUBT:
        values, vectors = np.linalg.eigh(H)
        P = (vectors / np.maximum(values - 4 * unsure, floor)) @ vectors.T
        P += 4 * EPS * len(H) * np.trace(P) * np.eye(len(H))
    return P, log_det(c)


def log_det(c: Array) -> float:
    """Return log det H from its factor ``c``."""
    return 2 * float(np.log(np.diag(c)).sum())


def norm(v: Array, M: Array) -> float:
    """Return ||v||_M = sqrt(v'Mv)."""
    return float(np.sqrt(max(float(matmul(v, M) @ v), 0.0)))


def forms(x: Array, M: Array) -> Array:
    """Return x'Mx of each row, at least 0."""
    return np.maximum(np.einsum("ij,ij->i", matmul(x, M), x), 0.0)


@one_thread_beyond(SMALL)
def largest_eigenvalue_bound(P: Array) -> float:
    """Return an upper bound of the largest eigenvalue of ``P``, within d^(1/16) of it.

    The Frobenius norm of P^8, taken to the power 1/8: three products instead of a decomposition.
    """
    scale = float(np.trace(P))
    Q = P / scale
    for _ in range(3):
        Q = Q @ Q
    return scale * float(np.linalg.norm(Q)) ** 0.125 * (1 + 1e-12)


@one_thread_beyond(SMALL)
def smallest_eigenvalue(V: Array) -> float:
    """Return the least eigenvalue of ``V``."""
    return float(np.linalg.eigvalsh(V)[0])


@one_thread_beyond(SMALL)
def spectrum(V: Array) -> tuple[Array, Array]:
    """Return eigenvalues and vectors of ``V`` > 0.

    Values have a floor far below the rounding of V: sums with their inverses squared stay finite.
    """
    values, vectors = np.linalg.eigh(V)
    return np.maximum(values, max(1e-20 * float(values[-1]), 1e-300)), vectors


def project_ball(V: Array, v: Array, radius: float) -> Array:
    """Return the point of the ball nearest to ``v`` in the norm of ``V``.

    It is u = (V + nu I)^-1 V v, nu >= 0 the root of |u| = radius; nu is 0 inside the ball.
    """
    length = math.sqrt(float(v @ v))
    if length <= radius:
        return v
    from scipy.optimize import brentq

    values, vectors = spectrum(V)
    a = matmul(v, vectors)
    # each coordinate shrinks by values/(values + nu), so nu lies between these
    low, high = values[0] * (length / radius - 1), values[-1] * (length / radius - 1)

    def miss(nu: float) -> float:
        """Return |u|^2 - radius^2 without cancellation, far from the ball and near it."""
        shares = np.square(a / (values + nu))
        if length > 2 * radius:
            return float(shares @ np.square(values)) - radius * radius
        return (length - radius) * (length + radius) - nu * float(shares @ (2 * values + nu))

    if miss(low) <= 0:
        nu = low
    elif miss(high) >= 0:
        nu = high
    else:
        nu = brentq(miss, low, high, xtol=1e-300, rtol=1e-15, maxiter=500)
    u = matmul(vectors, values * a / (values + nu))
    return np.asarray(u * (radius / max(radius, float(np.linalg.norm(u)))))


@one_thread_beyond(SMALL)
def simplex_minimum(V: Array, b: Array, w: Array) -> Array:
    """Return the minimiser of w'Vw/2 - b'w on the simplex, by an active set begun at ``w``.

    Should rounding make it go in circles, it stops after 50 d steps at a point of the simplex.
    """
    w = w.copy()
    free = w > 0
    slack = 1e-13 * (float(np.abs(b).max()) + float(np.diag(V).max()))
    for _ in range(50 * len(b)):
        at = np.flatnonzero(free)
        part = np.linalg.solve(V[np.ix_(at, at)], np.column_stack([b[at], np.ones(len(at))]))
        nu = (1 - part[:, 0].sum()) / part[:, 1].sum()
        target = part[:, 0] + nu * part[:, 1]
        if (target < 0).any():
            # go towards the target until the first coordinate vanishes, which is then held
            falling = np.flatnonzero(target < 0)
            steps = w[at[falling]] / (w[at[falling]] - target[falling])
            first = int(np.argmin(steps))
            w[at] += steps[first] * (target - w[at])
            w[at[falling[first]]] = 0.0
            free[at[falling[first]]] = False
            continue
        w[at] = target
        multipliers = V @ w - b - nu
        multipliers[at] = 0.0
        worst = int(np.argmin(multipliers))
        if multipliers[worst] >= -slack:
            break
        free[worst] = True
    return w / w.sum()


@one_thread_beyond(SMALL)
def gains(x: Array, ridge: float, slope: float = 1.0) -> Array:
    r"""Return :math:`g_t = (\rho I + \kappa\sum_{s<t}x_sx_s^\top)^{-1}x_t`, (T, d), by blocks.

    ``ridge`` is rho. With P the inverse before a block of rows X and C the factor of
    :math:`I/\kappa + XPX^\top`, elimination gives the block's rows as
    :math:`\mathrm{diag}(C)\,C^{-1}XP`, and P falls by the Gram matrix of :math:`C^{-1}XP`.

    >>> gains(np.array([[1.0], [1.0]]), ridge=1.0)
    array([[1. ],
           [0.5]])
    """
    T, d = x.shape
    P, g = np.eye(d) / ridge, np.empty((T, d))
    for start in range(0, T, 64):
        X = x[start : start + 64]
        XP = X @ P
        c = factor(np.eye(len(X)) / slope + X @ XP.T)
        part = lapack().dtrtrs(c, XP, lower=1)[0]
        g[start : start + 64] = np.diag(c)[:, None] * part
        P -= part.T @ part
    return g


_patient_eigh = interruptible(np.linalg.eigh)


def eigh(H: Array) -> tuple[Array, Array]:
    """Return eigenvalues and vectors; of a large matrix so that an interrupt is heard."""
    values, vectors = (np.linalg.eigh if H.shape[-1] < LARGE else _patient_eigh)(H)
    return values, vectors


@one_thread_beyond(SMALL)
def scaled_spectrum(G: Array, cut: float = 1e-10) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Return scales s = sqrt(diag G), and the eigenvalues, vectors and span of G/ss'.

    The span is where an eigenvalue exceeds ``cut`` of the largest: the same in all units. ``G``
    may be a stack of matrices.
    """
    s = np.sqrt(np.diagonal(G, axis1=-2, axis2=-1))
    s = np.where(s > 0, s, 1.0)
    values, vectors = eigh(G / s[..., None] / s[..., None, :])
    return s, values, vectors, values > cut * values[..., -1:]


@one_thread_beyond(SMALL)
def scaled_inverse(G: Array) -> Array:
    """Return a generalised inverse of G: the pseudo-inverse of G/ss', between 1/s and 1/s."""
    s, values, vectors, kept = scaled_spectrum(G, 1e-12)
    U = vectors[:, kept] / s[:, None]
    return np.asarray(U / values[kept] @ U.T)


@one_thread_beyond(SMALL)
def minimax_directions(x: Array) -> tuple[Array, Array]:
    """Return P_t x_t, (T, d), and q_t = x_t' P_t x_t, (T,), of the minimax recursion.

    P_T is the `scaled_inverse` of sum x x' and P_{t-1} = P_t + (P_t x_t)(P_t x_t)'. All that is
    made of rows of the design is the same for any generalised inverse.
    """
    P = scaled_inverse(x.T @ x)
    directions = np.empty_like(x)
    for t in range(len(x) - 1, -1, -1):
        directions[t] = P @ x[t]
        P += np.outer(directions[t], directions[t])
    return directions, np.einsum("ij,ij->i", x, directions)
