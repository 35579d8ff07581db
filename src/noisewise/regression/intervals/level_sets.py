r"""The range of a score over a sublevel set of the loss, which is convex.

At the largest :math:`b\cdot\theta` with :math:`L(\theta) \le l` the gradient is
:math:`\lambda b`. For every :math:`\lambda > 0` and every :math:`\theta` of the set
:math:`b\cdot\theta \le [l - \min(L - \lambda b\cdot)]/\lambda`, so that a multiplier which is a
little off gives a bound which is a little too wide, and never too narrow.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array
from .candidate_mixture import growth
from .maximum_likelihood import WIDE, Estimate

STEPS = 100
# shares of the height: what a bound may be too wide by, and how far the point may be from the
# boundary, of which the square matters
WIDER, BESIDE = 1e-8, 1e-3
VANISHED = 1e-8  # of the first multiplier: the loss does not grow along b any more


@one_thread
def bounds(fit: Estimate, b: Array, height: float) -> tuple[Array, Array]:
    """Return the least and largest score of each direction over L <= min L + ``height``."""
    upper = np.where(b.any(axis=1), math.inf, 0.0)
    lower = -upper
    if not (math.isfinite(height) and height >= 0):
        return lower, upper
    if fit.design.rank > WIDE:
        if fit.exists:
            r = growth(fit).inverse(height)
            half = r * np.sqrt(linalg.forms(b, fit.inverse))
            middle = b @ fit.beta
            lower, upper = middle - half, middle + half
    else:
        start = _Point(fit, fit.beta, fit.scores, 0.0)
        for i in np.flatnonzero(upper):
            lower[i], upper[i] = -_largest(start, -b[i], height), _largest(start, b[i], height)
    return lower, upper


@dataclass(eq=False)
class _Point:
    """A parameter, with the loss near it."""

    fit: Estimate
    beta: Array
    scores: Array
    rise: float

    def __post_init__(self) -> None:
        self.g, self.H = self.fit.design.derivatives(self.scores)
        try:
            self.factor: Array | None = linalg.factor(self.H)
        except np.linalg.LinAlgError:  # flat along something
            self.factor = None

    def moved(self, step: Array, highest: float) -> "_Point":
        """Return the point a step further, or less if the loss rose too much."""
        along, size = self.fit.design.u @ step, 1.0
        while (rise := self.fit.rise(self.scores + size * along)) > highest and size > 1e-60:
            size /= 2
        return _Point(self.fit, self.beta + size * step, self.scores + size * along, rise)


def _largest(point: _Point, b: Array, height: float) -> float:
    """Return the largest score along one direction, by Newton's method for both conditions."""
    first = 0.0
    for _ in range(STEPS):
        if point.factor is None:
            return math.inf
        Hb, Hg = linalg.solve(point.factor, np.column_stack([b, point.g])).T
        with np.errstate(over="ignore", invalid="ignore"):  # where the loss is nearly flat
            form = float(b @ Hb)
            # of the quadratic model, the multiplier at which it reaches the level
            ahead = 2 * (height - point.rise) + float(point.g @ Hg)
        lam = math.sqrt(max(ahead, 0.0) / form) if form > 0 and ahead < math.inf else 0.0
        first = first or lam
        if not lam > VANISHED * first:
            return math.inf
        step = lam * Hb - Hg
        miss = abs(float(step @ point.H @ step))  # a negative one is rounding, where H is singular
        if miss <= WIDER * height and abs(point.rise - height) <= BESIDE * height:
            return float(b @ point.beta) + (height - point.rise + miss) / lam
        point = point.moved(step, 2 * height)
    return math.inf
