"""The practical index: the curvature at the estimate, and a ridge that follows its norm."""

from dataclasses import dataclass, replace

import numpy as np

from ...inputs import dimension
from ...kernels.glm.layout import LARGEST
from ...kernels.policies.policy_params import GROWTH
from ...model.glm import GLM
from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array
from ...regression.ftrl.moving import move_ridge
from ...regression.ftrl.sets import curvature_inverse
from .guaranteed_index import GuaranteedIndex
from .optimism_state import OptimismState


@dataclass(frozen=True)
class PracticalIndex(GuaranteedIndex):
    """The estimated score and a bonus, as `FTRLUCB` says; without ``ridge`` that one moves.

    The sets are those of the adaptive radius, and not used.
    """

    ellipsoids = 0

    def start(self, dim: int) -> OptimismState:
        """Make the state of a fresh learner."""
        if self.ridge is not None:
            return super().start(dim)
        norm = self.glm.parameter_bound
        state = replace(self, ridge=self._ridge(dimension(dim), norm)).start(dim)
        state.params[0].norm = norm
        return state

    def first_ridge(self, dim: int, place: int) -> float | None:
        """Return the ridge as it is, or None where it moves."""
        return self.ridge

    def _ridge(self, dim: int, norm: float) -> float:
        return max(dim * self.gain / (2 * norm**2), 1 / LARGEST)  # less is no ridge to compute with

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the index of every arm, the arms being checked."""
        return matmul(x, state.theta) + self.scale * bonus(self.glm, self.gain, state, x)

    def choose(self, state: OptimismState, arms: Array) -> int:
        """Return the best arm by the kernels; -1 where they do not serve or the arms are bad."""
        kernels, (theta, inverse), s = state.kernels, state.estimate, state.numbers[0]
        if kernels is None:
            return -1
        if arms is state.fixed.arms:
            return int(kernels.best_practical(theta, state.fixed.own, s, arms))
        return int(kernels.choose_practical(theta, inverse, s, arms))

    def learn_compiled(self, state: OptimismState, place: int, x: Array, y: float, w: float) -> int:
        """Learn a reward by the kernels; return their status."""
        kernels, (theta, inverse), fixed = state.kernels, state.estimate, state.fixed
        assert kernels is not None
        return kernels.learn_practical(
            state.layers[0].array, state.numbers[0], theta, inverse, x, y, w, fixed.arms, fixed.own
        )

    def renew(self, state: OptimismState, place: int) -> None:
        """Bring ridge, estimate and inverse up to date with the solver."""
        layer, (centre, inverse) = state.layers[0], state.estimate
        length = float(np.linalg.norm(layer.theta))
        if length > GROWTH * state.norm:  # infinite where the ridge stays
            self._move(state, length)
        centre[:] = layer.theta
        inverse[:] = curvature_inverse(self.glm, layer)

    def rebound(self, state: OptimismState) -> None:
        """Let ridge and state follow another bound on the parameter."""
        if self.ridge is None:
            length = float(np.linalg.norm(state.theta))
            self._move(state, max(self.glm.parameter_bound, length))
        super().rebound(state)

    def _move(self, state: OptimismState, norm: float) -> None:
        """Set N of the moving ridge."""
        state.params[0].norm = norm
        move_ridge(self.glm, state.layers[0], self._ridge(state.dim, norm))


def bonus(glm: GLM, gain: float, state: OptimismState, x: Array) -> Array:
    """Return what the practical index adds to the estimated score of every arm."""
    P = curvature_inverse(glm, state.layers[0])
    h = linalg.forms(x, P)
    return np.sqrt(gain * h * (3 + np.log1p(state.curvature * h)))
