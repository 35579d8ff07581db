r"""Damped Newton on :math:`L(\mu) = \lambda\|\mu\|^2 + \sum w\,(m(x\cdot\mu) - y\,x\cdot\mu)`.

The readable, exact way: every step is a pass over all rows. The objective is once differentiable
with a Lipschitz gradient (the extended link has kinks in its slope), so each step is guarded by
Armijo's rule: undamped steps diverge when weights span four orders of magnitude.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ...confidence import Ellipsoid
from ...kernels.glm.adaptive_set import EPS
from ...kernels.glm.certificate import note_label, note_row
from ...model.glm import GLM
from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array
from ...theory import radii
from ..history import Block
from .solver import RowSolver

if TYPE_CHECKING:
    from .state import FTRLState


@dataclass(eq=False)
class Point:
    """What one pass over the rows finds at ``theta``.

    ``noise`` and ``blur`` bound, to first order, the rounding errors of ``value`` and of the
    Euclidean length of ``gradient``.
    """

    theta: Array
    value: float
    gradient: Array
    curvature: Array
    noise: float
    blur: float


AnyPoint = TypeVar("AnyPoint", bound=Point)


@one_thread
def visit(glm: GLM, ridge: float, blocks: Iterable[Block], theta: Array) -> Point:
    """Return value, gradient and curvature (without the ridge's) of the objective."""
    d, count = len(theta), 0
    length = float(np.linalg.norm(theta))
    value, size, blur = ridge * length**2, ridge * length**2, 2 * ridge * length
    gradient = 2 * ridge * theta
    curvature = np.zeros((d, d))
    for block in blocks:
        x, w, wy = block.x, block.weight, block.pull
        z = x @ theta
        potential, pull = w * glm.potential(z), wy * z
        mean, slope = w * glm.mean(z), w * glm.slope(z)
        value += float((potential - pull).sum())
        gradient += x.T @ (mean - wy)
        half = x * np.sqrt(slope)[:, None]
        curvature += half.T @ half  # of one matrix with itself: half the price
        reach = np.sqrt(np.einsum("ij,ij->i", x, x))
        size += float((np.abs(potential) + np.abs(pull)).sum())
        blur += float(reach @ (np.abs(mean) + np.abs(wy) + slope * reach * length))
        count += len(x)
    spread = EPS * (d + np.sqrt(count))
    return Point(theta, value, gradient, curvature, spread * size, spread * blur)


@one_thread
def minimise(
    glm: GLM, ridge: float, blocks: list[Block], theta: Array, inverse: Array, tolerance: float = 0
) -> tuple[Point, float]:
    """Return the minimiser over rows that are held, as `descend` does, started at ``theta``."""

    def look(theta: Array) -> Point:
        return visit(glm, ridge, blocks, theta)

    return descend(look, look(theta), ridge, inverse, tolerance)


def descend(
    look: Callable[[Array], AnyPoint],
    here: AnyPoint,
    ridge: float,
    inverse: Array,
    tolerance: float = 0,
) -> tuple[AnyPoint, float]:
    r"""Return the minimiser, started from ``here``, and a bound on its distance from the exact one.

    ``look`` returns what a pass finds at a parameter. ``inverse`` is the inverse of
    :math:`\underline H`. The objective is 1-strongly convex in that norm, so the distance is at
    most :math:`\|\nabla L\|_{\underline H^{-1}}`. Stops when that is rounding error, or below
    ``tolerance``.
    """

    def excess(point: Point) -> float:
        return linalg.norm(point.gradient, inverse)

    stretch = float(np.sqrt(np.trace(inverse)))  # ||v||_inverse <= stretch ||v||
    for _ in range(200):
        left = excess(here)
        if left <= max(stretch * here.blur, tolerance - stretch * here.blur):
            break
        H = here.curvature + 2 * ridge * np.eye(len(inverse))
        step = -linalg.solve(linalg.factor(H), here.gradient)
        decrement = -float(here.gradient @ step)
        s = 1.0
        while s > 1e-12:
            there = look(here.theta + s * step)
            drop = here.value - there.value
            # below the rounding of the value only the gradient can tell progress
            settled = decrement <= 100 * here.noise and excess(there) < left
            if drop >= 1e-4 * s * decrement or settled:
                break
            s /= 2
        else:
            break
        here = there
    return here, excess(here) + stretch * here.blur


class ExactNewton(RowSolver):
    """Exact FTRL: a pass over all rows, or more, after each; for every link, without a kernel.

    The anchor is the estimate, and the inverse kept that of the uniform matrix.
    """

    @one_thread
    def learn_row(
        self, glm: GLM, state: "FTRLState", x: Array, y: float, w: float, z: float
    ) -> None:
        """Add a row and minimise; through the buffer, so that one assignment makes it learnt."""
        v, S = state.views, glm.score_bound
        inside = min(max(z, -S), S)
        v.x[0], v.numbers[:, 0] = x, (w, w * y, 0.0, 0.0)
        h = state.head.copy()
        h.played += w * (float(glm.potential(inside)) - y * inside)
        note_row(h, 0.0, w * y, glm.min_slope * w, 0.0, float(x @ x))
        note_label(h, y, w)
        state.head.copy_from(h)
        state.flush()
        state.gram += np.outer(w * x, x)
        self._renew(glm, state)

    def handle_request(self, glm: GLM, state: "FTRLState") -> None:
        """Do nothing: each row is finished when it is learnt."""

    @one_thread
    def rebuild(self, glm: GLM, state: "FTRLState") -> None:
        """Add up the Gram matrix, and minimise."""
        known = state.condensed
        state.gram[:] = sum((each.gram for each in known), np.zeros_like(state.gram))
        for x, w in state.unfolded(sum(each.rows for each in known)):
            state.gram += x.T @ (w[:, None] * x)
        self._renew(glm, state)

    def move_ridge(self, glm: GLM, state: "FTRLState", ridge: float) -> None:
        """Minimise with another ridge."""
        state.head.ridge = ridge
        self._renew(glm, state)

    def _renew(self, glm: GLM, state: "FTRLState") -> None:
        h = state.head
        H = glm.min_slope * state.gram + h.ridge * np.eye(state.dim)
        state.views.inverse[:] = linalg.safe_inverse(H, h.ridge)[0]
        self._minimise(glm, state, h.tolerance)

    def solve(self, glm: GLM, state: "FTRLState") -> None:
        """Minimise to rounding error."""
        self._minimise(glm, state, 0.0)

    def _minimise(self, glm: GLM, state: "FTRLState", tolerance: float) -> None:
        h, v = state.head, state.views
        best, gap = minimise(glm, state.ridge, list(state.rows), v.anchor, v.inverse, tolerance)
        v.anchor[:] = best.theta
        v.gradient[:] = best.gradient
        h.passes += 1
        h.value, h.gap, h.step_norm = best.value, gap, gap

    def excess(self, state: "FTRLState") -> float:
        """Return the difference of the two, the minimum being known to the gap."""
        h = state.head
        return h.played - h.value + 0.5 * h.step_norm * h.step_norm

    def uniform(self, glm: GLM, state: "FTRLState") -> tuple[Array, float]:
        """Return the inverse that is kept, which is computed again with every row."""
        own = state.inverse()
        return own, -linalg.log_det(linalg.factor(own)) - state.dim * math.log(state.head.ridge)

    def local(
        self, glm: GLM, state: "FTRLState", level: float, whole: Ellipsoid
    ) -> Ellipsoid | None:
        """Return the set in the norm of the curvature at the estimate, if that is known to last."""
        if glm.self_concordance is None:
            return None
        G = visit(glm, state.ridge, state.blocks(), whole.centre).curvature
        return radii.local_form(
            glm, whole, level, state.gap, state.head.longest, state.ridge, curvature=G
        )

    def curvature_inverse(self, glm: GLM, state: "FTRLState") -> Array:
        """Compute it from all rows."""
        H = visit(glm, state.ridge, state.blocks(), state.theta).curvature
        return linalg.invert(linalg.factor(H + 2 * state.ridge * np.eye(state.dim)))
