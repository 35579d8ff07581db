"""The prior of `SelfTunedUCB`, compiled: how strongly coefficients are drawn to 0 and together.

Ridges are chosen by empirical Bayes from what was learnt so far. All plain features have one, times
a scale; each column of blocks has one for the mean of its coefficients over blocks and one for the
differences between them, drawn to the values of all columns together.
"""

import math

import numpy as np
from numba import njit

from ..compiling.compile_options import PART, RARE
from ..matrices.dense import clear
from .self_tuned_contexts import median, shape_of
from .self_tuned_ucb_numbers import GAUSSIAN, M, V

FREE, INTERCEPT_RIDGE = 1e-6, 0.04  # of the intercept: relative, continuous; logistic
ALIKE = math.log(9.0)  # squares of features that differ by less are taken for equal
PRIOR_SHARE, MOST_SHARE = 0.5, 5.0  # what a prior counts: of the coefficients, and at most
TINIEST = 1e-80  # square of a feature, or squared norm of an arm; smaller ones are 0
MOST_RIDGE = 1e30  # over the sum of weighted squares: coefficients are 0 then


@njit(**PART)
def count_arm(s, v, row, w):
    """Count an arm in the mean squared norm of plain features and heads, and each of these.

    Continuous rewards weigh it.
    """
    e, blocks, d = shape_of(s, v.shape[1])
    total = 0.0
    for i in range(e + blocks):
        j = i if i < e else e + (i - e) * (d + 1)
        square = row[i] * row[i]
        v[V.squares, j] += square
        v[V.largest_square, j] = max(v[V.largest_square, j], square)
        total += square
    s.norms += total
    s.weighted_norms += total * (w if s.family == GAUSSIAN else 1.0)
    s.arms += 1.0


@njit(**RARE)
def set_scales(s, v, first, step, count):
    """Set the scale of ``count`` features; return their mean squared norm in units of them.

    A scale is the largest square of a feature over the median of those of all features, drawn
    towards 1 by a factor of 9, and more while arms are few: chance makes such differences. Means in
    place of the largest would be those of the arms that are played most.
    """
    square, seen, n = 0.0, np.int64(0), s.arms
    alike = ALIKE * (1.0 + count / n)  # few arms have small features by chance
    logs = np.empty(count)
    for j in range(first, first + step * count, step):
        if v[V.largest_square, j] > TINIEST:
            logs[seen] = math.log(v[V.largest_square, j])
            seen += 1
    middle = median(logs, seen) if seen > 0 else 0.0
    for j in range(first, first + step * count, step):
        v[V.scale, j] = 1.0
        if v[V.largest_square, j] > TINIEST:
            away = math.log(v[V.largest_square, j]) - middle
            v[V.scale, j] = math.exp(math.copysign(max(abs(away) - alike, 0.0), away))
            square += v[V.squares, j] / v[V.scale, j]
    return square / n


@njit(**RARE)
def choose_plain(s, v, m, e, phi, variance, usual, early):
    """Set the ridge of plain features, ``early`` from their size alone."""
    trace, size, share = 0.0, 0.0, min(PRIOR_SHARE * e, MOST_SHARE)
    for i in range(e):
        trace += v[V.scale, i] * m[M.inverse, i, i]
    square = set_scales(s, v, np.int64(0), np.int64(1), e)  # no literals: one kernel serves
    if not square > 0.0:
        return
    for i in range(e):
        size += v[V.scale, i] * v[V.theta, i] * v[V.theta, i]
    ridge = square * usual
    if not early:
        gamma = max(e - s.plain_ridge * trace, 0.0)
        ridge = phi * (gamma + share) / (size + share * variance / square)
        ridge = min(ridge, MOST_RIDGE * s.weights * square)
    s.plain_ridge = ridge


@njit(**RARE)
def choose_blocks(s, v, m, e, blocks, d, phi, variance, usual, early):
    """Set the ridges of each column of blocks: of differences, and of the mean.

    The prior variance counts one, that of all columns together for all but the first.
    """
    p, shared = d + 1, s.shared > 0.0
    P, theta, apart, together = m[M.inverse], v[V.theta], v[V.apart], v[V.together]
    traces, sizes = np.empty((2, p)), np.empty((2, p))
    for j in range(p):
        trace = size = total = across = 0.0
        for i in range(blocks):
            k, scale = e + i * p + j, v[V.scale, e + i * p]
            trace += scale * P[k, k]
            size += scale * theta[k] * theta[k]
            total += theta[k]
            for other in range(blocks):
                across += P[k, e + other * p + j] / blocks
        if shared:
            total = across = 0.0
        traces[0, j], traces[1, j] = trace - across, across
        sizes[1, j] = total * total / blocks
        sizes[0, j] = max(size - sizes[1, j], 0.0)
    square = set_scales(s, v, e, p, blocks)
    if not square > 0.0:
        return
    for j in range(p if early else 0):
        apart[j] = together[j] = p * square * usual
    most, free = MOST_RIDGE * s.weights * square, blocks - (0.0 if shared else 1.0)
    for level in range(0 if early else 2):
        ridges, count = (apart, free) if level == 0 else (together, 1.0)
        share, gamma, size = min(PRIOR_SHARE * d * count, MOST_SHARE), 0.0, 0.0
        for j in range(1, p):
            gamma += count - ridges[j] * traces[level, j]
            size += sizes[level, j]
        common = (size + share * variance / (p * square)) / (max(gamma, 0.0) + share)
        for j in range(p):
            prior = common if j > 0 else variance / square
            known = max(count - ridges[j] * traces[level, j], 0.0) + 1.0
            ridges[j] = min(phi * known / (sizes[level, j] + prior), most)
    together[0] = s.intercept_ridge


@njit(**RARE)
def set_penalty(s, v, m, e, blocks, d):
    """Set R from the ridges."""
    R, D, p = m[M.penalty], v.shape[1], d + 1
    clear(R)
    for j in range(e):
        R[j, j] = s.plain_ridge * v[V.scale, j]
    for j in range(p if blocks > 0 else 0):
        more = 0.0 if s.shared > 0.0 else (v[V.together, j] - v[V.apart, j]) / blocks
        for i in range(blocks):
            k = e + i * p + j
            for other in range(blocks if more != 0.0 else 0):
                R[k, e + other * p + j] = more
            R[k, k] = more + v[V.apart, j] * v[V.scale, e + i * p]
    R[D - 1, D - 1] = s.intercept_ridge


@njit(**RARE)
def choose_penalty(s, v, m):
    """Choose all ridges by empirical Bayes, and set the penalty."""
    n, phi, variance = s.count, 1.0, 1.0
    e, blocks, d = shape_of(s, v.shape[1])
    if s.family == GAUSSIAN:
        phi, variance = s.dispersion, s.squares / max(n - 1.0, 1.0)
    else:
        s.intercept_ridge = INTERCEPT_RIDGE
    early = n <= 1.0 or not (phi > 0.0 and variance > 0.0)
    if s.norms > TINIEST * s.arms:
        usual = s.weighted_norms / s.norms
        if s.family == GAUSSIAN:
            most = MOST_RIDGE * s.weights
            s.intercept_ridge = FREE * usual if early else min(FREE * phi / variance, most)
        if e > 0:
            choose_plain(s, v, m, e, phi, variance, usual, early)
        if blocks > 0:
            choose_blocks(s, v, m, e, blocks, d, phi, variance, usual, early)
    set_penalty(s, v, m, e, blocks, d)
