"""Where things lie in the one array of a streaming state.

A header of numbers, seven vectors, the inverse (kept up to its diagonal), then the buffer, if there
is one: up to ``BUFFER`` rows with weight, weighted label, curvature in H and score at the anchor.
One array keeps a compiled call cheap. Rows are padded with zeros to a whole number of cache lines,
which a sweep needs to be fast.
"""

import math
from types import SimpleNamespace
from typing import ClassVar, cast

import numpy as np

from ...support.arrays import LARGEST as LARGEST
from ...support.arrays import Array
from ..named import Numbers, record

# the code of a state: a link of kernels/glm/link_values.py, by number, or
LINEAR, LINK_COUNT = 0, 6  # the identity, and how many links there are
OWN = -1  # a user's link, evaluated by the caller
EXACT = -2  # solved by Newton passes every round, nothing compiled

BUFFER = 512

# the header: kernels read it as a record, Python as `Header`
FIELDS = {
    "dim": "number of features",
    "padded": "d rounded up to a multiple of 8",
    "code": "of the link, or of the solver that serves it",
    "bound": "score bound S",
    "limit": "largest squared length of a row",
    "concordance": "M, |phi''| <= M phi'",
    "third": "N, |phi'''| <= N phi'",
    "spread": "sqrt(K / kappa)",
    "tolerance": "absolute, on the gap",
    "scale": "of the trigger, 1 unless calibrated",
    "calibrated": "1 if passes are triggered by the measured error",
    "ridge": "2 lambda",
    "count": "rows of positive weight learnt",
    "buffered": "rows in the buffer",
    "heaviest": "largest weight",
    "longest": "R, largest norm of a row",
    "leverage": "bound of x' H^-1 x over all rows",
    "survey": "the count at which leverages are computed again",
    "step_norm": "nu = |u|_H",
    "stale_low": "least ratio of a row's curvature at the anchor to that in H",
    "stale_high": "largest such ratio",
    "stale_sum": "Gamma, root of sum c (ratio - 1)^2 over these ratios",
    "skew": "largest |phi''|/phi' of a row at the anchor",
    "smallest": "lower bound of the least eigenvalue of H",
    "value": "F(m)",
    "played": "sum w l(z), scores clipped",
    "total": "sum |x| (|r| + w |y|): size of the gradient's terms",
    "curved": "sum c |x|^2, which times |theta| is the size of the others",
    "loss": "bound of trace(H)/lambda_min(H) over the updates since the factor was renewed",
    "length": "|m|",
    "rounding": "what rounding can add to the gap, per unit of the terms",
    "blur": "what rounding can add to the gap in all",
    "residual": "B of `certify`: bound of the gradient at m + u in the norm of H^-1",
    "score_shift": "rho, bound of |x.u| over all rows",
    "gap": "proved distance from the exact minimiser",
    "due": "what must be done before the next row",
    "pending": "coefficient of the rank-one change not yet in the inverse",
    "slot": "which of the two vectors it uses",
    "busy": "whether Python is writing the state, or an interrupt ended that",
    "last_mean": "of the last row, before its label, when something is due",
    "passes": "over the history so far",
    "factors": "renewals of the factor so far",
    "squares": "sum w y^2",
    "lowest": "least label, or 0",
    "highest": "largest label, or 0",
    "bounding": "the count at which the least eigenvalue is bounded again",
}
NUMBERS = record(FIELDS)
COUNT = len(FIELDS)

# vectors: of two slots one has the pending change, and the next change takes the other; the row is
# scratch of learners that multiply features by units, which else are 1
ANCHOR, STEP, GRADIENT, SLOTS, ROW, UNIT, VECTORS = 0, 1, 2, 3, 5, 6, 7

# what is due: nothing; emptying a full buffer; a pass; a pass and a new factor
FINE, FLUSH, PASS, FACTOR = 0.0, 1.0, 2.0, 3.0
# what the loop writes out
SCORES, MEANS = 0, 1


def padded(d: int) -> int:
    """Return ``d`` rounded up to a multiple of 8."""
    return -(-d // 8) * 8


HEADER = padded(COUNT)  # whole cache lines


def size(d: int, buffer: int = BUFFER) -> int:
    """Return the length of the array for ``d`` features and a buffer of so many rows."""
    ld = padded(d)
    return HEADER + VECTORS * ld + ld * ld + buffer * (ld + 4)


def allocate(d: int) -> Array:
    """Return a zeroed array for ``d`` features, aligned to cache lines."""
    return align(np.zeros(size(d)))


# numbers of the header by what they may be; the others are >= 0 or infinite
WHOLE = "dim", "padded", "code", "count", "buffered", "slot", "due", "busy", "passes", "factors"
POSITIVE = "limit", "spread", "scale", "ridge", "smallest", "stale_low", "stale_high"
SIGNED = "code", "value", "played", "pending", "last_mean", "lowest", "highest"


def align(a: Array) -> Array:
    """Return ``a`` or a copy of it that begins at a cache line."""
    if a.ctypes.data % 64 == 0:
        return a
    room = np.empty(a.size + 7)
    first = (-room.ctypes.data % 64) // 8
    made = room[first : first + a.size].reshape(a.shape)
    made[...] = a
    return made


def check_headers(memory: Array, d: int) -> None:
    """Raise unless the header in each row is one that kernels can work with."""
    for a in memory:
        _check_header(a, d)


def _check_header(a: Array, d: int) -> None:
    numbers = dict(zip(FIELDS, a[:COUNT].tolist(), strict=True))
    n = numbers["buffered"]
    wrong = [
        name
        for name, number in numbers.items()
        if number != number
        or (name in SIGNED and abs(number) == math.inf)
        or (name not in SIGNED and number < 0)
        or (name in WHOLE and number != number // 1)
        or (name in POSITIVE and number == 0)
    ]
    limits = {
        "dim": numbers["dim"] == d,
        "padded": numbers["padded"] == padded(d),
        "code": EXACT <= numbers["code"] < LINK_COUNT,
        "buffered": n <= BUFFER,
        "count": n <= numbers["count"] < 2.0**53,
        "slot": numbers["slot"] <= 1,
        "due": numbers["due"] <= FACTOR,
        "busy": numbers["busy"] <= 1,
    }
    wrong += [name for name, held in limits.items() if not held]
    if wrong:
        value = numbers[wrong[0]]
        raise ValueError(f"{wrong[0]} in the header of the state is {value:g}; it is damaged")


class Header(Numbers):
    """The numbers of a state by name: a view, so writing one writes the array."""

    fields: ClassVar = FIELDS
    __slots__ = ()

    def copy(self) -> "Header":
        """Return a header of its own, to be changed aside."""
        return Header(self.array[:HEADER].copy())

    def copy_from(self, other: "Header") -> None:
        """Take all numbers of another in one step."""
        self.array[:HEADER] = other.array[:HEADER]

    def values(self) -> "Header":
        """Return the numbers as they are now, for formulas that read many."""
        numbers = zip(FIELDS, self.array[:COUNT].tolist(), strict=True)
        return cast(Header, SimpleNamespace(**dict(numbers)))


class Views:
    """Named views into the array."""

    def __init__(self, a: Array, d: int) -> None:
        ld = padded(d)
        vectors = a[HEADER : HEADER + VECTORS * ld].reshape(VECTORS, ld)[:, :d]
        self.anchor, self.step, self.gradient, *self.slots, _, self.unit = vectors
        begin = HEADER + VECTORS * ld
        self.inverse = a[begin : begin + ld * ld].reshape(ld, ld)[:d, :d]
        begin += ld * ld
        self.x = a[begin : begin + BUFFER * ld].reshape(BUFFER, ld)[:, :d]
        self.numbers = a[begin + BUFFER * ld :].reshape(4, BUFFER)
