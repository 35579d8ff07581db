"""NewtonStep: the online Newton step for a GLM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...inputs import coerce_positive, dimension, short_rows, shown
from ...model.glm import GLM
from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array
from ...storage.states import COUNT, check_fields, check_semidefinite
from ...support.printing import OneLine
from .rowwise import RowWise

RENEWAL, STEEP = 256, 1e4


@dataclass(eq=False, repr=False)
class NewtonStepState(OneLine):
    """What `NewtonStep` knows: V, its inverse and the estimate."""

    dim: int
    metric: Array
    inverse: Array
    theta: Array
    count: int = 0

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        check_fields(self, metric=(d, d), inverse=(d, d), theta=(d,), count=COUNT)
        check_semidefinite("NewtonStepState.metric", self.metric)


@dataclass(frozen=True)
class NewtonStep(RowWise[NewtonStepState]):
    r"""Online Newton step: one row, one second-order step, no history.

    .. math:: V \leftarrow V + w\,xx^\top,\quad
              \theta \leftarrow \Pi_V\Big[\theta
              - \frac w\kappa(\varphi(x\cdot\theta) - y)\,V^{-1}x\Big]

    :math:`\Pi_V` is the projection on the ball of radius B in the norm of V, not a rescaling.

    Parameters
    ----------
    glm : GLM
        Its parameter bound is B, its least slope kappa.
    initial : float > 0
        V begins as ``initial`` times the identity.

    Examples
    --------
    Where the ball is wide and the link the identity this is ridge regression:

    >>> import noisewise as nw
    >>> wide = nw.GLM("identity", parameter_bound=10.0)
    >>> nw.predictions(NewtonStep(wide), [[1.0], [1.0]], [1.0, 1.0])
    array([0. , 0.5])

    References
    ----------
    Hazan, Agarwal and Kale (2007); Jun, Bhargava, Nowak and Willett (2017): regret
    `theory.newton_step_bound`, of order d log T.
    """

    glm: GLM
    initial: float = 1.0
    not_promised: ClassVar[tuple[str, ...]] = ("weight two equals the row twice",)

    def __post_init__(self) -> None:
        if not isinstance(self.glm, GLM):
            raise ValueError(f"glm is {shown(self.glm)}; pass a GLM, such as GLM('logistic')")
        coerce_positive(self, "initial")

    def start(self, dim: int) -> NewtonStepState:
        """Make the state of a fresh learner."""
        d = dimension(dim)
        V = self.initial * np.eye(d)
        return NewtonStepState(d, V, np.eye(d) / self.initial, np.zeros(d))

    def _refuse(self, state: NewtonStepState, x: Array, y: Array, w: Array) -> None:
        short_rows(x, self.glm.feature_bound)

    def _scores(self, state: NewtonStepState, x: Array) -> Array:
        return matmul(x, state.theta)

    def _learn(self, state: NewtonStepState, x: Array, y: float, w: float) -> float:
        score = float(x @ state.theta)
        state.metric = state.metric + w * np.outer(x, x)
        state.count += 1
        old = matmul(state.inverse, x)
        growth = w * float(x @ old)
        new = old / (1 + growth)  # the inverse times x, with the row in V
        if state.count % RENEWAL and 0 <= growth < STEEP:  # else the difference would cancel
            state.inverse = state.inverse - w * np.outer(old, new)
        else:
            state.inverse = linalg.invert(linalg.factor(state.metric))
        v = state.theta - (w * (float(self.glm.mean(score)) - y) / self.glm.min_slope) * new
        state.theta = linalg.project_ball(state.metric, v, self.glm.parameter_bound)
        return score
