"""Forward: the Vovk-Azoury-Warmuth forecaster, and its form without regularisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...inputs import coerce_positive, dimension
from ...numerics.blas import matmul
from ...numerics.linalg import scaled_spectrum
from ...protocols import Array
from ...storage.states import COUNT, check_fields, check_semidefinite
from ...support.printing import OneLine
from ..ftrl.ftrl import FTRL
from ..ftrl.state import FTRLState
from .ridge import FREE
from .rowwise import RowWise


@dataclass(eq=False, repr=False)
class ForwardState(OneLine):
    """What `Forward` without regularisation knows: sum w x x', its rank, sum w y x."""

    dim: int
    gram: Array
    moment: Array
    rank: int = 0
    count: int = 0

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        check_fields(self, gram=(d, d), moment=(d,), rank=COUNT, count=COUNT)
        check_semidefinite("ForwardState.gram", self.gram)


@dataclass(frozen=True)
class Forward(RowWise[FTRLState | ForwardState]):
    r"""Ridge regression that counts the row to come, with label 0, before it predicts.

    .. math:: \hat y_t = x_t^\top(V_{t-1} + x_t x_t^\top)^{-1}\sum_{s<t} w_s y_s x_s
              = \frac{x_t\cdot\hat\theta_{t-1}}{1 + x_t^\top V_{t-1}^{-1}x_t},\quad
              V_t = 2\lambda I + \sum_{s\le t} w_s x_s x_s^\top

    With ``ridge=0`` the inverse is a pseudo-inverse: predictions do not change under x -> Mx, and a
    row outside the span of the earlier ones gets 0. What is in the span is decided by the
    eigenvalues of the Gram matrix, features scaled to equal second moments: above 1e-10 of the
    largest. A direction near that cut may be in the span in one round and not in the next, and the
    guarantee, `theory.free_forward_bound`, is against the parameters that the cut leaves.

    Examples
    --------
    >>> import noisewise as nw
    >>> nw.predictions(Forward(ridge=0.5), [[1.0], [1.0]], [1.0, 0.0])
    array([0.        , 0.33333333])

    References
    ----------
    Vovk (2001); Azoury and Warmuth (2001): regret at most
    :math:`\frac12Y^2\log\det(V_T/2\lambda) + \lambda\|u\|^2` for labels in [-Y, Y], Y unknown,
    `theory.forward_bound`.
    Gaillard, Gerchinovitz, Huard and Stoltz (2019) for ridge 0: (d/2) Y^2 log T + O(1) against all
    u at once.
    """

    ridge: float = 0.5

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge", zero=True)

    @cached_property
    def _ftrl(self) -> FTRL:
        return FTRL(FREE, self.ridge)

    def start(self, dim: int) -> FTRLState | ForwardState:
        """Make the state of a fresh learner."""
        if self.ridge > 0:
            return self._ftrl.start(dim)
        d = dimension(dim)
        return ForwardState(d, np.zeros((d, d)), np.zeros(d))

    def check_state(self, state: FTRLState | ForwardState) -> None:
        """Raise unless the state is of the form that the ridge asks for."""
        if isinstance(state, FTRLState) != (self.ridge > 0):
            raise ValueError(f"ridge is {self.ridge:g}, but the state a {type(state).__name__}")

    def _refuse(self, state: FTRLState | ForwardState, x: Array, y: Array, w: Array) -> None:
        if isinstance(state, FTRLState):
            self._ftrl._refuse(state, x, y, w)

    def _scores(self, state: FTRLState | ForwardState, x: Array) -> Array:
        if isinstance(state, FTRLState):
            leverage = np.einsum("ij,jk,ik->i", x, state.inverse(), x)
            return matmul(x, state.theta) / (1 + leverage)
        return np.array([_free_score(state, row)[0] for row in x])

    def _learn(self, state: FTRLState | ForwardState, x: Array, y: float, w: float) -> float:
        if isinstance(state, FTRLState):
            leverage = float(matmul(x, state.inverse()) @ x)
            return float(self._ftrl.update(state, x, y, w)) / (1 + leverage)
        score, rank = _free_score(state, x)
        gram = state.gram + w * np.outer(x, x)
        state.rank = rank if w == 1 else int(scaled_spectrum(gram)[3].sum())
        state.gram, state.moment = gram, state.moment + w * y * x
        state.count += 1
        return score


def _free_score(state: ForwardState, x: Array) -> tuple[float, int]:
    """Return x'(G + xx')^+ b, exactly 0 if x adds to the span, and the rank with x."""
    s, values, vectors, kept = scaled_spectrum(state.gram + np.outer(x, x))
    rank = int(kept.sum())
    if rank > state.rank:
        return 0.0, rank
    U = vectors[:, kept]
    return float(matmul(x / s, U) @ (matmul(state.moment / s, U) / values[kept])), rank
