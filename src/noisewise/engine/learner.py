"""One round of anchored Newton in coordinates of the learner, for each learner of a history.

All rows are linearised at the anchor m. With P the inverse of H, u = -P g and r, c the residual and
curvature of the new row at m, a round is one recursive-least-squares update of (u, P). The rank-one
change of P stays pending and is applied in the next round's product with x: P is swept once.
"""

import math

import numpy as np
from numba import int64, njit, void

from ..kernels.anchor import certify, chord
from ..kernels.compile_options import PART, entry
from ..kernels.links import extended
from ..kernels.vectors import advance, sweep
from .numbers import ANCHOR, GRADIENT, ROW, SLOTS, STEP, UNIT, VECTORS
from .passes import Rows, numbers, place, refresh

CANCELS = 1e6  # an update that loses that many digits of the inverse has it renewed


@njit(**PART)
def look(a, d, x):
    """Copy a row, in the learner's coordinates; return its products with m, u and itself."""
    row, unit, m, u = place(ROW, d), place(UNIT, d), place(ANCHOR, d), place(STEP, d)
    xm = xu = xx = 0.0
    for j in range(d):
        v = x[j] * a[unit + j]
        a[row + j] = v
        xm += v * a[m + j]
        xu += v * a[u + j]
        xx += v * v
    return xm, xu, xx


@njit(**PART)
def add(s, a, d, x, w, pull):
    """Learn a row of weight w and weighted label ``pull``; return score before and curvature."""
    xm, xu, xx = look(a, d, x)
    mean, slope, potential, bend = extended(np.int64(s.code), s.bound, xm)
    D, n = np.uint64(d), np.uint64((d + 7) // 8 * 8)
    old, row = np.uint64(place(SLOTS + int(s.slot), d)), np.uint64(place(ROW, d))
    new = np.uint64(place(SLOTS + 1 - int(s.slot), d))
    (q,) = sweep(a, D, n, np.uint64(place(VECTORS, d)), old, row, new, -s.pending)
    c, r = w * slope, w * mean - pull
    shrink = 1.0 / (1.0 + c * q)
    u, g = np.uint64(place(STEP, d)), np.uint64(place(GRADIENT, d))
    slope_u, length2 = advance(a, D, u, new, g, row, -(r + c * xu) * shrink, r)
    s.pending, s.slot = c * shrink, 1.0 - s.slot
    s.count += 1.0
    length = math.sqrt(xx)
    s.leverage, s.longest = max(s.leverage, q), max(s.longest, length)
    s.total += length * (abs(r) + abs(pull))
    s.curved += c * xx
    s.value += w * potential - pull * xm
    s.skew = max(s.skew, bend)
    s.step_norm = math.sqrt(max(-slope_u, 0.0))
    certify(s, length2, chord)
    if c * q > CANCELS or s.count == 2.0 * d or s.count == 4.0 * d:
        s.cancelled = 1.0
    return xm + xu, c


@entry(void(Rows, Rows, Rows, Rows, int64, int64, Rows))
def learn(memory, X, labels, curvature, first, last, scores):
    """Learn rows of the history from ``first`` to ``last``; set the score of each before."""
    d = X.shape[1]
    for e in range(memory.shape[0]):
        a = memory[e]
        s = numbers(a)
        for t in range(first, last):
            scores[e, t - first], curvature[e, t] = add(s, a, d, X[t], labels[0, t], labels[1, t])
            if s.due != 0.0 or s.cancelled != 0.0:
                refresh(s, a, d, X, labels, curvature[e], t + 1, False)
