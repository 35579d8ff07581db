"""How far an estimate is from the minimiser at most, and whether a pass is due."""

import math

from numba import njit

from ..kernels import adaptive_set
from ..kernels.adaptive_set import EPS
from ..kernels.compile_options import INNER
from .numbers import FINE, PASS

chord = njit(**INNER)(adaptive_set.chord)


@njit(**INNER)
def set_due(s):
    """Note whether a pass is due: the gap, or the likely residual if calibrated, is too large."""
    size = s.scale * s.residual if s.calibrated != 0.0 else s.gap
    s.due = PASS if size > s.tolerance else FINE


@njit(**INNER)
def certify(s, d, length2):
    """Set residual bound B and gap from travel, staleness and ||u||^2.

    With rho = min(R ||u||, sqrt(q) nu) >= |x.u|, q the largest leverage x'H^-1 x, ratios of
    curvatures in [low, high], and gamma the largest distance of one of them from 1:
    B = min(gamma nu, Gamma rho) + high C nu, where
    C = skew rho/2 + (N/M^3) (e^{M rho} - 1 - M rho - (M rho)^2/2) / rho, bounds the gradient at
    m + u in the norm of the inverse of H. The minimiser is then within e^{M rho} B / low times the
    factor e^{Mz}, z the smaller root of z = b e^{M rho} e^{Mz}; b bounds the change of a score over
    an H-distance of B / low: min(R / sqrt(lambda_min), sqrt(q)) B / low.
    """
    M, nu, length = s.concordance, s.step_norm, math.sqrt(length2)
    lever = math.sqrt(s.leverage)
    rho = min(s.longest * length, lever * nu)
    t = M * rho
    if t <= 1.0:
        growth = 1.0 + t + t * t * (0.5 + 0.25 * t)  # >= e^t on [0, 1]
        tail = s.third * rho * rho * growth / 6.0
    elif t < 300.0:
        growth = math.exp(t)
        tail = s.third / (M * M * M) * (growth - 1.0 - t - 0.5 * t * t) / rho
    else:
        growth = math.inf
        tail = math.inf
    stale = min(max(s.stale_high - 1.0, 1.0 - s.stale_low) * nu, s.stale_sum * rho)
    B = stale + s.stale_high * nu * (0.5 * s.skew * rho + tail)
    # without any condition, since H <= (K/kappa) UH and F is 1-strongly convex in UH
    gap = s.spread * B
    per_low = 1.0 / s.stale_low
    reach = min(s.longest / math.sqrt(s.smallest), lever)
    factor = chord(reach * M * per_low * (growth * B))
    if factor < math.inf:
        gap = min(gap, factor * (growth * per_low * B))
    s.residual, s.score_shift = B, rho
    terms = s.total + s.curved * (s.length + length)
    rounding = EPS / math.sqrt(max(1.0, s.smallest / (s.spread * s.spread)))
    # the inverse is known to a relative error of eps times the condition number
    s.loss = max(s.loss, (s.curved + d) / s.smallest)
    s.blur = rounding * (d + math.sqrt(s.count)) * terms + EPS * d * s.loss * s.spread * nu
    s.gap = gap + s.blur
    set_due(s)
