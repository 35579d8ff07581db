"""Optimism from the likelihood: what the policies that know the family of rewards share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ...confidence import Ellipsoid
from ...inputs import coerce_positive, shown
from ...model.glm import GLM
from ...model.noise import Likelihood
from ...protocols import Array
from ...theory.radii import conversion_constant
from ..checked_policy import IndexPolicy, check_optimism


def reward_range(glm: GLM) -> tuple[float, float]:
    """Return the least and the largest reward of the link's family: where its means end."""
    low, high = glm.link.mean(np.array([-np.inf, np.inf]))
    return float(low), float(high)


def refuse_outside(glm: GLM, ends: tuple[float, float], reward: float) -> None:
    """Refuse a reward that no draw of the link's family gives."""
    if not ends[0] <= reward <= ends[1]:
        raise ValueError(
            f"reward is {reward:g}, but rewards of the {glm.link.name} family lie in "
            f"[{ends[0]:g}, {ends[1]:g}]; pass such rewards, or use a policy that assumes no family"
        )


class Estimate(Protocol):
    """A state with an estimate, and the inverse of H at it."""

    theta: Array

    @property
    def inverse(self) -> Array:
        """The inverse of H."""

    @property
    def dim(self) -> int:
        """The number of features."""


State = TypeVar("State", bound=Estimate)


@dataclass(frozen=True)
class LikelihoodOptimism(IndexPolicy[State]):
    r"""Play :math:`\arg\max_x x\cdot\hat\theta + \beta\|x\|_{H^{-1}}`.

    Rewards are draws of the exponential family whose mean is the link (`Likelihood`), of
    dispersion g; one outside the family's range, such as 2 for the logistic link, is refused. A
    policy says what its radius is.

    Parameters
    ----------
    glm : GLM
    dispersion : float > 0
        g: a reward's variance is g times the slope at its score; sigma^2 for Gaussian rewards,
        1/n for means of n trials.
    ridge : float > 0, optional
        H begins as 2 ridge I; each policy prescribes its own.
    delta : float in (0, 1)
        The confidence set fails with at most this probability, for all rounds together.
    radius_scale : float >= 0
        Multiplies the radius; only 1 is covered by theory.
    """

    glm: GLM = field(default_factory=GLM)
    _: KW_ONLY
    dispersion: float = 1.0
    ridge: float | None = None
    delta: float = 0.05
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.glm, GLM):
            raise ValueError(f"glm is {shown(self.glm)}; pass a GLM, such as GLM('logistic')")
        # estimates stay in the ball, where the extension changes nothing; trial steps leave it
        object.__setattr__(self, "glm", replace(self.glm, extend=True))
        coerce_positive(self, "dispersion", *(["ridge"] if self.ridge is not None else []))
        check_optimism(self)
        conversion_constant(self.glm, Likelihood(self.dispersion))  # refuses what is no family

    @property
    def concordance(self) -> float:
        """M with \\|phi''\\| <= M phi'."""
        return self.glm.self_concordance or 0.0

    @property
    def eta(self) -> float:
        r"""1 + MS, S the score bound: a loss grows from z to z + u by :math:`\varphi'u^2/2\eta`."""
        return 1 + self.concordance * self.glm.score_bound

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The least and the largest reward of the family."""
        return reward_range(self.glm)

    def observed(
        self, state: State, arm: ArrayLike, reward: float, sigma: float
    ) -> tuple[Array, float, float]:
        """Return arm, reward and sd, checked; no draw of the family is outside its range."""
        x, y, s = super().observed(state, arm, reward, sigma)
        refuse_outside(self.glm, self.reward_range, y)
        return x, y, s

    def index(self, state: State, x: Array) -> Array:
        """Return the upper bound of every arm."""
        return np.asarray(self.ellipsoid(state, self.radius_scale).upper(x))

    def ellipsoid(self, state: State, scale: float = 1.0) -> Ellipsoid:
        """Return the ellipsoid, its radius times ``scale``."""
        return Ellipsoid(state.theta, state.inverse, scale * self.radius(state))

    def confidence(self, state: State) -> tuple[Ellipsoid]:
        """Return the set of the theorem, whatever ``radius_scale``."""
        e = self.ellipsoid(state)
        return (Ellipsoid(e.centre.copy(), e.inverse.copy(), e.radius),)

    def radius(self, state: State) -> float:
        """Return the radius."""
        raise NotImplementedError
