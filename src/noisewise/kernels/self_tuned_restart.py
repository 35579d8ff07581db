"""The restart of `SelfTunedUCB`, compiled: rewards of before the change are dropped."""

import math

import numpy as np
from numba import njit

from . import self_tuned_ucb_layout as at
from .change_evidence import forget_residuals
from .compile_options import PART
from .dense import invert, set_line
from .self_tuned_learning import (
    OUTLIER,
    TRUSTING,
    dispersion,
    learn_gaussian,
    log_likelihood,
    product,
    trusted,
)
from .self_tuned_noise import count_noise

REMEMBERED = 50.0  # residuals of before that count at most


@njit(**PART)
def first_after_change(s, v, rows, family):
    """Return the row from which on the forgetting learner is likeliest against the other."""
    D, n = v.shape[1], int(s[at.STORED])
    best, total, first, z = -math.inf, 0.0, n, np.ones(D)
    for t in range(n - 1, -1, -1):
        for j in range(D - 1):
            z[j] = rows[t, j]
        y, w = rows[t, D - 1], rows[t, D]
        old, new = product(z, v[at.THETA]), product(z, v[at.RECENT_THETA])
        if family == at.BINOMIAL:
            total += log_likelihood(new, y, w) - log_likelihood(old, y, w)
        else:
            scale = 2.0 * s[at.DISPERSION] / trusted(w, s[at.TYPICAL], s[at.DISTRUST])
            total += 1.5 * (math.log1p((y - old) ** 2 / scale) - math.log1p((y - new) ** 2 / scale))
        if total > best:
            best, first = total, t
    return first


@njit(**PART)
def drop_rows(s, rows, first):
    """Drop the rows before ``first``."""
    n, kept = int(s[at.STORED]), int(s[at.STORED]) - first
    for t in range(n):
        for j in range(rows.shape[1]):
            rows[t, j] = rows[first + t, j] if t < kept else 0.0
    s[at.STORED] = kept


@njit(**PART)
def learn_again(s, v, m, rows):
    """Learn the rows one by one, from the start; older residuals count a little."""
    D = v.shape[1]
    z, k, share = np.ones(D), np.empty(D), REMEMBERED / max(s[at.RESIDUAL_COUNT], REMEMBERED)
    s[at.RESIDUALS] *= share
    s[at.RESIDUAL_COUNT] *= share
    share = D / max(s[at.NOVELTY], D)
    s[at.NOVEL_RESIDUALS] *= share
    s[at.NOVELTY] *= share
    s[at.WEIGHT] = 0.0
    for i in range(D):
        v[at.THETA, i] = v[at.MOMENT, i] = 0.0
        for j in range(D):
            m[at.GRAM, i, j] = m[at.NOISE, i, j] = m[at.SANDWICH, i, j] = 0.0
    invert(m[at.GRAM], s[at.RIDGE], v[at.SCALE], s[at.INTERCEPT], m[at.INVERSE])
    for t in range(int(s[at.STORED])):
        for j in range(D - 1):
            z[j] = rows[t, j]
        w = trusted(rows[t, D], s[at.TYPICAL], s[at.DISTRUST])
        trusting = s[at.RESIDUAL_COUNT] < TRUSTING or t == 0
        most = math.inf if trusting else OUTLIER * dispersion(s)
        _, q, square, u = learn_gaussian(
            m[at.INVERSE], v[at.THETA], m[at.GRAM], v[at.MOMENT], z, k, rows[t, D - 1], w, 1.0, most
        )
        rows[t, D + 1] = u / w
        s[at.WEIGHT] += u
        s[at.RESIDUALS] += square
        s[at.RESIDUAL_COUNT] += 1.0
        if s[at.GIVEN] == 0.0:
            count_noise(m, z, k, q, u, square)
    s[at.DISPERSION] = dispersion(s)


@njit(**PART)
def drop_before_change(s, v, rows, family):
    """Count a restart, and drop the rows of before the change."""
    s[at.EVIDENCE] = s[at.SINCE] = 0.0
    forget_residuals(s)
    s[at.RESTARTS] += 1.0
    s[at.LAST_RESTART] = s[at.COUNT]
    drop_rows(s, rows, first_after_change(s, v, rows, family))


@njit(**PART)
def restart_gaussian(s, v, m, rows):
    """Learn continuous rewards again, from those since the change; the ridge is then renewed."""
    drop_before_change(s, v, rows, at.GAUSSIAN)
    learn_again(s, v, m, rows)


@njit(**PART)
def restart_binomial(s, v, rows):
    """Drop shares of before the change; the ridge is then renewed, which solves for the others."""
    drop_before_change(s, v, rows, at.BINOMIAL)
    set_line(v[at.RECENT_THETA], v[at.THETA])
