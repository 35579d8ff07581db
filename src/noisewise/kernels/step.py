"""One round of anchored Newton, and a loop over rounds.

All rows are linearised at the anchor m. With P the inverse of H, u = -P g and r, c the residual and
curvature of the new row at m, a round is one recursive-least-squares update of (u, P). The rank-one
change of P stays pending and is applied in the next round's product with x: P is swept once.

Everything is addressed by offsets into the state's array, since a view costs more than a small
sweep; offsets are unsigned, since a signed one would be tested for wrapping around.
"""

import math

import numpy as np
from numba import float64, int64, njit, void
from numba.core.errors import NumbaError

from . import anchor
from . import layout as at
from .anchor import CHUNK, HEADER, MEAN, POTENTIAL, SLOPE, certify, set_parts
from .compile_options import INNER, PART, Given, entry
from .given import taken
from .links import extended, within
from .vectors import advance, copy_and_dot, square, sweep

# what calling a kernel raises, before it runs, where an argument is not of its type
UNFIT = (TypeError, ValueError, OverflowError, NumbaError)
LARGEST = at.LARGEST
CANCELS = 1e6
BUFFER = np.uint64(at.BUFFER)
ROOM = float(at.BUFFER)
ZERO, ONE, TWO, THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
STEP, GRADIENT, SLOTS = np.uint64(at.STEP), np.uint64(at.GRADIENT), np.uint64(at.SLOTS)
VECTORS = np.uint64(at.VECTORS)
ROW, REAL = Given(float64[::1]), Given(float64)  # what `step` takes


@njit(**INNER)
def rank_one_update(a, y, w, sm, su, sx, mean_m, slope_m, bend, value, loss):
    """Learn the row that lies at the end of the buffer, of score sm + su; return the status.

    ``value`` is what it adds to F(m), ``loss`` what it costs as played.
    """
    d = np.uint64(a[at.DIM])
    ld = np.uint64(a[at.PADDED])
    u = HEADER + STEP * ld
    g = HEADER + GRADIENT * ld
    slot = np.uint64(a[at.SLOT])
    k = HEADER + (SLOTS + ONE - slot) * ld
    P = HEADER + VECTORS * ld
    n = np.uint64(a[at.BUFFERED])
    buffer = P + ld * ld
    row = buffer + n * ld
    (q,) = sweep(a, d, ld, P, HEADER + (SLOTS + slot) * ld, row, k, -a[at.PENDING])
    c = w * slope_m
    r = w * (mean_m - y)
    shrink = 1.0 / (1.0 + c * q)
    slope_u, length2 = advance(a, d, u, k, g, row, -(r + c * su) * shrink, r)
    a[at.PENDING] = c * shrink
    a[at.SLOT] = 1.0 - a[at.SLOT]
    a[at.COUNT] += 1.0
    a[at.BUFFERED] += 1.0
    a[at.HEAVIEST] = max(a[at.HEAVIEST], w)
    a[at.SQUARES] += w * y * y
    a[at.LOWEST] = min(a[at.LOWEST], y)
    a[at.HIGHEST] = max(a[at.HIGHEST], y)
    a[at.LEVERAGE] = max(a[at.LEVERAGE], q)
    length = math.sqrt(sx)
    a[at.LONGEST] = max(a[at.LONGEST], length)
    a[at.TOTAL] += length * (abs(r) + w * abs(y))
    a[at.CURVED] += c * sx
    due = a[at.BUFFERED] == ROOM
    due = due or a[at.COUNT] == 2.0 * a[at.DIM] or a[at.COUNT] == 4.0 * a[at.DIM]
    if c * q > CANCELS:  # the update has lost that many digits of the inverse
        a[at.CANCELLED] = 1.0
        due = True
    if a[at.CODE] == 0.0:
        # what the played score costs above the minimum: half (y-z)^2 w^2 h, and clipping
        inside = min(max(su, -a[at.BOUND]), a[at.BOUND])
        a[at.PLAYED] += 0.5 * w * (y - su) * (y - su) * c * q * shrink
        a[at.PLAYED] += w * (inside - su) * (0.5 * (inside + su) - y)
        if w != 1.0:  # the buffer keeps sqrt(w) x, all that the Gram matrix needs
            root = math.sqrt(w)
            for j in range(ld):
                a[row + j] *= root
        return at.ATTENTION if due else at.FINE
    numbers = buffer + BUFFER * ld + n
    a[numbers] = w
    a[numbers + BUFFER] = w * y
    a[numbers + TWO * BUFFER] = c
    a[numbers + THREE * BUFFER] = sm
    a[at.VALUE] += value
    a[at.PLAYED] += loss
    a[at.SKEW] = max(a[at.SKEW], bend)
    a[at.STEP_NORM] = math.sqrt(max(-slope_u, 0.0))
    certify(a, length2)
    if due:
        return at.ATTENTION
    return at.PASS if a[at.PASS_DUE] != 0.0 else at.FINE


@njit(**INNER)
def append_row(a, x, x0):
    """Copy a row to the end of the buffer; return x.m, x.u and x.x."""
    d = np.uint64(a[at.DIM])
    ld = np.uint64(a[at.PADDED])
    u = HEADER + STEP * ld
    row = HEADER + VECTORS * ld + ld * ld + np.uint64(a[at.BUFFERED]) * ld
    return copy_and_dot(a, x, d, x0, row, HEADER, u)


@njit(**INNER)
def play(code, S, z, y, w):
    """Return the mean at a score, within its range, and the loss at the clipped score."""
    inside = min(max(z, -S), S)
    mean, slope, potential, _ = extended(code, S, inside)
    return within(code, mean + slope * (z - inside)), w * (potential - y * inside)


@njit(**INNER)
def learn(a, x, x0, y, w, limit, later):
    """Check a row, predict, learn; return status, score and mean.

    What only sums need of a curved link is left out if it is added ``later``, and so is the mean.
    """
    if a[at.BUFFERED] >= ROOM:  # no place for it
        return at.REFUSED, 0.0, 0.0
    sm, su, sx = append_row(a, x, x0)
    # written so that NaN fails each comparison; squares of these sizes must not overflow
    size = w * (sx + abs(y)) * (1.0 + sx)
    if not (sx <= limit and w >= 0.0 and abs(y) <= LARGEST and size <= LARGEST):
        return at.REFUSED, 0.0, 0.0
    code = np.int64(a[at.CODE])
    S = a[at.BOUND]
    z = sm + su
    played = z
    value, loss = 0.0, 0.0
    mean, slope, bend = 0.0, 1.0, 0.0
    if code != 0:
        mean, slope, potential, bend = extended(code, S, sm)
        if not later:
            value = w * (potential - y * sm)
            played, loss = play(code, S, z, y, w)
    if w == 0.0:
        return at.FINE, z, played
    return rank_one_update(a, y, w, sm, su, sx, mean, slope, bend, value, loss), z, played


@entry(float64(REAL, REAL, ROW, ROW), nogil=False)
def step(y, w, a, x):
    """Learn one row and return its predicted mean.

    NaN says that the row was not learnt, infinity that it was, and that the status asks for
    something before the next row; then the mean lies in the header.
    """
    y, w, a, x = taken(y), taken(w), taken(a), taken(x)
    if x.shape[0] != a[at.DIM] or a[at.STATUS] != at.FINE:
        return np.nan
    status, _, mean = learn(a, x, ZERO, y, w, a[at.LIMIT], False)
    if status == at.FINE:
        return mean
    if status == at.REFUSED:
        return np.nan
    a[at.STATUS] = status
    a[at.MEAN] = mean
    return np.inf


@njit(**PART)
def add_losses(a, y, w, first, last, held, what, out, room):
    """Add what rows cost as played and, those buffered after ``held``, at the anchor.

    ``out`` has their scores, which become means if these are asked for.
    """
    code = np.int64(a[at.CODE])
    if code == 0:
        return
    S = a[at.BOUND]
    each = 0 if w.shape[0] == 1 else 1
    for i in range(first, last, at.CHUNK):
        n = min(last - i, at.CHUNK)
        for j in range(n):
            room[j] = min(max(out[i + j], -S), S)
        set_parts(code, S, room, n)
        loss = 0.0
        for j in range(n):
            loss += w[each * (i + j)] * (room[POTENTIAL + j] - y[i + j] * room[j])
        a[at.PLAYED] += loss
        if what == at.MEANS:
            for j in range(n):
                mean = room[MEAN + j] + room[SLOPE + j] * (out[i + j] - room[j])
                out[i + j] = within(code, mean)
    ld = np.uint64(a[at.PADDED])
    numbers = HEADER + VECTORS * ld + ld * ld + BUFFER * ld
    for i in range(held, np.uint64(a[at.BUFFERED]), CHUNK):
        n = min(np.uint64(a[at.BUFFERED]) - i, CHUNK)
        for j in range(n):
            room[j] = a[numbers + THREE * BUFFER + i + j]
        set_parts(code, S, room, n)
        value = 0.0
        for j in range(n):
            pull = a[numbers + BUFFER + i + j] * room[j]
            value += a[numbers + i + j] * room[POTENTIAL + j] - pull
        a[at.VALUE] += value


@entry(
    int64(
        float64[::1], float64[::1], float64[::1], float64[::1], int64, float64, int64, float64[::1],
        float64[::1],
    )
)  # fmt: skip
def run(a, x, y, w, first, limit, what, out, room):
    """Learn rows of ``x`` (flat) from ``first`` on until one is refused or something is asked for.

    Returns how many rows are done; ``out`` takes each row's score or mean. ``w`` holds a weight for
    each row or one for all, ``room`` is scratch. While the whole history is in the buffer, passes
    over it are done here.
    """
    a, x, y, w, out, room = taken(a), taken(x), taken(y), taken(w), taken(out), taken(room)
    d = np.uint64(a[at.DIM])
    x0 = np.uint64(first) * d
    each = 0 if w.shape[0] == 1 else 1
    held = np.uint64(a[at.BUFFERED])
    done = first
    a[at.REQUEST] = at.FINE
    while done < y.shape[0] and a[at.REQUEST] == at.FINE:
        status, score, _ = learn(a, x, x0, y[done], w[each * done], limit, True)
        a[at.REQUEST] = status
        if status == at.REFUSED:
            break
        out[done] = score
        done += 1
        x0 += d
        if status == at.PASS and a[at.COUNT] == a[at.BUFFERED]:
            add_losses(a, y, w, first, done, held, what, out, room)
            first, held = done, np.uint64(a[at.BUFFERED])
            anchor.propose(a, 1.0, room)
            verdict = anchor.judge(a, 1.0)
            if verdict == at.FACTOR_STALE:
                a[at.REQUEST] = at.RENEW
            elif verdict == at.KEPT and a[at.PASS_DUE] == 0.0:
                a[at.REQUEST] = at.FINE
    add_losses(a, y, w, first, done, held, what, out, room)
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
propose = entry(void(float64[::1], float64, float64[::1]))(anchor.propose)
judge = entry(int64(float64[::1], float64))(anchor.judge)
restep = entry(void(float64[::1]))(anchor.restep)
scan = entry(void(float64[::1], float64[::1], float64[::1], int64, float64[::1]))(anchor.scan)
