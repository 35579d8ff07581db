r"""Bounds on a mean that hold at all times, by betting against smaller means.

If the mean is m, wealth that bets on larger numbers is positive and, on average, does not grow; nor
does the average of it over several stakes. So it ever reaches :math:`1/\delta` with probability at
most :math:`\delta` (Ville, 1939). Wealth falls in m: those at which it is below :math:`1/\delta`
are an interval, which holds the mean at all times. Two wealths serve:

*Numbers at least 0, of any size.* Of :math:`z_t \ge 0` whose mean, given the past, is at most m:
:math:`\prod_t (1 + \lambda(z_t - m))`, with the stakes :math:`\min(\lambda, c/m)`, c < 1.

*Sums are enough, and the mean may move.* Of :math:`z_t \ge -1` with the mean :math:`m_t` given the
past: :math:`\prod_t (1 + \beta z_t)/(1 + \beta m_t)`, with stakes :math:`0 \le \beta < 1`. As log
is concave, :math:`\prod_t (1 + \beta m_t) \le (1 + \beta\bar m_n)^n` for the average
:math:`\bar m_n` of the means so far, so

.. math:: \sum_\beta \pi_\beta e^{S_\beta}(1 + \beta m)^{-n} < 1/\delta,\qquad
          S_\beta = \sum_t \log(1 + \beta z_t),

holds for :math:`m = \bar m_n` at all n at once, whatever it does and whoever it depends on. For one
constant mean this is the former with :math:`\lambda = \beta/(1 + \beta m)`.

Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting;
Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2024), Anytime-valid off-policy inference.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..protocols import Array

CAP = 0.95  # of what may be staked
FIXED: Array = np.array([3.0**i for i in range(-12, 5)])  # lambda
STAKES: Array = CAP * 2.0 ** -np.arange(12.0)  # beta
PRIOR: Array = np.sqrt(STAKES) / np.sqrt(STAKES).sum()  # more on those for little data


def log_wealth(z: Array, m: float) -> Array:
    """Return the logarithm of the wealth after each number, if their mean were ``m``."""
    return _average(np.cumsum(np.log1p(_stakes(m)[:, None] * (z - m)), axis=1))


def lower_bound(z: Array, delta: float) -> float:
    """Return the bound after all numbers, in [0, 1]; their mean must be at most 1.

    Five ones exclude a chance of 0.4, at one time even :math:`0.05^{1/5} = 0.549`:

    >>> round(lower_bound(np.ones(5), 0.05), 3), lower_bound(np.zeros(5), 0.05)
    (0.405, 0.0)
    """
    values, counts = np.unique(z, return_counts=True)
    most = min(1.0, float(z.mean()))  # wealth is at most 1 there, by concavity
    return _root(lambda m: _wealth(values, counts, m) + math.log(delta), 0.0, most)


def interval(z: Array, rest: Array, delta: float) -> tuple[float, float, float]:
    """Return the lower end, the centre and the upper end of an interval for m, in [0, 1].

    The mean of ``z`` is at most m and that of ``rest`` at most 1 - m. The centre is where the two
    bets, against smaller and against larger m, have won the same. Where both exclude every m, the
    ends are NaN.

    >>> one, none = np.ones(50), np.zeros(50)
    >>> [round(each, 2) for each in interval(np.r_[one, none], np.r_[none, one], 0.05)]
    [0.32, 0.5, 0.68]
    """
    lower, upper = lower_bound(z, delta / 2), 1 - lower_bound(rest, delta / 2)
    if lower > upper:
        return math.nan, 0.5, math.nan
    up, down = np.unique(z, return_counts=True), np.unique(rest, return_counts=True)
    return lower, _root(lambda m: _wealth(*up, m) - _wealth(*down, 1 - m), lower, upper), upper


def log_wealth_of_sums(sums: Array, n: float, m: float, scale: float = 1.0) -> float:
    r"""Return the logarithm of the wealth if the average mean were ``m``.

    ``sums`` (G,) are the :math:`S_\beta` of n numbers, z in units of 1/``scale``. After none the
    wealth is 1:

    >>> round(log_wealth_of_sums(np.zeros(12), 0, 0.3), 12)
    0.0
    """
    return float(_average(sums - n * np.log1p(STAKES * scale * m), PRIOR))


def lower_bound_of_sums(sums: Array, n: float, delta: float, scale: float = 1.0) -> float:
    """Return the lower bound of an average mean in [-1, 1].

    Fifty ones, and no number:

    >>> sums = 50 * np.log1p(STAKES)
    >>> round(lower_bound_of_sums(sums, 50, 0.05), 2), lower_bound_of_sums(0 * sums, 0, 0.05)
    (0.84, -1.0)
    """
    return _root(
        lambda m: log_wealth_of_sums(sums, n, m, scale) + math.log(delta), -1.0, 1.0
    )  # fmt: skip


def difference_bound(up: Array, n: float, down: Array, k: float, delta: float) -> float:
    r"""Return a lower bound of the difference of two constant means, of numbers in [0, 1].

    ``up`` are the sums of the ``n`` numbers of the first, ``down`` those of 1 less each of the
    ``k`` of the second. Whoever chooses which of the two is seen next, both wealths and their
    product are fair, so all pairs of means at which the product is below :math:`1/\delta` hold both
    means at all times. The bound is the least difference among them: the product is log-convex.
    """
    from scipy.optimize import minimize_scalar

    def least(difference: float) -> float:
        def both(m: float) -> float:
            first = log_wealth_of_sums(up, n, m + difference)
            return first + log_wealth_of_sums(down, k, 1 - m)

        ends = max(0.0, -difference), min(1.0, 1 - difference)
        found = minimize_scalar(both, bounds=ends, method="bounded", options={"xatol": 1e-9})
        return min(float(found.fun), both(ends[0]), both(ends[1])) + math.log(delta)

    return _root(least, -1.0, 1.0, 1e-9)


def _wealth(values: Array, counts: NDArray[np.int_], m: float) -> float:
    """Return the logarithm of the wealth after all numbers."""
    return float(_average(np.log1p(_stakes(m)[:, None] * (values - m)) @ counts))


def _stakes(m: float) -> Array:
    return np.minimum(FIXED, CAP / m) if m > 0 else FIXED


def _average(logs: Array, prior: Array | None = None) -> Array:
    """Return the logarithm of the average of wealths, one for each stake."""
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.average(np.exp(logs - top), axis=0, weights=prior)))


def _root(falling: Callable[[float], float], low: float, high: float, xtol: float = 1e-12) -> float:
    """Return where a falling function is 0, or the end that is nearest to it."""
    from scipy.optimize import brentq

    if low == high or falling(low) <= 0:
        return low
    return high if falling(high) >= 0 else float(brentq(falling, low, high, xtol=xtol))
