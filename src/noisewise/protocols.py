"""The contracts. Read this first.

A regressor is a frozen dataclass with three verbs:

``start(dim)``
    makes the state of a fresh learner. A method that must know the features beforehand takes them
    as ``design``, the rows of positive weight in order.
``predict(state, x)``
    the mean of a label at ``x``: ``(d,)`` gives a float, ``(n, d)`` an array ``(n,)``. Writes
    nothing.
``update(state, x, y, weight=1.0)``
    learns one row ``(d,)`` or a block ``(n, d)``, and returns the mean it predicted for each row
    before that row's label was seen. A block means its rows one by one. ``weight`` multiplies the
    loss of a row; weight 0 leaves the state alone.

Bad input raises ``ValueError`` before the state is touched. Inputs are neither kept nor changed.
An attribute ``not_promised`` names those checks of `noisewise.checks` that a method does not keep,
such as that weight 2 equals the row twice.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
State = TypeVar("State")


class Regressor(Protocol[State]):
    """What `predictions`, `check_regressor` and the studies need of an algorithm."""

    def start(self, dim: int) -> State:
        """Make the state of a fresh learner for ``dim`` features."""

    def predict(self, state: State, x: ArrayLike) -> Any:
        """Return the predicted mean at each row of ``x``; the state is only read."""

    def update(self, state: State, x: ArrayLike, y: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        """Learn the rows in order; return the mean predicted for each before its label."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """A drawn regression world: one row a round, ready to be played by any regressor.

    ``x`` is ``(T, d)``; ``mean``, ``y`` and ``weight`` are ``(T,)``: true means, labels, and the
    weight a learner who knows the noise gives each label.
    """

    x: Array
    mean: Array
    y: Array
    weight: Array
