"""The guaranteed index: the smallest upper bound over confidence sets."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from ...confidence import Ellipsoid
from ...inputs import dimension, with_slack
from ...kernels.policies import policy_params
from ...kernels.policies.policy_params import Params
from ...model.glm import GLM
from ...model.noise import Bounded, Noise
from ...protocols import Array
from ...regression.ftrl import solver
from ...regression.ftrl.ftrl import FTRL
from ...regression.ftrl.moving import move_ridge, rebound
from ...regression.ftrl.sets import adaptive, ellipsoids, mixes
from ...support.ownership import Writing
from .ellipsoid_stack import EllipsoidStack
from .optimism_state import OptimismState

if TYPE_CHECKING:
    from .mor_ucb import MORUCB


@dataclass(frozen=True)
class GuaranteedIndex:
    """Upper bounds over the sets of all layers, and how these learn.

    Each layer has a noise, a constant C of its adaptive radius, and ``delta``. Without ``split``
    there is one; with it, which says the layer of an sd, those that have learnt nothing have no
    say, and if ``nested`` a layer learns quieter rewards too. ``gain`` is g of the practical index.
    """

    glm: GLM
    noises: tuple[Noise, ...]
    constants: tuple[float, ...]
    _: KW_ONLY
    delta: float
    radius: str
    scale: float
    ridge: float | None
    gain: float = 1.0
    split: MORUCB | None = None
    nested: bool = False

    index_of = "score"

    @cached_property
    def compiled(self) -> bool:
        """Whether the kernels know the radius."""
        return self.radius in ("adaptive", "played")

    @cached_property
    def mixed(self) -> bool:
        """Whether the adaptive radius mixes what was played with fixed parameters."""
        return self.radius == "adaptive" and all(mixes(self.glm, each) for each in self.noises)

    @cached_property
    def ellipsoids(self) -> int:
        """How many a layer has: one, and the local form of the adaptive radius."""
        curved = not self.glm.linear and self.glm.self_concordance is not None
        return 2 if self.compiled and curved else 1

    def start(self, dim: int) -> OptimismState:
        """Make the state of a fresh learner."""
        glm, n, d = self.glm, len(self.constants), dimension(dim)
        numbers = np.zeros((n, len(Params.fields)))
        for p, constant in zip(map(Params, numbers), self.constants, strict=True):
            p.gain, p.scale, p.slope = self.gain, self.scale, glm.min_slope
            p.limit = with_slack(glm.feature_bound) ** 2
            p.parameter, p.norm = glm.parameter_bound, math.inf
            p.price = math.log(1 / self.delta) * constant
        layers = [FTRL(glm, self.first_ridge(d, place)).start(d) for place in range(n)]
        sets = EllipsoidStack.empty(self.ellipsoids * n, d)
        state = OptimismState(layers, sets, EllipsoidStack.empty(1, d), numbers)
        self.renew_all(state)
        return state

    def first_ridge(self, dim: int, place: int) -> float | None:
        """Return the ridge: that for intervals, where one layer learns noise without a bound."""
        fits = self.split is None and not isinstance(self.noises[place], Bounded)
        if self.ridge is None and fits and self.radius in ("adaptive", "self-normalised"):
            return self.constants[place] * dim / (2 * self.glm.parameter_bound**2)
        return self.ridge

    def is_active(self, state: OptimismState, place: int) -> bool:
        """Return whether a layer counts."""
        return self.split is None or state.layers[place].count > 0

    def sets(self, state: OptimismState, place: int) -> tuple[Ellipsoid, ...]:
        """Return the sets of a layer."""
        layer = state.layers[place]
        if self.compiled:
            constant = self.constants[place]
            return adaptive(self.glm, layer, constant, self.delta, mixed=self.mixed)
        return ellipsoids(self.glm, layer, self.noises[place], self.delta, self.radius, local=True)

    def confidence(self, state: OptimismState) -> tuple[Ellipsoid, ...]:
        """Return the sets of all layers that have a say."""
        places = [place for place in range(len(state.layers)) if self.is_active(state, place)]
        return tuple(each for place in places for each in self.sets(state, place))

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the smallest upper bound on the score of every arm, the arms being checked."""
        return state.forms.upper(x, self.scale)

    def upper_bounds(self, state: OptimismState, x: Array) -> Array:
        """Return the upper bound of every arm's score by each layer, infinite where it is empty."""
        sets = state.forms.upper_bounds(x, self.scale)
        return np.asarray(sets.reshape(len(self.noises), self.ellipsoids, len(x)).min(axis=1))

    def choose(self, state: OptimismState, arms: Array) -> int:
        """Return the best arm by the kernels; -1 where they do not serve or the arms are bad."""
        kernels, (centres, inverses, radii), s = state.kernels, state.sets, state.numbers[0]
        if kernels is None:
            return -1
        if arms is state.fixed.arms:
            return int(kernels.best_upper(centres, state.fixed.quads, radii, s, arms))
        return int(kernels.choose_upper(centres, inverses, radii, s, arms))

    def layer_indices(self, state: OptimismState, x: Array, y: float, sd: float) -> range:
        """Return the layers that learn a reward.

        Where these are several it is noted: an interrupt then leaves it to the rest.
        """
        first = 0 if self.split is None else self.split.layer(sd)
        if not self.nested or first < 0:
            return range(max(first, 0), first + 1)
        places = range(first, len(self.noises))
        state.begun = x, y, {place: state.layers[place].count for place in places}
        return places

    def learn_compiled(self, state: OptimismState, place: int, x: Array, y: float, w: float) -> int:
        """Let a layer learn a reward by the kernels; return their status."""
        kernels, (centres, inverses, radii), fixed = state.kernels, state.sets, state.fixed
        assert kernels is not None
        return kernels.learn_guaranteed(
            state.layers[place].array, state.numbers[place], centres, inverses, radii,
            self.ellipsoids * place, x, y, w, fixed.arms, fixed.quads,
            *state.mixture[place],
        )  # fmt: skip

    def learn_in_python(
        self, state: OptimismState, place: int, x: Array, y: float, w: float
    ) -> None:
        """Let a layer learn a checked reward readably."""
        layer = state.layers[place]
        curvature = w * float(self.glm.slope(x @ layer.views.anchor))
        FTRL(self.glm).update(layer, x, y, w)
        state.params[place].curvature += curvature
        self.renew(state, place)

    def learnt(self, state: OptimismState) -> int:
        """Return how many rewards the layers have learnt."""
        counts = [layer.count for layer in state.layers]
        return counts[-1] if self.nested else sum(counts)

    def renew(self, state: OptimismState, place: int) -> None:
        """Compute the ellipsoids and the mixture of a layer again."""
        if self.is_active(state, place):
            state.forms.put(self.ellipsoids * place, self.sets(state, place))
            if self.compiled:
                self._renew_mixture(state, place)

    def _renew_mixture(self, state: OptimismState, place: int) -> None:
        (m, prior), layer, C = state.mixture[place], state.layers[place], self.constants[place]
        if not self.mixed:
            m[0] = policy_params.PLAYED_ALONE
            return
        ridge, inverse, log_det, counts = layer.solver.prior(self.glm, layer, C)
        same = self.glm.linear and abs(ridge - layer.head.ridge) <= 1e-12 * ridge
        own = policy_params.OWN_MATRIX if counts is None else policy_params.COUNTS
        kind = policy_params.SAME_MATRIX if same else own
        m[:] = kind, C, ridge, self.glm.max_slope if counts is None else counts, log_det
        prior[:] = inverse

    def renew_all(self, state: OptimismState) -> None:
        """Bring what is made of the layers up to date with them."""
        for place in range(len(state.layers)):
            self.renew(state, place)

    def handle_request(self, state: OptimismState, place: int) -> None:
        """Do what the kernels have asked for after a reward."""
        with self.writing(state):
            solver.settle(self.glm, state.layers[place])
            self.renew(state, place)
        state.fixed.renew(state, slice(self.ellipsoids * place, self.ellipsoids * (place + 1)))

    def rebound(self, state: OptimismState) -> None:
        """Let a state of another bound on the parameter follow that of the model."""
        state.params[0].parameter = self.glm.parameter_bound
        rebound(self.glm, state.layers[0])
        ridge = self.first_ridge(state.dim, 0)
        if self.ridge is None and ridge is not None:
            move_ridge(self.glm, state.layers[0], ridge)
        self.renew(state, 0)

    def writing(self, state: OptimismState) -> Writing:
        """Take a state into use that is written outside the kernels, which write in one step."""
        return Writing(state, lambda: state, partial(self.repair, state))

    def repair(self, state: OptimismState) -> None:
        """Bring a state to rest that was interrupted: layers first, then what is made of them."""
        for layer in state.layers:
            solver.settle(self.glm, layer)
        if state.begun is not None:
            x, y, counts = state.begun
            left = [place for place, n in counts.items() if state.layers[place].count == n]
            for place in left if len(left) < len(counts) else ():  # the others have learnt it
                FTRL(self.glm).update(state.layers[place], x, y)
            state.begun = None
        state.rounds = self.learnt(state)
        self.renew_all(state)
