"""Moving the anchor: propose a point, scan the rows at it, judge."""

import math

import numpy as np
from numba import njit

from . import adaptive_set, certificate, layout
from .adaptive_set import EPS
from .compile_options import INNER, PART
from .links import extended
from .vectors import sweep

BUFFER, CHUNK = np.uint64(layout.BUFFER), np.uint64(layout.CHUNK)
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
NUMBERS, COUNT = layout.NUMBERS, layout.COUNT
# where the parts of a link lie in the room, behind the scores
MEAN, SLOPE, POTENTIAL, BEND = CHUNK, TWO * CHUNK, THREE * CHUNK, FOUR * CHUNK
chord, set_due = njit(**INNER)(adaptive_set.chord), njit(**INNER)(certificate.set_due)
certify, note_row = njit(**INNER)(certificate.certify), njit(**INNER)(certificate.note_row)
offsets = njit(**INNER)(layout.offsets)
# below this dimension renewing the factor costs no more than the pass itself
STALE_FROM = 12


@njit(**INNER)
def numbers_of(a):
    """Return the numbers of a state."""
    return a[:COUNT].view(NUMBERS)[0]


@njit(**PART)
def set_scores(s, a, x, x0, width, n, room):
    """Set the scores of ``n`` rows at the trial point, four rows at a time."""
    d = np.uint64(s.dim)
    trial = offsets(s).trial
    i = np.uint64(0)
    while i + FOUR <= n:
        one, two, three = x0 + width, x0 + TWO * width, x0 + THREE * width
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(d):
            value = a[trial + j]
            s0 += x[x0 + j] * value
            s1 += x[one + j] * value
            s2 += x[two + j] * value
            s3 += x[three + j] * value
        room[i], room[i + ONE], room[i + TWO], room[i + THREE] = s0, s1, s2, s3
        x0 += FOUR * width
        i += FOUR
    while i < n:
        total = 0.0
        for j in range(d):
            total += x[x0 + j] * a[trial + j]
        room[i] = total
        x0 += width
        i += ONE


@njit(**PART)
def add_residuals(s, a, x, x0, width, n, room):
    """Add the rows times their residuals to the gradient of the pass, four rows at a time."""
    d = np.uint64(s.dim)
    gradient = offsets(s).trial_gradient
    i = np.uint64(0)
    while i + FOUR <= n:
        one, two, three = x0 + width, x0 + TWO * width, x0 + THREE * width
        r0, r1, r2, r3 = room[i], room[i + ONE], room[i + TWO], room[i + THREE]
        for j in range(d):
            some = r0 * x[x0 + j] + r1 * x[one + j]
            a[gradient + j] += some + (r2 * x[two + j] + r3 * x[three + j])
        x0 += FOUR * width
        i += FOUR
    while i < n:
        for j in range(d):
            a[gradient + j] += room[i] * x[x0 + j]
        x0 += width
        i += ONE


@njit(**INNER)
def set_parts_of(code, S, room, n):
    """Set them for one link; where its code is a constant, in vector code."""
    for i in range(n):
        mean, slope, potential, bend = extended(code, S, room[i])
        room[MEAN + i], room[SLOPE + i] = mean, slope
        room[POTENTIAL + i], room[BEND + i] = potential, bend


@njit(**PART)
def set_parts(code, S, room, n):
    """Set what the extended link is made of at the scores."""
    if code == 1:
        set_parts_of(1, S, room, n)
    elif code == 3:
        set_parts_of(3, S, room, n)
    elif code == 5:
        set_parts_of(5, S, room, n)
    else:
        set_parts_of(code, S, room, n)


@njit(**PART)
def scan_chunk(s, numbers, n0, stride, n, room):
    """Turn scores into residuals, add to the sums of the pass, note curvatures."""
    set_parts(np.int64(s.code), s.bound, room, n)
    value = 0.0
    size = 0.0
    stale = 0.0
    for i in range(n):
        score = room[i]
        w = numbers[n0 + i]
        wy = numbers[n0 + stride + i]
        old = numbers[n0 + TWO * stride + i]
        fresh = w * room[SLOPE + i]
        numbers[n0 + THREE * stride + i] = fresh
        room[i] = w * room[MEAN + i] - wy
        potential = w * room[POTENTIAL + i]
        ratio = fresh / old
        room[SLOPE + i] = ratio
        value += potential - wy * score
        size += abs(potential) + abs(wy * score)
        stale += old * (ratio - 1.0) * (ratio - 1.0)
    skew = s.trial_skew
    low = s.trial_stale_low
    high = s.trial_stale_high
    for i in range(n):  # apart, since what keeps NaN does not become vector code
        skew = max(skew, room[BEND + i])
        low = min(low, room[SLOPE + i])
        high = max(high, room[SLOPE + i])
    s.trial_value += value
    s.trial_size += size
    s.trial_skew = skew
    s.trial_stale_low = low
    s.trial_stale_high = high
    s.trial_stale_sum += stale


@njit(**PART)
def visit(s, a, x, x0, width, numbers, n0, stride, n, room):
    """Add ``n`` rows to the sums of a pass at the trial point.

    Rows lie in ``x`` from ``x0`` on, ``width`` apart; their weight, weighted label, curvature in H
    and curvature at the trial point, noted here, in ``numbers`` from ``n0`` on, ``stride`` apart.
    A chunk comes from memory once: it is still near when its residuals are known. ``room`` is
    scratch, `layout.SCRATCH` numbers.
    """
    first = np.uint64(0)
    while first < n:
        some = n - first if n - first < CHUNK else CHUNK
        begin = x0 + first * width
        set_scores(s, a, x, begin, width, some, room)
        scan_chunk(s, numbers, n0 + first, stride, some, room)
        add_residuals(s, a, x, begin, width, some, room)
        first += some


@njit(**PART)
def scan(s, a, x, numbers, n, room):
    """Add the first ``n`` rows of a block of the history to the sums of a pass."""
    d, stride, zero = np.uint64(s.dim), np.uint64(numbers.shape[0] // 4), np.uint64(0)
    visit(s, a, x, zero, d, numbers, zero, stride, np.uint64(n), room)


@njit(**PART)
def propose(s, a, share, room):
    """Begin a pass at the trial point m + share u: add what ridge and buffer add to its sums.

    A user's link has its buffer scanned later.
    """
    at, square = offsets(s), 0.0
    for j in range(at.width):
        a[at.trial + j] = a[at.anchor + j] + share * a[at.step + j]
    for j in range(at.width):
        a[at.trial_gradient + j] = s.ridge * a[at.trial + j]
        square += a[at.trial + j] * a[at.trial + j]
    s.trial_value = 0.5 * s.ridge * square
    s.trial_size = 0.5 * s.ridge * square
    s.trial_skew = 0.0
    s.trial_stale_low = 1.0
    s.trial_stale_high = 1.0
    s.trial_stale_sum = 0.0
    s.passes += 1.0
    if s.code < 0.0:
        return
    visit(s, a, a, at.rows, at.width, a, at.numbers, BUFFER, np.uint64(s.buffered), room)


@njit(**PART)
def restep(s, a):
    """Apply the pending change to the inverse P, set u = -P g, and certify."""
    least = max(s.ridge, s.smallest / (s.spread * s.spread))
    s.rounding = EPS / math.sqrt(least)
    at, d, length2 = offsets(s), np.uint64(s.dim), 0.0
    fresh = at.fresh
    (travel2,) = sweep(a, d, at.width, at.inverse, at.pending, at.gradient, fresh, -s.pending)
    s.pending = 0.0
    for j in range(at.width):
        a[at.step + j] = -a[fresh + j]
        length2 += a[at.step + j] * a[at.step + j]
    s.step_norm = math.sqrt(max(travel2, 0.0))
    certify(s, length2, chord)


@njit(**PART)
def judge(s, a, share):
    """Accept the trial point as anchor or not, and say whether the factor still serves.

    Armijo's rule decides on the point. The factor serves while it allows half the travel of a fresh
    one: B grows like p n^2 + q n with the travel n, p from skewness and q from staleness.
    """
    at = offsets(s)
    noise = EPS * (s.dim + math.sqrt(s.count)) * s.trial_size
    wanted = s.value - 1e-4 * share * s.step_norm * s.step_norm
    if share > 0.0 and not s.trial_value <= wanted + 4.0 * noise:
        return layout.RETRY
    anchor2 = 0.0
    for j in range(at.width):
        a[at.anchor + j] = a[at.trial + j]
        a[at.gradient + j] = a[at.trial_gradient + j]
        anchor2 += a[at.trial + j] * a[at.trial + j]
    s.length = math.sqrt(anchor2)
    s.value = s.trial_value
    s.skew = s.trial_skew
    s.stale_low = s.trial_stale_low
    s.stale_high = s.trial_stale_high
    s.stale_sum = math.sqrt(s.trial_stale_sum)
    B = s.residual
    rho = s.score_shift
    gap = s.gap
    nu = s.step_norm
    restep(s, a)  # its travel is the measured gradient in the norm of the old inverse
    usual = 0.0 < B < math.inf and nu > 0.0
    if s.calibrated != 0.0 and usual:
        s.scale = min(1.0, max(2.0 * s.step_norm / B, 0.97 * s.scale))
        set_due(s)
    if s.dim < STALE_FROM or not usual:
        return layout.FACTOR_STALE
    reach = rho / nu
    p = 0.5 * s.skew * reach
    q = min(max(s.stale_high - 1.0, 1.0 - s.stale_low), s.stale_sum * reach)
    target = s.tolerance / s.scale
    if s.calibrated == 0.0:
        target *= B / gap
    n = (math.sqrt(q * q + 4.0 * p * target) - q) / (2.0 * p) if p > 0.0 else 0.0
    return layout.KEPT if n * n * p > 0.25 * target else layout.FACTOR_STALE
