"""What is the same in most policies: arms and rewards are checked before anything is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from ..inputs import coerce_positive, probability
from ..protocols import Array
from ..support.ownership import writes
from .arms import candidates, first_best, norm_bound, observation


class HasDim(Protocol):
    """A state that knows its number of features."""

    @property
    def dim(self) -> int:
        """The number of features."""


State = TypeVar("State", bound=HasDim)


class CheckedPolicy(ABC, Generic[State]):
    """A policy says how it learns a reward that has been checked."""

    @writes
    def update(self, state: State, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Learn a reward."""
        self.learn(state, *self.observed(state, arm, reward, sigma))

    def observed(
        self, state: State, arm: ArrayLike, reward: float, sigma: float
    ) -> tuple[Array, float, float]:
        """Return arm, reward and standard deviation, checked."""
        return observation(arm, reward, sigma, state.dim, self.longest_arm)

    @abstractmethod
    def learn(self, state: State, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward of arm ``x``."""

    @property
    def longest_arm(self) -> float:
        """The largest norm of an arm, the policy's own bound or its model's."""
        bound = norm_bound(self, "feature_bound")
        return np.inf if bound is None else bound


class IndexPolicy(CheckedPolicy[State]):
    """A policy that selects the arm of the largest index."""

    def select(
        self, state: State, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return the arm of the largest index; nothing is random."""
        return first_best(self.index(state, candidates(arms, state.dim, self.longest_arm)))

    @abstractmethod
    def index(self, state: State, x: Array) -> Array:
        """Return the index of every arm, the arms being checked."""


def check_optimism(policy: object) -> None:
    """Check the numbers that all policies with upper confidence bounds have."""
    coerce_positive(policy, "delta", by=probability)
    coerce_positive(policy, "radius_scale", zero=True)
