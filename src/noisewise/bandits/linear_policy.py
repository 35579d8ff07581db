"""Weighted ridge regression as a policy: what all linear policies share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from ..inputs import coerce_positive, probability
from ..ownership import writes
from ..protocols import Array, trait
from . import ridge
from .arms import candidates, first_best, observation
from .ridge import LinearState

State = TypeVar("State", bound=LinearState)


class LinearPolicy(Generic[State]):
    """Ridge regression: a policy says how it selects and how a reward is weighted."""

    ridge: float

    def start(self, dim: int) -> LinearState:
        """Make the state of a fresh learner."""
        return ridge.start(dim, self.ridge)

    def weight(self, state: State, x: Array, sigma: float) -> float:
        """Return the weight of a reward of arm ``x``."""
        return 1.0

    @writes
    def update(self, state: State, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Learn a reward."""
        x, y, s = observation(arm, reward, sigma, state.dim, self._longest)
        ridge.learn(state, x, y, self.weight(state, x, s))

    @property
    def _longest(self) -> float:
        return trait(self, "feature_bound", np.inf)


class IndexPolicy(LinearPolicy[State], ABC):
    """A linear policy that selects the arm of the largest index."""

    def select(
        self, state: State, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return the arm of the largest index; nothing is random."""
        return first_best(self.index(state, candidates(arms, state.dim, self._longest)))

    @abstractmethod
    def index(self, state: State, x: Array) -> Array:
        """Return the index of every arm."""


def check_optimism(policy: object) -> None:
    """Check the numbers that all policies with upper confidence bounds have."""
    coerce_positive(policy, "delta", by=probability)
    coerce_positive(policy, "radius_scale", zero=True)
