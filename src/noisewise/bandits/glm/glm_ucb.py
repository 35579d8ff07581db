"""GLM-UCB: upper bounds of means under a link."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from ...inputs import coerce_positive, integer
from ...model.glm import GLM
from ...numerics.blas import matmul
from ...protocols import Array
from ...regression.ftrl.ftrl import FTRL
from ...regression.ftrl.state import FTRLState
from ...storage.states import check_fields
from ...support.printing import OneLine
from ..checked_policy import CheckedPolicy, IndexPolicy, check_optimism
from ..linear import linear_state
from ..linear.linear_state import LinearState


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


class EstimateAndDesign(CheckedPolicy[State]):
    """What GLMUCB and UCBGLM share: an estimate by `FTRL`, and the matrix of the arms played.

    All rewards weigh the same; a policy says how it chooses.
    """

    glm: GLM
    horizon: int
    ridge: float

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge")
        coerce_positive(self, "horizon", by=integer)
        check_optimism(self)
        self.ftrl  # noqa: B018  refuses what is no GLM

    @cached_property
    def ftrl(self) -> FTRL:
        """The regressor behind the estimate."""
        return FTRL(self.glm, ridge=self.ridge)

    def start(self, dim: int) -> GLMUCBState:
        """Make the state of a fresh learner."""
        return GLMUCBState(self.ftrl.start(dim), linear_state.start(dim, self.ridge))

    def learn(self, state: State, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward; all weigh the same."""
        linear_state.refuse_overflow(x, y, 1.0)
        self.ftrl.update(state.estimate, x, y)
        linear_state.learn(state.design, x, 0.0)


@dataclass(frozen=True)
class GLMUCB(EstimateAndDesign[GLMUCBState], IndexPolicy[GLMUCBState]):
    r"""Play :math:`\arg\max_x \varphi(x\cdot\hat\theta) + \rho_t\|x\|_{M^{-1}}`.

    .. math:: M = 2\lambda I + \sum x x^\top,

    .. math:: \rho_t = \frac{2K k R}{\kappa}\sqrt{2d\,\log t\,\log(2dT/\delta)},\quad
              k = \sqrt{3 + 2\log(1 + A^2/\lambda)}

    Rewards all weigh the same. Two things differ from the paper, which plays d independent arms
    first and projects an estimate outside the ball: here the ridge makes M invertible, and the link
    is extended linearly so that its slope stays above kappa. The constants are recalled from the
    paper and not verified.

    Use it as the first yardstick of generalised linear rewards, with a ``radius_scale`` far below
    1. Costs K d^2 per round, and the update of `FTRL`.

    Parameters
    ----------
    glm : GLM
    reward_bound : float > 0
        R; rewards lie in [0, R].
    horizon : int
        T, the number of rounds that will be played.
    radius_scale : float >= 0
        Multiplies rho; only 1 is covered by theory.

    References
    ----------
    Filippi, Cappe, Garivier and Szepesvari (2010), "Parametric bandits: the generalized linear
    case": regret of order (K/kappa) d log^{3/2}(T) sqrt(T).
    """

    index_of: ClassVar[str] = "mean"

    glm: GLM = field(default_factory=GLM)
    reward_bound: float = 1.0
    horizon: int = 10_000
    ridge: float = 0.5
    delta: float = 0.05
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "reward_bound")
        super().__post_init__()

    def radius(self, state: GLMUCBState) -> float:
        """Return rho of the coming round, counted from 2 so that it is never 0."""
        glm, d, t = self.glm, state.dim, state.count + 2
        k = math.sqrt(3 + 2 * math.log1p(glm.feature_bound**2 / self.ridge))
        factor = 2 * glm.max_slope * k * self.reward_bound / glm.min_slope
        logs = math.log(t) * math.log(2 * d * self.horizon / self.delta)
        return self.radius_scale * factor * math.sqrt(2 * d * logs)

    def index(self, state: GLMUCBState, x: Array) -> Array:
        """Return the index of every arm, an upper bound of its mean."""
        wide = linear_state.widths(state.design, x)
        return np.asarray(self.glm.mean(matmul(x, state.theta)) + self.radius(state) * wide)
