"""What rounds of all learners share: the places of things in memory, and how a row is learnt.

``s`` are the numbers of a learner and ``offsets`` the places of all else in its array ``a``, since
a view costs more than a small sweep; they are unsigned, since a signed one would be tested for
wrapping around.
"""

import math

import numpy as np
from numba import njit

from . import adaptive_set, certificate, layout
from .compile_options import INNER
from .vectors import advance, sweep

BUFFER = np.uint64(layout.BUFFER)
NUMBERS, COUNT = layout.NUMBERS, layout.COUNT
inline = njit(**INNER)
chord, offsets = inline(adaptive_set.chord), inline(layout.offsets)
certify, note_row = inline(certificate.certify), inline(certificate.note_row)
note_label, calibrate = inline(certificate.note_label), inline(certificate.calibrate)
still_serves, finished = inline(certificate.still_serves), inline(certificate.finished)


@njit(**INNER)
def numbers_of(a):
    """Return the numbers of a learner."""
    return a[:COUNT].view(NUMBERS)[0]


@njit(**INNER)
def change(s, a, row, r, c, xu):
    """Change estimate and inverse for the row that lies at ``row``, of residual r and curvature c.

    Returns the row's leverage before, g.u and u.u.
    """
    at, d = offsets(s), np.uint64(s.dim)
    (q,) = sweep(a, d, at.width, at.inverse, at.pending, row, at.fresh, -s.pending)
    shrink = 1.0 / (1.0 + c * q)
    move = -(r + c * xu) * shrink
    slope_u, length2 = advance(a, d, at.step, at.fresh, at.gradient, row, move, r)
    s.pending = c * shrink
    s.slot = 1.0 - s.slot
    return q, slope_u, length2


@njit(**INNER)
def finish(s, bend, slope_u, length2):
    """Certify the estimate after a row; what the row has made due stays so."""
    due = s.due
    s.skew = max(s.skew, bend)
    s.step_norm = math.sqrt(max(-slope_u, 0.0))
    certify(s, length2, chord)
    s.due = max(s.due, due)
