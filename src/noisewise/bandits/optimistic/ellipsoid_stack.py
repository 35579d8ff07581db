"""What optimism needs of several ellipsoids that hold together: the smallest upper bound."""

from dataclasses import dataclass

import numpy as np

from ...confidence import Ellipsoid
from ...numerics.blas import matmul
from ...numerics.linalg import forms
from ...protocols import Array
from ...storage.states import check_array, check_layout, check_rows, check_type
from ...support.printing import OneLine


@dataclass(eq=False, repr=False)
class EllipsoidStack(OneLine):
    """Ellipsoids in a row: centres (n, d), inverses (n, d, d) and radii (n,)."""

    centres: Array
    inverses: Array
    radii: Array

    def __post_init__(self) -> None:
        check_type("EllipsoidStack.centres", self.centres, np.ndarray)
        n, d = self.centres.shape if self.centres.ndim == 2 else (0, 0)
        check_array("EllipsoidStack.centres", self.centres, (n, d))
        check_array("EllipsoidStack.inverses", self.inverses, (n, d, d))
        check_layout("EllipsoidStack.radii", self.radii, (n,))
        check_rows("EllipsoidStack", self.centres, self.inverses)
        if not (self.radii >= 0).all():  # infinite where nothing is known
            raise ValueError("EllipsoidStack.radii holds a number that is not >= 0")

    @classmethod
    def empty(cls, count: int, dim: int) -> "EllipsoidStack":
        """Make room for ``count`` ellipsoids, each of infinite radius."""
        return cls(np.zeros((count, dim)), np.zeros((count, dim, dim)), np.full(count, np.inf))

    def put(self, place: int, ellipsoids: tuple[Ellipsoid, ...]) -> None:
        """Replace those from ``place`` on."""
        for i, each in enumerate(ellipsoids, place):
            self.centres[i], self.inverses[i] = each.centre, each.inverse
            self.radii[i] = each.radius

    def upper(self, x: Array, scale: float = 1.0) -> Array:
        """Return for each row the smallest upper bound of its score over all ellipsoids known.

        Where none is known, all that distinguishes rows is their length.
        """
        if not np.isfinite(self.radii).any():
            return np.sqrt(np.einsum("ij,ij->i", x, x))
        return np.asarray(self.upper_bounds(x, scale).min(axis=0))

    def upper_bounds(self, x: Array, scale: float = 1.0) -> Array:
        """Return the upper bound by each ellipsoid (n, rows), infinite where it is not known."""
        bounds = np.full((len(self.radii), len(x)), np.inf)
        for i in np.flatnonzero(np.isfinite(self.radii)):
            reach = scale * self.radii[i] * np.sqrt(forms(x, self.inverses[i]))
            bounds[i] = matmul(x, self.centres[i]) + reach
        return bounds

    def reach(self, x: Array) -> float:
        """Return the smallest radius times width of one row over all ellipsoids known."""
        squares = np.einsum("i,fij,j->f", x, self.inverses, x)
        with np.errstate(invalid="ignore"):
            reach = self.radii * np.sqrt(np.maximum(squares, 0.0))
        return float(np.nanmin(np.where(np.isfinite(self.radii), reach, np.inf), initial=np.inf))
