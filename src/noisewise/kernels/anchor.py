"""The certificate, and moving the anchor: propose a point, scan the rows at it, judge."""

import math

import numpy as np
from numba import njit

from . import adaptive_set
from . import layout as at
from .adaptive_set import EPS
from .compile_options import INNER, PART
from .links import extended
from .vectors import sweep

HEADER = np.uint64(at.HEADER)
STEP, GRADIENT, SLOTS = np.uint64(at.STEP), np.uint64(at.GRADIENT), np.uint64(at.SLOTS)
TRIAL, TRIAL_GRADIENT = np.uint64(at.TRIAL), np.uint64(at.TRIAL_GRADIENT)
VECTORS, BUFFER = np.uint64(at.VECTORS), np.uint64(at.BUFFER)
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
CHUNK = np.uint64(at.CHUNK)
# where the parts of a link lie in the room, behind the scores
MEAN, SLOPE, POTENTIAL, BEND = CHUNK, TWO * CHUNK, THREE * CHUNK, FOUR * CHUNK
chord = njit(**INNER)(adaptive_set.chord)
# below this dimension renewing the factor costs no more than the pass itself
STALE_FROM = 12


@njit(**INNER)
def mark_pass_due(a):
    """Note whether a pass is due: the gap, or the likely residual if calibrated, is too large."""
    size = a[at.SCALE] * a[at.RESIDUAL] if a[at.CALIBRATED] != 0.0 else a[at.GAP]
    a[at.PASS_DUE] = 1.0 if size > a[at.TOLERANCE] else 0.0


@njit(**INNER)
def certify(a, length2):
    """Set residual bound B and gap from travel, staleness and ||u||^2.

    With rho = min(R ||u||, sqrt(q) nu) >= |x.u|, q the largest leverage x'H^-1 x, ratios of
    curvatures in [low, high], and gamma the largest distance of one of them from 1:
    B = min(gamma nu, Gamma rho) + high C nu, where
    C = skew rho/2 + (N/M^3) (e^{M rho} - 1 - M rho - (M rho)^2/2) / rho, bounds the gradient at
    m + u in the norm of the inverse of H. The minimiser is then within e^{M rho} B / low times the
    factor e^{Mz}, z the smaller root of z = b e^{M rho} e^{Mz}; b bounds the change of a score over
    an H-distance of B / low: min(R / sqrt(lambda_min), sqrt(q)) B / low.
    """
    R = a[at.LONGEST]
    M = a[at.CONCORDANCE]
    low = a[at.STALE_LOW]
    high = a[at.STALE_HIGH]
    nu = a[at.STEP_NORM]
    length = math.sqrt(length2)
    lever = math.sqrt(a[at.LEVERAGE])
    rho = min(R * length, lever * nu)
    t = M * rho
    if t <= 1.0:
        growth = 1.0 + t + t * t * (0.5 + 0.25 * t)  # >= e^t on [0, 1]
        tail = a[at.THIRD] * rho * rho * growth / 6.0
    elif t < 300.0:
        growth = math.exp(t)
        tail = a[at.THIRD] / (M * M * M) * (growth - 1.0 - t - 0.5 * t * t) / rho
    else:
        growth = math.inf
        tail = math.inf
    bracket = 0.5 * a[at.SKEW] * rho + tail
    B = min(max(high - 1.0, 1.0 - low) * nu, a[at.STALE_SUM] * rho) + high * nu * bracket
    # without any condition, since H <= (K/kappa) UH and F is 1-strongly convex in UH
    gap = a[at.SPREAD] * B
    per_low = 1.0 / low  # used twice, which keeps the division from the end of a long chain
    stretch = min(R / math.sqrt(a[at.SMALLEST]), lever)
    factor = chord(stretch * M * per_low * (growth * B))
    if factor < math.inf:
        gap = min(gap, factor * (growth * per_low * B))
    a[at.RESIDUAL] = B
    a[at.SCORE_SHIFT] = rho
    terms = a[at.TOTAL] + a[at.CURVED] * (a[at.LENGTH] + length)
    a[at.BLUR] = a[at.ROUNDING] * (a[at.DIM] + math.sqrt(a[at.COUNT])) * terms
    # the inverse is known to a relative error of eps times the condition number
    a[at.LOSS] = max(a[at.LOSS], (a[at.CURVED] + a[at.DIM] * a[at.RIDGE]) / a[at.SMALLEST])
    a[at.BLUR] += EPS * a[at.DIM] * a[at.LOSS] * a[at.SPREAD] * nu
    a[at.GAP] = gap + a[at.BLUR]
    mark_pass_due(a)


@njit(**PART)
def set_scores(a, x, x0, width, n, room):
    """Set the scores of ``n`` rows at the trial point, four rows at a time."""
    d = np.uint64(a[at.DIM])
    trial = HEADER + TRIAL * np.uint64(a[at.PADDED])
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
def add_residuals(a, x, x0, width, n, room):
    """Add the rows times their residuals to the gradient of the pass, four rows at a time."""
    d = np.uint64(a[at.DIM])
    gradient = HEADER + TRIAL_GRADIENT * np.uint64(a[at.PADDED])
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
def scan_chunk(a, numbers, n0, stride, n, room):
    """Turn scores into residuals, add to the sums of the pass, note curvatures."""
    set_parts(np.int64(a[at.CODE]), a[at.BOUND], room, n)
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
    skew = a[at.TRIAL_SKEW]
    low = a[at.TRIAL_STALE_LOW]
    high = a[at.TRIAL_STALE_HIGH]
    for i in range(n):  # apart, since what keeps NaN does not become vector code
        skew = max(skew, room[BEND + i])
        low = min(low, room[SLOPE + i])
        high = max(high, room[SLOPE + i])
    a[at.TRIAL_VALUE] += value
    a[at.TRIAL_SIZE] += size
    a[at.TRIAL_SKEW] = skew
    a[at.TRIAL_STALE_LOW] = low
    a[at.TRIAL_STALE_HIGH] = high
    a[at.TRIAL_STALE_SUM] += stale


@njit(**PART)
def visit(a, x, x0, width, numbers, n0, stride, n, room):
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
        set_scores(a, x, begin, width, some, room)
        scan_chunk(a, numbers, n0 + first, stride, some, room)
        add_residuals(a, x, begin, width, some, room)
        first += some


@njit(**PART)
def scan(a, x, numbers, n, room):
    """Add the first ``n`` rows of a block of the history to the sums of a pass."""
    d, stride, zero = np.uint64(a[at.DIM]), np.uint64(numbers.shape[0] // 4), np.uint64(0)
    visit(a, x, zero, d, numbers, zero, stride, np.uint64(n), room)


@njit(**PART)
def propose(a, s, room):
    """Begin a pass at the trial point m + s u with what the ridge and the buffer add to its sums.

    A user's link has its buffer scanned later.
    """
    ld = np.uint64(a[at.PADDED])
    u = HEADER + STEP * ld
    trial = HEADER + TRIAL * ld
    gradient = HEADER + TRIAL_GRADIENT * ld
    square = 0.0
    for j in range(ld):
        a[trial + j] = a[HEADER + j] + s * a[u + j]
    for j in range(ld):
        a[gradient + j] = a[at.RIDGE] * a[trial + j]
        square += a[trial + j] * a[trial + j]
    a[at.TRIAL_VALUE] = 0.5 * a[at.RIDGE] * square
    a[at.TRIAL_SIZE] = 0.5 * a[at.RIDGE] * square
    a[at.TRIAL_SKEW] = 0.0
    a[at.TRIAL_STALE_LOW] = 1.0
    a[at.TRIAL_STALE_HIGH] = 1.0
    a[at.TRIAL_STALE_SUM] = 0.0
    a[at.PASSES] += 1.0
    if a[at.CODE] < 0.0:
        return
    rows = HEADER + VECTORS * ld + ld * ld
    visit(a, a, rows, ld, a, rows + BUFFER * ld, BUFFER, np.uint64(a[at.BUFFERED]), room)


@njit(**PART)
def restep(a):
    """Apply the pending change to the inverse P, set u = -P g, and certify."""
    least = max(a[at.RIDGE], a[at.SMALLEST] / (a[at.SPREAD] * a[at.SPREAD]))
    a[at.ROUNDING] = EPS / math.sqrt(least)
    d = np.uint64(a[at.DIM])
    ld = np.uint64(a[at.PADDED])
    u = HEADER + STEP * ld
    g = HEADER + GRADIENT * ld
    slots = HEADER + SLOTS * ld
    old = slots + np.uint64(a[at.SLOT]) * ld
    new = slots + slots + ld - old
    (travel2,) = sweep(a, d, ld, HEADER + VECTORS * ld, old, g, new, -a[at.PENDING])
    a[at.PENDING] = 0.0
    length2 = 0.0
    for j in range(ld):
        a[u + j] = -a[new + j]
        length2 += a[u + j] * a[u + j]
    a[at.STEP_NORM] = math.sqrt(max(travel2, 0.0))
    certify(a, length2)


@njit(**PART)
def judge(a, s):
    """Accept the trial point as anchor or not, and say whether the factor still serves.

    Armijo's rule decides on the point. The factor serves while it allows half the travel of a fresh
    one: B grows like p n^2 + q n with the travel n, p from skewness and q from staleness.
    """
    ld = np.uint64(a[at.PADDED])
    noise = EPS * (a[at.DIM] + math.sqrt(a[at.COUNT])) * a[at.TRIAL_SIZE]
    wanted = a[at.VALUE] - 1e-4 * s * a[at.STEP_NORM] * a[at.STEP_NORM]
    if s > 0.0 and not a[at.TRIAL_VALUE] <= wanted + 4.0 * noise:
        return at.RETRY
    g = HEADER + GRADIENT * ld
    trial = HEADER + TRIAL * ld
    trial_gradient = HEADER + TRIAL_GRADIENT * ld
    anchor2 = 0.0
    for j in range(ld):
        anchor2 += a[trial + j] * a[trial + j]
    for j in range(ld):
        a[HEADER + j] = a[trial + j]
        a[g + j] = a[trial_gradient + j]
    a[at.LENGTH] = math.sqrt(anchor2)
    a[at.VALUE] = a[at.TRIAL_VALUE]
    a[at.SKEW] = a[at.TRIAL_SKEW]
    a[at.STALE_LOW] = a[at.TRIAL_STALE_LOW]
    a[at.STALE_HIGH] = a[at.TRIAL_STALE_HIGH]
    a[at.STALE_SUM] = math.sqrt(a[at.TRIAL_STALE_SUM])
    B = a[at.RESIDUAL]
    rho = a[at.SCORE_SHIFT]
    gap = a[at.GAP]
    nu = a[at.STEP_NORM]
    restep(a)  # its travel is the measured gradient in the norm of the old inverse
    usual = 0.0 < B < math.inf and nu > 0.0
    if a[at.CALIBRATED] != 0.0 and usual:
        a[at.SCALE] = min(1.0, max(2.0 * a[at.STEP_NORM] / B, 0.97 * a[at.SCALE]))
        mark_pass_due(a)
    if a[at.DIM] < STALE_FROM or not usual:
        return at.FACTOR_STALE
    reach = rho / nu
    p = 0.5 * a[at.SKEW] * reach
    q = min(max(a[at.STALE_HIGH] - 1.0, 1.0 - a[at.STALE_LOW]), a[at.STALE_SUM] * reach)
    target = a[at.TOLERANCE] / a[at.SCALE]
    if a[at.CALIBRATED] == 0.0:
        target *= B / gap
    n = (math.sqrt(q * q + 4.0 * p * target) - q) / (2.0 * p) if p > 0.0 else 0.0
    return at.KEPT if n * n * p > 0.25 * target else at.FACTOR_STALE
