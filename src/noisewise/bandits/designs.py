"""An estimate beside the matrix of the arms played: what GLMUCB and UCBGLM share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from numpy.typing import ArrayLike

from ..glm import GLM
from ..inputs import coerce_positive, integer, probability
from ..ownership import writes
from ..printing import OneLine
from ..protocols import Array
from ..regression.ftrl import FTRL
from ..regression.state import FTRLState
from ..states import check_fields
from . import ridge
from .arms import observation
from .ridge import LinearState


@dataclass(eq=False, repr=False)
class GLMUCBState(OneLine):
    """The estimate, and the arms played, of `GLMUCB`."""

    estimate: FTRLState
    design: LinearState

    def __post_init__(self) -> None:
        check_fields(self, estimate=FTRLState, design=LinearState)
        if self.estimate.dim != self.design.dim:
            raise ValueError(
                f"{type(self).__name__}.estimate has {self.estimate.dim} features and design "
                f"{self.design.dim}; they have the same"
            )

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.design.dim

    @property
    def count(self) -> int:
        """The number of rewards learnt."""
        return self.design.count

    @property
    def theta(self) -> Array:
        """The current estimate."""
        return self.estimate.theta


State = TypeVar("State", bound=GLMUCBState)


class Designed(Generic[State]):
    """An `FTRL` in which all rewards weigh the same; a policy says how it chooses."""

    glm: GLM
    horizon: int
    ridge: float
    delta: float
    radius_scale: float

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge")
        coerce_positive(self, "horizon", by=integer)
        coerce_positive(self, "delta", by=probability)
        coerce_positive(self, "radius_scale", zero=True)
        self.ftrl  # noqa: B018  refuses what is no GLM

    @cached_property
    def ftrl(self) -> FTRL:
        """The regressor behind the estimate."""
        return FTRL(self.glm, ridge=self.ridge)

    def start(self, dim: int) -> GLMUCBState:
        """Make the state of a fresh learner."""
        return GLMUCBState(self.ftrl.start(dim), ridge.start(dim, self.ridge))

    @writes
    def update(self, state: State, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Learn a reward; all weigh the same."""
        x, y, _ = observation(arm, reward, sigma, state.dim, self.glm.feature_bound)
        ridge.refuse_overflow(x, y, 1.0)
        self.ftrl.update(state.estimate, x, y)
        ridge.learn(state.design, x, 0.0)
