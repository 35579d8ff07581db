"""What a state knows of its rows, and how far it is from the minimiser at most: scalar formulas.

Python calls them, and kernels compile them. ``s`` are the numbers of a streaming state.
"""

import math
from collections.abc import Callable

from .adaptive_set import EPS
from .layout import BUFFER, FACTOR, FINE, FLUSH, PASS, Header

STALE_FROM = 12  # features from which keeping a stale factor saves more than a pass
CANCELS = 1e6  # c x'H^-1 x beyond which an update loses too many digits of the inverse


def note_row(s: Header, r: float, pull: float, c: float, q: float, square: float) -> None:
    """Note a row of residual r, weighted label, curvature c, leverage q and squared length."""
    s.count += 1.0
    s.leverage = max(s.leverage, q)
    length = math.sqrt(square)
    s.longest = max(s.longest, length)
    s.total += length * (abs(r) + abs(pull))
    s.curved += c * square
    if c * q > CANCELS or s.count == 2.0 * s.dim or s.count == 4.0 * s.dim:
        s.due = FACTOR


def note_label(s: Header, y: float, w: float) -> None:
    """Note the label and the weight of a row that is now in the buffer."""
    s.buffered += 1.0
    s.heaviest = max(s.heaviest, w)
    s.squares += w * y * y
    s.lowest = min(s.lowest, y)
    s.highest = max(s.highest, y)
    if s.buffered == BUFFER and s.due == FINE:
        s.due = FLUSH


def certify(s: Header, length2: float, chord: Callable[[float], float]) -> None:
    """Set residual bound B and gap from travel, staleness and ||u||^2.

    With rho = min(R ||u||, sqrt(q) nu) >= |x.u|, q the largest leverage x'H^-1 x, ratios of
    curvatures in [low, high], and gamma the largest distance of one of them from 1:
    B = min(gamma nu, Gamma rho) + high C nu, where
    C = skew rho/2 + (N/M^3) (e^{M rho} - 1 - M rho - (M rho)^2/2) / rho, bounds the gradient at
    m + u in the norm of the inverse of H. The minimiser is then within e^{M rho} B / low times the
    factor e^{Mz}, z the smaller root of z = b e^{M rho} e^{Mz}; b bounds the change of a score over
    an H-distance of B / low: min(R / sqrt(lambda_min), sqrt(q)) B / low.
    """
    R = s.longest
    M = s.concordance
    low = s.stale_low
    high = s.stale_high
    nu = s.step_norm
    length = math.sqrt(length2)
    lever = math.sqrt(s.leverage)
    rho = min(R * length, lever * nu)
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
    bracket = 0.5 * s.skew * rho + tail
    B = min(max(high - 1.0, 1.0 - low) * nu, s.stale_sum * rho) + high * nu * bracket
    # without any condition, since H <= (K/kappa) UH and F is 1-strongly convex in UH
    gap = s.spread * B
    per_low = 1.0 / max(low, 1e-300)  # used twice: no division at the end of a long chain
    stretch = min(R / math.sqrt(s.smallest), lever)
    factor = chord(stretch * M * per_low * (growth * B))
    if factor < math.inf:
        gap = min(gap, factor * (growth * per_low * B))
    s.residual = B
    s.score_shift = rho
    terms = s.total + s.curved * (s.length + length)
    s.blur = s.rounding * (s.dim + math.sqrt(s.count)) * terms
    # the inverse is known to a relative error of eps times the condition number
    s.loss = max(s.loss, (s.curved + s.dim * s.ridge) / s.smallest)
    s.blur += EPS * s.dim * s.loss * s.spread * nu
    s.gap = gap + s.blur
    size = s.scale * s.residual if s.calibrated != 0.0 else s.gap
    s.due = PASS if size > s.tolerance else FINE


def still_serves(s: Header, B: float, rho: float, gap: float, nu: float) -> bool:
    """Return whether the factor allows half the travel of a fresh one, at a new anchor.

    The others are what `certify` knew before. B grows like p t^2 + q t with the travel t, p from
    skewness and q from staleness.
    """
    if s.dim < STALE_FROM or not (0.0 < B < math.inf and nu > 0.0):
        return False
    reach = rho / nu
    p = 0.5 * s.skew * reach
    q = min(max(s.stale_high - 1.0, 1.0 - s.stale_low), s.stale_sum * reach)
    target = s.tolerance / s.scale
    if s.calibrated == 0.0:
        target *= B / gap
    t = (math.sqrt(q * q + 4.0 * p * target) - q) / (2.0 * p) if p > 0.0 else 0.0
    return t * t * p > 0.25 * target


def calibrate(s: Header, B: float) -> None:
    """Compare the measured error, which is the travel after a pass, with the B of before."""
    if s.calibrated != 0.0 and 0.0 < B < math.inf:
        s.scale = min(1.0, max(2.0 * s.step_norm / B, 0.97 * s.scale))
        size = s.scale * s.residual
        s.due = PASS if size > s.tolerance else FINE


def finished(s: Header, attempt: int, value: float, exact: bool) -> bool:
    """Return whether another pass is of no use, F(m) having been ``value`` before this one."""
    if not exact and s.due == FINE:
        return True
    # what is left is rounding: of the gradient, which the gap of a link whose slopes differ by many
    # orders overstates, or of the value that guards the steps
    proved = exact or s.calibrated == 0.0
    return (proved and s.gap <= 1.01 * s.blur) or (attempt > 2 and not s.value < value)
