r"""The range of a score over a sublevel set of the loss, which is convex.

At the largest :math:`b\cdot\theta` with :math:`L(\theta) \le l` the gradient is
:math:`\lambda b`. For every :math:`\lambda > 0` and every :math:`\theta` of the set
:math:`b\cdot\theta \le [l - \min(L - \lambda b\cdot)]/\lambda`, so that a multiplier which is a
little off gives a bound which is a little too wide, and never too narrow.
"""

import math

import numpy as np

from .. import linalg
from ..blas import matmul, one_thread
from ..protocols import Array
from .maximum_likelihood import Estimate

STEPS = 100
VANISHED = 1e-8  # of the first multiplier: the loss does not grow along b any more


@one_thread
def bounds(fit: Estimate, b: Array, height: float) -> tuple[Array, Array]:
    """Return the least and largest score of each direction over L <= min L + ``height``."""
    upper = np.where(b.any(axis=1), math.inf, 0.0)
    lower = -upper
    if math.isfinite(height) and height >= 0:
        for i in np.flatnonzero(upper):
            lower[i], upper[i] = -_largest(fit, -b[i], height), _largest(fit, b[i], height)
    return lower, upper


def _largest(fit: Estimate, b: Array, height: float) -> float:
    """Return the largest score along one direction, by Newton's method for both conditions."""
    design, beta, scores = fit.design, fit.beta, fit.scores
    first, rise = 0.0, 0.0
    for _ in range(STEPS):
        g, H = design.gradient(scores), design.curvature(scores)
        try:
            c = linalg.factor(H)
        except np.linalg.LinAlgError:  # flat along something
            return math.inf
        Hb, Hg = linalg.solve(c, b), linalg.solve(c, g)
        form = float(b @ Hb)
        # of the quadratic model, the multiplier at which it reaches the level
        ahead = 2 * (height - rise) + float(g @ Hg)
        lam = math.sqrt(max(ahead, 0.0) / form) if form > 0 else 0.0
        first = first or lam
        if not lam > VANISHED * first:
            return math.inf
        step = lam * Hb - Hg
        miss = float(step @ H @ step)
        if miss <= 1e-10 * height and abs(rise - height) <= 1e-6 * height:
            return float(b @ beta) + (height - rise + miss) / lam
        along, size = matmul(design.u, step), 1.0
        while (
            reached := design.rise(scores + size * along, fit.scores)
        ) > 2 * height and size > 1e-60:
            size /= 2
        beta, scores, rise = beta + size * step, scores + size * along, reached
    return math.inf
