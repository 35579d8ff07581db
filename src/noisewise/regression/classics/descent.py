"""GradientDescent: one gradient step a row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...inputs import coerce_positive, dimension, flag, short_rows, short_steps, shown
from ...model.glm import GLM
from ...numerics.blas import matmul
from ...protocols import Array
from ...storage.states import COUNT, NONNEGATIVE, check_fields
from ...support.printing import OneLine
from .rowwise import RowWise


@dataclass(eq=False, repr=False)
class GradientDescentState(OneLine):
    """What `GradientDescent` knows: its weights and the sum of squared gradient norms."""

    dim: int
    theta: Array
    squares: float = 0.0
    count: int = 0

    def __post_init__(self) -> None:
        check_fields(self, theta=(dimension(self.dim),), squares=NONNEGATIVE, count=COUNT)


@dataclass(frozen=True)
class GradientDescent(RowWise[GradientDescentState]):
    r"""Online gradient descent: Widrow-Hoff for the square, projected steps for a GLM.

    .. math:: \theta \leftarrow \theta + \eta\,w\,(y - \hat y)\,x

    Without ``glm`` the step is :math:`\eta = \beta/X^2`, or :math:`\beta/\|x_t\|^2` if
    ``normalised``. With ``glm`` it is :math:`2\beta B/\sqrt{\sum_{s\le t}\|g_s\|^2}`, g the
    gradients so far, and the estimate is projected on the ball of radius B, the parameter bound.
    The guarantee for the square is for weights at most 1: divide all by the largest. A row whose
    step would be twice its residual or more, :math:`\eta w\|x\|^2 \ge 2`, is refused.

    Parameters
    ----------
    glm : GLM, optional
        Brings its own feature bound.
    rate : float
        beta, below 2 for the square (beyond, it diverges) and below 1 for its guarantee.
    feature_bound : float > 0
        X, the largest norm of a row; not used with ``normalised`` or ``glm``.
    normalised : bool
        Normalised least mean squares, for the square loss only.

    Examples
    --------
    >>> import noisewise as nw
    >>> nw.predictions(GradientDescent(), [[1.0], [1.0]], [1.0, 1.0])
    array([0. , 0.5])

    References
    ----------
    Cesa-Bianchi, Long and Warmuth (1996): the loss is at most that of u over 1 - beta plus
    :math:`X^2\|u\|^2/(2\beta)`, `theory.gradient_descent_bound`. Zinkevich (2003), with the steps
    of Streeter and McMahan (2010): regret at most :math:`3B\sqrt{\sum\|g\|^2}` for beta = 1/2,
    `theory.projected_descent_bound`.
    """

    glm: GLM | None = None
    rate: float = 0.5
    feature_bound: float = 1.0
    normalised: bool = False
    not_promised: ClassVar[tuple[str, ...]] = ("weight two equals the row twice",)

    def __post_init__(self) -> None:
        if not isinstance(self.glm, GLM | None):
            raise ValueError(f"glm is {shown(self.glm)}; pass a GLM, or None for squared errors")
        flag("normalised", self.normalised)
        coerce_positive(self, "rate", "feature_bound")
        if self.glm is None and self.rate >= 2:
            raise ValueError(f"rate is {self.rate:g}, which diverges; pass a number below 2")
        if self.glm is not None and self.normalised:
            raise ValueError("normalised is True with a glm; it is for the square loss, drop one")

    def start(self, dim: int) -> GradientDescentState:
        """Make the state of a fresh learner."""
        d = dimension(dim)
        return GradientDescentState(d, np.zeros(d))

    def _refuse(self, state: GradientDescentState, x: Array, y: Array, w: Array) -> None:
        if not self.normalised:
            short_rows(x, self.feature_bound if self.glm is None else self.glm.feature_bound)
        if self.glm is None:
            square = np.vecdot(x, x)
            short_steps(
                self.rate * (square > 0 if self.normalised else square / self.feature_bound**2), w
            )

    def _scores(self, state: GradientDescentState, x: Array) -> Array:
        return matmul(x, state.theta)

    def _learn(self, state: GradientDescentState, x: Array, y: float, w: float) -> float:
        score = float(x @ state.theta)
        state.count += 1
        if self.glm is not None:
            self._descend(self.glm, state, w * (float(self.glm.mean(score)) - y) * x)
            return score
        square = float(x @ x) if self.normalised else self.feature_bound**2
        if square > 0:
            state.theta = state.theta + (self.rate * w * (y - score) / square) * x
        return score

    def _descend(self, glm: GLM, state: GradientDescentState, g: Array) -> None:
        """Take one projected step against the gradient ``g``."""
        B = glm.parameter_bound
        state.squares += float(g @ g)
        if state.squares == 0:
            return
        theta = state.theta - (2 * self.rate * B / math.sqrt(state.squares)) * g
        state.theta = theta * min(1.0, B / max(float(np.linalg.norm(theta)), B))
