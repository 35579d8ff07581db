"""Optimism on a ridge state: what the linear confidence-bound policies share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from ..blas import matmul
from ..confidence import Ellipsoid
from ..inputs import coerce_positive, probability
from ..protocols import Array, trait
from . import ridge
from .arms import candidates, first_best
from .ridge import LinearState


@dataclass(frozen=True, kw_only=True)
class Optimism:
    r"""Play :math:`\arg\max_x x\cdot\hat\theta + \beta\|x\|_{V^{-1}}`.

    A policy says what its radius is, and in ``update`` what weight a reward gets.

    Parameters
    ----------
    ridge : float > 0
        The first matrix is 2 ridge I.
    delta : float in (0, 1)
        The confidence set fails with at most this probability, for all rounds together.
    radius_scale : float >= 0
        Multiplies the part of the radius that is due to noise; only 1 is covered by theory.
    """

    ridge: float = 0.5
    delta: float = 0.05
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge")
        coerce_positive(self, "delta", by=probability)
        coerce_positive(self, "radius_scale", zero=True)

    def start(self, dim: int) -> LinearState:
        """Make the state of a fresh learner."""
        return ridge.start(dim, self.ridge)

    def select(
        self, state: LinearState, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return the arm of the largest upper bound; nothing is random."""
        x = candidates(arms, state.dim, trait(self, "feature_bound", np.inf))
        return first_best(self.index(state, x))

    def index(self, state: LinearState, x: Array) -> Array:
        """Return the index of every arm."""
        beta = self.radius(state, self.radius_scale)
        return matmul(x, state.theta) + beta * ridge.widths(state, x)

    def radius(self, state: LinearState, scale: float = 1.0) -> float:
        """Return the radius, its noise part times ``scale``."""
        raise NotImplementedError

    def bias(self, parameter_bound: float) -> float:
        r"""Return :math:`\sqrt{2\lambda} S`, what the ridge adds to a radius."""
        return math.sqrt(2 * self.ridge) * parameter_bound

    def confidence(self, state: LinearState) -> tuple[Ellipsoid]:
        """Return the set of the theorem, whatever ``radius_scale``."""
        return (Ellipsoid(state.theta, state.inverse.copy(), self.radius(state)),)
