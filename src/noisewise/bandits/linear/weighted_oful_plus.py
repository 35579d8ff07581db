"""Weighted OFUL+: weights that also look at how little is known of an arm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ...inputs import coerce_positive, integer
from ...numerics import linalg
from ...protocols import Array
from .linear_state import LinearState
from .weighted_oful import WeightedOFUL


@dataclass(frozen=True)
class WeightedOFULPlus(WeightedOFUL):
    r"""Optimism with weights from variance and uncertainty, and a Bernstein radius.

    .. math:: w = \max(\sigma, \alpha, \gamma\|x\|_{V^{-1}}^{1/2})^{-2},\quad
              \alpha = T^{-1/2},\ \gamma = R^{1/2} d^{-1/4},

    .. math:: \iota = \log\frac{32\,(\log^+(\gamma^2/\alpha) + 1)\,t^2}{\delta},

    .. math:: \beta = 12\sqrt{d\,\log(1 + tA^2/(2\lambda d\alpha^2))\,\iota} + 30\,\iota R/\gamma^2
              + \sqrt{2\lambda}\,S

    with V before the update, so the estimate depends on the order of rewards. The constants are
    recalled from the paper and not verified, the floor alpha is a guess; the radius is so wide that
    coverage tells nothing about them. Use ``radius_scale`` to play well.

    Use it to look at the theory without a term in sqrt(T). Costs K d^2 per round.

    Parameters
    ----------
    noise_bound : float > 0
        R, which bounds every noise; a larger ``sigma`` is cut to it, with a warning.
    feature_bound, parameter_bound : float > 0
        A and S, bounds of the norms of arms and of the true parameter.
    horizon : int
        T, the number of rounds that will be played.

    References
    ----------
    Zhou and Gu (2022), "Computationally efficient horizon-free reinforcement learning for linear
    mixture MDPs": regret of order d sqrt(sum sigma^2) + dR + d, for 2 ridge = 1/S^2.
    """

    not_promised: ClassVar[tuple[str, ...]] = ("late rewards give the same estimate",)

    horizon: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        coerce_positive(self, "horizon", by=integer)

    def noise_radius(self, state: LinearState) -> float:
        """Return the part of the radius that is due to noise, 0 before any data."""
        d, t, T, R = state.dim, state.count, self.horizon, self.noise_bound
        if not t:
            return 0.0
        gamma2 = R / math.sqrt(d)
        orders = max(0.0, math.log(gamma2 * math.sqrt(T)))
        iota = math.log(32 * (orders + 1) * t * t / self.delta)
        reach = self.feature_bound**2 * T / (2 * self.ridge * d)
        return 12 * math.sqrt(d * math.log1p(t * reach) * iota) + 30 * iota * R / gamma2

    def effective_sd(self, state: LinearState, x: Array, sigma: float) -> float:
        """Return the standard deviation a reward of arm ``x`` counts with."""
        gamma = math.sqrt(self.noise_bound) / state.dim**0.25
        doubt = gamma * math.sqrt(linalg.norm(x, state.inverse))
        return max(sigma, self.horizon**-0.5, doubt)
