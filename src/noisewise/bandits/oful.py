"""OFUL: optimism with the self-normalised ellipsoid."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ..inputs import coerce_positive
from ..ownership import writes
from .arms import observation
from .optimism import Optimism
from .ridge import LinearState, learn


@dataclass(frozen=True)
class OFUL(Optimism):
    r"""Optimism for noise of one known scale; given standard deviations are not used.

    .. math:: \beta = \sigma\sqrt{2\log(1/\delta) + \log\det(V/2\lambda)} + \sqrt{2\lambda}\,S

    Use it where all rewards have the same noise, and as the yardstick of linear optimism. Costs
    K d^2 per round.

    Parameters
    ----------
    sigma : float > 0
        The sub-Gaussian scale of every reward.
    parameter_bound : float > 0
        S, which bounds the norm of the true parameter.

    Examples
    --------
    Before any reward the radius is sigma sqrt(2 log 20) + 1:

    >>> policy = OFUL()
    >>> round(policy.radius(policy.start(dim=3)), 4)
    3.4477

    References
    ----------
    Abbasi-Yadkori, Pal and Szepesvari (2011), "Improved algorithms for linear stochastic bandits":
    the set holds for all rounds with probability 1 - delta; regret of order d sqrt(T) log T.
    """

    sigma: float = 1.0
    parameter_bound: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        coerce_positive(self, "sigma", "parameter_bound")

    def radius(self, state: LinearState, scale: float = 1.0) -> float:
        """Return the radius, its noise part times ``scale``."""
        noise = self.sigma * math.sqrt(2 * math.log(1 / self.delta) + state.log_det)
        return scale * noise + self.bias(self.parameter_bound)

    @writes
    def update(self, state: LinearState, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Learn a reward; all weigh the same."""
        x, y, _ = observation(arm, reward, sigma, state.dim)
        learn(state, x, y)
