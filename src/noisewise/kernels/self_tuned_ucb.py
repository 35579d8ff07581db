"""The self-tuned index, compiled: choosing, learning, restarting, pending decisions.

``s`` holds the numbers of a state, ``v`` its vectors and ``m`` its matrices, as
`self_tuned_ucb_layout` says; ``rows`` the history, each row features, reward and trials.
"""

import math

import numpy as np
from numba import boolean, float64, int64, njit, void

from . import self_tuned_ucb_layout as at
from .arms import TIE, set_forms
from .compile_options import INNER, PART, entry

GROWTH = 1.1  # of the count, before the ridge is chosen again
FREE = 1e-6  # ridge of the intercept, continuous rewards
HALF_SCORE = 0.04  # ridge of the intercept, binary rewards
WINDOW, PER_FEATURE = 100.0, 10.0  # of the learner that forgets
ALARM = 1e5
CAP = 9.0  # squared standardised residual
PRIOR_ROWS = 3.0
FLATTEST = 2e-9  # slope of the logistic mean at a score of 20
PASSES, ENOUGH = 12, 1e-4
OPTS = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


@njit(**INNER)
def sigmoid(z):
    """Return 1/(1 + e^-z)."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@njit(**INNER)
def slope(p):
    """Return the slope of the logistic mean where that is ``p``."""
    return max(p * (1.0 - p), FLATTEST)


@njit(**PART)
def times(A, z, out):
    """Set A z, and return z'A z."""
    D = z.shape[0]
    total = 0.0
    for i in range(D):
        inner = 0.0
        for j in range(D):
            inner += A[i, j] * z[j]
        out[i] = inner
        total += inner * z[i]
    return total


@njit(**PART)
def add_outer(A, z, c):
    """Add c z z', both halves alike."""
    for i in range(z.shape[0]):
        cz = c * z[i]
        for j in range(i + 1):
            A[i, j] += cz * z[j]
            A[j, i] = A[i, j]


@njit(**PART)
def invert(A, ridge, intercept, out):
    """Set the inverse of A plus the ridge matrix, by Cholesky; a lost pivot is lifted."""
    D = A.shape[0]
    L = np.zeros((D, D))
    top = 0.0
    for i in range(D):
        top = max(top, A[i, i] + (ridge if i < D - 1 else intercept))
    least = 1e-14 * top
    for i in range(D):
        for j in range(i + 1):
            total = A[i, j]
            if i == j:
                total += ridge if i < D - 1 else intercept
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = math.sqrt(max(total, least))
            else:
                L[i, j] = total / L[j, j]
    for j in range(D):  # the inverse of L, in place
        L[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, D):
            total = 0.0
            for k in range(j, i):
                total += L[i, k] * L[k, j]
            L[i, j] = -total / L[i, i]
    for i in range(D):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, D):
                total += L[k, i] * L[k, j]
            out[i, j] = total
            out[j, i] = total


@njit(**PART)
def shrink(P, k, share):
    """Subtract share k k' from an inverse."""
    add_outer(P, k, -share)


@njit(**PART)
def spread_over(s, m, z, k, w, h, c):
    """Renew P SPREAD P for a row of weight ``w`` whose k = P z and h = z'k are of before."""
    D = z.shape[0]
    S = m[at.SANDWICH]
    t = np.empty(D)
    zt = times(S, z, t)
    a = w / (1.0 + w * h)
    own = a * a * zt + c * (1.0 - a * h) ** 2
    for i in range(D):
        for j in range(i + 1):
            S[i, j] += own * k[i] * k[j] - a * (k[i] * t[j] + t[i] * k[j])
            S[j, i] = S[i, j]
    add_outer(m[at.SPREAD], z, c)


@njit(**PART)
def renew_bonus(s, m):
    """Invert the matrix that counts pending decisions."""
    if s[at.PENDING] > 0.0:
        both = m[at.GRAM] + m[at.WAITING]
        invert(both, s[at.RIDGE], s[at.INTERCEPT], m[at.BONUS])


@njit(**PART)
def renew(s, v, m):
    """Invert all matrices for the ridge of now; set the sandwich."""
    D = v.shape[1]
    invert(m[at.GRAM], s[at.RIDGE], s[at.INTERCEPT], m[at.INVERSE])
    P, S = m[at.INVERSE], m[at.SANDWICH]
    half = np.zeros((D, D))
    for i in range(D):
        for k in range(D):
            p = P[i, k]
            for j in range(D):
                half[i, j] += p * m[at.SPREAD, k, j]
    for i in range(D):
        for j in range(i + 1):
            total = 0.0
            for k in range(D):
                total += half[i, k] * P[k, j]
            S[i, j] = total
            S[j, i] = total
    renew_bonus(s, m)


@njit(**PART)
def renew_recent(s, v, m):
    """Invert the matrix of the learner that forgets, and solve."""
    s[at.RECENT_ROWS] = 0.0
    invert(m[at.RECENT_GRAM], s[at.RIDGE], s[at.INTERCEPT], m[at.RECENT_INVERSE])
    times(m[at.RECENT_INVERSE], v[at.RECENT_MOMENT], v[at.RECENT_THETA])


@njit(**PART)
def choose_ridge(s, v, m, kind):
    """Set the ridge by empirical Bayes."""
    D = v.shape[1]
    d = D - 1.0
    if s[at.LENGTHS] == 0.0 or s[at.LENGTH_COUNT] == 0.0:
        return
    A2 = s[at.LENGTHS] / s[at.LENGTH_COUNT]
    n = s[at.COUNT]
    if kind == 0:
        phi = s[at.DISPERSION]
        v0 = s[at.SQUARES] / (n - 1.0) if n > 1.0 else 0.0
        if phi <= 0.0 or v0 <= 0.0:
            s[at.RIDGE] = s[at.WEIGHTED_LENGTHS] / s[at.LENGTH_COUNT]
            s[at.INTERCEPT] = FREE * s[at.RIDGE] / A2
            return
        s[at.INTERCEPT] = FREE * phi / v0
    else:
        phi, v0 = 1.0, 1.0
        s[at.INTERCEPT] = HALF_SCORE
        if n == 0.0:
            s[at.RIDGE] = A2
            return
    trace, size = 0.0, 0.0
    for i in range(D - 1):
        trace += m[at.INVERSE, i, i]
        size += v[at.THETA, i] ** 2
    gamma = max(d - s[at.RIDGE] * trace, 0.0)
    s[at.RIDGE] = phi * (gamma + 0.5 * d) / (size + 0.5 * d * v0 / A2)


@njit(**PART)
def newton(s, v, m, rows):
    """Minimise the penalised loss of the history; the Hessian is that of the last point."""
    D = v.shape[1]
    d, n = D - 1, int(s[at.STORED])
    theta, step, g, z = v[at.THETA], np.zeros(D), np.empty(D), np.empty(D)
    z[d] = 1.0
    G = m[at.GRAM]
    best = math.inf
    scale = 1.0
    for _ in range(PASSES):
        loss = 0.0
        for i in range(D):
            ridge = s[at.RIDGE] if i < d else s[at.INTERCEPT]
            g[i] = ridge * theta[i] - v[at.PRIOR_MOMENT, i]
            loss += 0.5 * ridge * theta[i] ** 2 - v[at.PRIOR_MOMENT, i] * theta[i]
            for j in range(D):
                G[i, j] = m[at.PRIOR_GRAM, i, j]
                g[i] += G[i, j] * theta[j]
                loss += 0.5 * G[i, j] * theta[i] * theta[j]
        total = s[at.WEIGHT] * 0.0
        for t in range(n):
            score = theta[d]
            for j in range(d):
                z[j] = rows[t, j]
                score += z[j] * theta[j]
            y, trials = rows[t, d], rows[t, d + 1]
            p = sigmoid(score)
            c = trials * slope(p)
            total += c
            loss += trials * (max(score, 0.0) + math.log1p(math.exp(-abs(score))) - y * score)
            r = trials * (p - y)
            for i in range(D):
                g[i] += r * z[i]
                cz = c * z[i]
                for j in range(i + 1):
                    G[i, j] += cz * z[j]
        for i in range(D):
            for j in range(i):
                G[j, i] = G[i, j]
        if loss > best + 1e-9 * abs(best) and scale > 1e-3:
            scale *= 0.5  # back half-way
            for i in range(D):
                theta[i] -= scale * step[i]
            continue
        best, scale = loss, 1.0
        s[at.WEIGHT] = total + m[at.PRIOR_GRAM, d, d]
        invert(G, s[at.RIDGE], s[at.INTERCEPT], m[at.INVERSE])
        decrement = times(m[at.INVERSE], g, step)
        for i in range(D):
            step[i] = -step[i]
            theta[i] += step[i]
        if decrement < ENOUGH:
            break


@njit(**PART)
def renew_all(s, v, m, rows, kind):
    """Choose the ridge again, and solve for it."""
    choose_ridge(s, v, m, kind)
    if kind == 1:
        newton(s, v, m, rows)
    renew(s, v, m)
    if kind == 0:
        times(m[at.INVERSE], v[at.MOMENT], v[at.THETA])
    s[at.NEXT] = max(s[at.COUNT] + 1.0, math.ceil(GROWTH * s[at.COUNT]))


@njit(**INNER)
def implicit(score, h, y, n):
    """Return the root of u = n (y - mean(score + h u))."""
    u = n * (y - sigmoid(score))
    low, high = min(u, 0.0), max(u, 0.0)
    u = u / (1.0 + n * h * slope(sigmoid(score)))
    for _ in range(50):
        p = sigmoid(score + h * u)
        f = u - n * (y - p)
        if f > 0.0:
            high = u
        else:
            low = u
        new = u - f / (1.0 + n * h * slope(p))
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - u) <= 1e-12 * abs(u):
            return new
        u = new
    return u


@njit(**INNER)
def log_likelihood(score, y, n):
    """Return the log likelihood of a share."""
    return n * (y * score - max(score, 0.0) - math.log1p(math.exp(-abs(score))))


@njit(**PART)
def restart(s, v, m, rows, kind):
    """Let the learner that forgets take over."""
    s[at.EVIDENCE] = 0.0
    s[at.SINCE] = 0.0
    s[at.RESTARTS] += 1.0
    s[at.LAST_RESTART] = s[at.COUNT]
    s[at.WEIGHT] = s[at.RECENT_WEIGHT]
    v[at.THETA, :] = v[at.RECENT_THETA]
    v[at.MOMENT, :] = v[at.RECENT_MOMENT]
    m[at.GRAM, :, :] = m[at.RECENT_GRAM]
    m[at.INVERSE, :, :] = m[at.RECENT_INVERSE]
    if kind == 0:
        s[at.RESIDUALS] = s[at.RECENT_RESIDUALS]
        s[at.RESIDUAL_COUNT] = s[at.RECENT_RESIDUAL_COUNT]
        m[at.SPREAD, :, :] = s[at.DISPERSION] * m[at.GRAM]
    else:
        v[at.PRIOR_MOMENT, :] = v[at.RECENT_MOMENT]
        m[at.PRIOR_GRAM, :, :] = m[at.RECENT_GRAM]
        s[at.STORED] = 0.0
    renew_all(s, v, m, rows, kind)


@njit(**PART)
def moments(s, x, y, w, kind):
    """Count a reward and its arm in the running moments."""
    s[at.COUNT] += 1.0
    s[at.SINCE] += 1.0
    n = s[at.COUNT]
    square = 0.0
    for j in range(x.shape[0]):
        square += x[j] * x[j]
    s[at.LENGTHS] += square
    s[at.WEIGHTED_LENGTHS] += (w if kind == 0 else 1.0) * square
    s[at.LENGTH_COUNT] += 1.0
    s[at.TOTAL] += w
    if kind == 1:
        return
    if n == 1.0:
        s[at.ORIGIN] = y
    y -= s[at.ORIGIN]
    move = y - s[at.MEAN]
    s[at.MEAN] += move / n
    s[at.SQUARES] += move * (y - s[at.MEAN])
    move = y - s[at.LEVEL]
    s[at.LEVEL] += move * w / s[at.TOTAL]
    s[at.WEIGHTED_SQUARES] += w * move * (y - s[at.LEVEL])


@njit(**INNER)
def dispersion(s):
    """Return phi."""
    n = s[at.COUNT]
    v = s[at.WEIGHTED_SQUARES] / (n - 1.0) if n > 1.0 else 0.0
    return (PRIOR_ROWS * v + s[at.RESIDUALS]) / (PRIOR_ROWS + s[at.RESIDUAL_COUNT])


@njit(**PART)
def learn_gaussian(s, v, m, z, y, w, gamma, o):
    """Learn a continuous reward, less the origin; return L of the restart test."""
    D = z.shape[0]
    k = np.empty(D)
    phi = s[at.DISPERSION]
    s[at.DISPERSION] = dispersion(s)  # with the reward in the variance of all
    # the learner that forgets
    P, theta = m[at.RECENT_INVERSE], v[at.RECENT_THETA]
    qf = times(P, z, k)
    rf = y
    for j in range(D):
        rf -= z[j] * theta[j]
    now = s[at.DISPERSION]
    e2 = rf * rf / (1.0 / w + qf)
    u = w
    if e2 > CAP * now:
        u = w * math.sqrt(CAP * now / e2)
    a = u / (gamma + u * qf)
    for i in range(D):
        theta[i] += a * k[i] * rf
    for i in range(D):
        for j in range(i + 1):
            P[i, j] = (P[i, j] - a * k[i] * k[j]) / gamma
            P[j, i] = P[i, j]
            m[at.RECENT_GRAM, i, j] = gamma * m[at.RECENT_GRAM, i, j] + u * z[i] * z[j]
            m[at.RECENT_GRAM, j, i] = m[at.RECENT_GRAM, i, j]
        v[at.RECENT_MOMENT, i] = gamma * v[at.RECENT_MOMENT, i] + u * y * z[i]
    s[at.RECENT_WEIGHT] = gamma * s[at.RECENT_WEIGHT] + u
    s[at.RECENT_RESIDUALS] = gamma * s[at.RECENT_RESIDUALS] + min(e2, CAP * now)
    s[at.RECENT_RESIDUAL_COUNT] = gamma * s[at.RECENT_RESIDUAL_COUNT] + 1.0
    # the full one
    P, theta = m[at.INVERSE], v[at.THETA]
    q = times(P, z, k)
    r = y
    for j in range(D):
        r -= z[j] * theta[j]
    e2 = r * r / (1.0 / w + q)
    u = w
    if e2 > CAP * now:
        u = w * math.sqrt(CAP * now / e2)
    s[at.RESIDUALS] += min(e2, CAP * now)
    s[at.RESIDUAL_COUNT] += 1.0
    a = u / (1.0 + u * q)
    spread_over(s, m, z, k, u, q, u * e2)
    for i in range(D):
        theta[i] += a * k[i] * r
        v[at.MOMENT, i] += u * y * z[i]
    shrink(P, k, a)
    add_outer(m[at.GRAM], z, u)
    s[at.WEIGHT] += u
    if s[at.PENDING] > 0.0:
        q2 = times(m[at.BONUS], z, k)
        shrink(m[at.BONUS], k, u / (1.0 + u * q2))
    s[at.DISPERSION] = dispersion(s)
    if phi <= 0.0:
        return 1.0
    scale = 2.0 * phi * (1.0 / w + max(q, qf))
    return ((1.0 + r * r / scale) / (1.0 + rf * rf / scale)) ** 1.5


@njit(**PART)
def learn_binomial(s, v, m, rows, z, y, n, gamma, o):
    """Learn a share; return L of the restart test."""
    D = z.shape[0]
    d = D - 1
    k = np.empty(D)
    P, theta = m[at.RECENT_INVERSE], v[at.RECENT_THETA]
    h = times(P, z, k) / gamma
    score = 0.0
    for j in range(D):
        score += z[j] * theta[j]
    if o[1] > 0.0:
        log_ratio = log_likelihood(score / math.sqrt(1.0 + math.pi / 8.0 * h), y, n)
    else:
        log_ratio = log_likelihood(score, y, n)
    u = implicit(score, h, y, n)
    score += h * u
    c = n * slope(sigmoid(score))
    a = c / (1.0 + c * h)
    for i in range(D):
        k[i] /= gamma
        theta[i] += k[i] * u
    for i in range(D):
        for j in range(i + 1):
            P[i, j] = P[i, j] / gamma - a * k[i] * k[j]
            P[j, i] = P[i, j]
            m[at.RECENT_GRAM, i, j] = gamma * m[at.RECENT_GRAM, i, j] + c * z[i] * z[j]
            m[at.RECENT_GRAM, j, i] = m[at.RECENT_GRAM, i, j]
        v[at.RECENT_MOMENT, i] = gamma * v[at.RECENT_MOMENT, i] + (c * score + u) * z[i]
    s[at.RECENT_WEIGHT] = gamma * s[at.RECENT_WEIGHT] + c
    P, theta = m[at.INVERSE], v[at.THETA]
    h = times(P, z, k)
    score = 0.0
    for j in range(D):
        score += z[j] * theta[j]
    if o[1] > 0.0:
        log_ratio -= log_likelihood(score / math.sqrt(1.0 + math.pi / 8.0 * h), y, n)
    else:
        log_ratio -= log_likelihood(score, y, n)
    u = implicit(score, h, y, n)
    c = n * slope(sigmoid(score + h * u))
    for i in range(D):
        theta[i] += k[i] * u
    shrink(P, k, c / (1.0 + c * h))
    add_outer(m[at.GRAM], z, c)
    s[at.WEIGHT] += c
    if s[at.PENDING] > 0.0:
        q2 = times(m[at.BONUS], z, k)
        shrink(m[at.BONUS], k, c / (1.0 + c * q2))
    t = int(s[at.STORED])
    for j in range(d):
        rows[t, j] = z[j]
    rows[t, d], rows[t, d + 1] = y, n
    s[at.STORED] += 1.0
    return math.exp(min(log_ratio, 500.0))


LINE, TABLE, STACK = float64[::1], float64[:, ::1], float64[:, :, ::1]


@entry(void(LINE, TABLE, STACK, TABLE, LINE, float64, float64, int64, LINE), nogil=False)
def learn(s, v, m, rows, x, y, w, kind, o):
    """Learn a reward of weight ``w``, the trials of a share."""
    D = v.shape[1]
    window = max(WINDOW, PER_FEATURE * (D - 1))
    z = np.empty(D)
    z[: D - 1] = x
    z[D - 1] = 1.0
    moments(s, x, y, w, kind)
    if s[at.COUNT] == 1.0:
        choose_ridge(s, v, m, kind)
        renew(s, v, m)
        renew_recent(s, v, m)
    if kind == 0:
        L = learn_gaussian(s, v, m, z, y - s[at.ORIGIN], w, 1.0 - 1.0 / window, o)
    else:
        L = learn_binomial(s, v, m, rows, z, y, w, 1.0 - 1.0 / window, o)
    s[at.RECENT_ROWS] += 1.0
    s[at.EVIDENCE] = min((s[at.EVIDENCE] + 1.0) * L, 1e100)
    if s[at.EVIDENCE] > o[0] and s[at.SINCE] > D:
        restart(s, v, m, rows, kind)
    elif s[at.COUNT] >= s[at.NEXT]:
        renew_all(s, v, m, rows, kind)
    if s[at.RECENT_ROWS] >= window or s[at.COUNT] < 10.0:
        renew_recent(s, v, m)


@njit(**PART)
def set_index(s, v, m, arms, index, o):
    """Set the index of every arm."""
    K, d = arms.shape
    D = d + 1
    z, h = np.empty((K, D)), np.empty(K)
    theta = v[at.THETA]
    for k in range(K):
        score = theta[d]
        for j in range(d):
            z[k, j] = arms[k, j]
            score += arms[k, j] * theta[j]
        z[k, d] = 1.0
        index[k] = score + s[at.ORIGIN]
    set_forms(z, m[at.BONUS] if s[at.PENDING] > 0.0 else m[at.INVERSE], h)
    phi = s[at.DISPERSION]
    if not phi > 0.0:
        phi = 1.0
    rate = s[at.WEIGHT] / D
    local = np.zeros(K)
    if o[2] > 0.0:
        set_forms(z, m[at.SANDWICH], local)
    for k in range(K):
        u = rate * h[k]
        if o[3] == 0.0:
            factor = 2.0 + math.log1p(u) + math.log1p(0.25 * u)
        else:
            factor = o[3] + o[4] * math.log1p(u) + o[5] * math.log1p(0.25 * u)
        spread = phi * h[k]
        if o[2] == 1.0:
            spread = max(spread, local[k])
        elif o[2] == 2.0:
            spread = 0.5 * (spread + max(spread, local[k]))
        index[k] += math.sqrt(spread * factor)


@entry(int64(LINE, TABLE, STACK, TABLE, LINE, LINE), nogil=False)
def choose(s, v, m, arms, index, o):
    """Set the index of every arm; return how many are best, -1 where arms are bad."""
    K, d = arms.shape
    for k in range(K):
        length2 = 0.0
        for j in range(d):
            length2 += arms[k, j] * arms[k, j]
        if not length2 <= 1e100:
            return -1
    set_index(s, v, m, arms, index, o)
    top = index[0]
    for k in range(K):
        top = max(top, index[k])
    least, ties = top - TIE * abs(top), 0
    for k in range(K):
        if index[k] >= least:
            ties += 1
    return ties


@entry(void(LINE, TABLE, STACK, TABLE, LINE, LINE, float64, int64), nogil=False)
def expect(s, v, m, waiting, keys, x, w, kind):
    """Count a pending decision."""
    D = v.shape[1]
    d = D - 1
    z, k = np.empty(D), np.empty(D)
    score, key, square = v[at.THETA, d], 0.0, 0.0
    z[d] = 1.0
    for j in range(d):
        z[j] = x[j]
        score += x[j] * v[at.THETA, j]
        key += (j + 1.0) * x[j]
        square += x[j] * x[j]
    if kind == 1:
        w *= slope(sigmoid(score))
    t = int(s[at.PENDING])
    waiting[t, :d] = x
    waiting[t, d] = w
    keys[t] = key
    s[at.PENDING] += 1.0
    if t == 0:
        m[at.WAITING, :, :] = 0.0
        s[at.REMOVED] = 0.0
    add_outer(m[at.WAITING], z, w)
    if s[at.COUNT] == 0.0:
        s[at.LENGTHS] += square
        s[at.WEIGHTED_LENGTHS] += (w if kind == 0 else 1.0) * square
        s[at.LENGTH_COUNT] += 1.0
        choose_ridge(s, v, m, kind)
        renew(s, v, m)
    elif t == 0:
        m[at.BONUS, :, :] = m[at.INVERSE]
    q = times(m[at.BONUS], z, k)
    if s[at.COUNT] > 0.0:
        shrink(m[at.BONUS], k, w / (1.0 + w * q))


@entry(int64(LINE, TABLE, STACK, TABLE, LINE, LINE), nogil=False)
def release(s, v, m, waiting, keys, x):
    """Take a pending decision off; return 0 where there is none of this arm."""
    D = v.shape[1]
    d, n = D - 1, int(s[at.PENDING])
    key = 0.0
    for j in range(d):
        key += (j + 1.0) * x[j]
    for t in range(n):
        if keys[t] == key:
            same = True
            for j in range(d):
                same &= waiting[t, j] == x[j]
            if same:
                break
    else:
        return 0
    w = waiting[t, d]
    waiting[t] = waiting[n - 1]
    keys[t] = keys[n - 1]
    waiting[n - 1] = 0.0
    keys[n - 1] = 0.0
    s[at.PENDING] -= 1.0
    s[at.REMOVED] += 1.0
    if n == 1:
        return 1
    z, k = np.empty(D), np.empty(D)
    z[:d] = x
    z[d] = 1.0
    if s[at.REMOVED] > max(2.0 * n, 200.0):
        s[at.REMOVED] = 0.0
        m[at.WAITING, :, :] = 0.0
        for t in range(n - 1):
            z[:d] = waiting[t, :d]
            add_outer(m[at.WAITING], z, waiting[t, d])
        renew_bonus(s, m)
        return 1
    add_outer(m[at.WAITING], z, -w)
    q = times(m[at.BONUS], z, k)
    if 1.0 - w * q < 0.1 or s[at.REMOVED] % 50.0 == 0.0:
        renew_bonus(s, m)
    else:
        shrink(m[at.BONUS], k, -w / (1.0 - w * q))
    return 1
