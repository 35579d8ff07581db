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

from ...kernels.self_tuning.ridge_rule import (
    FEWEST,
    GRID,
    INTERCEPT_RIDGE,
    PRIOR_RIDGE,
    log_evidence,
    next_choice,
    posterior_ridge,
    variance,
)
from ...kernels.self_tuning.self_tuned_numbers import (
    ExpertNumbers,
    Moments,
    by_name,
    gram_of,
    inverse_of,
)
from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array


def variances(moments: Array, count: float, intercept: bool) -> Array:
    """Return the variances of features, as a stream has them."""
    m = Moments(*moments)
    return variance(m.squares / count, m.sums / count if intercept else np.zeros(len(m.sums)))


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
        total = float(G[d, d]) + INTERCEPT_RIDGE
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
        return PRIOR_RIDGE
    M, left, right = (sums.A, sums.b, sums.b) if part is None else (part.K, part.K @ part.u, part.u)
    evidence = np.empty(len(GRID))
    for k, ridge in enumerate(dim * GRID):
        c = linalg.factor(_plus(M, ridge))
        growth = linalg.log_det(c) - len(M) * math.log(ridge)
        rest = sums.squares - float(left @ linalg.solve(c, right))
        evidence[k] = log_evidence(growth, rest, sums.squares, size - centred)
    return posterior_ridge(evidence)


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
    factors = by_name(experts)
    return bool(((factors["choice"] <= count) | (factors["factored"] < 0)).any())


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
    p, d, used = moment.shape[1], moments.shape[1], Moments(*moments).used
    due = by_name(experts)["choice"] <= count
    if due.any():
        used[:] = variances(moments, count, p > d)
        by_name(experts)["factored"] = -1.0
    for e, row in enumerate(experts):
        expert = ExpertNumbers(row)
        if expert.factored >= 0:
            continue
        gram[e] /= expert.scale
        sums = scaled(gram_of(gram[e], p), moment[e], expert.labels, used)
        part = _part(sums, count)
        if due[e]:
            expert.choice = next_choice(count, expert.gamma, d)
            if not fixed:
                expert.ridge = choose_ridge(sums, part, expert.rows, d, p > d)
        P, theta[e] = inverse(sums, part, expert.ridge * d)
        inverses[e] = 0.0
        inverse_of(inverses[e], p)[:] = P
        expert.scale, expert.pending, expert.factored = 1.0, 0.0, count


def look_ahead(
    count: int, moments: Array, experts: Array, gram: Array, moment: Array, x: Array
) -> tuple[Array, Array]:
    """Return moments and coefficients once the variances know of a row; the arrays are read."""
    (k, p), d = moment.shape, moments.shape[1]
    m = Moments(*moments)
    z = x - m.first
    after = np.array([m.first, m.sums + z, m.squares + z * z, m.used])
    new, used = variances(after, count + 1, p > d), m.used
    v, B = np.where((new > 2 * used) | (used > 2 * new), new, used), np.empty((k, p))
    for e, expert in enumerate(map(ExpertNumbers, experts)):
        G = gram_of(gram[e], p) / expert.scale
        sums = scaled(G, moment[e], expert.labels, v)
        B[e] = inverse(sums, _part(sums, count), expert.ridge * d)[1]
    return np.array([*m[:3], v]), B
