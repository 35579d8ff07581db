"""Optimistic choice and learning, compiled: one call chooses an arm, one learns its reward.

``s`` holds the numbers of a policy (`GAIN` and those after it), ``a`` the array of a
streaming state, and ``centres, inverses, radii`` ellipsoids that hold together.
"""

import math

import numpy as np
from numba import float64, int64, njit

from . import layout
from .anchor import ENTRY, EPS, HEADER, INNER, SLOTS, STEP, VECTORS
from .layout import (
    BLUR,
    BUFFERED,
    CODE,
    CONCORDANCE,
    COUNT,
    CURVED,
    DIM,
    FINE,
    GAP,
    LEVERAGE,
    LONGEST,
    PADDED,
    PENDING,
    PLAYED,
    REACH,
    REFUSED,
    RESIDUAL,
    RIDGE,
    SLOT,
    SMALLEST,
    SPREAD,
    STALE_LOW,
    STATUS,
    TOTAL,
    TRAVEL,
    VALUE,
)
from .step import CANCELS, learn

(
    GAIN,  # g of the practical index
    SCALE,  # of the index's bonus or radius
    LIMIT,  # largest squared length of an arm
    PARAMETER,  # bound of the true parameter's norm
    PRICE,  # C log(1/delta)
    SLOPE,  # kappa
    CURVATURE,  # W, the sum of w phi'
    NORM,  # N of the moving ridge
) = range(8)
SIZE = 8
# what learning returns: all done; the estimate has outgrown N; the solver asks for attention; the
# sets need the readable way; the input is bad and nothing was learnt
DONE, OUTGROWN, ATTEND, DOUBT, BAD = 0, 1, 2, 3, 4
GROWTH = 1.1
TIE = 1e-12
ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
BUFFER = np.uint64(layout.BUFFER)


@njit(**INNER)
def first_best(index):
    """Return the lowest position whose index equals the largest to a relative 1e-12."""
    top = index[0]
    for i in range(index.shape[0]):
        top = max(top, index[i])
    least = top - TIE * abs(top)
    for i in range(index.shape[0]):
        if index[i] >= least:
            return i
    return -1


@njit(**INNER)
def square(P, x, row):
    """Return x'Px of one row of ``x``."""
    d = P.shape[0]
    total = 0.0
    for i in range(d):
        inner = 0.0
        for j in range(d):
            inner += P[i, j] * x[row, j]
        total += inner * x[row, i]
    return total


@njit(**INNER)
def legal(arms, row, limit):
    """Whether an arm is finite and not too long; NaN fails the comparison."""
    total = 0.0
    for j in range(arms.shape[1]):
        total += arms[row, j] * arms[row, j]
    return total <= limit


@njit(
    int64(float64[:, ::1], float64[:, :, ::1], float64[::1], float64[::1], float64[:, ::1]),
    **ENTRY,
)
def best_upper(centres, inverses, radii, s, arms):
    """Return the arm whose smallest upper bound over the ellipsoids is largest; -1: bad arms."""
    K, d = arms.shape
    if K == 0 or d != centres.shape[1]:
        return -1
    index = np.empty(K)
    for k in range(K):
        if not legal(arms, k, s[LIMIT]):
            return -1
        best = math.inf
        for f in range(radii.shape[0]):
            if radii[f] < math.inf:
                score = 0.0
                for j in range(d):
                    score += centres[f, j] * arms[k, j]
                reach = math.sqrt(max(square(inverses[f], arms, k), 0.0))
                best = min(best, score + s[SCALE] * radii[f] * reach)
        if best == math.inf:  # nothing known yet: the longest arm
            best = 0.0
            for j in range(d):
                best += arms[k, j] * arms[k, j]
            best = math.sqrt(best)
        index[k] = best
    return first_best(index)


@njit(int64(float64[::1], float64[::1], float64[:, ::1]), **ENTRY)
def best_practical(a, s, arms):
    """Return the arm of the largest practical index; -1 where the arms are bad."""
    K, d = arms.shape
    if K == 0 or d != a[DIM]:
        return -1
    ld = np.uint64(a[PADDED])
    u = HEADER + STEP * ld
    slot = HEADER + (SLOTS + np.uint64(a[SLOT])) * ld
    P = HEADER + VECTORS * ld
    theta = np.empty(d)
    pending = np.empty(d)
    inverse = np.empty((d, d))
    for i in range(d):
        theta[i] = a[HEADER + np.uint64(i)] + a[u + np.uint64(i)]
        pending[i] = a[slot + np.uint64(i)]
    for i in range(d):
        row = P + np.uint64(i) * ld
        change = a[PENDING] * pending[i]
        for j in range(d):
            inverse[i, j] = a[row + np.uint64(j)] - change * pending[j]
    index = np.empty(K)
    for k in range(K):
        if not legal(arms, k, s[LIMIT]):
            return -1
        score = 0.0
        for j in range(d):
            score += theta[j] * arms[k, j]
        h = max(square(inverse, arms, k), 0.0)
        bonus = math.sqrt(s[GAIN] * h * (3.0 + math.log1p(s[CURVATURE] * h)))
        index[k] = score + s[SCALE] * bonus
    return first_best(index)


@njit(**INNER)
def absorb(a, s, x, y, w):
    """Learn a row, add its curvature to the sum, return what is left to do."""
    if x.shape[0] != a[DIM] or not w > 0.0:
        return BAD
    status, _, _ = learn(a, x, ZERO, y, w)
    if status == REFUSED:
        return BAD
    if a[CODE] == 0.0:
        s[CURVATURE] += w
    else:  # the third number of the row just buffered
        d, ld = np.uint64(a[DIM]), np.uint64(a[PADDED])
        numbers = HEADER + VECTORS * ld + d * ld + BUFFER * ld
        s[CURVATURE] += a[numbers + TWO * BUFFER + np.uint64(a[BUFFERED]) - ONE]
    if status != FINE:
        a[STATUS] = status
        return ATTEND
    return DONE


@njit(int64(float64[::1], float64[::1], float64[::1], float64, float64), **ENTRY)
def learn_practical(a, s, x, y, w):
    """Learn a reward; say whether the estimate has outgrown the moving ridge."""
    todo = absorb(a, s, x, y, w)
    if todo != DONE:
        return todo
    ld = np.uint64(a[PADDED])
    u = HEADER + STEP * ld
    length2 = 0.0
    for j in range(ld):
        value = a[HEADER + j] + a[u + j]
        length2 += value * value
    return OUTGROWN if length2 > GROWTH * GROWTH * s[NORM] * s[NORM] else DONE


@njit(
    int64(
        float64[::1], float64[::1], float64[:, ::1], float64[:, :, ::1], float64[::1], int64,
        float64[::1], float64, float64,
    ),
    **ENTRY,
)  # fmt: skip
def learn_guaranteed(a, s, centres, inverses, radii, f, x, y, w):
    """Learn a reward and renew the global ellipsoid ``f`` and the local one after it.

    The readable way is `regression.sets.adaptive`; it is asked to step in when rounding could
    matter. For the identity link the two are one.
    """
    todo = absorb(a, s, x, y, w)
    if todo != DONE:
        return todo
    d = x.shape[0]
    ld = np.uint64(a[PADDED])
    u = HEADER + STEP * ld
    slot = HEADER + (SLOTS + np.uint64(a[SLOT])) * ld
    P = HEADER + VECTORS * ld
    linear = a[CODE] == 0.0
    own = f if linear else f + 1
    trace = 0.0
    length2 = 0.0
    for i in range(d):
        row = P + np.uint64(i) * ld
        change = a[PENDING] * a[slot + np.uint64(i)]
        for j in range(d):
            inverses[own, i, j] = a[row + np.uint64(j)] - change * a[slot + np.uint64(j)]
        trace += inverses[own, i, i]
        value = a[HEADER + np.uint64(i)] + a[u + np.uint64(i)]
        length2 += value * value
        centres[f, i] = value
        centres[own, i] = value
    length = math.sqrt(length2)
    if not EPS * a[DIM] * (a[CURVED] + a[DIM] * a[RIDGE]) * trace <= 0.1:
        return DOUBT
    start = 0.5 * a[RIDGE] * s[PARAMETER] * s[PARAMETER] + s[PRICE]
    if linear:
        # the gap is rounding only, far below this
        blur = EPS * (a[DIM] + math.sqrt(a[COUNT])) * (a[TOTAL] + a[CURVED] * length)
        gap = 100.0 * blur * math.sqrt(trace)
        radii[f] = math.sqrt(2.0 * max(start + a[PLAYED], 0.0)) + gap
        return DONE
    k = np.empty(d)
    q = 0.0
    for i in range(d):
        inner = 0.0
        for j in range(d):
            inner += inverses[f, i, j] * x[j]
        k[i] = inner
        q += inner * x[i]
    growth = s[SLOPE] * w * q
    if not 0.0 <= growth <= CANCELS:
        return DOUBT
    share = s[SLOPE] * w / (1.0 + growth)
    for i in range(d):
        for j in range(d):
            inverses[f, i, j] -= share * k[i] * k[j]
    # lower bound of the minimum, hence the level
    M, low = a[CONCORDANCE], a[STALE_LOW]
    bend = math.exp(min(M * a[REACH], 700.0))
    stretch = min(a[LONGEST] / math.sqrt(a[SMALLEST]), math.sqrt(a[LEVERAGE]))
    near = M * stretch * a[RESIDUAL] * bend / low
    most = a[SPREAD] * a[SPREAD]
    if near <= 0.1:
        most = min(most, bend * (1.0 + 1.2 * near) / low)
    excess = a[PLAYED] - a[VALUE] + 0.5 * most * a[TRAVEL] * a[TRAVEL]
    level = max(start + excess, 0.0)
    radii[f] = math.sqrt(2.0 * level) + a[GAP]
    smallest = max(a[RIDGE], a[SMALLEST] / (a[SPREAD] * a[SPREAD]))
    rho = a[LONGEST] * min(s[PARAMETER] + length, radii[f] / math.sqrt(smallest))
    shift = low / bend
    residual = a[RESIDUAL] + a[BLUR]
    while True:
        c = shift * 2.0 / (2.0 + M * rho)
        e = residual / math.sqrt(c)
        radii[own] = (e + math.sqrt(e * e + 2.0 * level)) / math.sqrt(c)
        if not stretch * radii[own] < 0.999 * rho:
            return DONE
        rho = stretch * radii[own]
