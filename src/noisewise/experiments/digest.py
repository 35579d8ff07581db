"""A digest of a table that does not see the last bits, in which processors differ."""

import hashlib
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..protocols import Array

DIGITS = 5
RANGE = 1e-3  # what is smaller than this share of its column counts as if it were as large
# edges of rounding and changes of its step lie where no round number does, nor zero
OFFSET, SHIFT = 0.3183, 0.1355


class Digest:
    """The digest of a table that is seen chunk by chunk.

    Numbers are rounded no finer than to 1e-8 of the largest in their column, so that what should
    be 0 is. Two that differ by a relative r are rounded differently with a chance of about 1e5 r:
    for a table of 1e5 numbers and r = 1e-15, as is usual, 1e-5 in all.
    """

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.largest: dict[str, float] = {}
        self.begun = False

    def add(self, chunk: pd.DataFrame) -> None:
        """Take in the next rows, of the same columns: words at once, of numbers the largest."""
        numbers = [name for name in chunk if pd.api.types.is_float_dtype(chunk[name])]
        words = chunk.drop(columns=numbers)
        self.digest.update(words.to_csv(index=False, header=not self.begun).encode())
        self.begun = True
        for name in numbers:
            known = self.largest.get(name, 0.0)
            self.largest[name] = max(known, _largest(chunk[name].to_numpy(dtype=np.float64)))

    def finish(self, column: Callable[[str], Iterable[Array]]) -> str:
        """Return the digest; ``column`` gives the numbers of a column, in pieces, each time."""
        for name, largest in self.largest.items():
            self.digest.update(f"{name}\n".encode())
            for i in (0, 1):
                for values in column(name):
                    self.digest.update(rounded(values, largest)[i].astype("<i8").tobytes())
        return self.digest.hexdigest()


def of_table(table: pd.DataFrame) -> str:
    """Return the digest of a table in memory."""
    whole = Digest()
    whole.add(table)
    return whole.finish(lambda name: [table[name].to_numpy(dtype=np.float64)])


def _largest(values: Array) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def rounded(values: Array, largest: float | None = None) -> NDArray[np.int64]:
    """Return integers (2, n), step and count of steps, that stand for the rounded values.

    ``largest`` is the largest of their column, by default among themselves.

    >>> rounded(np.array([0.25, 1e-17, np.nan])).tolist()
    [[-5, -8, 999], [25000, 0, 0]]
    """
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    most = _largest(values) if largest is None else largest
    sizes = np.maximum(np.abs(known), max(RANGE * most, 1e-290))
    step = np.floor(np.log10(sizes) - SHIFT) - (DIGITS - 1)
    count = np.floor(known / 10.0**step + OFFSET)
    step = np.where(finite, step, 999.0)
    count = np.where(finite, count, np.where(np.isnan(values), 0.0, np.sign(values)))
    return np.array([step, count]).astype(np.int64)
