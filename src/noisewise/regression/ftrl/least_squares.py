"""Least squares: the identity link, by recursive updates and a Gram matrix instead of a history."""

import math
from typing import TYPE_CHECKING

import numpy as np

from ...kernels.glm import adaptive_set, layout
from ...kernels.glm.adaptive_set import EPS
from ...model.glm import GLM
from ...numerics import linalg
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from .solver import CompiledSolver, Prior

if TYPE_CHECKING:
    from .state import FTRLState

RENEWAL = 8192  # rows after which the factor is recomputed


class LeastSquares(CompiledSolver):
    """Recursive least squares; rows, weighted already, go from the buffer into the Gram matrix."""

    keeps_rows = False

    def handle_request(self, glm: GLM, state: "FTRLState") -> None:
        """Fold a full buffer, and every so many rows renew the factor too."""
        h, before = state.head, state.folded // RENEWAL
        _fold(state)
        if h.due == layout.FACTOR or state.folded // RENEWAL > before:
            _refactor(state)
        h.due = layout.FINE

    @one_thread
    def solve(self, glm: GLM, state: "FTRLState") -> None:
        """Fold the buffer and renew the factor."""
        _fold(state)
        _refactor(state)

    rebuild = solve

    def move_ridge(self, glm: GLM, state: "FTRLState", ridge: float) -> None:
        """Solve with another ridge; what was played costs the same, the minimum does not."""
        before = state.theta
        state.head.ridge = ridge
        self.solve(glm, state)
        state.head.played += 0.5 * (before - state.theta) @ state.views.gradient

    def with_model(self, fresh: "FTRLState", glm: GLM, state: "FTRLState") -> "FTRLState":
        """Return a copy with the ridge of the fresh state; what was played stays as it was."""
        moved = state.copy()
        self.move_ridge(glm, moved, fresh.head.ridge)
        return moved

    @one_thread
    def gap(self, state: "FTRLState") -> float:
        """Return the gap as measured now, with an allowance for rounding."""
        theta, h, H = state.theta, state.head, self.hessian(state)
        gradient = H @ theta + state.views.gradient
        total = h.total + h.curved * np.linalg.norm(theta)
        blur = EPS * (state.dim + np.sqrt(state.count)) * total
        P, _ = linalg.safe_inverse(H, h.ridge)
        return 1.1 * linalg.norm(gradient, P) + float(blur * np.sqrt(np.trace(P)))

    def slack(self, state: "FTRLState") -> float:
        """Return what rounding can make of the gap, measured only where little is left of it."""
        h, trace = state.head.values(), float(np.trace(state.inverse()))
        if not adaptive_set.trusted(h, trace):
            return self.gap(state)
        return adaptive_set.linear_gap(h, math.sqrt(state.theta @ state.theta), trace)

    def excess(self, state: "FTRLState") -> float:
        """Return the played loss less the minimum, which the step adds up itself."""
        return state.head.played

    def mixture(self, glm: GLM, state: "FTRLState", constant: float) -> float:
        """Return it in closed form: where the two ridges agree it is a log-determinant alone."""
        found = self.prior(glm, state, constant)
        pull = float(state.theta @ found.inverse @ state.views.gradient)
        move = found.ridge - state.head.ridge
        return adaptive_set.linear_mixture(constant, move, pull, found.log_det)

    def prior(self, glm: GLM, state: "FTRLState", constant: float) -> Prior:
        """Return the matrix of the rows with the mixture's ridge."""
        ridge = constant * state.dim / glm.parameter_bound**2
        c = linalg.factor(full_gram(state) + ridge * np.eye(state.dim))
        return Prior(ridge, linalg.invert(c), linalg.log_det(c) - state.dim * math.log(ridge))

    def uniform(self, glm: GLM, state: "FTRLState") -> tuple[Array, float]:
        """Return the solver's own inverse, for which this is the matrix."""
        own, base = state.sound_inverse(), state.dim * math.log(state.head.ridge)
        return own, -linalg.log_det(linalg.factor(own)) - base

    def hessian(self, state: "FTRLState") -> Array:
        """Return 2 ridge I plus the rows, recomputed."""
        return full_gram(state) + state.head.ridge * np.eye(state.dim)


def _fold(state: "FTRLState") -> None:
    """Move the buffer into the Gram matrix."""
    vars(state).update(gram=full_gram(state), folded=state.count)  # one step
    state.head.buffered = 0  # until here, `folded` says that these rows are in it


def _refactor(state: "FTRLState") -> None:
    """Factor the Gram matrix again, the buffer being empty."""
    h, v = state.head, state.views
    h.pending = 0.0
    c = linalg.factor(state.gram + h.ridge * np.eye(state.dim))
    v.step[:] = linalg.solve(c, -v.gradient)
    v.inverse[:] = linalg.invert(c)
    h.factors += 1


def full_gram(state: "FTRLState") -> Array:
    """Return the Gram matrix of all rows, those in the buffer included."""
    x = state.views.x[: int(state.head.buffered)]
    return np.asarray(state.gram + matmul(x.T, x))
