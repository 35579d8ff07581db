r"""Radii of the confidence ellipsoids of FTRL.

Letters: kappa, K slopes, lam the ridge, A, B norm bounds, S = AB, L = log(1/delta), and
:math:`\underline H_t = 2\lambda I + \kappa \sum_{s\le t} w_s x_s x_s^\top`. Every radius bounds
:math:`\|\hat\mu_{t+1} - \mu^*\|` in the norm of :math:`\underline H_t` for all t at once with
probability at least 1 - delta, provided the link is extended.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from ..confidence import Ellipsoid
from ..inputs import shown
from ..model.glm import GLM
from ..model.links import Family
from ..model.noise import Bounded, Likelihood, Noise, SubGaussian
from ..numerics import linalg
from ..protocols import Array

RADII = ("adaptive", "played", "self-normalised", "freedman", "printed")


def check(glm: GLM, noise: Noise, radius: str) -> None:
    """Raise unless there is a proof of the radius for this noise and link."""
    if radius == "self-normalised":
        noise_scale(glm, noise)
    elif radius in ("freedman", "printed"):
        _require_bounded(radius, noise)
    else:
        conversion_constant(glm, noise)


def conversion_constant(glm: GLM, noise: Noise) -> float:
    """Return C of the adaptive radius: the price of log(1/delta), fixed before the first round.

    sigma^2/kappa (sub-Gaussian), max(2(e-2) sigma^2/kappa, 2 bound S max_weight) (bounded), or the
    dispersion (likelihood).
    """
    kappa = glm.min_slope
    if isinstance(noise, SubGaussian):
        if glm.link.family is not None and glm.link.family.scale is None:
            warnings.warn(
                "counts are not sub-Gaussian: for Poisson labels pass noise=Likelihood()",
                stacklevel=3,
            )
        return noise.sigma**2 / kappa
    if isinstance(noise, Bounded):
        return max(
            2 * (math.e - 2) * noise.sigma**2 / kappa,
            2 * noise.bound * glm.score_bound * noise.max_weight,
        )
    _require_family(glm, noise)
    return noise.dispersion


def noise_scale(glm: GLM, noise: Noise) -> float:
    """Return the sub-Gaussian scale s at weight 1 that `self_normalised` uses."""
    if isinstance(noise, SubGaussian):
        return noise.sigma
    if isinstance(noise, Bounded):
        return noise.bound * math.sqrt(noise.max_weight)
    scale = _require_family(glm, noise).scale
    if scale is None:
        raise ValueError(
            f"radius is 'self-normalised', but labels of the {glm.link.name} family have no "
            "sub-Gaussian scale; use radius='adaptive'"
        )
    return math.sqrt(noise.dispersion) if glm.linear else scale


def _require_family(glm: GLM, noise: Noise) -> Family:
    if not isinstance(noise, Likelihood):
        raise ValueError(
            f"noise is {shown(noise)}; pass SubGaussian(...), Bounded(...) or Likelihood()"
        )
    family = glm.link.family
    if family is None or glm.score_bound > family.score_limit:
        reason = "" if family is None else f"beyond score bound {family.score_limit:g} "
        raise ValueError(
            f"noise is Likelihood, but link {glm.link.name!r} {reason}is not the mean of a family "
            "for which it is proved; pass SubGaussian or Bounded"
        )
    return family


def growth_bound(glm: GLM, *, dim: int, count: int, ridge: float, max_weight: float = 1.0) -> float:
    """Return d log(1 + n kappa A^2 / (2 d lam)), the largest log-determinant n rows can reach."""
    kappa, A2 = glm.min_slope, glm.feature_bound**2 * max_weight
    return dim * math.log1p(count * kappa * A2 / (2 * dim * ridge))


def self_normalised(glm: GLM, noise: Noise, *, log_det: float, ridge: float, delta: float) -> float:
    """Return kappa^{-1/2} s sqrt(log det(UH/2lam) + 2L) + sqrt(2 lam) B."""
    s, kappa = noise_scale(glm, noise), glm.min_slope
    noise_part = s * math.sqrt((log_det + 2 * math.log(1 / delta)) / kappa)
    return noise_part + math.sqrt(2 * ridge) * glm.parameter_bound


def printed(glm: GLM, noise: Noise, *, dim: int, count: int, ridge: float, delta: float) -> float:
    """Return `bernstein` of bounded noise, R and A grown by sqrt(max_weight)."""
    noise = _require_bounded("printed", noise)
    R, weight = noise.bound * math.sqrt(noise.max_weight), noise.max_weight
    return bernstein(
        glm, R, noise.sigma, dim=dim, count=count, ridge=ridge, delta=delta, max_weight=weight
    )


def bernstein(
    glm: GLM, bound: float, sigma: float, *, dim: int, count: int, ridge: float, delta: float,
    max_weight: float = 1.0,
) -> float:  # fmt: skip
    """Return kappa^{-1/2} [8 sigma sqrt(G log(4t^2/delta)) + 4 R log(4t^2/delta)] + sqrt(2 lam) B.

    The paper's Bernstein radius with the factor kappa^{-1/2} that its statement lost; constants of
    Zhou, Gu and Szepesvari (2021).
    """
    start = math.sqrt(2 * ridge) * glm.parameter_bound
    if count == 0:
        return start
    G = growth_bound(glm, dim=dim, count=count, ridge=ridge, max_weight=max_weight)
    ell = math.log(4 * count**2 / delta)
    return (8 * sigma * math.sqrt(G * ell) + 4 * bound * ell) / math.sqrt(glm.min_slope) + start


def freedman(glm: GLM, noise: Noise, *, dim: int, count: int, ridge: float, delta: float) -> float:
    """Return a Bernstein-type radius with small constants, proved by a stopped supermartingale.

    For horizon n, v = kappa A^2/(2 lam): p = sigma sqrt(2GL) + R sqrt(v) L/3,
    c = sigma^2 G + R sqrt(v) sigma sqrt(2GL) + R^2 v L/3, radius kappa^{-1/2}(p + sqrt(p^2 + c)).
    Anytime by doubling: n = 2^k >= t and L = log((k+1)(k+2)/delta).
    """
    noise = _require_bounded("freedman", noise)
    R, sigma, kappa = noise.bound * math.sqrt(noise.max_weight), noise.sigma, glm.min_slope
    k = math.ceil(math.log2(max(count, 1)))
    L = math.log((k + 1) * (k + 2) / delta)
    G = growth_bound(glm, dim=dim, count=2**k, ridge=ridge, max_weight=noise.max_weight)
    v = kappa * glm.feature_bound**2 * noise.max_weight / (2 * ridge)
    root = sigma * math.sqrt(2 * G * L)
    p = root + R * math.sqrt(v) * L / 3
    c = sigma**2 * G + R * math.sqrt(v) * root + R**2 * v * L / 3
    return (p + math.sqrt(p * p + c)) / math.sqrt(kappa) + math.sqrt(
        2 * ridge
    ) * glm.parameter_bound


def _require_bounded(radius: str, noise: Noise) -> Bounded:
    if not isinstance(noise, Bounded):
        raise ValueError(
            f"radius is {radius!r}, which needs noise=Bounded(bound, sigma); got {noise!r}"
        )
    return noise


def interval_ridge(glm: GLM, noise: Noise, dim: int) -> float:
    r"""Return the ridge that makes intervals narrow, :math:`Cd/(2B^2)`.

    It is the precision of a prior of length B in units of the noise. `GLM.ridge`, the default of
    `FTRL`, is that of the regret theorem, which knows no noise; with precise labels it makes
    intervals many times wider.

    >>> interval_ridge(GLM(parameter_bound=2.0), SubGaussian(0.5), dim=8)
    0.25
    """
    return conversion_constant(glm, noise) * dim / (2 * glm.parameter_bound**2)


def local_form(
    glm: GLM,
    whole: Ellipsoid,
    level: float,
    gap: float,
    longest: float,
    ridge: float,
    curvature: Array,
) -> Ellipsoid:
    r"""Return the set in the norm of :math:`2\lambda I + cG`, from the ``whole`` one.

    G is the curvature :math:`\sum w\varphi'(x\cdot\hat\mu)xx^\top` at the estimate, which lies
    within ``gap`` of the minimiser, and c = 2/(2 + M rho) with rho at least the largest change of a
    score between estimate and truth. The whole set and the norm bound give a first rho for the
    ``longest`` row; each radius gives a smaller one, until it settles.
    """
    M, smallest = glm.self_concordance or 0.0, 1 / linalg.largest_eigenvalue_bound(whole.inverse)
    far = glm.parameter_bound + float(np.linalg.norm(whole.centre))
    rho = longest * min(far, whole.radius / math.sqrt(smallest))
    least = max(float(np.linalg.eigvalsh(curvature)[0]), 0.0)
    while True:
        c = 2 / (2 + M * rho)
        e = gap / math.sqrt(c)  # the gradient in the local norm
        radius = e + math.sqrt(e * e + 2 * level)
        closer = longest * radius / math.sqrt(2 * ridge + c * least)
        if not closer < 0.999 * rho:
            break
        rho = closer
    H = c * curvature + 2 * ridge * np.eye(len(curvature))
    return Ellipsoid(whole.centre, linalg.invert(linalg.factor(H)), radius)
