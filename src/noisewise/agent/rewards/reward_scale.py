"""Rewards whose size or noise is not given: what stands in for them while they are learnt."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from ...protocols import AnyPolicy, Array
from ..explanations.reasons import means
from ..kinds import is_ftrl_ucb, is_optimism_state
from .residuals import ResidualScale

GROWTH = 1.1  # of the largest reward, before the norm bound follows it
LEAST_NOISE = 1e-3  # sd distinguished, as a share of the largest reward
LEAST_UNIT = 1e-40  # smaller rewards are as good as zero


# features, reward, its standard deviation or None, and its number of trials
Row = tuple[Array, float, float | None, float]


class RewardScaling(NamedTuple):
    """A policy, and how large its rewards and their noise are, where that is not given.

    ``unit`` is the largest reward so far, 0 before the first, and stands in for the norm bound of a
    policy that has none; it is None where the policy has one. ``scale`` has the standard deviation
    of rewards that come without.
    """

    policy: AnyPolicy
    unit: float | None = None
    scale: ResidualScale | None = None

    @property
    def fixed(self) -> bool:
        """Whether no reward changes it."""
        return self.unit is None and self.scale is None

    def after(
        self, state: object, row: Row, sigma: float, *, copied: bool = False
    ) -> tuple[RewardScaling, float] | None:
        """Return the scaling after a reward, and the standard deviation to learn it with.

        Where none was given with the reward it is the scale's, or ``sigma`` without a scale.
        Returns None if past rewards must be reweighted and the state is no copy: call again with
        one and ``copied``.
        """
        policy, unit, scale = self
        x, y, sd, n = row
        size = abs(y) or (0.0 if unit else sd or 0.0)  # the first sd tells a unit too
        if unit is not None and size > max(GROWTH * unit, LEAST_UNIT):
            if not copied:
                return None
            assert is_ftrl_ucb(policy)
            assert is_optimism_state(state)
            if not unit:  # rewards so far were zero, and counted as if their sd were 1
                policy.reweigh(state, size**-2.0)
                scale = ResidualScale(size * size, floor=LEAST_NOISE * size)
            unit = size
            # norm bound and least noise that suit rewards of this size
            scaled = replace(policy, noise_floor=LEAST_NOISE * unit)
            policy = scaled.rebound(state, unit / policy.glm.feature_bound)
        if sd is not None:
            return RewardScaling(policy, unit, scale and scale.mixed()), sd
        if scale is None or unit == 0:
            return RewardScaling(policy, unit, scale), sigma / math.sqrt(n)
        mean = means(policy, state, x[None])
        assert mean is not None  # asked for when the agent was created
        scale, factor = scale.after(y - float(mean[0]), n).settled()
        if factor != 1.0 and is_ftrl_ucb(policy) and is_optimism_state(state):
            if policy.glm.linear and not copied:
                return None
            if policy.glm.linear:
                policy.reweigh(state, factor)
        return RewardScaling(policy, unit, scale), scale.sd / math.sqrt(n)

    @property
    def caveats(self) -> list[str]:
        """What an interval can't rely on, since it was not given."""
        notes = []
        if self.unit is not None:
            notes.append(
                "no parameter_bound was passed and the largest reward stands in for it: the "
                "interval is not guaranteed"
            )
        if self.scale is not None and self.scale.count:
            notes.append(
                f"{self.scale.count} rewards came without sigma and counted with a running "
                f"residual sd, now {self.scale.sd:.3g}: the interval is not guaranteed"
            )
        return notes
