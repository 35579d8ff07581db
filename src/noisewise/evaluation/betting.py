r"""A lower bound on a mean that holds at all times, for numbers that are at least 0.

Bet on numbers :math:`z_t \ge 0` whose mean, given the past, is at most m: with stakes
:math:`0 \le \lambda \le c/m`, c < 1, wealth :math:`\prod_s (1 + \lambda(z_s - m))` is positive and,
on average, does not grow; nor does the average of it over several stakes. So it ever reaches
:math:`1/\delta` with probability at most :math:`\delta` (Ville), whatever the largest z. Wealth
falls in m, for each stake :math:`\min(\lambda, c/m)`: those m at which it is below
:math:`1/\delta` are an interval, and the mean lies in it at all times.

Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting;
Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2024), Anytime-valid off-policy inference.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ..protocols import Array

STAKES: Array = np.array([3.0**i for i in range(-12, 5)])
CAP = 0.95  # of what may be staked


def log_wealth(z: Array, m: float) -> Array:
    """Return the logarithm of the wealth after each number, if their mean were ``m``."""
    logs = np.cumsum(np.log1p(_stakes(m)[:, None] * (z - m)), axis=1)
    return _mean_of_exponentials(logs)


def lower_bound(z: Array, delta: float) -> float:
    """Return the bound after all numbers, in [0, 1]; their mean must be at most 1.

    Five ones exclude a chance of 0.4, at one time even :math:`0.05^{1/5} = 0.549`:

    >>> round(lower_bound(np.ones(5), 0.05), 3), lower_bound(np.zeros(5), 0.05)
    (0.405, 0.0)
    """
    from scipy.optimize import brentq

    values, counts = np.unique(z, return_counts=True)

    def excess(m: float) -> float:
        return _wealth(values, counts, m) + math.log(delta)

    if excess(0.0) <= 0:
        return 0.0
    most = min(1.0, float(z.mean()))  # wealth is at most 1 there, by concavity
    return most if excess(most) >= 0 else float(brentq(excess, 0.0, most, xtol=1e-12))


def interval(z: Array, rest: Array, delta: float) -> tuple[float, float, float]:
    """Return the lower end, the centre and the upper end of an interval for m, in [0, 1].

    The mean of ``z`` is at most m and that of ``rest`` at most 1 - m. The centre is where the two
    bets, against smaller and against larger m, have won the same. Where both exclude every m, the
    ends are NaN.

    >>> one, none = np.ones(50), np.zeros(50)
    >>> [round(each, 2) for each in interval(np.r_[one, none], np.r_[none, one], 0.05)]
    [0.32, 0.5, 0.68]
    """
    from scipy.optimize import brentq

    lower, upper = lower_bound(z, delta / 2), 1 - lower_bound(rest, delta / 2)
    up, down = np.unique(z, return_counts=True), np.unique(rest, return_counts=True)

    def ahead(m: float) -> float:
        return _wealth(*up, m) - _wealth(*down, 1 - m)

    if lower > upper:
        return math.nan, 0.5, math.nan
    if lower == upper or ahead(lower) <= 0:
        return lower, lower, upper
    centre = upper if ahead(upper) >= 0 else float(brentq(ahead, lower, upper, xtol=1e-12))
    return lower, centre, upper


def _wealth(values: Array, counts: NDArray[np.int_], m: float) -> float:
    """Return the logarithm of the wealth after all numbers."""
    logs = (np.log1p(_stakes(m)[:, None] * (values - m)) * counts).sum(axis=1)
    return float(_mean_of_exponentials(logs[:, None])[0])


def _stakes(m: float) -> Array:
    return np.minimum(STAKES, CAP / m) if m > 0 else STAKES


def _mean_of_exponentials(logs: Array) -> Array:
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).mean(axis=0)))
