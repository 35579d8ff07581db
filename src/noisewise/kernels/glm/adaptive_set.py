"""Scalar formulas of the adaptive confidence set: Python calls them, and kernels compile them.

``s`` are the numbers of a streaming state. No formula calls another: each is compiled alone.
"""

import math

from .layout import Header

EPS = 2.220446049250313e-16
DOUBT = 1e-8


def level(ridge: float, bound: float, price: float, excess: float) -> float:
    """Return b = lam B^2 + C log(1/delta) + excess, given 2 lam, B and the price C log(1/delta)."""
    return max(0.5 * ridge * bound * bound + price + excess, 0.0)


def soft_minimum(played: float, mixed: float, constant: float) -> float:
    """Return -C log(e^{-played/C}/2 + e^{-mixed/C}/2), at most the smaller one plus C log 2."""
    apart = math.exp(-abs(played - mixed) / constant)
    return min(played, mixed) + constant * (math.log(2.0) - math.log1p(apart))


def stretch(s: Header) -> float:
    """Return the most a score of a row can change over a unit distance in the norm of H."""
    return min(s.longest / math.sqrt(s.smallest), math.sqrt(s.leverage))


def growth(s: Header) -> float:
    """Return e^{M rho}: the most a curvature changes between the anchor and the estimate."""
    return math.exp(min(s.concordance * s.score_shift, 700.0))


def nearness(s: Header, stretch: float, growth: float) -> float:
    """Return M times the change of a score within the residual's distance of the estimate."""
    return s.concordance * stretch * s.residual * growth / max(s.stale_low, 1e-300)


def chord(near: float) -> float:
    """Return a bound of e^{Mz}, z the smaller root of Mz = near e^{Mz}; infinite beyond 1/4.

    The function is convex, and 1, 1.1183, 1.4297 at 0, 0.1, 0.25.
    """
    if near <= 0.1:
        return 1.0 + 1.2 * near
    if near <= 0.25:
        return 1.12 + 2.1 * (near - 0.1)
    return math.inf


def excess(s: Header, growth: float, chord: float) -> float:
    """Return a bound of the played loss less the minimum of F.

    F(m) - min F <= nu^2 / (2 c), by strong convexity along the segment to the minimiser.
    """
    most = min(s.spread * s.spread, growth * chord / max(s.stale_low, 1e-300))
    return s.played - s.value + 0.5 * most * s.step_norm * s.step_norm


def mixture(
    s: Header,
    constant: float,
    ridge: float,
    square: float,
    form: float,
    log_det: float,
    excess: float,
) -> float:
    """Return L0(m) - form/2 + (C/2) log det, less the same bound of the minimum as in ``excess``.

    L0 has 2 lam0 = ``ridge``, and ``square`` is |m|^2.
    """
    start = s.value + 0.5 * (ridge - s.ridge) * square - (s.played - excess)
    return start - 0.5 * form + 0.5 * constant * log_det


def linear_mixture(constant: float, move: float, pull: float, log_det: float) -> float:
    """Return the same for least squares: ``pull`` is theta'H0^-1 g, ``move`` 2 lam0 - 2 lam."""
    return 0.5 * (constant * log_det - move * pull)


def counts_log_det(s: Header, steepest: float, ridge: float, log_det: float) -> float:
    """Return a bound of log det(I + c G / 2 lam0) from the solver's, log c being ``steepest``."""
    factor = max(s.stale_high, 1.0) * s.ridge / ridge
    return log_det + s.dim * max(steepest + math.log(factor), 0.0)


def local_radius(
    s: Header, level: float, radius: float, length: float, stretch: float, growth: float
) -> float:
    r"""Return r with :math:`\|\mu^*-\mu\|_H \le r`, H the matrix of the solver.

    The local matrix at :math:`\mu` is at least cH with c = (low / growth) 2/(2 + M rho), which
    accounts for the anchor and for stale curvatures; rho is at least the change of a score between
    estimate and truth. The global ``radius`` and ``length``, the most that the two can be apart,
    give a first rho; each radius gives a smaller one, until it settles.
    """
    least = max(s.ridge, s.smallest / (s.spread * s.spread))
    rho = s.longest * min(length, radius / math.sqrt(least))
    while True:
        c = s.stale_low / growth * 2.0 / (2.0 + s.concordance * rho)
        if not c > 0.0:  # so far from the anchor that nothing is known of the curvature
            return math.inf
        e = (s.residual + s.blur) / math.sqrt(c)
        r = (e + math.sqrt(e * e + 2.0 * level)) / math.sqrt(c)
        if not stretch * r < 0.999 * rho:
            return r
        rho = stretch * r


def trusted(s: Header, trace: float) -> bool:
    """Return whether rounding can't have spoilt an inverse of that trace."""
    return EPS * s.dim * (s.curved + s.dim * s.ridge) * trace <= DOUBT


def linear_gap(s: Header, length: float, trace: float) -> float:
    """Return what rounding can make of the gap of least squares, with a hundredfold margin."""
    terms = s.total + s.curved * length
    blur = EPS * (s.dim + math.sqrt(s.count)) * terms
    return 100.0 * blur * math.sqrt(trace)
