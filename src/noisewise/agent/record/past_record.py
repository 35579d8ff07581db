"""Past decisions as an agent records them: what was on offer, with which probabilities."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np

from ..actions.action_features import Arms
from .decision_log import Decision, KeptOffer

CLOSE = 0.01  # share by which probabilities may be off, having been rounded
EXACT = 1e-9  # of a sum
UNKNOWN = (
    "the record holds the probability of every action, and the table only that of the one taken; "
    "add a column 'probabilities' with a dictionary by action, as `log` has it, or leave "
    "probability out: learning does without"
)

Shares = dict[int, float]


def shares(
    names: Sequence[str], taken: int, own: float, whole: Mapping[object, object] | None
) -> Shares | None:
    """Return the probability of each action on offer by its place; None if that can't be.

    ``own`` is that of the action ``taken``, and ``whole`` those of all, where they were kept.

    >>> shares(["a", "b"], 1, 0.2, None), shares(["a", "b", "c"], 0, 0.5, {"a": 0.5, "c": 0.5})
    ({0: 0.8, 1: 0.2}, {0: 0.5, 2: 0.5})
    """
    if not 0 < own <= 1:
        return None
    if whole is None:
        other = 1 - taken
        return {place: own if place == taken else 1 - own for place in sorted((taken, other))}
    place = {name: i for i, name in enumerate(names)}
    listed = {place.get(str(name), -1): p for name, p in whole.items() if p is not None}
    by_place = {i: p for i, p in sorted(listed.items()) if isinstance(p, Real)}
    if len(by_place) < len(listed):
        return None
    p = np.array([*by_place.values()], dtype=np.float64)
    total = float(p.sum())
    sound = min(by_place, default=-1) >= 0 and p.min() >= 0 and abs(total - 1) <= CLOSE
    if not sound or not math.isclose(by_place.get(taken, 0.0), own, rel_tol=CLOSE):
        return None
    p = p if abs(total - 1) < EXACT else p / total
    return dict(zip(by_place, p.tolist(), strict=True))


def decision(
    arms: Arms | None, row: object, clip: bool, taken: int, probabilities: Shares, reward: float
) -> Decision:
    """Return a decision that was taken, as the record keeps it; ``row`` is a context or matrix."""
    places = tuple(probabilities)
    if arms is None:
        offer: KeptOffer = np.array(row, dtype=np.float64)
    else:
        offer = arms.read(row, clip), places
    return Decision(None, offer, places.index(taken), tuple(probabilities.values()), reward)
