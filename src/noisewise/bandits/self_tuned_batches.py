"""Many decisions and many rewards of `SelfTunedUCB` in one compiled call."""

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
    break_tie: Callable[[int], int],
) -> Places:
    """Return the arm chosen from each offer; each decision is counted before the next offer.

    Offer t has the arms from ``first[t]`` to ``first[t + 1]``; where several are the best, or can't
    be computed with, ``break_tie(t)`` chooses.
    """
    chosen, t = np.zeros(len(first) - 1, dtype=np.int64), 0
    state.make_room(decisions=len(chosen))
    choose, expect = kernels().addresses("choose", "expect")
    while t < len(chosen):
        t = kernels().choose_many(
            state.numbers, state.vectors, state.matrices, state.decisions, state.keys,
            arms, first, chosen, t, weight, int(state.numbers[at.FAMILY]), choose, expect,
        )  # fmt: skip
        if t < len(chosen):
            chosen[t] = break_tie(t)
            t += 1
    return chosen
