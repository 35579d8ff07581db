"""Where the true parameter comes from: specs with ``draw(rng, dim) -> (dim,)``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..inputs import positive
from ..protocols import Array
from .features import unit_rows


@dataclass(frozen=True)
class Cube:
    """Uniform on the cube of half-width B/sqrt(d), so that the mean squared norm is B^2/3."""

    bound: float = 1.0

    def draw(self, rng: np.random.Generator, dim: int) -> Array:
        """Draw the parameter."""
        half = positive("bound", self.bound) / np.sqrt(dim)
        return rng.uniform(-half, half, size=dim)


@dataclass(frozen=True)
class OnSphere:
    """Uniform on the sphere of radius B."""

    bound: float = 1.0

    def draw(self, rng: np.random.Generator, dim: int) -> Array:
        """Draw the parameter."""
        return positive("bound", self.bound) * unit_rows(rng, 1, dim)[0]
