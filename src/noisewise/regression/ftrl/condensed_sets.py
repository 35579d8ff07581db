r"""Adaptive confidence sets of states that hold summaries of rows.

What was played before the labels is not known of such rows, so the evidence is the mixture of fixed
parameters alone, with its half of the weight (`Solver.mixture`). Beside the Gram matrix, which
summaries keep, it needs F, the penalised loss of all rows, near the estimate only. F has a Hessian
between :math:`\underline H` and :math:`\overline H = 2\lambda I + K\sum w x x^\top \le
(K/\kappa)\underline H`, and the estimate lies within :math:`\Delta` (``state.gap``) of its
minimiser. With :math:`s = \sqrt{K/\kappa}\,\Delta` then

.. math:: F(\hat\mu) - \min F \le s^2/2, \qquad \|\nabla F(\hat\mu)\|_{\overline H^{-1}} \le s.
"""

import math

import numpy as np

from ...confidence import Ellipsoid
from ...model.glm import GLM
from ...protocols import Array
from ...theory import radii
from .state import FTRLState
from .sums import square


def serves(glm: GLM) -> bool:
    """Whether the slope is bounded, which the mixture over counts can't use."""
    return glm.link.family is None or glm.link.family.name != "poisson"


def mixture(glm: GLM, state: FTRLState, constant: float) -> float:
    """Return an upper bound of the mixture's loss less the minimum of F, over all rows."""
    found, theta = state.solver.prior(glm, state, constant), state.theta
    move, s = found.ridge - state.head.ridge, state.head.spread * state.gap
    if s == math.inf:
        return math.inf
    ends = abs(move) * math.sqrt(float(theta @ found.inverse @ theta))
    form = max(ends - s * math.sqrt(max(1.0, state.head.ridge / found.ridge)), 0.0) ** 2
    square = 0.5 * move * float(theta @ theta)
    return 0.5 * s * s + square - 0.5 * form + 0.5 * constant * found.log_det


def local(glm: GLM, state: FTRLState, level: float, whole: Ellipsoid) -> Ellipsoid | None:
    """Return the local form of the set, where there is one."""
    M = glm.self_concordance
    if M is None or state.gap == math.inf:
        return None
    G, worn = curvature(glm, state, M)
    gap = state.gap * math.exp(worn / 2)  # G may be below kappa times the Gram matrix by that
    return radii.local_form(glm, whole, level, gap, state.head.longest, state.ridge, curvature=G)


def curvature(glm: GLM, state: FTRLState, M: float) -> tuple[Array, float]:
    r"""Return a lower bound of the curvature at the estimate, and the largest exponent in it.

    That of a summary has changed since its centre by a factor of at least
    :math:`e^{-MR\|\hat\mu - c\|}`.
    """
    theta, G, worn = state.theta, np.zeros((state.dim, state.dim)), 0.0
    for each in state.condensed:
        t = M * each.longest * float(np.linalg.norm(theta - each.centre))
        G, worn = G + math.exp(-t) * each.curvature, max(worn, t)
    for x, w in state.unfolded(sum(each.rows for each in state.condensed)):
        G = G + square(x, w * glm.slope(x @ theta))
    return G, worn
