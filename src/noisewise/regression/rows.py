"""Rows: the history of a learner, held once, in blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..protocols import Array

FIRST, LARGEST = 2048, 4096

# x (size, d), numbers (4, size), and how many rows of them are filled
Block = tuple[Array, Array, int]


@dataclass(eq=False)
class Rows:
    """Features with weight, weighted label and two curvatures, in blocks that are never moved.

    Blocks hold 2048 and then 4096 rows, so a short history is small and a long one wastes little.
    With ``merge`` equal features share one row, whose numbers are summed.
    """

    dim: int
    merge: bool = False
    free: int = 0
    x: list[Array] = field(default_factory=list)
    numbers: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._place: dict[bytes, tuple[int, int]] = {}
        if self.merge:
            for i, (x, _, n) in enumerate(self):
                self._place.update({x[j].tobytes(): (i, j) for j in range(n)})

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; scratch numbers and the free room of the last block are cleared."""
        fields = {k: v for k, v in vars(self).items() if k != "_place"}
        fields["numbers"] = [
            np.vstack([each[:3], np.zeros(each.shape[1])]) for each in self.numbers
        ]
        if self.free:
            x = self.x[-1].copy()
            x[-self.free :] = fields["numbers"][-1][:, -self.free :] = 0.0
            fields["x"] = [*self.x[:-1], x]
        return fields

    def __setstate__(self, fields: dict[str, Any]) -> None:
        vars(self).update(fields)
        self.__post_init__()

    def extend(self, x: Array, numbers: Array) -> None:
        """Copy rows to the end, or add them to their equals."""
        if not self.merge:
            self._append(x, numbers)
            return
        x = x + 0.0  # -0.0 becomes 0.0: equal rows must have equal bytes
        for j, row in enumerate(x):
            key = row.tobytes()
            place = self._place.get(key)
            if place is None:
                self._append(x[j : j + 1], numbers[:, j : j + 1])
                self._place[key] = len(self.x) - 1, len(self.x[-1]) - self.free - 1
            else:
                self.numbers[place[0]][:, place[1]] += numbers[:, j]

    def _append(self, x: Array, numbers: Array) -> None:
        done = 0
        while done < len(x):
            if self.free == 0:
                size = min(2 * len(self.x[-1]), LARGEST) if self.x else FIRST
                self.x.append(np.empty((size, self.dim)))
                self.numbers.append(np.empty((4, size)))
                self.free = size
            n = min(self.free, len(x) - done)
            to = slice(len(self.x[-1]) - self.free, len(self.x[-1]) - self.free + n)
            self.x[-1][to] = x[done : done + n]
            self.numbers[-1][:, to] = numbers[:, done : done + n]
            self.free -= n
            done += n

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        last = len(self.x) - 1
        for i, (x, numbers) in enumerate(zip(self.x, self.numbers, strict=True)):
            yield x, numbers, len(x) - (self.free if i == last else 0)
