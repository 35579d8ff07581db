"""LOSAN: a radius that follows the residuals, for a noise scale that is only an upper bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ...inputs import coerce_positive
from ...numerics import linalg
from ...protocols import Array
from ...storage.states import NONNEGATIVE, check_fields
from . import linear_state
from .linear_policy import LinearUCB
from .linear_state import LinearState


@dataclass(eq=False, repr=False)
class LOSANState(LinearState):
    """A ridge state with the sum of discounted squared residuals, ``excess``."""

    excess: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, excess=NONNEGATIVE)


@dataclass(frozen=True)
class LOSAN(LinearUCB[LOSANState]):
    r"""Optimism whose set shrinks with the noise seen; ``sigma`` need only be an upper bound.

    .. math:: w = \min(1, \|x\|_{V^{-1}}^{-1})^2,\qquad
              \beta^2 = 2\lambda S^2 + 2\sigma^2\log(1/\delta)
              + \sum_s w_s r_s^2\,\frac{g_s}{1 + g_s},\quad g = w\|x\|_{V^{-1}}^2

    with :math:`r = y - x\cdot\hat\theta` and V before the update; the sum is the loss played less
    the least loss, twice. The given scale only prices log(1/delta). Standard deviations given
    are not used; weights depend on the order of rewards where the ridge is small. With arms no
    longer than :math:`\sqrt{2\lambda}` all weights are 1, and the set is the adaptive one of
    `FTRL` for the identity link, whose scores are clipped besides.

    Use it where noise may be far below what can be promised. Costs K d^2 per round. Measured at
    delta = 0.1, noise of the scale told, truth of norm S, 400 rounds of 3 features, the
    0.9-quantile over 10,000 runs of the largest error/radius: 0.94, where 1 would be calibrated
    (0.93 with 2 features, 0.96 with 8).

    Parameters
    ----------
    sigma : float > 0
        The noise of every reward is sub-Gaussian of at most this scale.
    parameter_bound : float > 0
        S, which bounds the norm of the true parameter; the paper takes 2 ridge = sigma^2/S^2.

    Examples
    --------
    One reward of residual 1 at V = 1 adds 1/2 to the square of the radius:

    >>> policy = LOSAN()
    >>> state = policy.start(dim=1)
    >>> before = policy.radius(state) ** 2
    >>> policy.update(state, [1.0], 1.0)
    >>> round(policy.radius(state) ** 2 - before, 12)
    0.5

    References
    ----------
    Jun and Kim (2024), "Noise-adaptive confidence sets for linear bandits and application to
    Bayesian optimization": the set holds for all rounds with probability 1 - delta. Its constants
    follow from the regret of ridge regression, an equality, and Ville's inequality.
    """

    not_promised: ClassVar[tuple[str, ...]] = ("late rewards give the same estimate",)

    sigma: float = 1.0
    parameter_bound: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        coerce_positive(self, "sigma", "parameter_bound")

    def start(self, dim: int) -> LOSANState:
        """Make the state of a fresh learner."""
        return LOSANState(**vars(linear_state.start(dim, self.ridge)))

    def radius(self, state: LOSANState, scale: float = 1.0) -> float:
        """Return the radius, its noise part times ``scale``."""
        noise = 2 * self.sigma**2 * math.log(1 / self.delta) + state.excess
        return math.hypot(scale * math.sqrt(noise), self.bias(self.parameter_bound))

    def learn(self, state: LOSANState, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward, weighed down while little is known of the arm."""
        width, residual = linalg.norm(x, state.inverse), y - float(x @ state.theta)
        w = max(width, 1.0) ** -2.0
        growth = w * width**2
        linear_state.learn(state, x, y, w)
        state.excess += w * residual * residual * growth / (1 + growth)
