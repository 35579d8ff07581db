"""Families of labels: a link, the labels there are, and the probability it gives to each."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from ..inputs import one_of
from ..support.arrays import Array
from .glm import GLM
from .links import LINKS

LONGEST = 1e12  # of scaled rows: no limit, but a norm bound that the score bound follows from


class Family(NamedTuple):
    """Labels of a kind.

    ``score_bound`` is where the link is extended and scores are clipped: beyond, a probability
    would be below about 3e-7. ``log_likelihood`` is that of a label of weight 1, given a score
    within the bound. Means are mixed in arithmetic, or by their logarithms (``geometric``).
    """

    link: str
    score_bound: float
    label_range: tuple[float, float]
    words: str
    log_likelihood: Callable[[Array, Array], Array]
    geometric: bool = False

    @property
    def middle(self) -> float | None:
        """The label halfway, whose score is 0; None for counts."""
        return None if self.geometric else sum(self.label_range) / 2

    def variance(self, mean: Array) -> Array:
        """Return the variance of a label of weight 1: of a count, or of one of two labels."""
        low, high = self.label_range
        return mean if self.geometric else (high - mean) * (mean - low)

    def clip(self, scores: Array) -> Array:
        """Return scores within the bound."""
        return np.clip(scores, -self.score_bound, self.score_bound)

    def mix(self, weights: Array, scores: Array) -> Array:
        """Return the mean of each column of experts' scores, given their weights."""
        z = self.clip(scores)
        if self.geometric:
            return np.asarray(LINKS[self.link].mean((weights * z).sum(axis=0)))
        return np.asarray((weights * LINKS[self.link].mean(z)).sum(axis=0))


def _logistic(z: Array, y: Array) -> Array:
    return np.asarray(y * z - np.logaddexp(0.0, z))


def _poisson(z: Array, y: Array) -> Array:
    from scipy.special import gammaln  # imported when needed: it takes a while

    return np.asarray(y * z - np.exp(z) - gammaln(y + 1))


def _probit(z: Array, y: Array) -> Array:
    from scipy.special import log_ndtr

    return np.asarray(y * log_ndtr(z) + (1 - y) * log_ndtr(-z))


def _tanh(z: Array, y: Array) -> Array:
    return np.asarray(y * z - np.logaddexp(z, -z))


def _algebraic(z: Array, y: Array) -> Array:
    # (1 + z/h)/2 and (1 - z/h)/2 with h = sqrt(1 + z^2) are e^(+-arsinh z) / (2 h)
    return np.asarray(y * np.arcsinh(z) - np.log(2 * np.hypot(1.0, z)))


SHARES = "in [0, 1]: 0 and 1, or shares with the trials as weights"
COUNTS = "of at least 0 and at most 1e13: counts"
SIGNS = "in [-1, 1]: signs, or means of signs with their number as weights"

FAMILIES = {
    "binomial": Family("logistic", 15.0, (0.0, 1.0), SHARES, _logistic),
    "poisson": Family("exponential", 30.0, (0.0, 1e13), COUNTS, _poisson, geometric=True),
    "probit": Family("probit", 5.0, (0.0, 1.0), SHARES, _probit),
    "tanh": Family("tanh", 7.5, (-1.0, 1.0), SIGNS, _tanh),
    "algebraic": Family("algebraic", 1000.0, (-1.0, 1.0), SIGNS, _algebraic),
}
BY_LINK = {family.link: name for name, family in FAMILIES.items()}


def family_name(given: object) -> str:
    """Return the family's name, given that or its link's."""
    return BY_LINK.get(name := one_of("family", given, (*FAMILIES, *BY_LINK)), name)


@cache
def model(family: str) -> GLM:
    """Return the model whose score bound is the family's."""
    link, S, *_ = FAMILIES[family]
    return GLM(link, LONGEST, S / LONGEST)
