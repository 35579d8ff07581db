r"""Mean rewards of two groups of subjects: a subject is assigned once, so it counts as one.

With n decisions and rewards R in all of each subject, a mean is :math:`\mu = \sum R/\sum n`, and
its error is about :math:`\sum(R - \mu n)/\sum n`, a sum over subjects. That is normal for many of
them. It is looked at all the time while rewards of old subjects come: where these go together,
errors at two times are correlated at least as those of a walk whose steps are independent, which
crosses a boundary no less often (Slepian, 1962, The one-sided barrier problem for Gaussian noise).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...protocols import Array
from ...storage.states import check_array, check_fields
from ...support.printing import OneLine
from ...theory.mixtures import asymptotic_half_width
from .group_rewards import ENOUGH, Bounds

MOST = 100_000  # subjects whose sums are kept apart; those not seen for longest are closed
# powers of n and R whose sums give those of (R - mu n)^2 and (R - mu n)^4
DECISIONS = np.array([0, 1, 0, 2, 1, 0, 4, 3, 2, 1, 0])
REWARDS = np.array([0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 4])


@dataclass(eq=False, repr=False)
class SubjectRewards(OneLine):
    """Decisions and rewards of each subject, of groups 0 and 1, oldest first.

    Attributes
    ----------
    subjects, groups : int64 (m,)
    sums : (m, 2)
        The number of decisions of each, and its rewards relative to ``origin``, the first one.
    closed : (2, 11)
        Sums of powers over subjects of each group that are no longer kept apart.
    """

    subjects: NDArray[np.int64]
    groups: NDArray[np.int64]
    sums: Array
    closed: Array
    origin: float | None = None

    def __post_init__(self) -> None:
        m = np.size(self.subjects)
        check_array("SubjectRewards.subjects", self.subjects, (m,), np.int64)
        check_array("SubjectRewards.groups", self.groups, (m,), np.int64)
        check_fields(self, sums=(m, 2), closed=(2, len(REWARDS)))
        if self.origin is not None:
            check_fields(self, origin="finite")
        if not np.isin(self.groups, (0, 1)).all() or len({*self.subjects.tolist()}) < m:
            raise ValueError("SubjectRewards holds a group that is none, or a subject twice")

    @classmethod
    def empty(cls) -> "SubjectRewards":
        """Return sums over no subject."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none.copy(), np.zeros((0, 2)), np.zeros((2, len(REWARDS))))

    def after(self, rows: Iterable[tuple[int, int, float]]) -> "SubjectRewards":
        """Return the sums after more rewards, each with its subject and group."""
        triples = zip(self.subjects.tolist(), self.groups.tolist(), self.sums.tolist(), strict=True)
        own = {subject: (group, n, total) for subject, group, (n, total) in triples}
        origin = self.origin
        for subject, group, reward in rows:
            origin = reward if origin is None else origin
            _, n, total = own.pop(subject, (group, 0.0, 0.0))
            own[subject] = group, n + 1, total + reward - origin
        closed = self.closed
        if len(own) > MOST:
            away = [own.pop(each) for each in list(own)[: len(own) - MOST]]
            closed = closed + _powers(np.array(away))
        groups = np.array([each[0] for each in own.values()], dtype=np.int64)
        sums = np.array([each[1:] for each in own.values()], dtype=np.float64).reshape(-1, 2)
        return SubjectRewards(np.array(list(own), dtype=np.int64), groups, sums, closed, origin)

    @property
    def powers(self) -> Array:
        """Sums over all subjects of each group, (2, 11)."""
        return self.closed + _powers(np.column_stack([self.groups, self.sums]))

    def bounds(self, delta: float) -> Bounds:
        """Return the means of groups 0 and 1, and an interval of their difference."""
        powers = self.powers
        size, n, total = powers[:, 0], powers[:, 1], powers[:, 2]
        with np.errstate(invalid="ignore", divide="ignore"):
            mu = total / n
        a, b = ((self.origin or 0.0) + mu).tolist()
        if size.min() < ENOUGH:
            return Bounds((a, b), -math.inf, math.inf)
        squares = fourths = 0.0
        for m, own, count in zip(mu, powers, n, strict=True):
            nn, nr, rr = own[3:6]
            squares += max(rr - 2 * m * nr + m * m * nn, 0.0) / count**2
            signs = np.array([m**4, -4 * m**3, 6 * m**2, -4 * m, 1.0])
            fourths += float(signs @ own[6:]) / count**4
        k = float(size.sum())  # of terms whose mean is the error
        half = asymptotic_half_width(k, k * k * squares, k**4 * fourths, delta)
        value = float(mu[0] - mu[1])
        return Bounds((a, b), value - half, value + half)


def _powers(rows: Array) -> Array:
    """Return the sums of powers over rows of group, decisions and rewards, for both groups."""
    each = rows[:, 1:2] ** DECISIONS * rows[:, 2:3] ** REWARDS
    return np.stack([each[rows[:, 0] == g].sum(axis=0) for g in (0, 1)])
