"""Lower bounds: what no learner can beat on the identity link with Gaussian noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import dimension, features, integer, numbers, one_of, positive
from ..numerics import linalg
from ..numerics.bessel import PRIORS, bessel_zero


def lower_bound(
    x: ArrayLike, *, sigma: float = 1.0, parameter_bound: float = 1.0, prior: str = "ball"
) -> float:
    r"""Return :math:`\frac12\sigma^2\sum_t x_t^\top(\rho I + V_{t-1})^{-1}x_t`.

    No learner's mean regret is smaller, averaged over a Gaussian prior of variance B^2/d
    ("gaussian"; FTRL with 2 lam = rho attains it) or in the worst case over the "ball" of radius B
    or over the "cube" of half-width B/sqrt(d). Do not compare it with one fixed parameter. The
    design is fixed or independent of the labels.

    Examples
    --------
    One row of length 1, rho = sigma^2 d / B^2 = 1, prior "gaussian":

    >>> lower_bound([[1.0]], prior="gaussian")
    0.5

    References
    ----------
    Van Trees' inequality with the prior of least Fisher information on the set: the squared ground
    state of the ball, a product of squared cosines on the cube.
    """
    x = numbers("x", x)
    x, _ = features(x, x.shape[-1])
    sd, B = positive("sigma", sigma), positive("parameter_bound", parameter_bound)
    rho = prior_precision(x.shape[1], sigma=sd, parameter_bound=B, prior=prior)
    return 0.5 * sd**2 * float(np.vdot(x, linalg.gains(x, rho)))


def basis_lower_bound(
    dim: int,
    horizon: int,
    *,
    sigma: float = 1.0,
    feature_bound: float = 1.0,
    parameter_bound: float = 1.0,
    prior: str = "ball",
) -> float:
    r"""Return `lower_bound` of the design that visits the basis vectors, of length A, in turn.

    A coordinate met n times adds :math:`\frac12\sigma^2\sum_{k<n} A^2/(\rho + kA^2)`, a difference
    of digamma functions.

    >>> round(basis_lower_bound(1, 2, prior="gaussian"), 12)
    0.75
    """
    from scipy.special import digamma

    d, A = dimension(dim), positive("feature_bound", feature_bound)
    sigma, B = positive("sigma", sigma), positive("parameter_bound", parameter_bound)
    rho = prior_precision(d, sigma=sigma, parameter_bound=B, prior=prior) / A**2
    often, rest = divmod(integer("horizon", horizon), d)
    sums = [digamma(rho + n) - digamma(rho) for n in (often + 1, often)]
    return 0.5 * sigma**2 * float(rest * sums[0] + (d - rest) * sums[1])


def prior_precision(
    dim: int, *, sigma: float = 1.0, parameter_bound: float = 1.0, prior: str = "ball"
) -> float:
    """Return rho: 4 j^2 sigma^2/(d B^2) for the ball, j the first zero of the Bessel function
    J_{d/2-1}; pi^2 d sigma^2/B^2 for the cube; d sigma^2/B^2 for the Gaussian.
    """
    d, scale = dimension(dim), (sigma / parameter_bound) ** 2
    prior = one_of("prior", prior, PRIORS)
    if prior == "gaussian":
        return d * scale
    if prior == "cube":
        return math.pi**2 * d * scale
    return 4 * bessel_zero(d / 2 - 1) ** 2 * scale / d


def glm_lower_bound(
    x: ArrayLike,
    *,
    sigma: float,
    parameter_bound: float,
    min_slope: float,
    max_slope: float,
    prior: str = "ball",
) -> float:
    r"""Return the analogue for a link with slopes in [kappa, K]:
    :math:`\frac12\kappa\frac{\sigma^2}{K^2}\sum x^\top(V_{t-1} + \frac\rho{K^2}I)^{-1}x`.
    """
    kappa, K = positive("min_slope", min_slope), positive("max_slope", max_slope)
    return kappa * lower_bound(x, sigma=sigma / K, parameter_bound=parameter_bound, prior=prior)
