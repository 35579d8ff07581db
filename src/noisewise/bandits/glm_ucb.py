"""GLM-UCB: upper bounds of means under a link."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from ..blas import matmul
from ..glm import GLM
from ..inputs import coerce_positive
from ..protocols import Array
from . import ridge
from .arms import candidates, first_best
from .designs import Designed, GLMUCBState


@dataclass(frozen=True)
class GLMUCB(Designed[GLMUCBState]):
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

    def select(
        self, state: GLMUCBState, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return the arm of the largest upper bound; nothing is random."""
        return first_best(self.index(state, candidates(arms, state.dim, self.glm.feature_bound)))

    def index(self, state: GLMUCBState, x: Array) -> Array:
        """Return the index of every arm, an upper bound of its mean."""
        wide = ridge.widths(state.design, x)
        return np.asarray(self.glm.mean(matmul(x, state.theta)) + self.radius(state) * wide)
