"""History: the rows that several learners have learnt, held once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..printing import OneLine
from ..protocols import Array
from ..states import check_finite, check_layout, check_rows, check_type, restore_writable

LEAST_ROOM = 64  # rows


@dataclass(eq=False, repr=False)
class History(OneLine):
    """Rows as they were given, with weights and labels, and what their curvature is to a learner.

    Arrays have room for more rows than ``count``; a file has none.
    """

    x: Array  # (n, dim)
    labels: Array  # (2, n): weights, and labels times these
    curvature: Array  # (learners, n): in the Hessian of each

    def __post_init__(self) -> None:
        for name, each in (("x", self.x), ("labels", self.labels), ("curvature", self.curvature)):
            check_type(f"History.{name}", each, np.ndarray)
            check_layout(f"History.{name}", each, each.shape if each.ndim == 2 else (0, 0))
            check_finite(f"History.{name}", each)
        n = len(self.x)
        check_layout("History.labels", self.labels, (2, n))
        check_layout("History.curvature", self.curvature, (len(self.curvature), n))
        check_rows("History", self.x, self.labels, self.curvature)
        if min(self.labels[0].min(initial=1.0), self.curvature.min(initial=0.0)) < 0:
            raise ValueError("History holds a weight or curvature that is negative")
        self.count = n

    @classmethod
    def start(cls, dim: int, learners: int) -> "History":
        """Return a history without rows."""
        return cls(np.empty((0, dim)), np.empty((2, 0)), np.empty((learners, 0)))

    @property
    def rows(self) -> Array:
        """The rows, a view."""
        return self.x[: self.count]

    @property
    def weights(self) -> Array:
        """Their weights."""
        return self.labels[0, : self.count]

    @property
    def targets(self) -> Array:
        """Their labels."""
        return np.asarray(self.labels[1, : self.count] / self.weights)

    def append(self, x: Array, y: Array, w: Array) -> None:
        """Add rows, whose curvatures are to follow."""
        n, end = self.count, self.count + len(x)
        if end > len(self.x):
            self._resize(max(2 * n, end, LEAST_ROOM))
        self.x[n:end], self.labels[:, n:end] = x, (w, w * y)
        self.count = end

    def replace(self, x: Array) -> None:
        """Hold the same rows by other columns."""
        made = np.zeros((len(self.x), x.shape[1]))
        made[: self.count] = x
        self.x = made

    def keep(self, learners: NDArray[np.bool_]) -> None:
        """Forget the curvatures of all other learners."""
        self.curvature = self.curvature[learners]

    def with_own_curvatures(self) -> "History":
        """Return a history that shares all but the curvatures."""
        twin = object.__new__(History)
        vars(twin).update(vars(self), curvature=self.curvature.copy())
        return twin

    def _resize(self, room: int) -> None:
        n, made = self.count, {}
        for name in ("labels", "curvature"):
            old = vars(self)[name]
            made[name] = np.zeros((len(old), room))
            made[name][:, :n] = old[:, :n]
        x = np.zeros((room, self.x.shape[1]))
        x[:n] = self.rows
        vars(self).update(made, x=x)

    def __getstate__(self) -> dict[str, object]:
        """Return the fields, without room."""
        n = self.count
        return {
            "x": self.x[:n].copy(),
            "labels": self.labels[:, :n].copy(),
            "curvature": self.curvature[:, :n].copy(),
        }

    def __setstate__(self, fields: dict[str, object]) -> None:
        restore_writable(self, fields)
        self.__post_init__()
