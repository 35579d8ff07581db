"""Rows: the history of a learner, held once, in blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..inputs import dimension
from ..printing import OneLine
from ..protocols import Array
from ..states import (
    COUNT,
    FLAG,
    check_fields,
    check_finite,
    check_layout,
    check_list,
    check_rows,
    restore_writable,
)

FIRST = 2048  # rows of the first block
LARGEST = 1 << 21  # numbers of a block: memory in large pages costs a quarter to fill
PIECE = 512  # rows that are multiplied at once, so that sums do not depend on where blocks end


class Block(NamedTuple):
    """Rows of a history, by column; ``numbers`` holds the last four with the room behind them."""

    x: Array
    weight: Array  # w
    pull: Array  # w y
    curvature: Array  # w phi' in the solver's H
    trial: Array  # w phi' at the trial point of a pass
    numbers: Array

    @classmethod
    def of(cls, x: Array, numbers: Array, n: int) -> "Block":
        """Return the first ``n`` rows of what there is room for."""
        weight, pull, curvature, trial = numbers[:, :n]
        return cls(x[:n], weight, pull, curvature, trial, numbers)

    def pieces(self) -> Iterator[slice]:
        """Yield the rows by pieces."""
        return (slice(first, first + PIECE) for first in range(0, len(self.x), PIECE))


@dataclass(eq=False, repr=False)
class Rows(OneLine):
    """Features with weight, weighted label and two curvatures, in blocks that are never moved.

    The first block has room for 2048 rows and a new one for four times what is held, up to 16 MB,
    so a short history is small and a long one wastes little. A file has no room in it.
    With ``merge`` equal features share one row, whose numbers are summed.
    """

    dim: int
    merge: bool = False
    free: int = 0
    x: list[Array] = field(default_factory=list)
    numbers: list[Array] = field(default_factory=list)
    room: int = 0  # of the last block, left out of a file

    def __post_init__(self) -> None:
        self._check()
        if self.room:
            size, used = len(self.x[-1]) + self.room, len(self.x[-1]) - self.free
            x, numbers = np.empty((size, self.dim)), np.empty((4, size))
            x[:used], numbers[:, :used] = self.x[-1][:used], self.numbers[-1][:, :used]
            self.x, self.numbers = [*self.x[:-1], x], [*self.numbers[:-1], numbers]
            self.free, self.room = size - used, 0
        self.absorbed = self.stored  # rows learnt, of which merged ones share a place
        self.shared = False  # whether `freeze` has handed the blocks out
        self._place: dict[bytes, tuple[int, int]] = {}
        if self.merge:
            for i, block in enumerate(self):
                self._place.update({x.tobytes(): (i, j) for j, x in enumerate(block.x)})

    def _check(self) -> None:
        """Raise if what was given is no history."""
        check_fields(self, merge=FLAG, free=COUNT, room=COUNT)
        check_list("Rows.x", self.x, np.ndarray)
        check_list("Rows.numbers", self.numbers, np.ndarray)
        dimension(self.dim)
        if len(self.x) != len(self.numbers):
            raise ValueError(f"Rows.x has {len(self.x)} blocks, Rows.numbers {len(self.numbers)}")
        for x, numbers in zip(self.x, self.numbers, strict=True):
            check_layout("Rows.x", x, (x.size // self.dim, self.dim))
            check_layout("Rows.numbers", numbers, (4, len(x)))
            check_rows("Rows", x, numbers)
        if self.free > max(len(self.x[-1]) - 1 if self.x else 0, 0):
            raise ValueError(f"Rows.free is {self.free}, more than the last block has")
        if self.room > (max(FIRST, LARGEST // self.dim) if self.x else 0):
            raise ValueError(f"Rows.room is {self.room}, more than a block has")
        for block in self:
            for each in block[:4]:
                check_finite("Rows", each)

    @property
    def stored(self) -> int:
        """The number of rows held."""
        return sum(map(len, self.x)) - self.free

    def __getstate__(self) -> dict[str, object]:
        """Return the fields, without free room; scratch numbers are cleared."""
        x, numbers = [*self.x], [each.copy() for each in self.numbers]
        if self.free:
            x[-1], numbers[-1] = x[-1][: -self.free].copy(), numbers[-1][:, : -self.free].copy()
        for each in numbers:
            each[3] = 0.0
        fields = {"dim": self.dim, "merge": self.merge, "free": 0, "x": x, "numbers": numbers}
        return {**fields, "room": self.free}

    def __setstate__(self, fields: dict[str, object]) -> None:
        restore_writable(self, fields)
        self.__post_init__()

    def copy(self) -> "Rows":
        """Return a history that shares the features: one of the two may go on."""
        twin = object.__new__(Rows)
        numbers = [each.copy() for each in self.numbers]  # passes write them
        vars(twin).update(vars(self), numbers=numbers, _place=dict(self._place))
        return twin

    def freeze(self) -> "Rows":
        """Return the history as it is, which stays that while this one goes on."""
        twin = object.__new__(Rows)
        lists = {"x": [*self.x], "numbers": [*self.numbers]}
        vars(twin).update({**vars(self), **lists, "_place": dict(self._place)})
        self.shared = True
        return twin

    def own_curvatures(self) -> None:
        """Copy what renewing the factor writes, if it was handed out."""
        if self.shared:
            self.numbers, self.shared = [each.copy() for each in self.numbers], False

    def extend(self, x: Array, numbers: Array) -> None:
        """Copy rows to the end, or add them to their equals: all of them, or none if interrupted.

        What is written before the last step lies in free room or in copies.
        """
        n = len(x)
        if n <= self.free and not self.merge:
            end = len(self.x[-1]) - self.free + n
            self.x[-1][end - n : end] = x
            self.numbers[-1][:, end - n : end] = numbers
            vars(self).update(free=self.free - n, absorbed=self.absorbed + n)  # one step
            return
        held, added = _Held([*self.x], [*self.numbers], self.free), {}
        if not self.merge:
            held.append(x, numbers, self.dim)
        else:
            added = self._merge(held, x + 0.0, numbers)  # -0.0 becomes 0.0: equal bytes
        fields = {"x": held.x, "numbers": held.numbers, "free": held.free}
        vars(self).update(fields, absorbed=self.absorbed + n)  # one step
        self._place.update(added)

    def _merge(self, held: "_Held", x: Array, numbers: Array) -> dict[bytes, tuple[int, int]]:
        """Add rows to their equals in copies of the blocks; return the places of new ones."""
        added: dict[bytes, tuple[int, int]] = {}
        copied: set[int] = set()
        for j, row in enumerate(x):
            key = row.tobytes()
            place = self._place.get(key) or added.get(key)
            if place is None:
                held.append(x[j : j + 1], numbers[:, j : j + 1], self.dim)
                added[key] = len(held.x) - 1, len(held.x[-1]) - held.free - 1
                continue
            if place[0] not in copied:
                held.numbers[place[0]] = held.numbers[place[0]].copy()
                copied.add(place[0])
            held.numbers[place[0]][:, place[1]] += numbers[:, j]
        return added

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        last = len(self.x) - 1
        for i, (x, numbers) in enumerate(zip(self.x, self.numbers, strict=True)):
            yield Block.of(x, numbers, len(x) - (self.free if i == last else 0))


@dataclass(eq=False)
class _Held:
    """The blocks of a history on their way to becoming its next ones."""

    x: list[Array]
    numbers: list[Array]
    free: int

    def append(self, x: Array, numbers: Array, dim: int) -> None:
        done = 0
        while done < len(x):
            if self.free == 0:
                most = min(4 * sum(map(len, self.x)), LARGEST // dim)
                size = max(most // FIRST * FIRST, FIRST)
                self.x.append(np.empty((size, dim)))
                self.numbers.append(np.empty((4, size)))
                self.free = size
            n = min(self.free, len(x) - done)
            to = slice(len(self.x[-1]) - self.free, len(self.x[-1]) - self.free + n)
            self.x[-1][to] = x[done : done + n]
            self.numbers[-1][:, to] = numbers[:, done : done + n]
            self.free -= n
            done += n
