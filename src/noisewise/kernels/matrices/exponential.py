"""Exponential and logarithm without a call, so that a loop of them becomes vector code.

Both are within two units in the last place; tests compare them with the standard library.
"""

import math

import numpy as np
from numba import njit

from ..compiling.compile_options import ORDERED

PER_LOG2 = 1.0 / math.log(2.0)
# log 2 in two parts: multiples of the first by an exponent are exact
LOG2_HIGH, LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
LEAST, MOST = -708.0, 709.0  # exponents of normal numbers
INTEGER = 1.5 * 2.0**52  # a number added to this is rounded to an integer
ROOT = math.sqrt(2.0) - 1.0
LOG2 = math.log(2.0)


@njit(**ORDERED, forceinline=True)
def exponential(x):
    """Return e^x, x held between -708 and 709: 2^n e^r with |r| <= log(2)/2, by Taylor's series."""
    x = min(max(x, LEAST), MOST)
    shifted = x * PER_LOG2 + INTEGER
    n = shifted - INTEGER
    r = (x - n * LOG2_HIGH) - n * LOG2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120))
    middle = (1.0 / 720 + r * (1.0 / 5040)) + r2 * (1.0 / 40320 + r * (1.0 / 362880))
    high = (1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600 + r * (1.0 / 6227020800))
    scale = np.int64((np.int64(n) + 1023) << 52).view(np.float64)  # 2^n
    return scale * (1.0 + (r + r2 * (low + r4 * (middle + r4 * high))))


@njit(**ORDERED, forceinline=True)
def log_one_plus(e):
    """Return log(1 + e) for 0 <= e <= 1: a series in s = f/(2 + f), 1 + f being 1 + e or half."""
    far = e > ROOT
    f = 0.5 * (e - 1.0) if far else e
    s = f / (2.0 + f)
    t = s * s
    t2 = t * t
    t4 = t2 * t2
    low = (1.0 / 3 + t * (1.0 / 5)) + t2 * (1.0 / 7 + t * (1.0 / 9))
    high = (
        (1.0 / 11 + t * (1.0 / 13))
        + t2 * (1.0 / 15 + t * (1.0 / 17))
        + t4 * (1.0 / 19 + t * (1.0 / 21))
    )
    series = 2.0 * s + 2.0 * s * t * (low + t4 * high)
    return LOG2 + series if far else series
