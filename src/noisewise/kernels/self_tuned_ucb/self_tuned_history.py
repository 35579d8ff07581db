"""The history of `SelfTunedUCB`, compiled: rewards since the last change, and solving for them.

A row holds an arm as `self_tuned_contexts` says, reward, weight as given (for shares the trials),
and the share of that which counts. Units, ridges and estimates are renewed whenever the history has
grown by a tenth; where it is full, its older half is condensed to sums.
"""

import math

import numpy as np
from numba import njit

from ..compiling.compile_options import PART, RARE
from ..matrices.dense import add_outer, clear, dot, invert, set_line, set_matrix, symmetrise, times
from .self_tuned_contexts import features_of, renew_units, set_features
from .self_tuned_learner import (
    RENEWALS,
    age_weight,
    forgetting,
    lasting,
    log_likelihood,
    sigmoid,
    slope,
    solve,
)
from .self_tuned_noise import dispersion, distrust, renew_noise, trusted
from .self_tuned_prior import choose_penalty
from .self_tuned_ucb_numbers import BINOMIAL, GAUSSIAN, M, V

GROWTH = 1.1  # of rewards since the last change, before units and ridges are chosen again
PASSES, ENOUGH = 30, 1e-4  # Newton's method: at most; and the squared step in standard errors


@njit(**PART)
def store(s, rows, row, y, w, share):
    """Add a row."""
    t, at_reward = int(s.stored), rows.shape[1] - 3
    for j in range(at_reward):
        rows[t, j] = row[j]
    rows[t, at_reward], rows[t, at_reward + 1], rows[t, at_reward + 2] = y, w, share
    s.stored += 1.0


@njit(**RARE)
def drop_rows(s, rows, first):
    """Drop the rows before ``first``."""
    n, kept = int(s.stored), int(s.stored) - first
    for t in range(n):
        for j in range(rows.shape[1]):
            rows[t, j] = rows[first + t, j] if t < kept else 0.0
    s.stored = kept


@njit(**PART)
def add_rows(s, v, rows, n, typical, b, G, moment):
    """Add the first ``n`` rows, shares at the estimate, to G and the moments.

    Returns W, the loss, and the latter with weights as they were, in place of `trusted` by
    ``typical`` and b.
    """
    D, at_reward, theta = v.shape[1], rows.shape[1] - 3, v[V.theta]
    z, total, loss, before = np.empty(D), 0.0, 0.0, 0.0
    for t in range(n):
        set_features(s, v, rows[t], z)
        y, given, share = rows[t, at_reward], rows[t, at_reward + 1], rows[t, at_reward + 2]
        score = dot(z, theta)
        if s.family == BINOMIAL:
            p = sigmoid(score)
            trials = given * age_weight(s, t)
            c = trials * slope(p)
            cy = c * score - trials * (p - y)
            loss -= log_likelihood(score, y, trials)
        else:
            r = y - score
            share *= age_weight(s, t)
            c = trusted(given, typical, b) * share
            cy = c * y
            loss += c * r * r
            before += trusted(given, s.typical_weight, s.distrust) * share * r * r
        total += c
        for i in range(D):
            moment[i] += cy * z[i]
            if z[i] != 0.0:  # most features may be
                cz = c * z[i]
                for j in range(i + 1):
                    G[i, j] += cz * z[j]
    symmetrise(G)
    return total, loss, before


@njit(**RARE)
def sum_history(s, v, m, rows, typical, b):
    """Set W, G and the moments to those of condensed rows and rows; return what `add_rows` does."""
    set_matrix(m[M.condensed_gram], m[M.gram])
    set_line(v[V.condensed_moment], v[V.moment])
    n = int(s.stored)
    total, loss, before = add_rows(s, v, rows, n, typical, b, m[M.gram], v[V.moment])
    s.information = s.condensed_information + total
    return loss, before


@njit(**RARE)
def weigh_again(s, v, m, rows):
    """Sum continuous rewards in current units, weighed by what is known of the given sds."""
    typical, b = math.exp(s.log_weights / s.count), distrust(s)
    after, before = sum_history(s, v, m, rows, typical, b)
    s.typical_weight, s.distrust = typical, b
    if before > 0.0 and s.stored > v.shape[1]:  # residuals, in units of the new weights
        s.residuals *= after / before
        s.novel_residuals *= after / before
        s.dispersion = dispersion(s)


@njit(**RARE)
def solve_shares(s, v, m, rows):
    """Minimise the penalised loss of shares by Newton's method, steps halved where due."""
    theta, moment, G, P = lasting(v, m)
    D = theta.shape[0]
    g, Gtheta, step = np.empty(D), np.empty(D), np.empty(D)
    best, scale = math.inf, 1.0
    for _ in range(PASSES):
        loss, _ = sum_history(s, v, m, rows, s.typical_weight, s.distrust)
        loss += 0.5 * times(m[M.condensed_gram], theta, g) - dot(v[V.condensed_moment], theta)
        loss += 0.5 * times(m[M.penalty], theta, g)
        if loss > best + 1e-9 * abs(best) and scale > 1e-3:
            scale *= 0.5
            for i in range(D):
                theta[i] += scale * step[i]
            continue
        best, scale = loss, 1.0
        times(G, theta, Gtheta)
        for i in range(D):
            g[i] += Gtheta[i] - moment[i]
        invert(G, m[M.penalty], P)
        decrement = times(P, g, step)
        for i in range(D):
            theta[i] -= step[i]
        if decrement < ENOUGH:
            break


@njit(**RARE)
def sum_pending(s, v, m, decisions):
    """Sum the pending decisions, weighted, in current units."""
    d = v.shape[1] - 1
    clear(m[M.pending])
    for t in range(int(s.pending)):
        add_outer(m[M.pending], features_of(s, v, decisions[t]), decisions[t, d])


@njit(**RARE)
def renew_bonus(s, v, m):
    """Invert the matrix that counts pending decisions."""
    if s.pending > 0.0:
        B = m[M.bonus]
        for i in range(B.shape[0]):
            for j in range(B.shape[0]):
                B[i, j] = m[M.gram, i, j] + m[M.pending, i, j]
        invert(B, m[M.penalty], B)


@njit(**RARE)
def renew_recent(s, v, m):
    """Solve for the learner that forgets, whose ridge fades otherwise."""
    s.recent_rows = 0.0
    solve(forgetting(v, m), m[M.penalty])


@njit(**RARE)
def renew(s, v, m, rows, decisions):
    """Choose units and ridges again, and solve for them.

    Coefficients say how large they are in the units that they were learnt in.
    """
    theta = v[V.theta].copy()
    renew_units(s, v, m, rows)
    if s.family == GAUSSIAN and s.stored > 0.0 and (s.sds_given > 0.0 or s.context > 0.0):
        weigh_again(s, v, m, rows)
    set_line(theta, v[V.theta])
    choose_penalty(s, v, m)
    if s.family == BINOMIAL:
        solve_shares(s, v, m, rows)
    else:
        solve(lasting(v, m), m[M.penalty])
        if s.sds_given == 0.0:
            renew_noise(m)
    if s.context > 0.0:
        sum_pending(s, v, m, decisions)
        renew_recent(s, v, m)
    renew_bonus(s, v, m)
    n = s.stored + s.condensed
    due = max(1.0, math.ceil(GROWTH * n) - n)
    if s.forget_after > 0.0:
        due = min(due, math.ceil(s.forget_after / RENEWALS))
    s.next_renewal = s.count + due


@njit(**RARE)
def condense(s, v, m, rows, decisions):
    """Replace the older half of the history by its sums, those of shares at the estimate."""
    if s.family == BINOMIAL:
        renew(s, v, m, rows, decisions)
    n = int(s.stored) - int(s.stored) // 2
    s.condensed_information += add_rows(
        s, v, rows, n, s.typical_weight, s.distrust, m[M.condensed_gram], v[V.condensed_moment]
    )[0]
    s.condensed += n
    drop_rows(s, rows, n)
