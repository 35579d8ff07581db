"""Passes over the history: moving the anchor, and renewing the inverse.

A pass costs as much as several products of the history and a vector; a new inverse also a product
with itself. Both are done whole inside the call that finds them due.
"""

import math

import numpy as np
from numba import boolean, float64, int64, njit, void

from ..compiling.compile_options import PART, entry
from ..matrices.blocked_inverse import add, cross, invert, largest_eigenvalue_bound
from ..matrices.dense import dot, set_line
from .adaptive_set import EPS
from .layout import ANCHOR, FACTOR, FINE, GRADIENT, ROW, SLOTS, STEP, UNIT, VECTORS
from .link_values import BEND, MEAN, POTENTIAL, SCRATCH, SLOPE, set_parts
from .rounds import (
    calibrate,
    certify,
    chord,
    finished,
    multiply,
    numbers_of,
    place,
    still_serves,
    vector,
)

CHUNK, FEW = 64, 50  # rows that are multiplied at once: BLAS shares no product of 50 features
MANY = 512  # rows if there are more features
NARROW = 64  # features up to which eigenvalues are bounded with every inverse
LEAST_STRETCH = 0.03  # below, too many digits of an inverse would be lost
Rows = float64[:, ::1]


@njit(**PART)
def stored(s, a):
    """Return the inverse as it is kept, without the pending change: a view."""
    first, n = place(s, VECTORS), np.int64(s.padded)
    return a[first : first + np.uint64(n * n)].reshape(n, n)


@njit(**PART)
def set_scores(X, first, m, theta, scores):
    """Set the scores of m rows, four rows at a time."""
    d, i = theta.shape[0], 0
    while i + 4 <= m:
        r = first + i
        s0 = s1 = s2 = s3 = 0.0
        for j in range(d):
            value = theta[j]
            s0 += X[r, j] * value
            s1 += X[r + 1, j] * value
            s2 += X[r + 2, j] * value
            s3 += X[r + 3, j] * value
        scores[i], scores[i + 1], scores[i + 2], scores[i + 3] = s0, s1, s2, s3
        i += 4
    while i < m:
        total = 0.0
        for j in range(d):
            total += X[first + i, j] * theta[j]
        scores[i] = total
        i += 1


@njit(**PART)
def add_residuals(X, first, m, residuals, gradient):
    """Add m rows times their residuals to the gradient, four rows at a time."""
    d, i = gradient.shape[0], 0
    while i + 4 <= m:
        r = first + i
        r0, r1, r2, r3 = residuals[i], residuals[i + 1], residuals[i + 2], residuals[i + 3]
        for j in range(d):
            some = r0 * X[r, j] + r1 * X[r + 1, j]
            gradient[j] += some + (r2 * X[r + 2, j] + r3 * X[r + 3, j])
        i += 4
    while i < m:
        for j in range(d):
            gradient[j] += residuals[i] * X[first + i, j]
        i += 1


@njit(**PART)
def measure(s, unit, X, first, m, residuals, labels, curvature):
    """Add the lengths of m rows to what is known of lengths."""
    for i in range(m):
        square = 0.0
        for j in range(unit.shape[0]):
            value = X[first + i, j] * unit[j]
            square += value * value
        s.longest = max(s.longest, math.sqrt(square))
        s.total += math.sqrt(square) * (abs(residuals[i]) + abs(labels[1, first + i]))
        s.curved += curvature[first + i] * square


@njit(**{**PART, "fastmath": False})
def weigh(room, scores, labels, old, fresh, terms, first, m):
    """Set residuals, curvatures with their ratios to those in H, and the terms of three sums.

    Vector code checks whether arrays overlap, and gives way to scalar code: neither may fuse a
    product and a sum, or the result would depend on where arrays lie.
    """
    for i in range(m):
        w, pull = labels[0, first + i], labels[1, first + i]
        curvature, before = w * room[SLOPE + i], old[first + i]
        fresh[first + i] = curvature
        potential, ratio = w * room[POTENTIAL + i], curvature / before
        room[i] = w * room[MEAN + i] - pull
        room[SLOPE + i] = ratio
        terms[0, i] = potential - pull * scores[i]
        terms[1, i] = abs(potential) + abs(pull * scores[i])
        terms[2, i] = before * (ratio - 1.0) * (ratio - 1.0)


@njit(**PART)
def scan(s, unit, trial, X, labels, old, fresh, n, gradient, measured):
    """Set the gradient of F at the trial point, and note curvatures there.

    Returns value, sizes of its terms, skew, least and largest ratio of curvatures to those in H,
    and the squared Gamma. The lengths of the rows may be ``measured``, too.
    """
    d = unit.shape[0]
    theta, room, scores = np.empty(d), np.empty(SCRATCH), np.empty(CHUNK)
    terms = np.empty((3, CHUNK))
    for j in range(d):
        theta[j], gradient[j] = unit[j] * trial[j], 0.0
    value = 0.5 * s.ridge * dot(trial, trial)
    size, skew, low, high, stale = value, 0.0, 1.0, 1.0, 0.0
    for first in range(0, n, CHUNK):
        m = min(CHUNK, n - first)
        set_scores(X, first, m, theta, scores)
        for i in range(m):
            room[i] = scores[i]
        set_parts(np.int64(s.code), s.bound, room, np.uint64(m))
        weigh(room, scores, labels, old, fresh, terms, first, m)
        for i in range(m):
            value += terms[0, i]
            size += terms[1, i]
            stale += terms[2, i]
        for i in range(m):  # apart, since what keeps NaN does not become vector code
            skew = max(skew, room[BEND + i])
            low = min(low, room[SLOPE + i])
            high = max(high, room[SLOPE + i])
        add_residuals(X, first, m, room, gradient)
        if measured:
            measure(s, unit, X, first, m, room, labels, fresh)
    for j in range(d):
        gradient[j] = s.ridge * trial[j] + unit[j] * gradient[j]
    s.passes += 1.0
    return value, size, skew, low, high, stale


@njit(**PART)
def accept(s, a, trial, gradient, found):
    """Make a point the anchor, given what a pass has found there."""
    set_line(trial, vector(s, a, ANCHOR))
    set_line(gradient, vector(s, a, GRADIENT))
    s.length = math.sqrt(dot(trial, trial))
    s.value, _, s.skew, s.stale_low, s.stale_high, stale = found
    s.stale_sum = math.sqrt(stale)


@njit(**PART)
def restep(s, a):
    """Set u = -P g, and certify."""
    travel2, length2 = multiply(s, a, place(s, GRADIENT)), 0.0
    product, u = vector(s, a, SLOTS + s.slot), vector(s, a, STEP)
    for j in range(u.shape[0]):
        u[j] = -product[j]
        length2 += u[j] * u[j]
    s.step_norm = math.sqrt(max(travel2, 0.0))
    s.rounding = EPS / math.sqrt(max(s.ridge, s.smallest / (s.spread * s.spread)))
    certify(s, length2, chord)


@njit(**PART)
def inverse(s, a):
    """Return P, without the pending change."""
    kept, k = stored(s, a), vector(s, a, SLOTS + s.slot)
    d = k.shape[0]
    P = np.empty((d, d))
    for i in range(d):
        for j in range(i + 1):
            P[i, j] = kept[i, j] - s.pending * k[i] * k[j]
            P[j, i] = P[i, j]
    return P


@njit(**PART)
def together(d):
    """Return how many rows are multiplied at once."""
    return CHUNK if d <= FEW else MANY


@njit(**PART)
def largest_leverage(unit, P, X, n, enough):
    """Return the largest x'Px of a row, rounded up; one that is ``enough`` ends the search."""
    d, most = unit.shape[0], 0.0
    for first in range(0, n, together(d)):
        m = min(together(d), n - first)
        x = np.empty((m, d))
        for i in range(m):
            for j in range(d):
                x[i, j] = X[first + i, j] * unit[j]
        products = cross(x, P)
        for i in range(m):
            form = 0.0
            for j in range(d):
                form += products[i, j] * x[i, j]
            most = max(most, form * (1.0 + 1e-9))
        if most >= enough:
            break
    return most


@njit(**PART)
def survey(s, a, X, n):
    """Bound the eigenvalues of H from below and the leverages from above, as they are now.

    Both only gain as rows are added. The eigenvalues are bounded again once the count has doubled.
    The largest leverage takes a product with every row: it is looked for when the count
    has grown ninefold, and no further than to a row that shows that it does not help.
    """
    if s.count < min(s.bounding, s.survey):
        return
    P = inverse(s, a)
    s.smallest = max(s.smallest, 1.0 / largest_eigenvalue_bound(P))
    s.bounding = 2.0 * s.count
    if s.count >= s.survey:
        enough = 0.0
        if s.step_norm > 0.0:
            ratio, u = 0.7 * s.longest / s.step_norm, vector(s, a, STEP)
            enough = ratio * ratio * dot(u, u)
        q = largest_leverage(vector(s, a, UNIT), P, X, n, enough)
        if 0.0 < q < enough:  # else rounding has spoilt the inverse, which is about to be renewed
            s.leverage = min(s.leverage, q)
        s.survey = 9.0 * s.count


@njit(**PART)
def move(s, a, X, labels, old, fresh, n):
    """Move the anchor to m + t u for the first of t = 1, 1/2, ... that lowers F enough.

    Armijo's rule says what is enough. Returns whether the factor still serves.
    """
    survey(s, a, X, n)
    m, u, unit = vector(s, a, ANCHOR), vector(s, a, STEP), vector(s, a, UNIT)
    d, t = m.shape[0], 1.0
    trial, gradient = np.empty(d), np.empty(d)
    while True:
        for j in range(d):
            trial[j] = m[j] + t * u[j]
        found = scan(s, unit, trial, X, labels, old, fresh, n, gradient, False)
        noise = EPS * (d + math.sqrt(s.count)) * found[1]
        wanted = s.value - 1e-4 * t * s.step_norm * s.step_norm
        if t == 0.0 or found[0] <= wanted + 4.0 * noise:
            break
        t = 0.5 * t if t > 1e-9 else 0.0
    accept(s, a, trial, gradient, found)
    B, rho, gap, nu = s.residual, s.score_shift, s.gap, s.step_norm
    restep(s, a)  # its travel is the measured gradient in the norm of the old inverse
    calibrate(s, B)
    return still_serves(s, B, rho, gap, nu)


@njit(**PART)
def renew(s, a, X, old, fresh, n):
    """Form H from the curvatures that a pass has noted, invert it, and step; return the inverse."""
    unit, d = vector(s, a, UNIT), X.shape[1]
    H, chunk = np.zeros((d, d)), together(d)
    for j in range(d):
        H[j, j] = s.ridge
    for first in range(0, n, chunk):
        m = min(chunk, n - first)
        roots = np.empty((d, m))
        for i in range(m):
            old[first + i] = fresh[first + i]
            c = math.sqrt(fresh[first + i])
            for j in range(d):
                roots[j, i] = c * X[first + i, j] * unit[j]
        add(H, cross(roots, roots), 1.0)
    P, kept, squares = invert(H), stored(s, a), 0.0
    for i in range(d):
        squares += dot(P[i], P[i])
        for j in range(d):
            kept[i, j] = P[i, j]
    # the new H is at least that share of the old one; curvatures may be lost altogether
    s.leverage /= max(s.stale_low, 1e-100)
    if d > NARROW:
        s.smallest = max(s.stale_low * s.smallest, 1.0 / math.sqrt(squares), s.ridge)
    else:
        s.smallest = max(1.0 / largest_eigenvalue_bound(P), s.ridge)
        s.bounding = 2.0 * s.count
    s.stale_low = s.stale_high = 1.0
    s.stale_sum = s.loss = s.pending = 0.0
    s.factors += 1.0
    restep(s, a)
    return P


@njit(**PART)
def refresh(s, a, X, labels, old, n, exact):
    """Move the anchor until no pass is due (``exact``: until the gap is all rounding)."""
    fresh, factor = np.empty(n), exact or s.due == FACTOR
    for attempt in range(200):
        value = s.value
        kept = move(s, a, X, labels, old, fresh, n)
        if not kept or factor or attempt > 0:
            renew(s, a, X, old, fresh, n)
        if finished(s, attempt, value, exact):
            return


@njit(**PART)
def begin_again(s, a, X, labels, old, n, measured):
    """Pass over the rows where the anchor is, after all else has changed or may be torn."""
    if measured:
        s.longest = s.total = s.curved = 0.0
    unit, trial = vector(s, a, UNIT), vector(s, a, ANCHOR)
    fresh, gradient = np.empty(n), np.empty(trial.shape[0])
    found = scan(s, unit, trial, X, labels, old, fresh, n, gradient, measured)
    accept(s, a, trial, gradient, found)
    s.leverage, s.stale_low, s.smallest = 0.0, 1.0, s.ridge
    P = renew(s, a, X, old, fresh, n)
    s.leverage = largest_leverage(unit, P, X, n, math.inf)
    restep(s, a)
    if s.due != FINE:
        refresh(s, a, X, labels, old, n, False)


@entry(void(Rows, Rows, Rows, Rows, int64))
def rebuild(memory, X, labels, curvature, n):
    """Compute what learners know of n rows again, but for the sizes of rows and labels."""
    for e in range(memory.shape[0]):
        a = memory[e]
        begin_again(numbers_of(a), a, X, labels, curvature[e], n, False)


@entry(void(Rows, Rows, Rows, Rows, int64, boolean))
def solve(memory, X, labels, curvature, n, exact):
    """Move anchors until no pass is due (``exact``: until gaps are all rounding)."""
    for e in range(memory.shape[0]):
        a = memory[e]
        refresh(numbers_of(a), a, X, labels, curvature[e], n, exact)


@njit(**PART)
def stretch_inverse(s, a, e, t):
    r"""Change the inverse where rows are multiplied by :math:`T = I + (t - 1)ee^\top`.

    The Hessian becomes :math:`THT + (1 - t^2)ee^\top`, whose inverse is that of THT less one of
    rank one. Returns e'Pe.
    """
    set_line(e, vector(s, a, ROW))
    q, back = multiply(s, a, place(s, ROW)), 1.0 / t - 1.0
    r = (1.0 - t * t) / (t * t + (1.0 - t * t) * q)
    one = back * (1.0 - r * q)
    k, kept = vector(s, a, SLOTS + s.slot), stored(s, a)
    for i in range(e.shape[0]):
        along, across = back * q * one * e[i] + one * k[i], one * e[i] - r * k[i]
        for j in range(e.shape[0]):
            kept[i, j] += along * e[j] + across * k[j]
    return q


@njit(**PART)
def multiply_along(v, e, t):
    """Multiply the part of a vector along a vector of length 1."""
    along = (t - 1.0) * dot(e, v)
    for j in range(v.shape[0]):
        v[j] += along * e[j]


@entry(void(Rows, Rows, Rows, Rows, int64, float64[::1], float64))
def stretch(memory, X, labels, curvature, n, e, t):
    """Go on after rows, or units, were multiplied by t <= 1 along a vector of length 1.

    Scores at the anchors stay; bounds of rows hold as before, since t is at most 1.
    """
    d = X.shape[1]
    for which in range(memory.shape[0]):
        a = memory[which]
        s = numbers_of(a)
        m, u, g = vector(s, a, ANCHOR), vector(s, a, STEP), vector(s, a, GRADIENT)
        if t < LEAST_STRETCH:
            for j in range(d):
                m[j] += u[j]
            multiply_along(m, e, 1.0 / t)
            begin_again(s, a, X, labels, curvature[which], n, True)
            continue
        stretch_inverse(s, a, e, t)
        for j in range(d):
            g[j] -= m[j]
        multiply_along(m, e, 1.0 / t)
        multiply_along(g, e, t)
        for j in range(d):
            g[j] += m[j]
        before, s.length = s.length, math.sqrt(dot(m, m))
        s.value += 0.5 * (s.length * s.length - before * before)
        s.loss = max(s.loss, (s.curved + d) / (t * t * s.smallest))
        s.smallest = 1.0 + t * t * (s.smallest - 1.0)
        restep(s, a)
        if s.due != FINE:
            refresh(s, a, X, labels, curvature[which], n, False)
