r"""A level of the loss below which the true parameter stays at all times: a mixture around each.

For a likelihood with loss L and every parameter :math:`\theta`,
:math:`\int e^{L(\theta) - L(v)}N(v; \theta, (\rho D)^{-1})dv` is a martingale if :math:`\theta` is
true, so by Ville's inequality the set of all :math:`\theta` with

.. math:: \log\int e^{L(\theta) - L(v)}N(v; \theta, (\rho D)^{-1})\,dv \le c

holds the truth at all times, with N values of :math:`\rho` and :math:`c = \log(N/\delta)` for all
of them at once. For every q = N(m, S) the logarithm is at least
:math:`L(\theta) - E_qL - \mathrm{KL}(q\,|\,N(\theta, (\rho D)^{-1}))`, and so the set lies in

.. math:: L(\theta) \le E_qL + k + c + \tfrac\rho2|\theta - m|_D^2,\quad
          k = \tfrac12[\mathrm{tr}(\rho DS) - p - \log\det(\rho DS)].

With m the minimiser of L and :math:`S = (J + \rho D)^{-1}` this is near the best there is.

**The set is bounded.** Let :math:`e = \theta - m`. For :math:`0 < \beta \le 1` take
q = N(m + (1 - beta)e - h, S), or a share of S, where h makes up for convexity:
:math:`E_qL \le L(m + (1 - \beta)e) + \kappa`. For slopes of at most K this holds with h = 0 and
:math:`\kappa = \frac K2\sum w\sigma^2`, :math:`\sigma^2 = u^\top Su` of a row u; for counts with
:math:`u\cdot h \ge \sigma^2/2` in all rows and :math:`\kappa = \sum wy\,u\cdot h`. Since L is
convex, :math:`L(\theta) - L(m + (1 - \beta)e) \ge \beta(L(\theta) - L(m))`. With
:math:`B = c + k + \kappa + \frac\rho2|h|_D^2`, in the set therefore

.. math:: L(\theta) - L(m) \le \psi(|e|_D),\quad
   \psi(R) = \min_{\beta \le 1}\tfrac B\beta + \tfrac\rho2\beta R^2 + \rho|h|_DR.

On the other side, :math:`L(\theta) - L(m) \ge \sum w\varphi'(u\cdot m)\,\omega(u\cdot e)`,
:math:`\omega(x) = e^{-|x|} + |x| - 1`, since :math:`|\varphi''| \le \varphi'`. Of all e with
:math:`|e|_J = r` and hence :math:`|u\cdot e| \le \eta r`, :math:`\eta^2 = u^\top J^{-1}u`, the sum
is at least what rows of the largest :math:`\eta` give that have
:math:`\sum w\varphi'\eta^2 = 1`, because :math:`\omega(x)/x^2` falls. With
:math:`r \ge \sqrt\lambda R`, :math:`\lambda` the least eigenvalue of :math:`D^{-1}J`, this is a
convex :math:`\Omega(R)`. It exceeds :math:`\psi` beyond one point at most, since
:math:`\Omega(R)/R` rises where :math:`\psi` is a line through 0, and before that
:math:`\Omega - \psi` is first convex and then concave. So with R this point :math:`|e|_D \le R` in
the whole set, L rises by at most :math:`\Omega(R)`, and hence :math:`|e|_J \le \sqrt\lambda R` too.

**And lies in a sublevel set of L.** Now :math:`|u\cdot e| \le r = \eta\sqrt\lambda R`, the largest
:math:`\eta` taken, and the same q with h = 0 does better. With :math:`\tau = 1 - \beta`, convexity
costs at most :math:`e^{r\tau}` of what it costs at m, and :math:`L(m + \tau e) - L(m)` is at most
:math:`\omega(r\tau)/\omega(r)` of :math:`L(\theta) - L(m)`: with :math:`\ell(t) = L(m + te) - L(m)`
the ratio is :math:`\int(\tau - t)_+\ell''/\int(1 - t)\ell''`, where :math:`\ell''e^{rt}` rises and
:math:`(\tau - t)_+/(1 - t)` falls. So

.. math:: L(\theta) - L(m) \le \min_\beta\frac{c + k + e^{r\tau}(E_{N(m, S)}L - L(m))
          + \frac\rho2\beta^2R^2}{1 - \omega(r\tau)/\omega(r)},

which gives a smaller R by :math:`\Omega`, and so on. A quadratic L with J a multiple of D has the
exact set for its limit.

D comes from the features and weights of the first 2d + 10 rows, so these must not depend on labels;
all others may.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array
from ...theory.mixtures import GRID
from .maximum_likelihood import Design, Estimate

NODES = {0.25: 6, 2.0: 40}  # by the sd of a score up to which a quadrature is exact to 1e-8
ROUNDING = 1e-6  # by which the level is raised
BETA = np.arange(1, 65) / 64


@one_thread
def level(fit: Estimate, delta: float, dispersion: float = 1.0) -> float:
    """Return an upper bound of L - min L over the set, infinite where there is none."""
    if not fit.exists or not fit.design.rank or not fit.design.sums.frozen:
        return math.inf
    unit = fit.design.unit / dispersion
    c, growth = math.log(len(GRID) / delta), _growth(fit, dispersion)
    found = [_level(fit, rho * unit, c, dispersion, growth) for rho in GRID]
    return dispersion * min(found) * (1 + ROUNDING)


class Smoothed(NamedTuple):
    """What a Gaussian q adds to the loss at its mean: at m, and at most with |h|_D."""

    here: float
    most: float
    moment: float


def _level(fit: Estimate, rho: float, c: float, dispersion: float, growth: "_Growth") -> float:
    """Return the level for one precision, in units of the dispersion."""
    D, prior = fit.design.mixture, rho * fit.design.prior[0]
    J = (fit.basis * (fit.values / dispersion)) @ fit.basis.T
    factor = linalg.factor(J + rho * D)
    S = linalg.invert(factor)
    trace, p = rho * float(np.sum(D * S)), len(J)
    k = 0.5 * (trace - p + linalg.log_det(factor) - float(np.log(prior).sum()))
    q = _smoothed(fit, S, dispersion)
    if q.most == math.inf:
        return math.inf
    share = min(p / (trace + 2 * q.most), 1.0)  # of S, far away
    B = c + k + 0.5 * (share - 1) * trace - 0.5 * p * math.log(share) + share * q.most
    h = share * q.moment
    R = growth.radius(B + 0.5 * rho * h * h, rho, h)
    if not math.isfinite(R):
        return math.inf
    height = math.inf
    for _ in range(100):  # each of them holds
        height = min(height, _near(c + k, q, rho, R, growth.steepest * R))
        smaller = growth.inverse(height)
        if smaller >= R * (1 - 1e-4):
            break
        R = smaller
    return height


def _near(start: float, q: Smoothed, rho: float, R: float, r: float) -> float:
    """Return the largest rise of L in the set, given that |e|_D <= R and |u . e| <= r there."""
    most = q.most if q.moment == 0 else math.inf
    added = np.minimum(np.exp(np.minimum(r * (1 - BETA), 700.0)) * q.here, most)
    return float(((start + added + 0.5 * rho * (BETA * R) ** 2) / (1 - _ratio(r))).min())


def _ratio(r: float) -> Array:
    """Return omega(r (1 - beta))/omega(r)."""
    tau = 1 - BETA
    if r < 1e-3:
        return np.asarray(tau * tau * (1 + r * BETA / 3))  # to second order, from above
    return (np.expm1(-r * tau) + r * tau) / (math.expm1(-r) + r)


def _smoothed(fit: Estimate, S: Array, dispersion: float) -> Smoothed:
    design, w = fit.design, fit.design.w / dispersion
    square = linalg.forms(design.u, S)
    if design.link.name == "exponential":
        with np.errstate(over="ignore", invalid="ignore"):
            added = float(w @ (design.link.mean(fit.scores) * np.expm1(square / 2)))
        h = _cover(design, square / 2)
        if h is None or not math.isfinite(added):
            return Smoothed(math.inf, math.inf, math.inf)
        moment = linalg.norm(h, design.mixture)
        return Smoothed(added, float((w * design.y) @ (design.u @ h)), moment)
    most, sd, least = 0.5 * design.slope * square, np.sqrt(square), -1.0
    here = most.copy()
    for widest, count in NODES.items():
        near = (sd > least) & (sd <= widest)
        if near.any():
            here[near] = _added(design, fit.scores[near], sd[near], count)
        least = widest
    return Smoothed(float(w @ here), float(w @ most), 0.0)


def _added(design: Design, scores: Array, sd: Array, count: int) -> Array:
    """Return the mean of the potential around scores, less that at them, by quadrature."""
    nodes, weights = _quadrature(count)
    mean = design.potential(scores[:, None] + sd[:, None] * nodes) @ (weights / weights.sum())
    return np.asarray(mean - design.potential(scores))


_quadrature = cache(np.polynomial.hermite_e.hermegauss)  # by the number of nodes


def _cover(design: Design, least: Array) -> Array | None:
    """Return a vector whose score in each row is at least the given one, if constants give one."""
    h = design.w @ design.u  # the constant 1, or what the span has of it
    scores = design.u @ h
    if scores.min() <= 0:
        return None
    return np.asarray(h * float((least / scores).max()))


class _Growth:
    """Omega: how much the loss grows at least, as a function of |theta - m|_D."""

    def __init__(self, a: Array, eta: Array, root: float) -> None:
        self.a, self.eta, self.root = a, eta, root
        self.steepest = root * float(eta.max())  # times R: |u . e| where L rises by Omega(R)

    def __call__(self, R: float) -> float:
        x = self.eta * (self.root * R)
        with np.errstate(over="ignore"):
            return float(self.a @ np.where(x < 1e-4, x * x * (0.5 - x / 6), np.expm1(-x) + x))

    def inverse(self, value: float) -> float:
        """Return where it takes a value, from above."""
        high = 1.0
        while self(high) <= value:
            high *= 2
        return _crossing(lambda R: self(R) - value, 0.0, high)

    def radius(self, B: float, rho: float, h: float) -> float:
        """Return R beyond which the growth exceeds psi, infinite where it never does for good."""
        if self.root * float(self.a @ self.eta) <= (1 + 1e-6) * (math.sqrt(2 * B * rho) + rho * h):
            return math.inf
        bend = math.sqrt(2 * B / rho)  # psi is a line from there on

        def excess(R: float) -> float:
            beta = min(bend / R, 1.0) if R > 0 else 1.0
            return self(R) - B / beta - 0.5 * rho * beta * R * R - rho * h * R

        high = bend
        while excess(high) <= 0:
            high *= 2
        return _crossing(excess, 0.0 if high == bend else bend, high)


def _growth(fit: Estimate, dispersion: float) -> _Growth:
    """Return Omega as a function of |e|_D, which |e|_J exceeds by the root of lambda at least."""
    values, vectors = fit.design.prior
    half = (vectors / np.sqrt(values)).T @ (fit.basis * np.sqrt(fit.values / dispersion))
    least = max(float(np.linalg.eigvalsh(half @ half.T)[0]), 0.0)
    return growth(fit, dispersion, math.sqrt(least))


def growth(fit: Estimate, dispersion: float = 1.0, root: float = 1.0) -> _Growth:
    """Return Omega of ``root`` |e|_J, of the rows of largest leverage that sum to 1."""
    design = fit.design
    a = design.w * design.link.slope(fit.scores) / dispersion
    eta = np.sqrt(dispersion * linalg.forms(design.u, fit.inverse))
    order = np.argsort(-eta, kind="stable")
    a, eta = a[order], eta[order]
    total = np.cumsum(a * eta * eta)
    last = int(np.searchsorted(total, 1.0)) if total[-1] > 1 else len(a) - 1
    a = a[: last + 1].copy()
    before = float(total[last - 1]) if last else 0.0
    a[last] = min(a[last], (1 - before) / eta[last] ** 2) if eta[last] > 0 else 0.0
    return _Growth(a, eta[: last + 1], root)


def _crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Return a point behind the one where a function becomes positive, within 1e-8 of it."""
    from scipy.optimize import brentq

    if function(low) > 0:  # at the edge, by rounding
        return low
    return float(brentq(function, low, high, xtol=1e-300, rtol=1e-9)) * (1 + 1e-8)
