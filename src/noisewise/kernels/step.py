"""One round of anchored Newton, and a loop over rounds.

All rows are linearised at the anchor m. With P the inverse of H, u = -P g and r, c the residual and
curvature of the new row at m, a round is one recursive-least-squares update of (u, P). The rank-one
change of P stays pending and is applied in the next round's product with x: P is swept once.

``s`` are the numbers of the state and ``at`` the offsets of all else in its array ``a``, since a
view costs more than a small sweep; they are unsigned, since a signed one would be tested for
wrapping around.
"""

import math

import numpy as np
from numba import errors, float64, int64, njit, void

from . import anchor, layout
from .anchor import (
    BUFFER,
    CHUNK,
    MEAN,
    POTENTIAL,
    SLOPE,
    THREE,
    TWO,
    certify,
    chord,
    note_row,
    numbers_of,
    offsets,
    set_parts,
)
from .compile_options import INNER, PART, Borrowed, borrow, entry
from .links import extended, within
from .vectors import advance, copy_and_dot, square, sweep

# what calling a kernel raises, before it runs, where an argument is not of its type
UNFIT = (TypeError, ValueError, OverflowError, errors.NumbaError)
LARGEST = layout.LARGEST
ZERO = np.uint64(0)
ROW, REAL = Borrowed(float64[::1]), Borrowed(float64)  # what `step` takes


@njit(**INNER)
def rank_one_update(s, a, y, w, sm, su, sx, mean_m, slope_m, bend, value, loss):
    """Learn the row that lies at the end of the buffer, of score sm + su.

    ``value`` is what it adds to F(m), ``loss`` what it costs as played.
    """
    at, d, n = offsets(s), np.uint64(s.dim), np.uint64(s.buffered)
    k, row = at.fresh, at.rows + n * at.width
    (q,) = sweep(a, d, at.width, at.inverse, at.pending, row, k, -s.pending)
    c = w * slope_m
    r = w * (mean_m - y)
    shrink = 1.0 / (1.0 + c * q)
    slope_u, length2 = advance(a, d, at.step, k, at.gradient, row, -(r + c * su) * shrink, r)
    s.pending = c * shrink
    s.slot = 1.0 - s.slot
    note_row(s, y, w, r, c, q, sx)
    if s.code == 0.0:
        # what the played score costs above the minimum: half (y-z)^2 w^2 h, and clipping
        inside = min(max(su, -s.bound), s.bound)
        s.played += 0.5 * w * (y - su) * (y - su) * c * q * shrink
        s.played += w * (inside - su) * (0.5 * (inside + su) - y)
        if w != 1.0:  # the buffer keeps sqrt(w) x, all that the Gram matrix needs
            root = math.sqrt(w)
            for j in range(at.width):
                a[row + j] *= root
        return
    numbers = at.numbers + n
    a[numbers] = w
    a[numbers + BUFFER] = w * y
    a[numbers + TWO * BUFFER] = c
    a[numbers + THREE * BUFFER] = sm
    s.value += value
    s.played += loss
    s.skew = max(s.skew, bend)
    s.step_norm = math.sqrt(max(-slope_u, 0.0))
    due = s.due
    certify(s, length2, chord)
    s.due = max(s.due, due)


@njit(**INNER)
def append_row(s, a, x, x0):
    """Copy a row to the end of the buffer; return x.m, x.u and x.x."""
    at = offsets(s)
    row = at.rows + np.uint64(s.buffered) * at.width
    return copy_and_dot(a, x, np.uint64(s.dim), x0, row, at.anchor, at.step)


@njit(**INNER)
def play(code, S, z, y, w):
    """Return the mean at a score, within its range, and the loss at the clipped score."""
    inside = min(max(z, -S), S)
    mean, slope, potential, _ = extended(code, S, inside)
    return within(code, mean + slope * (z - inside)), w * (potential - y * inside)


@njit(**INNER)
def learn(s, a, x, x0, y, w, limit, later):
    """Check a row, predict, learn; return whether that was done, score and mean.

    What only sums need of a curved link is left out if it is added ``later``, and so is the mean.
    """
    if s.buffered >= layout.BUFFER:  # no place for it
        return False, 0.0, 0.0
    sm, su, sx = append_row(s, a, x, x0)
    # written so that NaN fails each comparison; squares of these sizes must not overflow
    size = w * (sx + abs(y)) * (1.0 + sx)
    if not (sx <= limit and w >= 0.0 and abs(y) <= LARGEST and size <= LARGEST):
        return False, 0.0, 0.0
    code = np.int64(s.code)
    S = s.bound
    z = sm + su
    played = z
    value, loss = 0.0, 0.0
    mean, slope, bend = 0.0, 1.0, 0.0
    if code != 0:
        mean, slope, potential, bend = extended(code, S, sm)
        if not later:
            value = w * (potential - y * sm)
            played, loss = play(code, S, z, y, w)
    if w != 0.0:
        rank_one_update(s, a, y, w, sm, su, sx, mean, slope, bend, value, loss)
    return True, z, played


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
def add_losses(s, a, y, w, first, last, held, what, out, room):
    """Add what rows cost as played and, those buffered after ``held``, at the anchor.

    ``out`` has their scores, which become means if these are asked for.
    """
    code = np.int64(s.code)
    if code == 0:
        return
    S = s.bound
    each = 0 if w.shape[0] == 1 else 1
    for i in range(first, last, layout.CHUNK):
        n = min(last - i, layout.CHUNK)
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
    numbers = offsets(s).numbers
    for i in range(held, np.uint64(s.buffered), CHUNK):
        n = min(np.uint64(s.buffered) - i, CHUNK)
        for j in range(n):
            room[j] = a[numbers + THREE * BUFFER + i + j]
        set_parts(code, S, room, n)
        value = 0.0
        for j in range(n):
            pull = a[numbers + BUFFER + i + j] * room[j]
            value += a[numbers + i + j] * room[POTENTIAL + j] - pull
        s.value += value


@entry(
    int64(
        float64[::1], float64[::1], float64[::1], float64[::1], int64, float64, int64, float64[::1],
        float64[::1],
    )
)  # fmt: skip
def run(a, x, y, w, first, limit, what, out, room):
    """Learn rows of ``x`` (flat) from ``first`` on until one is refused or something is due.

    Returns how many rows are done; ``out`` takes each row's score or mean. ``w`` holds a weight for
    each row or one for all, ``room`` is scratch. While the whole history is in the buffer, passes
    over it are done here.
    """
    a, x, y, w, out, room = borrow(a), borrow(x), borrow(y), borrow(w), borrow(out), borrow(room)
    s = numbers_of(a)
    d = np.uint64(s.dim)
    x0 = np.uint64(first) * d
    each = 0 if w.shape[0] == 1 else 1
    held = np.uint64(s.buffered)
    done = first
    while done < y.shape[0] and s.due == layout.FINE:
        learnt, score, _ = learn(s, a, x, x0, y[done], w[each * done], limit, True)
        if not learnt:
            break
        out[done] = score
        done += 1
        x0 += d
        if s.due == layout.PASS and s.count == s.buffered:
            add_losses(s, a, y, w, first, done, held, what, out, room)
            first, held = done, np.uint64(s.buffered)
            anchor.propose(s, a, 1.0, room)
            if anchor.judge(s, a, 1.0) == layout.FACTOR_STALE:
                s.due = layout.RENEW
    add_losses(s, a, y, w, first, done, held, what, out, room)
    return done


@entry(int64(float64[::1], float64[::1], float64[::1], float64))
def first_refused(x, y, w, limit):
    """Return the first row that `learn` would refuse; -1 if none."""
    if y.shape[0] == 0:
        return -1
    d = x.shape[0] // y.shape[0]
    each = 0 if w.shape[0] == 1 else 1
    for i in range(y.shape[0]):
        (total,) = square(x, d, i * d)
        size = w[each * i] * (total + abs(y[i])) * (1.0 + total)
        if not (total <= limit and abs(y[i]) <= LARGEST and size <= LARGEST):
            return i
    return -1


# the passes, for Python
@entry(void(float64[::1], float64, float64[::1]))
def propose(a, share, room):
    """Begin a pass at the trial point."""
    anchor.propose(numbers_of(a), a, share, room)


@entry(int64(float64[::1], float64))
def judge(a, share):
    """Accept the trial point or not, and say whether the factor still serves."""
    return anchor.judge(numbers_of(a), a, share)


@entry(void(float64[::1]))
def restep(a):
    """Set the step that belongs to gradient and inverse."""
    anchor.restep(numbers_of(a), a)


@entry(void(float64[::1], float64[::1], float64[::1], int64, float64[::1]))
def scan(a, x, numbers, n, room):
    """Add a block of the history to the sums of a pass."""
    anchor.scan(numbers_of(a), a, x, numbers, n, room)
