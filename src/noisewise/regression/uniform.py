r"""The matrix :math:`2\lambda I + \kappa\sum w x x^\top` of a state that keeps rows, inverted."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..glm import GLM
from ..protocols import Array

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
        H = glm.min_slope * gram + state.head.ridge * np.eye(state.dim)
        P, log_det = linalg.safe_inverse(H, state.head.ridge)
        log_det -= state.dim * math.log(state.head.ridge)
    state.remember(gram=gram, folded=folded + count, uniform=P, log_det=log_det)
    return P.copy(), log_det


def unfolded(state: "FTRLState", folded: int) -> Iterator[tuple[Array, Array]]:
    """Yield features and weights of the rows that are not in the Gram matrix yet."""
    passed = 0
    for block in state.blocks():
        new = slice(max(folded - passed, 0), None)
        passed += len(block.x)
        if folded < passed:
            yield block.x[new], block.weight[new]
