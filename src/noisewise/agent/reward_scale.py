"""Rewards whose size or noise is not given: what stands in for them while they are learnt."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from ..bandits.ftrl_ucb import FTRLUCB
from .reasons import means
from .residuals import ResidualScale

GROWTH = 1.1  # of the largest reward, before the norm bound follows it
LEAST_NOISE = 1e-3  # sd told apart, as a share of the largest reward
LEAST_UNIT = 1e-40  # smaller rewards are as good as zero


def learn(
    policy: Any,
    state: Any,
    rows: Iterable[Any],
    sigma: float,
    unit: float | None,
    scale: ResidualScale | None,
) -> tuple[Any, float | None, ResidualScale | None]:
    """Let the state learn rewards; return policy, unit and scale of residuals after them.

    A row is (arm, reward, standard deviation or None, trials). Where none was given it is the
    scale's, or ``sigma`` where there is no scale. The unit is the largest reward so far, 0 before
    the first, and stands in for the norm bound of a policy that has none; None where it has.
    """
    for x, y, sd, n in rows:
        size = abs(y) or (0.0 if unit else sd or 0.0)  # the first sd tells a unit too
        if unit is not None and size > max(GROWTH * unit, LEAST_UNIT):
            if not unit:  # rewards so far were zero, and counted as if their sd were 1
                policy.reweigh(state, size**-2.0)
                scale = ResidualScale(size * size, floor=LEAST_NOISE * size)
            unit = size
            policy = _in_units(policy, state, unit)
        if sd is not None:
            scale = scale and scale.mixed()
        elif scale is None or unit == 0:
            sd = sigma / math.sqrt(n)
        else:
            mean = means(policy, state, x[None])
            assert mean is not None  # asked for when the agent was made
            scale, factor = scale.after(y - float(mean[0]), n).settled()
            if factor != 1.0 and _reweighs(policy):
                policy.reweigh(state, factor)
            sd = scale.sd / math.sqrt(n)
        policy.update(state, x, y, sd)
    return policy, unit, scale


def _in_units(policy: Any, state: Any, unit: float) -> Any:
    """Return the policy with norm bound and least noise that suit rewards of this size."""
    scaled = dataclasses.replace(policy, noise_floor=LEAST_NOISE * unit)
    return scaled.rebound(state, unit / policy.glm.feature_bound)


def _reweighs(policy: Any) -> bool:
    return isinstance(policy, FTRLUCB) and policy.glm.linear
