"""What a table of very many columns costs, said before it is learnt."""

from time import perf_counter

import numpy as np

from ..numerics.blas import matmul
from ..support.printing import count_of

MOST = 2000  # columns up to which nothing is said
PROBE = 500  # rows of a product whose time tells how quick the machine is
# work per row in products of two numbers: of a stream d^2 times this, of a batch d^2; and what a
# batch adds once, d^3 times this
STREAM, DECOMPOSITION = 30.0, 12.0
CURVED = 8.0  # times that, for labels other than numbers


def cost(rows: int, columns: int, family: str, batch: bool) -> float:
    """Return about how many seconds rows take on this machine."""
    d = float(columns)
    work = rows * d * d + DECOMPOSITION * d**3 if batch else STREAM * rows * d * d
    if family not in ("gaussian", "identity"):
        work = CURVED * STREAM * rows * d * d
    A = np.ones((PROBE, PROBE))
    times = []
    for _ in range(3):
        began = perf_counter()
        matmul(A, A)
        times.append(perf_counter() - began)
    return work * min(times) / PROBE**3


def warning(rows: int, columns: int, family: str, batch: bool, remedy: str) -> str:
    """Return what to say of so many columns, empty up to `MOST`; a stream begins with few rows."""
    if columns <= MOST:
        return ""
    rows = rows if batch else max(rows, 1000)
    seconds = cost(rows, columns, family, batch)
    return (
        f"there are {columns:,} columns: {count_of(rows, 'row')} will take about "
        f"{in_words(seconds)} and {8e-9 * 3 * columns**2:.1f} GB of memory, and time grows with "
        f"the square of the columns; {remedy}"
    )


def in_words(seconds: float) -> str:
    """Return a time to read.

    >>> in_words(0.02), in_words(100.0), in_words(8000.0)
    ('1 second', '2 minutes', '2.2 hours')
    """
    if seconds < 90:
        return count_of(max(round(seconds), 1), "second")
    if seconds < 5400:
        return count_of(round(seconds / 60), "minute")
    return f"{seconds / 3600:,.1f} hours"
