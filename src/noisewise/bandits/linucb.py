"""LinUCB: upper bounds of constant width."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.random import Generator
from numpy.typing import ArrayLike

from ..blas import matmul
from ..inputs import coerce_positive, probability
from ..ownership import writes
from ..protocols import Array
from . import ridge
from .arms import candidates, first_best, observation
from .ridge import LinearState


@dataclass(frozen=True)
class LinUCB:
    r"""Play :math:`\arg\max_x x\cdot\hat\theta + \alpha\|x\|_{V^{-1}}` with a constant width.

    By default :math:`\alpha = 1 + \sqrt{\log(2/\delta)/2}`, recalled from the paper and not
    verified. Nothing is proved for a constant width, so there is no confidence set. The disjoint
    form, one parameter an arm, is this one on block one-hot features.

    Use it as the yardstick of practice, or with a ``width`` tuned on past data. Costs K d^2 per
    round.

    Parameters
    ----------
    width : float >= 0, optional
        alpha.

    Examples
    --------
    >>> round(LinUCB().alpha, 4)
    2.3581

    References
    ----------
    Li, Chu, Langford and Schapire (2010), "A contextual-bandit approach to personalized news
    article recommendation".
    """

    width: float | None = None
    ridge: float = 0.5
    delta: float = 0.05
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge")
        coerce_positive(self, "delta", by=probability)
        coerce_positive(self, "radius_scale", zero=True)
        if self.width is not None:
            coerce_positive(self, "width", zero=True)

    @property
    def alpha(self) -> float:
        """The width in use."""
        width = 1 + math.sqrt(math.log(2 / self.delta) / 2) if self.width is None else self.width
        return self.radius_scale * width

    def start(self, dim: int) -> LinearState:
        """Make the state of a fresh learner."""
        return ridge.start(dim, self.ridge)

    def select(
        self, state: LinearState, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return the arm of the largest index; nothing is random."""
        return first_best(self.index(state, candidates(arms, state.dim)))

    def index(self, state: LinearState, x: Array) -> Array:
        """Return the index of every arm."""
        return matmul(x, state.theta) + self.alpha * ridge.widths(state, x)

    @writes
    def update(self, state: LinearState, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Learn a reward; all weigh the same."""
        x, y, _ = observation(arm, reward, sigma, state.dim)
        ridge.learn(state, x, y)
