"""Decisions whose rewards are pending."""

from collections.abc import Iterable, Sequence
from itertools import chain

from ..protocols import Array
from .observations import Action, Key, PendingKey, owner

TOGETHER = 32  # decisions of a batch whose arms share memory, given back with the last of them


class Pending:
    """Arms that were decided for, by key, oldest first.

    The actions of a slate are pending each under a `Slot`; ``slates`` holds all of them, by key,
    while any is. ``newest`` are keys of the last decision, while the policy does not count it, and
    ``last`` is the last slate without slots pending.
    """

    def __init__(
        self,
        arms: dict[PendingKey, Array] | None = None,
        slates: Iterable[tuple[Key, tuple[Action, ...]]] = (),
    ) -> None:
        self.arms: dict[PendingKey, Array] = {} if arms is None else arms
        self.slates = dict(slates)
        self.newest: tuple[PendingKey, ...] = ()
        self.last: tuple[Key, tuple[Action, ...]] = None, ()

    def __contains__(self, key: object) -> bool:
        return key in self.arms or key in self.slates

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of decisions, oldest first; slots have that of theirs."""
        return tuple(dict.fromkeys(map(owner, self.arms)))

    @property
    def announced(self) -> int:
        """How many of them the policy should count: all but the newest."""
        return len(self.arms) - len([key for key in self.newest if key in self.arms])

    def add(self, key: Key, arm: Array) -> None:
        """Add a decision, of which the policy does not know yet."""
        self.newest = (key,)
        self.arms[key] = arm

    def add_slate(self, key: Key, actions: tuple[Action, ...], arms: list[Array]) -> None:
        """Add the actions of one decision, of which the policy does not know yet."""
        self.slates[key] = actions
        self.newest = _slots(key, actions)
        self.arms.update(zip(self.newest, arms, strict=True))

    def add_many(self, keys: list[Key], arms: Array) -> None:
        """Add decisions, of which the policy knows all but the last."""
        parts = (arms[i : i + TOGETHER].copy() for i in range(0, len(arms), TOGETHER))
        self.arms.update(zip(keys, chain.from_iterable(parts), strict=True))
        self.newest = (keys[-1],)

    def actions_of(self, key: Key) -> tuple[Action, ...] | None:
        """Return the actions of a slate that is pending, or was the last one; else None."""
        own = self.last[1] if self.last[0] == key and key not in self.arms else None
        return self.slates.get(key, own or None)

    def slots(self, key: Key) -> list[PendingKey]:
        """Return what is pending under a key: itself, or the slots that have no reward yet."""
        if key not in self.slates:
            return [key] if key in self.arms else []
        return [slot for slot in _slots(key, self.slates[key]) if slot in self.arms]

    def drop(self, keys: Sequence[PendingKey]) -> None:
        """Take decisions out that the policy counts no more; again is the same."""
        for key in keys:
            self.arms.pop(key, None)
        self.newest = tuple([key for key in self.newest if key in self.arms])
        for whole in set(map(owner, keys)) & self.slates.keys():
            if not self.slots(whole):
                self.last = whole, self.slates.pop(whole)


def _slots(key: Key, actions: tuple[Action, ...]) -> tuple[PendingKey, ...]:
    whole = (key,)
    return tuple([(whole, i) for i in range(len(actions))])
