"""Many decisions and many rewards of `SelfTunedUCB`, each in one compiled call."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from ..kernels import self_tuned_ucb_layout as at
from ..protocols import Array
from .self_tuned_ucb_state import SelfTunedUCBState

Places = NDArray[np.int64]


@cache
def kernels() -> ModuleType:
    """Return the compiled part."""
    return import_module("noisewise.kernels.self_tuned_batches")


def choose_many(
    state: SelfTunedUCBState,
    arms: Array,
    first: Places,
    weight: float,
    draw: Callable[[int], int],
) -> tuple[Places, Array]:
    """Return which arm is chosen from each offer, and that arm; each counts before the next offer.

    Offer t has the arms from ``first[t]`` to ``first[t + 1]``; where several are the best,
    ``draw(t)`` chooses.
    """
    n, t, family = len(first) - 1, 0, int(state.numbers[at.FAMILY])
    chosen, played = np.empty(n, dtype=np.int64), np.empty((n, state.dim))
    state.make_room(decisions=n - 1)
    choose, expect = kernels().choosing()
    while t < n:
        t = kernels().choose_many(
            state.numbers, state.vectors, state.matrices, state.decisions, state.keys,
            arms, first, chosen, played, t, weight, family, choose, expect,
        )  # fmt: skip
        if t < n:
            chosen[t] = draw(t)
            played[t] = arms[first[t] + chosen[t]]
            t += 1
    return chosen, played


def learn_many(
    state: SelfTunedUCBState, arms: Array, rewards: Array, weights: Array, counted: Places
) -> None:
    """Learn rewards that were checked, and release the decisions that are counted."""
    state.make_room(rewards=len(arms))
    learn, release = kernels().learning(int(state.numbers[at.FAMILY]))
    kernels().learn_many(
        state.numbers, state.vectors, state.matrices, state.rows, state.decisions, state.keys,
        arms, rewards, weights, counted, learn, release,
    )  # fmt: skip


def first_refused(state: SelfTunedUCBState, arms: Array, rewards: Array, weights: Array) -> int:
    """Return the first reward that can't be computed with, or the number of all."""
    s = state.numbers
    found: int = kernels().first_refused(s, arms, rewards, weights, int(s[at.FAMILY]))
    return found
