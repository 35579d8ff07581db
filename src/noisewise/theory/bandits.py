r"""Regret of optimistic bandits: a certificate from what they knew, and the theorems' bounds.

They hold on the event that the confidence sets hold the parameter, with ``radius_scale`` 1. S is
the score bound, K and kappa the slopes, and the trivial price of a round is
:math:`\varphi(S) - \varphi(-S)`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import column, numbers, positive
from ..model.glm import GLM
from ..model.links import LINKS
from ..protocols import Array


def certificate(glm: GLM, radii: ArrayLike, widths: ArrayLike) -> Array:
    r"""Return a bound of the regret after every round, computable while playing.

    :math:`\sum_t \min(\varphi(S) - \varphi(-S),\ 2K\beta_t\|a_t\|)`, with radius and width of the
    arm played, before its reward, in the same ellipsoid; any of those the policy used is valid, and
    the one of the smallest product is best. An infinite radius stands for a layer still empty.

    >>> certificate(GLM(), [np.inf, 0.5], [1.0, 0.1])
    array([2. , 2.1])
    """
    beta = np.asarray(radii, dtype=np.float64)
    if beta.ndim != 1 or np.isnan(beta).any() or (beta < 0).any():
        raise ValueError(f"radii has shape {beta.shape}; pass (T,) numbers >= 0, inf if unknown")
    width = column("widths", widths, len(beta), False)
    price = 2 * glm.max_slope * np.where(width > 0, beta, 0.0) * width
    return np.cumsum(np.minimum(_trivial(glm), price))


def mor_ucb_bound(
    glm: GLM,
    radii: ArrayLike,
    counts: ArrayLike,
    log_dets: ArrayLike,
    *,
    ridge: float | None = None,
) -> float:
    r"""Return the bound of MOR-UCB's regret from its layers at the end.

    .. math:: L(\varphi(S)-\varphi(-S)) + \sum_l 2K\beta_l\sqrt{c\,n_l\Gamma_l/\kappa}

    with each layer's largest radius so far, its count and log-determinant
    :math:`\Gamma_l = \log\det(\underline H_l/2\lambda)`; c = v/log(1+v),
    :math:`v = \kappa A^2/2\lambda`, at most 1.0613 for the prescribed ridge.
    """
    beta, n, gamma = (numbers(k, v) for k, v in
                      (("radii", radii), ("counts", counts), ("log_dets", log_dets)))  # fmt: skip
    if not beta.shape == n.shape == gamma.shape:
        raise ValueError(f"radii, counts and log_dets have shapes {beta.shape}, {n.shape} and "
                         f"{gamma.shape}; pass one number a layer in each")  # fmt: skip
    lam = glm.ridge if ridge is None else positive("ridge", ridge)
    v = glm.min_slope * glm.feature_bound**2 / (2 * lam)
    growth = v / math.log1p(v) * n * gamma / glm.min_slope
    return float(beta.size * _trivial(glm) + (2 * glm.max_slope * beta * np.sqrt(growth)).sum())


def ftrl_ucb_bound(
    glm: GLM,
    *,
    radius: float,
    log_det: float,
    sigma: ArrayLike,
    noise_floor: float = 0.05,
    noise_bound: float | None = None,
) -> float:
    r"""Return the bound of weighted FTRL-UCB's regret.

    .. math:: (\varphi(S)-\varphi(-S))\frac\Gamma{\log 2} + 2K\beta
              \sqrt{\frac{1.443\,\Gamma}\kappa\sum_t\max(\sigma_t, \text{floor})^2}
              \ [\,+\ 2.01 K R\beta^2\Gamma\,]

    with the largest radius of the global set so far; the last term for bounded noise. Rounds with
    :math:`q = \kappa w\|a\|^2 > 1` number at most Gamma/log 2 and pay the trivial price; elsewhere
    :math:`q \le \log(1+q)/\log 2`, and Cauchy-Schwarz with :math:`1/w = \max(\sigma,floor)^2`.
    """
    beta, gamma = positive("radius", radius), positive("log_det", log_det, zero=True)
    sd = np.maximum(numbers("sigma", sigma), positive("noise_floor", noise_floor))
    total = _trivial(glm) * gamma / math.log(2)
    growth = gamma / (math.log(2) * glm.min_slope)
    total += 2 * glm.max_slope * beta * math.sqrt(growth * float((sd**2).sum()))
    if noise_bound is not None:
        total += 2.01 * glm.max_slope * positive("noise_bound", noise_bound) * beta**2 * gamma
    return total


def family_sigma(glm: GLM, lower: ArrayLike, upper: ArrayLike, dispersion: float = 1.0) -> Array:
    r"""Return the largest sd of a draw of the link's family whose score lies between two bounds.

    :math:`\sqrt{g\max_z\varphi'(z)}` over the scores between ``lower`` and ``upper`` within
    [-S, S]; g is the ``dispersion``. With bounds from a confidence set of before the reward this is
    a sd for a policy that needs one: it holds wherever the set does, so a set and a policy
    of delta/2 each hold together with 1 - delta. A mean of n trials has 1/sqrt(n) of it.

    >>> family_sigma(GLM("logistic", parameter_bound=3.0), [-1.0, 2.0], [1.0, 9.0])  # 1/2 at z = 0
    array([0.5       , 0.32402714])
    """
    S, family = glm.score_bound, glm.link.family
    if family is None or not family.canonical:
        known = [each.name for each in LINKS.values() if each.family and each.family.canonical]
        raise ValueError(
            f"glm has link {glm.link.name!r}, whose slope is not the variance of a family; pass "
            f"one of {', '.join(known)}, or give the standard deviation"
        )
    low, high = (np.clip(numbers(k, v), -S, S) for k, v in (("lower", lower), ("upper", upper)))
    if not (low <= high).all():
        raise ValueError("lower is above upper; pass the ends of an interval of scores")
    most = np.maximum(glm.slope(low), glm.slope(high))
    for turn in glm.link.turning_points or ():
        most = np.where((low <= turn) & (turn <= high), np.maximum(most, glm.slope(turn)), most)
    return np.sqrt(positive("dispersion", dispersion) * most)


def _trivial(glm: GLM) -> float:
    S = glm.score_bound
    return float(glm.mean(S) - glm.mean(-S))
