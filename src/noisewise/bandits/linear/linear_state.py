r"""Weighted ridge regression, one row at a time: what the linear policies know.

:math:`V = 2\lambda I + \sum w x x^\top,\ b = \sum w y x,\ \hat\theta = V^{-1} b`.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...inputs import dimension
from ...kernels.glm.layout import LARGEST
from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array
from ...storage.states import COUNT, FINITE, POSITIVE, check_fields, check_rows, check_semidefinite
from ...support.printing import OneLine
from ..arms import compiled

RENEWAL, STEEP = 200, 1e4


@dataclass(eq=False, repr=False)
class LinearState(OneLine):
    """What a linear policy knows after ``count`` rewards.

    ``log_det`` is log det(V / 2 ridge); ``clipped`` counts the standard deviations that were cut to
    the policy's noise bound.
    """

    ridge: float
    V: Array
    inverse: Array
    b: Array
    log_det: float = 0.0
    count: int = 0
    clipped: int = 0

    def __post_init__(self) -> None:
        name, d = type(self).__name__, np.size(self.b)
        dimension(d)
        check_fields(self, ridge=POSITIVE, V=(d, d), inverse=(d, d), b=(d,), log_det=FINITE)
        check_fields(self, count=COUNT, clipped=COUNT)
        check_rows(name, self.V, self.inverse)
        check_semidefinite(f"{name}.V", self.V)
        if self.log_det < -1:  # it is at least 0, but for rounding
            raise ValueError(f"{name}.log_det is {self.log_det}; V only grows")

    @property
    def dim(self) -> int:
        """The number of features."""
        return len(self.b)

    @property
    def theta(self) -> Array:
        """The current estimate."""
        return matmul(self.inverse, self.b)


def start(dim: int, ridge: float) -> LinearState:
    """Return the state before the first reward."""
    one = np.eye(dimension(dim))
    return LinearState(ridge, 2 * ridge * one, one / (2 * ridge), np.zeros(dim))


def learn(state: LinearState, x: Array, y: float, weight: float = 1.0) -> None:
    """Add a row: a rank-one change, or a new factor every so often and where that would cancel."""
    refuse_overflow(x, y, weight)
    growth = compiled().add_row(state.V, state.inverse, state.b, x, y, weight, STEEP)
    state.count += 1
    if not 0 <= growth < STEEP or state.count % RENEWAL == 0:
        c = linalg.factor(state.V)
        state.inverse = np.ascontiguousarray(linalg.invert(c))
        state.log_det = linalg.log_det(c) - state.dim * math.log(2 * state.ridge)
    else:
        state.log_det += math.log1p(growth)


def refuse_overflow(x: Array, y: float, weight: float) -> None:
    """Raise if a checked row is too heavy to be added."""
    square = float(x @ x)
    if not weight * (square + abs(y)) * (1 + square) <= LARGEST:
        raise ValueError(
            f"arm has norm {math.sqrt(square):g}, reward is {y:g} and counts {weight:g} times, too "
            "much to compute with; rescale arms and rewards, or pass larger sigma and noise_floor"
        )


def widths(state: LinearState, x: Array) -> Array:
    r"""Return :math:`\|x\|_{V^{-1}}` of each row."""
    quads = np.empty(len(x))
    compiled().forms_of(x, state.inverse, quads)
    return np.sqrt(quads)


def upper_bounds(state: LinearState, x: Array, radius: float) -> Array:
    """Return the mean of each row plus the radius times its width."""
    return matmul(x, state.theta) + radius * widths(state, x)
