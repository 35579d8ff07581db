"""The self-tuned index, compiled: choosing, learning, and decisions whose rewards are pending.

Kernels take the arrays of a state: numbers, vectors and matrices by the names of
`self_tuned_ucb_numbers`; ``rows``, see `self_tuned_history`; ``decisions``, the arms whose rewards
are pending, each with its weight, and ``keys``, a number of each by which it is found. Whatever is
refused is refused before anything is written.
"""

import math

import numpy as np
from numba import float64, int64, njit

from ..compiling.compile_options import PART, RARE, entry
from ..matrices.dense import add_outer, clear, dot, set_line, set_matrix, times, update_inverse
from ..policies.arm_forms import are_within, set_forms
from .change_evidence import number_evidence, patience, share_evidence, shows_change, undecided
from .self_tuned_contexts import features_of, set_features, set_row, shape_of
from .self_tuned_history import condense, renew, renew_bonus, renew_recent, store, sum_pending
from .self_tuned_learner import (
    add_row,
    discount,
    fade,
    forgetting,
    lasting,
    learn_row,
    sigmoid,
    slope,
)
from .self_tuned_noise import (
    count_noise,
    count_residual,
    count_reward,
    dispersion,
    largest_residual,
    own_dispersion,
    trusted,
)
from .self_tuned_prior import choose_penalty, count_arm
from .self_tuned_restart import restart
from .self_tuned_ucb_numbers import BINOMIAL, GAUSSIAN, NUMBERS, TIE, M, V

# of the logarithms, and of u in the second one: where sds are not given, and where they are
SHARE, FAR, SHARE_KNOWN, FAR_KNOWN = 0.8, 1.0, 0.7, 0.0625
LONGEST, LARGEST = 1.0001e40, 1e100  # squared norm of an arm; products of what is learnt
WINDOW, WINDOW_PER_FEATURE = 30.0, 3.0  # of the learner that forgets, in rewards
STEEP = 1e10  # weight times z'Pz, from which on an update of P by rank one loses its digits
SOUND, OFTEN = 0.1, 50.0  # least 1 - w h of a rank-one subtraction, and how many in a row
DROWNED = 1e6  # what is subtracted over what is left
LEAST_REWARD = 1e-100  # smaller ones are 0: their squares can't be computed with
LINE, TABLE, STACK, PLACES = float64[::1], float64[:, ::1], float64[:, :, ::1], int64[::1]


@njit(**PART)
def set_spreads(s, z, P, out):
    """Set z'Pz of every arm; where actions have blocks of their own, most features are 0."""
    if s.blocks == 0.0 or s.shared > 0.0:
        set_forms(z, P, out)
        return
    for k in range(z.shape[0]):
        total = 0.0
        for i in range(z.shape[1]):
            if z[k, i] != 0.0:
                total += z[k, i] * dot(P[i], z[k])
        out[k] = total


@njit(**PART)
def set_indices(s, v, m, arms, index):
    """Set the index of every arm."""
    K, d = arms.shape
    z, h, row = np.empty((K, d + 1)), np.empty(K), np.empty(d + 1)
    own, f = h, np.empty(K)
    for k in range(K):
        set_row(s, v, arms[k], row)
        set_features(s, v, row, z[k])
        index[k], f[k] = dot(z[k], v[V.theta]) + s.origin, 0.0
    set_spreads(s, z, m[M.bonus] if s.pending > 0.0 else m[M.inverse], h)
    phi = s.dispersion if s.dispersion > 0.0 else 1.0
    rate, more, share, far = s.information / (d + 1.0), 0.0, SHARE_KNOWN, FAR_KNOWN
    if s.family == GAUSSIAN and s.sds_given == 0.0:
        share, far = SHARE, FAR
        if s.novelty > 0.0:
            more = max(s.novel_residuals / s.novelty - phi, 0.0)
            set_spreads(s, z, m[M.sandwich], f)
            if s.pending > 0.0:
                own = np.empty(K)
                set_spreads(s, z, m[M.inverse], own)
    late = math.log(patience(undecided(s)))
    for k in range(K):
        h[k] = max(h[k], 0.0)  # rounding may leave less
        u = rate * h[k]
        unknown = u / (1.0 + u)
        spread = own_dispersion(own[k], f[k], phi + more * unknown) * h[k]
        logs = share * (math.log1p(u) + math.log1p(far * u)) + late * unknown
        index[k] += math.sqrt(spread * (2.0 + logs))


@njit(**PART)
def best_arm(s, v, m, arms, index):
    """Set the indices; return the arm of the largest, -1 where several are, or arms are bad."""
    set_indices(s, v, m, arms, index)
    best, ties = 0, 0
    for k in range(arms.shape[0]):
        if index[k] > index[best]:
            best = k
    for k in range(arms.shape[0]):
        if index[k] >= index[best] - TIE * abs(index[best]):
            ties += 1
    return best if ties == 1 and are_within(arms, LONGEST) else -1


@njit(**PART)
def fits(s, x, y, w):
    """Whether a reward can be computed with; contexts have units of their own."""
    e, blocks, d = shape_of(s, x.shape[0] + 1)
    square = 0.0
    for i in range(e + blocks):
        j = i if i < e else e + (i - e) * (d + 1)
        square += x[j] * x[j]
    if s.family == BINOMIAL and not 0.0 <= y <= 1.0:
        return False
    large = (1.0 + square) * (1.0 + y * y * w) * w <= LARGEST
    return dot(x, x) <= LONGEST and large and w >= 1.0 / LARGEST


@njit(**RARE)
def set_origin(s, v, m, decisions, x, y, w):
    """Take the origin and the unit of weights from the first reward."""
    s.typical_weight = w
    if s.family == GAUSSIAN:
        s.origin, s.weighted_norms = y, w * s.norms  # of arms counted before that unit was known
        for t in range(int(s.pending)):
            if decisions[t, x.shape[0]] == 1.0:
                decisions[t, x.shape[0]] = w
        sum_pending(s, v, m, decisions)


@njit(**PART)
def learn_reward(s, v, m, rows, decisions, x, y, given):
    """Learn a reward of the weight given, for shares the trials."""
    if s.stored >= s.keep_rows:
        condense(s, v, m, rows, decisions)
    D, gaussian = v.shape[1], s.family == GAUSSIAN
    window = max(WINDOW, WINDOW_PER_FEATURE * (D - 1))
    row, z, k = np.empty(D), np.empty(D), np.empty(D)
    s.count += 1.0
    s.since_restart += 1.0
    s.weights += given
    set_row(s, v, x, row)
    if s.count == 1.0:
        set_origin(s, v, m, decisions, x, y, given)
    count_arm(s, v, row, given)
    if s.count == 1.0:
        renew(s, v, m, rows, decisions)
        renew_recent(s, v, m)
    set_features(s, v, row, z)
    w, most, phi = given, math.inf, s.dispersion
    if gaussian:
        y -= s.origin
        count_reward(s, y, given)
        w, most = trusted(given, s.typical_weight, s.distrust), largest_residual(s)
    recent, recent_q, _, recent_c = learn_row(
        forgetting(v, m), s.family, z, k, y, w, 1.0 - 1.0 / window, most
    )
    score, q, square, c = learn_row(lasting(v, m), s.family, z, k, y, w, discount(s), most)
    if s.forget_after > 0.0:
        fade(s, v, m, k)
    s.information += c
    s.slopes += c / w
    s.slope_squares += c / w * (c / w)
    steep = max(c * q, recent_c * recent_q) > STEEP
    store(s, rows, row, y, given, c / w if gaussian else 1.0)
    log_ratio = 0.0
    if gaussian:
        count_noise(s, m, z, k, q / discount(s), c, square)
        count_residual(s, y - score, w * q, square, given)
        s.dispersion = dispersion(s)
        if phi > 0.0:
            sd = math.sqrt(phi * (1.0 / w + max(q, recent_q)))  # that suits both learners
            log_ratio = number_evidence(s, (y - score) / sd, (y - recent) / sd)
    else:
        log_ratio = share_evidence(s, sigmoid(score), sigmoid(recent), y, given)
    if s.pending > 0.0:
        add_row(m[M.bonus], z, c)
    changed = s.forget_after == 0.0 and shows_change(s, math.exp(log_ratio), D)
    if changed:
        restart(s, v, m, rows)
    if changed or steep or s.count >= s.next_renewal:
        renew(s, v, m, rows, decisions)
    s.recent_rows += 1.0
    if steep or s.recent_rows >= window or s.count < 10.0:
        renew_recent(s, v, m)


@njit(**PART)
def key_of(x):
    """Return a number by which a decision is found."""
    key = 0.0
    for j in range(x.shape[0]):
        key += (j + 1.0) * x[j]
    return key


@njit(**PART)
def add_decision(s, v, m, decisions, keys, x, given):
    """Count a decision whose reward, of the weight given, is pending."""
    d, t, w = x.shape[0], int(s.pending), given
    z, row = features_of(s, v, x), np.empty(d + 1)
    if s.family == BINOMIAL:
        w *= slope(sigmoid(dot(z, v[V.theta])))
    set_line(x, decisions[t])
    decisions[t, d] = w
    keys[t] = key_of(x)
    s.pending += 1.0
    if t == 0:
        s.removed = 0.0
        clear(m[M.pending])
        set_matrix(m[M.inverse], m[M.bonus])
    add_outer(m[M.pending], z, w)
    if s.count == 0.0:  # the scale of arms, before any reward tells it
        set_row(s, v, x, row)
        count_arm(s, v, row, given)
        choose_penalty(s, v, m)
        renew_bonus(s, v, m)
    elif add_row(m[M.bonus], z, w) > STEEP:
        renew_bonus(s, v, m)


@njit(**PART)
def remove_decision(s, v, m, decisions, keys, x):
    """Take a decision on this arm off the pending ones, of several any; whether there is one."""
    d, last, key, t = x.shape[0], int(s.pending) - 1, key_of(x), 0
    while t <= last:
        if keys[t] == key:
            j = 0
            while j < d and decisions[t, j] == x[j]:
                j += 1
            if j == d:
                break
        t += 1
    if t > last:
        return False
    w, z = decisions[t, d], features_of(s, v, x)
    set_line(decisions[last], decisions[t])
    keys[t], keys[last] = keys[last], 0.0
    for j in range(d + 1):
        decisions[last, j] = 0.0
    s.pending -= 1.0
    s.removed += 1.0
    if last == 0:  # nothing is left, not even rounding
        clear(m[M.pending])
        return True
    removed, remaining = w * dot(z, z), 0.0
    for j in range(d + 1):
        remaining += m[M.pending, j, j]
    lost = removed > DROWNED * (remaining - removed)  # the others, in rounding
    if s.removed > 2.0 * last + OFTEN or lost:  # the sum again
        s.removed = 0.0
        sum_pending(s, v, m, decisions)
        renew_bonus(s, v, m)
        return True
    add_outer(m[M.pending], z, -w)
    for j in range(d + 1):
        m[M.pending, j, j] = max(m[M.pending, j, j], 0.0)
    k = np.empty(d + 1)
    h = times(m[M.bonus], z, k)
    if 1.0 - w * h < SOUND or s.removed % OFTEN == 0.0:
        renew_bonus(s, v, m)
    else:
        update_inverse(m[M.bonus], k, h, -w, 1.0)
    return True


@entry(int64(LINE, TABLE, STACK, TABLE, LINE), nogil=False)
def choose(numbers, v, m, arms, index):
    """Set the indices; return the arm of the largest, -1 where several are, or arms are bad."""
    return best_arm(numbers.view(NUMBERS)[0], v, m, arms, index)


@entry(
    int64(LINE, TABLE, STACK, TABLE, LINE, TABLE, PLACES, PLACES, TABLE, int64, float64),
    nogil=False,
)
def choose_many(numbers, v, m, decisions, keys, arms, first, chosen, played, t, w):
    """Choose from offer ``t`` on, and set the arms played; return the offer whose arms tie, or n.

    Offer t has the arms from ``first[t]`` to ``first[t + 1]``. Before it is looked at, the decision
    before it is counted as pending, with weight ``w``; arms must be such that they can be counted.
    """
    s = numbers.view(NUMBERS)[0]
    while t < chosen.shape[0]:
        if t > 0:
            add_decision(s, v, m, decisions, keys, played[t - 1], w)
        offer = arms[first[t] : first[t + 1]]
        k = best_arm(s, v, m, offer, np.empty(offer.shape[0]))
        if k < 0:
            return t
        chosen[t] = k
        set_line(offer[k], played[t])
        t += 1
    return t


@entry(int64(LINE, TABLE, STACK, TABLE, TABLE, LINE, TABLE, TABLE), nogil=False)
def learn(numbers, v, m, rows, decisions, keys, x, rewards):
    """Learn the rewards of the arms in order, and return how many they are.

    Otherwise none is learnt: returns the first that can't be computed with, or -1 where ``rows``
    has no room. ``rewards`` holds each with its standard deviation (for shares 1 over the root of
    trials), and whether it releases a pending decision.
    """
    s = numbers.view(NUMBERS)[0]
    for t in range(x.shape[0]):
        sd = rewards[t, 1]
        if not sd > 0.0 or not fits(s, x[t], rewards[t, 0], 1.0 / (sd * sd)):
            return t
    if rows.shape[0] < min(s.stored + x.shape[0], s.keep_rows):
        return -1
    for t in range(x.shape[0]):
        y, sd = rewards[t, 0], rewards[t, 1]
        y = 0.0 if abs(y) < LEAST_REWARD else y
        learn_reward(s, v, m, rows, decisions, x[t], y, 1.0 / (sd * sd))
        if rewards[t, 2] > 0.0:
            remove_decision(s, v, m, decisions, keys, x[t])
    return x.shape[0]


@entry(int64(LINE, TABLE, STACK, TABLE, LINE, LINE, float64), nogil=False)
def expect(numbers, v, m, decisions, keys, x, w):
    """Count a decision whose reward, of weight ``w``, is pending; 0 where it can't be."""
    s = numbers.view(NUMBERS)[0]
    if not fits(s, x, 0.0, w):
        return 0
    add_decision(s, v, m, decisions, keys, x, w)
    return 1


@entry(int64(LINE, TABLE, STACK, TABLE, LINE, LINE), nogil=False)
def release(numbers, v, m, decisions, keys, x):
    """Take a decision on this arm off the pending ones; 0 where none is."""
    return int(remove_decision(numbers.view(NUMBERS)[0], v, m, decisions, keys, x))
