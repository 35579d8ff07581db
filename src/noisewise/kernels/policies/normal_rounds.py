"""Arms without features, compiled: one call chooses an arm, one learns its reward."""

import math

import numpy as np
from numba import float64, int64, njit

from ..compiling.compile_options import INNER, entry
from .arm_forms import LARGEST, first_best

# which index: that of NormalUCB, its original variant, that of UCB1Normal
CORRECTED, ORIGINAL, CLASSICAL = 0, 1, 2
BAD = -1


@njit(**INNER)
def which(rows, i):
    """Return the position of the 1 in a row of the identity matrix, `BAD` for any other row."""
    entries = 0
    for j in range(rows.shape[1]):
        entries += rows[i, j] != 0.0
    if entries != 1:
        return BAD
    found = i if i < rows.shape[1] and rows[i, i] != 0.0 else 0  # mostly all arms in order
    while rows[i, found] == 0.0:
        found += 1
    return found if rows[i, found] == 1.0 else BAD


@entry(int64(float64[:, ::1], float64[:, ::1], int64, int64))
def choose(arms, table, count, form):
    """Return the least played arm while that is rare, else that of the largest index.

    The rows of ``table`` are pulls, means and sums of squared deviations; `BAD` where a row of
    ``arms`` is no unit vector.
    """
    K = arms.shape[0]
    if K == 0 or arms.shape[1] != table.shape[1]:
        return BAD
    rate = math.log(max(count, 1))
    enough = max(2.0, math.ceil(8.0 * math.log(count + 1.0))) if form == CLASSICAL else 3.0
    index = np.empty(K)
    rarest, least = BAD, 0.0
    for i in range(K):
        k = which(arms, i)
        if k == BAD:
            return BAD
        n, squares = table[0, k], table[2, k]
        if rarest == BAD or n < least:
            rarest, least = i, n
        if n >= enough:
            if form == CLASSICAL:
                width = 16.0 * squares / (n - 1.0) * (rate / n)
            else:
                exponent = 2.0 * rate / (n - 2.0 if form == CORRECTED else n)
                width = squares / n * math.expm1(exponent)
            index[i] = table[1, k] + math.sqrt(width)
    return rarest if least < enough else first_best(index)


@entry(int64(float64[::1], float64, float64[:, ::1]))
def learn(arm, reward, table):
    """Learn the reward of an arm; `BAD` where the row is no unit vector, and nothing is learnt."""
    if arm.shape[0] != table.shape[1] or not abs(reward) <= LARGEST:
        return BAD
    k = which(arm.reshape(1, -1), 0)
    if k == BAD:
        return BAD
    table[0, k] += 1.0
    away = reward - table[1, k]
    table[1, k] += away / table[0, k]
    table[2, k] += away * (reward - table[1, k])
    return k
