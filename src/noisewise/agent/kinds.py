"""What policies and their states have beyond the contract, for an agent to use.

A policy whose module nobody has imported is not what the agent was given: so the functions here
import none, which would take a while.
"""

import sys
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..confidence import Interval
from ..protocols import Array

if TYPE_CHECKING:
    from ..bandits.optimistic.ftrl_ucb import FTRLUCB
    from ..bandits.optimistic.mor_ucb import MORUCB
    from ..bandits.optimistic.optimism_state import OptimismState
    from ..bandits.optimistic.optimistic import OptimisticPolicy

Places = NDArray[np.int64]


@runtime_checkable
class Anticipating(Protocol):
    """A policy that counts decisions whose rewards are pending."""

    def expect(self, state: object, arm: ArrayLike, sigma: float | None = None) -> None:
        """Count a decision."""

    def release(self, state: object, arm: ArrayLike) -> None:
        """Count it no more."""


@runtime_checkable
class Batching(Anticipating, Protocol):
    """A policy that takes many decisions, or learns many rewards, in one call."""

    def select_many(
        self, state: object, arms: Array, first: Places, longest: float, rng: np.random.Generator
    ) -> tuple[Places, Array]:
        """Return which arm of each offer is chosen, and that; then all but the last are counted."""

    def update_many(
        self, state: object, arms: Array, rewards: Array, sigmas: Array, counted: Places
    ) -> None:
        """Learn rewards in order, or none, and count decisions no more where ``counted``."""


@runtime_checkable
class Ranking(Protocol):
    """A policy that ranks arms for several slots itself."""

    def select_top(
        self, state: object, arms: ArrayLike, rng: np.random.Generator, top: int
    ) -> NDArray[np.intp]:
        """Return the ``top`` arms, best first."""


@runtime_checkable
class Indexed(Protocol):
    """A policy that plays the largest index."""

    def index(self, state: object, x: Array) -> Array:
        """Return the index of every arm."""


@runtime_checkable
class SelfAccounting(Protocol):
    """A policy that has a link and intervals of its own, and says what it has learnt."""

    def scores(self, state: object, x: Array) -> Array:
        """Return the estimated score of every arm."""

    def mean_of(self, scores: Array) -> Array:
        """Return the mean reward at each score."""

    def interval(self, state: object, x: Array) -> Interval:
        """Return an interval of the mean of every arm."""

    def contributions(self, state: object, x: Array) -> Array:
        """Return what each feature adds to the score of every arm."""

    def learnt(self, state: object) -> dict[str, float]:
        """Return what was learnt on the way, by name."""


@cache
def _provides(kind: type, protocol: type) -> bool:
    """Return whether a class has the methods of a protocol; to find out takes a while."""
    return issubclass(kind, protocol)


def _follows(thing: object, protocol: type) -> bool:
    kind: type = type(thing)
    return _provides(kind, protocol)


def is_ranking(policy: object) -> TypeGuard[Ranking]:
    """Return whether a policy ranks arms for several slots itself."""
    return _follows(policy, Ranking)


def is_indexed(policy: object) -> TypeGuard[Indexed]:
    """Return whether a policy plays the largest index."""
    return _follows(policy, Indexed)


def is_self_accounting(policy: object) -> TypeGuard[SelfAccounting]:
    """Return whether a policy has a link and intervals of its own."""
    return _follows(policy, SelfAccounting)


def _is(thing: object, module: str, name: str) -> bool:
    imported = sys.modules.get(f"noisewise.bandits.optimistic.{module}")
    return imported is not None and isinstance(thing, vars(imported).get(name, ()))


def is_ftrl_ucb(policy: object) -> "TypeGuard[FTRLUCB]":
    """Return whether a policy is `FTRLUCB`."""
    return _is(policy, "ftrl_ucb", "FTRLUCB")


def is_mor_ucb(policy: object) -> "TypeGuard[MORUCB]":
    """Return whether a policy is `MORUCB`."""
    return _is(policy, "mor_ucb", "MORUCB")


def is_optimistic(policy: object) -> "TypeGuard[OptimisticPolicy]":
    """Return whether a policy is one of these two."""
    return _is(policy, "optimistic", "OptimisticPolicy")


def is_optimism_state(state: object) -> "TypeGuard[OptimismState]":
    """Return whether a state is of one of these two."""
    return _is(state, "optimism_state", "OptimismState")
