r"""The matrix :math:`2\lambda I + \kappa\sum w x x^\top` of a state that keeps rows, inverted."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..confidence import Ellipsoid
from ..glm import GLM
from ..protocols import Array
from ..theory import radii

if TYPE_CHECKING:
    from .state import FTRLState

LARGEST_GROWTH = 1e6


@one_thread
def uniform(glm: GLM, state: "FTRLState") -> tuple[Array, float]:
    r"""Return the inverse of :math:`2\lambda I + \kappa\sum w x x^\top` and log det over 2 lambda.

    The state remembers both for the rows it was last asked about. A few new rows are added by
    rank-one updates, so asking every round stays of order d^2; more are folded by a block product
    and factored, and so is every 512th.
    """
    gram, folded, P, log_det = state.gram, state.folded, state.uniform, state.log_det
    if state.rows.merge:  # merged rows have no order, but there are few
        gram, folded, P = np.zeros_like(gram), 0, None
    new = list(unfolded(state, folded))
    count = sum(len(x) for x, _ in new)
    if P is not None and folded % 512 + count < 512 and count <= 2:
        for x, w in (pair for rows, weights in new for pair in zip(rows, weights, strict=True)):
            gram = gram + np.outer(w * x, x)
            if P is None:
                continue
            k = P @ x
            growth = glm.min_slope * w * float(x @ k)
            if 0 <= growth <= LARGEST_GROWTH:
                P = P - np.outer(glm.min_slope * w / (1 + growth) * k, k)
                log_det += math.log1p(growth)
            else:  # too many digits would be lost
                P = None
    elif count:
        P = None
        for x, w in new:
            root = x * np.sqrt(w)[:, None]
            gram = gram + root.T @ root
    if P is None:
        ridge = state.head.ridge
        P, log_det = linalg.safe_inverse(glm.min_slope * gram + ridge * np.eye(state.dim), ridge)
        log_det -= state.dim * math.log(ridge)
    state.remember(gram=gram, folded=folded + count, uniform=P, log_det=log_det)
    return P.copy(), log_det


def local_form(
    glm: GLM, state: "FTRLState", level: float, whole: Ellipsoid, G: Array, gap: float
) -> Ellipsoid:
    r"""Return the set in the norm of :math:`2\lambda I + cG`, G the curvature at the estimate.

    ``gap`` bounds the distance of the estimate from the minimiser.
    """
    R, smallest = state.head.longest, 1 / linalg.largest_eigenvalue_bound(whole.inverse)
    far = glm.parameter_bound + float(np.linalg.norm(whole.centre))
    reach = R * min(far, whole.radius / math.sqrt(smallest))
    c, r = radii.localise(level, gap, glm.self_concordance or 0.0, reach, R, state.ridge, G)
    H = c * G + 2 * state.ridge * np.eye(state.dim)
    return Ellipsoid(whole.centre, linalg.invert(linalg.factor(H)), r)


def unfolded(state: "FTRLState", folded: int) -> Iterator[tuple[Array, Array]]:
    """Yield features and weights of the rows that are not in the Gram matrix yet."""
    passed = 0
    for block in state.blocks():
        new = slice(max(folded - passed, 0), None)
        passed += len(block.x)
        if folded < passed:
            yield block.x[new], block.weight[new]
