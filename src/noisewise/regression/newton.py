r"""Damped Newton on :math:`L(\mu) = \lambda\|\mu\|^2 + \sum w\,(m(x\cdot\mu) - y\,x\cdot\mu)`.

The readable, exact way: every step is a pass over all rows. The objective is once differentiable
with a Lipschitz gradient (the extended link has kinks in its slope), so each step is guarded by
Armijo's rule: undamped steps diverge when weights span four orders of magnitude.
"""

from dataclasses import dataclass

import numpy as np

from .. import linalg
from ..glm import GLM
from ..protocols import Array
from .rows import Rows

EPS = float(np.finfo(np.float64).eps)


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


def visit(glm: GLM, ridge: float, rows: Rows, theta: Array) -> Point:
    """Return value, gradient and curvature (without the ridge's) of the objective."""
    d = len(theta)
    length = float(np.linalg.norm(theta))
    value, size, blur = ridge * length**2, ridge * length**2, 2 * ridge * length
    gradient = 2 * ridge * theta
    curvature = np.zeros((d, d))
    for x, w, wy in rows:
        z = x @ theta
        potential, pull = w * glm.potential(z), wy * z
        mean, slope = w * glm.mean(z), w * glm.slope(z)
        value += float((potential - pull).sum())
        gradient += x.T @ (mean - wy)
        curvature += x.T @ (slope[:, None] * x)
        reach = np.sqrt(np.einsum("ij,ij->i", x, x))
        size += float((np.abs(potential) + np.abs(pull)).sum())
        blur += float(reach @ (np.abs(mean) + np.abs(wy) + slope * reach * length))
    spread = EPS * (d + np.sqrt(rows.count))
    return Point(theta, value, gradient, curvature, spread * size, spread * blur)


def minimise(
    glm: GLM, ridge: float, rows: Rows, theta: Array, inverse: Array
) -> tuple[Point, float]:
    r"""Return the minimiser, started at ``theta``, and a bound on its distance from the exact one.

    ``inverse`` is the inverse of :math:`\underline H`. The objective is 1-strongly convex in that
    norm, so the distance is at most :math:`\|\nabla L\|_{\underline H^{-1}}`.
    """

    def excess(point: Point) -> float:
        return linalg.norm(point.gradient, inverse)

    stretch = float(np.sqrt(np.trace(inverse)))  # ||v||_inverse <= stretch ||v||
    here = visit(glm, ridge, rows, theta)
    for _ in range(200):
        left = excess(here)
        if left <= stretch * here.blur:
            break
        H = here.curvature.copy()
        H.flat[:: len(H) + 1] += 2 * ridge
        step = -linalg.solve(linalg.factor(H), here.gradient)
        decrement = -float(here.gradient @ step)
        s = 1.0
        while s > 1e-12:
            there = visit(glm, ridge, rows, here.theta + s * step)
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
