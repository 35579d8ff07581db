"""What a reward says of a change of the world, compiled: log L of the restart test.

L is a likelihood ratio, of the learner that forgets over the other. Rewards that follow each other
closely would look like a change, so residuals are taken less what the last ones predict: rho times
those, rho the lag correlation of the learner that forgets since the last restart.
"""

import math

from numba import njit

from . import self_tuned_ucb_layout as at
from .compile_options import INNER, PART

SURPRISE = 3.0  # most log L: one reward that the model rules out is no change yet
FAR = 3.0  # standardised residuals beyond it count as that
PRIOR_ROWS = 3.0  # that the width of tails begins with
MORE, MARGIN = 0.1, 2.0  # by which a clear correlation is taken larger: a share, standard errors
STRONGEST = 0.95
LARGEST = 1e6  # squared standardised residual that tells of tails
PRICE = 0.03  # of each share: where the model is not right, one that forgets is a little better
CLOSEST, SMALLEST = 0.25, 1e-9  # of the way to 0 or 1 that is left to a share; least share
clear_correlation = njit(**PART)(at.clear_correlation)


@njit(**INNER)
def capped(a):
    """Return a residual within three standard deviations."""
    return min(max(a, -FAR), FAR)


@njit(**PART)
def correlation(s):
    """Return rho, a clear one with a margin, since one too small makes the test err."""
    rho = clear_correlation(s[at.LAG_PRODUCTS], s[at.LAG_SQUARES], s[at.SINCE])
    if rho > 0.0:
        error = math.sqrt(max(1.0 - rho * rho, 0.0) / (1.0 + s[at.SINCE]))
        rho += MORE * rho + MARGIN * error
    else:
        rho = max(s[at.LAG_PRODUCTS] / (at.PRIOR_SQUARES + s[at.LAG_SQUARES]), 0.0)
    return min(rho, STRONGEST)


@njit(**PART)
def remember(s, a, recent):
    """Keep the residuals for the next reward, and count the correlation of the second in a row.

    A change makes those of the first, which does not forget, follow each other.
    """
    s[at.LAG_PRODUCTS] += capped(recent) * s[at.LAST_RECENT]
    s[at.LAG_SQUARES] += s[at.LAST_RECENT] * s[at.LAST_RECENT]
    s[at.LAST], s[at.LAST_RECENT] = capped(a), capped(recent)


@njit(**PART)
def number_evidence(s, a, recent):
    """Return log L of standardised residuals: t densities with two degrees of freedom.

    Their scale is 1, or the mean square of all where tails are so heavy that capped ones, of which
    the dispersion is made, say too little.
    """
    rho = correlation(s)
    s[at.TAILS] += min(a * a, LARGEST)
    scale = 2.0 * max(1.0, (PRIOR_ROWS + s[at.TAILS]) / (PRIOR_ROWS + s[at.SINCE]))
    x, y = a - rho * s[at.LAST], recent - rho * s[at.LAST_RECENT]
    remember(s, a, recent)
    return min(1.5 * (math.log1p(x * x / scale) - math.log1p(y * y / scale)), SURPRISE)


@njit(**INNER)
def moved(p, away):
    """Return a share moved, but not too close to 0 or 1."""
    p = min(max(p, SMALLEST), 1.0 - SMALLEST)
    return min(max(p + away, CLOSEST * p), 1.0 - CLOSEST * (1.0 - p))


@njit(**PART)
def share_evidence(s, p, recent, sd, recent_sd, y, n):
    """Return log L of a share ``y`` of ``n`` trials; ``sd`` is that of one trial.

    Shares that follow each other have correlations beyond the last, and tell less of a mean, by a
    factor of (1 - rho)/(1 + rho), which is taken here too.
    """
    rho, root = correlation(s), math.sqrt(n)
    old, new = moved(p, rho * sd * s[at.LAST]), moved(recent, rho * recent_sd * s[at.LAST_RECENT])
    found = 0.0
    if y > 0.0:
        found += n * y * math.log(new / old)
    if y < 1.0:
        found += n * (1.0 - y) * math.log((1.0 - new) / (1.0 - old))
    remember(s, (y - p) / sd * root, (y - recent) / recent_sd * root)
    return min(found * (1.0 - rho) / (1.0 + rho) - PRICE, SURPRISE)


@njit(**INNER)
def forget_residuals(s):
    """Begin again, after a restart."""
    s[at.LAG_PRODUCTS] = s[at.LAG_SQUARES] = s[at.LAST] = s[at.LAST_RECENT] = s[at.TAILS] = 0.0
