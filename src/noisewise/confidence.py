"""Ellipsoid: where the parameter lies, and what that says of a score."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from . import linalg
from .blas import matmul
from .inputs import features, numbers
from .protocols import Array, Given, Numbers


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    r"""The set of :math:`\mu` with :math:`\|\mu - c\|_H \le r`, kept as c, :math:`H^{-1}`, r.

    Examples
    --------
    >>> disc = Ellipsoid(np.zeros(2), np.diag([4.0, 1.0]), 1.0)
    >>> float(disc.upper([1.0, 0.0])), disc.contains([1.9, 0.0]), disc.contains([0.0, 1.1])
    (2.0, True, False)
    """

    centre: Array
    inverse: Array
    radius: float

    def width(self, x: ArrayLike) -> Numbers:
        """Return half the range of the score ``x . mu`` over the set."""
        x, single = features(x, len(self.centre))
        variance = np.einsum("ij,ij->i", matmul(x, self.inverse), x)
        half = self.radius * np.sqrt(np.maximum(variance, 0.0))
        return float(half[0]) if single else half

    def upper(self, x: ArrayLike) -> Numbers:
        """Return the largest score ``x . mu`` over the set."""
        return matmul(np.asarray(x, dtype=np.float64), self.centre) + self.width(x)

    def lower(self, x: ArrayLike) -> Numbers:
        """Return the smallest score ``x . mu`` over the set."""
        return matmul(np.asarray(x, dtype=np.float64), self.centre) - self.width(x)

    def distance(self, theta: ArrayLike) -> float:
        """Return ||theta - centre|| in the norm of H."""
        away = numbers("theta", theta)
        if away.shape != self.centre.shape:
            raise ValueError(f"theta has shape {away.shape}; pass {self.centre.shape}")
        away = away - self.centre
        inside = linalg.solve(linalg.factor(self.inverse), away)
        return float(np.sqrt(max(float(away @ inside), 0.0)))

    def contains(self, theta: ArrayLike) -> bool:
        """Return whether ``theta`` lies in the set."""
        return self.distance(theta) <= self.radius


@runtime_checkable
class Confident(Protocol[Given]):
    """A policy with confidence sets."""

    def confidence(self, state: Given) -> tuple[Ellipsoid, ...]:
        """Return the sets, which hold the parameter together and in all rounds."""


def score_bounds(
    ellipsoids: tuple[Ellipsoid, ...], x: Array, parameter_bound: float | None = None
) -> tuple[Array, Array]:
    """Return the least and largest score of each row over sets that hold together.

    One more set is the ball of ``parameter_bound``, where that is known.

    >>> disc = Ellipsoid(np.zeros(1), np.eye(1), 3.0)
    >>> score_bounds((disc,), np.ones((1, 1)), parameter_bound=2.0)
    (array([-2.]), array([2.]))
    """
    reach = np.full(len(x), np.inf)
    if parameter_bound is not None:
        reach = parameter_bound * np.sqrt(np.einsum("ij,ij->i", x, x))
    lower, upper = -reach, reach
    for ellipsoid in ellipsoids:
        lower = np.maximum(lower, np.minimum(ellipsoid.lower(x), reach))
        upper = np.minimum(upper, np.maximum(ellipsoid.upper(x), -reach))
    return lower, upper
