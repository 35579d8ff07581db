"""What learners know: numbers and vectors by name, and an inverse each, in a row of one matrix.

Coordinates are those in which the penalty is half the squared length: a feature is multiplied by
its unit, the root of one over its penalty, and a coefficient is one coordinate times that unit.
"""

import math

import numpy as np

from ...support.arrays import Array
from .layout import (
    ANCHOR,
    COUNT,
    GRADIENT,
    HEADER,
    NUMBERS,
    SLOTS,
    STEP,
    UNIT,
    VECTORS,
    align,
    padded,
    size,
)


class Learners:
    """The numbers and vectors of learners by name, one row each: views of their memory."""

    def __init__(self, memory: Array, dim: int) -> None:
        n, k = padded(dim), len(memory)
        self.numbers = memory[:, :COUNT].view(NUMBERS)[:, 0]
        vectors = memory[:, HEADER : HEADER + VECTORS * n].reshape(k, VECTORS, n)[..., :dim]
        self.anchor, self.step = vectors[:, ANCHOR], vectors[:, STEP]
        self.gradient = vectors[:, GRADIENT]
        self.slots, self.unit = vectors[:, SLOTS : SLOTS + 2], vectors[:, UNIT]
        self.stored = memory[:, HEADER + VECTORS * n :].reshape(k, n, n)[:, :dim, :dim]

    @property
    def estimate(self) -> Array:
        """The estimates in the coordinates of the learners."""
        return np.asarray(self.anchor + self.step)

    @property
    def theta(self) -> Array:
        """The coefficients, of rows as the history has them."""
        return np.asarray(self.unit * self.estimate)

    def move(self, theta: Array, unit: Array) -> None:
        """Set coefficients and units; the rest is that of before until they learn `again`."""
        known = np.broadcast_to(unit > 0, theta.shape)
        self.unit[:] = unit
        self.anchor[:] = np.divide(theta, self.unit, out=np.zeros(theta.shape), where=known)
        self.step[:] = 0.0

    def inverse(self, which: int) -> Array:
        """Return the inverse of the Hessian of one, in its coordinates."""
        s, P = self.numbers[which], np.tril(self.stored[which])
        k = self.slots[which, int(s["slot"])]
        return np.asarray(P + np.tril(P, -1).T - s["pending"] * np.outer(k, k))


def start(many: int, dim: int, **numbers: float) -> Array:
    """Return the memory of learners with these numbers and units of 1 that have learnt nothing."""
    memory = align(np.zeros((many, size(dim, buffer=0))))
    made, own = Learners(memory, dim), ("ridge", "scale", "stale_low", "stale_high", "smallest")
    known = {"dim": dim, "padded": padded(dim), "limit": math.inf, **dict.fromkeys(own, 1.0)}
    for name, value in {**known, **numbers}.items():
        made.numbers[name] = value
    made.unit[:] = 1.0
    made.stored[:, range(dim), range(dim)] = 1.0
    return memory
