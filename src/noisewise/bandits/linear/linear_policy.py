"""Weighted ridge regression as a policy, and upper confidence bounds from its ellipsoid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

from ...confidence import Ellipsoid
from ...inputs import coerce_positive
from ...protocols import Array
from ..checked_policy import CheckedPolicy, IndexPolicy, check_optimism
from . import linear_state
from .linear_state import LinearState

State = TypeVar("State", bound=LinearState)


class LinearPolicy(CheckedPolicy[State]):
    """Ridge regression in which all rewards weigh the same, unless a policy says otherwise."""

    ridge: float

    def start(self, dim: int) -> LinearState:
        """Make the state of a fresh learner."""
        return linear_state.start(dim, self.ridge)

    def learn(self, state: State, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward of arm ``x``."""
        linear_state.learn(state, x, y)


class VarianceWeighted(LinearPolicy[State]):
    """Ridge regression in which a reward weighs the inverse of its variance."""

    noise_floor: float

    def learn(self, state: State, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward of arm ``x``."""
        linear_state.learn(state, x, y, max(sigma, self.noise_floor) ** -2.0)


class ConfidenceBounds(LinearPolicy[State]):
    r"""The ellipsoid of radius :math:`\beta = \text{noise} + \sqrt{2\lambda}\,S`.

    The noise part is that of standardised rewards unless a policy says otherwise.
    """

    delta: float
    radius_scale: float
    parameter_bound: float

    def upper(self, state: State, x: Array) -> Array:
        """Return the upper bound of every arm."""
        return linear_state.upper_bounds(state, x, self.radius(state, self.radius_scale))

    def radius(self, state: State, scale: float = 1.0) -> float:
        """Return the radius, its noise part times ``scale``."""
        return scale * self.noise_radius(state) + self.bias(self.parameter_bound)

    def noise_radius(self, state: State) -> float:
        r"""Return what is due to noise, :math:`\sqrt{2\log(1/\delta) + \log\det(V/2\lambda)}`."""
        return math.sqrt(2 * math.log(1 / self.delta) + state.log_det)

    def bias(self, parameter_bound: float) -> float:
        r"""Return :math:`\sqrt{2\lambda} S`, what the ridge adds to a radius."""
        return math.sqrt(2 * self.ridge) * parameter_bound

    def confidence(self, state: State) -> tuple[Ellipsoid]:
        """Return the set of the theorem, whatever ``radius_scale``."""
        return (Ellipsoid(state.theta, state.inverse.copy(), self.radius(state)),)


@dataclass(frozen=True, kw_only=True)
class LinearUCB(ConfidenceBounds[State], IndexPolicy[State]):
    r"""Play :math:`\arg\max_x x\cdot\hat\theta + \beta\|x\|_{V^{-1}}`.

    Parameters
    ----------
    ridge : float > 0
        The first matrix is 2 ridge I.
    delta : float in (0, 1)
        The confidence set fails with at most this probability, for all rounds together.
    radius_scale : float >= 0
        Multiplies the part of the radius that is due to noise; only 1 is covered by theory.
    """

    ridge: float = 0.5
    delta: float = 0.05
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge")
        check_optimism(self)

    def index(self, state: State, x: Array) -> Array:
        """Return the upper bound of every arm."""
        return self.upper(state, x)
