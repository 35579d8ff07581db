"""Decisions whose rewards are pending."""

from collections.abc import Iterable, Sequence

from ...protocols import Array
from .observations import Action, Key, PendingKey, owner


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

    def actions_of(self, key: Key) -> tuple[Action, ...] | None:
        """Return the actions of a slate that is pending, or was the last one; else None."""
        own = self.last[1] if self.last[0] == key and key not in self.arms else None
        return self.slates.get(key, own or None)

    def slots(self, key: Key) -> list[PendingKey]:
        """Return what is pending under a key: itself, or the slots that have no reward yet."""
        if key not in self.slates:
            return [key] if key in self.arms else []
        return [slot for slot in slots_of(key, self.slates[key]) if slot in self.arms]

    def drop(self, keys: Sequence[PendingKey]) -> None:
        """Take decisions out that the policy counts no more; again is the same."""
        for key in keys:
            self.arms.pop(key, None)
        self.newest = tuple([key for key in self.newest if key in self.arms])
        for whole in set(map(owner, keys)) & self.slates.keys():
            if not self.slots(whole):
                self.last = whole, self.slates[whole]  # before it is taken out: again is the same
                del self.slates[whole]


def slots_of(key: Key, actions: tuple[Action, ...]) -> tuple[PendingKey, ...]:
    """Return the key of each slot of a slate."""
    whole = (key,)
    return tuple([(whole, i) for i in range(len(actions))])
