r"""Regret of a stream of played scores, or of played arms, cumulative over its rounds.

The loss of a row is :math:`\ell(z) = m(z) - yz`, half the square less a constant for the identity
link, so classical numbers for the full square are twice these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import column, features, numbers, positive
from ..model.glm import GLM
from ..numerics import linalg
from ..protocols import Array, BanditRounds


def stochastic_regret(
    glm: GLM, theta_star: ArrayLike, x: ArrayLike, y: ArrayLike, scores: ArrayLike
) -> Array:
    r"""Return :math:`R_t = \sum_{s\le t} \ell_s(\hat z_s) - \ell_s(x_s\cdot\mu^*)`.

    It may be negative. ``theta_star`` is :math:`\mu^*`, or ``(T, d)`` where it moves.

    >>> stochastic_regret(GLM(), [1.0], [[1.0]], [2.0], [0.0])
    array([1.5])
    """
    x, z, best = _scores(theta_star, x, scores)
    y = column("y", y, len(x), False)
    return np.cumsum(glm.potential(z) - glm.potential(best) - y * (z - best))


def pseudo_regret(glm: GLM, theta_star: ArrayLike, x: ArrayLike, scores: ArrayLike) -> Array:
    r"""Return the sum of Bregman gaps :math:`D_t`: what the regret is on average over the noise.

    >>> pseudo_regret(GLM(), [1.0], [[1.0]], [0.0])
    array([0.5])
    """
    _, z, best = _scores(theta_star, x, scores)
    return np.cumsum(glm.potential(z) - glm.potential(best) - glm.mean(best) * (z - best))


def adversarial_regret(x: ArrayLike, y: ArrayLike, scores: ArrayLike) -> Array:
    r"""Return the regret against the best linear predictor in hindsight, identity link.

    :math:`\sum_{s\le t}\ell_s(\hat z_s) - \inf_\mu \sum_{s\le t}\ell_s(\mu)`. The infimum is
    :math:`-\frac12 b^\top V^+ b`, :math:`b = \sum y_sx_s`, solved again for every row: rows that do
    not span their space have it too.

    >>> adversarial_regret([[1.0], [1.0]], [1.0, 0.0], [0.0, 0.5])
    array([0.5  , 0.375])
    """
    x = numbers("x", x)
    x, _ = features(x, x.shape[-1])
    y, z = column("y", y, len(x), False), column("scores", scores, len(x), False)
    V, b = np.zeros((x.shape[1], x.shape[1])), np.zeros(x.shape[1])
    best = np.empty(len(x))
    for t, (row, label) in enumerate(zip(x, y, strict=True)):
        V += np.outer(row, row)
        b += label * row
        best[t] = -0.5 * b @ np.linalg.lstsq(V, b, rcond=1e-12)[0]
    return np.cumsum(0.5 * z * z - y * z) - best


def mean_regret(
    theta_star: ArrayLike, x: ArrayLike, *, sigma: ArrayLike = 1.0, ridge: float = 4.0
) -> Array:
    r"""Return FTRL's exact mean regret on a fixed design, identity link, noise of sd ``sigma``.

    With :math:`G = 2\lambda I + V_{t-1}` and :math:`g = G^{-1}x_t` a round adds
    :math:`\frac12[(2\lambda g\cdot\mu^*)^2 + \sigma^2(x_t\cdot g - 2\lambda g\cdot g)]`.

    >>> mean_regret([1.0], [[1.0], [1.0]], sigma=1.0, ridge=0.5)
    array([0.5 , 0.75])
    """
    bias, variance = mean_regret_parts(x, sigma=sigma, ridge=ridge)
    theta = numbers("theta_star", theta_star)
    return np.cumsum(0.5 * (bias @ theta) ** 2 + variance)


def mean_regret_parts(x: ArrayLike, *, sigma: ArrayLike, ridge: float) -> tuple[Array, Array]:
    """Return each round's bias vector 2 lam g, (T, d), and its variance term, (T,)."""
    x = numbers("x", x)
    x, _ = features(x, x.shape[-1])
    sd = column("sigma", sigma, len(x), False, spread=True)
    lam = positive("ridge", ridge)
    g = linalg.gains(x, 2 * lam)
    spread = np.einsum("ij,ij->i", x, g) - 2 * lam * np.einsum("ij,ij->i", g, g)
    return 2 * lam * g, 0.5 * sd**2 * spread


def worst_mean_regret(
    x: ArrayLike, *, sigma: float = 1.0, parameter_bound: float = 1.0, ridge: float = 4.0
) -> float:
    """Return FTRL's exact mean regret at the end, for the worst parameter of norm B."""
    bias, variance = mean_regret_parts(x, sigma=sigma, ridge=ridge)
    return float(variance.sum() + 0.5 * parameter_bound**2 * np.linalg.eigvalsh(bias.T @ bias)[-1])


def design_terms(glm: GLM, x: ArrayLike, ridge: float) -> tuple[float, Array]:
    r"""Return log det(UH/2 lam) and the leverages :math:`h_t = x_t^\top UH_t^{-1} x_t`.

    They are what the data-dependent bounds take in place of their worst case; log det is
    :math:`-\sum\log(1-\kappa h_t)`.
    """
    x = numbers("x", x)
    x, _ = features(x, x.shape[-1])
    kappa = glm.min_slope
    g = linalg.gains(x, 2 * positive("ridge", ridge), kappa)
    v = np.einsum("ij,ij->i", x, g)
    return float(np.log1p(kappa * v).sum()), v / (1 + kappa * v)


def largest_leverage(glm: GLM, ridge: float) -> float:
    """Return h_max = A^2 / (2 lam + kappa A^2), which no leverage exceeds."""
    return glm.feature_bound**2 / (2 * ridge + glm.min_slope * glm.feature_bound**2)


def bandit_regret(rounds: BanditRounds, choices: ArrayLike) -> Array:
    """Return the largest mean less the mean of the arm played, summed over the rounds so far.

    >>> table = BanditRounds(np.eye(2), np.array([[0.0, 1.0], [0.5, 0.2]]), np.eye(2), np.ones(2))
    >>> bandit_regret(table, [0, 0])
    array([1., 1.])
    """
    means, k = numbers("means", rounds.means), np.asarray(choices)
    if k.shape != (len(means),) or k.dtype.kind not in "iu":
        raise ValueError(
            f"choices has shape {k.shape} and type {k.dtype}; pass ({len(means)},) integers"
        )
    if k.size and not 0 <= k.min() <= k.max() < means.shape[1]:
        raise ValueError(
            f"choices run from {k.min()} to {k.max()}; there are arms 0 to {means.shape[1] - 1}"
        )
    return np.cumsum(means.max(axis=1) - means[np.arange(len(means)), k])


def _scores(theta_star: ArrayLike, x: ArrayLike, scores: ArrayLike) -> tuple[Array, Array, Array]:
    theta = numbers("theta_star", theta_star)
    x, _ = features(x, theta.shape[-1])
    z = column("scores", scores, len(x), False)
    if theta.ndim == 2 and theta.shape != x.shape:
        raise ValueError(f"theta_star has shape {theta.shape}; pass {x.shape}, one for each row")
    return x, z, x @ theta if theta.ndim == 1 else np.einsum("ij,ij->i", x, theta)
