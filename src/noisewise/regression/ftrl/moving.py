"""Another ridge or other weights for a state that has learnt: all else it knows stays.

All work on a copy, which takes the state's place in one step: an interrupt finds the old one.
"""

from ...inputs import positive
from ...model.glm import GLM
from ...numerics.blas import one_thread
from .solver import Session
from .state import FTRLState


@one_thread
def move_ridge(glm: GLM, state: FTRLState, ridge: float) -> None:
    """Make the state that of the same rows under another ridge."""
    new = 2 * positive("ridge", ridge)
    with Session(glm, state):
        fresh = state.copy()
        fresh.uniform = None
        fresh.solver.move_ridge(glm, fresh, new)
        state.copy_from(fresh)


@one_thread
def reweigh(glm: GLM, state: FTRLState, factor: float) -> None:
    """Make the state that of the same rows with all weights times ``factor``; identity link only.

    What was played costs ``factor`` times as much; the minimum is half the gradient at zero times
    the estimate.
    """
    c = positive("factor", factor)
    with Session(glm, state):
        fresh = state.copy()
        h, v, solve = fresh.head, fresh.views, fresh.solver.solve
        solve(glm, fresh)  # all rows into the Gram matrix
        played = h.played + 0.5 * fresh.theta @ v.gradient
        fresh.gram *= c
        v.gradient *= c
        h.heaviest, h.squares = c * h.heaviest, c * h.squares
        h.total, h.curved = c * h.total, c * h.curved
        solve(glm, fresh)
        h.played = c * played - 0.5 * fresh.theta @ v.gradient
        state.copy_from(fresh)


@one_thread
def rebound(glm: GLM, state: FTRLState) -> None:
    """Let played scores be clipped at the model's score bound from now on; identity link only."""
    with Session(glm, state):
        state.head.bound = glm.score_bound
