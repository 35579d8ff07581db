r"""Damped Newton on :math:`L(\mu) = \lambda\|\mu\|^2 + \sum w\,(m(x\cdot\mu) - y\,x\cdot\mu)`.

The readable, exact way: every step is a pass over all rows. The objective is once differentiable
with a Lipschitz gradient (the extended link has kinks in its slope), so each step is guarded by
Armijo's rule: undamped steps diverge when weights span four orders of magnitude.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..glm import GLM
from ..protocols import Array
from .rows import Block
from .state import EPS, FTRLState


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


@one_thread
def visit(glm: GLM, ridge: float, blocks: Iterable[Block], theta: Array) -> Point:
    """Return value, gradient and curvature (without the ridge's) of the objective."""
    d, count = len(theta), 0
    length = float(np.linalg.norm(theta))
    value, size, blur = ridge * length**2, ridge * length**2, 2 * ridge * length
    gradient = 2 * ridge * theta
    curvature = np.zeros((d, d))
    for rows, numbers, n in blocks:
        x, w, wy = rows[:n], numbers[0, :n], numbers[1, :n]
        z = x @ theta
        potential, pull = w * glm.potential(z), wy * z
        mean, slope = w * glm.mean(z), w * glm.slope(z)
        value += float((potential - pull).sum())
        gradient += x.T @ (mean - wy)
        curvature += x.T @ (slope[:, None] * x)
        reach = np.sqrt(np.einsum("ij,ij->i", x, x))
        size += float((np.abs(potential) + np.abs(pull)).sum())
        blur += float(reach @ (np.abs(mean) + np.abs(wy) + slope * reach * length))
        count += n
    spread = EPS * (d + np.sqrt(count))
    return Point(theta, value, gradient, curvature, spread * size, spread * blur)


@one_thread
def minimise(
    glm: GLM, ridge: float, blocks: list[Block], theta: Array, inverse: Array, tolerance: float = 0
) -> tuple[Point, float]:
    r"""Return the minimiser, started at ``theta``, and a bound on its distance from the exact one.

    ``inverse`` is the inverse of :math:`\underline H`. The objective is 1-strongly convex in that
    norm, so the distance is at most :math:`\|\nabla L\|_{\underline H^{-1}}`. Stops when that is
    rounding error, or below ``tolerance``.
    """

    def excess(point: Point) -> float:
        return linalg.norm(point.gradient, inverse)

    stretch = float(np.sqrt(np.trace(inverse)))  # ||v||_inverse <= stretch ||v||
    here = visit(glm, ridge, blocks, theta)
    for _ in range(200):
        left = excess(here)
        if left <= max(stretch * here.blur, tolerance - stretch * here.blur):
            break
        H = here.curvature + 2 * ridge * np.eye(len(theta))
        step = -linalg.solve(linalg.factor(H), here.gradient)
        decrement = -float(here.gradient @ step)
        s = 1.0
        while s > 1e-12:
            there = visit(glm, ridge, blocks, here.theta + s * step)
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


@one_thread
def learn(glm: GLM, state: FTRLState, x: Array, y: float, w: float, z: float) -> None:
    """Learn one row of played score ``z`` and minimise anew: exact FTRL, a pass or more per round.

    The row enters by way of the buffer, so that one assignment makes it learnt.
    """
    v, S = state.views, glm.score_bound
    inside = min(max(z, -S), S)
    v.x[0], v.numbers[:, 0] = x, (w, w * y, 0.0, 0.0)
    h = state.head.copy()
    h.played += w * (float(glm.potential(inside)) - y * inside)
    h.count += 1
    h.buffered = 1
    h.curved += glm.min_slope * w * float(x @ x)
    h.heaviest = max(h.heaviest, w)
    h.longest = max(h.longest, math.sqrt(x @ x))
    state.head.become(h)
    state.flush()
    state.gram += np.outer(w * x, x)
    renew(glm, state)


def rebuild(glm: GLM, state: FTRLState) -> None:
    """Compute anew what follows from the rows."""
    state.gram[:] = sum((x[:n].T @ (numbers[0, :n, None] * x[:n]) for x, numbers, n in state.rows),
                        np.zeros_like(state.gram))  # fmt: skip
    renew(glm, state)


def renew(glm: GLM, state: FTRLState) -> None:
    """Invert the uniform matrix of the rows in the Gram matrix, and minimise."""
    h = state.head
    H = glm.min_slope * state.gram + h.ridge * np.eye(state.dim)
    state.views.inverse[:] = linalg.safe_inverse(H, h.ridge)[0]
    solve(glm, state, h.tolerance)


def solve(glm: GLM, state: FTRLState, tolerance: float = 0.0) -> None:
    """Minimise from the current estimate; ``state.views.inverse`` is that of the uniform matrix."""
    h, v = state.head, state.views
    best, gap = minimise(glm, state.ridge, list(state.rows), v.anchor, v.inverse, tolerance)
    v.anchor[:] = best.theta
    v.gradient[:] = best.gradient
    h.passes += 1
    h.value, h.gap, h.step_norm = best.value, gap, gap
