"""MOR-UCB literally as published, for study: see `MORUCB`, which delegates to it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import linalg
from ..blas import matmul
from ..confidence import Ellipsoid
from ..noise import Bounded
from ..protocols import Array
from ..regression.sets import uniform
from ..theory import radii
from .guaranteed_index import GuaranteedIndex
from .noise_layers import NoiseLayers
from .optimism_state import OptimismState


@dataclass(frozen=True)
class PrintedLayers(NoiseLayers):
    """The published layers 1..L, numbered from 0; rewards below twice the floor have none."""

    @cached_property
    def count(self) -> int:
        """How many layers there are."""
        return max(0, self._doublings(self.bound))

    def layer(self, sigma: float) -> int:
        """Return the layer of a standard deviation, -1 where there is none."""
        return max(self._doublings(min(max(sigma, self.floor), self.bound)) - 2, -1)

    def scale(self, layer: int) -> float:
        """Return the sd in the radius of a layer, though it may exceed the bound."""
        return 2.0 ** (layer + 2) * self.floor

    def noise(self, layer: int) -> Bounded:
        """Return what could be assumed of the rewards of a layer."""
        return Bounded(self.bound, min(self.bound, self.scale(layer)))


@dataclass(frozen=True)
class PrintedIndex(GuaranteedIndex):
    """No kappa in the matrices, one radius for all counts, the link in the index."""

    index_of = "mean"
    compiled = False
    ellipsoids = 1

    def first_ridge(self, dim: int, place: int) -> float | None:
        """Return the ridge given, or None for that of the theorem."""
        return self.ridge

    def has_say(self, state: OptimismState, place: int) -> bool:
        """Let empty layers count too."""
        return True

    def choose(self, state: OptimismState, arms: Array) -> int:
        """Leave the choice to the readable way."""
        return -1

    def learnt(self, state: OptimismState) -> int:
        """Return how many rewards came, some of which no layer has learnt."""
        return state.rounds

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the mean of the smallest upper bound of every arm."""
        if not self.noises:
            return np.zeros(len(x))
        return np.asarray(self.glm.mean(self.uppers(state, x).min(axis=0)))

    def uppers(self, state: OptimismState, x: Array) -> Array:
        """Return the upper bound of every arm's score by each layer."""
        bounds = np.empty((len(self.noises), len(x)))
        for place, centre in enumerate(state.forms.centres):
            inverse = state.forms.inverses[place]
            each = Ellipsoid(centre, inverse, self._radius(state, place))
            bounds[place] = matmul(x, centre) + self.scale * each.width(x)
        return bounds

    def sets(self, state: OptimismState, place: int) -> tuple[Ellipsoid, ...]:
        """Return what the paper takes for a confidence set, kappa missing from its matrix."""
        layer, kappa = state.layers[place], self.glm.min_slope
        start = 2 * layer.ridge * np.eye(state.dim)
        H = linalg.invert(linalg.factor(uniform(self.glm, layer)[0]))
        Sigma = start + (H - start) / kappa
        inverse = linalg.invert(linalg.factor(Sigma))
        return (Ellipsoid(layer.theta, inverse, self._radius(state, place)),)

    def _radius(self, state: OptimismState, place: int) -> float:
        assert self.split is not None
        return radii.bernstein(
            self.glm, self.split.bound, self.split.scale(place), dim=state.dim,
            count=state.rounds + 1, ridge=state.layers[place].ridge, delta=self.delta,
        )  # fmt: skip
