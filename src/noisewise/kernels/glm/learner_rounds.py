"""A loop over rows of a history, for each of its learners."""

import numpy as np
from numba import boolean, int64, void

from ..compiling.compile_options import entry
from ..matrices.vectors import ZERO, copy_and_dot
from .history_passes import Rows, begin_again, refresh
from .layout import ANCHOR, FINE, ROW, STEP, UNIT
from .rounds import add, numbers_of, place


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
        row, unit, m, u = place(s, ROW), place(s, UNIT), place(s, ANCHOR), place(s, STEP)
        if again:
            begin_again(s, a, X, labels, curvature[e], first, True)
        for t in range(first, last):
            xm, xu, xx = copy_and_dot(a, X[t], np.uint64(d), ZERO, row, unit, m, u)
            curvature[e, t], value = add(s, a, row, xm, xu, xx, labels[0, t], labels[1, t])
            s.value += value
            scores[e, t - first] = xm + xu
            if s.due != FINE:
                refresh(s, a, X, labels, curvature[e], t + 1, False)
                s.due = FINE
