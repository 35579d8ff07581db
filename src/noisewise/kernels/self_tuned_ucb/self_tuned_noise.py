"""The noise of rewards, compiled: what `SelfTunedUCB` learns of its size from residuals.

Where sds are given, how far they can be trusted is learnt; where not, how noise differs from arm to
arm: with M the sum of squared standardised residuals times z z', P M P is the variance of the
estimate whatever the noise of each row (a sandwich). It is kept beside M: rank one changes both.
"""

import math

import numpy as np
from numba import njit

from ..compiling.compile_options import INNER, PART, RARE
from ..matrices.dense import add_outer, times
from .self_tuned_ucb_numbers import M

PRIOR_ROWS = 3.0  # that the prior dispersion counts
OUTLIER = 9.0  # squared standardised residual
TRUSTING = 10.0  # residuals before any is an outlier
HEAVIEST = 16.0  # weight of a continuous reward, over the geometric mean of all
LOG_SQUARE_SD = math.pi / math.sqrt(2.0)  # of the logarithm of a squared standard normal
CERTAIN = 2.0  # standard errors before given sds are distrusted


@njit(**INNER)
def dispersion(s):
    """Return phi; before residuals it is 1 where sds are given, else the variance of rewards."""
    v = s.weighted_squares / max(s.count - 1.0, 1.0)
    if s.sds_given > 0.0:
        v = 1.0
    return (PRIOR_ROWS * v + s.residuals) / (PRIOR_ROWS + s.residual_count)


@njit(**INNER)
def largest_residual(s):
    """Return the squared standardised residual beyond which a row counts less."""
    return OUTLIER * dispersion(s) if s.residual_count >= TRUSTING else math.inf


@njit(**INNER)
def trusted(w, typical, distrust):
    """Return what a given weight counts: :math:`g (w/g)^{1-b}`, g typical, w at most 16 g."""
    w = min(w, HEAVIEST * typical)
    return typical * (w / typical) ** (1.0 - distrust)


@njit(**RARE)
def distrust(s):
    """Return b: how log r^2 w grows with log w, which it does not if the given sds are right."""
    n = s.log_count
    if n < 2.0:
        return 0.0
    square = s.log_spread_squares - s.log_spread * s.log_spread / n
    if not square > 0.0:
        return 0.0
    grown = s.log_products - s.log_spread * s.log_squares / n
    b = grown / square - CERTAIN * LOG_SQUARE_SD / math.sqrt(square)
    return min(max(b, 0.0), 1.0)


@njit(**PART)
def count_reward(s, y, w):
    """Count a continuous reward, less the origin, in the running moments."""
    s.log_weights += math.log(w)
    move = y - s.mean_reward
    s.mean_reward += move / s.count
    s.squares += move * (y - s.mean_reward)
    move = y - s.weighted_mean
    s.weighted_mean += move * w / s.weights
    s.weighted_squares += w * move * (y - s.weighted_mean)
    if w != 1.0:
        s.sds_given = 1.0


@njit(**PART)
def count_residual(s, r, leverage, square, given):
    """Count a residual, given the leverage w z'Pz, in what tells whether given sds are right."""
    if s.count > 1.0:
        share = leverage / (1.0 + leverage)
        s.novel_residuals += share * square
        s.novelty += share
    if leverage < 1.0 and r * r > 0.0:  # mostly noise
        x = math.log(given)
        y = math.log(r * r) + x
        s.log_count += 1.0
        s.log_spread += x
        s.log_squares += y
        s.log_spread_squares += x * x
        s.log_products += x * y


@njit(**PART)
def count_noise(s, m, z, k, q, c, square):
    """Count a squared standardised residual; ``k`` and q are Pz and z'Pz of before the row."""
    s.residuals += square
    s.residual_count += 1.0
    if s.sds_given > 0.0:
        return
    S, g = m[M.sandwich], np.empty(z.shape[0])
    f, left = times(S, z, g), 1.0 / (1.0 + c * q)
    a = c * left
    b = a * a * f + square * left * left
    add_outer(m[M.noise], z, square)
    for i in range(z.shape[0]):
        for j in range(i + 1):
            S[i, j] += b * k[i] * k[j] - a * (k[i] * g[j] + g[i] * k[j])
            S[j, i] = S[i, j]


@njit(**RARE)
def renew_noise(m):
    """Set P M P for another P."""
    P, S = m[M.inverse], m[M.sandwich]
    D = P.shape[0]
    Mp, PMp = np.empty(D), np.empty((D, D))
    for i in range(D):
        times(m[M.noise], P[i], Mp)
        times(P, Mp, PMp[i])
    for i in range(D):
        for j in range(i + 1):
            S[i, j] = S[j, i] = 0.5 * (PMp[i, j] + PMp[j, i])


@njit(**INNER)
def own_dispersion(h, f, prior):
    """Return phi of an arm: that of the 1/h rewards near it and of one more, the prior's.

    It is the prior's at least; ``f`` is z'PMPz, h is z'Pz.
    """
    return max(prior, (f / h + h * prior) / (1.0 + h)) if h > 0.0 else prior
