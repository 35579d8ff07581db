r"""Normal and t mixtures: evidence against an estimate, and intervals, at one time or at all.

The likelihood ratio of a mixture over the error, fixed before the data, to no error is a
martingale, and so reaches :math:`1/\delta` with probability at most :math:`\delta` (Robbins, 1970).
With noise of unknown variance, :math:`\nu` degrees of freedom estimate it, and the mixture is
scale-free (Lai, 1976; Lindon, Ham, Tingley and Bojinov, 2022).
"""

import math

import numpy as np

from ..numerics import linalg
from ..protocols import Array

PRECISION = 10.0  # of the mixture, in rows
GRID: Array = 10.0 * 30.0 ** np.arange(4.0)  # precisions of mixtures for all directions, in rows
NORMAL = 1e10  # degrees of freedom


def quantile(freedom: float | Array, delta: float) -> float | Array:
    """Return the two-sided quantile of the t distribution, normal for infinite freedom."""
    from scipy.special import ndtri, stdtrit

    nu, share = np.asarray(freedom, dtype=np.float64), 1 - delta / 2
    found = np.where(nu < NORMAL, stdtrit(np.clip(nu, 1e-3, NORMAL), share), ndtri(share))
    found = np.where(nu > 0, found, math.inf)
    return found if nu.ndim else float(found)


def half_width(
    variance: Array, freedom: float | Array, delta: float, precision: Array | float | None = None
) -> Array:
    r"""Return half the interval of an estimate: Student's at one time, or at all times at once.

    At all times it takes the ``precision`` phi of the mixture: of an error of variance v,
    :math:`v(1 + \phi v)[\log((1 + \phi v)/\phi v) + 2\log(1/\delta)]` is its square where v is
    known. With nu degrees of freedom, :math:`r = \phi v/(1 + \phi v)` and
    :math:`g = (\delta^2 r)^{1/(\nu + 1)}`, it is :math:`v\nu(1 - g)/(g - r)`, infinite until g > r.

    >>> v = np.array([0.01, 0.0])
    >>> half_width(v, np.inf, 0.05).round(3), half_width(v, np.inf, 0.05, precision=10.0).round(3)
    (array([0.196, 0.   ]), array([0.304, 0.   ]))
    """
    v, nu = np.asarray(variance), np.asarray(freedom, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if precision is None:
            half = quantile(freedom, delta) * np.sqrt(v)
        else:
            odds = precision * v
            ratio = odds / (1 + odds)
            known = (1 + odds) * (2 * math.log(1 / delta) - np.log(ratio))
            g = (delta * delta * ratio) ** (1 / (nu + 1))
            unknown = np.where(g > ratio, nu * (1 - g) / (g - ratio), math.inf)
            half = np.sqrt(v * np.where(nu == math.inf, known, unknown))
    return np.where(v == 0, 0.0, np.where(np.isfinite(half), half, math.inf))


def freedom_needed(odds: Array, delta: float) -> Array:
    r"""Return the degrees of freedom from which `half_width` is finite, of odds :math:`\phi v`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(2 * math.log(1 / delta) / np.log1p(1 / odds))


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
    return float(half_width(np.array(unit / n), freedom, delta, PRECISION / unit))


def simultaneous_half_width(a: Array, prior: Array, freedom: float | Array, delta: float) -> Array:
    r"""Return half the interval of each direction, for all directions at all times at once.

    In coordinates of ``a`` (n, p) the estimate has the variance of the noise, and mixtures have
    precisions :math:`\rho_jd`, d the ``prior`` (p,) and j = 1, ..., N. With
    :math:`l_j = 2\log(N/\delta) + \sum\log(1 + 1/\rho_jd)` the square is the least
    :math:`l_j\sum a^2(1 + \rho_jd)` where the noise is known. Else, with
    :math:`s = 1/(1 + \rho_jd)` and :math:`\kappa_j = 1 - e^{-l_j/(\nu + p)}`, it is
    :math:`\kappa_j\nu\sum a^2/(s - \kappa_j)`, infinite unless all :math:`s > \kappa_j`.

    >>> simultaneous_half_width(np.ones((1, 1)), np.ones(1), np.inf, 0.05).round(3)
    array([9.872])
    """
    square = np.full(len(a), math.inf)
    nu = np.broadcast_to(np.asarray(freedom, dtype=np.float64), len(a))
    for rho in GRID if len(prior) else ():
        level, shares = _level(rho * prior, delta)
        if (nu == math.inf).all():
            square = np.minimum(square, level * (a**2 / shares).sum(axis=1))
            continue
        kappa = -np.expm1(-level / (nu + len(prior)))
        left = shares - kappa[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = kappa * nu * (a**2 / left).sum(axis=1)
        square = np.minimum(square, np.where(left.min(axis=1) > 1e-9, found, math.inf))
    return np.sqrt(square)


def simultaneous_freedom_needed(prior: Array, delta: float) -> float:
    """Return the degrees of freedom from which `simultaneous_half_width` is finite."""
    needed = math.inf
    for rho in GRID:
        level, shares = _level(rho * prior, delta)
        smallest = min(max(float(shares.min()), 1e-12), 1 - 1e-12)
        needed = min(needed, -level / math.log1p(-smallest) - len(prior))
    return needed


def _level(precision: Array, delta: float) -> tuple[float, Array]:
    """Return l and s of one mixture."""
    growth = float(np.log1p(1 / precision).sum())
    return 2 * math.log(len(GRID) / delta) + growth, 1 / (1 + precision)


def evidence(away: Array, root: Array, first: Array, freedom: float) -> tuple[float, float]:
    r"""Return :math:`q = e^\top S^{-1}e` and the log of the evidence against e = 0.

    S = ``root root'`` is the variance of the estimates e and :math:`\Phi^{-1}` = ``first first'``
    that of the mixture, fixed before the data, both over that of the noise. With
    :math:`q_0 = e^\top(S + \Phi^{-1})^{-1}e`, :math:`\nu` degrees of freedom and k estimates it is

    .. math:: -\tfrac12\log\det(I + \Phi^{-1}S^{-1})
              + \tfrac{\nu + k}2\log\frac{1 + q/\nu}{1 + q_0/\nu},

    and :math:`\frac12(q - q_0)` is the last term where the noise is known.
    """
    c = linalg.factor(root @ root.T)
    lower = np.linalg.solve(c, np.column_stack([away, first]))
    e, wide = lower[:, 0], lower[:, 1:]
    spread, vectors = np.linalg.eigh(wide @ wide.T)
    spread = np.maximum(spread, 0.0)
    square, less = float(e @ e), float((vectors.T @ e) ** 2 @ (1 / (1 + spread)))
    if freedom == math.inf:
        gain = (square - less) / 2
    else:
        gain = (freedom + len(e)) / 2 * (math.log1p(square / freedom) - math.log1p(less / freedom))
    return square, gain - 0.5 * float(np.log1p(spread).sum())


def f_tail(statistic: float, count: int, freedom: float) -> float:
    """Return the probability that F is larger, of chi-squared over ``count`` without freedom."""
    from scipy.special import chdtrc, fdtrc

    if freedom == math.inf:
        return float(chdtrc(count, count * statistic))
    return float(fdtrc(count, freedom, statistic))
