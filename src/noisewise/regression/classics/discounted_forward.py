"""DiscountedForward: the Vovk-Azoury-Warmuth forecaster that forgets, at a rate it learns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...inputs import coerce_positive, dimension, positive, shown
from ...numerics.linalg import scaled_spectrum
from ...protocols import Array
from ...storage.states import COUNT, NONNEGATIVE, check_fields, check_semidefinite, check_type
from ...support.printing import OneLine
from .rowwise import RowWise


@dataclass(eq=False, repr=False)
class DiscountedForwardState(OneLine):
    """What `DiscountedForward` knows, with a leading axis of forgetting factors.

    ``losses`` are those of the clipped predictions, on labels clipped to the ``largest`` before.
    """

    dim: int
    gram: Array
    moment: Array
    losses: Array
    largest: float = 0.0
    count: int = 0

    def __post_init__(self) -> None:
        check_type("DiscountedForwardState.losses", self.losses, np.ndarray)
        k, d = self.losses.size, dimension(self.dim)
        check_fields(self, gram=(k, d, d), moment=(k, d), losses=(k,))
        check_fields(self, largest=NONNEGATIVE, count=COUNT)
        for gram in self.gram:
            check_semidefinite("DiscountedForwardState.gram", gram)
        if not k or self.losses.min() < 0:
            raise ValueError("DiscountedForwardState.losses are none, or negative")


@dataclass(frozen=True)
class DiscountedForward(RowWise[DiscountedForwardState]):
    r"""`Forward` in which a row counts less with every row after it.

    .. math:: \hat y_t = x_t^\top V_t^{-1}\sum_{s<t}\gamma^{t-s} w_s y_s x_s,\quad
              V_t = 2\lambda\gamma^t I + \sum_{s<t}\gamma^{t-s} w_s x_s x_s^\top + x_t x_t^\top

    Of several factors :math:`\gamma` the best is learnt: predictions are clipped to [-Y, Y], Y the
    largest size of a label so far, and averaged with weights :math:`e^{-L/4Y^2}`, L the loss of
    each. That is at most :math:`(4\log k + \frac32)Y^2` behind each of k factors; grid, mixture and
    its constants are ours. What has been forgotten to 1e-10 of the rest is outside the span, as in
    ``Forward(0)``. A row costs d^3 for each factor.

    Parameters
    ----------
    ridge : float > 0
    forgetting : float or tuple of floats, in (0, 1]
        With one factor nothing is clipped; with 1 it is ``Forward(ridge)``.

    Examples
    --------
    The second prediction is :math:`0.5/(0.5 + 0.25 + 1)`:

    >>> import noisewise as nw
    >>> nw.predictions(DiscountedForward(0.5, 0.5), [[1.0], [1.0]], [1.0, 0.0])
    array([0.        , 0.28571429])

    References
    ----------
    Jacobsen and Cutkosky (2024), "Online linear regression in dynamic environments via
    discounting": regret against comparators that move, `theory.discounted_forward_bound`.
    """

    not_promised: ClassVar[tuple[str, ...]] = (
        "weight two equals the row twice",
        "a zero row is legal",
    )

    ridge: float = 0.5
    forgetting: float | tuple[float, ...] = (1.0, 0.99, 0.97, 0.9)

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge")
        given = self.forgetting if isinstance(self.forgetting, tuple) else (self.forgetting,)
        factors = tuple(positive("forgetting", each) for each in given)
        if not factors or max(factors) > 1:
            raise ValueError(f"forgetting is {shown(self.forgetting)}; pass numbers in (0, 1]")
        object.__setattr__(self, "forgetting", factors)

    def start(self, dim: int) -> DiscountedForwardState:
        """Make the state of a fresh learner."""
        d, k = dimension(dim), len(self._factors)
        gram = np.tile(2 * self.ridge * np.eye(d), (k, 1, 1))
        return DiscountedForwardState(d, gram, np.zeros((k, d)), np.zeros(k))

    def check_state(self, state: DiscountedForwardState) -> None:
        """Raise unless the state has as many factors."""
        if len(state.losses) != len(self._factors):
            raise ValueError(
                f"the state has {len(state.losses)} forgetting factors, the method "
                f"{len(self._factors)}"
            )

    @property
    def _factors(self) -> Array:
        return np.array(self.forgetting)

    def _scores(self, state: DiscountedForwardState, x: Array) -> Array:
        return np.array([self._combined(state, self._each(state, row)) for row in x])

    def _each(self, state: DiscountedForwardState, x: Array) -> Array:
        """Return the prediction of each factor."""
        gamma = self._factors
        gram = gamma[:, None, None] * state.gram + np.outer(x, x)
        s, values, vectors, kept = scaled_spectrum(gram)
        shares = np.divide(1.0, values, where=kept, out=np.zeros_like(values))
        a, b = (
            np.einsum("ki,kij->kj", each / s, vectors)
            for each in (x, gamma[:, None] * state.moment)
        )
        return np.asarray((a * b * shares).sum(axis=1))

    def _combined(self, state: DiscountedForwardState, each: Array) -> float:
        if len(each) == 1:
            return float(each[0])
        Y = state.largest
        behind = state.losses - state.losses.min()
        weights = np.exp(-behind / (4 * Y * Y)) if behind.any() else np.ones(len(each))
        return float(weights @ np.clip(each, -Y, Y)) / float(weights.sum())

    def _learn(self, state: DiscountedForwardState, x: Array, y: float, w: float) -> float:
        gamma, each, Y = self._factors, self._each(state, x), state.largest
        score = self._combined(state, each)
        label = min(max(y, -Y), Y)
        state.losses = state.losses + 0.5 * w * (np.clip(each, -Y, Y) - label) ** 2
        state.gram = gamma[:, None, None] * state.gram + w * np.outer(x, x)
        state.moment = gamma[:, None] * state.moment + w * y * x
        state.largest, state.count = max(Y, math.fabs(y)), state.count + 1
        return score
