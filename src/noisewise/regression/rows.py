"""Rows: the history of a learner, held once, in blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..protocols import Array

FIRST, LARGEST = 64, 8192


@dataclass(eq=False)
class Rows:
    """Features with their weight w and weighted label w y, in blocks that are never moved.

    Blocks double from 64 to 8192 rows, so a short history is small and a long one wastes little.
    """

    dim: int
    count: int = 0
    x: list[Array] = field(default_factory=list)
    weight: list[Array] = field(default_factory=list)
    moment: list[Array] = field(default_factory=list)
    free: int = 0

    def append(self, x: Array, y: float, weight: float) -> None:
        """Copy one row to the end."""
        if self.free == 0:
            size = min(2 * len(self.x[-1]), LARGEST) if self.x else FIRST
            self.x.append(np.empty((size, self.dim)))
            self.weight.append(np.empty(size))
            self.moment.append(np.empty(size))
            self.free = size
        at = len(self.x[-1]) - self.free
        self.x[-1][at] = x
        self.weight[-1][at] = weight
        self.moment[-1][at] = weight * y
        self.free -= 1
        self.count += 1

    def clear(self) -> None:
        """Forget every row; the largest block is kept for the next ones."""
        del self.x[:-1], self.weight[:-1], self.moment[:-1]
        self.free = len(self.x[-1]) if self.x else 0
        self.count = 0

    def __iter__(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield (x, weight, moment) block by block, as views."""
        for i, x in enumerate(self.x):
            n = len(x) - (self.free if i == len(self.x) - 1 else 0)
            yield x[:n], self.weight[i][:n], self.moment[i][:n]
