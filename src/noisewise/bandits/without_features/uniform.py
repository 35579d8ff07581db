"""Uniform: play at random, the yardstick of no learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator
from numpy.typing import ArrayLike

from ...inputs import dimension, generator
from ...storage.states import COUNT, check_fields
from ...support.printing import OneLine
from ..arms import candidates, observation


@dataclass(eq=False, repr=False)
class UniformState(OneLine):
    """What `Uniform` knows: how many rewards it has seen."""

    dim: int
    count: int = 0

    def __post_init__(self) -> None:
        dimension(self.dim)
        check_fields(self, count=COUNT)


@dataclass(frozen=True)
class Uniform:
    r"""Play each arm with the same probability; regret is :math:`\sum_t(\max_a\mu_{t,a} -
    \bar\mu_t)` on average, the gap to the mean of all arms.

    Use it as the yardstick of no learning, and to log data for replay. Costs K d per round, for
    looking at the arms.

    >>> import numpy as np
    >>> policy = Uniform()
    >>> policy.select(policy.start(dim=1), [[1.0], [2.0]], np.random.default_rng(0)) in (0, 1)
    True
    """

    not_promised: ClassVar[tuple[str, ...]] = (
        "permuting arms permutes choices",
        "ties give the lowest index",
    )

    def start(self, dim: int) -> UniformState:
        """Make the state of a fresh learner."""
        return UniformState(dimension(dim))

    def select(
        self, state: UniformState, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return a random arm."""
        generator(rng)
        return int(rng.integers(len(candidates(arms, state.dim))))

    def update(
        self, state: UniformState, arm: ArrayLike, reward: float, sigma: float = 1.0
    ) -> None:
        """Count the reward."""
        observation(arm, reward, sigma, state.dim)
        state.count += 1
