"""Built-in links as scalar functions chosen by an integer code."""

import math

import numpy as np
from numba import njit

from ..compiling.compile_options import INNER, ORDERED, PART
from ..matrices.exponential import exponential, log_one_plus

LOG2 = math.log(2.0)
ROOT = 1.0 / math.sqrt(2.0 * math.pi)
HALF = math.sqrt(0.5)
CHUNK = 128  # scores at a time, behind which lie what a link is made of at them
MEAN, SLOPE, POTENTIAL, BEND, SCRATCH = (np.uint64(i * CHUNK) for i in range(1, 6))


@njit(**ORDERED)
def transcend(code, c):
    """Return the two expensive functions of the score that a link is made of."""
    if code == 1:
        e = exponential(-abs(c))
        return e, log_one_plus(e)
    if code == 2:
        return exponential(-0.5 * c * c), math.erfc(-HALF * c)
    if code == 3:
        e = exponential(-2.0 * abs(c))
        return e, log_one_plus(e)
    if code == 5:
        return exponential(c), 0.0
    return 0.0, 0.0


@njit(**ORDERED)
def within(code, mean):
    """Return the mean held within the range of the link, which its extension leaves."""
    if code == 1 or code == 2:
        return min(max(mean, 0.0), 1.0)
    if code == 3 or code == 4:
        return min(max(mean, -1.0), 1.0)
    return max(mean, 0.0) if code == 5 else mean


@njit(**ORDERED)
def parts(code, c, e, v):
    """Return mean, slope, potential and |phi''|/phi' at score ``c``; `transcend` gave e and v."""
    if code == 1:
        f = 1.0 / (1.0 + e)
        p = f if c >= 0 else e * f
        return p, e * f * f, max(c, 0.0) + v - LOG2, (1.0 - e) * f
    if code == 0:
        return c, 1.0, 0.5 * c * c, 0.0
    if code == 2:
        density = ROOT * e
        p = 0.5 * v
        return p, density, c * p + density - ROOT, abs(c)
    if code == 3:
        f = 1.0 / (1.0 + e)
        t = (1.0 - e) * f
        return math.copysign(t, c), 4.0 * e * f * f, abs(c) + v - LOG2, 2.0 * t
    if code == 4:
        h = math.sqrt(1.0 + c * c)
        f = 1.0 / h
        return c * f, f * f * f, c * c / (1.0 + h), 3.0 * abs(c) * f * f
    return e, e, e - 1.0, 1.0


@njit(**ORDERED, forceinline=True)
def extended(code, S, score):
    """Return mean, slope, potential and |phi''|/phi' of a link that is linear beyond [-S, S]."""
    c = min(max(score, -S), S)
    e, v = transcend(code, c)
    mean, slope, potential, bend = parts(code, c, e, v)
    away = score - c
    return mean + slope * away, slope, potential + (mean + 0.5 * slope * away) * away, bend


@njit(**INNER)
def set_parts_of(code, S, room, n):
    """Set them for one link; where its code is a constant, in vector code."""
    for i in range(n):
        mean, slope, potential, bend = extended(code, S, room[i])
        room[MEAN + i], room[SLOPE + i] = mean, slope
        room[POTENTIAL + i], room[BEND + i] = potential, bend


@njit(**PART)
def set_parts(code, S, room, n):
    """Set what the extended link is made of at ``n`` scores, which ``room`` begins with."""
    if code == 1:
        set_parts_of(1, S, room, n)
    elif code == 3:
        set_parts_of(3, S, room, n)
    elif code == 5:
        set_parts_of(5, S, room, n)
    else:
        set_parts_of(code, S, room, n)
