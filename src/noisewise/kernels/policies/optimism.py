"""Optimistic choice and learning, compiled: one call chooses an arm, one learns its reward.

``p`` are the numbers of a policy (`policy_params.py`), ``s`` those of a streaming state, ``a`` its
array, and ``centres, inverses, radii`` ellipsoids that hold together.
"""

import math

import numpy as np
from numba import float64, int64, njit

from ..compiling.compile_options import INNER, PART, entry
from ..glm import adaptive_set
from ..glm.certificate import CANCELS
from ..glm.layout import ANCHOR, GRADIENT, SLOTS, STEP, VECTORS
from ..glm.rounds import BUFFER, buffered, chord, numbers_of, place, vector
from ..glm.step import learn
from ..matrices.dense import add_to_inverse, dot, largest, set_line, times
from ..matrices.vectors import ONE, TWO, ZERO
from .arm_forms import LARGEST, TIE, are_within, first_best, set_forms
from .policy_params import COUNTS, GROWTH, MIXTURE, OWN_MATRIX, PARAMS, PLAYED_ALONE, UNKNOWN

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


@njit(**INNER)
def params_of(row):
    """Return the numbers of a policy."""
    return row.view(PARAMS)[0]


@njit(**INNER)
def lower(quads, arms, k, share):
    """Subtract share (x.k)^2 from the quadratic form of every arm."""
    for i in range(arms.shape[0]):
        inner = dot(arms[i], k)
        quads[i] = max(quads[i] - share * inner * inner, 0.0)


@njit(**PART)
def largest_upper(centres, quads, radii, p, arms):
    """Return the arm whose smallest upper bound over the ellipsoids is largest; -1: bad arms.

    Ellipsoids of infinite radius are left out; where all are, the longest arm is best.
    """
    if not are_within(arms, p.limit):
        return -1
    index = np.empty(arms.shape[0])
    for k in range(arms.shape[0]):
        best = math.inf
        for f in range(radii.shape[0]):
            if radii[f] < math.inf:
                upper = dot(arms[k], centres[f]) + p.scale * radii[f] * math.sqrt(quads[f, k])
                best = min(best, upper)
        index[k] = best if best < math.inf else math.sqrt(dot(arms[k], arms[k]))
    return first_best(index)


@entry(
    int64(float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[:, ::1]),
    nogil=False,
)
def best_upper(centres, quads, radii, params, arms):
    """`largest_upper` for Python."""
    return largest_upper(centres, quads, radii, params_of(params), arms)


@entry(
    int64(float64[:, ::1], float64[:, :, ::1], float64[::1], float64[::1], float64[:, ::1]),
    nogil=False,
)
def choose_upper(centres, inverses, radii, params, arms):
    """Return `largest_upper`, the quadratic forms computed here."""
    quads = np.empty((radii.shape[0], arms.shape[0]))
    for f in range(radii.shape[0]):
        if radii[f] < math.inf:
            set_forms(arms, inverses[f], quads[f])
    return largest_upper(centres, quads, radii, params_of(params), arms)


@entry(float64(float64[:, ::1], float64, float64[::1]), nogil=False)
def reach(inverse, radius, x):
    """Return how far a score can be off within an ellipsoid; NaN where ``x`` does not fit it."""
    if inverse.shape[0] != x.shape[0]:
        return math.nan
    return radius * math.sqrt(max(times(inverse, x, np.empty(x.shape[0])), 0.0))


@njit(**INNER)
def practical(score, h, p):
    """Return the practical index."""
    bonus = math.sqrt(p.gain * h * (3.0 + math.log1p(p.curvature * h)))
    return score + p.scale * bonus


@njit(**INNER)
def most_promising(theta, arms, quads, p):
    """Return the arm of the largest practical index.

    One logarithm, of the largest form, bounds all indices; few arms need their own.
    """
    K, top = arms.shape[0], -math.inf
    scores, index = np.empty(K), np.empty(K)
    factor = p.gain * (3.0 + math.log1p(p.curvature * max(largest(quads), 0.0)))
    for k in range(K):
        scores[k] = dot(arms[k], theta)
        index[k] = scores[k] + p.scale * math.sqrt(factor * quads[k])
    for k in range(K):
        if index[k] >= top - 2.0 * TIE * abs(top):
            index[k] = practical(scores[k], quads[k], p)
            top = max(top, index[k])
        else:
            index[k] = -math.inf
    return first_best(index)


@entry(int64(float64[::1], float64[::1], float64[::1], float64[:, ::1]), nogil=False)
def best_practical(theta, quads, params, arms):
    """Return the arm of the largest practical index, the arms having been checked."""
    return most_promising(theta, arms, quads, params_of(params))


@entry(int64(float64[::1], float64[:, ::1], float64[::1], float64[:, ::1]), nogil=False)
def choose_practical(theta, inverse, params, arms):
    """Return the arm of the largest practical index; -1 where the arms are bad."""
    p, quads = params_of(params), np.empty(arms.shape[0])
    if not are_within(arms, p.limit):
        return -1
    set_forms(arms, inverse, quads)
    return most_promising(theta, arms, quads, p)


@njit(**INNER)
def last_curvature(s, a, w):
    """Return the curvature of the row just learnt, of weight ``w``."""
    if s.code == 0.0:
        return w
    return a[buffered(s, BUFFER) + TWO * BUFFER + np.uint64(s.buffered) - ONE]


@njit(**INNER)
def absorb(s, a, p, x, y, w):
    """Learn a row, add its curvature to the sum, return what is left to do."""
    if x.shape[0] != s.dim or s.busy + s.due != 0.0 or not (w > 0.0 and abs(y) <= LARGEST):
        return BAD
    if not learn(s, a, x, ZERO, y, w, s.limit, False)[0]:
        return BAD
    p.curvature += last_curvature(s, a, w)
    return DONE if s.due == 0.0 else ATTEND


@njit(**INNER)
def unfold(s, a, d, theta, inverse):
    """Set ``theta`` and ``inverse``, both halves, from the state; return the inverse's trace.

    The state keeps the lower half of its inverse, and one change of rank one apart.
    """
    row, k, m, u = place(s, VECTORS), place(s, SLOTS + s.slot), place(s, ANCHOR), place(s, STEP)
    width, trace = np.uint64(s.padded), 0.0
    for i in range(np.uint64(d)):
        change = s.pending * a[k + i]
        for j in range(i + ONE):
            value = a[row + j] - change * a[k + j]
            inverse[i, j] = value
            inverse[j, i] = value
        row += width
        trace += inverse[i, i]
        theta[i] = a[m + i] + a[u + i]
    return trace


@entry(
    int64(
        float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64, float64,
        float64[:, ::1], float64[::1],
    ),
    nogil=False,
)  # fmt: skip
def learn_practical(a, params, theta, inverse, x, y, w, arms, quads):
    """Learn a reward; set ``theta``, ``inverse`` and the quadratic forms of ``arms``.

    Says whether the estimate has outgrown the moving ridge.
    """
    s, p = numbers_of(a), params_of(params)
    todo = absorb(s, a, p, x, y, w)
    if todo != DONE:
        return todo
    lower(quads, arms, vector(s, a, SLOTS + s.slot), s.pending)
    unfold(s, a, x.shape[0], theta, inverse)
    return OUTGROWN if dot(theta, theta) > GROWTH * GROWTH * p.norm * p.norm else DONE


@njit(**INNER)
def mixed(s, a, p, m, Q, x, w, theta, played):
    """Renew the mixture for a row just learnt; return its loss less the minimum, NaN if in doubt.

    ``m`` holds its numbers and ``Q`` the inverse of its matrix; ``played`` is the excess of the
    played loss.
    """
    d, move, form, pull = x.shape[0], m.prior - s.ridge, 0.0, 0.0
    anchor, gradient = vector(s, a, ANCHOR), vector(s, a, GRADIENT)
    if m.kind == OWN_MATRIX:
        g, product = np.empty(d), np.empty(d)
        change = add_to_inverse(Q, x, m.steepest * w, CANCELS, product)
        if not 0.0 <= change < CANCELS:
            return math.nan
        m.log_det += math.log1p(change)
        for i in range(d):
            g[i] = gradient[i] + move * anchor[i]  # for the identity the anchor is 0
        form = times(Q, g, product)
        pull = dot(theta, product)
    else:  # 1 + c q of the solver's own update
        m.log_det += math.log(last_curvature(s, a, w) / s.pending)
    if s.code == 0.0:
        return linear_mixture(m.constant, move, pull, m.log_det)
    square, log_det = dot(anchor, anchor), m.log_det
    if m.kind == COUNTS:
        if square > p.parameter * p.parameter:
            return math.inf
        log_det = counts_log_det(s, m.steepest, m.prior, log_det)
    return mixture(s, m.constant, m.prior, square, form, log_det, played)


@entry(
    int64(
        float64[::1], float64[::1], float64[:, ::1], float64[:, :, ::1], float64[::1], int64,
        float64[::1], float64, float64, float64[:, ::1], float64[:, ::1], float64[::1],
        float64[:, ::1],
    ),
    nogil=False,
)  # fmt: skip
def learn_guaranteed(
    a, params, centres, inverses, radii, f, x, y, w, arms, quads, mixture_numbers, Q
):
    """Learn a reward; renew the global ellipsoid ``f`` and the local one after it, and the
    quadratic forms of ``arms`` in both.

    `regression.ftrl.sets.adaptive` is asked to step in when rounding could matter. For the identity
    link the two ellipsoids are one.
    """
    s, p = numbers_of(a), params_of(params)
    todo = absorb(s, a, p, x, y, w)
    if todo != DONE:
        return todo
    m, d = mixture_numbers.view(MIXTURE)[0], x.shape[0]
    linear = s.code == 0.0
    own = f if linear else f + 1
    if arms.shape[0] > 0:
        lower(quads[own], arms, vector(s, a, SLOTS + s.slot), s.pending)
    trace = unfold(s, a, d, centres[own], inverses[own])
    set_line(centres[own], centres[f])
    length = math.sqrt(dot(centres[f], centres[f]))
    if m.kind == UNKNOWN or not trusted(s, trace):
        return DOUBT
    if linear:
        gain = s.played
        if m.kind != PLAYED_ALONE:
            other = mixed(s, a, p, m, Q, x, w, centres[f], gain)
            if other != other:
                return DOUBT
            gain = soft_minimum(gain, other, m.constant)
        radius = math.sqrt(2.0 * level(s.ridge, p.parameter, p.price, gain))
        radii[f] = radius + linear_gap(s, length, trace)
        return DONE
    k, slope = np.empty(d), p.slope * w
    change = add_to_inverse(inverses[f], x, slope, CANCELS, k)
    if not 0.0 <= change < CANCELS:
        return DOUBT
    if arms.shape[0] > 0:
        lower(quads[f], arms, k, slope / (1.0 + change))
    lever, bend = stretch(s), growth(s)
    gain = excess(s, bend, chord(nearness(s, lever, bend)))
    if m.kind != PLAYED_ALONE:
        other = mixed(s, a, p, m, Q, x, w, centres[f], gain)
        if other != other:
            return DOUBT
        if other < math.inf:
            gain = soft_minimum(gain, other, m.constant)
    b = level(s.ridge, p.parameter, p.price, gain)
    radii[f] = math.sqrt(2.0 * b) + s.gap
    radii[own] = local_radius(s, b, radii[f], p.parameter + length, lever, bend)
    return DONE
