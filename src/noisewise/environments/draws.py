"""Noise as it is drawn: specs with ``draw(rng, scale) -> array`` of sd ``scale``, mean zero.

`noisewise.model.noise` says what a learner may assume; these are what a world does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..inputs import positive
from ..protocols import Array


@dataclass(frozen=True)
class Gaussian:
    """Normal noise."""

    def draw(self, rng: np.random.Generator, scale: Array) -> Array:
        """Draw one number for each scale."""
        return scale * rng.normal(size=np.shape(scale))


@dataclass(frozen=True)
class ClippedGaussian:
    """Normal noise cut off at +-``bound``: symmetric, so its mean stays zero; its sd shrinks."""

    bound: float = 4.0

    def draw(self, rng: np.random.Generator, scale: Array) -> Array:
        """Draw one number for each scale, the sd before clipping."""
        bound = positive("bound", self.bound)
        return np.clip(scale * rng.normal(size=np.shape(scale)), -bound, bound)


@dataclass(frozen=True)
class Uniform:
    """Uniform noise."""

    def draw(self, rng: np.random.Generator, scale: Array) -> Array:
        """Draw one number for each scale."""
        return scale * np.sqrt(3) * rng.uniform(-1, 1, size=np.shape(scale))


@dataclass(frozen=True)
class Rademacher:
    """Plus or minus the scale."""

    def draw(self, rng: np.random.Generator, scale: Array) -> Array:
        """Draw one number for each scale."""
        return scale * rng.choice([-1.0, 1.0], size=np.shape(scale))


@dataclass(frozen=True)
class Sparse:
    """Zero, or plus or minus ``bound`` so rarely that the sd is the scale."""

    bound: float = 1.0

    def draw(self, rng: np.random.Generator, scale: Array) -> Array:
        """Draw one number for each scale."""
        bound = positive("bound", self.bound)
        if np.max(scale, initial=0.0) > bound:
            raise ValueError(f"scale reaches {np.max(scale):g}, above bound {bound:g}; raise bound")
        hit = rng.random(size=np.shape(scale)) < (scale / bound) ** 2
        return np.where(hit, bound * rng.choice([-1.0, 1.0], size=np.shape(scale)), 0.0)


@dataclass(frozen=True)
class StudentT:
    """Student's t with more than two ``freedom`` degrees: heavy tails, the variance finite."""

    freedom: float = 3.0

    def draw(self, rng: np.random.Generator, scale: Array) -> Array:
        """Draw one number for each scale."""
        n = positive("freedom", self.freedom)
        if n <= 2:
            raise ValueError(f"freedom is {n:g}; pass more than 2, else there is no variance")
        return scale * np.sqrt((n - 2) / n) * rng.standard_t(n, size=np.shape(scale))


Draw = Gaussian | ClippedGaussian | Uniform | Rademacher | Sparse | StudentT
