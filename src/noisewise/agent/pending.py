"""Decisions whose rewards are pending, and those of them that the policy counts."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..protocols import Array, Policy
from .observations import Key, owner

Places = NDArray[np.int64]
TOGETHER = 32  # decisions of a batch whose arms share memory, given back with the last of them


@runtime_checkable
class Anticipating(Protocol):
    """A policy that counts decisions whose rewards are pending."""

    def expect(self, state: Any, arm: ArrayLike, sigma: float | None = None) -> None:
        """Count a decision."""

    def release(self, state: Any, arm: ArrayLike) -> None:
        """Count it no more."""


@runtime_checkable
class Batching(Anticipating, Protocol):
    """A policy that takes many decisions, or learns many rewards, in one call."""

    def select_many(
        self, state: Any, arms: Array, first: Places, longest: float, rng: np.random.Generator
    ) -> tuple[Places, Array]:
        """Return which arm of each offer is chosen, and that; then all but the last are counted."""

    def update_many(
        self, state: Any, arms: Array, rewards: Array, sigmas: Array, counted: Places
    ) -> None:
        """Learn rewards in order, or none, and count decisions no more where ``counted``."""


class Pending:
    """Arms that were decided for, by key, oldest first.

    A policy that anticipates hears of a decision when the next one is taken: where rewards come
    at once it never does. So it counts all of them, or all but the newest. If it counts others, a
    call was interrupted, and `announce` repairs that.

    The actions of a slate are pending each under a `Slot`; ``slates`` holds all of them, by key,
    while any is.
    """

    def __init__(
        self,
        policy: Policy[Any],
        state: object,
        arms: dict[Any, Array] | None = None,
        slates: Iterable[tuple[Key, tuple[Any, ...]]] = (),
    ) -> None:
        self.anticipates = isinstance(policy, Anticipating)
        self.counted = self.anticipates and hasattr(state, "pending_arms")  # and can be compared
        self.arms: dict[Any, Array] = {} if arms is None else arms
        self.slates = dict(slates)
        self.newest: tuple[Any, ...] = ()  # its keys, while the policy does not count it
        self.last: tuple[Key, tuple[Any, ...]] = None, ()  # the last slate without slots pending

    def announce(self, policy: Any, state: Any, successor: Key = "") -> None:
        """Let the policy count all decisions, unless the newest is about to be given up.

        That is where it has no key, and neither has its ``successor``.
        """
        if not self.anticipates:
            return
        if self.counted and state.pending != self._known():
            self._repair(policy, state)
        if successor is None and self.newest and owner(self.newest[0]) is None:
            return
        for key in self.newest:
            if key in self.arms:
                policy.expect(state, self.arms[key])
            self.newest = self.newest[1:]

    def _known(self) -> int:
        """Return how many decisions the policy should count."""
        return len(self.arms) - len([key for key in self.newest if key in self.arms])

    def _repair(self, policy: Any, state: Any) -> None:
        for x in state.pending_arms:
            policy.release(state, x)
        self.newest = ()
        for x in self.arms.values():
            policy.expect(state, x)

    def add(self, key: Key, arm: Array) -> None:
        """Add a decision, of which the policy does not know yet."""
        self.newest = (key,)
        self.arms[key] = arm

    def add_slate(self, key: Key, actions: tuple[Any, ...], arms: list[Array]) -> None:
        """Add the actions of one decision, of which the policy does not know yet."""
        self.slates[key] = actions
        whole = (key,)
        self.newest = tuple([(whole, i) for i in range(len(actions))])
        self.arms.update(zip(self.newest, arms, strict=True))

    def actions_of(self, key: Key) -> tuple[Any, ...] | None:
        """Return the actions of a slate that is pending, or was the last one; else None."""
        own = self.last[1] if self.last[0] == key and key not in self.arms else None
        return self.slates.get(key, own or None)

    def slots(self, key: Key) -> list[Any]:
        """Return what is pending under a key: itself, or the slots that have no reward yet."""
        if key not in self.slates:
            return [key] if key in self.arms else []
        whole = (key,)
        slots = [(whole, i) for i in range(len(self.slates[key]))]
        return [each for each in slots if each in self.arms]

    def __contains__(self, key: object) -> bool:
        return key in self.arms or key in self.slates

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of decisions, oldest first; slots have that of theirs."""
        return tuple(dict.fromkeys(map(owner, self.arms)) if self.slates else self.arms)

    def add_many(self, keys: list[Key], arms: Array) -> None:
        """Add decisions, of which the policy knows all but the last."""
        parts = (arms[i : i + TOGETHER].copy() for i in range(0, len(arms), TOGETHER))
        self.arms.update(zip(keys, chain.from_iterable(parts), strict=True))
        self.newest = (keys[-1],)

    def counts(self, key: Key) -> bool:
        """Whether the policy counts this decision."""
        return self.anticipates and key in self.arms and key not in self.newest

    def remove(self, policy: Any, state: Any, key: Key) -> int:
        """Take a decision out, and let the policy count it no more unless it already does not.

        Returns how many actions were pending under the key.
        """
        slots, new = self.slots(key), self.newest
        for each in slots:
            if (
                self.anticipates
                and each not in new
                and not (self.counted and state.pending != self._known())
            ):
                policy.release(state, self.arms[each])
            del self.arms[each]
        self.slates.pop(key, None)
        if new and owner(new[0]) == key:
            self.newest = ()
        return len(slots)

    def drop(self, keys: list[Key]) -> None:
        """Take decisions out that the policy counts no more; again is the same."""
        for key in keys:
            self.arms.pop(key, None)
        self.newest = tuple([key for key in self.newest if key in self.arms])
        for whole in set(map(owner, keys)) & self.slates.keys():
            if not self.slots(whole):
                self.last = whole, self.slates.pop(whole)

    def check(self, state: Any) -> None:
        """Raise unless a policy counts all of these decisions and no other."""
        if not self.counted:
            return
        counted: Array = state.pending_arms
        own = np.array(list(self.arms.values())).reshape(-1, counted.shape[1])
        if not np.array_equal(_sorted(counted), _sorted(own)):
            raise ValueError("the policy counts other decisions than those that are pending")


def _sorted(rows: Array) -> Array:
    return rows[np.lexsort(rows.T)]
