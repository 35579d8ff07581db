"""Weighted OFUL: variances known, noise bounded."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...inputs import coerce_positive
from ...protocols import Array
from ..arms import clip
from .linear_policy import LinearUCB
from .linear_state import LinearState, learn


@dataclass(frozen=True)
class WeightedOFUL(LinearUCB[LinearState]):
    r"""Optimism with variance weights and a Bernstein radius.

    .. math:: w = \max(\sigma, R/\sqrt d)^{-2},\qquad \ell = \log(4t^2/\delta),

    .. math:: \beta = 8\sqrt{d\,\log(1 + tA^2/(2\lambda R^2))\,\ell} + 4\sqrt d\,\ell
              + \sqrt{2\lambda}\,S

    The constants are recalled from the paper and not verified; the radius is so wide that coverage
    tells nothing about them. Use ``radius_scale`` to play well.

    Use it to look at the theory of bounded noise with known variances. Costs K d^2 per round.

    Parameters
    ----------
    noise_bound : float > 0
        R, which bounds every noise; a larger ``sigma`` is cut to it, with a warning.
    feature_bound, parameter_bound : float > 0
        A and S, bounds of the norms of arms and of the true parameter.

    References
    ----------
    Zhou, Gu and Szepesvari (2021), "Nearly minimax optimal reinforcement learning for linear
    mixture Markov decision processes": regret of order R sqrt(dT) + d sqrt(sum sigma^2), for
    2 ridge = 1/S^2.
    """

    noise_bound: float = 1.0
    feature_bound: float = 1.0
    parameter_bound: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        coerce_positive(self, "noise_bound", "feature_bound", "parameter_bound")

    def noise_radius(self, state: LinearState) -> float:
        """Return the part of the radius that is due to noise, 0 before any data."""
        d, t = state.dim, state.count
        if not t:
            return 0.0
        ell = math.log(4 * t * t / self.delta)
        reach = (self.feature_bound / self.noise_bound) ** 2 / (2 * self.ridge)
        return 8 * math.sqrt(d * math.log1p(t * reach) * ell) + 4 * math.sqrt(d) * ell

    def effective_sd(self, state: LinearState, x: Array, sigma: float) -> float:
        """Return the standard deviation a reward of arm ``x`` counts with."""
        return max(sigma, self.noise_bound / math.sqrt(state.dim))

    def learn(self, state: LinearState, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward, weighed by the inverse of its effective variance."""
        sd = self.effective_sd(state, x, clip(state, sigma, self.noise_bound))
        learn(state, x, y, sd**-2.0)
        state.clipped += sigma > self.noise_bound
