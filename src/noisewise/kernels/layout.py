"""Where things lie in the one array of a streaming state.

A header of numbers, seven vectors, the inverse (kept up to its diagonal), then the buffer: up to
``BUFFER`` rows with weight, weighted label, curvature in H and curvature at the trial point. One
array keeps a compiled call cheap. Rows are padded with zeros to a whole number of cache lines,
which a sweep needs to be fast.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..protocols import Array

# the code of a state: a link of kernels/links.py, by number, or
LINEAR, LINK_COUNT = 0, 6  # the identity, and how many links there are
OWN = -1  # a user's link, evaluated by the caller
EXACT = -2  # solved by Newton passes every round, nothing compiled

BUFFER = 512
CHUNK = 128  # rows that a pass takes at a time
SCRATCH = 5 * CHUNK  # numbers of scratch for them

# the header: each field is a constant of the kernels and an attribute of `Header`
FIELDS = {
    "DIM": "number of features",
    "PADDED": "d rounded up to a multiple of 8",
    "CODE": "of the link, or of the solver that serves it",
    "BOUND": "score bound S",
    "LIMIT": "largest squared length of a row",
    "CONCORDANCE": "M, |phi''| <= M phi'",
    "THIRD": "N, |phi'''| <= N phi'",
    "SPREAD": "sqrt(K / kappa)",
    "TOLERANCE": "absolute, on the gap",
    "SCALE": "of the trigger, 1 unless calibrated",
    "CALIBRATED": "1 if passes are triggered by the measured error",
    "RIDGE": "2 lambda",
    "COUNT": "rows of positive weight learnt",
    "BUFFERED": "rows in the buffer",
    "HEAVIEST": "largest weight",
    "LONGEST": "R, largest norm of a row",
    "LEVERAGE": "bound of x' H^-1 x over all rows",
    "CANCELLED": "whether a rank-one update has cost too many digits",
    "SURVEY": "the count at which leverages are computed again",
    "STEP_NORM": "nu = |u|_H",
    "STALE_LOW": "least ratio of a row's curvature at the anchor to that in H",
    "STALE_HIGH": "largest such ratio",
    "STALE_SUM": "Gamma, root of sum c (ratio - 1)^2 over these ratios",
    "SKEW": "largest |phi''|/phi' of a row at the anchor",
    "SMALLEST": "lower bound of the least eigenvalue of H",
    "VALUE": "F(m)",
    "PLAYED": "sum w l(z), scores clipped",
    "TOTAL": "sum |x| (|r| + w |y|): size of the gradient's terms",
    "CURVED": "sum c |x|^2, which times |theta| is the size of the others",
    "LOSS": "bound of trace(H)/lambda_min(H) over the updates since the factor was renewed",
    "LENGTH": "|m|",
    "NEARNESS": "not used; its place in earlier files stays",
    "ROUNDING": "what rounding can add to the gap, per unit of the terms",
    "BLUR": "what rounding can add to the gap in all",
    "RESIDUAL": "B of `certify`: bound of the gradient at m + u in the norm of H^-1",
    "SCORE_SHIFT": "rho, bound of |x.u| over all rows",
    "GAP": "proved distance from the exact minimiser",
    "PASS_DUE": "whether a pass is due",
    "PENDING": "coefficient of the rank-one change not yet in the inverse",
    "SLOT": "which of the two vectors it uses",
    "STATUS": "at rest, being written, or what a step has asked for",
    "MEAN": "of the last row, before its label, when the status asks for something",
    "PASSES": "over the history so far",
    "FACTORS": "renewals of the factor so far",
    "TRIAL_VALUE": "F at the trial point of a pass",
    "TRIAL_SIZE": "sizes of its terms",
    "TRIAL_SKEW": "SKEW there",
    "TRIAL_STALE_LOW": "STALE_LOW there",
    "TRIAL_STALE_HIGH": "STALE_HIGH there",
    "TRIAL_STALE_SUM": "STALE_SUM there, squared",
    "REQUEST": "what the loop over rows asks for",
    "SQUARES": "sum w y^2",
    "LOWEST": "least label, or 0",
    "HIGHEST": "largest label, or 0",
    "BOUNDING": "the count at which the least eigenvalue is bounded again",
}
AT = {name: place for place, name in enumerate(FIELDS)}
globals().update(AT)
if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...


HEADER = 56
assert len(FIELDS) <= HEADER, "a longer header would make earlier files unreadable"

# largest label, and largest weight times label or squared length
LARGEST = 1e100

# vectors, in units of the padded dimension behind the header
ANCHOR, STEP, GRADIENT, SLOTS, TRIAL, TRIAL_GRADIENT, VECTORS = 0, 1, 2, 3, 5, 6, 7

# the status: at rest, what a step has asked for, being written; and a row that was not learnt
FINE, PASS, ATTENTION, RENEW, BUSY, REFUSED = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0
# what a judged pass returns
RETRY, KEPT, FACTOR_STALE = 0, 1, 2
# what the loop writes out
SCORES, MEANS = 0, 1


def padded(d: int) -> int:
    """Return ``d`` rounded up to a multiple of 8."""
    return -(-d // 8) * 8


def size(d: int) -> int:
    """Return the length of the array for ``d`` features."""
    ld = padded(d)
    return HEADER + VECTORS * ld + ld * ld + BUFFER * (ld + 4)


def allocate(d: int) -> Array:
    """Return a zeroed array for ``d`` features, aligned to cache lines."""
    return align(np.zeros(size(d)))


# header fields by what they may be; the others are numbers >= 0 or infinite
WHOLE = "DIM", "PADDED", "CODE", "COUNT", "BUFFERED", "SLOT", "STATUS", "PASSES", "FACTORS"
POSITIVE = "LIMIT", "SPREAD", "SCALE", "RIDGE", "SMALLEST", "STALE_LOW", "STALE_HIGH"
SIGNED = "CODE", "VALUE", "PLAYED", "PENDING", "MEAN", "TRIAL_VALUE", "LOWEST", "HIGHEST"


def align(a: Array) -> Array:
    """Return ``a`` or a copy of it that begins at a cache line."""
    if a.ctypes.data % 64 == 0:
        return a
    room = np.empty(len(a) + 7)
    first = (-room.ctypes.data % 64) // 8
    room[first : first + len(a)] = a
    return room[first : first + len(a)]


def check_header(a: Array, d: int) -> None:
    """Raise unless the header is one that kernels can work with."""
    numbers = dict(zip(FIELDS, a[: len(FIELDS)].tolist(), strict=True))
    header, n = Header(a), numbers["BUFFERED"]
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
        "DIM": header.dim == d,
        "PADDED": header.padded == padded(d),
        "CODE": EXACT <= header.code < LINK_COUNT,
        "BUFFERED": n <= BUFFER,
        "COUNT": n <= header.count < 2.0**53,
        "SLOT": header.slot <= 1,
        "STATUS": header.status <= BUSY,
    }
    wrong += [name for name, held in limits.items() if not held]
    if wrong:
        value = numbers[wrong[0]]
        raise ValueError(f"{wrong[0]} in the header of the state is {value:g}; it is damaged")


def _field(place: int) -> Any:
    def read(self: "Header") -> float:
        return float(self.array[place])

    def write(self: "Header", value: float) -> None:
        self.array[place] = value

    return property(read, write)


class Header:
    """The numbers of a state by name, lower case: a view, so writing one writes the array."""

    def __init__(self, array: Array) -> None:
        object.__setattr__(self, "array", array)

    def copy(self) -> "Header":
        """Return a header of its own, to be changed aside."""
        return Header(self.array[:HEADER].copy())

    def become(self, other: "Header") -> None:
        """Take all numbers of another in one step."""
        self.array[:HEADER] = other.array[:HEADER]

    def swap_status(self, status: float) -> float:
        """Set the status and return what it was; no other thread comes between."""
        a, place = self.array, AT["STATUS"]
        before = a[place]
        a[place] = status
        return float(before)

    def clear_scratch(self) -> None:
        """Forget what only the call that wrote it needs."""
        self.array[AT["TRIAL_VALUE"] : AT["SQUARES"]] = self.mean = 0.0

    if TYPE_CHECKING:
        array: Array

        def __getattr__(self, name: str) -> float: ...
        def __setattr__(self, name: str, value: float) -> None: ...


for _name, _place in AT.items():
    setattr(Header, _name.lower(), _field(_place))


class Views:
    """Named views into the array."""

    def __init__(self, a: Array, d: int) -> None:
        ld = padded(d)
        vectors = a[HEADER : HEADER + VECTORS * ld].reshape(VECTORS, ld)[:, :d]
        self.anchor, self.step, self.gradient = vectors[ANCHOR : GRADIENT + 1]
        self.slots = vectors[SLOTS : SLOTS + 2]
        self.trial, self.trial_gradient = vectors[TRIAL], vectors[TRIAL_GRADIENT]
        at = HEADER + VECTORS * ld
        self.inverse = a[at : at + ld * ld].reshape(ld, ld)[:d, :d]
        at += ld * ld
        self.x = a[at : at + BUFFER * ld].reshape(BUFFER, ld)[:, :d]
        self.numbers = a[at + BUFFER * ld :].reshape(4, BUFFER)
