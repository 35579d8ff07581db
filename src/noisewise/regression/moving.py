"""Another ridge, other weights or units, for a state that has learnt: all else it knows stays.

All work on a copy, which takes the state's place in one step: an interrupt finds the old one.
"""

import dataclasses
import math

import numpy as np

from ..blas import matmul, one_thread
from ..glm import GLM
from ..inputs import positive
from ..kernels import layout as at
from ..protocols import Array
from .ftrl import FTRL
from .joining import note, of_rows
from .rows import Rows
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
        state.become(fresh)


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
        state.become(fresh)


@one_thread
def rescaled(glm: GLM, state: FTRLState, factors: Array) -> FTRLState:
    """Return the state of the same rows with each feature times its factor; curved links only.

    The anchor moves to the same scores, a pass there and one Newton step follow, and more where the
    gap is too large. A feature whose factor is 0 must be 0 in all rows.
    """
    with Session(glm, state):
        rows = Rows(state.dim, state.rows.merge)
        for block in state.rows:
            rows.extend(block.x * factors, block.numbers[:, : len(block.x)])
        blank = np.zeros_like(state.gram)
        fresh = dataclasses.replace(
            state, array=state.array.copy(), rows=rows, gram=blank, folded=0, uniform=None
        )
        theta = np.divide(state.theta, factors, out=np.zeros(state.dim), where=factors > 0)
    h, v = fresh.head, fresh.views
    v.x[: int(h.buffered)] *= factors
    v.anchor[:], v.step[:] = theta, 0.0
    h.residual = h.longest = h.total = h.curved = 0.0
    for block in fresh.blocks():
        length = np.sqrt(np.vecdot(block.x, block.x))
        pull = np.abs(block.weight * glm.mean(block.x @ theta) - block.pull) + np.abs(block.pull)
        h.longest = max(h.longest, float(length.max()))
        h.total += float(length @ pull)
        h.curved += float(block.curvature @ length**2)
    fresh.solver.rebuild(glm, fresh)
    h.status = at.FINE
    return fresh


def transformed(ftrl: FTRL, state: FTRLState, to: Array, back: Array) -> FTRLState:
    """Return the state of rows whose first features x are replaced by ``x @ to``; curved links.

    The estimate's become ``theta @ back``, with which scores are the same. Other features stay.
    """
    glm, k = ftrl.glm, len(to)

    def changed(x: Array, by: Array) -> Array:
        return np.concatenate([matmul(x[..., :k], by), x[..., k:]], axis=-1)

    with Session(glm, state):
        rows = [(changed(each.x, to), each.numbers[:, : len(each.x)]) for each in state.blocks()]
        theta = changed(state.theta, back)
    fresh, old = ftrl.start(len(theta)), state.head
    note(fresh, [old])
    h = fresh.head
    h.longest = max((math.sqrt(float(np.vecdot(x, x).max())) for x, _ in rows), default=0.0)
    h.played, h.scale, h.passes, h.factors = old.played, old.scale, old.passes, old.factors
    return of_rows(glm, fresh, rows, [], theta)


@one_thread
def stretch(glm: GLM, state: FTRLState, direction: Array, factor: float) -> None:
    """Multiply the part of all rows along a unit vector by a factor of at most 1, in place.

    Other features are those behind the vector's. An interrupt leaves the state torn: `rescaled` and
    `transformed` work on copies.
    """
    if factor == 1:
        return
    with Session(glm, state):
        e = np.zeros(state.dim)
        e[: len(direction)] = direction
        part = np.flatnonzero(e)
        for block in state.blocks():
            if len(part) == 1:
                block.x[:, part] *= factor
            else:
                block.x[:] += np.outer((factor - 1) * (block.x @ e), e)
        state.remember(gram=np.zeros_like(state.gram), folded=0, uniform=None)
        state.solver.stretch(glm, state, e, factor)


def rebound(glm: GLM, state: FTRLState) -> None:
    """Let played scores be clipped at the model's score bound from now on; identity link only."""
    with Session(glm, state):
        state.head.bound = glm.score_bound
