r"""Bounds on a mean that hold at all times: sums are all they need, and the mean may move.

Let :math:`z_t \ge -1` have the mean :math:`m_t` given the past, and :math:`0 \le \beta < 1` be a
stake fixed in advance. The wealth :math:`\prod_t (1 + \beta z_t)/(1 + \beta m_t)` is positive and
does not grow on average, so the average of it over several stakes ever reaches
:math:`1/\delta` with probability at most :math:`\delta` (Ville). As log is concave,
:math:`\prod_t (1 + \beta m_t) \le (1 + \beta\bar m_n)^n` for the average :math:`\bar m_n` of the
means so far. Hence all m with

.. math:: \sum_\beta \pi_\beta e^{S_\beta}(1 + \beta m)^{-n} < 1/\delta,\qquad
          S_\beta = \sum_t \log(1 + \beta z_t),

contain :math:`\bar m_n` at all n at once, whatever it does and whoever it depends on. The left side
falls in m, so this is a lower bound; that of -z is an upper one.

Ville (1939); Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by
betting. The latter stake :math:`\lambda = \beta/(1 + \beta m)`, which holds for one constant mean.
"""

import math

import numpy as np

from ..protocols import Array
from ..regression.intervals import PRECISION, anytime_half_width

STAKES: Array = 0.95 * 2.0 ** -np.arange(12.0)
PRIOR: Array = np.sqrt(STAKES) / np.sqrt(STAKES).sum()  # more on those for little data


def log_wealth(sums: Array, n: float, m: float, scale: float = 1.0) -> float:
    """Return the logarithm of the wealth if the mean were ``m``; z is in units of 1/``scale``.

    ``sums`` (G,) are the :math:`S_\\beta`. After no number the wealth is 1:

    >>> round(log_wealth(np.zeros(12), 0, 0.3), 12)
    0.0
    """
    logs = np.log(PRIOR) + sums - n * np.log1p(STAKES * scale * m)
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def lower_bound(sums: Array, n: float, delta: float, scale: float = 1.0) -> float:
    """Return the lower bound of a mean in [-1, 1].

    Fifty ones, and no number:

    >>> sums = 50 * np.log1p(STAKES)
    >>> round(lower_bound(sums, 50, 0.05), 2), lower_bound(0 * sums, 0, 0.05)
    (0.84, -1.0)
    """
    from scipy.optimize import brentq

    def excess(m: float) -> float:
        return log_wealth(sums, n, m, scale) + math.log(delta)

    if excess(-1.0) <= 0:
        return -1.0
    return 1.0 if excess(1.0) >= 0 else float(brentq(excess, -1.0, 1.0, xtol=1e-12))


def difference_bound(up: Array, n: float, down: Array, k: float, delta: float) -> float:
    r"""Return a lower bound of the difference of two constant means, of numbers in [0, 1].

    ``up`` are the sums of the ``n`` numbers of the first, ``down`` those of 1 less each of the
    ``k`` of the second. Whoever chooses which of the two is seen next, both wealths and their
    product are fair, so all pairs of means at which the product is below :math:`1/\delta` hold both
    means at all times. The bound is the least difference among them: the product is log-convex.
    """
    from scipy.optimize import brentq, minimize_scalar

    def least(difference: float) -> float:
        def both(m: float) -> float:
            return log_wealth(up, n, m + difference) + log_wealth(down, k, 1 - m)

        ends = max(0.0, -difference), min(1.0, 1 - difference)
        found = minimize_scalar(both, bounds=ends, method="bounded", options={"xatol": 1e-9})
        return min(float(found.fun), both(ends[0]), both(ends[1])) + math.log(delta)

    if least(-1.0) <= 0:
        return -1.0
    return 1.0 if least(1.0) >= 0 else float(brentq(least, -1.0, 1.0, xtol=1e-9))


def asymptotic_half_width(n: float, squares: float, fourths: float, delta: float) -> float:
    """Return half the width of an asymptotic confidence sequence, infinite for too few terms.

    ``squares`` and ``fourths`` are sums of powers of deviations from the mean. As many equal ones
    as would be as uncertain give degrees of freedom, of which only half are used, against skewness.
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Time-uniform central limit theory.
    """
    freedom = squares**2 / fourths - 1 if fourths > 0 else 0.0
    if freedom <= 0 or n < 2:
        return math.inf
    unit = squares / (n - 1)
    with np.errstate(divide="ignore"):
        return float(anytime_half_width(np.array(unit / n), PRECISION / unit, freedom, delta))
