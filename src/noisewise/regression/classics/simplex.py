"""SimplexFTRL: follow the regularised leader among mixtures of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...inputs import dimension
from ...numerics.blas import matmul
from ...numerics.linalg import simplex_minimum
from ...protocols import Array
from ...storage.states import COUNT, check_fields, check_semidefinite
from ...support.printing import OneLine
from .rowwise import RowWise


@dataclass(eq=False, repr=False)
class SimplexFTRLState(OneLine):
    """What `SimplexFTRL` knows: I + sum w x x', 1/d + sum w y x, and its weights."""

    dim: int
    hessian: Array
    moment: Array
    theta: Array
    count: int = 0

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        check_fields(self, hessian=(d, d), moment=(d,), theta=(d,), count=COUNT)
        check_semidefinite("SimplexFTRLState.hessian", self.hessian)


@dataclass(frozen=True)
class SimplexFTRL(RowWise[SimplexFTRLState]):
    r"""The best mixture so far, drawn towards the uniform one.

    .. math:: \theta_t = \arg\min_{\theta\ge0,\ \sum\theta_i=1}
              \tfrac12\|\theta - 1/d\|^2 + \tfrac12\sum_{s<t} w_s(y_s - \theta\cdot x_s)^2

    Solved exactly after every row by an active-set method. In the manner of Foster, whose
    regulariser may differ.

    Examples
    --------
    >>> method = SimplexFTRL()
    >>> state = method.start(dim=2)
    >>> method.update(state, [1.0, 0.0], 1.0)
    0.5
    >>> state.theta.round(12)
    array([0.66666667, 0.33333333])

    References
    ----------
    Foster (1991), Prediction in the worst case. `theory.simplex_bound`: regret at most
    (1 + d log(1 + T))/2 for features and labels in [0, 1].
    """

    not_promised: ClassVar[tuple[str, ...]] = ("rotation leaves predictions alone",)

    def start(self, dim: int) -> SimplexFTRLState:
        """Make the state of a fresh learner: the uniform mixture."""
        d = dimension(dim)
        return SimplexFTRLState(d, np.eye(d), np.full(d, 1 / d), np.full(d, 1 / d))

    def _scores(self, state: SimplexFTRLState, x: Array) -> Array:
        return matmul(x, state.theta)

    def _learn(self, state: SimplexFTRLState, x: Array, y: float, w: float) -> float:
        score = float(x @ state.theta)
        state.hessian = state.hessian + w * np.outer(x, x)
        state.moment = state.moment + w * y * x
        state.theta = simplex_minimum(state.hessian, state.moment, state.theta)
        state.count += 1
        return score
