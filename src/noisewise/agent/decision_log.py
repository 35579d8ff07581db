"""The record of an agent: what was offered, drawn with which probabilities, and earned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..inputs import finite, integer
from ..protocols import Array
from ..states import check_array, check_finite
from .action_features import Arms
from .context_fields import Value
from .observations import Key, is_key, is_slot, owner

CAPACITY = 10_000

# the values of a context and the positions of the actions on offer, or a matrix of arms
Offer = tuple[tuple[Value, ...], tuple[int, ...]] | Array


class Seen(NamedTuple):
    """What a decision rested on: estimate and exploration of each arm, contributions to one."""

    estimates: tuple[float | None, ...]
    explorations: tuple[float | None, ...]
    parts: tuple[tuple[str, float], ...] = ()


class Decision(NamedTuple):
    """What was offered, what was chosen of it, with which probabilities, and its reward, or None.

    Of several actions chosen together each is a decision, whose key is a `Slot`. The rest is what
    was `Seen`.
    """

    key: Key
    offer: Offer
    chosen: int
    probabilities: tuple[float, ...]
    reward: float | None
    estimates: tuple[float | None, ...] = ()
    explorations: tuple[float | None, ...] = ()
    parts: tuple[tuple[str, float], ...] = ()


class DecisionLog:
    """The last ``capacity`` decisions of an agent, maybe none, with their rewards as they come."""

    def __init__(self, capacity: int, decisions: Iterable[Any] = ()) -> None:
        self.capacity = integer("record", capacity, least=0)
        self.decisions: dict[int, Decision] = {}
        self._pending: dict[Key, int] = {}
        self._next = 0
        for each in decisions:
            checked = _checked(each)
            self._put(checked)
            if checked.reward is None:
                self._pending[checked.key] = self._next - 1

    def _put(self, decision: Decision) -> None:
        self.decisions[self._next] = decision
        self._next += 1
        if len(self.decisions) > self.capacity:
            del self.decisions[next(iter(self.decisions))]

    def decide(self, key: Any, offer: Offer, chosen: int, probabilities: Array, seen: Seen) -> None:
        """Keep a decision; one that is pending under the same key never gets its reward."""
        if not self.capacity:
            return
        self._pending[key] = self._next
        self._put(Decision(key, offer, chosen, tuple(probabilities.tolist()), None, *seen))

    def settle(self, key: Key, reward: float) -> None:
        """Keep the reward of a decision; again is the same."""
        at = self._pending.get(key)
        if at in self.decisions:
            self.decisions[at] = self.decisions[at]._replace(reward=reward)
        self._pending.pop(key, None)

    def forget(self, key: Key) -> None:
        """Keep no decision that never gets its reward."""
        self.decisions.pop(self._pending.pop(key, -1), None)

    def probabilities(self, key: Key) -> Array | None:
        """Return the probabilities of a decision that is pending, None where it is not kept."""
        found = self.decisions.get(self._pending.get(key, -1))
        return None if found is None else np.array(found.probabilities)

    def of(self, key: Key) -> list[Decision]:
        """Return the last decision under a key, slot by slot where it has several."""
        found: dict[Any, Decision] = {}
        for each in reversed(self.decisions.values()):
            if owner(each.key) == key and (
                not found or (is_slot(each.key) and each.key not in found)
            ):
                found[each.key] = each
            elif found and each.key in found:
                break
        return [found[each] for each in sorted(found, key=lambda k: k[1] if is_slot(k) else 0)]

    def saved(self) -> tuple[int, list[Decision]]:
        """Return what a file holds: the capacity, and the decisions, pending or with a reward."""
        pending = set(self._pending.values())
        kept = [d for at, d in self.decisions.items() if d.reward is not None or at in pending]
        return self.capacity, kept

    def with_past(self, of: Callable[[int], list[Decision]]) -> DecisionLog:
        """Return a record of these decisions and the last past ones that a function returns."""
        past, (capacity, kept) = of(self.capacity), self.saved()
        return DecisionLog(capacity, [*kept, *past]) if past else self

    def check_offers(self, arms: Arms | None, dim: int) -> None:
        """Raise unless all offers, of a file, are of these arms or this number of features."""
        width = len(arms.context or ()) if arms is not None and arms.interactions else 0
        for offer in (each.offer for each in self.decisions.values()):
            if isinstance(offer, np.ndarray):
                fits = offer.shape[1] == dim
            else:
                fits = arms is not None and len(offer[0]) == width
                fits = fits and arms is not None and max(offer[1]) < len(arms.actions)
            if not fits:
                raise ValueError("the record of decisions holds an offer that the agent can't make")

    def columns(self, arms: Arms | None) -> dict[str, Any]:
        """Return the decisions that have their reward as columns, oldest first."""
        if not self.capacity:
            raise ValueError("decisions were not recorded; pass record=10_000 to the agent")
        named = arms is not None
        done: list[Any] = [
            each
            for each in self.decisions.values()
            if each.reward is not None and isinstance(each.offer, tuple) == named
        ]
        log: dict[str, Any] = {}
        if arms is not None:
            fields = () if arms.interactions is None else arms.context or ()
            for i, (name, _) in enumerate(fields):
                log[name] = [each.offer[0][i] for each in done]
            on_offer = [[arms.actions[i] for i in each.offer[1]] for each in done]
            log["action"] = [arms.actions[each.offer[1][each.chosen]] for each in done]
        else:
            on_offer = [[str(i) for i in range(len(each.probabilities))] for each in done]
            log["arms"] = [each.offer for each in done]
            log["action"] = [each.chosen for each in done]
        log["reward"] = np.array([each.reward for each in done], dtype=np.float64)
        log["probability"] = np.array([each.probabilities[each.chosen] for each in done])
        log["probabilities"] = [
            dict(zip(names, each.probabilities, strict=True))
            for names, each in zip(on_offer, done, strict=True)
        ]
        if any(is_slot(each.key) for each in done):
            log["slot"] = [each.key[1] if is_slot(each.key) else 0 for each in done]
        return log


def _checked(decision: Any) -> Decision:
    """Return a decision of a file, or raise."""
    try:
        key, offer, chosen, p, reward, *seen, parts = found = Decision(*decision)
        K = len(p)
        fits = type(chosen) is int and 0 <= chosen < K and is_key(key)
        total = sum(finite("probability", each) for each in p)
        fits = fits and min(p) >= 0 and p[chosen] > 0 and abs(total - 1) < 1e-9
        if isinstance(offer, np.ndarray):
            check_array("DecisionLog.offer", offer, (K, offer.shape[-1]))
            check_finite("DecisionLog.offer", offer)
        else:
            values, at = offer
            fits = fits and all(type(each) in (float, str) for each in values)
            fits = fits and len(at) == K and all(type(each) is int and each >= 0 for each in at)
        if reward is not None:
            finite("reward", reward)
        for value in (value for column in seen for value in column if value is not None):
            finite("estimate", value)
        fits = fits and all(len(column) in (0, K) for column in seen)
        fits = fits and all(type(name) is str and type(part) is float for name, part in parts)
    except (TypeError, IndexError):
        fits = False
    if not fits:
        raise ValueError("the record of decisions holds one that none leads to")
    return found._replace(probabilities=tuple(p))
