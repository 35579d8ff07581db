r"""How far labels scatter around a fit, and what that makes of the variance of a score.

Rows u have weights w, labels y, fitted means m and slopes m'; a row's information is
:math:`I = wm'`, :math:`J = \sum I uu^\top`, its leverage :math:`h = I u^\top J^{-1}u` and its pull
:math:`r = w(y - m)`. The average dispersion is the largest of 1 (unless labels may scatter less),
Pearson's :math:`\sum r^2/I/(n - p)`, and :math:`\sum\frac{r^2}{1 - h}/\sum I`, which weighs rows by
their information: rows of many trials that are not independent show in it.

Of a score :math:`b\cdot\theta`, with :math:`c = b^\top J^{-1}u`, the variance is the larger of
:math:`\sum c^2r^2/(1 - h)^2` (HC3) and the dispersion times :math:`v_0 = b^\top J^{-1}b`. It has
the least of three degrees of freedom: n - p, Bell and McCaffrey's for the design, and
:math:`6(\sum t)^2/\sum t^2`, :math:`t = c^2r^2/(1 - h)`, for the labels. Where fewer than ten
rows tell of a direction it may also be the larger of HC3 and twice the average dispersion, with
the degrees of freedom of that average.

References: MacKinnon and White (1985); Bell and McCaffrey (2002); Cordeiro and McCullagh (1991).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...numerics.blas import matmul
from ...numerics.linalg import forms
from ...protocols import Array
from .maximum_likelihood import Estimate

LARGEST_LEVERAGE = 1 - 1e-6
LEAST = 1e-100  # information, whose square is above 0
KURTOSIS = 6.0  # 3 would be that of Gaussian rows
FEW = 10.0  # degrees of freedom of a design, below which the average dispersion counts too
TWICE = 2.0  # the average dispersion, assumed there
MANY = 25.0  # events, for the bias to be subtracted
ENTRIES = 4_000_000  # of a matrix of rows and directions
NEARLY = 1.01  # how far two bounds of degrees of freedom may be apart


class Spread(NamedTuple):
    """Variances of scores: by the likelihood, and allowing for the dispersion.

    ``variance`` and ``freedom`` are those of HC3; ``pooled`` says which directions few rows tell
    of, and ``wide`` and ``shared`` are variance and freedom by twice the average dispersion.
    """

    likelihood: Array
    variance: Array
    freedom: Array
    pooled: NDArray[np.bool_]
    wide: Array
    shared: Array


@dataclass(frozen=True, eq=False, repr=False)
class Dispersion:
    """The scatter of labels around an estimate; ``least`` is a lower bound of the average."""

    fit: Estimate
    least: float = 1.0

    @cached_property
    def mean(self) -> Array:
        """The fitted means."""
        return self.fit.design.link.mean(self.fit.scores)

    @cached_property
    def information(self) -> Array:
        """That of each row."""
        design = self.fit.design
        return np.maximum(design.w * design.link.slope(self.fit.scores), LEAST)

    @cached_property
    def pull(self) -> Array:
        """The weighted residual of each row."""
        return self.fit.design.w * (self.fit.design.y - self.mean)

    @cached_property
    def leverage(self) -> Array:
        """That of each row."""
        h = self.information * forms(self.fit.design.u, self.fit.inverse)
        return np.minimum(h, LARGEST_LEVERAGE)

    @property
    def free(self) -> int:
        """Degrees of freedom of the residuals."""
        return max(len(self.pull) - len(self.fit.values), 0)

    @cached_property
    def pearson(self) -> float:
        """Pearson's estimate."""
        square = float((self.pull**2 / self.information).sum())
        return square / self.free if self.free else math.nan

    @cached_property
    def weighted(self) -> float:
        """The estimate that weighs rows by their information."""
        square = float((self.pull**2 / (1 - self.leverage)).sum())
        return square / float(self.information.sum()) if self.free else math.nan

    @property
    def average(self) -> float:
        """What is used: the largest."""
        return max(self.least, self.pearson, self.weighted)

    def excess(self, trials: bool, dispersion: float = 1.0) -> tuple[float, float]:
        """Return how far Pearson's square is above its mean, in sds, and what chance would give.

        The latter is a boundary for all times, crossed with probability 1 %. ``trials``: labels are
        shares, whose fourth moments differ from those of counts. Of another ``dispersion`` than 1
        the variance is taken to grow alike.
        """
        n = len(self.pull)
        fourth = 2 + 1 / self.information
        if trials:
            fourth -= 6 / self.fit.design.w
        sd = math.sqrt(float(np.maximum(fourth, 0.0).sum()))
        above = (self.pearson / dispersion - 1) * self.free / sd if sd > 0 and self.free else 0.0
        return above, math.sqrt((1 + 10 / n) * (2 * math.log(100) + math.log1p(n / 10)))

    def bias(self, family: str) -> Array:
        r"""Return the first-order bias :math:`\sum xhJ^{-1}u` of the estimate at dispersion 1.

        :math:`x = m - \frac12` for shares and :math:`-\frac12` for counts, half the skewness.
        """
        half = self.mean - 0.5 if family == "binomial" else np.full(len(self.mean), -0.5)
        pushed = matmul(half * self.leverage, self.fit.design.u)
        return np.asarray(matmul(self.fit.inverse, pushed))

    @cached_property
    def shared(self) -> float:
        """Degrees of freedom of the average dispersion."""
        information, square = self.information, self.pull**2
        design = float(information.sum()) ** 2 / float(information @ information)
        return min(float(self.free), design, float(self._label_freedom(square[:, None])[0]))

    def spread(self, b: Array) -> Spread:
        """Return the variance of the score along each direction."""
        step = max(1, ENTRIES // max(len(self.pull), 1))
        parts = [self._spread(b[at : at + step]) for at in range(0, max(len(b), 1), step)]
        return Spread(*map(np.concatenate, zip(*parts, strict=True)))

    def _spread(self, b: Array) -> Spread:
        information, one = self.information[:, None], 1 - self.leverage[:, None]
        c2 = matmul(self.fit.design.u, matmul(self.fit.inverse, b.T)) ** 2
        q, t = c2 * information, c2 * self.pull[:, None] ** 2 / one
        v0, robust = q.sum(axis=0), (t / one).sum(axis=0)
        design = self._design_freedom(q, v0)
        freedom = np.minimum(np.minimum(design, self._label_freedom(t)), self.free)
        pooled = design < FEW
        wide = np.maximum(robust, TWICE * self.average * v0)
        shared = np.full_like(v0, self.shared)
        return Spread(v0, np.maximum(robust, self.average * v0), freedom, pooled, wide, shared)

    def _design_freedom(self, q: Array, v0: Array) -> Array:
        r"""Return Bell and McCaffrey's degrees of freedom, or a bound that is near enough.

        They are :math:`v_0^2/(\sum q^2 + \sum_{i\ne j}(K_{ij})^2)`. With
        :math:`a = q/(1 - h)` the second sum is at most :math:`\max a\sum ah`, and small where rows
        are many.
        """
        h = self.leverage
        a = q / (1 - h)[:, None]
        square = (q * q).sum(axis=0)
        least = square + a.max(axis=0, initial=0.0) * (h @ a)
        far = least > NEARLY * square
        if far.any():
            root = np.sqrt(self.information)[:, None] * matmul(self.fit.design.u, self._half)
            for i in np.flatnonzero(far):
                K = matmul((root * a[:, i : i + 1]).T, root)
                own = float(((a[:, i] * h) ** 2).sum())
                least[i] = square[i] + max(float(np.sum(K * K)) - own, 0.0)
        return np.divide(v0 * v0, least, np.full_like(v0, math.inf), where=least > 0)

    @cached_property
    def _half(self) -> Array:
        """A square root of the inverse information."""
        return np.asarray(self.fit.basis / np.sqrt(self.fit.values))

    def _label_freedom(self, t: Array) -> Array:
        """Return degrees of freedom of sums of squares, from how unequal these are.

        Without residuals there are none, unless the variance has a lower bound.
        """
        total, square = t.sum(axis=0), (t * t).sum(axis=0)
        none = np.full_like(total, math.inf if self.least else 0.0)
        return np.asarray(KURTOSIS * np.divide(total * total, square, none, where=square > 0))

    def extra(self, trials: bool) -> float:
        r"""Return the variance between rows that new labels have, a little more than estimated.

        Of counts the relative variance :math:`\alpha` of their means, of shares the correlation
        :math:`\rho` of trials of a row: Pearson's square, each row's divided by
        :math:`1 + wm\alpha` or :math:`1 + (w - 1)\rho`, is one standard deviation below its mean.
        """
        n, w = len(self.pull), self.fit.design.w
        if not self.free:
            return 0.0
        square = self.pull**2 / self.information / (1 - self.leverage) * (self.free / n)
        target = max(self.free - math.sqrt(2 * n), self.free / 4)
        grows, high = (np.maximum(w - 1, 0.0), 1.0) if trials else (w * self.mean, 1e6)
        low = 0.0
        if float(square.sum()) <= target:
            return 0.0
        for _ in range(80):
            middle = (low + high) / 2
            above = float((square / (1 + grows * middle)).sum()) > target
            low, high = (middle, high) if above else (low, middle)
        return high
