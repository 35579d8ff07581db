"""Numbers of a state by name, the same in kernels and in Python.

The numbers lie at the beginning of an array of floats. A kernel reads them as a record,
``s = a[:COUNT].view(NUMBERS)[0]``, and writes ``s.gap = 0.0``; parts take the record. Python has a
view with the same names, a subclass of `Numbers`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..support.arrays import Array


def record(names: Iterable[str]) -> np.dtype[np.void]:
    """Return the type of the record that kernels read; without a compiler numpy reads it, too."""
    return np.dtype((np.record, [(name, np.float64) for name in names]))


class Numbers:
    """Numbers by name: a view, so writing one writes the array. `fields` names them in order."""

    fields: ClassVar[dict[str, str]] = {}
    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __init_subclass__(cls) -> None:
        for place, (name, meaning) in enumerate(cls.fields.items()):
            setattr(cls, name, _number(place, meaning))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> float: ...
        def __setattr__(self, name: str, value: float | Array) -> None: ...


def _number(place: int, meaning: str) -> property:
    def read(self: Numbers) -> float:
        return self.array.item(place)

    def write(self: Numbers, value: float) -> None:
        self.array[place] = value

    return property(read, write, doc=meaning)
