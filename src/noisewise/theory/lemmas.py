r"""Every lemma as two measurable sides: left is claimed to be at most right.

``thetas`` is (T+1, d): the estimates :math:`\hat\mu_1 = 0, \dots, \hat\mu_{T+1}` of exact FTRL, so
that round t was played with ``thetas[t-1]``. Weights are 1.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import column, features, numbers
from ..model.glm import GLM
from ..protocols import Array
from ..support.printing import OneLine
from .regret import design_terms, largest_leverage


class Sides(NamedTuple):
    """Two sides of an inequality, or of an equality where a lemma says so."""

    left: float
    right: float

    @property
    def holds(self) -> bool:
        """Whether left <= right up to rounding, 1e-9 of their sizes."""
        return self.left <= self.right + 1e-9 * (1 + abs(self.left) + abs(self.right))


@dataclass(frozen=True, eq=False, repr=False)
class Path(OneLine):
    """What the lemmas speak of on one path of FTRL.

    ``errors`` e_t = x_t.(muhat_t - mu*), ``mean_errors`` phi(x.muhat) - phi(x.mu*), ``noise``
    eps_t, ``leverages`` h_t, ``log_det`` Gamma, ``gaps`` the Bregman gaps D_t and ``regret`` R_T.
    """

    glm: GLM
    ridge: float
    theta_star: Array
    thetas: Array
    x: Array
    y: Array
    errors: Array
    mean_errors: Array
    noise: Array
    gaps: Array
    leverages: Array
    log_det: float
    regret: float


def path(
    glm: GLM, ridge: float, theta_star: ArrayLike, thetas: ArrayLike, x: ArrayLike, y: ArrayLike
) -> Path:
    """Collect the quantities of one path."""
    star = numbers("theta_star", theta_star)
    x, _ = features(x, len(star))
    y = column("y", y, len(x), False)
    thetas = numbers("thetas", thetas)
    if thetas.shape != (len(x) + 1, len(star)):
        raise ValueError(
            f"thetas has shape {thetas.shape}; pass {(len(x) + 1, len(star))}, the first one 0"
        )
    z, best = np.einsum("ij,ij->i", x, thetas[:-1]), x @ star
    mean = glm.mean(best)
    rise = glm.potential(z) - glm.potential(best)
    log_det, h = design_terms(glm, x, ridge)
    return Path(
        glm, ridge, star, thetas, x, y, z - best, glm.mean(z) - mean, y - mean,
        rise - mean * (z - best), h, log_det, float((rise - y * (z - best)).sum()),
    )  # fmt: skip


def decomposition_printed(p: Path) -> Sides:
    """R <= lam|mu*|^2 + 1/2 sum Dl^2 h + 1/2 sum eps^2 h, as printed. False.

    >>> one = path(GLM(), 4.0, [1.0], [[0.0], [10 / 9]], [[1.0]], [10.0])
    >>> sides = decomposition_printed(one)
    >>> sides.left, round(sides.right, 4), sides.holds
    (9.5, 8.5556, False)
    """
    bound = 0.5 * (p.mean_errors**2 + p.noise**2) @ p.leverages
    return Sides(p.regret, _start(p) + float(bound))


def decomposition(p: Path) -> Sides:
    """R <= lam|mu*|^2 + 1/2 sum (phi(x.muhat) - y)^2 h, the corrected decomposition."""
    bound = 0.5 * (p.mean_errors - p.noise) ** 2 @ p.leverages
    return Sides(p.regret, _start(p) + float(bound))


def decomposition_split(p: Path) -> Sides:
    """R <= lam|mu*|^2 + sum Dl^2 h + sum eps^2 h: the corrected one after splitting the square."""
    return Sides(p.regret, _start(p) + float((p.mean_errors**2 + p.noise**2) @ p.leverages))


def ftrl_identity(p: Path) -> Sides:
    """R = lam|mu*|^2 + sum [L_t(muhat_t) - L_t(muhat_{t+1})] - [L_T(mu*) - L_T(muhat_{T+1})]."""
    drops = 0.0
    for t in range(1, len(p.x) + 1):
        drops += _objective(p, p.thetas[t - 1], t) - _objective(p, p.thetas[t], t)
    T = len(p.x)
    last = _objective(p, p.theta_star, T) - _objective(p, p.thetas[T], T)
    return Sides(p.regret, _start(p) + drops - last)


def azoury_warmuth(p: Path) -> Sides:
    """Identity link: R = lam|mu*|^2 + 1/2 sum (y-yhat)^2 h - 1/2 ||muhat_{T+1} - mu*||^2 in UH."""
    if not p.glm.linear:
        raise ValueError(f"link is {p.glm.link.name!r}; this identity is for the identity link")
    residual = p.noise - p.mean_errors
    away = p.thetas[-1] - p.theta_star
    last = 2 * p.ridge * away @ away + ((p.x @ away) ** 2).sum()
    return Sides(p.regret, _start(p) + 0.5 * float(residual**2 @ p.leverages) - 0.5 * float(last))


def bregman_from_scores(p: Path) -> Sides:
    """kappa/2 sum e^2 <= sum D."""
    return Sides(0.5 * p.glm.min_slope * float(p.errors @ p.errors), float(p.gaps.sum()))


def bregman_from_means(p: Path) -> Sides:
    """sum Dl^2 / (2K) <= sum D."""
    return Sides(float(p.mean_errors @ p.mean_errors) / (2 * p.glm.max_slope), float(p.gaps.sum()))


def bregman_above(p: Path) -> Sides:
    """sum D <= K/2 sum e^2."""
    return Sides(float(p.gaps.sum()), 0.5 * p.glm.max_slope * float(p.errors @ p.errors))


def potential(p: Path) -> Sides:
    """sum h <= log det(UH/2 lam) / kappa; the print has twice that."""
    return Sides(float(p.leverages.sum()), p.log_det / p.glm.min_slope)


def potential_previous(p: Path) -> Sides:
    """sum v <= c log det(UH/2 lam) / kappa, v_t = x_t' UH_{t-1}^-1 x_t: the matrix before the row.

    c = vm / log(1 + vm), vm = kappa A^2 / (2 lam); at most 1.0613 with the prescribed ridge.
    """
    kappa = p.glm.min_slope
    vm = kappa * p.glm.feature_bound**2 / (2 * p.ridge)
    v = p.leverages / (1 - kappa * p.leverages)
    return Sides(float(v.sum()), vm / math.log1p(vm) * p.log_det / kappa)


def connection(p: Path, scale: float, delta: float) -> Sides:
    """sum e^2 <= (4/kappa) R + (8/kappa^2) s^2 log(1/delta), with probability 1 - delta."""
    kappa = p.glm.min_slope
    right = 4 * p.regret / kappa + 8 * scale**2 * math.log(1 / delta) / kappa**2
    return Sides(float(p.errors @ p.errors), right)


def connection_printed(p: Path, scale: float, delta: float) -> Sides:
    """The same with 16 in place of 8, as printed: it holds, and is loose."""
    left, right = connection(p, scale, delta)
    return Sides(left, right + 8 * scale**2 * math.log(1 / delta) / p.glm.min_slope**2)


def noise_sum(p: Path, sigma: float, delta: float, bound: float | None = None) -> Sides:
    """sum eps^2 h <= 1.387 sigma^2 sum h + 4 sigma^2 h_max L, sub-Gaussian noise, 1 - delta.

    Noise within ``bound`` R: 1.719 sigma^2 sum h + R^2 h_max L. These are c = -log(1-u)/u with
    2 sigma^2/u at u = 1/2, and (e^U-1)/U with R^2/U at U = 1.
    """
    slope, price = (2 * math.log(2), 4 * sigma**2) if bound is None else (math.e - 1, bound**2)
    total = slope * sigma**2 * float(p.leverages.sum())
    extra = price * largest_leverage(p.glm, p.ridge) * math.log(1 / delta)
    return Sides(float(p.noise**2 @ p.leverages), total + extra)


def square_root_trick(x: float, a: float, b: float) -> Sides:
    """If x^2 <= a + b x then x^2 <= 2a + b^2; the print has 2a + 2b^2."""
    if x * x > a + b * x:
        raise ValueError(f"x is {x}; the lemma is for x^2 <= a + b x, here {x * x} > {a + b * x}")
    return Sides(x * x, 2 * a + b * b)


def moment(noise: ArrayLike, alpha: float, beta: float, sigma: float) -> Sides:
    """Mean of exp(alpha X + beta X^2/2) <= exp(alpha^2 s^2/(2(1-beta s^2)))/sqrt(1-beta s^2).

    Equality for Gaussian X; ``noise`` is a sample or a quadrature with equal weights.
    """
    left = float(np.exp(alpha * numbers("noise", noise) + 0.5 * beta * np.square(noise)).mean())
    room = 1 - beta * sigma**2
    if room <= 0:
        raise ValueError(f"beta is {beta}; it must be below 1/sigma^2 = {1 / sigma**2:g}")
    return Sides(left, math.exp(alpha**2 * sigma**2 / (2 * room)) / math.sqrt(room))


def hoeffding_failure(rng: np.random.Generator, horizon: int, trials: int, delta: float) -> float:
    """Return how often Hoeffding's inequality with a predictable random scale fails.

    Sums of signs times scales 0 or 1 that stop as soon as they exceed
    sqrt(2 n log(1/delta)), n the scales spent: the printed lemma says at most delta.
    """
    walks = np.cumsum(rng.choice([-1.0, 1.0], size=(trials, horizon)), axis=1)
    border = np.sqrt(2 * np.arange(1, horizon + 1) * math.log(1 / delta))
    return float((walks > border).any(axis=1).mean())


def _start(p: Path) -> float:
    return p.ridge * float(p.theta_star @ p.theta_star)


def _objective(p: Path, theta: Array, t: int) -> float:
    z = p.x[:t] @ theta
    return p.ridge * float(theta @ theta) + float((p.glm.potential(z) - p.y[:t] * z).sum())
