"""What rows span, in coordinates that see neither units nor collinear columns, and these."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...numerics.blas import matmul
from ...protocols import Array
from ..normal_equations import NormalEquations

ESTIMABLE = 1e-9  # share of a direction that may lie outside what the rows span
NEARLY = 1e-8  # an eigenvalue of the correlations that is worth a word
LOADED = 0.1  # share of the largest loading from which on a column takes part
ROUNDING = 1e-6  # the largest loading of a direction in which no column has moved


class Tie(NamedTuple):
    """Columns whose combination hardly moves: by ``gap`` of their spread, lost if ``dropped``."""

    columns: tuple[int, ...]
    gap: float
    dropped: bool


@dataclass(frozen=True, eq=False)
class Span:
    r"""Coordinates u of rows C z around the centre, in which :math:`\sum w u u^\top = I`.

    G = C (sum w z z') C' is s V diag(values) V' s where rows have reached, u = z ``lift``. The
    centre, and the scales D of a mixture, are those of the first rows; ``ties`` is what is known of
    collinear columns.
    """

    sums: NormalEquations
    C: Array
    G: Array
    s: Array
    V: Array
    values: Array
    ties: tuple[Tie, ...]

    @property
    def rank(self) -> int:
        """The dimension of the span."""
        return len(self.values)

    @property
    def lift(self) -> Array:
        """What takes a row around the centre to its coordinates."""
        return np.asarray(self.V / np.sqrt(self.values) / self.s[:, None])

    def project(self, z: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return directions z in coordinates u, and whether they lie in the span."""
        a = matmul(z, self.C.T)
        scaled = a / self.s
        inside = matmul(scaled, self.V)
        outside = np.abs(scaled - matmul(inside, self.V.T)).max(axis=1)
        seen = outside <= ESTIMABLE * np.abs(scaled).max(axis=1)
        still = np.diag(self.G) == 0
        return inside / np.sqrt(self.values), seen & ~(a[:, still] != 0).any(axis=1)

    def lengths(self, z: Array) -> Array:
        """Return `NormalEquations.lengths` of directions z."""
        return self.sums.lengths(matmul(z, self.C.T))

    @cached_property
    def prior(self) -> tuple[Array, Array]:
        """Eigenvalues and vectors of a mixture's D: the first rows' scales, in coordinates u."""
        scales = np.where(self.sums.scales > 0, self.sums.scales, 1.0)
        root = self.V * np.sqrt(self.values) * (self.s / np.sqrt(scales))[:, None]
        _, lengths, across = np.linalg.svd(root, full_matrices=False)
        return lengths**-2.0, across.T


def centred(sums: NormalEquations) -> tuple[Array, Array, Array]:
    """Return the change of rows to those around their centre, and their sums there."""
    C, G, b = np.eye(len(sums.moment)), sums.gram, sums.moment
    if sums.intercept:
        mean = sums.centre if sums.frozen else sums.means()
        C[:, -1] -= mean
        G = G - np.outer(mean, G[-1])  # C G C', without products of matrices
        G, b = G - np.outer(G[:, -1], mean), b - mean * b[-1]
    return C, G, b


def ties(
    values: Array,
    vectors: Array,
    kept: NDArray[np.bool_],
    moved: NDArray[np.bool_],
    dim: int,
    least: float = 1e-7,
) -> tuple[Tie, ...]:
    """Return what eigenvalues and vectors of correlations, all but the largest, say of columns.

    Columns that have not ``moved`` are no part of it, nor is the intercept, behind ``dim`` others.
    A gap below ``least`` is rounding.

    >>> values, vectors = np.linalg.eigh(np.array([[1.0, 1.0], [1.0, 1.0]]))
    >>> ties(values[:1], vectors[:, :1], np.array([False]), np.ones(2, dtype=bool), 2)
    (Tie(columns=(0, 1), gap=0.0, dropped=True),)
    """
    found = []
    for value, vector, keep in zip(values, vectors.T, kept, strict=True):
        loading = np.abs(np.where(moved, vector, 0.0))[:dim]
        columns = np.flatnonzero(loading > max(LOADED * loading.max(initial=0.0), ROUNDING))
        if len(columns) > 1 and (not keep or value < NEARLY):
            gap = float(np.sqrt(max(value, 0.0)) / np.abs(vector).max())
            found.append(Tie(tuple(columns.tolist()), gap if gap > least else 0.0, not keep))
    return tuple(found)


def words(tie: Tie, names: list[str]) -> str:
    """Return what a tie means, in a sentence with the names of columns."""
    shown = [repr(names[i]) for i in tie.columns[:4]]
    if len(tie.columns) > 4:
        shown[-1] = f"{len(tie.columns) - 3} others"
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
    if len(tie.columns) == 2:
        apart = (
            f"differ by {tie.gap:.0e} of their spread" if tie.gap else "are the same, or nearly so"
        )
        if not tie.dropped:
            return (
                f"columns {listed} {apart}: how their common effect divides between the two is "
                "hardly known, and the intervals of their coefficients are wide"
            )
        return (
            f"columns {listed} {apart}: their common effect is known, how it divides between the "
            "two is not. Their coefficients are shared equally, and the interval of each alone is "
            "infinite, as is that of rows in which they differ otherwise; drop one, or pass their "
            "difference as a column"
        )
    if not tie.dropped:
        return f"columns {listed} are nearly collinear: intervals of their coefficients are wide"
    return (
        f"columns {listed} are collinear: each is a combination of the others, their coefficients "
        "are shared, and the interval of each alone is infinite; drop one"
    )
