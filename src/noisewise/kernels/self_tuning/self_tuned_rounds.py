"""Self-tuned ridge regression, compiled: a round of every forgetting factor, and their combination.

Each factor has a row of ``experts`` and its own G = sum w z z', b = sum w y z, P = (G + R)^-1 and
B = P b, discounted; z is the row less the first one, with 1 for the intercept. Only halves of G and
P are read, in rows of whole eights: a recursion that forgets blows up unless P is symmetric.

Where the variance of a feature moves by a factor of 2, all is renewed, at d^3. Beyond `WIDE`
features that would happen with nearly every row: there a moved feature alone is changed, by rank
one, and what takes a factor is left to Python, see regression/self_tuned/wide_ridge.py.
"""

import math

import numpy as np
from numba import float64, int64, njit

from ..compiling.compile_options import INNER, PART, entry
from ..matrices.dense import dot, inverse_factor, set_inverse, solve
from ..matrices.vectors import FOUR, ONE, THREE, TWO
from . import ridge_rule
from .ridge_rule import FEWEST, GRID, PRIOR_RIDGE
from .self_tuned_changes import fold, has_moved, heavy, padded, penalty, rescale, rescaled
from .self_tuned_numbers import CHANGES, EXPERT, NUMBERS, VECTORS, WIDE, Moments

CAP, CAPPED, CLIP = 25.0, 10.0, 0.25
LARGEST = 1e100  # square of a number, and that times its weight
TINY = 1e-15
STEEP = 1e30  # scale at which a factor is computed afresh, whatever the period
HEAVY = 1e10  # w z'Pz of a row that takes as many digits of P, which is computed afresh
BUDGET = 1e8  # operations before a call returns, so that an interrupt is heard
PADDED_GRID = np.append(GRID, 1.0)  # to whole fours
log_evidence = njit(**INNER)(ridge_rule.log_evidence)
next_choice = njit(**INNER)(ridge_rule.next_choice)
posterior_ridge = njit(**PART)(ridge_rule.posterior_ridge)
variance = njit(**INNER)(ridge_rule.variance)


@njit(**PART)
def set_evidence(expert, G, b, v, ridges, evidence, L):
    """Set the log evidence of four values of c.

    The Cholesky factors of G + R, bordered by b, are computed side by side; their diagonals are
    inverted. ``L`` is scratch.
    """
    p, d, ld = b.shape[0], v.shape[0], padded(b.shape[0])
    log_det = np.zeros(4)
    for i in range(p + 1):
        for j in range(min(i + 1, p)):
            first = G[i * ld + j] / expert.scale if i < p else b[j]
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
                    log_det[lane] += math.log(pivot / more if i < d else pivot)
                    L[m + lane] = 1.0 / math.sqrt(pivot)
                else:
                    L[m + lane] *= L[o + lane]
    q, n, last = expert.labels, expert.rows, 4 * p * p
    for lane in range(4):
        rest = q
        for j in range(p):
            rest -= L[last + 4 * j + lane] ** 2
        evidence[lane] = log_evidence(log_det[lane], rest, q, n - (p - d))


@njit(**PART)
def choose_ridge(expert, G, b, v):
    """Return the geometric mean of c under its posterior on the grid."""
    if expert.rows < FEWEST:
        return PRIOR_RIDGE
    p = b.shape[0]
    L, evidence = np.empty(4 * (p + 1) * p), np.empty(PADDED_GRID.shape[0])
    for k in range(0, evidence.shape[0], 4):
        set_evidence(expert, G, b, v, PADDED_GRID[k : k + 4], evidence[k : k + 4], L)
    return posterior_ridge(evidence[: GRID.shape[0]])


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
    first = VECTORS * ld
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
        G[i] /= expert.scale
    invert(1.0, G, b, v, expert.ridge * v.shape[0], P, B)
    expert.scale, expert.pending = 1.0, 0.0
    expert.factored = t


@njit(**PART)
def renew(expert, fixed, t, G, b, v, P, B):
    """Choose the ridge of a forgetting factor in round t, and when it is next chosen."""
    expert.ridge = ridge_of(fixed, expert, G, b, v)
    expert.choice = next_choice(t, expert.gamma, v.shape[0])
    refactor(expert, t, G, b, v, P, B)


@njit(**INNER)
def look(x, i, s, m, z, v):
    """Set z, and v to the variances with this row; return how many moved by a factor of 2."""
    d, n = v.shape[0], s.count + 1.0
    centred, used = z.shape[0] > d, m.used
    moved = 0
    for j in range(d):
        z[j] = x[i, j] - m.first[j] if not centred or n > 1.0 else 0.0
        square = (m.squares[j] + z[j] * z[j]) / n
        mean = (m.sums[j] + z[j]) / n if centred else 0.0
        v[j] = variance(square, mean)
        moved += has_moved(used, v, j)
    if centred:
        z[d] = 1.0
    return moved


@njit(**INNER)
def combine(s, factors, theta, z, means):
    """Set the mean of every forgetting factor; return their combination."""
    total = 0.0
    for e in range(factors.shape[0]):
        mean = dot(z, theta[e])
        means[e] = mean + s.origin if s.count > 0.0 else 0.0
        total += factors[e].share * means[e]
    return total


@njit(**INNER)
def clipped(s, clip, mean):
    """Return a mean within the range of the labels and a quarter of it, from the third row on."""
    if s.count < 2.0 or not clip:
        return mean
    more = CLIP * (s.high - s.low)
    return min(max(mean, s.low - more), s.high + more)


@njit(**PART)
def peek(s, factors, gram, moment, theta, fixed, clip, z, v, moved, means):
    """Return what would be predicted for a row; the state is only read."""
    if moved == 0:
        return clipped(s, clip, combine(s, factors, theta, z, means))
    (k, p), ld = theta.shape, padded(theta.shape[1])
    P, B = np.empty((VECTORS + ld) * ld), np.empty((k, p))
    for e in range(k):
        c = ridge_of(fixed, factors[e], gram[e], moment[e], v)
        invert(factors[e].scale, gram[e], moment[e], v, c * v.shape[0], P, B[e])
    return clipped(s, clip, combine(s, factors, B, z, means))


@njit(**INNER)
def add_row(expert, z, y, w, G, b, P, B):
    """Add a row to the matrices of a forgetting factor; return w |z'Pz| before it."""
    p, gamma = np.uint64(z.shape[0]), expert.gamma
    q, ld = fold(expert, gamma, z, y, w, P, B), np.uint64(padded(z.shape[0]))
    scale = expert.scale / gamma
    expert.scale = scale
    for i in range(p):
        b[i] = gamma * b[i] + w * y * z[i]
        value = w * scale * z[i]
        for j in range(i + ONE):
            G[i * ld + j] += value * z[j]
    expert.labels = gamma * expert.labels + w * y * y
    expert.rows = gamma * expert.rows + 1.0
    return w * scale * abs(q)


@njit(**INNER)
def weigh(s, factors, y, w, mean, means):
    """Add the losses of a row, capped, and set the shares of the forgetting factors."""
    m, spread = s.rounds, s.high - s.low
    cap = math.inf
    if m >= CAPPED:
        cap = max(CAP * s.squares, spread * spread) / m
    s.squares += min(w * (y - mean) * (y - mean), cap)
    s.rounds = m + 1.0
    least = math.inf
    for e in range(factors.shape[0]):
        away = y - means[e]
        factors[e].loss += min(w * away * away, cap)
        least = min(least, factors[e].loss)
    if not s.squares > 1e-280:  # else its inverse could overflow
        return
    rate = 0.5 * s.rounds / s.squares
    total = 0.0
    for e in range(factors.shape[0]):
        expert = factors[e]
        expert.share = expert.prior * math.exp(-rate * (expert.loss - least))
        total += expert.share
    for e in range(factors.shape[0]):
        factors[e].share /= total


@njit(**INNER)
def begin(s, m, x, i, y, centred):
    """Take the first row as the origin."""
    if centred:
        s.origin = y
        for j in range(x.shape[1]):
            m.first[j] = x[i, j]
    s.low = s.high = y


@njit(**INNER)
def by_name(moments, experts):
    """Return the moments of a state, and the numbers of its forgetting factors, by name."""
    m = Moments(moments[0], moments[1], moments[2], moments[3])
    return m, experts.view(EXPERT).reshape(experts.shape[0])


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
    wide table where a factor is due (one that does not wait for its row has ``factored`` -1), or
    at a row of weight 0. If row i is too large to compute with, nothing is learnt, and it is -1-i.
    """
    (k, p), d = moment.shape, x.shape[1]
    s, (m, factors) = numbers.view(NUMBERS)[0], by_name(moments, experts)
    for i in range(y.shape[0] if start == 0 else 0):
        most = abs(y[i])
        for j in range(d):
            most = max(most, abs(x[i, j]))
        if not max(w[i], 1.0) * most * most <= LARGEST:
            return -1 - i
    z, v, means, unit = np.empty(p), np.empty(d), np.empty(k), np.zeros(p)
    wide, work, used = d > WIDE, 0.0, m.used
    renewal = 16.0 / 3.0 * k * d * d * d
    for i in range(start, y.shape[0]):
        if work > BUDGET:
            return i
        moved = look(x, i, s, m, z, v)
        work += k * d * d
        if not w[i] > 0.0:
            if wide:
                return i
            out[i] = peek(s, factors, gram, moment, theta, fixed, clip, z, v, moved, means)
            work += renewal if moved > 0 else 0.0
            continue
        t = s.count
        if moved > 0:
            many = False
            if wide:
                count = heavy(used, v, p, gram[0])
                work += k * count * d * d
                many = count > 1 + d // CHANGES
            for e in range(k):
                if many:
                    factors[e].factored = -1.0
                elif wide:
                    rescale(factors[e], used, v, unit, gram[e], inverse[e], theta[e])
            for j in range(d):
                if not wide or has_moved(used, v, j):
                    used[j] = v[j]
            if many:
                return i
            if not wide:
                work += renewal
                for e in range(k):
                    renew(factors[e], fixed, t, gram[e], moment[e], v, inverse[e], theta[e])
        mean = combine(s, factors, theta, z, means)
        out[i] = clipped(s, clip, mean)
        if t == 0.0:
            begin(s, m, x, i, y[i], p > d)
        s.low, s.high = min(s.low, y[i]), max(s.high, y[i])
        if t > 0.0:
            weigh(s, factors, y[i], w[i], mean, means)
        for j in range(d):
            m.sums[j] += z[j]
            m.squares[j] += z[j] * z[j]
            v[j] = used[j]
        t += 1.0
        s.count = t
        due = False
        for e in range(k):
            expert, G, b, P, B = factors[e], gram[e], moment[e], inverse[e], theta[e]
            leverage = add_row(expert, z, y[i] - s.origin, w[i], G, b, P, B)
            # forgetting shrinks the ridge, which a new factor restores
            period = max(1.0, 0.1 * d, 0.2 / max(1.0 - expert.gamma, 1e-99))
            stale = t - expert.factored >= period or expert.scale > STEEP
            stale = stale or leverage > HEAVY
            if wide:
                due = due or stale or t >= expert.choice
                if stale:
                    expert.factored = -1.0
            elif t >= expert.choice:
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
    s, (m, factors) = numbers.view(NUMBERS)[0], by_name(moments, experts)
    z, v, means, B = np.empty(p), np.empty(d), np.empty(k), np.empty((k, p))
    used, work = m.used, 0.0
    for i in range(start, x.shape[0]):
        if work > BUDGET:
            return i
        moved = look(x, i, s, m, z, v)
        work += k * d
        if d > WIDE and moved > 0:
            count = heavy(used, v, p, gram[0])
            if count > 1 + d // CHANGES:
                return -1 - i
            work += k * d * count * (8.0 + count)
            for e in range(k):
                rescaled(factors[e], used, v, gram[e], inverse[e], theta[e], count, B[e])
            out[i] = clipped(s, clip, combine(s, factors, B, z, means))
        else:
            work += 16.0 / 3.0 * k * d * d * d if moved > 0 else 0.0
            out[i] = peek(s, factors, gram, moment, theta, fixed, clip, z, v, moved, means)
    return x.shape[0]
