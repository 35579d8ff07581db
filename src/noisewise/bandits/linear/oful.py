"""OFUL: optimism with the self-normalised ellipsoid."""

from __future__ import annotations

from dataclasses import dataclass

from ...inputs import coerce_positive
from .linear_policy import LinearUCB
from .linear_state import LinearState


@dataclass(frozen=True)
class OFUL(LinearUCB[LinearState]):
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

    def noise_radius(self, state: LinearState) -> float:
        """Return the part of the radius that is due to noise."""
        return self.sigma * super().noise_radius(state)
