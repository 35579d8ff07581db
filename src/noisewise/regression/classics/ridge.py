"""Ridge: online ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import coerce_positive
from ...model.glm import GLM
from ...protocols import Array, FloatOrArray
from ..ftrl.ftrl import FTRL
from ..ftrl.state import FTRLState

# FTRL of the identity link with room for any row that can be computed with
FREE = GLM("identity", feature_bound=1e50)


@dataclass(frozen=True)
class Ridge:
    r"""Online ridge regression: FTRL for the identity link, without bounds on the features.

    .. math:: \hat y_t = x_t^\top V_{t-1}^{-1}\sum_{s<t} w_s y_s x_s,\quad
              V_t = 2\lambda I + \sum_{s\le t} w_s x_s x_s^\top

    Parameters
    ----------
    ridge : float > 0
        Multiplies the squared norm.
    clip : float > 0, optional
        Predictions are clipped to [-clip, clip]; the estimate is not.

    Examples
    --------
    >>> ridge = Ridge(ridge=0.5)
    >>> state = ridge.start(dim=1)
    >>> ridge.update(state, [[1.0], [1.0]], [1.0, 1.0])
    array([0. , 0.5])

    References
    ----------
    Vovk (2001), Competitive on-line statistics: the unclipped loss of a round over 1 + leverage
    sums exactly to the regularised loss of the best parameter, see `theory.ridge_bound`.
    """

    ridge: float = 0.5
    clip: float | None = None

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge", zero=True)
        if self.ridge == 0:
            raise ValueError("ridge is 0, which leaves the first rounds undefined; use Forward(0)")
        coerce_positive(self, "ridge")
        if self.clip is not None:
            coerce_positive(self, "clip")

    @cached_property
    def _ftrl(self) -> FTRL:
        return FTRL(FREE, self.ridge)

    def start(self, dim: int) -> FTRLState:
        """Make the state of a fresh learner."""
        return self._ftrl.start(dim)

    def predict(self, state: FTRLState, x: ArrayLike) -> FloatOrArray:
        """Return the predicted mean at each row of ``x``."""
        return self._clipped(self._ftrl.predict(state, x))

    def update(
        self, state: FTRLState, x: ArrayLike, y: ArrayLike, weight: ArrayLike = 1.0
    ) -> FloatOrArray:
        """Learn the rows in order; return the mean predicted for each before its label."""
        return self._clipped(self._ftrl.update(state, x, y, weight))

    def _refuse(self, state: FTRLState, x: Array, y: Array, w: Array) -> None:
        self._ftrl._refuse(state, x, y, w)

    def _clipped(self, mean: FloatOrArray) -> FloatOrArray:
        if self.clip is None:
            return mean
        if isinstance(mean, float):
            return min(max(mean, -self.clip), self.clip)
        return np.clip(mean, -self.clip, self.clip)
