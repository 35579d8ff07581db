"""Ellipsoid: where the parameter lies, and what that says of a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .inputs import features, numbers
from .numerics import linalg
from .numerics.blas import matmul
from .protocols import Given
from .support.arrays import Array, FloatOrArray
from .support.printing import OneLine


@dataclass(frozen=True, eq=False, repr=False)
class Ellipsoid(OneLine):
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

    def width(self, x: ArrayLike) -> FloatOrArray:
        """Return half the range of the score ``x . mu`` over the set."""
        return self._scores(x)[1]

    def upper(self, x: ArrayLike) -> FloatOrArray:
        """Return the largest score ``x . mu`` over the set."""
        middle, half = self._scores(x)
        return middle + half

    def lower(self, x: ArrayLike) -> FloatOrArray:
        """Return the smallest score ``x . mu`` over the set."""
        middle, half = self._scores(x)
        return middle - half

    def _scores(self, x: ArrayLike) -> tuple[FloatOrArray, FloatOrArray]:
        """Return the score of the centre, and half the range over the set."""
        x, single = features(x, len(self.centre))
        middle, half = matmul(x, self.centre), self.radius * np.sqrt(linalg.forms(x, self.inverse))
        return (float(middle[0]), float(half[0])) if single else (middle, half)

    def distance(self, theta: ArrayLike) -> float:
        """Return ||theta - centre|| in the norm of H."""
        away = numbers("theta", theta)
        if away.shape != self.centre.shape:
            raise ValueError(f"theta has shape {away.shape}; pass {self.centre.shape}")
        away = away - self.centre
        inside = linalg.solve(linalg.factor(self.inverse), away)
        return float(np.sqrt(max(float(away @ inside), 0.0)))

    def meets_ball(self, length: float) -> bool:
        """Return whether a point of the set has at most this norm."""
        H = linalg.invert(linalg.factor(self.inverse))
        return self.contains(linalg.project_ball(H, self.centre, length))

    def contains(self, theta: ArrayLike) -> bool:
        """Return whether ``theta`` lies in the set."""
        return self.distance(theta) <= self.radius


class Interval(tuple[FloatOrArray, FloatOrArray]):
    """Bounds of a mean, or of the mean at each of many rows: unpacks into lower and upper.

    Attributes
    ----------
    lower, upper : float or (n,) array
    promise : str
        What holds with probability 1 - delta: for which rows, and when.
    rests_on : str
        What that assumes.
    note : str
        Why an interval is infinite, of zero width or doubtful, and what it takes; else empty.

    Examples
    --------
    >>> lower, upper = both = Interval(0.2, 0.4, "one row, all times", "Gaussian noise")
    >>> lower == both.lower, both
    (True, Interval(0.2, 0.4; one row, all times; Gaussian noise))
    """

    promise: str
    rests_on: str
    note: str

    def __new__(
        cls, lower: FloatOrArray, upper: FloatOrArray, promise: str, rests_on: str, note: str = ""
    ) -> Interval:
        """Create an interval."""
        self = super().__new__(cls, (lower, upper))
        self.promise, self.rests_on, self.note = promise, rests_on, note
        return self

    def __getnewargs__(self) -> tuple[FloatOrArray | str, ...]:
        return (*self, self.promise, self.rests_on, self.note)

    @property
    def lower(self) -> FloatOrArray:
        """The lower bound."""
        return self[0]

    @property
    def upper(self) -> FloatOrArray:
        """The upper bound."""
        return self[1]

    def __repr__(self) -> str:
        words = joined(self.promise, self.rests_on, self.note)
        low, high = map(_brief, self)
        return f"Interval({low}, {high}; {words})"


def joined(*notes: str) -> str:
    """Return the notes that say something, as one."""
    return "; ".join(filter(None, notes))


def noted(*reasons: tuple[NDArray[np.bool_], str], what: str = "rows") -> str:
    """Return a note of reasons and the rows, or whatever they are, that each is for.

    >>> noted((np.array([True, True]), "few labels"), (np.array([False, True]), "far away"))
    'few labels; 1 of 2 rows: far away'
    """
    said = []
    for where, words in reasons:
        count = int(where.sum())
        if count:
            said.append(
                words if count == len(where) else f"{count} of {len(where)} {what}: {words}"
            )
    return joined(*said)


def _brief(end: FloatOrArray) -> str:
    """Return six digits of each number, and of many rows the first and last."""
    return np.array2string(
        np.asarray(end), threshold=6, edgeitems=2, formatter={"float_kind": "{:.6g}".format}
    )


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
        middle, half = ellipsoid._scores(x)
        lower = np.maximum(lower, np.minimum(middle - half, reach))
        upper = np.minimum(upper, np.maximum(middle + half, -reach))
    return lower, upper
