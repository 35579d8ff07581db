"""ExponentiatedGradient: multiplicative updates, for parameters that are sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...inputs import coerce_positive, dimension, short_steps, with_slack
from ...numerics.blas import matmul
from ...protocols import Array
from ...storage.states import COUNT, check_fields
from ...support.printing import OneLine
from .rowwise import RowWise


@dataclass(eq=False, repr=False)
class ExponentiatedGradientState(OneLine):
    """What `ExponentiatedGradient` knows: log weights, and the parameter they stand for."""

    dim: int
    log_weights: Array
    theta: Array
    count: int = 0

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        both = np.shape(self.log_weights) == (2 * d,)  # those of -x too
        check_fields(self, log_weights=(2 * d if both else d,), theta=(d,), count=COUNT)


@dataclass(frozen=True)
class ExponentiatedGradient(RowWise[ExponentiatedGradientState]):
    r"""Exponentiated gradient (EG), and EG+- for parameters of bounded 1-norm.

    Weights on the simplex, from uniform, with :math:`\tilde\eta = 4\beta/R^2`:

    .. math:: \hat y = p\cdot x,\quad p_i \propto p_i\,e^{\tilde\eta\,w\,(y - \hat y)\,x_i}

    With ``bound=U`` it runs on (Ux, -Ux) and competes with all :math:`\|u\|_1 \le U`; R is then U
    times ``feature_range``. Weights should be at most 1, for the guarantee: divide all by the
    largest. A row of range r with :math:`\beta w(r/R)^2 \ge 2`, which would oscillate, is refused.

    Parameters
    ----------
    feature_range : float > 0
        The largest difference of two coordinates of a row; with ``bound`` the coordinates of -x
        count too, so that it is twice the largest coordinate in absolute value.
    bound : float > 0, optional
        U, the largest 1-norm; without it the parameter lies in the simplex.
    rate : float > 0
        beta, below 2 (beyond, it oscillates) and below 1 for the guarantee.

    Examples
    --------
    >>> method = ExponentiatedGradient(feature_range=1.0)
    >>> state = method.start(dim=2)
    >>> float(method.update(state, [1.0, 0.0], 1.0))
    0.5
    >>> bool(np.isclose(state.theta[0] / state.theta[1], np.exp(4 / 3 * 0.5)))
    True

    References
    ----------
    Kivinen and Warmuth (1997): the loss is at most that of u over 1 - beta plus
    R^2 KL(u, uniform)/(4 beta), for weights at most 1: `theory.exponentiated_gradient_bound`.
    """

    feature_range: float
    bound: float | None = None
    rate: float = 1 / 3
    not_promised: ClassVar[tuple[str, ...]] = (
        "weight two equals the row twice",
        "rotation leaves predictions alone",
    )

    def __post_init__(self) -> None:
        coerce_positive(self, "feature_range", "rate")
        if self.rate >= 2:
            raise ValueError(f"rate is {self.rate:g}, which oscillates; pass a number below 2")
        if self.bound is not None:
            coerce_positive(self, "bound")

    def start(self, dim: int) -> ExponentiatedGradientState:
        """Make the state of a fresh learner."""
        d = dimension(dim)
        if self.bound is None:
            return ExponentiatedGradientState(d, np.zeros(d), np.full(d, 1 / d))
        return ExponentiatedGradientState(d, np.zeros(2 * d), np.zeros(d))

    def check_state(self, state: ExponentiatedGradientState) -> None:
        """Raise unless the state has a weight for x, and with ``bound`` one for -x too."""
        if len(state.log_weights) != (1 if self.bound is None else 2) * state.dim:
            raise ValueError(f"log_weights has shape {state.log_weights.shape}, bound {self.bound}")

    def _refuse(self, state: ExponentiatedGradientState, x: Array, y: Array, w: Array) -> None:
        spread = np.ptp(x, axis=1) if self.bound is None else 2 * np.abs(x).max(axis=1)
        if len(x) and spread.max() > with_slack(self.feature_range):
            at = int(np.argmax(spread))
            raise ValueError(
                f"x has range {spread[at]:.8g} at row {at}, above feature_range "
                f"{self.feature_range:.8g}; scale the features or pass a larger feature_range"
            )
        short_steps(self.rate * (spread / self.feature_range) ** 2, w)

    def _scores(self, state: ExponentiatedGradientState, x: Array) -> Array:
        return matmul(x, state.theta)

    def _learn(self, state: ExponentiatedGradientState, x: Array, y: float, w: float) -> float:
        score = float(x @ state.theta)
        U = 1.0 if self.bound is None else self.bound
        step = 4 * self.rate / (U * self.feature_range) ** 2 * w * (y - score) * U * x
        if self.bound is not None:
            step = np.concatenate([step, -step])
        logs = state.log_weights + step
        state.log_weights = logs - logs.max()
        p = np.exp(state.log_weights)
        p /= p.sum()
        state.theta = p if self.bound is None else U * (p[: state.dim] - p[state.dim :])
        state.count += 1
        return score
