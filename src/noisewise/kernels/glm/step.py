"""Rows of one learner, in a buffer: a single one, and a loop over many."""

import math

import numpy as np
from numba import errors, float64, int64, njit

from ..compiling.compile_options import INNER, PART, Borrowed, borrow, entry
from ..matrices.dense import dot
from ..matrices.vectors import THREE, TWO, ZERO, copy_and_dot
from . import layout
from .layout import ANCHOR, STEP, UNIT
from .link_values import CHUNK, MEAN, POTENTIAL, SCRATCH, SLOPE, extended, set_parts, within
from .rounds import BUFFER, add, buffered, change, note_label, note_row, numbers_of, place

# what calling a kernel raises, before it runs, where an argument is not of its type
UNFIT = (TypeError, ValueError, OverflowError, errors.NumbaError)
LARGEST = layout.LARGEST
ROW, REAL = Borrowed(float64[::1]), Borrowed(float64)  # what `step` takes


@njit(**INNER)
def add_linear(s, a, row, xu, xx, y, w):
    """Learn the row that lies at ``row``, of score xu; the identity link needs no certificate."""
    r = -w * y  # at the anchor, which is 0
    q, _, _ = change(s, a, row, r, w, xu)
    note_row(s, r, w * y, w, q, xx)
    # what the played score costs above the minimum: half (y-z)^2 w^2 h, and clipping
    inside = min(max(xu, -s.bound), s.bound)
    s.played += 0.5 * w * (y - xu) * (y - xu) * q * s.pending
    s.played += w * (inside - xu) * (0.5 * (inside + xu) - y)
    if w != 1.0:  # the buffer keeps sqrt(w) x, all that the Gram matrix needs
        root = math.sqrt(w)
        for j in range(np.uint64(s.dim)):
            a[row + j] *= root


@njit(**INNER)
def play(code, S, z, y, w):
    """Return the mean at a score, within its range, and the loss at the clipped score."""
    inside = min(max(z, -S), S)
    mean, slope, potential, _ = extended(code, S, inside)
    return within(code, mean + slope * (z - inside)), w * (potential - y * inside)


@njit(**INNER)
def fits(square, y, w, limit):
    """Whether a row of this squared length can be learnt; squares of such sizes do not overflow."""
    size = w * (square + abs(y)) * (1.0 + square)
    # written so that NaN fails each comparison
    return square <= limit and w >= 0.0 and abs(y) <= LARGEST and size <= LARGEST


@njit(**INNER)
def learn(s, a, x, x0, y, w, limit, later):
    """Check a row, predict, learn; return whether that was done, score and mean.

    What only sums need of a curved link is left out if it is added ``later``, and so is the mean.
    """
    n, row = np.uint64(s.buffered), buffered(s, s.buffered)
    if n >= BUFFER:  # no place for it
        return False, 0.0, 0.0
    unit, m, u = place(s, UNIT), place(s, ANCHOR), place(s, STEP)
    xm, xu, xx = copy_and_dot(a, x, np.uint64(s.dim), x0, row, unit, m, u)
    if not fits(xx, y, w, limit):
        return False, 0.0, 0.0
    code, score = np.int64(s.code), xm + xu
    mean, loss = (score, 0.0) if code == 0 or later else play(code, s.bound, score, y, w)
    if w != 0.0:
        if code == 0:
            add_linear(s, a, row, xu, xx, y, w)
        else:
            numbers = buffered(s, layout.BUFFER) + n
            curvature, value = add(s, a, row, xm, xu, xx, w, w * y)
            a[numbers] = w
            a[numbers + BUFFER] = w * y
            a[numbers + TWO * BUFFER] = curvature
            a[numbers + THREE * BUFFER] = xm
            if not later:
                s.value += value
                s.played += loss
        note_label(s, y, w)
    return True, score, mean


@entry(float64(REAL, REAL, ROW, ROW), nogil=False)
def step(y, w, a, x):
    """Learn one row and return its predicted mean.

    NaN says that the row was not learnt, infinity that it was, and that something is due before the
    next row; then the mean lies in the header.
    """
    y, w, a, x = borrow(y), borrow(w), borrow(a), borrow(x)
    s = numbers_of(a)
    if x.shape[0] != s.dim or s.busy != 0.0 or s.due != layout.FINE:
        return np.nan
    learnt, _, mean = learn(s, a, x, ZERO, y, w, s.limit, False)
    if not learnt:
        return np.nan
    if s.due == layout.FINE:
        return mean
    s.last_mean = mean
    return np.inf


@njit(**PART)
def add_losses(s, a, y, w, first, last, held, what, out):
    """Add what rows cost as played and, those buffered after ``held``, at the anchor.

    ``out`` has their scores, which become means if these are asked for.
    """
    code, S, room = np.int64(s.code), s.bound, np.empty(SCRATCH)
    if code == 0:
        return
    each = 0 if w.shape[0] == 1 else 1
    for i in range(first, last, CHUNK):
        n = np.uint64(min(last - i, CHUNK))
        for j in range(n):
            room[j] = min(max(out[i + j], -S), S)
        set_parts(code, S, room, n)
        loss = 0.0
        for j in range(n):
            loss += w[each * (i + j)] * (room[POTENTIAL + j] - y[i + j] * room[j])
        s.played += loss
        if what == layout.MEANS:
            for j in range(n):
                mean = room[MEAN + j] + room[SLOPE + j] * (out[i + j] - room[j])
                out[i + j] = within(code, mean)
    numbers = buffered(s, layout.BUFFER)
    for i in range(held, np.uint64(s.buffered), np.uint64(CHUNK)):
        n = min(np.uint64(s.buffered) - i, np.uint64(CHUNK))
        for j in range(n):
            room[j] = a[numbers + THREE * BUFFER + i + j]
        set_parts(code, S, room, n)
        value = 0.0
        for j in range(n):
            pull = a[numbers + BUFFER + i + j] * room[j]
            value += a[numbers + i + j] * room[POTENTIAL + j] - pull
        s.value += value


@entry(int64(float64[::1], float64[::1], float64[::1], float64[::1], int64, int64, float64[::1]))
def run(a, x, y, w, first, what, out):
    """Learn checked rows of ``x`` (flat) from ``first`` on until something is due.

    Returns how many rows are done; ``out`` takes each row's score or mean. ``w`` holds a weight for
    each row or one for all.
    """
    a, x, y, w, out = borrow(a), borrow(x), borrow(y), borrow(w), borrow(out)
    s = numbers_of(a)
    d = np.uint64(s.dim)
    x0 = np.uint64(first) * d
    each = 0 if w.shape[0] == 1 else 1
    held = np.uint64(s.buffered)
    done = first
    while done < y.shape[0] and s.due == layout.FINE:
        _, out[done], _ = learn(s, a, x, x0, y[done], w[each * done], math.inf, True)
        done += 1
        x0 += d
    add_losses(s, a, y, w, first, done, held, what, out)
    return done


@entry(int64(float64[:, ::1], float64[::1], float64[::1], float64))
def first_refused(x, y, w, limit):
    """Return the first row that `learn` would refuse; -1 if none."""
    each = 0 if w.shape[0] == 1 else 1
    for i in range(y.shape[0]):
        if not fits(dot(x[i], x[i]), y[i], w[each * i], limit):
            return i
    return -1
