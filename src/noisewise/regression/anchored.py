r"""Anchored Newton: exact FTRL for curved links at the price of a least-squares round.

All rows, old and new, are linearised at an anchor m; the estimate is one Newton step from it,
:math:`\mu = m + u,\ u = -H^{-1}\nabla F(m)`. Adding a row to F(m), its gradient and H is a rank-one
update, done by the compiled step, which also bounds the distance to the minimiser. When the bound
passes the tolerance, the anchor moves to the estimate and one pass over the history renews the
gradient, and the factor too where the old one has become too stale to travel with.
"""

import math
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..confidence import Ellipsoid
from ..glm import GLM
from ..inputs import as_contiguous
from ..kernels import adaptive_set
from ..kernels import layout as at
from ..protocols import Array
from .solver import CompiledSolver, RowSolver
from .uniform import uniform

if TYPE_CHECKING:
    from .state import FTRLState

GROWTH = 2.0  # of the count, between two bounds of the eigenvalues
NARROW = 64  # features up to which they are bounded with every factor, too


class AnchoredNewton(CompiledSolver):
    """The solver of built-in curved links."""

    def attend(self, glm: GLM, state: "FTRLState", request: float) -> None:
        """Empty the buffer, renew factor or anchor."""
        h = state.head
        early = h.count in (2 * state.dim, 4 * state.dim) or bool(h.cancelled)
        h.cancelled = 0.0
        if h.buffered == at.BUFFER:
            state.flush()
        if request == at.RENEW:
            self._renew(state)
        if early or h.pass_due:
            self._refresh(glm, state, renew=early)

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
        if h.pass_due:
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
        if h.pass_due:
            self._refresh(glm, state)

    def excess(self, state: "FTRLState") -> float:
        """Return what the step bounds it by."""
        h = state.head
        stretch, growth = adaptive_set.stretch(h), adaptive_set.growth(h)
        chord = adaptive_set.chord(adaptive_set.nearness(h, stretch, growth))
        return adaptive_set.excess(h, growth, chord)

    def uniform(self, glm: GLM, state: "FTRLState") -> tuple[Array, float]:
        """Return them from the memo of the rows met so far."""
        return uniform(glm, state)

    def local(
        self, glm: GLM, state: "FTRLState", level: float, whole: Ellipsoid
    ) -> Ellipsoid | None:
        """Return the set in the norm of the solver's own matrix."""
        h, length = state.head, glm.parameter_bound + float(np.linalg.norm(whole.centre))
        stretch, growth = adaptive_set.stretch(h), adaptive_set.growth(h)
        r = adaptive_set.local_radius(h, level, whole.radius, length, stretch, growth)
        return Ellipsoid(whole.centre, state.sound_inverse(), r) if r < math.inf else whole

    @one_thread
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
            if not exact and not h.pass_due:
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

    @one_thread
    def _renew(self, state: "FTRLState") -> None:
        """Form H from the curvatures the pass noted, invert it, and bound its least eigenvalue."""
        h = state.head
        H = h.ridge * np.eye(state.dim)
        state.rows.own_curvatures()
        for block in state.blocks():
            block.curvature[:] = block.trial
            for some in block.pieces():
                root = block.x[some] * np.sqrt(block.trial[some])[:, None]
                H += root.T @ root
        P = linalg.invert(linalg.factor(H))
        state.views.inverse[:] = P
        # the new H is at least that share of the old one; curvatures may be lost altogether
        h.leverage /= max(h.stale_low, 1e-100)
        if state.dim > NARROW:
            known = h.stale_low * h.smallest
            h.smallest = max(known, 1 / float(np.linalg.norm(P)), h.ridge)
        else:
            h.smallest = max(1 / linalg.largest_eigenvalue_bound(P), h.ridge)
            h.bounding = GROWTH * h.count
        h.stale_low = h.stale_high = 1.0
        h.stale_sum = 0.0
        h.loss = 0.0
        h.factors += 1
        self.kernels.restep(state.array)


class OwnLinkNewton(RowSolver, AnchoredNewton):
    """The solver of a user's link, evaluated in numpy; the rank-one update is compiled."""

    def learn_row(
        self, glm: GLM, state: "FTRLState", x: Array, y: float, w: float, z: float
    ) -> None:
        """Evaluate the link at the anchor, and add the row."""
        S, m = glm.score_bound, float(x @ state.views.anchor)
        inside = min(max(z, -S), S)
        loss = w * (float(glm.potential(inside)) - y * inside)
        parts = float(glm.mean(m)), float(glm.slope(m)), float(glm.potential(m))
        request = self.kernels.feed(state.array, as_contiguous(x), y, w, *parts, loss)
        if request != at.FINE:
            self.attend(glm, state, request)

    @cached_property
    def kernels(self) -> Any:
        """The module of compiled calls, that which adds an evaluated row among them."""
        return import_module("noisewise.kernels.user_link")

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
