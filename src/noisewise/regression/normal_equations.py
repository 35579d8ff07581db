"""The sums of weighted least squares, added up as rows come."""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import blas

from ..inputs import dimension
from ..numerics import linalg
from ..numerics.blas import SMALL_PRODUCT, matmul, one_thread
from ..protocols import Array
from ..storage.states import (
    COUNT,
    FINITE,
    FLAG,
    NONNEGATIVE,
    check_fields,
    check_semidefinite,
    field_values,
    restore_writable,
)
from ..support.printing import OneLine

BLOCK, PRODUCTS = 8192, 2e9  # rows added at once, and their products: an interrupt is heard after
_add_product = one_thread(blas.dger)
INDISTINCT = 1e-10  # an eigenvalue of the first rows' correlations that is left out


@dataclass(eq=False, repr=False)
class NormalEquations(OneLine):
    r"""The sums of weighted least squares: ``table`` is :math:`\sum w u u^\top`, u = (z, y).

    Rows are z = (x - first x, 1) and labels y - first y, a shift that keeps digits; without an
    intercept they are as given. ``total`` is :math:`\sum w`. The mixtures behind anytime intervals
    are in units of ``spread``, the mean of weighted products of features around ``centre``, their
    means, and ``scales``, its diagonal. They are fixed at row 2d + 10 (``frozen``); the scale of a
    feature that is constant until then (0) is fixed with the row that first moves it, without
    products. Later rows must not enter. ``labels`` are the first p + 3 different ones, p the number
    of parameters.
    """

    dim: int
    intercept: bool
    origin: Array
    label_origin: float
    table: Array
    total: float
    count: int
    centre: Array
    scales: Array
    frozen: bool = False
    settled: bool = False  # frozen, and every feature has moved
    spread: Array = field(default_factory=lambda: np.zeros((0, 0)))
    labels: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        check_fields(self, intercept=FLAG, frozen=FLAG, settled=FLAG)
        check_fields(self, label_origin=FINITE, total=NONNEGATIVE, count=COUNT)
        p = dimension(self.dim) + self.intercept
        check_fields(self, origin=(self.dim,), table=(p + 1, p + 1), centre=(p,), scales=(p,))
        check_semidefinite("NormalEquations.table", self.table)
        check_fields(self, spread=2 * (p if self.frozen else 0,))
        check_fields(self, labels=(p + 3 if self.count else 0,))
        check_semidefinite("NormalEquations.spread", self.spread)
        if self.scales.min() < 0 or self.settled > (self.frozen and self.scales.min() > 0):
            raise ValueError("NormalEquations.scales are negative, or not those of settled sums")
        if (self.total > 0) != (self.count > 0):
            raise ValueError("NormalEquations.total is not that of its count")

    __getstate__ = field_values
    __setstate__ = restore_writable

    @classmethod
    def start(cls, dim: int, intercept: bool) -> "NormalEquations":
        """Return the sums of no rows."""
        p = dim + intercept
        table, centre, scales = np.zeros((p + 1, p + 1)), np.zeros(p), np.zeros(p)
        return cls(dim, intercept, np.zeros(dim), 0.0, table, 0.0, 0, centre, scales)

    @property
    def gram(self) -> Array:
        """The sum of w z z', a view."""
        return self.table[:-1, :-1]

    @property
    def moment(self) -> Array:
        """The sum of w y z, a view."""
        return self.table[-1, :-1]

    @property
    def squares(self) -> float:
        """The sum of w y^2."""
        return float(self.table[-1, -1])

    def update(self, x: Array, y: Array, w: Array) -> None:
        """Add checked rows; those of weight 0 are left out."""
        if self.settled and len(x) == 1 and w[0] > 0 and self.table.size <= SMALL_PRODUCT:
            self._look(y)
            self._add_row(x[0], float(y[0]), float(w[0]))
            return
        most = min(BLOCK, 1 + int(PRODUCTS / self.table.size))
        if len(x) > most:
            for at in range(0, len(x), most):
                here = slice(at, at + most)
                self.update(x[here], y[here], w[here])
            return
        if not w.all():
            x, y, w = x[w > 0], y[w > 0], w[w > 0]
        if not len(x):
            return
        self._look(y)
        if not self.count and self.intercept:
            self.origin, self.label_origin = x[0].copy(), float(y[0])
        z, y = self.directions(x), y - self.label_origin
        if not self.frozen:
            until = max(2 * self.dim + 10 - self.count, 0)
            self._add(z[:until], y[:until], w[:until])
            if self.count < 2 * self.dim + 10:
                return
            self._freeze()
            z, y, w = z[until:], y[until:], w[until:]
        if not self.settled:
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
        u = np.column_stack([z, y])
        if len(u) == 1:
            self.table = _add_product(w[0], u[0], u[0], a=self.table.T, overwrite_a=1).T
        else:
            self.table += matmul((u * w[:, None]).T, u)
        self.total += float(w.sum())
        self.count += len(z)

    def _add_row(self, x: Array, y: float, w: float) -> None:
        """Add one row, as `_add` would, without its overhead."""
        u = np.empty(len(self.table))
        np.subtract(x, self.origin, out=u[: self.dim])
        u[self.dim] = 1.0  # or the label, without an intercept
        u[-1] = y - self.label_origin
        self.table = blas.dger(w, u, u, a=self.table.T, overwrite_a=1).T
        self.total += w
        self.count += 1

    def _freeze(self) -> None:
        """Fix the centre, and the scales of features that are not constant."""
        self.frozen = True
        self.centre = self.means()
        square = np.diag(self.gram) / self.count
        total = self.total / self.count
        self.spread = self.gram / self.count - total * np.outer(self.centre, self.centre)
        if self.intercept:  # products with the constant are 0 around the means
            self.spread[-1, :-1] = self.spread[:-1, -1] = 0.0
        self.scales = np.diag(self.spread).copy()
        still = ~(self.scales > 1e-14 * square)
        self.scales[still] = self.spread[still] = self.spread[:, still] = 0.0
        self.settled = bool(self.scales.all())

    def lengths(self, a: Array) -> Array:
        r"""Return :math:`a^\top M^{-1}a` of directions around the centre, M the first rows' spread.

        A feature that moved later, or has not, is uncorrelated there, with its own scale or 1.
        """
        inside = self.whitened(a)
        return np.einsum("ij,ij->i", inside, inside)

    def whitened(self, a: Array) -> Array:
        """Return directions whose products are those of ``a`` in the norm of `lengths`."""
        key = self.frozen, int(np.count_nonzero(self.scales))
        if vars(self).get("_spectrum", (None,))[0] != key:
            vars(self)["_spectrum"] = key, linalg.scaled_spectrum(self.whole_spread(), INDISTINCT)
        s, values, vectors, kept = vars(self)["_spectrum"][1]
        return matmul(a / s, vectors[:, kept]) / np.sqrt(values[kept])

    def whole_spread(self) -> Array:
        """Return the first rows' spread, a diagonal of 1 where features were constant."""
        M = self.spread.copy() if self.frozen else np.zeros(2 * (len(self.scales),))
        M[np.diag_indices(len(M))] = np.where(self.scales > 0, self.scales, 1.0)
        return M

    @property
    def few_labels(self) -> bool:
        """Whether there have been fewer different labels than p + 3."""
        return self.labels.size > 0 and bool(self.labels[-1] == self.labels[0])

    def _look(self, y: Array) -> None:
        """Note different labels, as long as they are few; places left repeat the first one."""
        if not self.count:
            self.labels = np.full(len(self.table) + 2, y[0])
        if self.few_labels and not (len(y) == 1 and (self.labels == y[0]).any()):
            old = self.labels[: 1 + int((self.labels != self.labels[0]).sum())]
            both = np.append(old, np.unique(y[~np.isin(y, old)]))[: len(self.labels)]
            self.labels[: len(both)] = both

    def means(self) -> Array:
        """Return the features' means, 0 for the intercept and in a model without."""
        means = np.zeros(len(self.moment))
        if self.intercept and self.count:
            means[:-1] = self.gram[-1, :-1] / self.total
        return means

    def _scale_what_moves(self, z: Array, w: Array) -> None:
        """Fix the scale of each constant feature with the row that first moves it."""
        for i in np.flatnonzero((self.scales == 0) & (z != 0).any(axis=0)):
            at = int(np.argmax(z[:, i] != 0))
            n, total = self.count + at + 1, self.total + float(w[: at + 1].sum())
            share = 1 - w[at] / total if self.intercept else 1.0
            self.scales[i] = w[at] * z[at, i] ** 2 * share / n
        self.settled = bool(self.scales.all())
