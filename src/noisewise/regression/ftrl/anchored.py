r"""Anchored Newton: exact FTRL for curved links at the price of a least-squares round.

All rows, old and new, are linearised at an anchor m; the estimate is one Newton step from it,
:math:`\mu = m + u,\ u = -H^{-1}\nabla F(m)`. Adding a row to F(m), its gradient and H is a rank-one
update, done by the compiled step, which also bounds the distance to the minimiser. When the bound
passes the tolerance, the anchor moves to the estimate and one pass over the history renews the
gradient, and the factor too where the old one has become too stale to travel with.
"""

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from ...confidence import Ellipsoid
from ...kernels.glm import adaptive_set, layout
from ...kernels.glm.adaptive_set import chord
from ...model.glm import GLM
from ...numerics.blas import one_thread
from ...protocols import Array
from ...support.interruptible import interruptible
from .solver import CompiledSolver

if TYPE_CHECKING:
    from .state import FTRLState

LONG, WIDE = 1 << 22, 200  # numbers of a history, or features, for which a pass may take long


@cache
def _passes() -> ModuleType:
    return import_module("noisewise.kernels.glm.history_passes")


class AnchoredNewton(CompiledSolver):
    """The solver of built-in curved links."""

    def handle_request(self, glm: GLM, state: "FTRLState") -> None:
        """Empty the buffer, renew factor or anchor."""
        state.flush()
        if state.head.due > layout.FLUSH:
            self._refresh(glm, state)
        state.head.due = layout.FINE

    def rebuild(self, glm: GLM, state: "FTRLState") -> None:
        """Pass over the rows where the anchor is, and renew the factor."""
        state.flush()
        _run(_passes().rebuild, state)

    def solve(self, glm: GLM, state: "FTRLState") -> None:
        """Move the anchor until the gap is all rounding."""
        state.flush()
        if state.count:
            self._refresh(glm, state, exact=True)

    def move_ridge(self, glm: GLM, state: "FTRLState", ridge: float) -> None:
        """Change the ridge at the same anchor; passes follow while the gap is too large."""
        state.head.ridge = ridge
        self.rebuild(glm, state)

    def excess(self, state: "FTRLState") -> float:
        """Return what the step bounds it by."""
        h = state.head.values()
        stretch, growth = adaptive_set.stretch(h), adaptive_set.growth(h)
        near = chord(adaptive_set.nearness(h, stretch, growth))
        return adaptive_set.excess(h, growth, near)

    def uniform(self, glm: GLM, state: "FTRLState") -> tuple[Array, float]:
        """Return them from the memo of the rows met so far."""
        return state.lower_inverse(glm)

    def local(
        self, glm: GLM, state: "FTRLState", level: float, whole: Ellipsoid
    ) -> Ellipsoid | None:
        """Return the set in the norm of the solver's own matrix."""
        h, length = state.head.values(), glm.parameter_bound + float(np.linalg.norm(whole.centre))
        stretch, growth = adaptive_set.stretch(h), adaptive_set.growth(h)
        r = adaptive_set.local_radius(h, level, whole.radius, length, stretch, growth)
        return Ellipsoid(whole.centre, state.sound_inverse(), r) if r < math.inf else whole

    def _refresh(self, glm: GLM, state: "FTRLState", exact: bool = False) -> None:
        """Move the anchor until no pass is due (``exact``: until the gap is all rounding)."""
        _run(_passes().solve, state, exact)


@one_thread
def _run(kernel: Callable[..., None], state: "FTRLState", *options: bool) -> None:
    """Call a kernel on the rows of the history; a long one so that an interrupt is heard."""
    h, array, curvature = state.rows, state.array, state.rows.curvature
    if h.count * h.dim < LONG and h.dim <= WIDE:
        kernel(array[None], h.x, h.labels, curvature, h.count, *options)
        return
    # the thread of an interrupted call goes on writing
    array, curvature = layout.align(array.copy()), curvature.copy()
    interruptible(kernel)(array[None], h.x, h.labels, curvature, h.count, *options)
    state.array[:], h.curvature = array, curvature
