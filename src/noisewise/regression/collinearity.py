"""Columns that are nearly combinations of each other, and what that leaves unknown."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..protocols import Array

ESTIMABLE = 1e-9  # share of a direction that may lie outside what the rows span
NEARLY = 1e-8  # an eigenvalue of the correlations that is worth a word
LOADED = 0.1  # share of the largest loading from which on a column takes part


class Tie(NamedTuple):
    """Columns whose combination hardly moves: by ``gap`` of their spread, lost if ``dropped``."""

    columns: tuple[int, ...]
    gap: float
    dropped: bool


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
        columns = np.flatnonzero(loading > LOADED * loading.max(initial=0.0))
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
