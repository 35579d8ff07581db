"""Contexts of `SelfTunedUCB`, compiled: kept as they come, and learnt in units of their own.

An arm is given as plain features and blocks (a, a c). A row of the history holds the plain ones,
the heads a, the context c, the reward, its weight as given and what it counts of that. Features z
are made of it again whenever units change: columns of c are clipped to limits that outliers do not
move, less their mean, over their standard deviation.
"""

import math

import numpy as np
from numba import njit

from ..compiling.compile_options import INNER, PART, RARE
from ..matrices.dense import symmetrise
from .self_tuned_ucb_numbers import M, V

POOL = 512  # rows that units are taken from, evenly spaced
FEWEST, OUTSIDE = 5, 0.02  # rows before any is an outlier; share of them on either side
REACH = 5.0  # of the limits beyond, in median distances
CONSTANT = 1e-24  # variance over squared mean
LARGEST = 2.0**53  # numbers beyond it are clipped, but tell nothing of units
LEAP = 1e3  # of a unit, beyond which it was that of outliers
GAPS = (132, 57, 23, 10, 4, 1)


@njit(**INNER)
def shape_of(s, D):
    """Return how many plain features, blocks and columns of the context there are."""
    blocks, context = int(s.blocks), int(s.context)
    return D - 1 - blocks * (context + 1), blocks, context


@njit(**PART)
def set_row(s, v, x, row):
    """Set plain features, heads and context of an arm."""
    e, blocks, d = shape_of(s, v.shape[1])
    largest = 0
    for j in range(e):
        row[j] = x[j]
    for i in range(blocks):
        row[e + i] = x[e + i * (d + 1)]
        if abs(row[e + i]) > abs(row[e + largest]):
            largest = i
    for j in range(d):
        head = row[e + largest]
        given = x[e + largest * (d + 1) + 1 + j]
        row[e + blocks + j] = given / head if head != 0.0 else v[V.centre, j]


@njit(**PART)
def set_features(s, v, row, z):
    """Set the features of a row in current units, and the intercept's.

    Where each action has its block, the mean of their heads' coefficients is the intercept.
    """
    D = z.shape[0]
    e, blocks, d = shape_of(s, D)
    for j in range(e):
        z[j] = row[j]
    for i in range(blocks):
        head, first = row[e + i], e + i * (d + 1)
        z[first] = head
        for j in range(d):
            value = 0.0
            if head != 0.0 and v[V.rate, j] > 0.0:
                c = min(max(row[e + blocks + j], v[V.low, j]), v[V.high, j])
                value = head * (c - v[V.centre, j]) * v[V.rate, j]
            z[first + 1 + j] = value
    z[D - 1] = 1.0 if blocks == 0 or s.shared > 0.0 else 0.0


@njit(**PART)
def features_of(s, v, x):
    """Return the features of an arm as it was given."""
    D = v.shape[1]
    z, row = np.empty(D), np.empty(D)
    set_row(s, v, x, row)
    set_features(s, v, row, z)
    return z


@njit(**RARE)
def sort(values, count):
    """Put the first values in order, by Shell's method."""
    for gap in GAPS:
        for i in range(gap, count):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value


@njit(**RARE)
def median(values, count):
    """Return the median of the first ``count`` values, which are put in order."""
    sort(values, count)
    return 0.5 * (values[(count - 1) // 2] + values[count // 2])


@njit(**RARE)
def set_units(s, v, rows):
    """Set limits, mean and rate of each column of the context, from the history.

    Limits lie five median distances beyond all values but 2 % on either side; the distances are
    those of values that differ from the median, so that a rare indicator is no outlier.
    """
    e, blocks, d = shape_of(s, v.shape[1])
    n = int(s.stored)
    most = min(n, POOL)
    x, away = np.empty(most), np.empty(most)
    for j in range(d):
        count = np.int64(0)
        for i in range(most):
            row = rows[i * n // most]
            heads = 0.0
            for k in range(e, e + blocks):
                heads = max(heads, abs(row[k]))
            x[count] = row[e + blocks + j]
            if heads > 0.0 and abs(x[count]) <= LARGEST:  # else nothing is known of the context
                count += 1
        if count == 0:
            continue
        middle, seen, mean, square = median(x, count), np.int64(0), 0.0, 0.0
        for i in range(count):
            if x[i] != middle:
                away[seen] = abs(x[i] - middle)
                seen += 1
        reach = REACH * median(away, seen) if seen > 0 else 0.0
        out = math.ceil(OUTSIDE * count) if count >= FEWEST else 0
        low, high = x[out] - reach, x[count - 1 - out] + reach
        for i in range(count):
            mean += min(max(x[i], low), high) / count
        for i in range(count):
            away_from_mean = min(max(x[i], low), high) - mean
            square += away_from_mean * away_from_mean / count
        v[V.low, j], v[V.high, j], v[V.centre, j] = low, high, mean
        v[V.rate, j] = 1.0 / math.sqrt(square) if square > CONSTANT * mean * mean else 0.0


@njit(**RARE)
def move_moment(s, b, factor, shift):
    """Express a sum of features in new units."""
    e, blocks, d = shape_of(s, b.shape[0])
    for i in range(blocks):
        first = e + i * (d + 1)
        for j in range(d):
            b[first + 1 + j] = factor[j] * b[first + 1 + j] + shift[j] * b[first]


@njit(**RARE)
def move_gram(s, A, factor, shift):
    """Express a sum of products of features in new units, both halves alike."""
    for _ in range(2):
        for k in range(A.shape[0]):
            move_moment(s, A[k], factor, shift)
        for i in range(A.shape[0]):
            for j in range(i):
                A[i, j], A[j, i] = A[j, i], A[i, j]
    symmetrise(A)


@njit(**RARE)
def move_coefficients(s, theta, factor, shift):
    """Express coefficients in new units: scores stay what they are."""
    e, blocks, d = shape_of(s, theta.shape[0])
    for i in range(blocks):
        first = e + i * (d + 1)
        for j in range(d):
            moved = theta[first + 1 + j] / factor[j] if factor[j] > 0.0 else 0.0
            theta[first + 1 + j] = moved
            theta[first] -= shift[j] * moved


@njit(**RARE)
def renew_units(s, v, m, rows):
    """Set the units again, and express in them what is not summed from the rows.

    Of such a sum clipped values stay as they were clipped. Where outliers made the unit of a column
    before, they would stay so large that they drown the others: the column counts as average then.
    """
    d = int(s.context)
    if d == 0 or s.stored == 0.0:
        return
    factor, shift = np.empty(d), np.empty(d)
    for j in range(d):
        factor[j], shift[j] = v[V.rate, j], v[V.centre, j]
    set_units(s, v, rows)
    for j in range(d):
        factor[j] = v[V.rate, j] / factor[j] if factor[j] > 0.0 else 0.0
        shift[j] = (shift[j] - v[V.centre, j]) * v[V.rate, j]
        leaps = factor[j] > LEAP or 0.0 < factor[j] * LEAP < 1.0 or abs(shift[j]) > LEAP
        if leaps or s.stored <= FEWEST:
            factor[j] = shift[j] = 0.0
    move_coefficients(s, v[V.theta], factor, shift)
    move_moment(s, v[V.recent_moment], factor, shift)
    move_moment(s, v[V.condensed_moment], factor, shift)
    move_gram(s, m[M.recent_gram], factor, shift)
    move_gram(s, m[M.condensed_gram], factor, shift)
    move_gram(s, m[M.noise], factor, shift)
