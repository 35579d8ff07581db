"""The certificate, and moving the anchor: propose a point, scan the rows at it, judge."""

import math

import numpy as np
from numba import njit

from . import layout
from .flags import INNER, PART
from .layout import (
    BLUR,
    BOUND,
    BUFFERED,
    CALIBRATED,
    CODE,
    CONCORDANCE,
    COUNT,
    CURVED,
    DIM,
    GAP,
    KEPT,
    LENGTH,
    LEVERAGE,
    LONGEST,
    LOSS,
    NEARNESS,
    PADDED,
    PASSES,
    PENDING,
    REACH,
    RESIDUAL,
    RETRY,
    RIDGE,
    ROUNDING,
    SCALE,
    SKEW,
    SLOT,
    SMALLEST,
    SPREAD,
    STALE_HIGH,
    STALE_LOW,
    STALE_SUM,
    STRAINED,
    THIRD,
    TOLERANCE,
    TOTAL,
    TRAVEL,
    TRIAL_SIZE,
    TRIAL_SKEW,
    TRIAL_STALE_HIGH,
    TRIAL_STALE_LOW,
    TRIAL_STALE_SUM,
    TRIAL_VALUE,
    VALUE,
    WORN,
)
from .links import parts, transcend
from .vectors import sweep

HEADER = np.uint64(layout.HEADER)
STEP, GRADIENT, SLOTS = np.uint64(layout.STEP), np.uint64(layout.GRADIENT), np.uint64(layout.SLOTS)
TRIAL, TRIAL_GRADIENT = np.uint64(layout.TRIAL), np.uint64(layout.TRIAL_GRADIENT)
VECTORS, BUFFER = np.uint64(layout.VECTORS), np.uint64(layout.BUFFER)
ROOM = float(layout.BUFFER)
TWO, THREE = np.uint64(2), np.uint64(3)
EPS = 2.220446049250313e-16
# below this dimension renewing the factor costs no more than the pass itself
STALE_FROM = 12


@njit(**INNER)
def strain(a):
    """Note whether a pass is due: the gap, or the likely residual if calibrated, is too large."""
    size = a[SCALE] * a[RESIDUAL] if a[CALIBRATED] != 0.0 else a[GAP]
    a[STRAINED] = 1.0 if size > a[TOLERANCE] else 0.0


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
    R = a[LONGEST]
    M = a[CONCORDANCE]
    low = a[STALE_LOW]
    high = a[STALE_HIGH]
    nu = a[TRAVEL]
    length = math.sqrt(length2)
    lever = math.sqrt(a[LEVERAGE])
    rho = min(R * length, lever * nu)
    t = M * rho
    if t <= 1.0:
        growth = 1.0 + t + t * t * (0.5 + 0.25 * t)  # >= e^t on [0, 1]
        tail = a[THIRD] * rho * rho * growth / 6.0
    elif t < 300.0:
        growth = math.exp(t)
        tail = a[THIRD] / (M * M * M) * (growth - 1.0 - t - 0.5 * t * t) / rho
    else:
        growth = math.inf
        tail = math.inf
    bracket = 0.5 * a[SKEW] * rho + tail
    B = min(max(high - 1.0, 1.0 - low) * nu, a[STALE_SUM] * rho) + high * bracket * nu
    # without any condition, since H <= (K/kappa) UH and F is 1-strongly convex in UH
    gap = a[SPREAD] * B
    near = min(R / math.sqrt(a[SMALLEST]), lever) * B * growth * a[NEARNESS]
    if near <= 0.1:  # chords of the convex e^{Mz}, which is 1, 1.1183, 1.4297 at 0, 0.1, 0.25
        gap = min(gap, (1.0 + 1.2 * near) * growth * B / low)
    elif near <= 0.25:
        gap = min(gap, (1.12 + 2.1 * (near - 0.1)) * growth * B / low)
    a[RESIDUAL] = B
    a[REACH] = rho
    terms = a[TOTAL] + a[CURVED] * (a[LENGTH] + length)
    a[BLUR] = a[ROUNDING] * (a[DIM] + math.sqrt(a[COUNT])) * terms
    # the inverse is known to a relative error of eps times the condition number
    a[LOSS] = max(a[LOSS], (a[CURVED] + a[DIM] * a[RIDGE]) / a[SMALLEST])
    a[BLUR] += EPS * a[DIM] * a[LOSS] * a[SPREAD] * nu
    a[GAP] = gap + a[BLUR]
    strain(a)


@njit(**PART)
def scan(a, z, e, v, numbers, n0, stride):
    """Turn scores at the trial point into residuals, add to the sums of the pass, note curvatures.

    ``e`` and ``v`` hold `transcend` of the scores, which numpy evaluates faster for many rows.
    Weight, weighted label, curvature in H and curvature at the trial point, noted here, lie in
    ``numbers`` from ``n0`` on, ``stride`` apart.
    """
    code = int(a[CODE])
    S = a[BOUND]
    value = 0.0
    size = 0.0
    skew = a[TRIAL_SKEW]
    low = a[TRIAL_STALE_LOW]
    high = a[TRIAL_STALE_HIGH]
    stale = 0.0
    for i in range(np.uint64(z.shape[0])):
        score = z[i]
        c = min(max(score, -S), S)
        away = score - c
        mean, slope, potential, bend = parts(code, c, e[i], v[i])
        w = numbers[n0 + i]
        wy = numbers[n0 + stride + i]
        old = numbers[n0 + TWO * stride + i]
        fresh = w * slope
        numbers[n0 + THREE * stride + i] = fresh
        z[i] = w * (mean + slope * away) - wy
        potential = w * (potential + (mean + 0.5 * slope * away) * away)
        ratio = fresh / old
        value += potential - wy * score
        size += abs(potential) + abs(wy * score)
        skew = max(skew, bend)
        low = min(low, ratio)
        high = max(high, ratio)
        stale += old * (ratio - 1.0) * (ratio - 1.0)
    a[TRIAL_VALUE] += value
    a[TRIAL_SIZE] += size
    a[TRIAL_SKEW] = skew
    a[TRIAL_STALE_LOW] = low
    a[TRIAL_STALE_HIGH] = high
    a[TRIAL_STALE_SUM] += stale


@njit(**PART)
def propose(a, s, room):
    """Begin a pass at the trial point m + s u with what the ridge and the buffer add to its sums.

    ``room`` is scratch, three numbers a buffered row. A user's link has its buffer scanned later.
    """
    ld = np.uint64(a[PADDED])
    u = HEADER + STEP * ld
    trial = HEADER + TRIAL * ld
    gradient = HEADER + TRIAL_GRADIENT * ld
    square = 0.0
    for j in range(ld):
        a[trial + j] = a[HEADER + j] + s * a[u + j]
    for j in range(ld):
        a[gradient + j] = a[RIDGE] * a[trial + j]
        square += a[trial + j] * a[trial + j]
    a[TRIAL_VALUE] = 0.5 * a[RIDGE] * square
    a[TRIAL_SIZE] = 0.5 * a[RIDGE] * square
    a[TRIAL_SKEW] = 0.0
    a[TRIAL_STALE_LOW] = 1.0
    a[TRIAL_STALE_HIGH] = 1.0
    a[TRIAL_STALE_SUM] = 0.0
    a[PASSES] += 1.0
    if a[CODE] < 0.0:
        return
    n = np.uint64(a[BUFFERED])
    buffer = HEADER + VECTORS * ld + ld * ld
    for i in range(n):
        total = 0.0
        for j in range(ld):
            total += a[buffer + i * ld + j] * a[trial + j]
        room[i] = total
        c = min(max(total, -a[BOUND]), a[BOUND])
        room[BUFFER + i], room[BUFFER + BUFFER + i] = transcend(int(a[CODE]), c)
    scan(a, room[:n], room[BUFFER:], room[BUFFER + BUFFER :], a, buffer + BUFFER * ld, BUFFER)
    for i in range(n):
        residual = room[i]
        for j in range(ld):
            a[gradient + j] += residual * a[buffer + i * ld + j]


@njit(**PART)
def restep(a):
    """Apply the pending change to the inverse P, set u = -P g, and certify."""
    least = max(a[RIDGE], a[SMALLEST] / (a[SPREAD] * a[SPREAD]))
    a[ROUNDING] = EPS / math.sqrt(least)
    a[NEARNESS] = a[CONCORDANCE] / a[STALE_LOW]
    d = np.uint64(a[DIM])
    ld = np.uint64(a[PADDED])
    u = HEADER + STEP * ld
    g = HEADER + GRADIENT * ld
    slots = HEADER + SLOTS * ld
    old = slots + np.uint64(a[SLOT]) * ld
    new = slots + slots + ld - old
    (travel2,) = sweep(a, d, ld, HEADER + VECTORS * ld, old, g, new, -a[PENDING])
    a[PENDING] = 0.0
    length2 = 0.0
    for j in range(ld):
        a[u + j] = -a[new + j]
        length2 += a[u + j] * a[u + j]
    a[TRAVEL] = math.sqrt(max(travel2, 0.0))
    certify(a, length2)


@njit(**PART)
def judge(a, s):
    """Accept the trial point as anchor or not, and say whether the factor still serves.

    Armijo's rule decides on the point. The factor serves while it allows half the travel of a fresh
    one: B grows like p n^2 + q n with the travel n, p from skewness and q from staleness.
    """
    ld = np.uint64(a[PADDED])
    noise = EPS * (a[DIM] + math.sqrt(a[COUNT])) * a[TRIAL_SIZE]
    wanted = a[VALUE] - 1e-4 * s * a[TRAVEL] * a[TRAVEL]
    if s > 0.0 and not a[TRIAL_VALUE] <= wanted + 4.0 * noise:
        return RETRY
    g = HEADER + GRADIENT * ld
    trial = HEADER + TRIAL * ld
    trial_gradient = HEADER + TRIAL_GRADIENT * ld
    anchor2 = 0.0
    for j in range(ld):
        anchor2 += a[trial + j] * a[trial + j]
    for j in range(ld):
        a[HEADER + j] = a[trial + j]
        a[g + j] = a[trial_gradient + j]
    a[LENGTH] = math.sqrt(anchor2)
    a[VALUE] = a[TRIAL_VALUE]
    a[SKEW] = a[TRIAL_SKEW]
    a[STALE_LOW] = a[TRIAL_STALE_LOW]
    a[STALE_HIGH] = a[TRIAL_STALE_HIGH]
    a[STALE_SUM] = math.sqrt(a[TRIAL_STALE_SUM])
    B = a[RESIDUAL]
    rho = a[REACH]
    gap = a[GAP]
    nu = a[TRAVEL]
    restep(a)  # its travel is the measured gradient in the norm of the old inverse
    usual = 0.0 < B < math.inf and nu > 0.0
    if a[CALIBRATED] != 0.0 and usual:
        a[SCALE] = min(1.0, max(2.0 * a[TRAVEL] / B, 0.97 * a[SCALE]))
        strain(a)
    if a[DIM] < STALE_FROM or not usual:
        return WORN
    reach = rho / nu
    p = 0.5 * a[SKEW] * reach
    q = min(max(a[STALE_HIGH] - 1.0, 1.0 - a[STALE_LOW]), a[STALE_SUM] * reach)
    target = a[TOLERANCE] / a[SCALE]
    if a[CALIBRATED] == 0.0:
        target *= B / gap
    n = (math.sqrt(q * q + 4.0 * p * target) - q) / (2.0 * p) if p > 0.0 else 0.0
    return KEPT if n * n * p > 0.25 * target else WORN
