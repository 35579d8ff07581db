"""Several actions chosen together, as one decision: a slate, with a reward for each slot."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...bandits.arms import best_first
from ...inputs import integer, shown
from ...protocols import AnyPolicy, Array, trait
from ..explanations.reasons import checked_arms
from ..kinds import is_indexed, is_ranking
from ..rewards.observations import Action, Key, Slot, checked_key, is_key, is_slot, owner
from ..rewards.pending import Pending
from .randomisation import Randomisation

Levels = list[object] | None  # standard deviations or trials, where there are any


def size_of(top: object, on_offer: int, capacity: int) -> int:
    """Return how many actions are to be chosen, if there are as many."""
    if type(top) is int and 0 < top <= on_offer and top <= capacity:
        return top
    size = integer("top", top)
    if size > min(on_offer, capacity):
        few = f"{on_offer} actions are on offer" if size > on_offer else f"capacity is {capacity}"
        raise ValueError(f"top is {size}, but {few}; pass at most that")
    return size


def ranked(
    policy: AnyPolicy,
    state: object,
    x: Array,
    top: int,
    rng: np.random.Generator,
    sigma: Array | None = None,
) -> list[int]:
    """Return the ``top`` arms by index, best first: all arms are evaluated once.

    A policy with a method ``select_top`` ranks them itself. One that has no index, or no finite one
    of these arms, chooses one by one among the rest.
    """
    if is_ranking(policy):
        return policy.select_top(state, x, rng, top).tolist()
    arms = checked_arms(policy, state, x) if trait(state, "dim", 0) else None
    if arms is not None and is_indexed(policy):
        index = policy.index(state, arms)
        order = best_first(np.where(np.isnan(index), -np.inf, index), top)
        if np.isfinite(index[order]).all():
            return order.tolist()
    left, chosen = list(range(len(x))), []
    for _ in range(top):
        k = policy.select(state, x[left], rng, None if sigma is None else sigma[left])
        chosen.append(left.pop(k))
    return chosen


def draw(
    how: Randomisation,
    policy: AnyPolicy,
    state: object,
    x: Array,
    best: list[int],
    rng: np.random.Generator,
) -> tuple[list[int], Array]:
    r"""Return the slate to play where ``best`` is the policy's, and probabilities, (top, K).

    In a share of decisions the whole slate is drawn, without replacement, from the m arms that
    `Randomisation` draws from, and those of ``best``. So an arm is in a slot with probability
    :math:`\text{share}/m`, and the policy's own with 1 - share more.
    """
    top, K = len(best), len(x)
    own = np.zeros((top, K))
    own[np.arange(top), best] = 1.0
    if not how.share:
        return best, own
    drawn = how.drawn_from(policy, state, x, best)
    p = how.share * drawn / drawn.sum() + (1 - how.share) * own
    if rng.random() < how.share:
        best = rng.permutation(np.flatnonzero(drawn))[:top].tolist()
    return best, p


class SlateRewards(NamedTuple):
    """What `Agent.learn` is given, slot by slot."""

    slots: list[Slot]
    rewards: list[object]
    sigma: Levels
    trials: Levels


def rewards_of(
    pending: Pending,
    key: object,
    reward: object,
    sigma: object,
    trials: object,
    again: bool = False,
) -> SlateRewards | None:
    """Return the rewards of slates slot by slot; None where ``key`` is of none.

    ``key`` is that of a slate with a list of rewards in the order of its slots, None where one is
    still to come, or a dictionary of rewards by action; or a list of such keys, with a list of
    those. ``sigma`` and ``trials`` are of the same form, or one number for all. ``again`` lets
    slots pass that have their reward, as the call may repeat an interrupted one.
    """
    if is_key(key) and not is_slot(key):
        key = checked_key(key)
        actions = pending.actions_of(key)
        if actions is None:
            return None
        return _of_slate(pending, key, actions, reward, sigma, trials, again)
    if not isinstance(key, list) or not pending.slates:
        return None
    whole = [each for each in key if is_key(each) and not is_slot(each)]
    slates = [pending.actions_of(owner(each)) for each in whole]
    if len(whole) < len(key) or None in slates:
        return None
    if not isinstance(reward, Sequence | np.ndarray) or len(reward) != len(key) or not key:
        raise ValueError(
            f"reward is {shown(reward)}, of {len(key)} keys of several actions each; pass a list "
            "of rewards, or a dictionary, for each key"
        )
    rows = [
        _of_slate(pending, owner(k), own or (), r, _part(sigma, i), _part(trials, i), again)
        for i, (k, own, r) in enumerate(zip(whole, slates, reward, strict=True))
    ]
    return SlateRewards(
        [slot for row in rows for slot in row.slots],
        [each for row in rows for each in row.rewards],
        None if sigma is None else [each for row in rows for each in row.sigma or ()],
        None if trials is None else [each for row in rows for each in row.trials or ()],
    )


def _part(level: object, i: int) -> object:
    return level[i] if isinstance(level, list | tuple) else level


def _of_slate(
    pending: Pending,
    key: Key,
    actions: tuple[Action, ...],
    reward: object,
    sigma: object,
    trials: object,
    again: bool,
) -> SlateRewards:
    rewards = _by_slot("reward", reward, key, actions)
    places = [i for i, each in enumerate(rewards) if each is not None]
    if not places:
        raise ValueError(f"reward is {shown(reward)}, without any; pass the reward of an action")
    slots: list[Slot] = [((key,), i) for i in places]
    if key in pending.slates and not again:
        for slot in slots:
            if slot not in pending.arms:
                raise ValueError(
                    f"action {actions[slot[1]]!r} of key {key!r} has its reward already; "
                    "leave it out, or pass None in its place"
                )
    sds, counts = (
        None if level is None else [_by_slot(name, level, key, actions)[i] for i in places]
        for name, level in (("sigma", sigma), ("trials", trials))
    )
    return SlateRewards(slots, [rewards[i] for i in places], sds, counts)


def _by_slot(name: str, value: object, key: Key, actions: tuple[Action, ...]) -> list[object]:
    """Return what was passed for each slot, None where nothing was."""
    if isinstance(value, Mapping):
        unknown = [each for each in value if each not in actions]
        if unknown:
            raise ValueError(
                f"{name} has {unknown[0]!r}, but key {key!r} is of {shown(list(actions))}; pass "
                "these alone"
            )
        return [value.get(each) for each in actions]
    if name != "reward" and np.ndim(value) == 0:  # type: ignore[arg-type]
        return [value] * len(actions)
    rows = [] if isinstance(value, str) or np.ndim(value) != 1 else [*value]  # type: ignore[arg-type, misc]
    if len(rows) != len(actions):
        raise ValueError(
            f"{name} is {shown(value)}, but key {key!r} is of {len(actions)} actions; pass a list "
            "with one each, None where it is still to come, or a dictionary by action"
        )
    return rows
