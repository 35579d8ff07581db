"""Weighted least squares with upper confidence bounds."""

from __future__ import annotations

from dataclasses import dataclass

from ...inputs import coerce_positive
from .linear_policy import LinearUCB, VarianceWeighted
from .linear_state import LinearState


@dataclass(frozen=True)
class WeightedLeastSquaresUCB(VarianceWeighted[LinearState], LinearUCB[LinearState]):
    r"""Optimism with rewards weighed by the inverse of their variance.

    .. math:: w = \max(\sigma, \text{floor})^{-2},\qquad
              \beta = \sqrt{2\log(1/\delta) + \log\det(V/2\lambda)} + \sqrt{2\lambda}\,S

    The noise of a reward must be sub-Gaussian of the given scale, and that scale must not depend on
    the noise itself.

    Use it for linear rewards whose noise is known and differs from reward to reward. Costs K d^2
    per round.

    Parameters
    ----------
    parameter_bound : float > 0
        S, which bounds the norm of the true parameter.
    noise_floor : float > 0
        Smaller standard deviations count as this one.

    Examples
    --------
    A reward of sd 0.5 counts four times, so V = 1 + 4:

    >>> policy = WeightedLeastSquaresUCB()
    >>> state = policy.start(dim=1)
    >>> policy.update(state, [1.0], 1.0, sigma=0.5)
    >>> float(state.V[0, 0]), round(float(state.theta[0]), 12)
    (5.0, 0.8)

    References
    ----------
    Kirschner and Krause (2018), "Information directed sampling and bandits with heteroscedastic
    noise": the set holds for all rounds with probability 1 - delta.
    """

    parameter_bound: float = 1.0
    noise_floor: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        coerce_positive(self, "parameter_bound", "noise_floor")
