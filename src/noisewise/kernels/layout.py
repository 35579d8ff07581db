"""Where things lie in the one array of a streaming state.

A header of numbers, seven vectors, the inverse (kept up to its diagonal), then the buffer: up to
``BUFFER`` rows with weight, weighted label, curvature in H and curvature at the trial point. One
array keeps a compiled call cheap. Rows are padded with zeros to a whole number of cache lines,
which a sweep needs to be fast.
"""

import numpy as np

from ..protocols import Array

CODES = {"identity": 0, "logistic": 1, "probit": 2, "tanh": 3, "algebraic": 4, "exponential": 5}
OWN = -1  # a user's link, evaluated by the caller
EXACT = -2  # solved by Newton passes every round, nothing compiled

BUFFER = 512

(
    DIM,
    PADDED,  # d rounded up to a multiple of 8
    CODE,
    BOUND,  # score bound S
    LIMIT,  # largest squared length of a row
    CONCORDANCE,  # M, |phi''| <= M phi'
    THIRD,  # N, |phi'''| <= N phi'
    SPREAD,  # sqrt(K / kappa)
    TOLERANCE,  # absolute, on the gap
    SCALE,  # of the trigger, 1 unless calibrated
    CALIBRATED,
    RIDGE,  # 2 lambda
    COUNT,
    BUFFERED,
    HEAVIEST,
    LONGEST,  # R
    LEVERAGE,  # bound of x' H^-1 x over all rows
    CANCELLED,  # whether a rank-one update has cost too many digits
    SURVEY,  # the count at which leverages are computed again
    TRAVEL,  # nu = |u|_H
    STALE_LOW,  # least and largest ratio of a row's curvature at m to that in H
    STALE_HIGH,
    STALE_SUM,  # Gamma
    SKEW,
    SMALLEST,  # lower bound of the least eigenvalue of H
    VALUE,  # F(m)
    PLAYED,  # sum w l(z), scores clipped
    TOTAL,  # sizes of the gradient's terms: sum |x| (|r| + w |y|), and sum c |x|^2 times |theta|
    CURVED,
    LOSS,  # bound of trace(H)/lambda_min(H) over the updates since the factor was renewed
    LENGTH,  # |m|
    NEARNESS,  # M / low, renewed with the anchor
    ROUNDING,  # what rounding can add to the gap, for each unit of the terms
    BLUR,  # and in all
    RESIDUAL,  # B
    REACH,  # rho, bound of |x.u| over all rows
    GAP,
    STRAINED,  # whether a pass is due
    PENDING,  # coefficient of the rank-one change not yet in the inverse
    SLOT,  # which of the two vectors it uses
    STATUS,
    MEAN,  # of the last row, before its label, when the status asks for something
    PASSES,
    FACTORS,
    TRIAL_VALUE,  # sums of a pass at the trial point
    TRIAL_SIZE,
    TRIAL_SKEW,
    TRIAL_STALE_LOW,
    TRIAL_STALE_HIGH,
    TRIAL_STALE_SUM,  # squared
    REQUEST,  # what the loop over rows asks for
) = range(51)
HEADER = 56

# largest label, and largest weight times label or squared length
LARGEST = 1e100

# vectors, in units of the padded dimension behind the header
ANCHOR, STEP, GRADIENT, SLOTS, TRIAL, TRIAL_GRADIENT, VECTORS = 0, 1, 2, 3, 5, 6, 7

# the status: at rest, what a step has asked for, being written; and a row that was not learnt
FINE, PASS, ATTENTION, RENEW, BUSY, REFUSED = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0
# what a judged pass returns
RETRY, KEPT, WORN = 0, 1, 2
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
WHOLE = (DIM, PADDED, CODE, COUNT, BUFFERED, SLOT, STATUS, PASSES, FACTORS)
POSITIVE = (LIMIT, SPREAD, SCALE, RIDGE, SMALLEST, STALE_LOW, STALE_HIGH)
SIGNED = (CODE, VALUE, PLAYED, PENDING, MEAN, TRIAL_VALUE)


def check_header(a: Array, d: int) -> None:
    """Raise unless the header is one that kernels can work with."""
    h = a[:HEADER]
    bad = np.isnan(h) | (h < 0)
    bad[[*SIGNED]] = ~np.isfinite(h[[*SIGNED]])
    bad[[*WHOLE]] |= h[[*WHOLE]] != np.floor(h[[*WHOLE]])
    bad[[*POSITIVE]] |= h[[*POSITIVE]] == 0
    bad[DIM], bad[PADDED] = h[DIM] != d, h[PADDED] != padded(d)
    bad[CODE] |= not EXACT <= h[CODE] < len(CODES)
    bad[BUFFERED] |= not h[BUFFERED] <= BUFFER
    bad[COUNT] |= not h[BUFFERED] <= h[COUNT] < 2.0**53
    bad[SLOT] |= h[SLOT] > 1
    bad[STATUS] |= h[STATUS] > BUSY
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(f"the header of the state's array holds {h[at]:g} at {at}; it is damaged")


def align(a: Array) -> Array:
    """Return ``a`` or a copy of it that begins at a cache line."""
    if a.ctypes.data % 64 == 0:
        return a
    room = np.empty(len(a) + 7)
    first = (-room.ctypes.data % 64) // 8
    room[first : first + len(a)] = a
    return room[first : first + len(a)]


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
