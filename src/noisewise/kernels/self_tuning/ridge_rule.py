"""The rules by which ridges are chosen and features scaled, called by Python and compiled by
kernels.

The ridge of feature j is c d v_j, v_j its variance and d how many there are. Evidence is that of
Gaussian labels whose noise variance has no prior; the prior of c has a heavy tail about 1.
"""

import math
from typing import TypeVar

import numpy as np

from ...support.arrays import Array

Number = TypeVar("Number", float, Array)

GRID = 10.0 ** np.arange(-3.0, 4.25, 0.5)  # of c
LOG_PRIOR = -np.log(1.0 + np.log10(GRID) ** 2)
INTERCEPT_RIDGE = 1e-8
FEWEST = 2.5  # rows before the evidence counts
GROWTH = 0.25  # of the rows, before a ridge is chosen again
UNMOVED, UNDERFLOW = 1e-14, 1e-100  # a variance below these counts as 0


def log_evidence(log_det: float, rest: float, squares: float, freedom: float) -> float:
    """Return the logarithm of the evidence of a ridge.

    ``log_det`` is that of the matrix over its ridge, ``rest`` what is left of the labels' sum of
    ``squares``, and ``freedom`` the number of rows, less 1 for an intercept.
    """
    return -0.5 * log_det - 0.5 * freedom * math.log(max(rest, 1e-12 * squares, 1e-300))


def posterior_ridge(evidence: Array) -> float:
    """Return the geometric mean of c, given the logarithm of the evidence at `GRID`."""
    most = (evidence + LOG_PRIOR).max()
    total, mean = 0.0, 0.0
    for k in range(GRID.shape[0]):
        mass = math.exp(evidence[k] + LOG_PRIOR[k] - most)
        total += mass
        mean += mass * math.log(GRID[k])
    return math.exp(mean / total)


PRIOR_RIDGE = posterior_ridge(np.zeros(len(GRID)))


def variance(square: Number, mean: Number) -> Number:
    """Return the variance of mean square and mean, numbers or arrays: 0 where it is rounding."""
    v = square - mean * mean
    kept: Number = v * (v > UNMOVED * square) * (v > UNDERFLOW)
    return kept


def next_choice(count: float, gamma: float, dim: int) -> float:
    """Return the count of rows at which a ridge is chosen again, with a forgetting factor."""
    wait = GROWTH * count
    if gamma < 1.0:
        wait = min(wait, max(1.0 / (1.0 - gamma), 0.1 * dim))
    return count + max(1.0, wait)
