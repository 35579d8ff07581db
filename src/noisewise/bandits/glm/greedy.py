"""Greedy: play what looks best."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

from numpy.random import Generator
from numpy.typing import ArrayLike

from ...inputs import coerce_positive
from ...model.glm import GLM
from ...protocols import Array
from ...regression.ftrl.ftrl import FTRL
from ...regression.ftrl.state import FTRLState
from ..arms import candidates, compiled, observation


@dataclass(frozen=True)
class Greedy:
    r"""Play :math:`\arg\max_x x\cdot\hat\theta`, the estimate of `FTRL`, and never explore.

    A reward has weight :math:`\max(\sigma, \text{floor})^{-2}`.

    Use it where arms change so much that they explore by themselves, and as a yardstick. Costs K d
    per round, and the update of `FTRL`.

    Parameters
    ----------
    glm : GLM
    noise_floor : float > 0
        Smaller standard deviations count as this one.

    Examples
    --------
    >>> import numpy as np
    >>> policy = Greedy(GLM())
    >>> state = policy.start(dim=2)
    >>> policy.update(state, [0.0, 1.0], 1.0)
    >>> policy.select(state, np.eye(2), np.random.default_rng(0))
    1

    References
    ----------
    Bastani, Bayati and Khosravi (2021), "Mostly exploration-free algorithms for contextual
    bandits": greedy play is rate optimal where contexts are diverse enough; with fixed arms it may
    never find the best.
    """

    glm: GLM = field(default_factory=GLM)
    _: KW_ONLY
    ridge: float = 0.5
    noise_floor: float = 1e-3

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge", "noise_floor")
        self.ftrl  # noqa: B018  refuses what is no GLM

    @cached_property
    def ftrl(self) -> FTRL:
        """The regressor behind the estimate."""
        return FTRL(self.glm, ridge=self.ridge)

    def start(self, dim: int) -> FTRLState:
        """Make the state of a fresh learner."""
        return self.ftrl.start(dim)

    def select(
        self, state: FTRLState, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return the arm of the largest score at the parameter it plays by."""
        x = candidates(arms, state.dim, self.glm.feature_bound)
        return int(compiled().best_score(x, self._parameter(state, rng)))

    def _parameter(self, state: FTRLState, rng: Generator) -> Array:
        """Return the estimate; nothing is random."""
        return state.theta

    def update(self, state: FTRLState, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Learn a reward, weighed by the inverse of its variance."""
        x, y, s = observation(arm, reward, sigma, state.dim, self.glm.feature_bound)
        self.ftrl.update(state, x, y, max(s, self.noise_floor) ** -2.0)
