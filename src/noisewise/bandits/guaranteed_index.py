"""The guaranteed index: the smallest upper bound over confidence sets."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..blas import matmul
from ..confidence import Ellipsoid
from ..glm import GLM
from ..noise import Noise
from ..protocols import Array
from ..regression.sets import adaptive, ellipsoids
from . import optimism_state
from .optimism_state import FixedArms, OptimismState
from .optimistic import OptimisticIndex


@dataclass(frozen=True)
class GuaranteedIndex(OptimisticIndex):
    """Upper bounds over the sets of all layers, each layer for a noise of its own.

    ``constants`` are C of the adaptive radius and ``delta`` is that of a layer. With ``nested``
    the last layer learns every reward; ``empty`` says whether a layer without one has a say.
    """

    glm: GLM
    noises: tuple[Noise, ...]
    constants: tuple[float, ...]
    delta: float
    radius: str
    scale: float
    ridge: float | None
    nested: bool = False
    empty: bool = False

    index_of = "score"

    @cached_property
    def compiled(self) -> bool:  # type: ignore[override]
        """Whether the kernels know the radius."""
        return self.radius == "adaptive"

    @cached_property
    def ellipsoids(self) -> int:
        """How many a layer has: one, and the local form of the adaptive radius."""
        curved = not self.glm.linear and self.glm.self_concordance is not None
        return 2 if self.compiled and curved else 1

    @property
    def size(self) -> tuple[int, int]:
        """The number of layers, and of ellipsoids in all."""
        return len(self.noises), len(self.noises) * self.ellipsoids

    def start(self, dim: int) -> OptimismState:
        """Make the state of a fresh learner."""
        state = optimism_state.start(
            self.glm, self.ridge, dim, self.constants, self.ellipsoids,
            delta=self.delta, scale=self.scale,
        )  # fmt: skip
        for place in range(len(state.layers)):
            self.renew(state, place)
        return state

    def renew(self, state: OptimismState, place: int) -> None:
        """Bring the sets of a layer up to date with it."""
        if self.empty or state.layers[place].count:
            state.forms.put(self.ellipsoids * place, self.sets(state, place))

    def sets(self, state: OptimismState, place: int) -> tuple[Ellipsoid, ...]:
        """Return the sets of a layer."""
        layer = state.layers[place]
        if self.compiled:
            return adaptive(self.glm, layer, self.constants[place], self.delta)
        return ellipsoids(self.glm, layer, self.noises[place], self.delta, self.radius, local=True)

    def confidence(self, state: OptimismState) -> tuple[Ellipsoid, ...]:
        """Return the sets of all layers that have a say."""
        return tuple(
            each
            for place, layer in enumerate(state.layers)
            if self.empty or layer.count
            for each in self.sets(state, place)
        )

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the smallest upper bound of every arm's score."""
        return state.forms.upper(x, self.scale)

    def uppers(self, state: OptimismState, x: Array) -> Array:
        """Return the upper bound of every arm's score by each layer, infinite where it is empty."""
        sets = state.forms.uppers(x, self.scale)
        return np.asarray(sets.reshape(len(self.noises), self.ellipsoids, len(x)).min(axis=1))

    def choose(self, state: OptimismState, arms: Array, fixed: FixedArms | None = None) -> int:
        """Return the arm whose index is largest by the kernels; -1 where the arms are bad."""
        kernels, forms = state.kernels, state.forms
        if kernels is None:
            return -1
        if fixed is not None:
            chosen = kernels.best_upper(
                forms.centres, fixed.quads, forms.radii, state.params[0], arms
            )
        else:
            chosen = kernels.choose_upper(
                forms.centres, forms.inverses, forms.radii, state.params[0], arms
            )
        return int(chosen)

    def teach(
        self, state: OptimismState, place: int, x: Array, y: float, w: float, fixed: FixedArms
    ) -> int:
        """Let a layer learn a reward by the kernels; return their status."""
        forms = state.forms
        status: int = state.kernels.learn_guaranteed(  # type: ignore[union-attr]
            state.layers[place].array, state.params[place], forms.centres, forms.inverses,
            forms.radii, self.ellipsoids * place, x, y, w, fixed.arms, fixed.quads,
        )  # fmt: skip
        return status

    def learnt(self, state: OptimismState) -> int:
        """Return how many rewards the layers have learnt."""
        counts = [layer.count for layer in state.layers]
        return counts[-1] if self.nested else sum(counts)


@dataclass(frozen=True)
class CarefulIndex(GuaranteedIndex):
    """For bounded noise: weights shrink where the first set is wide, so that C can be small.

    The practical index, which has no proof to keep, would lose by it.
    """

    noise_bound: float = 1.0

    def teach(
        self, state: OptimismState, place: int, x: Array, y: float, w: float, fixed: FixedArms
    ) -> int:
        """Let the layer learn a reward by the kernels; return their status."""
        return super().teach(state, place, x, y, self.temper(state, x, w), fixed)

    def learn(self, state: OptimismState, place: int, x: Array, y: float, w: float) -> None:
        """Let the layer learn a checked reward readably."""
        super().learn(state, place, x, y, self.temper(state, x, w))

    def temper(self, state: OptimismState, x: Array, w: float) -> float:
        """Return a weight at most C over the largest noise times the most a score can be off."""
        forms = state.forms
        if state.kernels is not None:
            reach = state.kernels.reach(forms.inverses[0], forms.radii[0], x)
        else:
            square = float(matmul(x, forms.inverses[0]) @ x)
            reach = float(forms.radii[0]) * math.sqrt(max(square, 0.0))
        most = min(2 * self.glm.score_bound, reach)
        return min(w, self.constants[0] / max(self.noise_bound * most, 1e-300))
