"""HorizonFreeMinimax: the minimax strategy run forwards, without knowing the features to come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import coerce_positive, dimension, numbers
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from ...storage.states import COUNT, check_fields, check_semidefinite
from ...support.printing import OneLine
from .rowwise import RowWise


@dataclass(eq=False, repr=False)
class HorizonFreeMinimaxState(OneLine):
    """What `HorizonFreeMinimax` knows: P_t, sum w x x' and sum w y x."""

    dim: int
    covariance: Array
    gram: Array
    moment: Array
    count: int = 0

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        check_fields(self, covariance=(d, d), gram=(d, d), moment=(d,), count=COUNT)
        check_semidefinite("HorizonFreeMinimaxState.covariance", self.covariance)

    @property
    @one_thread
    def budget_left(self) -> float:
        """The least eigenvalue of P_t^-1 - sum w x x' on P's span; negative once overspent."""
        values, U = np.linalg.eigh(self.covariance)
        kept = values > 1e-12 * values[-1]
        U, values = U[:, kept], values[kept]
        return float(np.linalg.eigvalsh(np.diag(1 / values) - U.T @ self.gram @ U)[0])


@dataclass(frozen=True)
class HorizonFreeMinimax(RowWise[HorizonFreeMinimaxState]):
    r"""Minimax least squares for every design whose cost stays within a budget.

    The recursion of `Minimax` solved for its next matrix: with
    :math:`b = x_t^\top P_{t-1}x_t` and :math:`c = 4/(1 + \sqrt{1 + 4b})^2`,

    .. math:: P_t = P_{t-1} - c\,P_{t-1}x_t x_t^\top P_{t-1},\quad
              \hat y_t = x_t^\top P_t \sum_{s<t} w_s y_s x_s

    Parameters
    ----------
    budget : float > 0
        P_0 is the identity over ``budget``; `start` also takes a matrix, ``covariance=P_0``.

    Examples
    --------
    With the P_0 of the design 1, 1 it is `Minimax`:

    >>> method = HorizonFreeMinimax(budget=16 / 21)
    >>> state = method.start(dim=1)
    >>> float(method.update(state, [1.0], 1.0)), round(method.predict(state, [1.0]), 12)
    (0.0, 0.5)

    References
    ----------
    Malek and Bartlett (2018), Horizon-independent minimax linear regression. The regret against
    :math:`\min_u \frac12\sum(y - u\cdot x)^2 + \frac12 u^\top(P_T^{-1} - \sum x x^\top)u` is
    sum y^2 x'Px / 2; that penalty is positive while ``state.budget_left`` is. For any u see
    `theory.horizon_free_bound`.
    """

    budget: float = 1.0
    not_promised: ClassVar[tuple[str, ...]] = ("weight two equals the row twice",)

    def __post_init__(self) -> None:
        coerce_positive(self, "budget")

    @one_thread
    def start(self, dim: int, covariance: ArrayLike | None = None) -> HorizonFreeMinimaxState:
        """Make the state of a fresh learner, from P_0 = ``covariance`` if it is given."""
        d = dimension(dim)
        P = np.eye(d) / self.budget if covariance is None else numbers("covariance", covariance)
        if P.shape != (d, d) or np.abs(P - P.T).max() > 1e-9 * np.abs(P).max():
            raise ValueError(f"covariance has shape {P.shape}; pass a symmetric ({d}, {d}) matrix")
        least, largest = np.linalg.eigvalsh(P)[[0, -1]]
        if least < -1e-12 * largest or largest <= 0:
            raise ValueError(
                f"covariance has eigenvalues from {least:g} to {largest:g}; pass a positive "
                "semi-definite matrix that is not zero"
            )
        return HorizonFreeMinimaxState(d, (P + P.T) / 2, np.zeros((d, d)), np.zeros(d))

    def _scores(self, state: HorizonFreeMinimaxState, x: Array) -> Array:
        k = matmul(x, state.covariance)
        b = np.maximum(np.einsum("ij,ij->i", x, k), 0.0)  # rounding may leave it below
        return matmul(k, state.moment) * (1 - _step(b) * b)

    def _learn(self, state: HorizonFreeMinimaxState, x: Array, y: float, w: float) -> float:
        k = matmul(state.covariance, x)
        b = max(float(x @ k), 0.0)
        score = float(k @ state.moment) * (1 - _step(b) * b)
        state.covariance = state.covariance - w * _step(w * b) * np.outer(k, k)
        state.gram = state.gram + w * np.outer(x, x)
        state.moment = state.moment + w * y * x
        state.count += 1
        return float(score)


def _step(b: Array | float) -> Array | float:
    """Return the root of c = (1 - c b)^2 in a form that does not cancel."""
    return 4 / (1 + (1 + 4 * b) ** 0.5) ** 2
