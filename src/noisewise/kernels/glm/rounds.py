"""One round of anchored Newton, and the places of things in the memory of a learner.

All rows are linearised at the anchor m. With P the inverse of H, u = -P g and r, c the residual and
curvature of the new row at m, a round is one recursive-least-squares update of (u, P). The rank-one
change of P stays pending and is applied in the next round's product with x: P is swept once.

``s`` are the numbers of a learner, and all else in its array ``a`` is named by its place, since a
view costs more than a small sweep; places are unsigned, since a signed one would be tested for
wrapping around.
"""

import math

import numpy as np
from numba import njit

from ..compiling.compile_options import INNER
from ..matrices.vectors import advance, sweep
from . import adaptive_set, certificate, layout
from .layout import GRADIENT, SLOTS, STEP, VECTORS
from .link_values import extended

BUFFER = np.uint64(layout.BUFFER)
NUMBERS, COUNT, HEADER = layout.NUMBERS, layout.COUNT, np.uint64(layout.HEADER)
inline = njit(**INNER)
chord, certify = inline(adaptive_set.chord), inline(certificate.certify)
note_row = inline(certificate.note_row)
note_label, calibrate = inline(certificate.note_label), inline(certificate.calibrate)
still_serves, finished = inline(certificate.still_serves), inline(certificate.finished)


@njit(**INNER)
def numbers_of(a):
    """Return the numbers of a learner."""
    return a[:COUNT].view(NUMBERS)[0]


@njit(**INNER)
def place(s, vector):
    """Return where a vector begins; from ``VECTORS`` on they are the rows of the inverse."""
    return HEADER + np.uint64(vector) * np.uint64(s.padded)


@njit(**INNER)
def vector(s, a, which):
    """Return a vector: a view."""
    first = place(s, which)
    return a[first : first + np.uint64(s.dim)]


@njit(**INNER)
def buffered(s, row):
    """Return where a row of the buffer begins; behind the last one are their numbers."""
    return place(s, VECTORS + s.padded + row)


@njit(**INNER)
def multiply(s, a, v):
    """Apply the pending change to the inverse P, and multiply it with the vector v; return v'Pv.

    The product takes the other slot, which is that of the next change.
    """
    old, new = place(s, SLOTS + s.slot), place(s, SLOTS + 1.0 - s.slot)
    P, pending = place(s, VECTORS), s.pending
    s.slot, s.pending = 1.0 - s.slot, 0.0
    (form,) = sweep(a, np.uint64(s.dim), np.uint64(s.padded), P, old, v, new, -pending)
    return form


@njit(**INNER)
def change(s, a, row, r, c, xu):
    """Change estimate and inverse for the row that lies at ``row``, of residual r and curvature c.

    Returns the row's leverage before, g.u and u.u.
    """
    d, k = np.uint64(s.dim), place(s, SLOTS + 1.0 - s.slot)
    u, g = place(s, STEP), place(s, GRADIENT)
    q = multiply(s, a, row)
    shrink = 1.0 / (1.0 + c * q)
    slope_u, length2 = advance(a, d, u, k, g, row, -(r + c * xu) * shrink, r)
    s.pending = c * shrink
    return q, slope_u, length2


@njit(**INNER)
def add(s, a, row, xm, xu, xx, w, pull):
    """Learn the row that lies at ``row``, of weight w and weighted label ``pull``; certify.

    Its products with anchor, step and itself are known. Returns its curvature, and what it adds to
    F at the anchor.
    """
    mean, slope, potential, bend = extended(np.int64(s.code), s.bound, xm)
    r, c = w * mean - pull, w * slope
    q, slope_u, length2 = change(s, a, row, r, c, xu)
    note_row(s, r, pull, c, q, xx)
    due = s.due
    s.skew = max(s.skew, bend)
    s.step_norm = math.sqrt(max(-slope_u, 0.0))
    certify(s, length2, chord)
    s.due = max(s.due, due)  # what the row has made due stays so
    return c, w * potential - pull * xm
