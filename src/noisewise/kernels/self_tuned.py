"""Self-tuned ridge regression, compiled: a round of every forgetting factor, and their combination.

Each factor has a row of ``experts`` and its own G = sum w z z', b = sum w y z, P = (G + R)^-1 and
B = P b, discounted; z is the row less the first one, with 1 for the intercept. Only halves of G and
P are read, in rows of whole eights: a recursion that forgets blows up unless P is symmetric.

Where the variance of a feature moves by a factor of 2, all is renewed, at d^3. Beyond `at.WIDE`
features that would happen with nearly every row: there a moved feature alone is changed, by rank
one, and what takes a factor is left to Python, see regression/wide_ridge.py.
"""

import math

import numpy as np
from numba import float64, int64, njit

from . import self_tuned_layout as at
from .compile_options import INNER, PART, entry
from .dense import dot, inverse_factor, set_inverse, solve
from .gram import squares
from .self_tuned_changes import fold, has_moved, heavy, padded, penalty, rescale, rescaled

GROWTH, CAP, CLIP = 0.25, 25.0, 0.25
FEWEST, CAPPED = 2.5, 10.0
LARGEST = 1e100  # square of a number, and that times its weight
UNMOVED, UNDERFLOW = 1e-14, 1e-100  # a variance below these counts as 0
TINY = 1e-15
STEEP = 1e30  # scale at which a factor is computed afresh, whatever the period
HEAVY = 1e10  # w z'Pz of a row that takes as many digits of P, which is computed afresh
BUDGET = 1e8  # operations before a call returns, so that an interrupt is heard
# the grid, filled up to whole fours by a ridge that has no mass
PADDED_GRID, PADDED_PRIOR = np.append(at.GRID, 1.0), np.append(at.LOG_PRIOR, -math.inf)
ONE, TWO, THREE, FOUR = [np.uint64(n) for n in range(1, 5)]


@njit(**PART)
def add_evidence(expert, G, b, v, ridges, evidence, L):
    """Add the log evidence of four values of c.

    The Cholesky factors of G + R, bordered by b, are computed side by side; their diagonals are
    inverted. ``L`` is scratch.
    """
    p, d, ld = b.shape[0], v.shape[0], padded(b.shape[0])
    for i in range(p + 1):
        for j in range(min(i + 1, p)):
            first = G[i * ld + j] / expert[at.SCALE] if i < p else b[j]
            m, o = np.uint64(4 * i * p), np.uint64(4 * j * p)
            s0 = s1 = s2 = s3 = first
            for _ in range(j):
                s0 -= L[m] * L[o]
                s1 -= L[m + ONE] * L[o + ONE]
                s2 -= L[m + TWO] * L[o + TWO]
                s3 -= L[m + THREE] * L[o + THREE]
                m, o = m + FOUR, o + FOUR
            L[m], L[m + ONE], L[m + TWO], L[m + THREE] = s0, s1, s2, s3
            for lane in range(FOUR):
                if i == j:
                    more = penalty(v, i, d * ridges[lane])
                    pivot = max(L[m + lane] + more, TINY * (first + more))
                    evidence[lane] -= 0.5 * math.log(pivot / more if i < d else pivot)
                    L[m + lane] = 1.0 / math.sqrt(pivot)
                else:
                    L[m + lane] *= L[o + lane]
    q, n, last = expert[at.LABELS], expert[at.SIZE], 4 * p * p
    for lane in range(4):
        rest = q
        for j in range(p):
            rest -= L[last + 4 * j + lane] ** 2
        rest = max(rest, 1e-12 * q, 1e-300)
        evidence[lane] -= 0.5 * (n - (p - d)) * math.log(rest)


@njit(**PART)
def choose_ridge(expert, G, b, v):
    """Return the geometric mean of c under its posterior on the grid."""
    if expert[at.SIZE] < FEWEST:
        return at.PRIOR_RIDGE
    p = b.shape[0]
    L = np.empty(4 * (p + 1) * p)
    evidence = PADDED_PRIOR.copy()
    for k in range(0, evidence.shape[0], 4):
        add_evidence(expert, G, b, v, PADDED_GRID[k : k + 4], evidence[k : k + 4], L)
    most = evidence.max()
    total, mean = 0.0, 0.0
    for k in range(evidence.shape[0]):
        mass = math.exp(evidence[k] - most)
        total += mass
        mean += mass * math.log(PADDED_GRID[k])
    return math.exp(mean / total)


@njit(**PART)
def invert(scale, G, b, v, ridge, P, B):
    """Set P to the inverse of G + R and B to P b."""
    p, ld = b.shape[0], padded(b.shape[0])
    A, M = np.empty((p, p)), np.empty((p, p))
    for i in range(p):
        for j in range(i):
            A[i, j] = G[i * ld + j] / scale
        A[i, i] = G[i * ld + i] / scale + penalty(v, i, ridge)
    inverse_factor(A, M)
    solve(M, b, B)
    set_inverse(M, A)
    for i in range(P.shape[0]):
        P[i] = 0.0
    first = at.VECTORS * ld
    for i in range(p):
        for j in range(p):
            P[first + i * ld + j] = A[i, j]


@njit(**INNER)
def ridge_of(fixed, expert, G, b, v):
    """Return c: the given ridge, or that of the evidence."""
    return fixed / v.shape[0] if fixed > 0.0 else choose_ridge(expert, G, b, v)


@njit(**PART)
def refactor(expert, t, G, b, v, P, B):
    """Compute the inverse of a forgetting factor from its matrix in round t."""
    for i in range(G.shape[0]):
        G[i] /= expert[at.SCALE]
    invert(1.0, G, b, v, expert[at.RIDGE] * v.shape[0], P, B)
    expert[at.SCALE], expert[at.PENDING] = 1.0, 0.0
    expert[at.FACTORED] = t


@njit(**PART)
def renew(expert, fixed, t, G, b, v, P, B):
    """Choose the ridge of a forgetting factor in round t, and when it is next chosen."""
    expert[at.RIDGE] = ridge_of(fixed, expert, G, b, v)
    wait = GROWTH * t
    if expert[at.GAMMA] < 1.0:
        wait = min(wait, 1.0 / (1.0 - expert[at.GAMMA]))
    expert[at.NEXT] = t + max(1.0, wait)
    refactor(expert, t, G, b, v, P, B)


@njit(**INNER)
def look(x, i, numbers, moments, z, v):
    """Set z, and v to the variances with this row; return how many moved by a factor of 2."""
    d, n = v.shape[0], numbers[at.COUNT] + 1.0
    centred, used = z.shape[0] > d, moments[at.USED]
    moved = 0
    for j in range(d):
        z[j] = x[i, j] - moments[at.FIRST, j] if not centred or n > 1.0 else 0.0
        square = (moments[at.SUM_OF_SQUARES, j] + z[j] * z[j]) / n
        mean = (moments[at.SUM, j] + z[j]) / n
        v[j] = square - mean * mean if centred else square
        if not v[j] > max(UNMOVED * square, UNDERFLOW):
            v[j] = 0.0
        moved += has_moved(used, v, j)
    if centred:
        z[d] = 1.0
    return moved


@njit(**INNER)
def combine(numbers, experts, theta, z, means):
    """Set the mean of every forgetting factor; return their combination."""
    total = 0.0
    for e in range(experts.shape[0]):
        mean = dot(z, theta[e])
        means[e] = mean + numbers[at.ORIGIN] if numbers[at.COUNT] > 0.0 else 0.0
        total += experts[e, at.SHARE] * means[e]
    return total


@njit(**INNER)
def clipped(numbers, clip, mean):
    """Return a mean within the range of the labels and a quarter of it, from the third row on."""
    if numbers[at.COUNT] < 2.0 or not clip:
        return mean
    more = CLIP * (numbers[at.HIGH] - numbers[at.LOW])
    return min(max(mean, numbers[at.LOW] - more), numbers[at.HIGH] + more)


@njit(**PART)
def peek(numbers, experts, gram, moment, theta, fixed, clip, z, v, moved, means):
    """Return what would be predicted for a row; the state is only read."""
    if moved == 0:
        return clipped(numbers, clip, combine(numbers, experts, theta, z, means))
    (k, p), ld = theta.shape, padded(theta.shape[1])
    P, B = np.empty((at.VECTORS + ld) * ld), np.empty((k, p))
    for e in range(k):
        c = ridge_of(fixed, experts[e], gram[e], moment[e], v)
        invert(experts[e, at.SCALE], gram[e], moment[e], v, c * v.shape[0], P, B[e])
    return clipped(numbers, clip, combine(numbers, experts, B, z, means))


@njit(**INNER)
def add_row(expert, z, y, w, G, b, P, B):
    """Add a row to the matrices of a forgetting factor; return w |z'Pz| before it."""
    p, gamma = z.shape[0], expert[at.GAMMA]
    ld = np.uint64(padded(p))
    row = np.uint64(at.ROW) * ld
    q = fold(expert, gamma, z, y, w, P, B)
    scale = expert[at.SCALE] / gamma
    expert[at.SCALE] = scale
    root = math.sqrt(w * scale)
    for i in range(p):
        b[i] = gamma * b[i] + w * y * z[i]
        P[row + np.uint64(i)] = root * z[i]
    squares(P, G, np.uint64(p), ld, row, ONE)
    expert[at.LABELS] = gamma * expert[at.LABELS] + w * y * y
    expert[at.SIZE] = gamma * expert[at.SIZE] + 1.0
    return w * scale * abs(q)


@njit(**INNER)
def weigh(numbers, experts, y, w, mean, means):
    """Add the losses of a row, capped, and set the shares of the forgetting factors."""
    m, spread = numbers[at.ROUNDS], numbers[at.HIGH] - numbers[at.LOW]
    cap = math.inf
    if m >= CAPPED:
        cap = max(CAP * numbers[at.SQUARES], spread * spread) / m
    numbers[at.SQUARES] += min(w * (y - mean) * (y - mean), cap)
    numbers[at.ROUNDS] = m + 1.0
    least = math.inf
    for e in range(experts.shape[0]):
        away = y - means[e]
        experts[e, at.LOSS] += min(w * away * away, cap)
        least = min(least, experts[e, at.LOSS])
    if not numbers[at.SQUARES] > 1e-280:  # else its inverse could overflow
        return
    rate = 0.5 * numbers[at.ROUNDS] / numbers[at.SQUARES]
    total = 0.0
    for e in range(experts.shape[0]):
        excess = experts[e, at.LOSS] - least
        experts[e, at.SHARE] = experts[e, at.PRIOR] * math.exp(-rate * excess)
        total += experts[e, at.SHARE]
    for e in range(experts.shape[0]):
        experts[e, at.SHARE] /= total


@njit(**INNER)
def begin(numbers, moments, x, i, y, centred):
    """Take the first row as the origin."""
    if centred:
        numbers[at.ORIGIN] = y
        for j in range(x.shape[1]):
            moments[at.FIRST, j] = x[i, j]
    numbers[at.LOW] = numbers[at.HIGH] = y


TABLE, LINE = float64[:, ::1], float64[::1]


@entry(
    int64(
        LINE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, float64, int64, int64, TABLE, LINE, LINE,
        LINE,
    )
)  # fmt: skip
def learn(
    numbers, moments, experts, gram, moment, inverse, theta, fixed, clip, start, x, y, w, out
):  # fmt: skip
    """Learn rows from ``start`` on; ``out`` takes the mean predicted for each before its label.

    ``fixed`` is the ridge in units of the variances, 0 where it is chosen; ``clip`` says whether
    predictions stay near the labels seen. Returns the row that is next: after some work; or of a
    wide table where a factor is due (one that does not wait for its row has `at.FACTORED` -1), or
    at a row of weight 0. If row i is too large to compute with, nothing is learnt, and it is -1-i.
    """
    (k, p), d = moment.shape, x.shape[1]
    for i in range(y.shape[0] if start == 0 else 0):
        most = abs(y[i])
        for j in range(d):
            most = max(most, abs(x[i, j]))
        if not max(w[i], 1.0) * most * most <= LARGEST:
            return -1 - i
    z, v, means, unit = np.empty(p), np.empty(d), np.empty(k), np.zeros(p)
    wide, work, used = d > at.WIDE, 0.0, moments[at.USED]
    renewal = 16.0 / 3.0 * k * d * d * d
    for i in range(start, y.shape[0]):
        if work > BUDGET:
            return i
        moved = look(x, i, numbers, moments, z, v)
        work += k * d * d
        if not w[i] > 0.0:
            if wide:
                return i
            out[i] = peek(numbers, experts, gram, moment, theta, fixed, clip, z, v, moved, means)
            work += renewal if moved > 0 else 0.0
            continue
        t = numbers[at.COUNT]
        if moved > 0:
            many = False
            if wide:
                count = heavy(used, v, p, gram[0])
                work += k * count * d * d
                many = count > 1 + d // at.CHANGES
            for e in range(k):
                if many:
                    experts[e, at.FACTORED] = -1.0
                elif wide:
                    rescale(experts[e], used, v, unit, gram[e], inverse[e], theta[e])
            for j in range(d):
                if not wide or has_moved(used, v, j):
                    used[j] = v[j]
            if many:
                return i
            if not wide:
                work += renewal
                for e in range(k):
                    renew(experts[e], fixed, t, gram[e], moment[e], v, inverse[e], theta[e])
        mean = combine(numbers, experts, theta, z, means)
        out[i] = clipped(numbers, clip, mean)
        if t == 0.0:
            begin(numbers, moments, x, i, y[i], p > d)
        numbers[at.LOW], numbers[at.HIGH] = min(numbers[at.LOW], y[i]), max(numbers[at.HIGH], y[i])
        if t > 0.0:
            weigh(numbers, experts, y[i], w[i], mean, means)
        for j in range(d):
            moments[at.SUM, j] += z[j]
            moments[at.SUM_OF_SQUARES, j] += z[j] * z[j]
            v[j] = used[j]
        t += 1.0
        numbers[at.COUNT] = t
        due = False
        for e in range(k):
            expert, G, b, P, B = experts[e], gram[e], moment[e], inverse[e], theta[e]
            leverage = add_row(expert, z, y[i] - numbers[at.ORIGIN], w[i], G, b, P, B)
            # forgetting shrinks the ridge, which a new factor restores
            period = max(1.0, 0.1 * d, 0.2 / max(1.0 - expert[at.GAMMA], 1e-99))
            stale = t - expert[at.FACTORED] >= period or expert[at.SCALE] > STEEP
            stale = stale or leverage > HEAVY
            if wide:
                due = due or stale or t >= expert[at.NEXT]
                if stale:
                    expert[at.FACTORED] = -1.0
            elif t >= expert[at.NEXT]:
                work += renewal
                renew(expert, fixed, t, G, b, v, P, B)
            elif stale:
                refactor(expert, t, G, b, v, P, B)
        if due:
            return i + 1
    return y.shape[0]


@entry(int64(LINE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, float64, int64, int64, TABLE, LINE))
def predict(numbers, moments, experts, gram, moment, inverse, theta, fixed, clip, start, x, out):
    """Set the mean of each row from ``start`` on, as `learn` would predict it next.

    The state is only read. Returns the row that is next: after some work, or of a wide table where
    a factor is needed, and then -1-i.
    """
    (k, p), d = moment.shape, x.shape[1]
    z, v, means, B = np.empty(p), np.empty(d), np.empty(k), np.empty((k, p))
    used, work = moments[at.USED], 0.0
    for i in range(start, x.shape[0]):
        if work > BUDGET:
            return i
        moved = look(x, i, numbers, moments, z, v)
        work += k * d
        if d > at.WIDE and moved > 0:
            count = heavy(used, v, p, gram[0])
            if count > 1 + d // at.CHANGES:
                return -1 - i
            work += k * d * count * (8.0 + count)
            for e in range(k):
                rescaled(experts[e], used, v, gram[e], inverse[e], theta[e], count, B[e])
            out[i] = clipped(numbers, clip, combine(numbers, experts, B, z, means))
        else:
            work += 16.0 / 3.0 * k * d * d * d if moved > 0 else 0.0
            out[i] = peek(numbers, experts, gram, moment, theta, fixed, clip, z, v, moved, means)
    return x.shape[0]
