"""Anchored Newton for a user's link, in numpy, as `kernels.glm` has it for built-in ones."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...kernels.glm import layout
from ...kernels.glm.adaptive_set import EPS, chord
from ...kernels.glm.certificate import (
    calibrate,
    certify,
    finished,
    note_label,
    note_row,
    still_serves,
)
from ...model.glm import GLM
from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array
from .anchored import AnchoredNewton
from .solver import RowSolver

if TYPE_CHECKING:
    from .state import FTRLState


class Found(NamedTuple):
    """What a pass finds at a point: F with the sizes of its terms, gradient and curvatures.

    The last three are the least and largest ratio of curvatures to those in H, and Gamma squared.
    """

    value: float
    size: float
    gradient: Array
    curvature: Array
    low: float
    high: float
    stale: float


class OwnLinkNewton(RowSolver, AnchoredNewton):
    """The solver of a user's link."""

    @one_thread
    def learn_row(
        self, glm: GLM, state: "FTRLState", x: Array, y: float, w: float, z: float
    ) -> None:
        """Do what the compiled step does; an assignment of the header makes the row learnt."""
        v, h, S, m = state.views, state.head.copy(), glm.score_bound, float(x @ state.views.anchor)
        n, P, inside = int(h.buffered), state.inverse(), min(max(z, -S), S)
        k, r, c = P @ x, w * (float(glm.mean(m)) - y), w * float(glm.slope(m))
        q = float(x @ k)
        v.x[n], v.numbers[:, n] = x, (w, w * y, c, 0.0)
        note_row(h, r, w * y, c, q, float(x @ x))
        note_label(h, y, w)
        h.played += w * (float(glm.potential(inside)) - y * inside)
        h.value += w * (float(glm.potential(m)) - y * m)
        h.skew = h.concordance
        state.head.copy_from(h)
        h, due = state.head, h.due
        v.inverse[:] = P - np.outer(c / (1 + c * q) * k, k)
        v.step -= (r + c * float(x @ v.step)) / (1 + c * q) * k
        v.gradient += r * x
        h.pending, h.step_norm = 0.0, math.sqrt(max(-float(v.gradient @ v.step), 0.0))
        certify(h, float(v.step @ v.step), chord)
        h.due = max(h.due, due)
        if h.due != layout.FINE:
            self.handle_request(glm, state)

    @one_thread
    def rebuild(self, glm: GLM, state: "FTRLState") -> None:
        """Pass over the rows where the anchor is, and renew the factor."""
        state.flush()
        h = state.head
        found = _scan(glm, state, state.views.anchor)
        _accept(state, state.views.anchor, found)
        h.leverage, h.stale_low, h.smallest = 0.0, 1.0, h.ridge
        self._renew(state, found)
        h.leverage = _largest_leverage(state, state.inverse())
        _restep(state)
        if h.due != layout.FINE:
            self._refresh(glm, state)

    @one_thread
    def _refresh(self, glm: GLM, state: "FTRLState", exact: bool = False) -> None:
        h, factor = state.head, exact or state.head.due == layout.FACTOR
        for attempt in range(200):
            value = h.value
            found, kept = self._move(glm, state)
            if not kept or factor or attempt > 0:
                self._renew(state, found)
            if finished(h, attempt, value, exact):
                return

    def _move(self, glm: GLM, state: "FTRLState") -> tuple[Found, bool]:
        """Move the anchor to m + s u for the first of s = 1, 1/2, ... that lowers F enough.

        Returns what was found there, and whether the factor still serves.
        """
        h, v, s = state.head, state.views, 1.0
        _survey(state)
        while True:
            trial = v.anchor + s * v.step
            found = _scan(glm, state, trial)
            noise = EPS * (state.dim + math.sqrt(h.count)) * found.size
            wanted = h.value - 1e-4 * s * h.step_norm**2
            if s == 0 or found.value <= wanted + 4 * noise:
                break
            s = s / 2 if s > 1e-9 else 0.0
        _accept(state, trial, found)
        before = h.residual, h.score_shift, h.gap, h.step_norm
        _restep(state)
        calibrate(h, before[0])
        return found, still_serves(h, *before)

    def _renew(self, state: "FTRLState", found: Found) -> None:
        """Form H from the curvatures that a pass has found, and invert it."""
        h, rows = state.head, state.rows
        rows.curvature[0, : rows.count] = found.curvature
        P = linalg.invert(linalg.factor(self.hessian(state)))
        h.leverage /= max(h.stale_low, 1e-100)
        h.smallest = max(1 / linalg.largest_eigenvalue_bound(P), h.ridge)
        h.bounding = 2 * h.count
        h.stale_low = h.stale_high = 1.0
        h.stale_sum = h.loss = h.pending = 0.0
        h.factors += 1
        state.views.inverse[:] = P
        _restep(state)


def _scan(glm: GLM, state: "FTRLState", theta: Array) -> Found:
    """Pass over the rows at a point."""
    ridge = state.head.ridge
    state.head.passes += 1
    value = size = 0.5 * ridge * float(theta @ theta)
    gradient, curvature, ratios, stale = ridge * theta, [np.empty(0)], np.ones(1), 0.0
    for x, w, pull, old in state.rows:
        z = x @ theta
        potential, drawn = w * glm.potential(z), pull * z
        curvature.append(w * glm.slope(z))
        ratio = curvature[-1] / old
        gradient = gradient + (w * glm.mean(z) - pull) @ x
        value += float((potential - drawn).sum())
        size += float((np.abs(potential) + np.abs(drawn)).sum())
        ratios = np.array([ratios.min(), ratios.max(), ratio.min(), ratio.max()])
        stale += float(old @ (ratio - 1) ** 2)
    low, high = float(ratios.min()), float(ratios.max())
    return Found(value, size, gradient, np.concatenate(curvature), low, high, stale)


def _accept(state: "FTRLState", theta: Array, found: Found) -> None:
    """Make a point the anchor."""
    h, v = state.head, state.views
    v.anchor[:], v.gradient[:] = theta, found.gradient
    h.length, h.value, h.skew = math.sqrt(theta @ theta), found.value, h.concordance
    h.stale_low, h.stale_high, h.stale_sum = found.low, found.high, math.sqrt(found.stale)


def _restep(state: "FTRLState") -> None:
    """Apply the pending change to the inverse P, set u = -P g, and certify."""
    h, v, P = state.head, state.views, state.inverse()
    v.inverse[:], v.step[:], h.pending = P, -P @ v.gradient, 0.0
    h.step_norm = math.sqrt(max(-float(v.gradient @ v.step), 0.0))
    h.rounding = EPS / math.sqrt(max(h.ridge, h.smallest / h.spread**2))
    certify(h, float(v.step @ v.step), chord)


def _survey(state: "FTRLState") -> None:
    """Bound the eigenvalues of H from below and the leverages from above, as kernels do."""
    h = state.head
    if h.count < min(h.bounding, h.survey):
        return
    P = state.inverse()
    h.smallest = max(h.smallest, 1 / linalg.largest_eigenvalue_bound(P))
    h.bounding = 2 * h.count
    if h.count >= h.survey:
        usual = h.longest * float(np.linalg.norm(state.views.step))
        enough = (0.7 * usual / h.step_norm) ** 2 if h.step_norm > 0 else 0.0
        q = _largest_leverage(state, P, enough)
        if 0 < q < enough:
            h.leverage = min(h.leverage, q)
        h.survey = 9 * h.count


def _largest_leverage(state: "FTRLState", P: Array, enough: float = math.inf) -> float:
    """Return the largest x'Px of a row, rounded up; one that is ``enough`` ends the search."""
    most = 0.0
    for block in state.rows:
        for some in block.pieces():
            x = block.x[some]
            most = max(most, float(np.vecdot(x @ P, x).max()) * (1 + 1e-9))
            if most >= enough:
                return most
    return most
