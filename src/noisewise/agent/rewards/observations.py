"""Rewards as an agent is given them: of a key or an arm, one or many, checked before all else."""

import math
from collections.abc import Container, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TypeGuard
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import column, numbers, positive, shown
from ...kernels.glm.layout import LARGEST
from ...protocols import Array, trait

Plain = str | int | UUID | None
Key = Plain | tuple[Plain, ...]
Slot = tuple[tuple[Key], int]  # of several actions chosen together; no key of a user nests tuples
PendingKey = Key | Slot
Action = str | int  # a name, or the index of an arm
PLAIN = (str, int, UUID, type(None))
KEYS = "a string, an integer, a UUID or a tuple of these"
LARGEST_KEY = 2**1024  # Python does not write out integers of any size


@dataclass(frozen=True)
class Observations:
    """A key or features, a reward, its sd or None, and its number of trials, for each reward."""

    whose: list[object]
    rewards: list[float]
    sds: Sequence[float | None]
    trials: list[float]
    single: bool

    @cached_property
    def keys(self) -> Sequence[PendingKey]:
        """The keys among those the rewards are of."""
        return self.whose if are_plain(self.whose) else [x for x in self.whose if is_key(x)]

    def by_key(self) -> Iterator[tuple[PendingKey, float]]:
        """Yield the keys with their rewards."""
        pairs = zip(self.whose, self.rewards, strict=True)
        return ((key, reward) for key, reward in pairs if is_key(key))

    def rows(
        self, arms: dict[PendingKey, Array]
    ) -> Iterator[tuple[Array, float, float | None, float]]:
        """Yield features, reward, sd and trials of each reward; ``arms`` are those of keys."""
        features = self.features(arms)
        return zip(features, self.rewards, self.sds, self.trials)  # noqa: B905 - as many by `parse`

    def features(self, arms: dict[PendingKey, Array]) -> list[Array]:
        """Return the features of each reward; ``arms`` are those of keys."""
        if are_plain(self.whose):
            return [arms[key] for key in self.whose]
        return [
            arms[each] if is_key(each) else numbers("arm", each, check=False) for each in self.whose
        ]

    def spreads(self, sigma: float) -> Array:
        """Return the standard deviation of each reward, one trial without having ``sigma``."""
        n = np.sqrt(self.trials)
        return sigma / n if None in self.sds[:1] else np.array(self.sds, dtype=np.float64)

    @property
    def content(self) -> str:
        """What tells one call from another."""
        whose = [each if is_key(each) else numbers("arm", each).tolist() for each in self.whose]
        return repr((whose, self.rewards, self.sds, self.trials))


def parse(
    arm_or_key: object,
    reward: object,
    sigma: object,
    trials: object,
    limits: tuple[float, float] | None,
    dim: int = 0,
) -> Observations:
    """Read what `Agent.learn` is given; rewards lie within ``limits``, arms have ``dim`` features.

    So many integers in a tuple are features, any other tuple that can be a key is one.
    """
    low, high = limits or (-math.inf, math.inf)
    if type(reward) is float and type(arm_or_key) in PLAIN and is_key(arm_or_key):  # the usual case
        plain = low <= reward <= high and abs(reward) < math.inf
        if plain and sigma is None and (trials is None or _plain(trials)):
            return Observations([arm_or_key], [reward], [None], [float(trials or 1.0)], True)
        if plain and trials is None and _plain(sigma):
            return Observations([arm_or_key], [reward], [sigma], [1.0], True)
    y = numbers("reward", reward)
    outside = y[(y < low) | (y > high)]
    if outside.size:
        raise ValueError(
            f"reward is {outside[0]:g}, but rewards lie in [{low:g}, {high:g}]; pass a share "
            "(successes over trials) with trials=, not a count"
        )
    single = y.ndim == 0
    whose = [list(x) if is_arm(x, dim) else x for x in listed(arm_or_key, single)]
    if y.shape not in ((), (len(whose),)):
        raise ValueError(
            f"reward has shape {y.shape}, but {len(whose)} arms or keys are given; pass one "
            "reward each"
        )
    if sigma is not None and trials is not None:
        raise ValueError(f"sigma is {shown(sigma)} and trials {shown(trials)}; pass one of them")
    for each in () if are_plain(whose) else whose:
        _refuse_neither(each)
    n = len(whose)
    sds = [None] * n if sigma is None else _levels("sigma", sigma, n, single)
    ns = [1.0] * n if trials is None else _levels("trials", trials, n, single)
    return Observations(whose, np.atleast_1d(y).tolist(), sds, ns, single)


def _plain(level: object) -> TypeGuard[float]:
    """Whether a level is a number that needs no reading."""
    return (type(level) is float or type(level) is int) and 1e-100 < level < 1e100


def is_key(thing: object) -> TypeGuard[PendingKey]:
    """Return whether a decision may be called that."""
    if type(thing) in PLAIN:  # most keys
        return type(thing) is not int or -LARGEST_KEY < thing < LARGEST_KEY
    if is_slot(thing):
        return thing[1] >= 0 and not is_slot(thing[0][0]) and is_key(thing[0][0])
    if isinstance(thing, tuple):
        return len(thing) > 0 and all(map(_is_part, thing))
    if isinstance(thing, Integral) and not isinstance(thing, bool):
        return abs(int(thing)) < LARGEST_KEY
    return isinstance(thing, str)


def _is_part(thing: object) -> bool:
    return not isinstance(thing, tuple) and is_key(thing)


def is_slot(thing: object) -> TypeGuard[Slot]:
    """Return whether this has the form of a slot's key."""
    if type(thing) is not tuple or len(thing) != 2:
        return False
    return type(thing[0]) is tuple and len(thing[0]) == 1 and type(thing[1]) is int


def is_arm(thing: object, dim: int) -> TypeGuard[tuple[int, ...]]:
    """Return whether a tuple reads like the features of an arm."""
    if not isinstance(thing, tuple) or len(thing) != dim:
        return False
    return all(isinstance(x, Integral) for x in thing)


def owner(key: PendingKey) -> Key:
    """Return the key of the decision that a slot belongs to, or the key itself."""
    if type(key) is tuple and type(key[0]) is tuple:
        return key[0][0]
    return key  # type: ignore[return-value]


def are_plain(things: list[object]) -> TypeGuard[list[Key]]:
    """Return whether all are keys of the usual types, and need no further look."""
    kinds = {*map(type, things)}
    if kinds == {int}:
        return all(map(is_key, things))
    return kinds <= {str, UUID, type(None)}


def checked_key(key: object, dim: int = 0) -> Key:
    """Return a key of plain strings, integers and UUIDs, or None; it is no arm of ``dim``."""
    if type(key) is str:
        return key
    if not is_key(key) or is_slot(key):
        raise ValueError(f"key is {shown(key)}; pass {KEYS}")
    if is_arm(key, dim):
        raise ValueError(
            f"key is {key!r}, which reads like the features of an arm; pass a string in it, or one "
            "as the key"
        )
    return tuple(map(_plain_key, key)) if isinstance(key, tuple) else _plain_key(key)


def _plain_key(key: object) -> Plain:
    if isinstance(key, str):
        return str(key)
    if isinstance(key, Integral):
        return int(key)
    return key if isinstance(key, UUID) else None


def batch_keys(keys: object, most: int, dim: int) -> list[Key]:
    """Return keys of decisions taken at once, at most so many and none of them None."""
    things = listed(keys, single=False)
    checked = things if are_plain(things) else [checked_key(key, dim) for key in things]
    if None in checked:
        raise ValueError(f"keys holds None; pass {KEYS} for each decision")
    if len(checked) > most:
        raise ValueError(f"keys has length {len(checked)}, above the capacity {most}; split them")
    return checked


def refuse_pending(keys: Sequence[Key], pending: Container[object]) -> None:
    """Raise if a key is pending already, or is there twice."""
    for key in filter(pending.__contains__, keys):
        raise ValueError(
            f"key {key!r} is pending already: its decision was taken and has no reward yet; keep "
            "the answer of that call, or pass another key"
        )
    if len(keys) > 1 and len(set(keys)) < len(keys):
        raise ValueError("keys holds one twice; pass another for each decision")


def refuse_keys_as_features(row: Sequence[object], pending: Container[PendingKey]) -> None:
    """Raise if several pending keys came with one reward, which reads like features."""
    if row and all(type(each) is int and each in pending for each in row):
        raise ValueError(
            f"arm_or_key is {row!r}, pending keys, with one reward; pass one reward per key, "
            "as a list, or the features of an arm as an array"
        )


def refuse_unknown(keys: Sequence[PendingKey], pending: Container[PendingKey], remedy: str) -> None:
    """Raise unless each of the keys is pending."""
    for key in keys:
        if not (type(key) is str or is_key(key)) or key not in pending:
            slot = f", slot {key[1]}" if is_slot(key) else ""
            raise ValueError(
                f"no decision is pending under key {owner(key)!r}{slot}: it was never chosen, has "
                f"its reward already, was forgotten, or was dropped as the oldest; {remedy}"
            )
    if len(set(keys)) < len(keys):
        raise ValueError("a key has two rewards; pass one per decision")


def limits_of(rewards: ArrayLike) -> tuple[float, float]:
    """Return the least and the largest reward as two floats in order."""
    ends = numbers("rewards", rewards, check=False)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ValueError(f"rewards is {shown(rewards)}; pass the least and the largest reward")
    return float(ends[0]), float(ends[1])


def listed(arm_or_key: object, single: bool) -> list[object]:
    """Return what each reward is of."""
    if isinstance(arm_or_key, set | frozenset | dict):
        raise ValueError(
            f"arm_or_key is {shown(arm_or_key)}, without an order; pass a list of keys"
        )
    if _ndim(arm_or_key) == 0:
        return [arm_or_key]
    if not single and _ndim(arm_or_key) == 2:  # a table of pandas iterates its names
        return list(numbers("arm_or_key", arm_or_key))
    if single or not isinstance(arm_or_key, Iterable) or isinstance(arm_or_key, str | bytes):
        return [arm_or_key]
    if not isinstance(arm_or_key, Sized):
        raise ValueError(
            f"arm_or_key is {shown(arm_or_key)}, without a length; pass a list of keys"
        )
    if isinstance(arm_or_key, np.ndarray) and arm_or_key.dtype.kind in "iu":
        return arm_or_key.tolist()
    return list(arm_or_key)


def _ndim(thing: object) -> int:
    return trait(thing, "ndim", 1)


def _refuse_neither(thing: object) -> None:
    """Refuse what can be neither a key nor features."""
    if is_key(thing):
        return
    if not isinstance(thing, Iterable) or _ndim(thing) == 0:
        raise ValueError(
            f"arm_or_key is {shown(thing)}; pass a key ({KEYS}) or the features of an arm"
        )
    if isinstance(thing, Sized) and any(isinstance(part, str) for part in thing):
        raise ValueError(
            f"arm_or_key is {shown(thing)}, and words are not features; pass one reward per key, "
            "as a list"
        )


def _levels(name: str, value: object, count: int, single: bool) -> list[float]:
    """Return one standard deviation, or number of trials, a reward."""
    levels = column(name, numbers(name, value), count, single, spread=True)
    each: list[float] = levels.tolist()
    if not ((levels > 1 / LARGEST) & (levels < LARGEST)).all():  # or 0, or to be refused
        each = [positive(name, level, zero=name == "sigma") for level in each]
    return each
