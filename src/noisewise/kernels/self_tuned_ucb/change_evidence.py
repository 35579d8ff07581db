"""What a reward says of a change of the world, compiled: log L of the restart test.

L is a likelihood ratio, of the learner that forgets over the other. Rewards that follow each other
closely would look like a change, so residuals are taken less what the last ones predict: rho times
those, rho the lag correlation of the learner that forgets since the last restart.
"""

import math

from numba import njit

from ..compiling.compile_options import INNER, PART
from . import self_tuned_ucb_numbers as known
from .self_tuned_learner import slope

ALARM, SHARE_ALARM, MOST_EVIDENCE = 1e5, 3e4, 1e100  # E that means a restart; largest E
LONG = 3000.0  # rewards without a change; with more, changes found are doubted
SURPRISE = 3.0  # most log L: one reward that the model rules out is no change yet
FAR = 3.0  # standardised residuals beyond it count as that
PRIOR_ROWS = 3.0  # that the width of tails begins with
MORE, MARGIN = 0.1, 2.0  # by which a clear correlation is taken larger: a share, standard errors
STRONGEST = 0.95
LARGEST = 1e6  # squared standardised residual that tells of tails
PRICE = 0.02  # of each share: where the model is not right, one that forgets is a little better
CLOSEST, SMALLEST = 0.25, 1e-9  # of the way to 0 or 1 that is left to a share; least share
clear_correlation = njit(**PART)(known.clear_correlation)


@njit(**INNER)
def capped(a):
    """Return a residual within three standard deviations."""
    return min(max(a, -FAR), FAR)


@njit(**PART)
def correlation(s):
    """Return rho, a clear one with a margin, since one too small makes the test err."""
    rho = clear_correlation(s.lag_products, s.lag_squares, s.since_restart)
    if rho > 0.0:
        error = math.sqrt(max(1.0 - rho * rho, 0.0) / (1.0 + s.since_restart))
        rho += MORE * rho + MARGIN * error
    else:
        rho = max(s.lag_products / (known.PRIOR_SQUARES + s.lag_squares), 0.0)
    return min(rho, STRONGEST)


@njit(**PART)
def remember(s, a, recent):
    """Keep the residuals for the next reward, and count the correlation of the second in a row.

    A change makes those of the first, which does not forget, follow each other.
    """
    s.lag_products += capped(recent) * s.last_recent
    s.lag_squares += s.last_recent * s.last_recent
    s.last_residual, s.last_recent = capped(a), capped(recent)


@njit(**PART)
def number_evidence(s, a, recent):
    """Return log L of standardised residuals: t densities with two degrees of freedom.

    Their scale is 1, or the mean square of all where tails are so heavy that capped ones, of which
    the dispersion is made, say too little.
    """
    rho = correlation(s)
    s.tails += min(a * a, LARGEST)
    scale = 2.0 * max(1.0, (PRIOR_ROWS + s.tails) / (PRIOR_ROWS + s.since_restart))
    x, y = a - rho * s.last_residual, recent - rho * s.last_recent
    remember(s, a, recent)
    return min(1.5 * (math.log1p(x * x / scale) - math.log1p(y * y / scale)), SURPRISE)


@njit(**INNER)
def moved(p, away):
    """Return a share moved, but not too close to 0 or 1."""
    p = min(max(p, SMALLEST), 1.0 - SMALLEST)
    return min(max(p + away, CLOSEST * p), 1.0 - CLOSEST * (1.0 - p))


@njit(**PART)
def share_evidence(s, p, recent, y, n):
    """Return log L of a share ``y`` of ``n`` trials, of which both expect p and ``recent``.

    Shares that follow each other have correlations beyond the last, and tell less of a mean, by a
    factor of (1 - rho)/(1 + rho), which is taken here too.
    """
    rho, root = correlation(s), math.sqrt(n)
    sd, recent_sd = math.sqrt(slope(p)), math.sqrt(slope(recent))
    old, new = moved(p, rho * sd * s.last_residual), moved(recent, rho * recent_sd * s.last_recent)
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
    s.lag_products = s.lag_squares = s.last_residual = s.last_recent = s.tails = 0.0
    s.slopes = s.slope_squares = 0.0


@njit(**INNER)
def undecided(s):
    """Return how many rewards since the last change could go either way, by their slopes.

    It is Kish's effective number, all of them where slopes are equal. Rewards that were certain,
    whatever the number of their contexts, are no reason to explore.
    """
    return s.slopes * s.slopes / s.slope_squares if s.slope_squares > 0.0 else 0.0


@njit(**INNER)
def patience(rewards):
    """Return how many rewards there are in units of `LONG`, at least 1."""
    return max(rewards / LONG, 1.0)


@njit(**PART)
def shows_change(s, L, D):
    """Count L of a reward in the evidence; return whether that shows a change."""
    s.evidence = min((s.evidence + 1.0) * L, MOST_EVIDENCE)
    alarm, doubt = SHARE_ALARM if s.family == known.BINOMIAL else ALARM, patience(s.since_restart)
    return s.evidence > alarm * doubt * doubt and s.since_restart > D
