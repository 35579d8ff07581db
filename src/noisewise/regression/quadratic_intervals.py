"""Half-widths of scores from the variance of an estimate, as if its loss were quadratic.

The likelihood's variance is known up to a given dispersion; where the dispersion is estimated, the
variance has degrees of freedom, and Student's t takes the place of the normal distribution.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import linalg
from ..blas import matmul
from ..protocols import Array
from .dispersion import TWICE, Dispersion
from .intervals import PRECISION, anytime_half_width, quantile
from .linear_intervals import GRID
from .maximum_likelihood import Estimate

FLAT = 1e-10  # an eigenvalue of a mixture's precision, as a share of the largest, at least


class Half(NamedTuple):
    """Half-widths, their variances and degrees of freedom.

    ``telling`` is about how many rows tell of a variance, and ``pooled`` where these are so few
    that the average dispersion takes its place; ``needed`` is how many it takes for an interval
    that is finite, as directions are now known.
    """

    width: Array
    variance: Array
    freedom: Array
    telling: Array
    pooled: NDArray[np.bool_]
    needed: Array


def half_width(
    fit: Estimate, z: Array, b: Array, law: Dispersion | float, delta: float, anytime: bool
) -> Half:
    """Return half-widths for directions z, in coordinates u b, each fixed in advance."""
    if isinstance(law, float):
        v0 = np.maximum(np.einsum("ij,ij->i", matmul(b, fit.inverse), b), 0.0)
        width = _half_width(fit, z, law * v0, v0, math.inf, delta, anytime)
        always, none = np.full(len(b), math.inf), np.zeros(len(b))
        return Half(width, law * v0, always, always, none > 0, none)
    v0, v, freedom, few, wide, shared = law.spread(b)
    own = _half_width(fit, z, v, v0, freedom, delta, anytime)
    average = _half_width(fit, z, wide, v0, shared, delta, anytime)
    pooled = few & (average < own)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = 2 * math.log(1 / delta) / np.log1p(1 / _relative(fit, z, v0))
    return Half(
        np.where(pooled, average, own),
        np.where(pooled, wide, v),
        np.where(pooled, shared, freedom),
        freedom,
        pooled,
        needed if anytime else 0 * v0,
    )


def _relative(fit: Estimate, z: Array, v0: Array) -> Array:
    """Return the mixture's precision of each direction, times the variance of its score."""
    lengths = fit.design.sums.lengths(matmul(z, fit.design.C.T))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(PRECISION * fit.design.unit * v0 / lengths)


def _half_width(
    fit: Estimate,
    z: Array,
    v: Array,
    v0: Array,
    freedom: float | Array,
    delta: float,
    anytime: bool,
) -> Array:
    """Return half-widths of scores of variance v, and v0 by the likelihood."""
    if not anytime:
        times = np.asarray(quantile(freedom, delta))
        return np.where(
            np.isinf(times), math.inf, np.where(np.isinf(times), 1.0, times) * np.sqrt(v)
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        half = anytime_half_width(v, _relative(fit, z, v0) / v, freedom, delta)
    return np.where(np.isfinite(half), half, math.inf)


def simultaneous(fit: Estimate, b: Array, law: Dispersion, delta: float) -> Half:
    r"""Return half-widths for all rows at all times: a t-mixture, asymptotic.

    The formula of `LeastSquares.simultaneous_half_width` for :math:`G = V^{-1}`, V the HC3 variance
    with eigenvalues, in units of the likelihood's, of at least the dispersion,
    :math:`D = M/\phi` in units of a row's information, and n = freedom + p.
    """
    design, p = fit.design, len(fit.values)
    if not p:
        none = np.zeros(len(b))
        return Half(none + math.inf, none, none, none, none > 0, none)
    back = fit.basis / np.sqrt(fit.values)  # coordinates in which the information is I
    rows = matmul(design.u, back) * (law.pull / (1 - law.leverage))[:, None]
    values, vectors = np.linalg.eigh(matmul(rows.T, rows))
    lift = matmul(design.lift, back)
    D = matmul(matmul(lift.T, design.sums.whole_spread()), lift) * (fit.design.unit / law.average)
    least, across = np.linalg.eigh(D)
    D = matmul(across * np.maximum(least, FLAT * least[-1]), across.T)
    a = matmul(matmul(b, back), vectors)
    _, v, freedom, few, wide, shared = law.spread(b)
    square, pooled = np.full(len(b), math.inf), np.zeros(len(b), dtype=bool)
    needed = math.inf
    for some, nu, floor in ((few | True, freedom, 1.0), (few, shared, TWICE)):
        root = np.sqrt(np.maximum(values, floor * law.average))
        turned = (vectors.T @ D @ vectors) * np.outer(root, root)
        for rho in GRID:
            # of G^(1/2) (G + rho D)^-1 G^(1/2)
            factor = linalg.factor(np.eye(p) + rho * turned)
            shares, basis = np.linalg.eigh(linalg.invert(factor))
            level = 2 * math.log(len(GRID) / delta) - float(np.log1p(-shares).sum())
            smallest = min(max(float(shares[0]), 1e-12), 1 - 1e-12)
            if floor == 1:
                needed = min(needed, -level / math.log1p(-smallest) - p)
            kappa = -np.expm1(-level / (nu + p))
            left = shares - kappa[:, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                form = (matmul(a * root, basis) ** 2 / left).sum(axis=1)
            found = np.where((left.min(axis=1) > 1e-9) & some, kappa * nu * form, math.inf)
            pooled = np.where(found < square, few & (floor > 1), pooled)
            square = np.minimum(square, found)
    v, used = np.where(pooled, wide, v), np.where(pooled, shared, freedom)
    return Half(np.sqrt(square), v, used, freedom, pooled, np.full(len(b), needed))
