"""Where rows come from: specs with ``draw(rng, rounds, dim) -> (rounds, dim)``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import numbers, positive
from ..protocols import Array
from ..support.printing import OneLine


def unit_rows(rng: np.random.Generator, rounds: int, dim: int) -> Array:
    """Draw rows uniformly on the unit sphere."""
    x = rng.normal(size=(rounds, dim))
    return x / np.sqrt(np.einsum("ij,ij->i", x, x))[:, None]


@dataclass(frozen=True)
class Sphere:
    """Uniform on the sphere of radius ``radius``."""

    radius: float = 1.0

    def draw(self, rng: np.random.Generator, rounds: int, dim: int) -> Array:
        """Draw the rows."""
        return positive("radius", self.radius) * unit_rows(rng, rounds, dim)


@dataclass(frozen=True)
class Ball:
    """Uniform in the ball of radius ``radius``."""

    radius: float = 1.0

    def draw(self, rng: np.random.Generator, rounds: int, dim: int) -> Array:
        """Draw the rows."""
        length = positive("radius", self.radius) * rng.random(rounds) ** (1 / dim)
        return length[:, None] * unit_rows(rng, rounds, dim)


@dataclass(frozen=True)
class GaussianRows:
    """Standard normal over sqrt(dim), rows longer than ``radius`` shortened to it."""

    radius: float = 1.0

    def draw(self, rng: np.random.Generator, rounds: int, dim: int) -> Array:
        """Draw the rows."""
        x = rng.normal(size=(rounds, dim)) / np.sqrt(dim)
        return shorten(x, self.radius)


@dataclass(frozen=True)
class CyclicBasis:
    """The basis vectors of length ``radius`` in turn: the design of the lower bound."""

    radius: float = 1.0

    def draw(self, rng: np.random.Generator, rounds: int, dim: int) -> Array:
        """Draw the rows; nothing is random."""
        return positive("radius", self.radius) * np.eye(dim)[np.arange(rounds) % dim]


@dataclass(frozen=True)
class Correlated:
    """Gaussian rows whose neighbouring coordinates have correlation ``correlation``."""

    correlation: float = 0.9
    radius: float = 1.0

    def draw(self, rng: np.random.Generator, rounds: int, dim: int) -> Array:
        """Draw the rows."""
        if not -1 < self.correlation < 1:
            raise ValueError(
                f"correlation is {self.correlation!r}; pass a number strictly between -1 and 1"
            )
        apart = np.abs(np.subtract.outer(np.arange(dim), np.arange(dim)))
        root = np.linalg.cholesky(self.correlation**apart + 1e-12 * np.eye(dim))
        return shorten(rng.normal(size=(rounds, dim)) @ root.T / np.sqrt(dim), self.radius)


@dataclass(frozen=True)
class Drifting:
    """A geometric spectrum from 1 to ``shortest`` in a frame that makes half a turn."""

    shortest: float = 0.01
    radius: float = 1.0

    def draw(self, rng: np.random.Generator, rounds: int, dim: int) -> Array:
        """Draw the rows; coordinate i turns with coordinate dim-1-i."""
        x = unit_rows(rng, rounds, dim) * np.geomspace(1, positive("shortest", self.shortest), dim)
        angle = np.linspace(0, np.pi, rounds)
        c, s = np.cos(angle), np.sin(angle)
        for i in range(dim // 2):
            a, b = x[:, i].copy(), x[:, dim - 1 - i].copy()
            x[:, i], x[:, dim - 1 - i] = c * a + s * b, c * b - s * a
        return positive("radius", self.radius) * x


@dataclass(frozen=True, eq=False, repr=False)
class Given(OneLine):
    """Rows of an array or data frame, in order; as many as asked for must be there."""

    rows: ArrayLike

    def draw(self, rng: np.random.Generator, rounds: int, dim: int) -> Array:
        """Return the first ``rounds`` rows."""
        x = numbers("rows", self.rows)
        if x.ndim != 2 or x.shape[1] != dim or len(x) < rounds:
            raise ValueError(f"rows has shape {x.shape}; pass at least ({rounds}, {dim})")
        return x[:rounds].copy()


def shorten(x: Array, radius: float) -> Array:
    """Return the rows with those longer than ``radius`` scaled down to it."""
    length = np.sqrt(np.einsum("ij,ij->i", x, x))
    return x * np.minimum(1.0, positive("radius", radius) / np.maximum(length, 1e-300))[:, None]
