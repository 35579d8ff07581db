"""Minimax: the optimal strategy when all features are known beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import dimension, numbers
from ...numerics.blas import matmul
from ...numerics.linalg import minimax_directions, scaled_inverse
from ...protocols import Array
from ...storage.states import COUNT, check_fields, check_type
from ...support.printing import OneLine
from .rowwise import RowWise


@dataclass(eq=False, repr=False)
class MinimaxState(OneLine):
    """What `Minimax` knows: the design, each P_t x_t, P of the row to come, and sum w y x."""

    dim: int
    design: Array
    directions: Array
    covariance: Array
    moment: Array
    count: int = 0

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        check_type("MinimaxState.design", self.design, np.ndarray)
        T = len(self.design) if self.design.ndim else 0
        check_fields(self, design=(T, d), directions=(T, d), covariance=(d, d), moment=(d,))
        check_fields(self, count=COUNT)


@dataclass(frozen=True)
class Minimax(RowWise[MinimaxState]):
    r"""The minimax strategy of online least squares for a known sequence of features.

    .. math:: \hat y_t = x_t^\top P_t \sum_{s<t} y_s x_s,\quad
              P_T = \Big(\sum_t x_t x_t^\top\Big)^+,\quad
              P_{t-1} = P_t + P_t x_t x_t^\top P_t

    The rows learnt must be those of the design, in order. A row of weight w counts as the row
    :math:`\sqrt w\,x` of label :math:`\sqrt w\,y` and stands so in the design, one of weight 0
    not at all. `predict` takes any row and uses the P of the row to come; past the end that is
    least squares. Features are scaled to equal second moments before the pseudo-inverse is taken,
    so that their units do not matter; for the rows of the design that changes nothing else.

    Examples
    --------
    P_0, P_1, P_2 are 21/16, 3/4, 1/2 for the design 1, 1:

    >>> import noisewise as nw
    >>> nw.predictions(Minimax(), [[1.0], [1.0]], [1.0, 1.0])
    array([0. , 0.5])

    References
    ----------
    Bartlett, Koolen, Malek, Takimoto and Warmuth (2015), Minimax fixed-design linear regression:
    the regret is sum y^2 x'Px / 2 whatever the labels, the least possible for labels in a box that
    is not too uneven: `theory.minimax_value`.
    """

    not_promised: ClassVar[tuple[str, ...]] = ("weight two equals the row twice",)

    def start(self, dim: int, design: ArrayLike | None = None) -> MinimaxState:
        """Make the state of a fresh learner that will meet the rows of ``design``, (T, dim)."""
        d = dimension(dim)
        if design is None:
            raise ValueError("design is None; pass the rows to come, start(dim, design=x)")
        x = numbers("design", design).copy()
        if x.ndim != 2 or x.shape[1] != d or not len(x):
            raise ValueError(f"design has shape {x.shape}; pass (T, {d}), at least one row")
        directions, _ = minimax_directions(x)
        P = scaled_inverse(matmul(x.T, x)) + matmul(directions[1:].T, directions[1:])
        return MinimaxState(d, x, directions, P, np.zeros(d))

    def _refuse(self, state: MinimaxState, x: Array, y: Array, w: Array) -> None:
        learnt = np.flatnonzero(w > 0)
        rows = np.sqrt(w[learnt])[:, None] * x[learnt]
        left = state.design[state.count :]
        if len(learnt) > len(left):
            raise ValueError(
                f"x has {len(learnt)} rows of positive weight, but {len(left)} of the "
                f"{len(state.design)} rows of the design are left; start with the whole design"
            )
        expected = left[: len(learnt)]
        far = np.abs(rows - expected).max(axis=1, initial=0.0)
        wrong = far > 1e-9 * np.abs(expected).max(axis=1, initial=0.0)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"x differs from the design at row {learnt[at]}, which should be row "
                f"{state.count + at} of it; pass the rows of the design in order (the design has "
                "them times the root of their weight)"
            )

    def _scores(self, state: MinimaxState, x: Array) -> Array:
        return matmul(x, matmul(state.covariance, state.moment))

    def _learn(self, state: MinimaxState, x: Array, y: float, w: float) -> float:
        score = float(x @ matmul(state.covariance, state.moment))
        state.moment = state.moment + w * y * x
        state.count += 1
        if state.count < len(state.directions):
            a = state.directions[state.count]
            state.covariance = state.covariance - np.outer(a, a)
        return score
