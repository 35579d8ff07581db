"""What a reward weighs: the inverse of its variance, as given, of the family, or estimated."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..glm import GLM
from ..inputs import positive
from ..kernels.layout import LARGEST
from ..noise import Bounded, Likelihood, Noise, SubGaussian
from ..protocols import Array
from .arms import clip
from .likelihood import refuse_outside, reward_range
from .optimism_state import OptimismState
from .variance import VarianceModel


@dataclass(frozen=True)
class GivenWeights:
    """A reward's standard deviation is given with it, and held within floor and bound."""

    floor: float
    bound: float | None = None
    bounded: bool = False  # whether the bound is one of the noise itself

    rewards = (-math.inf, math.inf)

    @cached_property
    def most(self) -> float:
        """The largest standard deviation that is not cut."""
        return LARGEST if self.bound is None else self.bound

    @property
    def assumed(self) -> Noise:
        """What is assumed of the noise of a reward of weight 1."""
        if self.bounded and self.bound is not None:
            return Bounded(self.bound, 1.0, max_weight=self.floor**-2.0)
        return SubGaussian(1.0)

    def of(self, state: OptimismState, x: Array, y: float, sd: float) -> float:
        """Return the weight of a reward; NaN where the standard deviation is none."""
        if not self.floor <= sd <= self.most:
            sd = max(clip(state, sd, self.most), self.floor) if sd >= 0.0 else math.nan
        return 1.0 / (sd * sd)


@dataclass(frozen=True)
class FamilyWeights:
    """Rewards are draws of the link's family: a standard deviation is relative to that of one."""

    glm: GLM

    most = LARGEST
    assumed = Likelihood()

    @cached_property
    def rewards(self) -> tuple[float, float]:
        """The least and the largest reward of the family."""
        return reward_range(self.glm)

    def of(self, state: OptimismState, x: Array, y: float, sd: float) -> float:
        """Return the weight of a reward; refuse what no draw of the family gives."""
        refuse_outside(self.glm, self.rewards, y)
        if not sd * LARGEST >= 1.0:
            positive("sigma", sd)
        return 1.0 / (sd * sd)


@dataclass(frozen=True)
class EstimatedWeights:
    """No standard deviation is looked at: a model of the variance says it, before the reward."""

    model: VarianceModel

    rewards = (-math.inf, math.inf)
    most = LARGEST

    @property
    def assumed(self) -> Noise:
        """Of a weight it is only known how large it may be."""
        return SubGaussian(self.model.noise_bound / self.model.noise_floor)

    def of(self, state: OptimismState, x: Array, y: float, sd: float) -> float:
        """Return the weight of a reward before that is seen; NaN where the arm is bad."""
        assert state.variance is not None
        if not np.vdot(x, x) <= LARGEST:
            return math.nan
        sd = self.model.of_row(state.variance, x)
        return 1.0 / (sd * sd)
