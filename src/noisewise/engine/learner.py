"""One round of anchored Newton in coordinates of the learner, for each learner of a history.

All rows are linearised at the anchor m. With P the inverse of H, u = -P g and r, c the residual and
curvature of the new row at m, a round is one recursive-least-squares update of (u, P). The rank-one
change of P stays pending and is applied in the next round's product with x: P is swept once.
"""

import numpy as np
from numba import boolean, int64, njit, void

from ..kernels.compile_options import PART, entry
from ..kernels.layout import ANCHOR, FINE, ROW, STEP, UNIT
from ..kernels.links import extended
from ..kernels.rounds import change, finish, note_row, numbers_of
from .passes import Rows, begin_again, place, refresh


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
    c, r = w * slope, w * mean - pull
    q, slope_u, length2 = change(s, a, np.uint64(place(ROW, d)), r, c, xu)
    note_row(s, r, pull, c, q, xx)
    s.value += w * potential - pull * xm
    finish(s, bend, slope_u, length2)
    return xm + xu, c


@entry(void(Rows, Rows, Rows, Rows, int64, int64, Rows, boolean))
def learn(memory, X, labels, curvature, first, last, scores, again):
    """Learn rows of the history from ``first`` to ``last``; set the score of each before.

    What learners know of the rows before may be computed ``again``, from their anchors, units and
    ridges: with two kernels for these the parts of both would be compiled twice.
    """
    d = X.shape[1]
    for e in range(memory.shape[0]):
        a = memory[e]
        s = numbers_of(a)
        if again:
            begin_again(s, a, d, X, labels, curvature[e], first, True)
        for t in range(first, last):
            scores[e, t - first], curvature[e, t] = add(s, a, d, X[t], labels[0, t], labels[1, t])
            if s.due != FINE:
                refresh(s, a, d, X, labels, curvature[e], t + 1, False)
                s.due = FINE
