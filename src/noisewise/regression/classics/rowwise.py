"""RowWise: `predict` and `update` for methods that learn one row after the other."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import features, rows
from ...model.glm import GLM
from ...protocols import Array, FloatOrArray
from ...support.ownership import Owned
from ..ftrl.state import FTRLState


@runtime_checkable
class HasDim(Protocol):
    """A state that knows its number of features."""

    dim: int


State = TypeVar("State", bound=HasDim)


class RowWise(Generic[State]):
    """A method says how it scores rows and how it learns one; this is the rest.

    Scores are means unless the spec has a ``glm``. `_refuse` may reject checked rows before the
    state is touched.
    """

    glm: GLM | None = None

    def _scores(self, state: State, x: Array) -> Array:
        """Return the score of each row of ``x`` as the state is."""
        raise NotImplementedError

    def _learn(self, state: State, x: Array, y: float, w: float) -> float:
        """Learn one row of positive weight; return its score before.

        Fields of the state are set, not written into: then those of before are still there.
        """
        raise NotImplementedError

    def _refuse(self, state: State, x: Array, y: Array, w: Array) -> None:
        """Raise `ValueError` if the rows are outside what the method is for."""

    def predict(self, state: State, x: ArrayLike) -> FloatOrArray:
        """Return the predicted mean at each row of ``x``."""
        x, single = features(x, state.dim)
        means = self._scores(state, x)
        if self.glm is not None:
            means = self.glm.mean(means)
        return float(means[0]) if single else means

    def update(
        self,
        state: State,
        x: ArrayLike,
        y: ArrayLike,
        weight: ArrayLike = 1.0,
        *,
        scores: bool = False,
    ) -> FloatOrArray:
        """Learn the rows in order; return the mean predicted for each before its label.

        With ``scores`` the linear scores are returned instead of the means.
        """
        x, y, w, single = rows(x, y, weight, state.dim)
        self._refuse(state, x, y, w)
        if isinstance(state, FTRLState):  # it keeps itself whole, row by row
            played = self._learn_all(state, x, y, w)
        else:
            with Owned(state):
                before = {name: each for name, each in vars(state).items() if name != "_owner"}
                try:
                    played = self._learn_all(state, x, y, w)
                except BaseException:  # an interrupt too: a block is learnt whole or not at all
                    vars(state).update(before)
                    raise
        if self.glm is not None and not scores:
            played = self.glm.mean(played)
        return float(played[0]) if single else played

    def _learn_all(self, state: State, x: Array, y: Array, w: Array) -> Array:
        """Learn checked rows; return their scores."""
        played = [  # each row in memory of its own: products round alike wherever it came from
            self._learn(state, row.copy(), label, factor)
            if factor > 0
            else float(self._scores(state, row[None])[0])
            for row, label, factor in zip(x, y.tolist(), w.tolist(), strict=True)
        ]
        return np.array(played)
