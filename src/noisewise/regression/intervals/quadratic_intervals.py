"""Half-widths of scores from the variance of an estimate, as if its loss were quadratic.

The likelihood's variance is known up to a given dispersion; where the dispersion is estimated, the
variance has degrees of freedom, and Student's t takes the place of the normal distribution.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array
from ...theory import mixtures
from .dispersion import TWICE, Dispersion, Spread
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
        v0 = linalg.forms(b, fit.inverse)
        width = _half_width(fit, z, law * v0, v0, math.inf, delta, anytime)
        always, none = np.full(len(b), math.inf), np.zeros(len(b))
        return Half(width, law * v0, always, always, none > 0, none)
    spread = law.spread(b)
    v0 = spread.likelihood
    own = _half_width(fit, z, spread.variance, v0, spread.freedom, delta, anytime)
    average = _half_width(fit, z, spread.wide, v0, spread.shared, delta, anytime)
    needed = mixtures.freedom_needed(_relative(fit, z, v0), delta)
    return _narrower(spread, own, average, needed if anytime else 0 * v0)


def _narrower(spread: Spread, own: Array, average: Array, needed: Array) -> Half:
    """Return own half-widths, or those by the average dispersion where few rows tell of one."""
    pooled = spread.pooled & (average < own)
    return Half(
        np.where(pooled, average, own),
        np.where(pooled, spread.wide, spread.variance),
        np.where(pooled, spread.shared, spread.freedom),
        spread.freedom,
        pooled,
        needed,
    )


def _relative(fit: Estimate, z: Array, v0: Array) -> Array:
    """Return the mixture's precision of each direction, times the variance of its score."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(mixtures.PRECISION * fit.design.unit * v0 / fit.design.lengths(z))


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
        return mixtures.half_width(v, freedom, delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        return mixtures.half_width(v, freedom, delta, _relative(fit, z, v0) / v)


def simultaneous(fit: Estimate, b: Array, law: Dispersion, delta: float) -> Half:
    r"""Return half-widths for all rows at all times: a t-mixture, asymptotic.

    By `mixtures.simultaneous_half_width` for the HC3 variance, with eigenvalues, in units of the
    likelihood's, of at least the dispersion; the prior is D in units of a row's information.
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
    spread = law.spread(b)

    def within(freedom: Array, floor: float) -> tuple[Array, Array]:
        root = np.sqrt(np.maximum(values, floor * law.average))
        prior, basis = np.linalg.eigh((vectors.T @ D @ vectors) * np.outer(root, root))
        prior = np.maximum(prior, linalg.EPS * prior[-1])
        turned = matmul(a * root, basis)
        return prior, mixtures.simultaneous_half_width(turned, prior, freedom, delta)

    (prior, own), (_, average) = within(spread.freedom, 1.0), within(spread.shared, TWICE)
    needed = mixtures.simultaneous_freedom_needed(prior, delta)
    return _narrower(spread, own, average, np.full(len(b), needed))
