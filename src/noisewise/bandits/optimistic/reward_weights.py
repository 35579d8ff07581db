"""What a reward weighs: the inverse of its variance, as given, of the family, or estimated."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...inputs import positive
from ...kernels.glm.layout import LARGEST
from ...model.glm import GLM
from ...model.noise import Noise
from ...numerics.blas import matmul
from ...protocols import Array
from ...theory.radii import conversion_constant
from ..arms import clip
from ..glm.likelihood import refuse_outside, reward_range
from .optimism_state import OptimismState
from .variance import VarianceModel


@dataclass(frozen=True)
class RewardWeights:
    """By the standard deviation given with a reward, held within ``floor`` and ``most``.

    ``noise`` is what is then assumed of a reward of weight 1.
    """

    glm: GLM
    noise: Noise
    floor: float = 0.0
    most: float = math.inf

    @cached_property
    def constant(self) -> float:
        """C of the adaptive radius."""
        return conversion_constant(self.glm, self.noise)

    @cached_property
    def rewards(self) -> tuple[float, float]:
        """The least and the largest reward."""
        return -math.inf, math.inf

    def of(self, state: OptimismState, x: Array, y: float, sd: float) -> float:
        """Return the weight of a reward; NaN, or an error, where one of the three is bad."""
        if not self.floor <= sd <= self.most:
            sd = max(clip(state, sd, self.most), self.floor) if sd >= 0.0 else math.nan
        return 1.0 / (sd * sd)

    def learn(self, state: OptimismState, x: Array, y: float, before: Array) -> None:
        """Learn about the noise from a reward and the estimate before it."""


class EqualWeights(RewardWeights):
    """All rewards weigh the same."""

    def of(self, state: OptimismState, x: Array, y: float, sd: float) -> float:
        """Return 1; NaN where the standard deviation is none."""
        if sd > self.most:
            clip(state, sd, self.most)  # which warns
        return 1.0 if sd >= 0.0 else math.nan


class CarefulWeights(RewardWeights):
    """For noise within ``most``: less where the set is wide, so that C can be small.

    The practical index, which has no proof to keep, would lose by it.
    """

    @cached_property
    def constant(self) -> float:
        """C of the adaptive radius."""
        return 2 * (math.e - 2) / self.glm.min_slope

    def of(self, state: OptimismState, x: Array, y: float, sd: float) -> float:
        """Return at most C over the largest noise times the most a score can be off."""
        forms = state.forms
        if state.kernels is not None:
            reach = state.kernels.reach(forms.inverses[0], forms.radii[0], x)
        else:
            square = float(matmul(x, forms.inverses[0]) @ x)
            reach = float(forms.radii[0]) * math.sqrt(max(square, 0.0))
        off = min(2 * self.glm.score_bound, reach)
        return min(super().of(state, x, y, sd), self.constant / max(self.most * off, 1e-300))


class FamilyWeights(RewardWeights):
    """Rewards are draws of the link's family: a standard deviation is relative to that of one."""

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
class EstimatedWeights(RewardWeights):
    """No standard deviation is looked at: a model of the variance says it, before the reward."""

    model: VarianceModel | None = None

    def of(self, state: OptimismState, x: Array, y: float, sd: float) -> float:
        """Return the weight of a reward; NaN where arm or standard deviation are none."""
        assert self.model is not None
        assert state.variance is not None
        if x.shape != state.shape or not (np.vdot(x, x) <= LARGEST and 0.0 <= sd < math.inf):
            return math.nan
        sd = self.model.of_row(state.variance, x)
        return 1.0 / (sd * sd)

    def learn(self, state: OptimismState, x: Array, y: float, before: Array) -> None:
        """Learn the residual of a reward."""
        assert self.model is not None
        assert state.variance is not None
        self.model.update(state.variance, x, y - float(self.glm.mean(x @ before)))
