"""Least squares from its sums, with what it says of means: no label is shrunk or forgotten."""

import math
from dataclasses import dataclass

import numpy as np

from .. import linalg
from ..blas import matmul, one_thread
from ..inputs import dimension
from ..protocols import Array
from ..states import COUNT, FINITE, FLAG, NONNEGATIVE, check_fields, restore_writable
from .intervals import PRECISION, anytime_half_width, quantile

GRID = 10.0 * 30.0 ** np.arange(4)  # precisions of the simultaneous mixtures, in rows
ESTIMABLE = 1e-6  # share of a direction that may lie outside what the rows span


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
        self.centre = self._means()
        square = np.diag(self.gram) / self.count
        self.scales = square - (self.total / self.count) * self.centre**2
        self.scales[~(self.scales > 1e-14 * square)] = 0.0

    def _means(self) -> Array:
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

    @one_thread
    def solve(self, anytime: bool = False) -> "LeastSquares":
        """Return the least-squares solution; of several, the shortest in units of the features.

        With ``anytime`` scales are fixed, unless rows are too few to say anything.
        """
        p = len(self.moment)
        if anytime and not self.frozen and self.count > p:
            self.freeze()
        C = np.eye(p)
        if self.intercept:
            C[:, -1] -= self.centre if self.frozen else self._means()
        G, b = C @ self.gram @ C.T, C @ self.moment
        s, values, vectors, kept = linalg.scaled_spectrum(G, 1e-12)
        V, values = vectors[:, kept], values[kept]
        inside = (b / s) @ V
        left = max(self.squares - float(inside @ (inside / values)), 0.0)
        return LeastSquares(self, C, G, s, V, values, V @ (inside / values) / s, left)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """A least-squares solution, for rows C z: around the centre.

    G = C (sum w z z') C' is s V diag(values) V' s where rows have reached; ``left`` is the weighted
    sum of squared residuals.
    """

    sums: NormalEquations
    C: Array
    G: Array
    s: Array
    V: Array
    values: Array
    theta: Array
    left: float

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the residuals."""
        return max(self.sums.count - len(self.values), 0)

    @property
    def variance(self) -> float:
        """The estimated noise variance at weight 1, infinite without degrees of freedom."""
        return self.left / self.freedom if self.freedom else math.inf

    def scores(self, z: Array) -> Array:
        """Return the estimate at each direction z."""
        return matmul(z, self.C.T @ self.theta)

    def shares(self, z: Array) -> Array:
        """Return the variance of each estimate over that of a label, infinite if not known."""
        inside, seen = self._project(matmul(z, self.C.T))
        return np.where(seen, np.einsum("ij,ij->i", inside / self.values, inside), math.inf)

    def _project(self, a: Array) -> tuple[Array, Array]:
        """Return directions in the basis of what is known, and whether they lie in it."""
        scaled = a / self.s
        inside = matmul(scaled, self.V)
        outside = np.abs(scaled - matmul(inside, self.V.T)).max(axis=1)
        seen = outside <= ESTIMABLE * np.abs(scaled).max(axis=1)
        still = np.diag(self.G) == 0
        return inside, seen & ~(a[:, still] != 0).any(axis=1)

    def half_width(self, z: Array, sigma: float | None, delta: float, anytime: bool) -> Array:
        """Return half the interval at each z, fixed in advance; ``sigma`` None is not known."""
        share = self.shares(z)
        freedom = self.freedom if sigma is None else math.inf
        if not freedom or (anytime and not self.sums.frozen):
            return np.full(len(z), math.inf)
        if anytime:
            a = matmul(z, self.C.T)
            with np.errstate(divide="ignore", invalid="ignore"):
                phi = PRECISION / np.einsum("ij,ij->i", a / self._scales(), a)
                half = anytime_half_width(share, phi, freedom, delta)
        else:
            half = quantile(freedom, delta) * np.sqrt(share)
        half *= math.sqrt(self.variance) if sigma is None else sigma
        return np.where(share == 0, 0.0, np.where(np.isfinite(share), half, math.inf))

    def _scales(self) -> Array:
        return np.where(self.sums.scales > 0, self.sums.scales, 1.0)

    @one_thread
    def simultaneous_half_width(self, z: Array, sigma: float | None, delta: float) -> Array:
        r"""Return half the interval of each z, for all rows at all times at once.

        The least over mixtures of precision :math:`\rho_j D`, j = 1, ..., N, with
        :math:`l_j = 2\log(N/\delta) + \log\det(I + D^{-1}G/\rho_j)`:
        :math:`\sigma^2 l_j\, a^\top G^{-1}(G + \rho_j D)G^{-1}a` is its square for known sigma,
        else :math:`\kappa_j\,\mathrm{RSS}\; a^\top M_j^{-1}a` with
        :math:`\kappa_j = 1 - e^{-l_j/n}` and :math:`M_j = G(G + \rho_j D)^{-1}G - \kappa_jG`,
        infinite unless :math:`M_j > 0`.
        """
        square, n = np.full(len(z), math.inf), self.sums.count
        if not self.sums.frozen or (sigma is None and not self.freedom):
            return square
        inside, seen = self._project(z @ self.C.T)
        inside = inside / np.sqrt(self.values)
        G, D = self.G / np.outer(self.s, self.s), self._scales() / self.s**2
        for rho in GRID:
            c = linalg.factor(G + np.diag(rho * D))
            level = 2 * math.log(len(GRID) / delta) + linalg.log_det(c) - np.log(rho * D).sum()
            if sigma is not None:
                lifted = matmul(inside / np.sqrt(self.values), self.V.T)  # G^-1 a, times s
                form = np.einsum("ij,ij->i", inside, inside)
                found = sigma**2 * level * (form + rho * np.einsum("ij,ij->i", lifted * D, lifted))
            else:
                kappa = -math.expm1(-level / n)
                root = self.V * np.sqrt(self.values)
                values, vectors = np.linalg.eigh(root.T @ linalg.solve(c, root))
                if values[0] <= kappa + 1e-9:  # M is G^(1/2) (values - kappa) G^(1/2)
                    continue
                found = kappa * self.left * (inside @ vectors) ** 2 @ (1 / (values - kappa))
            square = np.minimum(square, found)
        return np.where((z == 0).all(axis=1), 0.0, np.where(seen, np.sqrt(square), math.inf))
