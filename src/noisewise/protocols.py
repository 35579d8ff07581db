"""The contracts. Read this first.

A regressor is a frozen dataclass with three verbs:

``start(dim)``
    makes the state of a fresh learner. A method that must know the features beforehand takes them
    as ``design``: the rows of positive weight in order, each times the root of its weight.
``predict(state, x)``
    the mean of a label at ``x``: ``(d,)`` gives a float, ``(n, d)`` an array ``(n,)``. Writes
    nothing.
``update(state, x, y, weight=1.0)``
    learns one row ``(d,)`` or a block ``(n, d)``, and returns the mean it predicted for each row
    before that row's label was seen. A block means its rows one by one. ``weight`` multiplies the
    loss of a row; weight 0 leaves the state alone.
``label_range``
    (optional) the least and the largest label that it learns.

A policy is a frozen dataclass with three verbs, and sometimes more:

``start(dim)``
    makes the state of a fresh learner.
``select(state, arms, rng, sigma=None)``
    the index of the arm to play, an int: ``arms`` is ``(K, dim)``, ``sigma`` the ``(K,)`` standard
    deviations of their rewards where these are known before choosing. Writes nothing; ties
    (equal to a relative 1e-12) go to the lowest index, or are broken by ``rng`` where the policy
    says so.
``update(state, arm, reward, sigma=1.0)``
    learns the reward of one arm ``(dim,)``; ``sigma`` is the standard deviation of its noise. An
    arm need not have been selected last, so rewards may come late and in any order.
``expect(state, arm, sigma=None)``, ``release(state, arm)``
    (optional) a decision for this arm was taken and its reward is pending; that reward has come, or
    never will. ``sigma`` is the standard deviation it will have, where that is known. `update` does
    not release: whoever calls `expect` calls `release` once, before or after. Where every reward is
    learnt before the next decision neither is needed.
``select_many``, ``update_many``
    (optional, beside those two) many decisions, or rewards, in one call: what ``select`` and
    ``expect``, or ``update`` and ``release``, give one by one; nothing where one is refused. See
    `SelfTunedUCB` for their arguments.
``confidence(state)``
    (optional) a tuple of ellipsoids that hold the parameter, together and for all rounds, with the
    probability the policy promises.
``index(state, x)``
    (optional) what ``select`` maximises, for each row of checked arms: a score, or a mean where the
    attribute ``index_of`` says "mean". It and ``confidence`` are what an agent explains.

A policy that must know ``sigma`` before choosing has the attribute ``needs_sigma``, one whose arms
must be rows of the identity matrix ``one_hot``, both True.

An environment is a frozen dataclass with one verb:

``draw(rng, rounds, dim)``
    makes a table of rounds, `Rounds`; all randomness comes from ``rng``.

A state is for one thread at a time: a second one is refused. An update that is interrupted leaves
a state that is right or refuses further use.

Bad input raises ``ValueError`` before the state is touched. Inputs are neither kept nor changed.
An attribute ``not_promised`` names those checks of `noisewise.checks` that a method does not keep,
such as that weight 2 equals the row twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from .support.arrays import Array as Array
from .support.arrays import FloatOrArray as FloatOrArray
from .support.printing import OneLine

State = TypeVar("State")
Given = TypeVar("Given", contravariant=True)
Trait = TypeVar("Trait")


def trait(thing: object, name: str, default: Trait) -> Trait:
    """Return an attribute that not every regressor, policy or state has, else the default."""
    return getattr(thing, name, default)


@runtime_checkable
class Regressor(Protocol[State]):
    """What `predictions`, `check_regressor` and the studies need of an algorithm."""

    def start(self, dim: int) -> State:
        """Make the state of a fresh learner for ``dim`` features."""

    def predict(self, state: State, x: ArrayLike) -> FloatOrArray:
        """Return the predicted mean at each row of ``x``; the state is only read."""

    def update(
        self, state: State, x: ArrayLike, y: ArrayLike, weight: ArrayLike = 1.0
    ) -> FloatOrArray:
        """Learn the rows in order; return the mean predicted for each before its label."""


@dataclass(frozen=True, eq=False, repr=False)
class Rounds(OneLine):
    """A drawn regression world: one row a round, ready to be played by any regressor.

    ``x`` is ``(T, d)``; ``mean``, ``y`` and ``weight`` are ``(T,)``: true means, labels, and the
    weight a learner who knows the noise gives each label. ``theta`` is the true parameter, where
    there is one.
    """

    x: Array
    mean: Array
    y: Array
    weight: Array
    theta: Array | None = None


class Player(Protocol[Given]):
    """What chooses and learns in the rounds of a table."""

    def select(
        self,
        state: Given,
        arms: ArrayLike,
        rng: np.random.Generator,
        sigma: ArrayLike | None = None,
    ) -> int:
        """Return the index of the arm to play; the state is only read."""

    def update(self, state: Given, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Learn the reward of an arm, ``sigma`` the standard deviation of its noise."""


@runtime_checkable
class Policy(Player[State], Protocol[State]):
    """What `choices`, `check_policy` and the studies need of a bandit algorithm."""

    def start(self, dim: int) -> State:
        """Make the state of a fresh learner for ``dim`` features."""


AnyRegressor = Regressor[Any]
AnyPolicy = Policy[Any]


@dataclass(frozen=True, eq=False, repr=False)
class BanditRounds(OneLine):
    """A drawn bandit world: the outcome of every arm in every round, ready to be played.

    ``arms`` is ``(T, K, d)``, or ``(K, d)`` where they never change; ``means`` and ``rewards`` are
    ``(T, K)``. ``sigma`` is the standard deviation the learner is given: ``(T,)`` with the reward,
    or ``(T, K)`` before it chooses.
    """

    arms: Array
    means: Array
    rewards: Array
    sigma: Array
    theta: Array | None = None


@runtime_checkable
class Environment(Protocol):
    """What `check_environment` and the studies need of a world.

    Its ``draw`` takes a generator and, unless it is a bandit's world, how many rounds and features.
    """

    @property
    def draw(self) -> Callable[..., Rounds | BanditRounds]:
        """Draw a table of rounds."""
