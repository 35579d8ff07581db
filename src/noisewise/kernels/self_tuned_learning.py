"""The learners behind `SelfTunedUCB`, compiled: one of all rewards, and one that forgets.

``s`` holds the numbers of a state, ``v`` its vectors and ``m`` its matrices, as
`self_tuned_ucb_layout` says; ``rows`` the history since the last change, each row an arm as
`self_tuned_contexts` says, reward, weight as given (for shares the trials), and what it counts of
that; ``decisions`` the arms whose rewards are pending, each with its weight.
"""

import math

import numpy as np
from numba import njit

from . import self_tuned_ucb_layout as at
from .change_evidence import number_evidence, share_evidence
from .compile_options import INNER, PART
from .dense import add_outer, clear, invert, set_line, set_matrix, times
from .self_tuned_contexts import features_of, renew_units, set_features
from .self_tuned_noise import count_noise, renew_noise
from .self_tuned_prior import choose_penalty

GROWTH = 1.1  # of rewards since the last change, before units and ridges are chosen again
PRIOR_ROWS = 3.0  # that the prior dispersion counts
OUTLIER = 9.0  # squared standardised residual
TRUSTING = 10.0  # residuals before any is an outlier
HEAVIEST = 16.0  # weight of a continuous reward, over the geometric mean of all
LOG_SQUARE_SD = math.pi / math.sqrt(2.0)  # of the logarithm of a squared standard normal
CERTAIN = 2.0  # standard errors before given sds are distrusted
FLATTEST = 2e-9  # slope of the logistic mean at a score of 20
STEEP = 1e10  # weight times z'Pz, from which on an update of P by rank one loses its digits
PASSES, ENOUGH = 30, 1e-4  # Newton's method: at most; and the squared step in standard errors


@njit(**INNER)
def sigmoid(z):
    """Return the logistic mean."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@njit(**INNER)
def slope(p):
    """Return the slope of the logistic mean where that is ``p``."""
    return max(p * (1.0 - p), FLATTEST)


@njit(**INNER)
def product(a, b):
    """Return a.b."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit(**INNER)
def log_likelihood(score, y, n):
    """Return the log likelihood of a share ``y`` of ``n`` trials."""
    return n * (y * score - max(score, 0.0) - math.log1p(math.exp(-abs(score))))


@njit(**PART)
def implicit_step(score, h, y, n):
    """Return the root of u = n (y - mean(score + h u)), by Newton's method within brackets."""
    p = sigmoid(score)
    u = n * (y - p)
    low, high = min(u, 0.0), max(u, 0.0)
    u /= 1.0 + n * h * slope(p)
    for _ in range(60):
        p = sigmoid(score + h * u)
        excess = u - n * (y - p)
        if excess > 0.0:
            high = u
        else:
            low = u
        after = u - excess / (1.0 + n * h * slope(p))
        if not low <= after <= high:
            after = 0.5 * (low + high)
        if abs(after - u) <= 1e-12 * abs(after):
            return after
        u = after
    return u


@njit(**PART)
def begin_sums(s, m):
    """Begin the sums over the history with those of condensed rows."""
    set_matrix(m[at.OLD_GRAM], m[at.GRAM])
    s[at.WEIGHT] = s[at.OLD_WEIGHT]


@njit(**PART)
def add_row(G, z, c):
    """Add c z z' to the lower half of G; most features may be 0."""
    for i in range(z.shape[0]):
        if z[i] != 0.0:
            cz = c * z[i]
            for j in range(i + 1):
                G[i, j] += cz * z[j]


@njit(**INNER)
def mirror(G):
    """Make the upper half of G that of the lower."""
    for i in range(G.shape[0]):
        for j in range(i):
            G[j, i] = G[i, j]


@njit(**PART)
def set_loss(s, v, m, rows, g):
    """Set the gradient and, in GRAM and WEIGHT, the curvature of the history; return its loss."""
    D, at_reward = v.shape[1], rows.shape[1] - 3
    theta, G, z, old = v[at.THETA], m[at.GRAM], np.empty(D), np.empty(D)
    loss = 0.5 * times(m[at.PENALTY], theta, g)
    begin_sums(s, m)
    if s[at.CONDENSED] > 0.0:
        loss += 0.5 * times(m[at.OLD_GRAM], theta, old) - product(v[at.OLD_MOMENT], theta)
        for i in range(D):
            g[i] += old[i] - v[at.OLD_MOMENT, i]
    for t in range(int(s[at.STORED])):
        set_features(s, v, rows[t], z)
        score, y, n = product(z, theta), rows[t, at_reward], rows[t, at_reward + 1]
        p = sigmoid(score)
        c, r = n * slope(p), n * (p - y)
        loss -= log_likelihood(score, y, n)
        s[at.WEIGHT] += c
        for i in range(D):
            g[i] += r * z[i]
        add_row(G, z, c)
    mirror(G)
    return loss


@njit(**PART)
def solve_history(s, v, m, rows):
    """Minimise the penalised loss of the history by Newton's method, steps halved where due."""
    D = v.shape[1]
    theta, g, step = v[at.THETA], np.empty(D), np.zeros(D)
    best, scale = math.inf, 1.0
    for _ in range(PASSES):
        loss = set_loss(s, v, m, rows, g)
        if loss > best + 1e-9 * abs(best) and scale > 1e-3:
            scale *= 0.5
            for i in range(D):
                theta[i] += scale * step[i]
            continue
        best, scale = loss, 1.0
        invert(m[at.GRAM], m[at.PENALTY], m[at.INVERSE])
        decrement = times(m[at.INVERSE], g, step)
        for i in range(D):
            theta[i] -= step[i]
        if decrement < ENOUGH:
            break


@njit(**INNER)
def dispersion(s):
    """Return phi; before residuals it is 1 where sds are given, else the variance of rewards."""
    v = s[at.WEIGHTED_SQUARES] / max(s[at.COUNT] - 1.0, 1.0)
    if s[at.GIVEN] > 0.0:
        v = 1.0
    return (PRIOR_ROWS * v + s[at.RESIDUALS]) / (PRIOR_ROWS + s[at.RESIDUAL_COUNT])


@njit(**INNER)
def trusted(w, typical, distrust):
    """Return what a given weight counts: :math:`g (w/g)^{1-b}`, g typical, w at most 16 g."""
    w = min(w, HEAVIEST * typical)
    return typical * (w / typical) ** (1.0 - distrust)


@njit(**PART)
def distrust(s):
    """Return b: how log r^2 w grows with log w, which it does not if the given sds are right."""
    n = s[at.LOG_COUNT]
    if n < 2.0:
        return 0.0
    square = s[at.LOG_SPREAD_SQUARES] - s[at.LOG_SPREAD] ** 2 / n
    if not square > 0.0:
        return 0.0
    grown = s[at.LOG_PRODUCTS] - s[at.LOG_SPREAD] * s[at.LOG_SQUARES] / n
    b = grown / square - CERTAIN * LOG_SQUARE_SD / math.sqrt(square)
    return min(max(b, 0.0), 1.0)


@njit(**PART)
def sum_again(s, v, m, rows):
    """Sum the history again: in units of now, weighed by what is known of the given sds."""
    D, at_reward = v.shape[1], rows.shape[1] - 3
    n, theta, z = int(s[at.STORED]), v[at.THETA], np.empty(D)
    typical, b = math.exp(s[at.LOG_WEIGHTS] / s[at.COUNT]), distrust(s)
    begin_sums(s, m)
    set_line(v[at.OLD_MOMENT], v[at.MOMENT])
    before, after = 0.0, 0.0
    for t in range(n):
        set_features(s, v, rows[t], z)
        y, given, part = rows[t, at_reward], rows[t, at_reward + 1], rows[t, at_reward + 2]
        r = y - product(z, theta)
        w = trusted(given, typical, b) * part
        before += trusted(given, s[at.TYPICAL], s[at.DISTRUST]) * part * r * r
        after += w * r * r
        s[at.WEIGHT] += w
        for i in range(D):
            v[at.MOMENT, i] += w * y * z[i]
        add_row(m[at.GRAM], z, w)
    mirror(m[at.GRAM])
    s[at.TYPICAL], s[at.DISTRUST] = typical, b
    if before > 0.0 and n > D:  # residuals, in units of the new weights
        s[at.RESIDUALS] *= after / before
        s[at.NOVEL_RESIDUALS] *= after / before
        s[at.DISPERSION] = dispersion(s)


@njit(**PART)
def sum_pending(s, v, m, decisions):
    """Sum the pending decisions, weighted, in units of now."""
    d = v.shape[1] - 1
    clear(m[at.WAITING])
    for t in range(int(s[at.PENDING])):
        add_outer(m[at.WAITING], features_of(s, v, decisions[t]), decisions[t, d])


@njit(**PART)
def renew_bonus(s, v, m):
    """Invert the matrix that counts pending decisions."""
    if s[at.PENDING] > 0.0:
        B = m[at.BONUS]
        for i in range(B.shape[0]):
            for j in range(B.shape[0]):
                B[i, j] = m[at.GRAM, i, j] + m[at.WAITING, i, j]
        invert(B, m[at.PENALTY], B)


@njit(**PART)
def renew(s, v, m, rows, decisions, family):
    """Choose units and ridges again, and solve for them.

    Coefficients say how large they are in the units that they were learnt in.
    """
    theta = v[at.THETA].copy()
    renew_units(s, v, m, rows)
    again = s[at.STORED] > 0.0 and (s[at.GIVEN] > 0.0 or s[at.CONTEXT] > 0.0)
    if family == at.GAUSSIAN and again:
        sum_again(s, v, m, rows)
    set_line(theta, v[at.THETA])
    choose_penalty(s, v, m, family)
    if family == at.BINOMIAL:
        solve_history(s, v, m, rows)
    else:
        invert(m[at.GRAM], m[at.PENALTY], m[at.INVERSE])
        times(m[at.INVERSE], v[at.MOMENT], v[at.THETA])
        if s[at.GIVEN] == 0.0:
            renew_noise(m)
    if s[at.CONTEXT] > 0.0:
        sum_pending(s, v, m, decisions)
        renew_recent(s, v, m)
    renew_bonus(s, v, m)
    n = s[at.STORED] + s[at.CONDENSED]
    s[at.NEXT] = s[at.COUNT] - n + max(n + 1.0, math.ceil(GROWTH * n))


@njit(**PART)
def condense(s, v, m, rows, family):
    """Replace the older half of the history by its sums, those of shares at the estimate."""
    D, at_reward, n = v.shape[1], rows.shape[1] - 3, int(s[at.STORED])
    kept, z = n // 2, np.empty(D)
    for t in range(n - kept):
        set_features(s, v, rows[t], z)
        y, given, part = rows[t, at_reward], rows[t, at_reward + 1], rows[t, at_reward + 2]
        if family == at.BINOMIAL:
            score = product(z, v[at.THETA])
            p = sigmoid(score)
            w = given * slope(p)
            b = w * score - given * (p - y)
        else:
            w = trusted(given, s[at.TYPICAL], s[at.DISTRUST]) * part
            b = w * y
        s[at.OLD_WEIGHT] += w
        for i in range(D):
            v[at.OLD_MOMENT, i] += b * z[i]
        add_row(m[at.OLD_GRAM], z, w)
    mirror(m[at.OLD_GRAM])
    s[at.CONDENSED] += n - kept
    drop_rows(s, rows, n - kept)


@njit(**PART)
def drop_rows(s, rows, first):
    """Drop the rows before ``first``."""
    n, kept = int(s[at.STORED]), int(s[at.STORED]) - first
    for t in range(n):
        for j in range(rows.shape[1]):
            rows[t, j] = rows[first + t, j] if t < kept else 0.0
    s[at.STORED] = kept


@njit(**PART)
def renew_recent(s, v, m):
    """Invert the matrix of the forgetting learner, whose ridge fades otherwise, and solve."""
    s[at.RECENT_ROWS] = 0.0
    invert(m[at.RECENT_GRAM], m[at.PENALTY], m[at.RECENT_INVERSE])
    times(m[at.RECENT_INVERSE], v[at.RECENT_MOMENT], v[at.RECENT_THETA])


@njit(**PART)
def count_reward(s, y, w):
    """Count a continuous reward, less the origin, in the running moments."""
    n = s[at.COUNT]
    s[at.LOG_WEIGHTS] += math.log(w)
    move = y - s[at.MEAN]
    s[at.MEAN] += move / n
    s[at.SQUARES] += move * (y - s[at.MEAN])
    move = y - s[at.LEVEL]
    s[at.LEVEL] += move * w / s[at.WEIGHTS]
    s[at.WEIGHTED_SQUARES] += w * move * (y - s[at.LEVEL])
    if w != 1.0:
        s[at.GIVEN] = 1.0


@njit(**PART)
def learn_gaussian(P, theta, G, b, z, k, y, w, gamma, most):
    """Learn a row, all before it discounted by ``gamma``.

    Returns the residual, z'Pz, the squared standardised residual up to ``most``, beyond which the
    row counts less, and what it counts.
    """
    q, r = times(P, z, k), y - product(z, theta)
    square, u = r * r / (1.0 / w + q), w
    if square > most:
        u, square = w * math.sqrt(most / square), most
    a = u / (gamma + u * q)
    for i in range(z.shape[0]):
        theta[i] += a * r * k[i]
        b[i] = gamma * b[i] + u * y * z[i]
        for j in range(i + 1):
            P[i, j] = (P[i, j] - a * k[i] * k[j]) / gamma
            P[j, i] = P[i, j]
            G[i, j] = gamma * G[i, j] + u * z[i] * z[j]
            G[j, i] = G[i, j]
    return r, q, square, u


@njit(**PART)
def count_residual(s, r, q, square, w, given):
    """Count a residual in the dispersions, and in what tells whether given sds are right."""
    s[at.RESIDUALS] += square
    s[at.RESIDUAL_COUNT] += 1.0
    if s[at.COUNT] > 1.0:
        leverage = w * q / (1.0 + w * q)
        s[at.NOVEL_RESIDUALS] += leverage * square
        s[at.NOVELTY] += leverage
    if w * q < 1.0 and r * r > 0.0:  # mostly noise
        x = math.log(given)
        y = math.log(r * r) + x
        s[at.LOG_COUNT] += 1.0
        s[at.LOG_SPREAD] += x
        s[at.LOG_SQUARES] += y
        s[at.LOG_SPREAD_SQUARES] += x * x
        s[at.LOG_PRODUCTS] += x * y


@njit(**INNER)
def renew_if_steep(s, leverage):
    """Make all matrices be inverted again after a row of such a leverage, w z'Pz."""
    if leverage > STEEP:
        s[at.NEXT], s[at.RECENT_ROWS] = s[at.COUNT], math.inf


@njit(**PART)
def store(s, rows, row, y, w, part):
    """Add a row to the history."""
    t, at_reward = int(s[at.STORED]), rows.shape[1] - 3
    for j in range(at_reward):
        rows[t, j] = row[j]
    rows[t, at_reward], rows[t, at_reward + 1], rows[t, at_reward + 2] = y, w, part
    s[at.STORED] += 1.0


@njit(**PART)
def gaussian_round(s, v, m, rows, row, z, y, given, gamma):
    """Learn a continuous reward, less the origin; return its weight and L of the restart test."""
    w = trusted(given, s[at.TYPICAL], s[at.DISTRUST])
    k, before = np.empty(z.shape[0]), s[at.DISPERSION]
    most = OUTLIER * dispersion(s) if s[at.RESIDUAL_COUNT] >= TRUSTING else math.inf
    recent, recent_q, _, _ = learn_gaussian(
        m[at.RECENT_INVERSE], v[at.RECENT_THETA], m[at.RECENT_GRAM], v[at.RECENT_MOMENT],
        z, k, y, w, gamma, most,
    )  # fmt: skip
    r, q, square, u = learn_gaussian(
        m[at.INVERSE], v[at.THETA], m[at.GRAM], v[at.MOMENT], z, k, y, w, 1.0, most
    )
    s[at.WEIGHT] += u
    renew_if_steep(s, w * max(q, recent_q))
    store(s, rows, row, y, given, u / w)
    count_residual(s, r, q, square, w, given)
    if s[at.GIVEN] == 0.0:
        count_noise(m, z, k, q, u, square)
    s[at.DISPERSION] = dispersion(s)
    if not before > 0.0:
        return u, 1.0
    sd = math.sqrt(before * (1.0 / w + max(q, recent_q)))  # that suits both learners
    return u, math.exp(number_evidence(s, r / sd, recent / sd))


@njit(**PART)
def learn_binomial(P, theta, G, z, k, y, n, gamma):
    """Learn a share by one implicit Newton step, all before it discounted by ``gamma``.

    Returns the score of before, what the row counts, what it adds to the moment vector, and its
    leverage.
    """
    h, start = times(P, z, k) / gamma, product(z, theta)
    u = implicit_step(start, h, y, n)
    score = start + h * u
    c = n * slope(sigmoid(score))
    a = c / (1.0 + c * h) / (gamma * gamma)
    for i in range(z.shape[0]):
        theta[i] += u / gamma * k[i]
        for j in range(i + 1):
            P[i, j] = P[i, j] / gamma - a * k[i] * k[j]
            P[j, i] = P[i, j]
            G[i, j] = gamma * G[i, j] + c * z[i] * z[j]
            G[j, i] = G[i, j]
    return start, c, c * score + u, c * h


@njit(**PART)
def binomial_round(s, v, m, rows, row, z, y, n, gamma):
    """Learn a share of ``n`` trials; return what it weighs and L of the restart test."""
    D = z.shape[0]
    k = np.empty(D)
    recent, _, b, recent_leverage = learn_binomial(
        m[at.RECENT_INVERSE], v[at.RECENT_THETA], m[at.RECENT_GRAM], z, k, y, n, gamma
    )
    for i in range(D):
        v[at.RECENT_MOMENT, i] = gamma * v[at.RECENT_MOMENT, i] + b * z[i]
    score, c, _, leverage = learn_binomial(m[at.INVERSE], v[at.THETA], m[at.GRAM], z, k, y, n, 1.0)
    s[at.WEIGHT] += c
    renew_if_steep(s, max(leverage, recent_leverage))
    store(s, rows, row, y, n, 1.0)
    p, other = sigmoid(score), sigmoid(recent)
    sd, other_sd = math.sqrt(slope(p)), math.sqrt(slope(other))
    return c, math.exp(share_evidence(s, p, other, sd, other_sd, y, n))
