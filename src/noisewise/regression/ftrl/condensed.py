r"""Rows that are no longer held, and the few that stand for them.

At the minimiser c of the rows, their loss L has gradient g and Hessian
:math:`G = \sum\gamma_i v_iv_i^\top`. In their place stand rows :math:`a v_i`, at most one per
feature, whose weights and labels give their loss Q the same gradient and Hessian at c. They are
short, a = R/16 with R the longest row, so that Q is nearly quadratic.

How far that can be off: with :math:`|\varphi''| \le M\varphi'`, the Hessians of L and Q change
between c and :math:`\mu = c + \delta` by factors within :math:`e^{\pm MR\|\delta\|}` and
:math:`e^{\pm Ma\|\delta\|}`. So

.. math:: \|\nabla L(\mu) - \nabla Q(\mu)\|_{G^{-1}} \le
          [h(MR\|\delta\|) + h(Ma\|\delta\|)]\,\|\delta\|_G, \quad h(t) = (e^t - 1 - t)/t,

which is of second order in :math:`\delta`, and 0 while nothing further is learnt.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...kernels.glm import layout
from ...model.glm import GLM
from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array
from ...storage.states import COUNT, NONNEGATIVE, check_fields
from ...support.printing import OneLine

if TYPE_CHECKING:
    from .state import FTRLState

SHORT = 1 / 16


@dataclass(eq=False, repr=False)
class Condensed(OneLine):
    """What is known of ``count`` rows for which the first ``rows`` of a history stand.

    ``centre`` is their minimiser, where they have that ``curvature``, ``gram`` their weighted Gram
    matrix, ``longest`` the length of the longest and ``total`` the size of the gradient's terms.
    """

    count: int
    rows: int
    centre: Array
    curvature: Array
    gram: Array
    longest: float
    total: float

    def __post_init__(self) -> None:
        d = np.size(self.centre)
        check_fields(self, count=COUNT, rows=COUNT, longest=NONNEGATIVE, total=NONNEGATIVE)
        check_fields(self, centre=(d,), curvature=(d, d), gram=(d, d))
        if self.rows > min(d, self.count):
            raise ValueError(f"Condensed.rows is {self.rows}, more than features or rows learnt")

    @property
    def spared(self) -> int:
        """How many rows fewer are held than were learnt."""
        return self.count - self.rows

    def departure(self, concordance: float, theta: Array) -> float:
        """Return the bound above at ``theta``, M being ``concordance``."""
        change = theta - self.centre
        t = concordance * self.longest * float(np.linalg.norm(change))
        return (_tail(t) + _tail(SHORT * t)) * linalg.norm(change, self.curvature)


def _tail(t: float) -> float:
    """Return (e^t - 1 - t)/t."""
    if t > 300:
        return math.inf
    return t * (0.5 + t / 6 * (1 + t / 3)) if t < 1e-2 else (math.expm1(t) - t) / t


@one_thread
def standing_rows(glm: GLM, found: Condensed, gradient: Array) -> tuple[Array, Array]:
    """Return rows, and their weights and weighted labels; ``found.rows`` is their number."""
    values, vectors = linalg.spectrum(found.curvature)
    largest = np.argsort(values)[::-1][: found.rows]
    a = SHORT * found.longest
    v, curvature = vectors[:, largest].T, values[largest] / a**2
    x = np.ascontiguousarray(a * v)
    z = x @ found.centre
    w = curvature / glm.slope(z)
    pull = w * glm.mean(z) - v @ gradient / a
    return x, np.array([w, pull])


def gap(state: "FTRLState") -> float:
    r"""Return a bound on the distance from the minimiser over all rows learnt.

    F is 1-strongly convex in the norm of :math:`\underline H`. The solver's H is at most
    :math:`e^{Ma\|m - c\|}/\text{low}` times :math:`(K/\kappa)\underline H`, m being the anchor and
    low its ratio of curvatures. So the distance is at most :math:`\sqrt{K/\kappa}` times the
    residual of the rows held, with the root of that factor, plus the departure of those they stand
    for. Infinite where M is not known and the estimate has moved.
    """
    h, theta, known = state.head, state.theta, state.condensed
    if h.code == layout.EXACT:
        moved = any((theta != each.centre).any() for each in known)
        return math.inf if moved else h.spread * h.gap
    anchor = state.views.anchor
    far = max(each.longest * float(np.linalg.norm(anchor - each.centre)) for each in known)
    t = SHORT * h.concordance * far
    if t > 300:
        return math.inf
    root = math.sqrt(math.exp(t) / h.stale_low)
    departure = sum(each.departure(h.concordance, theta) for each in known)
    return h.spread * (root * h.residual + departure) + root * h.blur


def refuse(state: "FTRLState", what: str) -> None:
    """Raise if rows that ``what`` needs are no longer held."""
    if state.condensed:
        count = sum(each.count for each in state.condensed)
        raise ValueError(
            f"{what} needs all rows, and this state holds a summary of {count} of them; pass "
            "radius='adaptive' (for bounded noise 'freedman' or 'self-normalised') with anytime "
            "and simultaneous intervals, or learn the rows with FTRL.update"
        )
