"""The practical index: the curvature at the estimate, and a ridge that follows its norm."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..blas import matmul
from ..confidence import Ellipsoid
from ..glm import GLM
from ..inputs import dimension
from ..kernels.policy_params import GROWTH, NORM
from ..protocols import Array
from ..regression.moving import move_ridge
from ..regression.sets import adaptive, curvature_inverse
from . import optimism_state
from .optimism_state import FixedArms, OptimismState
from .optimistic import OptimisticIndex


@dataclass(frozen=True)
class PracticalIndex(OptimisticIndex):
    """The estimated score and a bonus, as `FTRLUCB` says; without ``ridge`` that one moves.

    ``gain`` is g of the bonus; ``constant`` and ``delta`` are of the sets, which it does not use.
    """

    glm: GLM
    gain: float
    constant: float
    delta: float
    scale: float
    ridge: float | None

    compiled = True
    size: ClassVar[tuple[int, int]] = (1, 0)

    def start(self, dim: int) -> OptimismState:
        """Make the state of a fresh learner."""
        norm = self.glm.parameter_bound
        ridge = self._ridge(dimension(dim), norm) if self.ridge is None else self.ridge
        state = optimism_state.start(
            self.glm, ridge, dim, (self.constant,), 0,
            delta=self.delta, scale=self.scale, gain=self.gain,
        )  # fmt: skip
        if self.ridge is None:
            state.numbers[0, NORM] = norm
        self.renew(state)
        return state

    def _ridge(self, dim: int, norm: float) -> float:
        return dim * self.gain / (2 * norm**2)

    def renew(self, state: OptimismState, place: int = 0) -> None:
        """Bring ridge, estimate and inverse up to date with the solver."""
        layer, (centre, inverse) = state.layers[0], state.estimate
        length = float(np.linalg.norm(layer.theta))
        if length > GROWTH * state.norm:  # infinite where the ridge stays
            self.move(state, length)
        centre[:] = layer.theta
        inverse[:] = curvature_inverse(self.glm, layer)

    def move(self, state: OptimismState, norm: float) -> None:
        """Set N of the moving ridge."""
        state.numbers[0, NORM] = norm
        move_ridge(self.glm, state.layers[0], self._ridge(state.dim, norm))

    def rebound(self, state: OptimismState) -> None:
        """Let ridge and state follow another bound on the parameter."""
        if self.ridge is None:
            length = float(np.linalg.norm(state.theta))
            self.move(state, max(self.glm.parameter_bound, length))
        super().rebound(state)

    def confidence(self, state: OptimismState) -> tuple[Ellipsoid, ...]:
        """Return the sets of the adaptive radius."""
        return adaptive(self.glm, state.layers[0], self.constant, self.delta)

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the index of every arm."""
        return matmul(x, state.theta) + self.scale * bonus(self.glm, self.gain, state, x)

    def choose(self, state: OptimismState, arms: Array, fixed: FixedArms | None = None) -> int:
        """Return the arm of the largest index by the kernels; -1 where the arms are bad."""
        kernels, (theta, inverse) = state.kernels, state.estimate
        if kernels is None:
            return -1
        if fixed is not None:
            return int(kernels.best_practical(theta, fixed.own, state.params[0], arms))
        return int(kernels.choose_practical(theta, inverse, state.params[0], arms))

    def teach(
        self, state: OptimismState, place: int, x: Array, y: float, w: float, fixed: FixedArms
    ) -> int:
        """Learn a reward by the kernels; return their status."""
        theta, inverse = state.estimate
        status: int = state.kernels.learn_practical(  # type: ignore[union-attr]
            state.layers[0].array, state.params[0], theta, inverse, x, y, w, fixed.arms, fixed.own
        )
        return status


def bonus(glm: GLM, gain: float, state: OptimismState, x: Array) -> Array:
    """Return what the practical index adds to the estimated score of every arm."""
    P = curvature_inverse(glm, state.layers[0])
    h = np.maximum(np.einsum("ij,ij->i", matmul(x, P), x), 0.0)
    return np.sqrt(gain * h * (3 + np.log1p(state.curvature * h)))
