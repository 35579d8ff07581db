"""History: the rows that one or several learners have learnt, held once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..protocols import Array
from ..storage.states import (
    FLAG,
    check_fields,
    check_finite,
    check_layout,
    check_rows,
    check_type,
    restore_writable,
)
from ..support.printing import OneLine

LEAST_ROOM = 64  # rows
LARGEST = 1 << 21  # numbers that are looked at together
PIECE = 512  # rows that are multiplied at once, so that sums do not depend on where blocks end


class Block(NamedTuple):
    """Some rows of a history, by column."""

    x: Array
    weight: Array  # w
    pull: Array  # w y
    curvature: Array  # w phi' in the Hessian of the first learner, if there is one

    def pieces(self) -> Iterator[slice]:
        """Yield the rows by pieces."""
        return (slice(first, first + PIECE) for first in range(0, len(self.x), PIECE))


@dataclass(eq=False, repr=False)
class History(OneLine):
    """Rows as they were given, with weights and labels, and what their curvature is to a learner.

    Arrays have room for more rows than ``count``; a file has none. With ``merge`` equal rows share
    a place, in which all but features are summed.
    """

    x: Array  # (n, dim)
    labels: Array  # (2, n): weights, and labels times these
    curvature: Array  # (learners, n): in the Hessian of each
    merge: bool = False

    def __post_init__(self) -> None:
        check_fields(self, merge=FLAG)
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
        self.count = self.absorbed = n  # rows held, and rows learnt: merged ones share a place
        self._place = {x.tobytes(): i for i, x in enumerate(self.x)} if self.merge else {}

    @classmethod
    def start(cls, dim: int, learners: int = 0, merge: bool = False) -> "History":
        """Return a history without rows."""
        return cls(np.empty((0, dim)), np.empty((2, 0)), np.empty((learners, 0)), merge)

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.x.shape[1]

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

    def __iter__(self) -> Iterator[Block]:
        """Yield the rows in order, in blocks of 16 MB: what is made of each is small."""
        size = max(LARGEST // self.dim // PIECE, 1) * PIECE
        weight, pull = self.labels
        curvature = self.curvature[:1].reshape(-1)
        for first in range(0, self.count, size):
            some = slice(first, min(first + size, self.count))
            yield Block(self.x[some], weight[some], pull[some], curvature[some])

    def extend(self, x: Array, labels: Array, curvature: Array | None = None) -> None:
        """Add rows, or add them to their equals: all of them, or none if interrupted.

        Curvatures that are not given are to follow.
        """
        if self.merge:
            self._merge(x + 0.0, labels, curvature)  # -0.0 becomes 0.0: equal bytes
            return
        n, end = self.count, self.count + len(x)
        self.reserve(end)
        self.x[n:end], self.labels[:, n:end] = x, labels
        if curvature is not None:
            self.curvature[:, n:end] = curvature
        vars(self).update(count=end, absorbed=self.absorbed + len(x))  # one step

    def append(self, x: Array, y: Array, w: Array) -> None:
        """Add rows with labels and weights."""
        self.extend(x, np.array([w, w * y]))

    def _merge(self, x: Array, labels: Array, curvature: Array | None) -> None:
        n, new = self.count, dict[bytes, int]()
        places = [
            self._place[key] if key in self._place else new.setdefault(key, n + len(new))
            for key in (row.tobytes() for row in x)
        ]
        self.reserve(n + len(new))
        made = {"labels": self.labels.copy(), "curvature": self.curvature.copy()}
        for name, given in (("labels", labels), ("curvature", curvature)):
            made[name][:, n : n + len(new)] = 0.0
            if given is not None:
                np.add.at(made[name].T, places, given.T)
        self.x[places] = x  # in free room, or as it was
        count, absorbed = n + len(new), self.absorbed + len(x)
        vars(self).update(made, count=count, absorbed=absorbed)  # one step
        self._place.update(new)

    def replace(self, x: Array) -> None:
        """Hold the same rows by other columns."""
        made = np.zeros((len(self.x), x.shape[1]))
        made[: self.count] = x
        self.x = made

    def keep(self, learners: NDArray[np.bool_]) -> None:
        """Forget the curvatures of all other learners."""
        self.curvature = self.curvature[learners]

    def copy(self) -> "History":
        """Return a history that shares all but the curvatures: one of the two may go on."""
        twin = object.__new__(History)
        own = {"curvature": self.curvature.copy(), "_place": dict(self._place)}
        vars(twin).update(vars(self), **own)
        return twin

    def reserve(self, end: int) -> None:
        """Make room for so many rows."""
        if end <= len(self.x):
            return
        n, room, made = self.count, max(2 * self.count, end, LEAST_ROOM), {}
        for name in ("labels", "curvature"):
            old = vars(self)[name]
            made[name] = np.empty((len(old), room))
            made[name][:, :n] = old[:, :n]
        x = np.empty((room, self.dim))
        x[:n] = self.rows
        vars(self).update(made, x=x)

    def __getstate__(self) -> dict[str, object]:
        """Return the fields, without room."""
        n = self.count
        return {
            "x": self.x[:n].copy(),
            "labels": self.labels[:, :n].copy(),
            "curvature": self.curvature[:, :n].copy(),
            "merge": self.merge,
        }

    def __setstate__(self, fields: dict[str, object]) -> None:
        restore_writable(self, fields)
        self.__post_init__()
