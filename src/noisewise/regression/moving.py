"""Another ridge, or other weights, for a state that has learnt: all else it knows stays.

Both work on a copy, which takes the state's place in one step: an interrupt finds the old one.
"""

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..glm import GLM
from ..inputs import positive
from ..kernels import layout as at
from . import newton, solver
from .state import FTRLState


@one_thread
def move_ridge(glm: GLM, state: FTRLState, ridge: float) -> None:
    r"""Make the state that of the same rows under another ridge.

    At the same anchor m the gradient changes by :math:`Dm`, the value by
    :math:`\frac12D\|m\|^2` and the Hessian by :math:`DI`, :math:`D = 2\lambda' - 2\lambda`;
    rows and their curvatures do not. Passes follow while the gap is too large.
    """
    new = 2 * positive("ridge", ridge)
    with solver.Session(glm, state):
        fresh = state.copy()
        fresh.uniform = None
        _move(glm, fresh, new)
        state.become(fresh)


def _move(glm: GLM, state: FTRLState, new: float) -> None:
    h, v = state.head, state.views
    old = h.ridge
    D = new - old
    if h.code == at.EXACT:
        h.ridge = new
        newton.renew(glm, state)
        return
    before = state.theta
    if glm.linear:
        h.ridge = new
        solver.solve(glm, state)
        # what was played costs the same, the minimum -1/2 theta.(sum w y x) does not
        h.played += 0.5 * (before - state.theta) @ v.gradient
        return
    least = h.smallest
    H = new * np.eye(state.dim)  # from the rows: less D, digits of a small ridge would be lost
    for x, numbers, n in state.blocks():
        root = x[:n] * np.sqrt(numbers[2, :n])[:, None]
        H += root.T @ root
    P = linalg.invert(linalg.factor(H))
    v.inverse[:] = P
    v.gradient += D * v.anchor
    h.pending = 0.0
    h.ridge = new
    h.value += 0.5 * D * v.anchor @ v.anchor
    # H + D I >= (1 + D / least) H for D < 0, and at least the new ridge over the old
    h.leverage /= min(1.0, max(1 + D / least, new / old))
    h.smallest = max(1 / linalg.largest_eigenvalue_bound(P), h.ridge)
    state.kernels.restep(state.array)
    if h.pass_due:
        solver.refresh(glm, state)


@one_thread
def reweigh(glm: GLM, state: FTRLState, factor: float) -> None:
    """Make the state that of the same rows with all weights times ``factor``; identity link only.

    What was played costs ``factor`` times as much; the minimum is half the gradient at zero times
    the estimate.
    """
    c = positive("factor", factor)
    with solver.Session(glm, state):
        fresh = state.copy()
        h, v = fresh.head, fresh.views
        solver.solve(glm, fresh)  # all rows into the Gram matrix
        played = h.played + 0.5 * fresh.theta @ v.gradient
        fresh.gram *= c
        v.gradient *= c
        h.heaviest, h.total, h.curved = c * h.heaviest, c * h.total, c * h.curved
        solver.solve(glm, fresh)
        h.played = c * played - 0.5 * fresh.theta @ v.gradient
        state.become(fresh)


def rebound(glm: GLM, state: FTRLState) -> None:
    """Let played scores be clipped at the model's score bound from now on; identity link only."""
    with solver.Session(glm, state):
        state.head.bound = glm.score_bound
