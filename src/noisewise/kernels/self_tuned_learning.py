"""The learners behind `SelfTunedUCB`, compiled: one of all rewards, and one that forgets.

``s`` holds the numbers of a state, ``v`` its vectors and ``m`` its matrices, as
`self_tuned_ucb_layout` says; ``rows`` the history since the last change, each row features,
reward, weight as given (for shares the trials), and what it counts of that.
"""

import math

import numpy as np
from numba import njit

from . import self_tuned_ucb_layout as at
from .change_evidence import number_evidence, share_evidence
from .compile_options import INNER, PART
from .dense import invert, times
from .self_tuned_noise import count_noise, renew_noise

GROWTH = 1.1  # of the count, before the ridge is chosen again
FREE, INTERCEPT_RIDGE = 1e-6, 0.04  # of the intercept: relative, continuous; logistic
ALIKE = math.log(9.0)  # squares of features that differ by less are taken for equal
PRIOR_SHARE, MOST_SHARE = 0.5, 5.0  # what the prior of the ridge counts: of d, and at most
TINIEST = 1e-80  # square of a feature, or squared norm of an arm; smaller ones are 0
PRIOR_ROWS = 3.0  # that the prior dispersion counts
OUTLIER = 9.0  # squared standardised residual
TRUSTING = 10.0  # residuals before any is an outlier
HEAVIEST = 16.0  # weight of a continuous reward, over the geometric mean of all
LOG_SQUARE_SD = math.pi / math.sqrt(2.0)  # of the logarithm of a squared standard normal
CERTAIN = 2.0  # standard errors before given sds are distrusted
FLATTEST = 2e-9  # slope of the logistic mean at a score of 20
STEEP = 1e10  # weight times z'Pz, from which on an update of P by rank one loses its digits
MOST_RIDGE = 1e30  # over the sum of weighted squares: coefficients are 0 then
PASSES, ENOUGH = 12, 1e-4  # Newton's method: at most; and the squared step in standard errors


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
def median(values, count):
    """Return the median of the first ``count`` values, which are put in order."""
    for i in range(1, count):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return 0.5 * (values[(count - 1) // 2] + values[count // 2])


@njit(**PART)
def set_scales(s, v):
    """Set the scale of each feature; return the mean squared norm of arms in units of them.

    A scale is the largest square of a feature over the median of those of all features, drawn
    towards 1 by a factor of 9, and more while arms are few: chance makes such differences. Means in
    place of the largest would be those of the arms that are played most.
    """
    d, square, n = v.shape[1] - 1, 0.0, s[at.LENGTH_COUNT]
    alike = ALIKE * (1.0 + d / n)  # few arms have small features by chance
    logs = np.empty(d)
    seen = 0
    for j in range(d):
        if v[at.LARGEST_OF, j] > TINIEST:
            logs[seen] = math.log(v[at.LARGEST_OF, j])
            seen += 1
    middle = median(logs, seen) if seen > 0 else 0.0
    for j in range(d):
        v[at.SCALE, j] = 1.0
        if v[at.LARGEST_OF, j] > TINIEST:
            away = math.log(v[at.LARGEST_OF, j]) - middle
            v[at.SCALE, j] = math.exp(math.copysign(max(abs(away) - alike, 0.0), away))
            square += v[at.SQUARES_OF, j] / v[at.SCALE, j]
    return square / s[at.LENGTH_COUNT]


@njit(**PART)
def choose_ridge(s, v, m, family):
    """Set the ridge by empirical Bayes, and that of the intercept."""
    d, n = v.shape[1] - 1, s[at.COUNT]
    if family == at.BINOMIAL:
        s[at.INTERCEPT] = INTERCEPT_RIDGE
    if not s[at.LENGTHS] > TINIEST * s[at.LENGTH_COUNT]:
        return
    trace, size, share = 0.0, 0.0, min(PRIOR_SHARE * d, MOST_SHARE)
    for i in range(d):
        trace += v[at.SCALE, i] * m[at.INVERSE, i, i]
    square = set_scales(s, v)
    if not square > 0.0:
        return
    phi, variance = 1.0, 1.0
    if family == at.GAUSSIAN:
        phi, variance = s[at.DISPERSION], s[at.SQUARES] / max(n - 1.0, 1.0)
    if n <= 1.0 or not (phi > 0.0 and variance > 0.0):
        s[at.RIDGE] = square * s[at.WEIGHTED_LENGTHS] / s[at.LENGTHS]
        if family == at.GAUSSIAN:
            s[at.INTERCEPT] = FREE * s[at.RIDGE] / square
        return
    if family == at.GAUSSIAN:
        s[at.INTERCEPT] = min(FREE * phi / variance, MOST_RIDGE * s[at.WEIGHTS])
    for i in range(d):
        size += v[at.SCALE, i] * v[at.THETA, i] * v[at.THETA, i]
    gamma = max(d - s[at.RIDGE] * trace, 0.0)
    ridge = phi * (gamma + share) / (size + share * variance / square)
    s[at.RIDGE] = min(ridge, MOST_RIDGE * s[at.WEIGHTS] * square)


@njit(**PART)
def set_loss(s, v, m, rows, g):
    """Set the gradient and, in GRAM and WEIGHT, the curvature of the history; return its loss."""
    D = v.shape[1]
    d, theta, G = D - 1, v[at.THETA], m[at.GRAM]
    loss, total, z = 0.0, 0.0, np.ones(D)
    for i in range(D):
        g[i] = (s[at.RIDGE] * v[at.SCALE, i] if i < d else s[at.INTERCEPT]) * theta[i]
        loss += 0.5 * g[i] * theta[i]
        for j in range(i + 1):
            G[i, j] = 0.0
    for t in range(int(s[at.STORED])):
        for j in range(d):
            z[j] = rows[t, j]
        score, y, n = product(z, theta), rows[t, d], rows[t, d + 1]
        p = sigmoid(score)
        c, r = n * slope(p), n * (p - y)
        loss -= log_likelihood(score, y, n)
        total += c
        for i in range(D):
            g[i] += r * z[i]
            cz = c * z[i]
            for j in range(i + 1):
                G[i, j] += cz * z[j]
    for i in range(D):
        for j in range(i):
            G[j, i] = G[i, j]
    s[at.WEIGHT] = total
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
        invert(m[at.GRAM], s[at.RIDGE], v[at.SCALE], s[at.INTERCEPT], m[at.INVERSE])
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
def reweigh(s, v, m, rows):
    """Weigh the history again, by what is now known of the given sds."""
    D = v.shape[1]
    d, n, theta, G, z = D - 1, int(s[at.STORED]), v[at.THETA], m[at.GRAM], np.ones(D)
    typical, b = math.exp(s[at.LOG_WEIGHTS] / s[at.COUNT]), distrust(s)
    G[:] = 0.0
    v[at.MOMENT] = 0.0
    before, after, total = 0.0, 0.0, 0.0
    for t in range(n):
        for j in range(d):
            z[j] = rows[t, j]
        y, given, part = rows[t, d], rows[t, d + 1], rows[t, d + 2]
        r = y - product(z, theta)
        w = trusted(given, typical, b) * part
        before += trusted(given, s[at.TYPICAL], s[at.DISTRUST]) * part * r * r
        after += w * r * r
        total += w
        for i in range(D):
            v[at.MOMENT, i] += w * y * z[i]
            wz = w * z[i]
            for j in range(i + 1):
                G[i, j] += wz * z[j]
    for i in range(D):
        for j in range(i):
            G[j, i] = G[i, j]
    s[at.WEIGHT], s[at.TYPICAL], s[at.DISTRUST] = total, typical, b
    if before > 0.0 and n > D:  # residuals, in units of the new weights
        s[at.RESIDUALS] *= after / before
        s[at.NOVEL_RESIDUALS] *= after / before
        s[at.DISPERSION] = dispersion(s)


@njit(**PART)
def renew_bonus(s, v, m):
    """Invert the matrix that counts pending decisions."""
    if s[at.PENDING] > 0.0:
        B = m[at.BONUS]
        for i in range(B.shape[0]):
            for j in range(B.shape[0]):
                B[i, j] = m[at.GRAM, i, j] + m[at.WAITING, i, j]
        invert(B, s[at.RIDGE], v[at.SCALE], s[at.INTERCEPT], B)


@njit(**PART)
def renew_gaussian(s, v, m, rows):
    """Choose the ridge for continuous rewards again, and solve for it."""
    if s[at.GIVEN] > 0.0:
        reweigh(s, v, m, rows)
    choose_ridge(s, v, m, at.GAUSSIAN)
    invert(m[at.GRAM], s[at.RIDGE], v[at.SCALE], s[at.INTERCEPT], m[at.INVERSE])
    times(m[at.INVERSE], v[at.MOMENT], v[at.THETA])
    if s[at.GIVEN] == 0.0:
        renew_noise(m)
    renew_bonus(s, v, m)
    set_next(s)


@njit(**PART)
def renew_binomial(s, v, m, rows):
    """Choose the ridge for shares again, and solve for it."""
    choose_ridge(s, v, m, at.BINOMIAL)
    solve_history(s, v, m, rows)
    renew_bonus(s, v, m)
    set_next(s)


@njit(**INNER)
def set_next(s):
    """Set the count at which the ridge is chosen again."""
    s[at.NEXT] = max(s[at.COUNT] + 1.0, math.ceil(GROWTH * s[at.COUNT]))


@njit(**PART)
def renew_recent(s, v, m):
    """Invert the matrix of the forgetting learner, whose ridge fades otherwise, and solve."""
    s[at.RECENT_ROWS] = 0.0
    invert(m[at.RECENT_GRAM], s[at.RIDGE], v[at.SCALE], s[at.INTERCEPT], m[at.RECENT_INVERSE])
    times(m[at.RECENT_INVERSE], v[at.RECENT_MOMENT], v[at.RECENT_THETA])


@njit(**PART)
def count_arm(s, v, x, w):
    """Count an arm in the mean squared norm, and each of its features."""
    square = product(x, x)
    for j in range(x.shape[0]):
        v[at.SQUARES_OF, j] += x[j] * x[j]
        v[at.LARGEST_OF, j] = max(v[at.LARGEST_OF, j], x[j] * x[j])
    s[at.LENGTHS] += square
    s[at.WEIGHTED_LENGTHS] += w * square
    s[at.LENGTH_COUNT] += 1.0


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
def store(s, rows, z, y, w, part):
    """Add a row to the history."""
    t, D = int(s[at.STORED]), z.shape[0]
    for j in range(D - 1):
        rows[t, j] = z[j]
    rows[t, D - 1], rows[t, D], rows[t, D + 1] = y, w, part
    s[at.STORED] += 1.0


@njit(**PART)
def gaussian_round(s, v, m, rows, z, y, given, gamma):
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
    store(s, rows, z, y, given, u / w)
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
def binomial_round(s, v, m, rows, z, y, n, gamma):
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
    store(s, rows, z, y, n, 1.0)
    p, other = sigmoid(score), sigmoid(recent)
    sd, other_sd = math.sqrt(slope(p)), math.sqrt(slope(other))
    return c, math.exp(share_evidence(s, p, other, sd, other_sd, y, n))
