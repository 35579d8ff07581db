"""`SelfTuned` fitted to all rows at once, from their sums: the order of rows does not matter."""

from dataclasses import replace

import numpy as np

from ...kernels.glm.layout import LARGEST
from ...kernels.self_tuning import ridge_rule
from ...kernels.self_tuning.ridge_rule import (
    FEWEST,
    GRID,
    INTERCEPT_RIDGE,
    LOG_PRIOR,
    next_choice,
    posterior_ridge,
)
from ...kernels.self_tuning.self_tuned_numbers import (
    ExpertNumbers,
    Moments,
    StateNumbers,
    by_name,
    gram_of,
    inverse_of,
)
from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array
from ..normal_equations import NormalEquations
from .self_tuned import SelfTuned, SelfTunedState
from .wide_ridge import variances


def check_sums(x: Array, y: Array, w: Array) -> None:
    """Raise if rows are too large for weighted sums of squares, or for a file that holds these."""
    if not len(x):
        return
    if len(x) == 1:  # the quick way
        if max(float(w[0]), 1.0) * max(float(np.vdot(x, x)), float(y[0]) ** 2) <= LARGEST:
            return
    elif max(float(w.max()), 1.0) * max(np.abs(x).max(), np.abs(y).max()) ** 2 <= LARGEST:
        return
    most = np.maximum(np.abs(x).max(axis=1), np.abs(y))
    with np.errstate(over="ignore"):
        large = ~(np.maximum(w, 1.0) * most * most <= LARGEST)
    if large.any():
        raise ValueError(
            f"x, y or weight holds a number too large to compute with at row {int(large.argmax())};"
            " rescale it"
        )


def count_rows(state: SelfTunedState, x: Array, y: Array, w: Array, intercept: bool) -> None:
    """Count rows of positive weight in the moments of features and the range of labels alone."""
    check_sums(x, y, w)
    s, m = StateNumbers(state.numbers), Moments(*state.moments)
    x, y = x[w > 0], y[w > 0]
    if not len(x):
        return
    if not s.count:
        s.low = s.high = y[0]
        if intercept:
            m.first[:] = x[0]
    s.low, s.high = min(s.low, y.min()), max(s.high, y.max())
    s.count += len(x)
    z = x - m.first
    np.add(m.sums, z.sum(axis=0), out=m.sums)
    np.add(m.squares, (z * z).sum(axis=0), out=m.squares)


@one_thread
def batch_state(
    method: SelfTuned, state: SelfTunedState, sums: NormalEquations, unit: float
) -> SelfTunedState:
    r"""Return the state of the rows of ``sums`` fitted as a batch, with weights over ``unit``.

    Rows are taken less their weighted mean, labels too. In the basis in which
    :math:`D^{-1/2}GD^{-1/2}`, D = diag(v), has the eigenvalues :math:`\lambda_i` and b the
    coordinates :math:`u_i`, the logarithm of the evidence of c is

    .. math:: -\tfrac12\sum_i\log(1 + \lambda_i/cd) - \tfrac{n - 1}2\log S_c,\quad
              S_c = q - \sum_i u_i^2/(\lambda_i + cd)

    with q the sum of squared labels (n in place of n - 1 without an intercept). Predictions are
    those of the fit that forgets nothing. The others begin as that fit, counted as the rows that
    they remember, with losses 0, and count from the next row on.
    """
    d, p, n = sums.dim, len(sums.moment), float(sums.count)
    fresh = method.start(d)
    numbers, before = StateNumbers(fresh.numbers), Moments(*state.moments)
    G, b, q = sums.gram / unit, sums.moment / unit, sums.squares / unit
    mean, level = sums.means()[:d], 0.0
    if sums.intercept:
        total = sums.total / unit
        level = float(b[d]) / total
        G = G - total * np.outer(np.append(mean, 1.0), np.append(mean, 1.0))
        G[d], G[:, d] = 0.0, 0.0
        G[d, d], b, q = total, b - total * level * np.append(mean, 1.0), q - total * level**2
        b[d] = 0.0
    fresh.numbers[:] = state.numbers
    numbers.origin = level + sums.label_origin
    moved = sums.origin + mean - before.first
    v = variances(state.moments, n, sums.intercept)
    squares = np.maximum(before.squares - moved * (2 * before.sums - n * moved), 0.0)
    fresh.moments[:] = before.first + moved, before.sums - n * moved, squares, v
    basis = Basis(G[:d, :d], b[:d], max(q, 0.0), v)
    for e, expert in enumerate(map(ExpertNumbers, fresh.experts)):
        gamma, inverse = expert.gamma, inverse_of(fresh.inverse[e], p)
        size = n if gamma == 1 else (1 - gamma**n) / (1 - gamma)
        share = size / n
        if isinstance(method.ridge, str) and size >= FEWEST:
            expert.ridge = basis.ridge(share, size - sums.intercept)
        inverse[:] = 0.0
        inverse[:d, :d], fresh.theta[e, :d] = basis.solution(share, expert.ridge * d)
        if sums.intercept:
            inverse[d, d] = 1 / (share * G[d, d] + INTERCEPT_RIDGE)
        gram_of(fresh.gram[e], p)[:] = np.tril(share * G)
        fresh.moment[e] = share * b
        expert.labels, expert.rows = share * basis.squares, size
        expert.choice, expert.factored = next_choice(n, gamma, d), n
        expert.share = gamma == 1
        if gamma == 1:
            numbers.squares = basis.left(1.0, expert.ridge * d) if n > 1 else 0.0
            numbers.rounds = n - 1
    return replace(fresh)


def log_evidence(state: SelfTunedState) -> float:
    """Return the logarithm of the evidence of all ridges together, after `batch_state`.

    Up to what states of the same labels and weights have in common, whatever their features. The
    state has an intercept.
    """
    factors, d, p = by_name(state.experts), state.dim, state.moment.shape[1]
    e = int(np.argmax(factors["gamma"]))
    G, used = gram_of(state.gram[e], p)[:d, :d], Moments(*state.moments).used
    G, squares = G + np.tril(G, -1).T, float(factors["labels"][e])
    basis = Basis(G, state.moment[e, :d], squares, used)
    return float(np.logaddexp.reduce(basis.evidence(1.0, state.count - 1.0) + LOG_PRIOR))


class Basis:
    """Centred sums in the basis that serves all ridges; a ``share`` multiplies all of them."""

    def __init__(self, G: Array, b: Array, squares: float, variances: Array) -> None:
        self.squares, self.moving, self.dim = squares, variances > 0, len(b)
        self.units = 1 / np.sqrt(variances[self.moving])
        scaled = G[np.ix_(self.moving, self.moving)] * np.outer(self.units, self.units)
        values, self.vectors = linalg.eigh(scaled)
        self.values = np.maximum(values, 0.0)
        self.u = (self.units * b[self.moving]) @ self.vectors
        floor = np.finfo(float).eps * self.dim * self.values.max(initial=0.0)
        known = self.values > floor  # elsewhere u is rounding
        self.u[~known] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            self.explained = np.where(known, self.u**2 / self.values, 0.0)

    def left(self, share: float, ridge: float) -> float:
        """Return S: what least squares leaves of the squares, and what the ridge costs.

        The second part is added up by itself: where the first is nearly 0 it keeps its digits.
        """
        rest = max(self.squares - float(self.explained.sum()), 0.0)
        cost = float(self.explained @ (ridge / (share * self.values + ridge)))
        return share * max(rest + cost, 1e-12 * self.squares)

    def evidence(self, share: float, freedom: float) -> Array:
        """Return the logarithm of the evidence of each c of the grid."""
        growth = [float(np.log1p(share * self.values / r).sum()) for r in self.dim * GRID]
        rests, q = [self.left(share, r) for r in self.dim * GRID], share * self.squares
        pairs = zip(growth, rests, strict=True)
        return np.array([ridge_rule.log_evidence(g, rest, q, freedom) for g, rest in pairs])

    def ridge(self, share: float, freedom: float) -> float:
        """Return the geometric mean of c under its posterior on the grid."""
        return posterior_ridge(self.evidence(share, freedom))

    def solution(self, share: float, ridge: float) -> tuple[Array, Array]:
        """Return the inverse of G + R, and that times b."""
        P, theta = np.eye(self.dim), np.zeros(self.dim)
        inside = self.units[:, None] * self.vectors
        weights = 1 / (share * self.values + ridge)
        P[np.ix_(self.moving, self.moving)] = (inside * weights) @ inside.T
        theta[self.moving] = inside @ (weights * share * self.u)
        return P, theta
