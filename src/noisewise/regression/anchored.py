r"""Anchored Newton: exact FTRL for curved links at the price of a least-squares round.

All rows, old and new, are linearised at an anchor m; the estimate is one Newton step from it,
:math:`\mu = m + u,\ u = -H^{-1}\nabla F(m)`. Adding a row to F(m), its gradient and H is a rank-one
update, done by the compiled step, which also bounds the distance to the minimiser. When the bound
passes the tolerance, the anchor moves to the estimate and one pass over the history renews the
gradient, and the factor too where the old one has become too stale to travel with.
"""

import math
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..confidence import Ellipsoid
from ..glm import GLM
from ..inputs import as_contiguous
from ..kernels import adaptive_set
from ..kernels import layout as at
from ..kernels.adaptive_set import chord
from ..kernels.certificate import certify, note_row
from ..protocols import Array
from .solver import CompiledSolver, RowSolver
from .uniform import uniform

if TYPE_CHECKING:
    from .state import FTRLState

GROWTH = 2.0  # of the count, between two bounds of the eigenvalues
NARROW = 64  # features up to which they are bounded with every factor, and that is compiled


@cache
def _factor() -> ModuleType:
    return import_module("noisewise.kernels.factor")


class AnchoredNewton(CompiledSolver):
    """The solver of built-in curved links."""

    @one_thread
    def attend(self, glm: GLM, state: "FTRLState") -> None:
        """Empty the buffer, renew factor or anchor."""
        h, due = state.head, state.head.due
        if h.buffered == at.BUFFER:
            state.flush()
            h.due = at.FINE if due == at.FLUSH else due
        if due == at.RENEW:
            self._renew(state)
        if h.due != at.FINE:
            self._refresh(glm, state, renew=due == at.FACTOR)
        h.due = at.FINE

    @one_thread
    def rebuild(self, glm: GLM, state: "FTRLState") -> None:
        """Pass over the rows where the anchor is, and renew the factor."""
        if not state.count:
            return
        h = state.head
        self._move(glm, state, 0.0)
        h.stale_low, h.smallest = 1.0, h.ridge  # what was measured may be torn
        self._renew(state)
        h.leverage = _largest_leverage(state, state.inverse())
        self.kernels.restep(state.array)
        if h.due != at.FINE:
            self._refresh(glm, state)

    @one_thread
    def solve(self, glm: GLM, state: "FTRLState") -> None:
        """Move the anchor until the gap is all rounding."""
        if state.count:
            self._refresh(glm, state, exact=True)

    def move_ridge(self, glm: GLM, state: "FTRLState", ridge: float) -> None:
        r"""Change the ridge at the same anchor m; passes follow while the gap is too large.

        The gradient changes by :math:`Dm`, the value by :math:`\frac12D\|m\|^2` and the Hessian by
        :math:`DI`, :math:`D = 2\lambda' - 2\lambda`; rows and their curvatures do not.
        """
        h, v = state.head, state.views
        old, least, D = h.ridge, h.smallest, ridge - h.ridge
        h.ridge = ridge
        # from the rows: adding D, digits could be lost
        P = linalg.invert(linalg.factor(self.hessian(state)))
        v.inverse[:] = P
        v.gradient += D * v.anchor
        h.pending = 0.0
        h.value += 0.5 * D * v.anchor @ v.anchor
        # H + D I >= (1 + D / least) H for D < 0, and at least the new ridge over the old
        h.leverage /= min(1.0, max(1 + D / least, ridge / old))
        h.smallest = max(1 / linalg.largest_eigenvalue_bound(P), ridge)
        self.kernels.restep(state.array)
        if h.due != at.FINE:
            self._refresh(glm, state)

    def excess(self, state: "FTRLState") -> float:
        """Return what the step bounds it by."""
        h = state.head.values()
        stretch, growth = adaptive_set.stretch(h), adaptive_set.growth(h)
        near = chord(adaptive_set.nearness(h, stretch, growth))
        return adaptive_set.excess(h, growth, near)

    def uniform(self, glm: GLM, state: "FTRLState") -> tuple[Array, float]:
        """Return them from the memo of the rows met so far."""
        return uniform(glm, state)

    def local(
        self, glm: GLM, state: "FTRLState", level: float, whole: Ellipsoid
    ) -> Ellipsoid | None:
        """Return the set in the norm of the solver's own matrix."""
        h, length = state.head.values(), glm.parameter_bound + float(np.linalg.norm(whole.centre))
        stretch, growth = adaptive_set.stretch(h), adaptive_set.growth(h)
        r = adaptive_set.local_radius(h, level, whole.radius, length, stretch, growth)
        return Ellipsoid(whole.centre, state.sound_inverse(), r) if r < math.inf else whole

    def _refresh(
        self, glm: GLM, state: "FTRLState", renew: bool = False, exact: bool = False
    ) -> None:
        """Move the anchor until no pass is due (``exact``: until the gap is all rounding)."""
        h = state.head
        for attempt in range(200):
            value = h.value
            worn = self._move(glm, state) == at.FACTOR_STALE
            if worn or renew or exact or attempt > 0:
                self._renew(state)
            if not exact and h.due == at.FINE:
                return
            # what is left is rounding: of the gradient, which the gap of a link whose slopes
            # differ by many orders overstates, or of the value that guards the steps
            proved = exact or not h.calibrated
            if (proved and h.gap <= 1.01 * h.blur) or (attempt > 2 and not h.value < value):
                return

    def _move(self, glm: GLM, state: "FTRLState", s: float = 1.0) -> int:
        """Move the anchor to m + s u for the first of s, s/2, ... that lowers F enough."""
        if s:
            _survey_inverse(state)
        room = np.empty(at.SCRATCH)
        while True:
            self.kernels.propose(state.array, s, room)
            self._scan(glm, state, room)
            verdict = self.kernels.judge(state.array, s)
            if verdict != at.RETRY:
                return int(verdict)
            s = s / 2 if s > 1e-9 else 0.0

    def _scan(self, glm: GLM, state: "FTRLState", room: Array) -> None:
        """Add what `propose` leaves out, all but the buffer, to the sums of the pass.

        The curvature of each row at the trial point is noted.
        """
        for block in state.rows:
            x, numbers = block.x.reshape(-1), block.numbers.reshape(-1)
            self.kernels.scan(state.array, x, numbers, len(block.x), room)

    def _renew(self, state: "FTRLState") -> None:
        """Form H from the curvatures the pass noted, invert it, and bound its least eigenvalue."""
        G, rows = np.zeros((state.dim, state.dim)), state.rows
        rows.own_curvatures()
        for block in rows:
            block.curvature[:] = block.trial
            for some in block.pieces():
                root = block.x[some] * np.sqrt(block.trial[some])[:, None]
                G += root.T @ root
        if state.dim <= NARROW:
            _factor().renew(state.array, G)
            return
        _factor().complete(state.array, G)
        h = state.head
        P = as_contiguous(linalg.invert(linalg.factor(G + h.ridge * np.eye(state.dim))))
        least = max(h.stale_low * h.smallest, 1 / float(np.linalg.norm(P)))
        _factor().install(state.array, P, least)


class OwnLinkNewton(RowSolver, AnchoredNewton):
    """The solver of a user's link, in numpy but for what needs no link."""

    def learn_row(
        self, glm: GLM, state: "FTRLState", x: Array, y: float, w: float, z: float
    ) -> None:
        """Do what the compiled step does; an assignment of the header makes the row learnt."""
        v, h, S, m = state.views, state.head.copy(), glm.score_bound, float(x @ state.views.anchor)
        n, P, inside = int(h.buffered), state.inverse(), min(max(z, -S), S)
        k, r, c = P @ x, w * (float(glm.mean(m)) - y), w * float(glm.slope(m))
        q = float(x @ k)
        v.x[n], v.numbers[:, n] = x, (w, w * y, c, 0.0)
        note_row(h, y, w, r, c, q, float(x @ x))
        h.played += w * (float(glm.potential(inside)) - y * inside)
        h.value += w * (float(glm.potential(m)) - y * m)
        h.skew = h.concordance
        state.head.become(h)
        h, due = state.head, h.due
        v.inverse[:] = P - np.outer(c / (1 + c * q) * k, k)
        v.step -= (r + c * float(x @ v.step)) / (1 + c * q) * k
        v.gradient += r * x
        h.pending, h.step_norm = 0.0, math.sqrt(max(-float(v.gradient @ v.step), 0.0))
        certify(h, float(v.step @ v.step), chord)
        h.due = max(h.due, due)
        if h.due != at.FINE:
            self.attend(glm, state)

    def _scan(self, glm: GLM, state: "FTRLState", room: Array) -> None:
        """Add all rows: `propose` can't evaluate the link."""
        h, v = state.head, state.views
        h.trial_skew = glm.self_concordance or 0.0
        for block in state.blocks():
            x, w, wy, old = block.x, block.weight, block.pull, block.curvature
            z = x @ v.trial
            potential, pull = w * glm.potential(z), wy * z
            block.trial[:] = w * glm.slope(z)
            ratio = block.trial / old
            v.trial_gradient += (w * glm.mean(z) - wy) @ x
            h.trial_value += (potential - pull).sum()
            h.trial_size += (np.abs(potential) + np.abs(pull)).sum()
            h.trial_stale_low = min(h.trial_stale_low, ratio.min())
            h.trial_stale_high = max(h.trial_stale_high, ratio.max())
            h.trial_stale_sum += float(old @ (ratio - 1) ** 2)


def _survey_inverse(state: "FTRLState") -> None:
    """Bound the eigenvalues of H from below and the leverages from above, as they are now.

    Both only gain as rows are added. The eigenvalues are bounded again once the count has doubled.
    The largest leverage takes a product with every row: it is looked for when the count
    has grown ninefold, and no further than to a row that shows that it does not help.
    """
    h = state.head
    if h.count < min(h.bounding, h.survey):
        return
    P = state.inverse()
    h.smallest = max(h.smallest, 1 / linalg.largest_eigenvalue_bound(P))
    h.bounding = GROWTH * h.count
    if h.count >= h.survey:
        usual = h.longest * float(np.linalg.norm(state.views.step))
        enough = (0.7 * usual / h.step_norm) ** 2 if h.step_norm > 0 else 0.0
        q = _largest_leverage(state, P, enough)
        if 0 < q < enough:  # else rounding has spoilt the inverse, which is about to be renewed
            h.leverage = min(h.leverage, q)
        h.survey = 9 * h.count


def _largest_leverage(state: "FTRLState", P: Array, enough: float = math.inf) -> float:
    """Return the largest x'Px of a row, rounded up; one that is ``enough`` ends the search."""
    most = 0.0
    for block in state.blocks():
        for some in block.pieces():
            x = block.x[some]
            most = max(most, float(np.vecdot(x @ P, x).max()) * (1 + 1e-9))
            if most >= enough:
                return most
    return most
