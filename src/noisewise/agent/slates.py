"""Several actions chosen together, as one decision: a slate, with a reward for each slot."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..bandits.arms import best_first, candidates, norm_bound
from ..inputs import integer, shown
from ..protocols import Array, Policy
from .observations import Key, Slot, checked_key, is_key, is_slot
from .pending import Pending
from .randomisation import Randomisation
from .reasons import Indexed


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
    policy: Policy[Any],
    state: Any,
    x: Array,
    top: int,
    rng: np.random.Generator,
    sigma: Array | None = None,
) -> list[int]:
    """Return the ``top`` arms by index, best first: all arms are evaluated once.

    A policy with a method ``select_top`` ranks them itself. One that has no index, or no finite one
    of these arms, chooses one by one among the rest.
    """
    if hasattr(policy, "select_top"):
        best: list[int] = policy.select_top(state, x, rng, top).tolist()
        return best
    if isinstance(policy, Indexed) and hasattr(state, "dim"):
        bound = norm_bound(policy, "feature_bound") or np.inf
        index = policy.index(state, candidates(x, state.dim, bound))
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
    policy: Policy[Any],
    state: Any,
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
    rewards: list[Any]
    sigma: Any
    trials: Any


def rewards_of(
    pending: Pending, key: Any, reward: Any, sigma: Any, trials: Any
) -> SlateRewards | None:
    """Return the rewards of slates slot by slot; None where ``key`` is of none.

    ``key`` is that of a slate with a list of rewards in the order of its slots, None where one is
    still to come, or a dictionary of rewards by action; or a list of such keys, with a list of
    those. ``sigma`` and ``trials`` are of the same form, or one number for all.
    """
    if is_key(key) and not is_slot(key):
        key = checked_key(key)
        actions = pending.actions_of(key)
        return None if actions is None else _of_slate(pending, key, actions, reward, sigma, trials)
    if not isinstance(key, list) or not pending.slates:
        return None
    if not all(is_key(each) and pending.actions_of(each) is not None for each in key):
        return None
    if not isinstance(reward, Sequence | np.ndarray) or len(reward) != len(key) or not key:
        raise ValueError(
            f"reward is {shown(reward)}, of {len(key)} keys of several actions each; pass a list "
            "of rewards, or a dictionary, for each key"
        )
    each = [
        _of_slate(pending, k, pending.actions_of(k) or (), r, _part(sigma, i), _part(trials, i))
        for i, (k, r) in enumerate(zip(key, reward, strict=True))
    ]
    slots, rewards, sds, counts = ([x for one in each for x in one[i] or ()] for i in range(4))
    return SlateRewards(
        slots, rewards, None if sigma is None else sds, None if trials is None else counts
    )


def _part(given: Any, i: int) -> Any:
    return given[i] if isinstance(given, list | tuple) else given


def _of_slate(
    pending: Pending, key: Key, actions: tuple[Any, ...], reward: Any, sigma: Any, trials: Any
) -> SlateRewards:
    found = _by_slot("reward", reward, key, actions)
    places = [i for i, each in enumerate(found) if each is not None]
    if not places:
        raise ValueError(f"reward is {shown(reward)}, without any; pass the reward of an action")
    slots: list[Slot] = [((key,), i) for i in places]
    if key in pending.slates:
        for slot in slots:
            if slot not in pending.arms:
                raise ValueError(
                    f"action {actions[slot[1]]!r} of key {key!r} has its reward already; "
                    "leave it out, or pass None in its place"
                )
    levels = (
        None if given is None
        else [_by_slot(name, given, key, actions)[i] for i in places]
        for name, given in (("sigma", sigma), ("trials", trials))
    )  # fmt: skip
    return SlateRewards(slots, [found[i] for i in places], *levels)


def _by_slot(name: str, given: Any, key: Key, actions: tuple[Any, ...]) -> list[Any]:
    """Return what was given for each slot, None where nothing was."""
    if isinstance(given, Mapping):
        unknown = [each for each in given if each not in actions]
        if unknown:
            raise ValueError(
                f"{name} has {unknown[0]!r}, but key {key!r} is of {shown(list(actions))}; pass "
                "these alone"
            )
        return [given.get(each) for each in actions]
    if name != "reward" and np.ndim(given) == 0:
        return [given] * len(actions)
    if isinstance(given, str) or np.ndim(given) != 1 or len(given) != len(actions):
        raise ValueError(
            f"{name} is {shown(given)}, but key {key!r} is of {len(actions)} actions; pass a list "
            "with one each, None where it is still to come, or a dictionary by action"
        )
    return list(given)
