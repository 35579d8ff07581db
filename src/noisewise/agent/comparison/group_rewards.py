r"""Mean rewards of groups of decisions, and their differences, from sums that do not grow.

Groups are drawn with probabilities p of at least ``least``. With a centre q, the mean of the
rewards before, :math:`x_t = (r_t - q_t)/p_t` of a decision for A, and less that of one for B, has
the difference of what A and B earn as its mean, given the past, whatever contexts and rates do.
So the bounds of `betting` hold for the average difference so far. As no decision is for both,
:math:`\log(1 + \beta(x^A - x^B))` is a sum over the two: each group has its own, for all pairs.

Where groups are not drawn (``least`` = 0), each group's own rewards are taken, and what each earns
is assumed not to change.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...protocols import Array
from ...storage.states import check_fields
from ...support.printing import OneLine
from ...theory.betting import STAKES, difference_bound, lower_bound_of_sums
from ...theory.mixtures import asymptotic_half_width
from ..rewards.observations import limits_of

ENOUGH = 50.0  # effective decisions of a group before means are about normal
COUNT, WEIGHT, SQUARE, EARNED, POWERS = 0, 1, 2, 3, 4  # columns of totals; then powers 1 to 4 of x


class Bounds(NamedTuple):
    """The means of two groups, and an interval of their difference."""

    means: tuple[float, float]
    lower: float
    upper: float


@dataclass(eq=False, repr=False)
class GroupRewards(OneLine):
    """Sums over the rewards of K groups; those of ``limits`` are of rewards as shares of the range.

    Attributes
    ----------
    least : float
        The least probability of a group, 0 where they are not drawn.
    limits : (float, float) or None
        The least and the largest reward.
    up, down : (K, G)
        Logarithms of what each stake has won, on larger and on smaller rewards.
    totals : (K, 8)
        Numbers of decisions, sums of weights, their squares, weighted rewards, and powers of x.
    count, earned : float
        The number of decisions, and the sum of their rewards.
    origin : float
        Rewards without limits are taken relative to the first one.
    """

    least: float
    limits: tuple[float, float] | None
    up: Array
    down: Array
    totals: Array
    count: float = 0.0
    earned: float = 0.0
    origin: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, totals=np.ndarray)
        K, G = self.totals.size // 8, len(STAKES)
        check_fields(self, totals=(K, 8), up=(K, G), down=(K, G))
        check_fields(self, least="nonnegative", count="nonnegative")
        check_fields(self, earned="finite", origin="finite")
        if self.limits is not None and self.limits != limits_of(self.limits):
            raise ValueError("GroupRewards.limits is no pair of floats")
        if self.least > 1 or (self.totals[:, :3] < 0).any():
            raise ValueError("GroupRewards holds negative counts, or a probability above 1")

    @classmethod
    def of(cls, groups: int, least: float, limits: tuple[float, float] | None) -> "GroupRewards":
        """Return sums over no reward."""
        sums = np.zeros((groups, len(STAKES)))
        return cls(least, limits, sums, sums.copy(), np.zeros((groups, 8)))

    def after(self, group: NDArray[np.int64], p: Array, reward: Array) -> "GroupRewards":
        """Return the sums after more rewards, in order of the decisions."""
        if not len(reward):
            return self
        origin = self.origin if self.count or self.limits else float(reward[0])
        low, high = self.limits or (origin, origin + 1.0)
        r = (reward - low) / (high - low)
        w = 1 / p if self.least else np.ones(len(r))
        x = w * (r - self._centres(r))
        up, down, totals = self.up.copy(), self.down.copy(), self.totals.copy()
        if self.limits:
            gain, loss = (x, -x) if self.least else (r, 1 - r)
            stakes = STAKES * (self.least or 1.0)
            np.add.at(up, group, np.log1p(gain[:, None] * stakes))
            np.add.at(down, group, np.log1p(loss[:, None] * stakes))
        each = np.stack([np.ones(len(r)), w, w**2, w * r, x, x**2, x**3, x**4], axis=1)
        np.add.at(totals, group, each)
        count, earned = self.count + len(r), self.earned + float(r.sum())
        return GroupRewards(self.least, self.limits, up, down, totals, count, earned, origin)

    def _centres(self, r: Array) -> Array:
        """Return the mean of the rewards before each, as if half a success had come before."""
        if not self.least:
            return np.zeros(len(r))
        before = self.earned + np.concatenate([[0.0], r.cumsum()[:-1]])
        count = self.count + np.arange(len(r))
        if self.limits:
            return np.asarray((before + 0.5) / (count + 1))
        return np.asarray(before / np.maximum(count, 1))  # 0 for the first, the origin

    def bounds(self, a: int, b: int, delta: float) -> Bounds:
        """Return the means of groups ``a`` and ``b``, and an interval of their difference."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share_a, share_b = (self.totals[:, EARNED] / self.totals[:, WEIGHT])[[a, b]].tolist()
        low, high = self.limits or (self.origin, self.origin + 1.0)
        size = high - low
        means = low + size * share_a, low + size * share_b
        if self.limits is None:
            value = share_a - share_b
            half = self._half_width(a, b, delta)
            if math.isinf(half):
                return Bounds(means, -math.inf, math.inf)
            return Bounds(means, value - half, value + half)
        lower, upper = self._lower(a, b, delta / 2), -self._lower(b, a, delta / 2)
        return Bounds(means, size * lower, size * upper)

    def _lower(self, a: int, b: int, delta: float) -> float:
        if self.least:
            sums = self.up[a] + self.down[b]
            return lower_bound_of_sums(sums, self.count, delta, self.least)
        n, k = self.totals[[a, b], COUNT].tolist()
        return difference_bound(self.up[a], n, self.down[b], k, delta)

    def _half_width(self, a: int, b: int, delta: float) -> float:
        """Return half the width of an approximate interval, infinite for too few rewards."""
        own = self.totals[[a, b]]
        if not (own[:, WEIGHT] ** 2 >= ENOUGH * own[:, SQUARE]).all() or not own[:, COUNT].all():
            return math.inf
        if self.least:
            signs = np.array([[1.0, 1.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 1.0]])
            powers = (signs * own[:, POWERS:]).sum(axis=0)
            return _half_width(self.count, powers, delta)
        return sum(_half_width(each[COUNT], each[POWERS:], delta / 2) for each in own)


def _half_width(n: float, powers: Array, delta: float) -> float:
    """Return half a width from the number of x and the sums of their first four powers."""
    one, two, three, four = powers.tolist()
    m = one / n
    squares = max(two - n * m * m, 0.0)
    fourths = four - 4 * m * three + 6 * m * m * two - 3 * n * m**4
    return asymptotic_half_width(n, squares, fourths, delta)
