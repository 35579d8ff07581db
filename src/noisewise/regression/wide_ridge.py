r"""Ridge regression of many features: the choice of a ridge and the inverse, from their sums.

With G = sum w z z', b = sum w y z and q = sum w y^2, the intercept (the last row, if there is one)
eliminated and features in units of the roots of their variances v, A = D^{-1/2} G D^{-1/2}. The
evidence of a ridge c takes a Cholesky factor of :math:`A + cd\,I`, (d, d). While there are fewer
rows than half the features, A = L L' with as many columns as rows, and factors of L'L + cd I do:

.. math:: \log\det(I + A/cd) = \log\det(I + L^\top L/cd),\qquad
          (A + cd\,I)^{-1} = (I - L(L^\top L + cd\,I)^{-1}L^\top)/cd.

So n rows cost n d^2, and later all ridges together 5 d^3. Factors are chosen at counts that grow by
a quarter, so that is of order d^2 per row.
"""

import math
from dataclasses import dataclass

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..kernels import self_tuned_layout as at
from ..kernels.layout import padded
from ..protocols import Array

FEWEST = 2.5  # rows before the evidence counts
GROWTH = 0.25  # of the rows, before a ridge is chosen again
UNMOVED, UNDERFLOW = 1e-14, 1e-100  # a variance below these counts as 0


def variances(moments: Array, count: float, intercept: bool) -> Array:
    """Return the variances of features, 0 where they are rounding, as a stream has them."""
    square = moments[at.SUM_OF_SQUARES] / count
    v = square - (moments[at.SUM] / count) ** 2 if intercept else square.copy()
    v[~(v > np.maximum(UNMOVED * square, UNDERFLOW))] = 0.0
    return np.asarray(v)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums in units of the features that moved, less the intercept; A by its lower half.

    ``mean`` and ``total`` are the features' means in these units and the weight of the intercept.
    """

    A: Array
    b: Array
    squares: float
    units: Array
    mean: Array
    level: float
    total: float


@one_thread
def scaled(G: Array, b: Array, squares: float, v: Array) -> Sums:
    """Return sums for features of variances ``v``; of G, (p, p), the lower half is read."""
    d = len(v)
    units = np.divide(1.0, np.sqrt(v), out=np.zeros(d), where=v > 0)
    A = np.asfortranarray(G[:d, :d] * units[:, None] * units)
    own, mean, level, total = units * b[:d], np.zeros(d), 0.0, 0.0
    if len(b) > d:
        total = float(G[d, d]) + at.INTERCEPT_RIDGE
        mean, level = units * G[d, :d] / total, float(b[d]) / total
        A -= total * np.outer(mean, mean)
        own = own - total * level * mean
    return Sums(A, own, squares - total * level**2, units, mean, level, total)


@dataclass(frozen=True, eq=False)
class Narrow:
    """A = L L' where that has few columns; K = L'L and b = L u."""

    L: Array
    K: Array
    u: Array


@one_thread
def narrow(sums: Sums, rows: int) -> Narrow:
    """Return a factor of A with as many columns as A has rank, at most the rows, by pivoting."""
    c, order, rank, _ = linalg.lapack().dpstrf(sums.A, lower=1)
    rank = min(rank, rows)  # rounding may have added to it
    if not rank:
        return Narrow(np.zeros((len(sums.b), 1)), np.zeros((1, 1)), np.zeros(1))
    L, order = np.tril(c[:, :rank]), order - 1
    u = linalg.lapack().dtrtrs(np.asfortranarray(L[:rank]), sums.b[order[:rank]], lower=1)[0]
    placed = np.empty_like(L)
    placed[order] = L
    return Narrow(placed, placed.T @ placed, u)


def choose_ridge(sums: Sums, part: Narrow | None, size: float, dim: int, centred: bool) -> float:
    """Return the geometric mean of c under its posterior on the grid."""
    if size < FEWEST:
        return at.PRIOR_RIDGE
    M, left, right = (sums.A, sums.b, sums.b) if part is None else (part.K, part.K @ part.u, part.u)
    evidence = at.LOG_PRIOR.copy()
    for k, ridge in enumerate(dim * at.GRID):
        c = linalg.factor(_plus(M, ridge))
        growth = linalg.log_det(c) - len(M) * math.log(ridge)
        rest = sums.squares - float(left @ linalg.solve(c, right))
        rest = max(rest, 1e-12 * sums.squares, 1e-300)
        evidence[k] -= 0.5 * growth + 0.5 * (size - centred) * math.log(rest)
    mass = np.exp(evidence - evidence.max())
    return float(np.exp(mass @ np.log(at.GRID) / mass.sum()))


def _plus(M: Array, ridge: float) -> Array:
    H = M.copy(order="F")
    H[np.diag_indices(len(H))] += ridge
    return H


@one_thread
def inverse(sums: Sums, part: Narrow | None, ridge: float) -> tuple[Array, Array]:
    """Return P = (G + R)^-1 with the intercept's row last, and P b; R is 1 where v is 0."""
    d, units = len(sums.b), sums.units
    if part is None:
        P = linalg.invert(linalg.factor(_plus(sums.A, ridge)))
        theta = P @ sums.b
    else:
        c = linalg.factor(_plus(part.K, ridge))
        X = linalg.lapack().dtrtrs(c, part.L.T, lower=1)[0]
        P = X.T @ X
        P /= -ridge
        P[np.diag_indices(d)] += 1 / ridge
        theta = part.L @ linalg.solve(c, part.u)
    P *= units[:, None]
    P *= units
    still = np.flatnonzero(units == 0)
    P[still, still] = 1.0
    theta *= units
    if not sums.total:
        return P, theta
    whole, B = np.empty((d + 1, d + 1)), np.empty(d + 1)
    mean = np.divide(sums.mean, units, out=np.zeros(d), where=units > 0)
    whole[:d, :d], whole[d, :d] = P, -(P @ mean)
    whole[:d, d] = whole[d, :d]
    whole[d, d] = 1 / sums.total - whole[d, :d] @ mean
    B[:d], B[d] = theta, sums.level - mean @ theta
    return whole, B


def _part(sums: Sums, count: int) -> Narrow | None:
    return narrow(sums, count) if 2 * count < len(sums.b) else None


def is_due(count: int, experts: Array) -> bool:
    """Return whether a ridge or a factor is due."""
    return bool(((experts[:, at.NEXT] <= count) | (experts[:, at.FACTORED] < 0)).any())


def renew(
    count: int,
    moments: Array,
    experts: Array,
    gram: Array,
    moment: Array,
    inverses: Array,
    theta: Array,
    fixed: float,
) -> None:
    """Renew variances, ridges and factors where they are due, in the arrays of a `SelfTunedState`.

    A ridge is due at its count, and then all variances and factors are; else a factor that is
    marked by -1.
    """
    p, d = moment.shape[1], moments.shape[1]
    due, ld = experts[:, at.NEXT] <= count, padded(p)
    if due.any():
        moments[at.USED] = variances(moments, count, p > d)
        experts[:, at.FACTORED] = -1.0
    for e in np.flatnonzero(experts[:, at.FACTORED] < 0):
        expert = experts[e]
        gram[e] /= expert[at.SCALE]
        G = gram[e].reshape(ld, ld)[:p, :p]
        sums = scaled(G, moment[e], expert[at.LABELS], moments[at.USED])
        part = _part(sums, count)
        if due[e]:
            gamma, wait = expert[at.GAMMA], GROWTH * count
            if gamma < 1:
                wait = min(wait, max(1 / (1 - gamma), 0.1 * d))
            expert[at.NEXT] = count + max(1.0, wait)
            if not fixed:
                expert[at.RIDGE] = choose_ridge(sums, part, expert[at.SIZE], d, p > d)
        P, theta[e] = inverse(sums, part, expert[at.RIDGE] * d)
        inverses[e] = 0.0
        inverses[e, at.VECTORS * ld :].reshape(ld, ld)[:p, :p] = P
        expert[at.SCALE], expert[at.PENDING], expert[at.FACTORED] = 1.0, 0.0, count


def look_ahead(
    count: int, moments: Array, experts: Array, gram: Array, moment: Array, x: Array
) -> tuple[Array, Array]:
    """Return moments and coefficients once the variances know of a row; the arrays are read."""
    (k, p), d = moment.shape, moments.shape[1]
    z, after = x - moments[at.FIRST], moments.copy()
    after[at.SUM] += z
    after[at.SUM_OF_SQUARES] += z * z
    new, used = variances(after, count + 1, p > d), moments[at.USED]
    v = np.where((new > 2 * used) | (used > 2 * new), new, used)
    B, ld = np.empty((k, p)), padded(p)
    for e, expert in enumerate(experts):
        G = gram[e].reshape(ld, ld)[:p, :p] / expert[at.SCALE]
        sums = scaled(G, moment[e], expert[at.LABELS], v)
        B[e] = inverse(sums, _part(sums, count), expert[at.RIDGE] * d)[1]
    after[:] = moments
    after[at.USED] = v
    return after, B
