"""Quantiles of new labels whose mean is estimated and whose dispersion may exceed the family's."""

import numpy as np
from numpy.typing import NDArray

from ...protocols import Array
from .dispersion import Dispersion
from .maximum_likelihood import Estimate

NORMAL = 1e6  # counts of that mean are as good as continuous
NEARLY_POISSON = 1e-12  # relative variance of a mean that is as good as known
NEARLY_BINOMIAL = 1e-9  # correlation of trials that are as good as independent
MOST_TRIALS = 100_000  # whose probabilities are added up
LARGEST = 1e150


def new_labels(
    fit: Estimate,
    scores: Array,
    v: Array,
    law: Dispersion | float,
    delta: float,
    trials: Array,
    exposure: Array,
) -> tuple[Array, Array]:
    """Return bounds of new counts, or of shares of ``trials``, whose scores have variance v."""
    shares = fit.design.link.ends[1] == 1.0
    with np.errstate(over="ignore"):
        slope = np.asarray(fit.design.link.slope(scores))
        mean = np.minimum(fit.design.link.mean(scores) * exposure, LARGEST)
    if not isinstance(law, float):
        between = np.full(len(scores), law.extra(shares))
    else:
        between = max(law - 1, 0.0) / np.maximum(trials - 1 if shares else mean, 1 / LARGEST)
    tails = delta / 2, 1 - delta / 2
    if not shares:
        spread = np.minimum(v, 1.0) + between  # of more, a gamma variable is nearly always near 0
        lower, upper = (count_quantile(tail, mean, spread) for tail in tails)
        return lower, upper
    variance = mean * (1 - mean)
    part = np.divide(slope**2 * v, variance, np.zeros_like(v), where=variance > 0)
    correlation = np.minimum(between + part, 1.0)
    lower, upper = (success_quantile(tail, trials, mean, correlation) / trials for tail in tails)
    return lower, upper


def count_quantile(share: float, mean: Array, spread: Array) -> Array:
    r"""Return quantiles of a count whose mean is uncertain, with relative variance ``spread``.

    The mean is taken as gamma-distributed, so the count is negative binomial with variance
    :math:`m + sm^2`. That is the posterior of a mean of n counts with sum S under the prior
    1/mean, whose relative variance 1/S is that of the estimated score.

    >>> count_quantile(0.975, np.array([4.0, 4.0]), np.array([0.0, 0.25]))
    array([ 8., 11.])
    """
    from scipy.special import betainc, gammaincinv

    s = np.maximum(spread, NEARLY_POISSON)
    total = s + 1 / np.maximum(mean, NORMAL)
    large = np.floor(mean * total * gammaincinv(1 / total, share))
    m, s = mean[mean < NORMAL], s[mean < NORMAL]
    least, most = np.full(len(m), -1.0), np.ceil(m)

    def reached(k: Array) -> NDArray[np.bool_]:
        return np.asarray(1 - betainc(k + 1, 1 / s, m * s / (1 + m * s)) >= share)

    while not (enough := reached(most)).all():
        most = np.where(enough, most, 2 * most + 1)
    while (most - least > 1).any():
        middle = np.floor((least + most) / 2)
        enough = reached(np.maximum(middle, 0.0)) & (middle >= 0)
        least, most = np.where(enough, least, middle), np.where(enough, middle, most)
    large[mean < NORMAL] = most
    return large


def success_quantile(share: float, trials: Array, mean: Array, correlation: Array) -> Array:
    r"""Return quantiles of the number of successes in trials that are correlated within a row.

    The share is taken as beta-distributed, so the number is beta-binomial with variance
    :math:`km(1 - m)(1 + (k - 1)\rho)`.

    >>> both = np.array([20.0, 20.0])
    >>> success_quantile(0.975, both, np.array([0.5, 0.5]), np.array([0.0, 0.2]))
    array([14., 19.])
    """
    return np.array(
        [_successes(share, *each) for each in zip(trials, mean, correlation, strict=True)]
    )


def _successes(share: float, k: float, m: float, rho: float) -> float:
    from scipy.special import betaincinv, betaln, gammaln

    if not 0 < m < 1:
        return k * m
    if k > MOST_TRIALS:  # a share of the same mean and variance
        rho = (1 + (k - 1) * rho) / k
        return float(np.floor(k * betaincinv(m * (1 / rho - 1), (1 - m) * (1 / rho - 1), share)))
    size = 1 / min(max(rho, NEARLY_BINOMIAL), 1 - NEARLY_BINOMIAL) - 1
    a, b, j = m * size, (1 - m) * size, np.arange(k + 1)
    logs = gammaln(k + 1) - gammaln(j + 1) - gammaln(k - j + 1)
    logs = logs + betaln(j + a, k - j + b) - betaln(a, b)
    total = np.cumsum(np.exp(logs - logs.max()))
    return float(min(np.searchsorted(total, share * total[-1]), k))
