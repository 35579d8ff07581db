"""The restart of `SelfTunedUCB`, compiled: rewards of before the change are dropped."""

import math

import numpy as np
from numba import njit

from . import self_tuned_ucb_layout as at
from .change_evidence import forget_residuals
from .compile_options import PART
from .dense import clear, invert, set_line
from .self_tuned_contexts import set_features
from .self_tuned_learning import (
    OUTLIER,
    TRUSTING,
    dispersion,
    drop_rows,
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
    n, at_reward = int(s[at.STORED]), rows.shape[1] - 3
    best, total, first, z = -math.inf, 0.0, n, np.empty(v.shape[1])
    for t in range(n - 1, -1, -1):
        set_features(s, v, rows[t], z)
        y, w = rows[t, at_reward], rows[t, at_reward + 1]
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
def learn_again(s, v, m, rows):
    """Learn the rows one by one, from the start; older residuals count a little."""
    D, at_reward = v.shape[1], rows.shape[1] - 3
    z, k, share = np.empty(D), np.empty(D), REMEMBERED / max(s[at.RESIDUAL_COUNT], REMEMBERED)
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
    invert(m[at.GRAM], m[at.PENALTY], m[at.INVERSE])
    for t in range(int(s[at.STORED])):
        set_features(s, v, rows[t], z)
        y, w = rows[t, at_reward], trusted(rows[t, at_reward + 1], s[at.TYPICAL], s[at.DISTRUST])
        trusting = s[at.RESIDUAL_COUNT] < TRUSTING or t == 0
        most = math.inf if trusting else OUTLIER * dispersion(s)
        _, q, square, u = learn_gaussian(
            m[at.INVERSE], v[at.THETA], m[at.GRAM], v[at.MOMENT], z, k, y, w, 1.0, most
        )
        rows[t, at_reward + 2] = u / w
        s[at.WEIGHT] += u
        s[at.RESIDUALS] += square
        s[at.RESIDUAL_COUNT] += 1.0
        if s[at.GIVEN] == 0.0:
            count_noise(m, z, k, q, u, square)
    s[at.DISPERSION] = dispersion(s)


@njit(**PART)
def drop_before_change(s, v, m, rows, family):
    """Count a restart, and drop the rows of before the change, condensed ones too."""
    s[at.EVIDENCE] = s[at.SINCE] = s[at.CONDENSED] = s[at.OLD_WEIGHT] = 0.0
    clear(m[at.OLD_GRAM])
    for i in range(v.shape[1]):
        v[at.OLD_MOMENT, i] = 0.0
    forget_residuals(s)
    s[at.RESTARTS] += 1.0
    s[at.LAST_RESTART] = s[at.COUNT]
    drop_rows(s, rows, first_after_change(s, v, rows, family))


@njit(**PART)
def restart_gaussian(s, v, m, rows):
    """Learn continuous rewards again, from those since the change; the ridge is then renewed."""
    drop_before_change(s, v, m, rows, at.GAUSSIAN)
    learn_again(s, v, m, rows)


@njit(**PART)
def restart_binomial(s, v, m, rows):
    """Drop shares of before the change; the ridge is then renewed, which solves for the others."""
    drop_before_change(s, v, m, rows, at.BINOMIAL)
    set_line(v[at.RECENT_THETA], v[at.THETA])
