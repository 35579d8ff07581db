r"""Upper bounds of FTRL's regret: as printed, repaired, sharp, and in the mean.

Letters: kappa, K slopes, lam the ridge, A, B norm bounds, L = log(1/delta), Gamma the
log-determinant of :math:`\underline H_T/2\lambda`, :math:`h_t = x_t^\top\underline H_t^{-1}x_t`.
All are for weight 1, exact iterates and an extended link. ``leverages`` (one per round, of
`design_terms`) or else ``log_det`` make a bound depend on the design; without them the worst case
over designs is taken: :math:`d\log(1 + T\kappa A^2/(2d\lambda))` for Gamma, Gamma over kappa for
:math:`\sum h_t`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import column, dimension, integer, positive, probability
from ..model.glm import GLM
from ..model.noise import Bounded, Likelihood, Noise
from ..protocols import Array
from .radii import growth_bound, noise_scale
from .regret import largest_leverage


def printed_bound(
    glm: GLM,
    noise: Noise,
    *,
    dim: int,
    horizon: int,
    delta: float = 0.05,
    ridge: float | None = None,
    log_det: float | None = None,
    leverages: ArrayLike | None = None,
) -> float:
    r"""Return the paper's Theorem 1 (sub-Gaussian) or 2 (bounded noise); fails with <= 2 delta.

    Theorem 1: :math:`\frac{34}\kappa\sigma^2 G + \frac{8K^2A^2B^2}\kappa
    + 2(\frac2\kappa + \frac{3\kappa}{K^2})\sigma^2 L`, Theorem 2:
    :math:`\frac6\kappa\sigma^2 G + \frac{8K^2A^2B^2}\kappa
    + 2(\frac2\kappa + \frac{5\kappa}{24K^2})R^2 L`, with
    :math:`G = d\log(1 + T\kappa^2/(4dK^2))`. Both hold, although their proof does not.
    """
    G = _growth(glm, dim, horizon, glm.ridge, log_det, leverages)
    if log_det is None and leverages is None:
        G = dim * math.log1p(horizon * glm.min_slope**2 / (4 * dim * glm.max_slope**2))
    return _prescribed("printed", (34, 6), glm, noise, G, ridge, delta)


def repaired_bound(
    glm: GLM,
    noise: Noise,
    *,
    dim: int,
    horizon: int,
    delta: float = 0.05,
    ridge: float | None = None,
    log_det: float | None = None,
    leverages: ArrayLike | None = None,
) -> float:
    r"""Return what the authors' own route gives once its lemma is corrected; fails with <= 2 delta.

    Sub-Gaussian: :math:`2\lambda B^2 + 4\sigma^2\Gamma/\kappa
    + (\frac4\kappa + \frac{6\kappa}{K^2})\sigma^2 L`; bounded:
    :math:`2\lambda B^2 + 3\sigma^2\Gamma/\kappa + (\frac4\kappa + \frac{5\kappa}{12K^2})R^2L`.
    """
    G = _growth(glm, dim, horizon, glm.ridge, log_det, leverages)
    return _prescribed("repaired", (4, 3), glm, noise, G, ridge, delta)


def sharp_bound(
    glm: GLM,
    noise: Noise,
    *,
    dim: int,
    horizon: int,
    delta: float = 0.05,
    ridge: float | None = None,
    log_det: float | None = None,
    leverages: ArrayLike | None = None,
    tilt: float = 0.25,
) -> float:
    r"""Return the sharp bound, which fails with probability <= delta for all rounds at once.

    With :math:`\theta` the tilt, :math:`a = Kh_{max}`, :math:`G = \theta - (1+\theta)a`,
    :math:`1/\eta = \sigma^2[\theta^2/(\kappa G) + (1+\theta)h_{max}]`:
    :math:`(1+\theta)\lambda B^2 + \frac1\eta[\sum_t -\frac12\log(1-(1+\theta)\eta\sigma^2h_t) + L]`
    for sub-Gaussian noise. For bounded noise, :math:`1/\eta = 2\theta^2R^2/(\kappa G)`,
    :math:`U = \eta(1+\theta)h_{max}R^2`:
    :math:`(1+\theta)\lambda B^2 + \frac{1+\theta}2\frac{e^U-1}U\sigma^2\sum h_t + L/\eta`.
    """
    probability("delta", delta)
    theta, lam = positive("tilt", tilt), _ridge(glm, ridge)
    sigma, R = _scales(glm, noise)
    kappa, L = glm.min_slope, math.log(1 / delta)
    h_max = largest_leverage(glm, lam)
    a = glm.max_slope * h_max
    if a >= 1 or theta <= a / (1 - a):
        enough = _least_ridge(glm)
        remedy = f"a tilt above {a / (1 - a):.4g}" if a < 1 else f"a ridge above {enough:.4g}"
        raise ValueError(f"tilt is {tilt} and ridge {lam:.4g}; the bound needs {remedy}")
    G = theta - (1 + theta) * a
    start = (1 + theta) * lam * glm.parameter_bound**2
    if R is None:
        eta = 1 / (sigma**2 * (theta**2 / (kappa * G) + (1 + theta) * h_max))
        u = (1 + theta) * eta * sigma**2
        if leverages is not None:
            h = _leverages(glm, dim, horizon, lam, leverages)
            return start + (-0.5 * float(np.log1p(-u * h).sum()) + L) / eta
        slope = -math.log1p(-u * h_max) / (u * h_max)
        growth = _growth(glm, dim, horizon, lam, log_det, None)
        return start + 0.5 * (1 + theta) * slope * sigma**2 * growth / kappa + L / eta
    eta = kappa * G / (2 * theta**2 * R**2)
    U = eta * (1 + theta) * h_max * R**2
    total = _leverage_sum(glm, dim, horizon, lam, log_det, leverages)
    return start + 0.5 * (1 + theta) * math.expm1(U) / U * sigma**2 * total + L / eta


def mean_bound(
    glm: GLM,
    noise: Noise,
    *,
    dim: int,
    horizon: int,
    delta: float = 0.05,
    ridge: float | None = None,
    log_det: float | None = None,
    leverages: ArrayLike | None = None,
) -> float:
    r"""Return the bound on the mean regret, :math:`(\lambda B^2 + \frac12\sigma^2\sum h_t)/(1-a)`.

    Needs only a variance of at most sigma^2; ``delta`` is not used.
    """
    lam = _ridge(glm, ridge)
    sigma, _ = _scales(glm, noise)
    a = glm.max_slope * largest_leverage(glm, lam)
    if a >= 1:
        enough = _least_ridge(glm)
        raise ValueError(f"ridge is {lam:.4g}; the mean bound needs one above {enough:.4g}")
    total = _leverage_sum(glm, dim, horizon, lam, log_det, leverages)
    return (lam * glm.parameter_bound**2 + 0.5 * sigma**2 * total) / (1 - a)


def _least_ridge(glm: GLM) -> float:
    """Return the ridge at which a = K h_max is 1."""
    return glm.feature_bound**2 * (glm.max_slope - glm.min_slope) / 2


def _ridge(glm: GLM, ridge: float | None) -> float:
    return glm.ridge if ridge is None else positive("ridge", ridge)


def _scales(glm: GLM, noise: Noise) -> tuple[float, float | None]:
    """Return sigma and, for bounded noise, its bound; refuse what no bound is stated for."""
    if not glm.extend and not glm.linear:
        raise ValueError("extend is False, and no bound is claimed without the linear extension")
    family = glm.link.family
    if isinstance(noise, Likelihood) and family is not None and family.scale is None:
        raise ValueError("noise is Likelihood of counts, for which no bound is stated")
    if isinstance(noise, Bounded):
        return noise.sigma, noise.bound
    return noise_scale(glm, noise), None


def _prescribed(
    name: str,
    factors: tuple[float, float],
    glm: GLM,
    noise: Noise,
    G: float,
    ridge: float | None,
    delta: float,
) -> float:
    """Return a bound stated for the prescribed ridge; of G it has a factor for each noise."""
    if ridge is not None and not math.isclose(ridge, glm.ridge, rel_tol=1e-9):
        raise ValueError(
            f"ridge is {ridge:g}; the {name} bound is stated for {glm.ridge:g} only: leave it out, "
            "or use sharp_bound"
        )
    probability("delta", delta)
    (sigma, R), L = _scales(glm, noise), math.log(1 / delta)
    kappa, K = glm.min_slope, glm.max_slope
    least = 2 * glm.ridge * glm.parameter_bound**2 + factors[R is not None] * sigma**2 * G / kappa
    if R is None:
        return least + (4 / kappa + 6 * kappa / K**2) * sigma**2 * L
    return least + (4 / kappa + 5 * kappa / (12 * K**2)) * R**2 * L


def _growth(
    glm: GLM, dim: int, horizon: int, lam: float, log_det: float | None, leverages: ArrayLike | None
) -> float:
    """Return the log-determinant, from the leverages, as given, or its largest value."""
    d, T = dimension(dim), integer("horizon", horizon)
    if leverages is not None:
        h = _leverages(glm, d, T, lam, leverages)
        return -float(np.log1p(-glm.min_slope * h).sum())
    if log_det is not None:
        return positive("log_det", log_det, zero=True)
    return growth_bound(glm, dim=d, count=T, ridge=lam)


def _leverages(glm: GLM, dim: int, horizon: int, lam: float, values: ArrayLike) -> Array:
    dimension(dim)
    h = column("leverages", values, integer("horizon", horizon), False)
    largest = largest_leverage(glm, lam)
    if (h < 0).any() or (h > largest * (1 + 1e-9)).any():
        raise ValueError(
            f"leverages reach from {h.min():g} to {h.max():g}; with this ridge they lie in "
            f"[0, {largest:g}]: pass those of `design_terms`"
        )
    return h


def _leverage_sum(
    glm: GLM, dim: int, horizon: int, lam: float, log_det: float | None, leverages: ArrayLike | None
) -> float:
    """Return sum h_t, or its bound by the log-determinant over kappa."""
    if leverages is not None:
        return float(_leverages(glm, dim, horizon, lam, leverages).sum())
    return _growth(glm, dim, horizon, lam, log_det, None) / glm.min_slope
