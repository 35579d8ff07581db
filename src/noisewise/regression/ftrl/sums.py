"""What a pass over rows adds up: their loss at a parameter, and what a state must know of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np

from ...model.glm import GLM
from ...numerics.blas import one_thread
from ...protocols import Array

ADDED_UP = ["count", "value", "size", "blur", "gradient", "curvature", "total", "squares", "gram"]
LARGEST = ["heaviest", "longest", "highest"]
SMALL = 15_000  # numbers of an array that malloc takes from its heap


class Adding(Protocol):
    """What adds up."""

    def __add__(self, other: Self, /) -> Self:
        """Return the sum."""


Sum = TypeVar("Sum", bound=Adding)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows of positive weight, at one parameter; the ridge is not in them.

    ``size`` and ``blur`` are the sizes of the terms of value and gradient, from which their
    rounding errors follow. ``gram`` is :math:`\\sum w x x^\\top`, zero unless it was asked for.
    """

    count: int
    value: float
    size: float
    blur: float
    gradient: Array
    curvature: Array
    gram: Array
    total: float
    squares: float
    heaviest: float
    longest: float
    lowest: float
    highest: float

    def __add__(self, other: "Sums") -> "Sums":
        """Return the sums over the rows of both."""
        both = {name: (vars(self)[name], vars(other)[name]) for name in vars(self)}
        joined = {name: a + b for name, (a, b) in both.items() if name in ADDED_UP}
        joined |= {name: max(pair) for name, pair in both.items() if name in LARGEST}
        return Sums(**joined, lowest=min(both["lowest"]))

    @classmethod
    def none(cls, dim: int) -> "Sums":
        """Return the sums over no rows; labels reach from 0 to 0, as in a fresh state."""
        g, H = np.zeros(dim), np.zeros((dim, dim))
        return cls(0, 0.0, 0.0, 0.0, g, H, H, *np.zeros(6).tolist())


@one_thread
def sums(glm: GLM, x: Array, y: Array, w: Array, theta: Array, gram: bool) -> Sums:
    """Return the sums over checked rows, with their Gram matrix if asked for."""
    if not w.all():
        x, y, w = x[w > 0], y[w > 0], w[w > 0]
    if not len(x):
        return Sums.none(len(theta))
    z, pull = x @ theta, w * y
    potential, drawn = w * glm.potential(z), pull * z
    mean, slope = w * glm.mean(z), w * glm.slope(z)
    reach = np.sqrt(np.vecdot(x, x))
    H = square(x, slope)
    return Sums(
        count=len(x),
        value=float((potential - drawn).sum()),
        size=float((np.abs(potential) + np.abs(drawn)).sum()),
        blur=float(reach @ (np.abs(mean) + np.abs(pull) + slope * reach * np.linalg.norm(theta))),
        gradient=(mean - pull) @ x,
        curvature=H,
        gram=(H if glm.linear else square(x, w)) if gram else np.zeros_like(H),
        total=float(reach @ (np.abs(mean - pull) + np.abs(pull))),
        squares=float(pull @ y),
        heaviest=float(w.max()),
        longest=float(reach.max()),
        lowest=min(float(y.min()), 0.0),
        highest=max(float(y.max()), 0.0),
    )


def square(x: Array, w: Array) -> Array:
    """Return the sum of w x x'; of one matrix with itself, a product costs half.

    A few rows at a time: where the allocator returns large arrays to the system, as on Dask's
    workers, fresh memory for each would double the time.
    """
    root, H = np.sqrt(w), np.zeros((x.shape[1], x.shape[1]))
    step = max(SMALL // max(x.shape[1], 1), 1)
    for at in range(0, len(x), step):
        some = x[at : at + step] * root[at : at + step, None]
        H += some.T @ some
    return H


def added(parts: Iterable[Sum]) -> Sum:
    """Return the sum in the order of a balanced tree, whatever the number of parts.

    Neighbours are added first, then neighbouring pairs, and so on: rounding errors grow with the
    logarithm of their number, and the result does not depend on who adds which.
    """
    held: list[tuple[int, Sum]] = []
    for part in parts:
        level = 0
        while held and held[-1][0] == level:
            part = held.pop()[1] + part
            level += 1
        held.append((level, part))
    last = held.pop()[1]
    while held:
        last = held.pop()[1] + last
    return last
