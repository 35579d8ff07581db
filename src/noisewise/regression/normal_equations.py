"""The sums of weighted least squares, added up as rows come."""

from dataclasses import dataclass

import numpy as np

from ..blas import matmul
from ..inputs import dimension
from ..protocols import Array
from ..states import COUNT, FINITE, FLAG, NONNEGATIVE, check_fields, restore_writable


@dataclass(eq=False)
class NormalEquations:
    r"""The sums of weighted least squares, :math:`G = \sum w z z^\top`, and of its labels.

    Rows are z = (x - first x, 1) and labels y - first y, a shift that keeps digits; without an
    intercept they are as given. ``total`` is :math:`\sum w`. The mixtures behind anytime intervals
    are in units of ``scales``, the features' mean weighted squares around ``centre``, their means.
    Both are fixed at row 2d + 10, or when an interval is first asked for (``frozen``), a scale at
    the earliest with the row that moves its feature (0 until then): later rows must not enter.
    """

    dim: int
    intercept: bool
    origin: Array
    label_origin: float
    gram: Array
    moment: Array
    squares: float
    total: float
    count: int
    centre: Array
    scales: Array
    frozen: bool

    def __post_init__(self) -> None:
        p = dimension(self.dim) + bool(self.intercept)
        check_fields(self, origin=(self.dim,), gram=(p, p), moment=(p,))
        check_fields(self, centre=(p,), scales=(p,), frozen=FLAG)
        check_fields(self, label_origin=FINITE, squares=NONNEGATIVE, total=NONNEGATIVE, count=COUNT)

    __setstate__ = restore_writable

    @classmethod
    def start(cls, dim: int, intercept: bool) -> "NormalEquations":
        """Return the sums of no rows."""
        p = dim + intercept
        G, b, centre, scales = np.zeros((p, p)), np.zeros(p), np.zeros(p), np.zeros(p)
        origin = np.zeros(dim)
        return cls(dim, intercept, origin, 0.0, G, b, 0.0, 0.0, 0, centre, scales, frozen=False)

    def update(self, x: Array, y: Array, w: Array) -> None:
        """Add checked rows; those of weight 0 are left out."""
        if len(x) == 1 and self.frozen and w[0] > 0 and self.scales.all():
            self._add_row(x[0], float(y[0]), float(w[0]))
            return
        if not w.all():
            x, y, w = x[w > 0], y[w > 0], w[w > 0]
        if not len(x):
            return
        if not self.count and self.intercept:
            self.origin, self.label_origin = x[0].copy(), float(y[0])
        z, y = self.directions(x), y - self.label_origin
        if not self.frozen:
            until = max(2 * self.dim + 10 - self.count, 0)
            self._add(z[:until], y[:until], w[:until])
            if self.count < 2 * self.dim + 10:
                return
            self.freeze()
            z, y, w = z[until:], y[until:], w[until:]
        if not self.scales.all():
            self._scale_what_moves(z, w)
        self._add(z, y, w)

    def directions(self, x: Array) -> Array:
        """Return rows z."""
        if not self.intercept:
            return x
        z = np.empty((len(x), self.dim + 1))
        np.subtract(x, self.origin, out=z[:, :-1])
        z[:, -1] = 1.0
        return z

    def _add(self, z: Array, y: Array, w: Array) -> None:
        weighted = z * w[:, None]
        self.gram += matmul(weighted.T, z)
        self.moment += matmul(y, weighted)
        self.squares += float(w @ (y * y))
        self.total += float(w.sum())
        self.count += len(z)

    def _add_row(self, x: Array, y: float, w: float) -> None:
        """Add one row, as `_add` would, without its overhead."""
        if self.intercept:
            z = np.ones(len(x) + 1)
            np.subtract(x, self.origin, out=z[:-1])
            y -= self.label_origin
        else:
            z = x
        weighted = w * z
        self.gram += weighted[:, None] * z
        self.moment += y * weighted
        self.squares += w * y * y
        self.total += w
        self.count += 1

    def freeze(self) -> None:
        """Fix the centre, and the scales of what has moved."""
        self.frozen = True
        self.centre = self.means()
        square = np.diag(self.gram) / self.count
        self.scales = square - (self.total / self.count) * self.centre**2
        self.scales[~(self.scales > 1e-14 * square)] = 0.0

    def means(self) -> Array:
        """Return the features' means, 0 for the intercept and in a model without."""
        means = np.zeros(len(self.moment))
        if self.intercept and self.count:
            means[:-1] = self.gram[-1, :-1] / self.total
        return means

    def _scale_what_moves(self, z: Array, w: Array) -> None:
        """Fix the scale of a feature with the row that moves it first."""
        for i in np.flatnonzero((self.scales == 0) & (z != 0).any(axis=0)):
            at = int(np.argmax(z[:, i] != 0))
            n, total = self.count + at + 1, self.total + float(w[: at + 1].sum())
            share = 1 - w[at] / total if self.intercept else 1.0
            self.scales[i] = w[at] * z[at, i] ** 2 * share / n
