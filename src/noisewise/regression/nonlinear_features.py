r"""Bounded and slowly growing functions of features, standardised as rows come.

With z a feature less its running mean, over its running standard deviation, the row itself
included,

.. math:: a = \operatorname{asinh} z,\qquad q = \min(z^2, 9).

Beside x they let a linear model follow what saturates and what bends, and one far row cannot move
them much: :math:`z^2` is at most the number of rows. Both are 0 for features with fewer than three
different values so far, whose functions are lines. Earlier rows keep the z that they had.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inputs import dimension
from ..protocols import Array
from ..storage.states import COUNT, check_fields, restore_writable
from ..support.printing import OneLine

Mask = NDArray[np.bool_]
MOST = 9.0  # of z^2
STILL = 1e-14  # a variance below that share of the mean square is rounding


class Functions(NamedTuple):
    """The two functions of each feature, a row for each row of features."""

    asinh: Array
    square: Array


@dataclass(eq=False, repr=False)
class FeatureMoments(OneLine):
    """What standardises features: sums around ``shift``, the range, and whether a third value came.

    Weights do not matter, but that a row of weight 0 is not counted.

    Of 0, 4, 2 and 6 the mean is 3 and the variance 5, so for 6 :math:`z^2 = 9/5`; two different
    values have no functions yet, and 2 is the mean of the first three:

    >>> moments, x = FeatureMoments.start(1), np.array([[0.0], [4.0], [2.0], [6.0]])
    >>> moments.learn(x, np.ones(4)).square.ravel()
    array([0. , 0. , 0. , 1.8])
    """

    dim: int
    count: int
    shift: Array
    total: Array
    squares: Array
    low: Array
    high: Array
    several: Array  # 1 where there were three different values or more, else 0

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        check_fields(self, count=COUNT, shift=(d,), total=(d,), squares=(d,), several=(d,))
        check_fields(self, low=(d,), high=(d,))
        if min(self.squares.min(), (self.high - self.low).min()) < 0:
            raise ValueError("FeatureMoments holds a number that no stream of rows leads to")

    __setstate__ = restore_writable

    @classmethod
    def start(cls, dim: int) -> "FeatureMoments":
        """Return the moments of no row."""
        return cls(dim, 0, *(np.zeros(dim) for _ in range(6)))

    def around_mean(self, x: Array) -> "FeatureMoments":
        """Return the moments of rows, learnt before or not: their order does not matter.

        Of rows learnt before the range is kept: ``x`` may have been rounded on its way.
        """
        shift = x[0] + (x - x[0]).mean(axis=0)
        z = x - shift
        low, high, several = self.low, self.high, self.several
        if self.count != len(x):
            low, high = np.min(x, axis=0), np.max(x, axis=0)
            several = _third(x, low, high).any(axis=0).astype(float)
        sums = z.sum(axis=0), (z * z).sum(axis=0)
        return FeatureMoments(self.dim, len(x), shift, *sums, low, high, several)

    def learn(self, x: Array, w: Array) -> Functions:
        """Count rows in order; return the functions of each, earlier rows and itself counted."""
        if len(x) == 1:  # the quick way
            one = self.predict(x)
            if w[0] > 0:
                self._count(x[0])
            return one
        learnt = (w > 0)[:, None]
        if not self.count and learnt.any():
            self.shift = x[int(learnt.argmax())].copy()
        z = x - self.shift
        counts = self.count + np.append(0.0, np.cumsum(learnt))[:, None]
        totals = _running(np.add, self.total, np.where(learnt, z, 0.0))
        squares = _running(np.add, self.squares, np.where(learnt, z * z, 0.0))
        known = self.count > 0
        low = _running(np.minimum, self.low if known else np.inf, np.where(learnt, x, np.inf))
        high = _running(np.maximum, self.high if known else -np.inf, np.where(learnt, x, -np.inf))
        third = _third(x, low[:-1], high[:-1])
        several = _running(np.maximum, self.several, (third & learnt).astype(float))
        found = _functions(
            z,
            counts[:-1] + 1,
            totals[:-1] + z,
            squares[:-1] + z * z,
            third | (several[:-1] > 0),
        )
        self.count = int(counts[-1, 0])
        if self.count:
            self.total, self.squares = totals[-1].copy(), squares[-1].copy()
            self.low, self.high = low[-1].copy(), high[-1].copy()
            self.several = several[-1].copy()
        return found

    def _count(self, row: Array) -> None:
        """Count one row."""
        if self.count:
            third = _third(row, self.low, self.high)
            self.several = np.maximum(self.several, third)
            self.low, self.high = np.minimum(self.low, row), np.maximum(self.high, row)
        else:
            self.shift, self.low, self.high = row.copy(), row.copy(), row.copy()
        z = row - self.shift
        self.total, self.squares = self.total + z, self.squares + z * z
        self.count += 1

    def predict(self, x: Array) -> Functions:
        """Return the functions of each row as if it were the next."""
        z, third = x - self.shift, np.zeros(x.shape, dtype=bool)
        if self.count:
            third = _third(x, self.low, self.high)
        squares = self.squares + z * z
        return _functions(z, self.count + 1.0, self.total + z, squares, third | (self.several > 0))

    def of_own(self, x: Array) -> Functions:
        """Return the functions of rows that are all counted already."""
        return _functions(x - self.shift, self.count, self.total, self.squares, self.several > 0)


def _third(x: Array, low: Array, high: Array) -> Mask:
    """Return where a value is neither of two that were seen before."""
    return np.asarray((low < high) & (x != low) & (x != high))


def _functions(
    z: Array, count: float | Array, total: Array, squares: Array, several: Mask
) -> Functions:
    """Return the functions of shifted rows, given count and sums that include them."""
    mean, square = total / count, squares / count
    variance = square - mean * mean
    moved = several & (variance > STILL * square)
    z = np.divide(z - mean, np.sqrt(variance, where=moved, out=np.ones_like(z)), where=moved,
                  out=np.zeros_like(z))  # fmt: skip
    return Functions(np.arcsinh(z), np.minimum(z * z, MOST))


def _running(add: np.ufunc, start: Array | float, rows: Array) -> Array:
    """Return the start, and what it is after each row, taken in turn."""
    sums = np.empty((len(rows) + 1, rows.shape[1]))
    sums[0], sums[1:] = start, rows
    return np.asarray(add.accumulate(sums, axis=0, out=sums))
