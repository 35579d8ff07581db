"""Links: the mean as an increasing function of the linear score, its slope and its potential."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..inputs import positive
from ..support.arrays import Array

Function = Callable[[Array], Array]
Bound = float | Callable[[float], float] | None  # a number, or one that depends on the score bound


@dataclass(frozen=True)
class Family:
    """Labels whose mean is a link.

    ``scale`` is s with E exp(t e) <= exp(t^2 s^2 / 2) for the noise e of a label of weight 1, None
    where there is none. In a ``canonical`` family the slope is the variance. `Likelihood` is proved
    up to scores of ``score_limit``.
    """

    name: str
    scale: float | None
    canonical: bool = True
    score_limit: float = math.inf


@dataclass(frozen=True)
class Compiled:
    """A link in the kernels: its ``code`` in kernels/glm/link_values.py."""

    code: int


@dataclass(frozen=True, repr=False)
class Link:
    r"""An increasing link :math:`\varphi` with slope :math:`\varphi'` and potential
    :math:`m(z) = \int_0^z \varphi`.

    Parameters
    ----------
    name : str
    mean, slope, potential : vectorised functions of the score
        Use named functions (not lambdas) if the link is to be pickled. Without ``potential`` it is
        integrated numerically.
    self_concordance : float, or a function of the score bound, or None
        M with :math:`|\varphi''| \le M \varphi'` on the scores in use; None if unknown.
    turning_points : tuple of float, optional
        Every score at which the slope has a local minimum or maximum. With it the slopes over an
        interval are exact, without it they come from a grid and a safety margin.
    third_derivative : float, or a function of the score bound, or None
        N with :math:`|\varphi'''| \le N \varphi'`; without it the solver's certificate is wider.
    family, compiled : of built-in links
        The labels that have the link for their mean, and its code in the kernels.

    Examples
    --------
    >>> LINKS["logistic"].slope(np.array([0.0]))
    array([0.25])
    """

    name: str
    mean: Function
    slope: Function
    potential: Function | None = None
    self_concordance: Bound = None
    turning_points: tuple[float, ...] | None = None
    third_derivative: Bound = None
    family: Family | None = None
    compiled: Compiled | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name is {self.name!r}; pass a non-empty string")
        for part in ("mean", "slope", "potential"):
            value = getattr(self, part)
            if not callable(value) and not (part == "potential" and value is None):
                raise ValueError(f"{part} is {value!r}; pass a vectorised function of the score")
        if self.self_concordance is not None and not callable(self.self_concordance):
            positive("self_concordance", self.self_concordance, zero=True)

    def __repr__(self) -> str:
        return f"Link({self.name!r})"

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest mean, hence the range of a family's labels."""
        with np.errstate(all="ignore"):
            low, high = self.mean(np.array([-np.inf, np.inf]))
        return (
            -math.inf if np.isnan(low) else float(low),
            math.inf if np.isnan(high) else float(high),
        )


def _one(z: Array) -> Array:
    return np.ones_like(z)


def _identity(z: Array) -> Array:
    return +z


def _half_square(z: Array) -> Array:
    return 0.5 * z * z


def _logistic(z: Array) -> Array:
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1 + e)


def _logistic_slope(z: Array) -> Array:
    e = np.exp(-np.abs(z))
    return e / (1 + e) ** 2


def _logistic_potential(z: Array) -> Array:
    return np.logaddexp(0.0, z) - np.log(2.0)


def _normal_density(z: Array) -> Array:
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def _normal_distribution(z: Array) -> Array:
    from scipy.special import ndtr  # imported when needed: it takes a while

    return np.asarray(ndtr(z))


def _probit_potential(z: Array) -> Array:
    return z * _normal_distribution(z) + _normal_density(z) - 1 / np.sqrt(2 * np.pi)


def _tanh_slope(z: Array) -> Array:
    return 4 * _logistic_slope(2 * z)


def _tanh_potential(z: Array) -> Array:
    return np.logaddexp(z, -z) - np.log(2.0)


def _algebraic(z: Array) -> Array:
    z = np.clip(z, -1e200, 1e200)  # at infinity too it has a value
    return z / np.hypot(1.0, z)


def _algebraic_slope(z: Array) -> Array:
    return np.hypot(1.0, z) ** -3.0


def _algebraic_potential(z: Array) -> Array:
    return z * _algebraic(z) / (1 + 1 / np.hypot(1.0, z))


# the largest |phi''|/phi' on [-S, S]


def _logistic_concordance(score_bound: float) -> float:
    return math.tanh(score_bound / 2)


def _probit_concordance(score_bound: float) -> float:
    return score_bound


def _tanh_concordance(score_bound: float) -> float:
    return 2 * math.tanh(score_bound)


def _algebraic_concordance(score_bound: float) -> float:
    return 3 * score_bound / (1 + score_bound**2) if score_bound < 1 else 1.5


def _probit_third(score_bound: float) -> float:
    return max(1.0, score_bound * score_bound - 1)


# name; mean, slope, potential; bound of the second derivative, turning points, bound of the third;
# family; code in the kernels
LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        Link(
            "identity", _identity, _one, _half_square, 0.0, (), 0.0,
            Family("gaussian", 1.0), Compiled(0),
        ),
        Link(
            "logistic", _logistic, _logistic_slope, _logistic_potential,
            _logistic_concordance, (0.0,), 1.0,
            Family("bernoulli", 0.5), Compiled(1),
        ),
        Link(
            "probit", _normal_distribution, _normal_density, _probit_potential,
            _probit_concordance, (0.0,), _probit_third,
            Family("bernoulli", 0.5, canonical=False, score_limit=3.0), Compiled(2),
        ),
        Link(
            "tanh", np.tanh, _tanh_slope, _tanh_potential, _tanh_concordance, (0.0,), 4.0,
            Family("signs", 1.0), Compiled(3),
        ),
        Link(
            "algebraic", _algebraic, _algebraic_slope, _algebraic_potential,
            _algebraic_concordance, (0.0,), 3.0, None, Compiled(4),
        ),
        Link(
            "exponential", np.exp, np.exp, np.expm1, 1.0, (), 1.0,
            Family("poisson", None), Compiled(5),
        ),
    )
}  # fmt: skip


def slope_range(link: Link, score_bound: float) -> tuple[float, float]:
    """Return the least and the largest slope over ``[-score_bound, score_bound]``.

    Exact where the turning points are known. Else a grid of 8193 scores, each cell widened by the
    largest change of slope in it and in its two neighbours.
    """
    S = score_bound
    if link.turning_points is not None:
        z = np.array([-S, S, *(p for p in link.turning_points if -S < p < S)])
        with np.errstate(over="ignore"):
            slopes = link.slope(z)
        return float(slopes.min()), float(slopes.max())
    slopes = link.slope(np.linspace(-S, S, 8193))
    change = np.abs(np.diff(slopes))
    margin = np.maximum(change, np.maximum(np.append(change[1:], 0), np.append(0, change[:-1])))
    low = np.minimum(slopes[:-1], slopes[1:]) - margin
    high = np.maximum(slopes[:-1], slopes[1:]) + margin
    return float(low.min()), float(high.max())


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def integrate(function: Function, left: Array, right: Array) -> Array:
    """Integrate over each interval ``[left, right]`` by Gauss's rule with 12 nodes."""
    half = 0.5 * (right - left)
    middle = 0.5 * (right + left)
    values = function(middle[..., None] + half[..., None] * _NODES)
    return np.asarray(half * (values @ _WEIGHTS))


@lru_cache(maxsize=64)
def quadrature(mean: Function, score_bound: float) -> Function:
    """Return the potential of ``mean`` on ``[-score_bound, score_bound]``, by quadrature.

    Panels are halved until the integral from 0 to every knot is settled to 1e-13 of the largest;
    a score inside a panel then costs one rule of 12 nodes from the nearest knot.
    """
    panels, before = 16, None
    while True:
        knots = np.linspace(0.0, score_bound, panels + 1)
        right = np.append(0.0, np.cumsum(integrate(mean, knots[:-1], knots[1:])))
        left = np.append(0.0, np.cumsum(integrate(mean, -knots[:-1], -knots[1:])))
        if before is not None:
            change = max(np.abs(right[::2] - before[0]).max(), np.abs(left[::2] - before[1]).max())
            if change <= 1e-13 * max(np.abs(right).max(), np.abs(left).max()) or panels >= 1 << 16:
                break
        before = (right, left)
        panels *= 2
    width = score_bound / panels

    def potential(z: Array) -> Array:
        z = np.asarray(z, dtype=np.float64)
        nearest = np.fmin(np.rint(np.abs(z) / width), panels).astype(np.int64)  # of NaN the last
        known = np.where(z < 0, left[nearest], right[nearest])
        return np.asarray(known + integrate(mean, np.sign(z) * knots[nearest], z))

    return potential
