"""The record of an agent: what was offered, drawn with which probabilities, and earned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...inputs import finite, integer
from ...protocols import Array
from ...storage.states import check_array, check_finite
from ..actions.action_features import Arms
from ..actions.context_fields import Value
from ..rewards.observations import Action, Key, PendingKey, is_key, is_slot, owner

CAPACITY = 10_000

Column = Sequence[object] | Array

# the values of a context and the positions of the actions on offer, or a matrix of arms
KeptOffer = tuple[tuple[Value, ...], tuple[int, ...]] | Array


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

    key: PendingKey
    offer: KeptOffer
    chosen: int
    probabilities: tuple[float, ...]
    reward: float | None
    estimates: tuple[float | None, ...] = ()
    explorations: tuple[float | None, ...] = ()
    parts: tuple[tuple[str, float], ...] = ()


class DecisionLog:
    """The last ``capacity`` decisions of an agent, maybe none, with their rewards as they come."""

    def __init__(self, capacity: int, decisions: Iterable[Decision] = ()) -> None:
        self.capacity = integer("record", capacity, least=0)
        self.decisions: dict[int, Decision] = {}
        self._pending: dict[PendingKey, int] = {}
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

    def decide(
        self, key: PendingKey, offer: KeptOffer, chosen: int, probabilities: Array, seen: Seen
    ) -> None:
        """Keep a decision; one that is pending under the same key never gets its reward."""
        if not self.capacity:
            return
        self._pending[key] = self._next
        self._put(Decision(key, offer, chosen, tuple(probabilities.tolist()), None, *seen))

    def record_reward(self, key: PendingKey, reward: float) -> None:
        """Keep the reward of a decision; again is the same."""
        at = self._pending.get(key)
        if at in self.decisions:
            self.decisions[at] = self.decisions[at]._replace(reward=reward)
        self._pending.pop(key, None)

    def forget(self, key: PendingKey) -> None:
        """Keep no decision that never gets its reward."""
        self.decisions.pop(self._pending.pop(key, -1), None)

    def probabilities(self, key: PendingKey) -> Array | None:
        """Return the probabilities of a decision that is pending, None where it is not kept."""
        decision = self.decisions.get(self._pending.get(key, -1))
        return None if decision is None else np.array(decision.probabilities)

    def of(self, key: Key) -> list[Decision]:
        """Return the last decision under a key, slot by slot where it has several."""
        slots: dict[PendingKey, Decision] = {}
        for each in reversed(self.decisions.values()):
            if owner(each.key) == key and (
                not slots or (is_slot(each.key) and each.key not in slots)
            ):
                slots[each.key] = each
            elif slots and each.key in slots:
                break
        return sorted(slots.values(), key=_place)

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

    def columns(self, arms: Arms | None) -> dict[str, Column]:
        """Return the decisions that have their reward as columns, oldest first."""
        if not self.capacity:
            raise ValueError("decisions were not recorded; pass record=10_000 to the agent")
        done, matrices = [], []
        contexts: list[tuple[Value, ...]] = []
        on_offer: list[Sequence[Action]] = []
        for each in self.decisions.values():
            if each.reward is None or isinstance(each.offer, tuple) != (arms is not None):
                continue
            done.append(each)
            if arms is not None and isinstance(each.offer, tuple):
                contexts.append(each.offer[0])
                on_offer.append([arms.actions[i] for i in each.offer[1]])
            else:
                matrices.append(each.offer)
                on_offer.append(range(len(each.probabilities)))
        log: dict[str, Column] = {"arms": matrices}
        if arms is not None:
            fields = () if arms.interactions is None else arms.context or ()
            log = {name: [values[i] for values in contexts] for i, (name, _) in enumerate(fields)}
        pairs = list(zip(done, on_offer, strict=True))
        log["action"] = [actions[each.chosen] for each, actions in pairs]
        log["reward"] = np.array([each.reward for each in done], dtype=np.float64)
        log["probability"] = np.array([each.probabilities[each.chosen] for each in done])
        log["probabilities"] = [
            dict(zip(map(str, actions), each.probabilities, strict=True)) for each, actions in pairs
        ]
        if any(is_slot(each.key) for each in done):
            log["slot"] = [_place(each) for each in done]
        return log


def _place(decision: Decision) -> int:
    """Return the slot of a decision, 0 where it is of one action."""
    return decision.key[1] if is_slot(decision.key) else 0


def _checked(decision: Decision) -> Decision:
    """Return a decision of a file, or raise."""
    try:
        key, offer, chosen, p, reward, estimates, explorations, parts = Decision(*decision)
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
        for value in (*estimates, *explorations):
            finite("estimate", 0.0 if value is None else value)
        fits = fits and {len(estimates), len(explorations)} <= {0, K}
        fits = fits and all(type(name) is str and type(part) is float for name, part in parts)
    except (TypeError, IndexError):
        fits = False
    if not fits:
        raise ValueError("the record of decisions holds one that none leads to")
    return Decision(key, offer, chosen, tuple(p), reward, estimates, explorations, parts)
