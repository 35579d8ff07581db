"""The restart of `SelfTunedUCB`, compiled: rewards of before the change are dropped."""

import math

import numpy as np
from numba import njit

from ..compiling.compile_options import RARE
from ..matrices.dense import clear, dot, invert, set_line
from .change_evidence import forget_residuals
from .self_tuned_contexts import set_features
from .self_tuned_history import drop_rows
from .self_tuned_learner import lasting, learn_row, log_likelihood
from .self_tuned_noise import count_noise, dispersion, largest_residual, trusted
from .self_tuned_ucb_numbers import BINOMIAL, M, V

REMEMBERED = 50.0  # residuals of before that count at most


@njit(**RARE)
def first_after_change(s, v, rows):
    """Return the row from which on the forgetting learner is likeliest against the other."""
    n, at_reward = int(s.stored), rows.shape[1] - 3
    best, total, first, z = -math.inf, 0.0, n, np.empty(v.shape[1])
    for t in range(n - 1, -1, -1):
        set_features(s, v, rows[t], z)
        y, w = rows[t, at_reward], rows[t, at_reward + 1]
        old, new = dot(z, v[V.theta]), dot(z, v[V.recent_theta])
        r, recent = y - old, y - new
        if s.family == BINOMIAL:
            total += log_likelihood(new, y, w) - log_likelihood(old, y, w)
        else:
            scale = 2.0 * s.dispersion / trusted(w, s.typical_weight, s.distrust)
            total += 1.5 * (math.log1p(r * r / scale) - math.log1p(recent * recent / scale))
        if total > best:
            best, first = total, t
    return first


@njit(**RARE)
def learn_again(s, v, m, rows):
    """Learn the rows one by one, from the start; older residuals count a little."""
    D, at_reward, learner = v.shape[1], rows.shape[1] - 3, lasting(v, m)
    z, k, share = np.empty(D), np.empty(D), REMEMBERED / max(s.residual_count, REMEMBERED)
    s.residuals *= share
    s.residual_count *= share
    share = min(D / s.novelty, 1.0)
    s.novel_residuals *= share
    s.novelty *= share
    s.information = 0.0
    for i in range(D):
        learner.theta[i] = learner.moment[i] = 0.0
    for place in (M.gram, M.noise, M.sandwich):
        clear(m[place])
    invert(learner.gram, m[M.penalty], learner.inverse)
    for t in range(int(s.stored)):
        set_features(s, v, rows[t], z)
        y, w = rows[t, at_reward], trusted(rows[t, at_reward + 1], s.typical_weight, s.distrust)
        most = largest_residual(s) if t > 0 else math.inf
        _, q, square, c = learn_row(learner, s.family, z, k, y, w, 1.0, most)
        rows[t, at_reward + 2] = c / w
        s.information += c
        count_noise(s, m, z, k, q, c, square)
    s.dispersion = dispersion(s)


@njit(**RARE)
def restart(s, v, m, rows):
    """Drop rewards of before the change, condensed ones too; the ridge is then renewed.

    Continuous rewards are learnt again; renewal solves for shares.
    """
    s.evidence = s.since_restart = s.condensed = s.condensed_information = 0.0
    clear(m[M.condensed_gram])
    for i in range(v.shape[1]):
        v[V.condensed_moment, i] = 0.0
    forget_residuals(s)
    s.restarts += 1.0
    s.last_restart = s.count
    drop_rows(s, rows, first_after_change(s, v, rows))
    if s.family == BINOMIAL:
        set_line(v[V.recent_theta], v[V.theta])
    else:
        learn_again(s, v, m, rows)
