"""Which policy an agent has, without importing those it has not: that takes a while.

A policy whose module nobody has imported is not what the agent was given.
"""

import sys
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from ..bandits.ftrl_ucb import FTRLUCB
    from ..bandits.mor_ucb import MORUCB
    from ..bandits.optimism_state import OptimismState
    from ..bandits.optimistic import OptimisticPolicy


def _is(thing: object, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(f"noisewise.bandits.{module}"), name, None)
    return kind is not None and isinstance(thing, kind)


def is_ftrl_ucb(policy: object) -> "TypeGuard[FTRLUCB]":
    """Return whether a policy is `FTRLUCB`."""
    return _is(policy, "ftrl_ucb", "FTRLUCB")


def is_mor_ucb(policy: object) -> "TypeGuard[MORUCB]":
    """Return whether a policy is `MORUCB`."""
    return _is(policy, "mor_ucb", "MORUCB")


def is_optimistic(policy: object) -> "TypeGuard[OptimisticPolicy]":
    """Return whether a policy is one of these two."""
    return _is(policy, "optimistic", "OptimisticPolicy")


def is_theirs(state: object) -> "TypeGuard[OptimismState]":
    """Return whether a state is of one of these two."""
    return _is(state, "optimism_state", "OptimismState")
