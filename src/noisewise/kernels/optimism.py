"""Optimistic choice and learning, compiled: one call chooses an arm, one learns its reward.

``s`` holds the numbers of a policy (`policy_params.py`), ``a`` the array of a streaming state, and
``centres, inverses, radii`` ellipsoids that hold together.
"""

import math

import numpy as np
from numba import float64, int64, njit

from . import adaptive_set
from . import layout as at
from .anchor import HEADER, SLOTS, STEP, VECTORS, chord
from .arms import LARGEST, TIE, dot, first_best, set_forms
from .compile_options import INNER, PART, entry
from .policy_params import (
    CONSTANT,
    COUNTS,
    CURVATURE,
    GAIN,
    GROWTH,
    KIND,
    LIMIT,
    LOG_DET,
    NORM,
    OWN_MATRIX,
    PARAMETER,
    PLAYED_ALONE,
    PRICE,
    PRIOR,
    SCALE,
    SLOPE,
    STEEPEST,
    UNKNOWN,
)
from .step import CANCELS, learn

# what learning returns: all done; the estimate has outgrown N; the solver asks for attention; the
# sets need the readable way; the input is bad and nothing was learnt
DONE, OUTGROWN, ATTEND, DOUBT, BAD = 0, 1, 2, 3, 4
inline = njit(**INNER)
level, excess = inline(adaptive_set.level), inline(adaptive_set.excess)
stretch, growth = inline(adaptive_set.stretch), inline(adaptive_set.growth)
nearness, local_radius = inline(adaptive_set.nearness), inline(adaptive_set.local_radius)
trusted, linear_gap = inline(adaptive_set.trusted), inline(adaptive_set.linear_gap)
mixture, linear_mixture = inline(adaptive_set.mixture), inline(adaptive_set.linear_mixture)
soft_minimum = inline(adaptive_set.soft_minimum)
counts_log_det = inline(adaptive_set.counts_log_det)
ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
BUFFER = np.uint64(at.BUFFER)


@njit(**INNER)
def lower(quads, arms, k, share):
    """Subtract share (x.k)^2 from the quadratic form of every arm."""
    for i in range(arms.shape[0]):
        inner = dot(k, arms, i)
        quads[i] = max(quads[i] - share * inner * inner, 0.0)


@njit(**PART)
def largest_upper(centres, quads, radii, s, arms):
    """Return the arm whose smallest upper bound over the ellipsoids is largest; -1: bad arms.

    Ellipsoids of infinite radius are left out; where all are, the longest arm is best.
    """
    K, d = arms.shape
    index = np.empty(K)
    for k in range(K):
        length2 = 0.0
        for j in range(d):
            length2 += arms[k, j] * arms[k, j]
        if not length2 <= s[LIMIT]:  # NaN fails it too
            return -1
        best = math.inf
        for f in range(radii.shape[0]):
            if radii[f] < math.inf:
                upper = dot(centres[f], arms, k) + s[SCALE] * radii[f] * math.sqrt(quads[f, k])
                best = min(best, upper)
        index[k] = best if best < math.inf else math.sqrt(length2)
    return first_best(index)


@entry(
    int64(float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[:, ::1]),
    nogil=False,
)
def best_upper(centres, quads, radii, s, arms):
    """`largest_upper` for Python."""
    return largest_upper(centres, quads, radii, s, arms)


@entry(
    int64(float64[:, ::1], float64[:, :, ::1], float64[::1], float64[::1], float64[:, ::1]),
    nogil=False,
)
def choose_upper(centres, inverses, radii, s, arms):
    """Return `largest_upper`, the quadratic forms computed here."""
    quads = np.empty((radii.shape[0], arms.shape[0]))
    for f in range(radii.shape[0]):
        if radii[f] < math.inf:
            set_forms(arms, inverses[f], quads[f])
    return largest_upper(centres, quads, radii, s, arms)


@entry(float64(float64[:, ::1], float64, float64[::1]), nogil=False)
def reach(inverse, radius, x):
    """Return how far a score can be off within an ellipsoid; NaN where ``x`` does not fit it."""
    d = x.shape[0]
    if inverse.shape[0] != d:
        return math.nan
    total = 0.0
    for i in range(d):
        inner = 0.0
        for j in range(d):
            inner += inverse[i, j] * x[j]
        total += inner * x[i]
    return radius * math.sqrt(max(total, 0.0))


@njit(**INNER)
def practical(score, h, s):
    """Return the practical index."""
    bonus = math.sqrt(s[GAIN] * h * (3.0 + math.log1p(s[CURVATURE] * h)))
    return score + s[SCALE] * bonus


@njit(**INNER)
def most_promising(scores, quads, s):
    """Return the arm of the largest practical index.

    One logarithm, of the largest form, bounds all indices; few arms need their own.
    """
    widest = 0.0
    for k in range(scores.shape[0]):
        widest = max(widest, quads[k])
    factor = s[GAIN] * (3.0 + math.log1p(s[CURVATURE] * widest))
    index = np.empty(scores.shape[0])
    for k in range(scores.shape[0]):
        index[k] = scores[k] + s[SCALE] * math.sqrt(factor * quads[k])
    top = -math.inf
    for k in range(scores.shape[0]):
        if index[k] >= top - 2.0 * TIE * abs(top):
            index[k] = practical(scores[k], quads[k], s)
            top = max(top, index[k])
        else:
            index[k] = -math.inf
    return first_best(index)


@entry(int64(float64[::1], float64[::1], float64[::1], float64[:, ::1]), nogil=False)
def best_practical(theta, quads, s, arms):
    """Return the arm of the largest practical index, the arms having been checked."""
    scores = np.empty(arms.shape[0])
    for k in range(arms.shape[0]):
        scores[k] = dot(theta, arms, k)
    return most_promising(scores, quads, s)


@entry(int64(float64[::1], float64[:, ::1], float64[::1], float64[:, ::1]), nogil=False)
def choose_practical(theta, inverse, s, arms):
    """Return the arm of the largest practical index; -1 where the arms are bad."""
    K, d = arms.shape
    scores, quads = np.empty(K), np.empty(K)
    for k in range(K):
        length2, score = 0.0, 0.0
        for j in range(d):
            x = arms[k, j]
            length2 += x * x
            score += theta[j] * x
        if not length2 <= s[LIMIT]:
            return -1
        scores[k] = score
    set_forms(arms, inverse, quads)
    return most_promising(scores, quads, s)


@njit(**INNER)
def last_curvature(a, w):
    """Return the curvature of the row just learnt, of weight ``w``."""
    if a[at.CODE] == 0.0:
        return w
    ld = np.uint64(a[at.PADDED])
    numbers = HEADER + VECTORS * ld + ld * ld + BUFFER * ld
    return a[numbers + TWO * BUFFER + np.uint64(a[at.BUFFERED]) - ONE]


@njit(**INNER)
def absorb(a, s, x, y, w):
    """Learn a row, add its curvature to the sum, return what is left to do."""
    if x.shape[0] != a[at.DIM] or a[at.STATUS] != at.FINE or not (w > 0.0 and abs(y) <= LARGEST):
        return BAD
    status, _, _ = learn(a, x, ZERO, y, w, a[at.LIMIT], False)
    if status == at.REFUSED:
        return BAD
    s[CURVATURE] += last_curvature(a, w)
    if status != at.FINE:
        a[at.STATUS] = status
        return ATTEND
    return DONE


@njit(**INNER)
def unfold(a, d, theta, inverse):
    """Set ``theta`` and ``inverse``, both halves, from the state; return the inverse's trace.

    The state keeps the lower half of its inverse, and one change of rank one apart.
    """
    ld = np.uint64(a[at.PADDED])
    u = HEADER + STEP * ld
    slot = HEADER + (SLOTS + np.uint64(a[at.SLOT])) * ld
    row = HEADER + VECTORS * ld
    trace = 0.0
    for i in range(np.uint64(d)):
        change = a[at.PENDING] * a[slot + i]
        for j in range(i + ONE):
            value = a[row + j] - change * a[slot + j]
            inverse[i, j] = value
            inverse[j, i] = value
        row += ld
        trace += inverse[i, i]
        theta[i] = a[HEADER + i] + a[u + i]
    return trace


@entry(
    int64(
        float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64, float64,
        float64[:, ::1], float64[::1],
    ),
    nogil=False,
)  # fmt: skip
def learn_practical(a, s, theta, inverse, x, y, w, arms, quads):
    """Learn a reward; set ``theta``, ``inverse`` and the quadratic forms of ``arms``.

    Says whether the estimate has outgrown the moving ridge.
    """
    todo = absorb(a, s, x, y, w)
    if todo != DONE:
        return todo
    ld = np.uint64(a[at.PADDED])
    slot = HEADER + (SLOTS + np.uint64(a[at.SLOT])) * ld
    lower(quads, arms, a[slot : slot + ld], a[at.PENDING])
    unfold(a, x.shape[0], theta, inverse)
    length2 = 0.0
    for i in range(x.shape[0]):
        length2 += theta[i] * theta[i]
    return OUTGROWN if length2 > GROWTH * GROWTH * s[NORM] * s[NORM] else DONE


@njit(**INNER)
def mixed(a, s, m, Q, x, w, theta, played):
    """Renew the mixture for a row just learnt; return its loss less the minimum, NaN if in doubt.

    ``m`` holds its numbers and ``Q`` the inverse of its matrix; ``played`` is the excess of the
    played loss.
    """
    d, ld = x.shape[0], np.uint64(a[at.PADDED])
    gradient = HEADER + np.uint64(at.GRADIENT) * ld
    if m[KIND] == OWN_MATRIX:
        k, q = np.empty(d), 0.0
        for i in range(d):
            k[i] = 0.0
            for j in range(d):
                k[i] += Q[i, j] * x[j]
            q += k[i] * x[i]
        change = m[STEEPEST] * w * q
        if not 0.0 <= change <= CANCELS:
            return math.nan
        m[LOG_DET] += math.log1p(change)
        share = m[STEEPEST] * w / (1.0 + change)
        for i in range(d):
            for j in range(d):
                Q[i, j] -= share * k[i] * k[j]
    else:  # 1 + c q of the solver's own update
        m[LOG_DET] += math.log(last_curvature(a, w) / a[at.PENDING])
    move = m[PRIOR] - a[at.RIDGE]
    if a[at.CODE] == 0.0:
        pull = 0.0
        if m[KIND] == OWN_MATRIX:
            for i in range(np.uint64(d)):
                for j in range(np.uint64(d)):
                    pull += theta[i] * Q[i, j] * a[gradient + j]
        return linear_mixture(m[CONSTANT], move, pull, m[LOG_DET])
    square, form, log_det = 0.0, 0.0, m[LOG_DET]
    for i in range(np.uint64(d)):
        square += a[HEADER + i] * a[HEADER + i]
    if m[KIND] == COUNTS:
        if square > s[PARAMETER] * s[PARAMETER]:
            return math.inf
        log_det = counts_log_det(a, m[STEEPEST], m[PRIOR], log_det)
    else:
        for i in range(np.uint64(d)):
            inner = 0.0
            for j in range(np.uint64(d)):
                inner += Q[i, j] * (a[gradient + j] + move * a[HEADER + j])
            form += inner * (a[gradient + i] + move * a[HEADER + i])
    return mixture(a, m[CONSTANT], m[PRIOR], square, form, log_det, played)


@entry(
    int64(
        float64[::1], float64[::1], float64[:, ::1], float64[:, :, ::1], float64[::1], int64,
        float64[::1], float64, float64, float64[:, ::1], float64[:, ::1], float64[::1],
        float64[:, ::1],
    ),
    nogil=False,
)  # fmt: skip
def learn_guaranteed(a, s, centres, inverses, radii, f, x, y, w, arms, quads, m, Q):
    """Learn a reward; renew the global ellipsoid ``f`` and the local one after it, and the
    quadratic forms of ``arms`` in both.

    `regression.sets.adaptive` is asked to step in when rounding could matter. For the identity link
    the two ellipsoids are one.
    """
    todo = absorb(a, s, x, y, w)
    if todo != DONE:
        return todo
    d = x.shape[0]
    ld = np.uint64(a[at.PADDED])
    slot = HEADER + (SLOTS + np.uint64(a[at.SLOT])) * ld
    linear = a[at.CODE] == 0.0
    own = f if linear else f + 1
    if arms.shape[0] > 0:
        lower(quads[own], arms, a[slot : slot + ld], a[at.PENDING])
    trace = unfold(a, d, centres[own], inverses[own])
    length2 = 0.0
    for i in range(d):
        centres[f, i] = centres[own, i]
        length2 += centres[f, i] * centres[f, i]
    length = math.sqrt(length2)
    if m[KIND] == UNKNOWN or not trusted(a, trace):
        return DOUBT
    if linear:
        gain = a[at.PLAYED]
        if m[KIND] != PLAYED_ALONE:
            other = mixed(a, s, m, Q, x, w, centres[f], gain)
            if other != other:
                return DOUBT
            gain = soft_minimum(gain, other, m[CONSTANT])
        radius = math.sqrt(2.0 * level(a[at.RIDGE], s[PARAMETER], s[PRICE], gain))
        radii[f] = radius + linear_gap(a, length, trace)
        return DONE
    k = np.empty(d)
    q = 0.0
    for i in range(d):
        inner = 0.0
        for j in range(d):
            inner += inverses[f, i, j] * x[j]
        k[i] = inner
        q += inner * x[i]
    change = s[SLOPE] * w * q
    if not 0.0 <= change <= CANCELS:
        return DOUBT
    share = s[SLOPE] * w / (1.0 + change)
    if arms.shape[0] > 0:
        lower(quads[f], arms, k, share)
    for i in range(d):
        for j in range(d):
            inverses[f, i, j] -= share * k[i] * k[j]
    lever, bend = stretch(a), growth(a)
    gain = excess(a, bend, chord(nearness(a, lever, bend)))
    if m[KIND] != PLAYED_ALONE:
        other = mixed(a, s, m, Q, x, w, centres[f], gain)
        if other != other:
            return DOUBT
        if other < math.inf:
            gain = soft_minimum(gain, other, m[CONSTANT])
    b = level(a[at.RIDGE], s[PARAMETER], s[PRICE], gain)
    radii[f] = math.sqrt(2.0 * b) + a[at.GAP]
    radii[own] = local_radius(a, b, radii[f], s[PARAMETER] + length, lever, bend)
    return DONE
