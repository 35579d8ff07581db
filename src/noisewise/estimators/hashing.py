r"""Columns hashed into buckets: a table of any width as one of a given width.

Column j goes to the bucket b(j) with the sign s(j), both fixed by its position, and a row is

.. math:: h_i = \sum_{j:\, b(j) = i} s(j)\,x_j.

Products are kept up to noise, :math:`E[h\cdot h'] = x\cdot x'` over random hashes, so most of what
many sparse columns tell is kept. Columns should be in like units, as counts or one-hot columns are:
a bucket is dominated by the largest.

References
----------
Weinberger, Dasgupta, Langford, Smola and Attenberg (2009), Feature hashing for large scale
multitask learning.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..protocols import Array
from .table_rows import Sparse, rows_of


def mixed(count: int) -> NDArray[np.uint64]:
    """Return a number of 64 random bits for each of the first whole numbers (SplitMix64)."""
    with np.errstate(over="ignore"):
        z = (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def hashed_rows(
    X: ArrayLike, buckets: int, names: list[str] | None, order: list[int] | None = None
) -> tuple[Array, int]:
    """Return rows of so many buckets, and the number of columns given.

    ``order`` are the positions of columns among those given. A sparse matrix stays sparse until it
    is hashed.

    >>> hashed_rows([[1.0, 0.0, 0.0], [1.0, 2.0, 4.0]], 2, None)[0]
    array([[ 0.,  1.],
           [-2.,  5.]])
    """
    from scipy import sparse

    x = X if isinstance(X, Sparse) else rows_of(X, names)
    d = int(x.shape[1])
    bits, place = mixed(d), np.arange(d) if order is None else np.array(order)
    signs = np.where(bits & np.uint64(1), 1.0, -1.0)
    to = ((bits >> np.uint64(1)) % np.uint64(buckets)).astype(np.int64)
    H = sparse.csr_array((signs, (place, to)), shape=(d, buckets))
    h = (H.T @ x.T).T
    return rows_of(h.toarray() if isinstance(h, Sparse) else np.ascontiguousarray(h)), d
