"""The self-tuned index, compiled: choosing, learning, and decisions whose rewards are pending.

Arrays are those of a state, as `self_tuned_ucb_layout` says. What a kernel returns says whether it
took its arguments; where not, nothing is written.
"""

import math

import numpy as np
from numba import float64, int64, njit, void

from . import self_tuned_ucb_layout as at
from .arms import set_forms
from .compile_options import INNER, PART, entry
from .dense import add_outer, clear, set_line, set_matrix, times
from .self_tuned_contexts import features_of, set_features, set_row, shape_of
from .self_tuned_learning import (
    STEEP,
    binomial_round,
    condense,
    count_reward,
    gaussian_round,
    product,
    renew,
    renew_bonus,
    renew_recent,
    sigmoid,
    slope,
    sum_pending,
)
from .self_tuned_noise import own_dispersion
from .self_tuned_prior import choose_penalty, count_arm
from .self_tuned_restart import restart_binomial, restart_gaussian

# of the logarithms, and of u in the second one: where sds are not given, and where they are
SHARE, FAR, SHARE_KNOWN, FAR_KNOWN = 0.8, 1.0, 0.7, 0.0625
LONGEST, LARGEST = 1.0001e40, 1e100  # squared norm of an arm; products of what is learnt
WINDOW, WINDOW_PER_FEATURE = 30.0, 3.0  # of the forgetting learner, in rewards
ALARM, SHARE_ALARM, MOST_EVIDENCE = 1e5, 5e4, 1e100
LONG = 3000.0  # rewards without a change; with more, arms left and changes found are doubted
RENEW, RESTART = 1, 2
SOUND, OFTEN = 0.1, 50.0  # least 1 - w h of a rank-one subtraction, and how many in a row
DROWNED = 1e6  # what is subtracted over what is left
LEAST_REWARD = 1e-100  # smaller ones are 0: their squares can't be computed with
LINE, TABLE, STACK = float64[::1], float64[:, ::1], float64[:, :, ::1]
CHOOSE = int64(LINE, TABLE, STACK, TABLE)
LEARN = int64(LINE, TABLE, STACK, TABLE, TABLE, LINE, float64, float64)
EXPECT = int64(LINE, TABLE, STACK, TABLE, LINE, LINE, float64, int64)
RELEASE = int64(LINE, TABLE, STACK, TABLE, LINE, LINE)


@njit(**INNER)
def lasting(s):
    """Return for how many times `LONG` rewards nothing has changed, at least 1."""
    return max(s[at.SINCE] / LONG, 1.0)


@njit(**PART)
def spreads(s, z, P, out):
    """Set z'Pz of every arm; where actions have blocks of their own, most features are 0."""
    if s[at.BLOCKS] == 0.0 or s[at.SHARED] > 0.0:
        set_forms(z, P, out)
        return
    for k in range(z.shape[0]):
        total = 0.0
        for i in range(z.shape[1]):
            if z[k, i] != 0.0:
                total += z[k, i] * product(P[i], z[k])
        out[k] = total


@njit(**PART)
def indices(s, v, m, arms, index):
    """Set the index of every arm."""
    K, d = arms.shape
    z, h, row = np.empty((K, d + 1)), np.empty(K), np.empty(d + 1)
    own, f = h, np.zeros(K)
    for k in range(K):
        set_row(s, v, arms[k], row)
        set_features(s, v, row, z[k])
        index[k] = product(z[k], v[at.THETA]) + s[at.ORIGIN]
    spreads(s, z, m[at.BONUS] if s[at.PENDING] > 0.0 else m[at.INVERSE], h)
    phi = s[at.DISPERSION] if s[at.DISPERSION] > 0.0 else 1.0
    rate, more, share, far = s[at.WEIGHT] / (d + 1.0), 0.0, SHARE_KNOWN, FAR_KNOWN
    if s[at.FAMILY] == at.GAUSSIAN and s[at.GIVEN] == 0.0:
        share, far = SHARE, FAR
        if s[at.NOVELTY] > 0.0:
            more = max(s[at.NOVEL_RESIDUALS] / s[at.NOVELTY] - phi, 0.0)
            spreads(s, z, m[at.SANDWICH], f)
            if s[at.PENDING] > 0.0:
                own = np.empty(K)
                spreads(s, z, m[at.INVERSE], own)
    late = math.log(lasting(s))
    for k in range(K):
        h[k] = max(h[k], 0.0)  # rounding may leave less
        u = rate * h[k]
        unknown = u / (1.0 + u)
        spread = own_dispersion(own[k], f[k], phi + more * unknown) * h[k]
        logs = share * (math.log1p(u) + math.log1p(far * u)) + late * unknown
        index[k] += math.sqrt(spread * (2.0 + logs))


@entry(void(LINE, TABLE, STACK, TABLE, LINE))
def set_indices(s, v, m, arms, index):
    """`indices` for Python."""
    indices(s, v, m, arms, index)


@entry(CHOOSE, nogil=False)
def choose(s, v, m, arms):
    """Return the arm of the largest index; -1 where several are, or arms are bad."""
    K = arms.shape[0]
    index = np.empty(K)
    for k in range(K):
        if not product(arms[k], arms[k]) <= LONGEST:  # NaN fails it too
            return -1
    indices(s, v, m, arms, index)
    best, ties = 0, 0
    for k in range(K):
        if index[k] > index[best]:
            best = k
    for k in range(K):
        if index[k] >= index[best] - at.TIE * abs(index[best]):
            ties += 1
    return best if ties == 1 else -1


@njit(**PART)
def fits(s, x, y, w, family):
    """Whether a reward can be computed with; contexts have units of their own."""
    e, blocks, d = shape_of(s, x.shape[0] + 1)
    square = 0.0
    for i in range(e + blocks):
        j = i if i < e else e + (i - e) * (d + 1)
        square += x[j] * x[j]
    if family == at.BINOMIAL and not 0.0 <= y <= 1.0:
        return False
    large = (1.0 + square) * (1.0 + y * y * w) * w <= LARGEST
    return product(x, x) <= LONGEST and large and w >= 1.0 / LARGEST


@njit(**PART)
def change(P, z, w):
    """Add w z z' to the matrix of which P is the inverse; return w z'Pz."""
    k = np.empty(z.shape[0])
    q = times(P, z, k)
    add_outer(P, k, -w / (1.0 + w * q))
    return w * q


@njit(**PART)
def begin_row(s, v, m, rows, decisions, x, y, w, family):
    """Make room for a reward and count it, with its arm; return 0 where these can't be computed."""
    if x.shape[0] != v.shape[1] - 1 or not fits(s, x, y, w, family):
        return 0
    if s[at.STORED] >= s[at.KEEP]:
        if family == at.BINOMIAL:  # the form is that around the estimate of all
            renew(s, v, m, rows, decisions, family)
        condense(s, v, m, rows, family)
    s[at.COUNT] += 1.0
    s[at.SINCE] += 1.0
    s[at.WEIGHTS] += w
    row = np.empty(v.shape[1])
    set_row(s, v, x, row)
    count_arm(s, v, row, w if family == at.GAUSSIAN else 1.0)
    if s[at.COUNT] == 1.0:
        s[at.TYPICAL] = w
        s[at.ORIGIN] = y if family == at.GAUSSIAN else 0.0
        renew(s, v, m, rows, decisions, family)
        renew_recent(s, v, m)
    return 1


@njit(**INNER)
def window_of(D):
    """Return how many rewards the forgetting learner remembers."""
    return max(WINDOW, WINDOW_PER_FEATURE * (D - 1))


@njit(**PART)
def count_evidence(s, v, m, z, u, L, alarm):
    """Count what a row weighs, and its L; return what is due: RESTART, RENEW or neither."""
    if s[at.PENDING] > 0.0:
        change(m[at.BONUS], z, u)
    s[at.EVIDENCE] = min((s[at.EVIDENCE] + 1.0) * L, MOST_EVIDENCE)
    if s[at.EVIDENCE] > alarm * lasting(s) ** 2 and s[at.SINCE] > z.shape[0]:
        return RESTART
    return RENEW if s[at.COUNT] >= s[at.NEXT] else 0


@njit(**PART)
def count_recent(s, v, m):
    """Count a row of the forgetting learner, and renew that when due."""
    s[at.RECENT_ROWS] += 1.0
    if s[at.RECENT_ROWS] >= window_of(v.shape[1]) or s[at.COUNT] < 10.0:
        renew_recent(s, v, m)


@entry(LEARN, nogil=False)
def learn_number(s, v, m, rows, decisions, x, y, w):
    """Learn a continuous reward of weight ``w``."""
    if abs(y) < LEAST_REWARD:
        y = 0.0
    if not begin_row(s, v, m, rows, decisions, x, y, w, at.GAUSSIAN):
        return 0
    D = v.shape[1]
    row, z = np.empty(D), np.empty(D)
    set_row(s, v, x, row)
    set_features(s, v, row, z)
    y -= s[at.ORIGIN]
    count_reward(s, y, w)
    u, L = gaussian_round(s, v, m, rows, row, z, y, w, 1.0 - 1.0 / window_of(D))
    due = count_evidence(s, v, m, z, u, L, ALARM)
    if due == RESTART:
        restart_gaussian(s, v, m, rows)
    if due:
        renew(s, v, m, rows, decisions, at.GAUSSIAN)
    count_recent(s, v, m)
    return 1


@entry(LEARN, nogil=False)
def learn_share(s, v, m, rows, decisions, x, y, n):
    """Learn a share of ``n`` trials."""
    if not begin_row(s, v, m, rows, decisions, x, y, n, at.BINOMIAL):
        return 0
    D = v.shape[1]
    row, z = np.empty(D), np.empty(D)
    set_row(s, v, x, row)
    set_features(s, v, row, z)
    u, L = binomial_round(s, v, m, rows, row, z, y, n, 1.0 - 1.0 / window_of(D))
    due = count_evidence(s, v, m, z, u, L, SHARE_ALARM)
    if due == RESTART:
        restart_binomial(s, v, m, rows)
    if due:
        renew(s, v, m, rows, decisions, at.BINOMIAL)
    count_recent(s, v, m)
    return 1


@njit(**INNER)
def key_of(x):
    """Return a number by which a decision is found."""
    key = 0.0
    for j in range(x.shape[0]):
        key += (j + 1.0) * x[j]
    return key


@entry(EXPECT, nogil=False)
def expect(s, v, m, decisions, keys, x, w, family):
    """Count a decision whose reward, of weight ``w``, is pending."""
    d, t = x.shape[0], int(s[at.PENDING])
    if not fits(s, x, 0.0, w, family):
        return 0
    z, given, row = features_of(s, v, x), w, np.empty(d + 1)
    if family == at.BINOMIAL:
        w *= slope(sigmoid(product(z, v[at.THETA])))
    set_line(x, decisions[t])
    decisions[t, d] = w
    keys[t] = key_of(x)
    s[at.PENDING] += 1.0
    if t == 0:
        s[at.REMOVED] = 0.0
        clear(m[at.WAITING])
        set_matrix(m[at.INVERSE], m[at.BONUS])
    add_outer(m[at.WAITING], z, w)
    if s[at.COUNT] == 0.0:  # the scale of arms, before any reward tells it
        set_row(s, v, x, row)
        count_arm(s, v, row, given if family == at.GAUSSIAN else 1.0)
        choose_penalty(s, v, m, family)
        renew_bonus(s, v, m)
    elif change(m[at.BONUS], z, w) > STEEP:
        renew_bonus(s, v, m)
    return 1


@entry(RELEASE, nogil=False)
def release(s, v, m, decisions, keys, x):
    """Take a decision on this arm off the pending ones, of several any."""
    d, last, key, t = x.shape[0], int(s[at.PENDING]) - 1, key_of(x), 0
    while t <= last:
        if keys[t] == key:
            j = 0
            while j < d and decisions[t, j] == x[j]:
                j += 1
            if j == d:
                break
        t += 1
    if t > last:
        return 0
    w, z = decisions[t, d], features_of(s, v, x)
    set_line(decisions[last], decisions[t])
    keys[t], keys[last] = keys[last], 0.0
    for j in range(d + 1):
        decisions[last, j] = 0.0
    s[at.PENDING] -= 1.0
    s[at.REMOVED] += 1.0
    if last == 0:  # nothing is left, not even rounding
        clear(m[at.WAITING])
        return 1
    removed, remaining = w * product(z, z), 0.0
    for j in range(d + 1):
        remaining += m[at.WAITING, j, j]
    lost = removed > DROWNED * (remaining - removed)  # the others, in rounding
    if s[at.REMOVED] > 2.0 * last + OFTEN or lost:  # the sum afresh
        s[at.REMOVED] = 0.0
        sum_pending(s, v, m, decisions)
        renew_bonus(s, v, m)
        return 1
    add_outer(m[at.WAITING], z, -w)
    for j in range(d + 1):
        m[at.WAITING, j, j] = max(m[at.WAITING, j, j], 0.0)
    k = np.empty(d + 1)
    left = 1.0 - w * times(m[at.BONUS], z, k)
    if left < SOUND or s[at.REMOVED] % OFTEN == 0.0:
        renew_bonus(s, v, m)
    else:
        add_outer(m[at.BONUS], k, w / left)
    return 1
