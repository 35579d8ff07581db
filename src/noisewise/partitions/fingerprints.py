"""Fingerprints of partitions: are the rows of a pass those of the first one, up to rounding?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.blas import one_thread
from ..protocols import Array
from ..regression.ftrl.sums import Sums
from .partition_rows import Rows

GOLDEN = 0.6180339887498949
ROUNDING = 1e-12  # of what is added, per row: the last bits may differ from worker to worker


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The count of a partition's rows, and sums of one number per row and of its square.

    The number is a sum of features, label and weight, each of size 1 in the first rows and times a
    factor of its own. The squares notice labels that change places; rows that do are the same.
    """

    factors: Array

    @classmethod
    def for_rows_like(cls, rows: Rows) -> Fingerprint:
        """Return one for rows of about the size of these."""
        size = np.sqrt([*(rows[0] ** 2).mean(axis=0), *((each**2).mean() for each in rows[1:])])
        spread = 0.5 + np.arange(1, len(size) + 1) * GOLDEN % 1
        return cls(spread / np.where(size > 0, size, 1.0))

    @one_thread
    def __call__(self, x: Array, y: Array, w: Array) -> Array:
        """Return the fingerprint of rows; those of blocks add up."""
        *_, label, weight = self.factors
        with np.errstate(over="ignore", invalid="ignore"):  # later passes are not checked
            each = x @ self.factors[:-2] + label * y + weight * w
            return np.array([len(x), each.sum(), each @ each, np.abs(each).sum()])

    def changed(self, first: Array, later: Array) -> NDArray[np.intp]:
        """Return the numbers of the partitions whose rows, a fingerprint each, have changed."""
        count, _, squares, sizes = first.T
        room = ROUNDING * len(self.factors) * np.array([0 * count, count + sizes, count + squares])
        with np.errstate(invalid="ignore"):
            same = np.abs(first[:, :3] - later[:, :3]) <= room.T
        return np.flatnonzero(~(same | (first[:, :3] == later[:, :3])).all(axis=1))


@dataclass(frozen=True, eq=False)
class Found:
    """What a pass over partitions finds: sums over all, and a fingerprint of each."""

    sums: Sums
    prints: Array

    def __add__(self, other: Found) -> Found:
        """Return what a pass over both finds."""
        return Found(self.sums + other.sums, np.vstack([self.prints, other.prints]))
