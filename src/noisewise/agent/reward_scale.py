"""Rewards whose size or noise is not given: what stands in for them while they are learnt."""

import dataclasses
import math
from typing import Any, NamedTuple

from ..bandits.ftrl_ucb import FTRLUCB
from .reasons import means
from .residuals import ResidualScale

GROWTH = 1.1  # of the largest reward, before the norm bound follows it
LEAST_NOISE = 1e-3  # sd told apart, as a share of the largest reward
LEAST_UNIT = 1e-40  # smaller rewards are as good as zero


class After(NamedTuple):
    """What is known once a reward is learnt, and the standard deviation it is learnt with."""

    policy: Any
    unit: float | None
    scale: ResidualScale | None
    sigma: float


def prepare(
    policy: Any,
    state: Any,
    row: Any,
    sigma: float,
    unit: float | None,
    scale: ResidualScale | None,
    *,
    copied: bool = False,
) -> After | None:
    """Return what is to be known after a reward; None where that changes the state's past.

    A row is (arm, reward, standard deviation or None, trials). Where none was given it is the
    scale's, or ``sigma`` where there is no scale. The unit is the largest reward so far, 0 before
    the first, and stands in for the norm bound of a policy that has none; None where it has.
    A state that is ``copied`` has its past rewards weighed anew here, where the unit or the scale
    asks for it: an interrupt then costs a copy.
    """
    x, y, sd, n = row
    size = abs(y) or (0.0 if unit else sd or 0.0)  # the first sd tells a unit too
    if unit is not None and size > max(GROWTH * unit, LEAST_UNIT):
        if not copied:
            return None
        if not unit:  # rewards so far were zero, and counted as if their sd were 1
            policy.reweigh(state, size**-2.0)
            scale = ResidualScale(size * size, floor=LEAST_NOISE * size)
        unit = size
        policy = _in_units(policy, state, unit)
    if sd is not None:
        return After(policy, unit, scale and scale.mixed(), sd)
    if scale is None or unit == 0:
        return After(policy, unit, scale, sigma / math.sqrt(n))
    mean = means(policy, state, x[None])
    assert mean is not None  # asked for when the agent was made
    scale, factor = scale.after(y - float(mean[0]), n).settled()
    if factor != 1.0 and _reweighs(policy):
        if not copied:
            return None
        policy.reweigh(state, factor)
    return After(policy, unit, scale, scale.sd / math.sqrt(n))


def _in_units(policy: Any, state: Any, unit: float) -> Any:
    """Return the policy with norm bound and least noise that suit rewards of this size."""
    scaled = dataclasses.replace(policy, noise_floor=LEAST_NOISE * unit)
    return scaled.rebound(state, unit / policy.glm.feature_bound)


def _reweighs(policy: Any) -> bool:
    return isinstance(policy, FTRLUCB) and policy.glm.linear
