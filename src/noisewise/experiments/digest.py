"""A digest of a table that does not see the last bits, in which processors differ."""

import hashlib

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..protocols import Array

DIGITS = 5
RANGE = 1e-3  # what is smaller than this share of its column counts as if it were as large
# edges of rounding and changes of its step lie where no round number does, nor zero
OFFSET, SHIFT = 0.3183, 0.1355


def of_table(table: pd.DataFrame) -> str:
    """Return the digest of a table, numbers rounded to about five digits.

    Numbers are rounded no finer than to 1e-8 of the largest in their column, so that what should
    be 0 is. Two that differ by a relative r are rounded differently with a chance of about 1e5 r:
    for a table of 1e5 numbers and r = 1e-15, as is usual, 1e-5 in all.
    """
    numbers = [name for name in table if pd.api.types.is_float_dtype(table[name])]
    digest = hashlib.sha256(table.drop(columns=numbers).to_csv(index=False).encode())
    for name in numbers:
        digest.update(f"{name}\n".encode())
        digest.update(rounded(table[name].to_numpy(dtype=np.float64)).astype("<i8").tobytes())
    return digest.hexdigest()


def rounded(values: Array) -> NDArray[np.int64]:
    """Return integers (2, n), step and count of steps, that stand for the rounded values.

    >>> rounded(np.array([0.25, 1e-17, np.nan])).tolist()
    [[-5, -8, 999], [25000, 0, 0]]
    """
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    largest = np.abs(known).max(initial=0.0)
    sizes = np.maximum(np.abs(known), max(RANGE * largest, 1e-290))
    step = np.floor(np.log10(sizes) - SHIFT) - (DIGITS - 1)
    count = np.floor(known / 10.0**step + OFFSET)
    step = np.where(finite, step, 999.0)
    count = np.where(finite, count, np.where(np.isnan(values), 0.0, np.sign(values)))
    return np.array([step, count]).astype(np.int64)
