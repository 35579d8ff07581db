"""Worlds of a generalised linear model: features, a parameter, labels and their weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..inputs import dimension, integer
from ..model.glm import GLM
from ..protocols import Array, Rounds
from .draws import Draw, Gaussian
from .features import Sphere
from .parameters import OnSphere
from .scales import Levels, Scales


class DrawsRows(Protocol):
    """Where rows come from."""

    def draw(self, rng: np.random.Generator, rounds: int, dim: int, /) -> Array:
        """Draw rows (rounds, dim)."""


class DrawsParameter(Protocol):
    """Where a parameter comes from."""

    def draw(self, rng: np.random.Generator, dim: int, /) -> Array:
        """Draw a parameter (dim,)."""


@dataclass(frozen=True)
class Noisy:
    """Labels that are the mean plus noise whose sd comes from ``scales``.

    A learner who knows the noise weighs a label by the inverse of its variance.
    """

    glm: GLM = field(default_factory=GLM)
    noise: Draw = field(default_factory=Gaussian)
    scales: Scales = field(default_factory=Levels)

    def label(self, rng: np.random.Generator, x: Array, theta: Array) -> Rounds:
        """Draw labels for the rows ``x``."""
        sd = self.scales.draw(rng, len(x))
        mean = np.asarray(self.glm.mean(x @ theta))
        return Rounds(x, mean, mean + self.noise.draw(rng, sd), sd**-2.0, theta)


@dataclass(frozen=True)
class Family:
    """Labels from the exponential family of the link: means of n draws, n log-uniform.

    Bernoulli for logistic and probit, +-1 for tanh, Poisson for exponential; the weight is n.
    """

    glm: GLM
    most: int = 1

    def label(self, rng: np.random.Generator, x: Array, theta: Array) -> Rounds:
        """Draw labels for the rows ``x``."""
        mean = np.asarray(self.glm.mean(x @ theta))
        n = trials(rng, self.most, len(x))
        return Rounds(x, mean, family_means(self.glm, rng, mean, n), n.astype(np.float64), theta)


@dataclass(frozen=True)
class Stream:
    """A regression world: where rows, parameter and labels come from.

    >>> world = Stream(labels=Noisy(GLM("logistic")))
    >>> world.draw(np.random.default_rng(0), rounds=50, dim=3).x.shape
    (50, 3)
    """

    features: DrawsRows = field(default_factory=Sphere)
    parameter: DrawsParameter = field(default_factory=OnSphere)
    labels: Noisy | Family = field(default_factory=Noisy)

    def draw(self, rng: np.random.Generator, rounds: int, dim: int) -> Rounds:
        """Draw a table of rounds."""
        x = self.features.draw(rng, integer("rounds", rounds), dimension(dim))
        return self.labels.label(rng, x, self.parameter.draw(rng, dim))


def trials(
    rng: np.random.Generator, most: int, count: int, *, log: bool = True
) -> NDArray[np.int64]:
    """Draw how many draws each label is the mean of, (log-)uniform from 1 to ``most``."""
    if not log:
        return rng.integers(1, integer("most", most) + 1, size=count)
    n = np.floor(np.exp(rng.uniform(0, np.log(integer("most", most) + 1), size=count)))
    return np.clip(n.astype(np.int64), 1, most)


def family_means(glm: GLM, rng: np.random.Generator, mean: Array, n: NDArray[np.int64]) -> Array:
    """Draw means of ``n`` draws from the family of the link."""
    family = glm.link.family and glm.link.family.name
    if family == "poisson":
        return np.asarray(rng.poisson(n * mean) / n)
    if family == "signs":
        return np.asarray(2 * rng.binomial(n, (1 + mean) / 2) / n - 1)
    if family == "bernoulli":
        return np.asarray(rng.binomial(n, mean) / n)
    raise ValueError(
        f"link is {glm.link.name!r}; families exist for logistic, probit, tanh and exponential, "
        "use Noisy for others"
    )
