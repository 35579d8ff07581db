"""MORUCB: rewards of similar noise in layers, one FTRL a layer, optimism over all of them."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import linalg
from ..blas import matmul
from ..confidence import Ellipsoid
from ..glm import GLM
from ..inputs import coerce_positive, dimension, flag, is_array, one_of, probability, ready
from ..noise import Bounded
from ..protocols import Array
from ..regression import solver
from ..regression.ftrl import FTRL
from ..regression.sets import ellipsoids, uniform
from ..theory import radii
from . import layers
from .arms import clip, observation
from .layers import NO_ARMS, FixedArms, Mending, OptimismState, OptimisticPolicy


@dataclass(frozen=True)
class MORUCB(OptimisticPolicy):
    r"""Multi-layer online regression with upper confidence bounds.

    .. math:: a_t = \arg\max_a \min_{l: n_l \ge 1} \hat\theta_l\cdot a
              + \beta_l\|a\|_{\underline H_l^{-1}},\quad
              \underline H_l = 2\lambda I + \kappa\sum_{s\in l} a_s a_s^\top

    Layer l of 0..L-1, :math:`L = \max(1, \lceil\log_2(R/\bar\sigma)\rceil)`, holds the rewards with
    :math:`2^l\bar\sigma < \sigma \le 2^{l+1}\bar\sigma` (layer 0 the quieter ones too); its radius
    is for noise within R, sd :math:`\min(R, 2^{l+1}\bar\sigma)` and probability delta/L. Empty
    layers are skipped; the link is left out, since it changes no maximum.

    Use it where noise is bounded and its standard deviation known but not sub-Gaussian, or not to
    be trusted (``nested``); `FTRLUCB` is better where it is. Costs L K d^2 a round, L the number
    of layers.

    Parameters
    ----------
    glm : GLM
    noise_bound, noise_floor : float > 0
        R and the quietest sd told apart; R/sqrt(d) is a sensible floor.
    delta : float in (0, 1)
    radius : {"adaptive", "self-normalised", "freedman", "printed"}
    radius_scale : float >= 0
        Multiplies the radii; only 1 is covered by theory.
    ridge : float > 0, optional
        `GLM.ridge` by default.
    nested : bool
        Let a layer learn quieter rewards too: for standard deviations that can't be trusted.
    as_printed : bool
        The algorithm literally as published, for study: layers 1..L, so that rewards below twice
        the floor are dropped, no kappa in the matrices, one radius for all counts, empty layers
        kept, the link in the index.

    Examples
    --------
    >>> policy = MORUCB(GLM(), noise_bound=1.0, noise_floor=0.25)
    >>> [policy.layer(sigma) for sigma in (0.0, 0.25, 0.5, 0.51, 1.0)]
    [0, 0, 0, 1, 1]

    References
    ----------
    Zhao, Zhou, He and Gu (2022), arXiv 2202.13603, Algorithm 2: regret of order
    (K/kappa) (d sqrt(sum sigma_t^2 + T floor^2) + (R + K) sqrt(d T)), `theory.mor_ucb_bound`.
    """

    glm: GLM = field(default_factory=GLM)
    noise_bound: float = 1.0
    noise_floor: float = 0.25
    delta: float = 0.05
    radius: str = "adaptive"
    radius_scale: float = 1.0
    ridge: float | None = None
    nested: bool = False
    as_printed: bool = False

    def __post_init__(self) -> None:
        FTRL(self.glm, self.ridge)  # refuses what is no GLM or ridge
        coerce_positive(self, "noise_bound", "noise_floor")
        coerce_positive(self, "delta", by=probability)
        one_of("radius", self.radius, radii.RADII)
        coerce_positive(self, "radius_scale", zero=True)
        flag("nested", self.nested)
        flag("as_printed", self.as_printed)

    @property
    def layers(self) -> int:
        """How many layers there are."""
        count = math.ceil(math.log2(self.noise_bound / self.noise_floor) - 1e-12)
        return max(0 if self.as_printed else 1, count)

    def layer(self, sigma: float) -> int:
        """Return the layer of a standard deviation; -1 where the published algorithm has none."""
        s = min(max(sigma, self.noise_floor), self.noise_bound)
        place = math.ceil(math.log2(s / self.noise_floor) - 1e-12) - 1
        if self.as_printed:  # its layers 1..L are places 0..L-1 here
            return place - 1 if place >= 1 else -1
        return min(max(place, 0), self.layers - 1)

    def scale(self, layer: int) -> float:
        """Return the largest standard deviation of a layer."""
        return float(min(self.noise_bound, 2.0 ** (layer + 1) * self.noise_floor))

    def start(self, dim: int) -> OptimismState:
        """Make the state of a fresh learner."""
        noises = [Bounded(self.noise_bound, self.scale(place)) for place in range(self.layers)]
        state = layers.start(
            self.glm, self.ridge, dimension(dim),
            [radii.conversion_constant(self.glm, noise) for noise in noises], self._forms(),
            delta=self.delta / max(1, self.layers), scale=self.radius_scale,
        )  # fmt: skip
        self._renew(state)
        return state

    def _learnt(self, state: OptimismState) -> int:
        """Return how many rewards the layers have learnt; the published ones leave some out."""
        counts = [layer.count for layer in state.layers]
        if self.as_printed:
            return state.rounds
        return counts[-1] if self.nested else sum(counts)

    def _renew(self, state: OptimismState) -> None:
        """Bring the sets up to date with the layers."""
        for place, layer in enumerate(state.layers):
            if layer.count or self.as_printed:
                state.forms.put(self._forms() * place, self._sets(state, place))

    def _choose(self, state: OptimismState, arms: Array, fixed: FixedArms | None = None) -> int:
        """Return the best arm by the kernels; -1 where the arms are bad."""
        if state.kernels is None or self.as_printed:
            return -1
        return layers.best(state, arms, None if fixed is None else fixed.quads)

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the index of every arm."""
        if self.as_printed:
            return self._printed(state, x)
        return state.forms.upper(x, self.radius_scale)

    @property
    def index_of(self) -> str:
        """What the index bounds: a score, or as published a mean."""
        return "mean" if self.as_printed else "score"

    def uppers(self, state: OptimismState, x: Array) -> Array:
        """Return the upper bound of every arm's score by each layer, infinite where it is empty."""
        if self.as_printed:
            return self._printed_uppers(state, x)
        sets = state.forms.uppers(x, self.radius_scale)
        return np.asarray(sets.reshape(self.layers, self._forms(), len(x)).min(axis=1))

    def _learn(self, state: OptimismState, arm: ArrayLike, reward: float, sigma: float) -> None:
        """Learn a reward in the layer of its noise."""
        x, y, sd = observation(arm, reward, sigma, state.dim, self.glm.feature_bound)
        places = self._places(clip(state, sd, self.noise_bound))
        self._begin(state, x, y, places)
        for place in places:
            FTRL(self.glm).update(state.layers[place], x, y)
            state.forms.put(self._forms() * place, self._sets(state, place))
        state.clipped += sd > self.noise_bound
        state.rounds += 1
        state.begun = None

    def _begin(self, state: OptimismState, x: Any, y: Any, places: range) -> None:
        """Note a reward that several layers learn, so that an interrupt leaves it to the rest."""
        if len(places) > 1:
            state.begun = x, y, {place: state.layers[place].count for place in places}

    def _forms(self) -> int:
        """Return how many ellipsoids a layer has."""
        adaptive = self.radius == "adaptive" and not self.as_printed
        return 2 if adaptive and layers.local(self.glm) else 1

    def _size(self) -> tuple[int, int]:
        """Return the number of layers, and of ellipsoids in all."""
        return self.layers, self.layers * self._forms()

    def _places(self, sigma: float) -> range:
        """Return the layers that learn a reward."""
        first = self.layer(sigma)
        if first < 0:
            return range(0)
        return range(first, self.layers if self.nested else first + 1)

    def _teach(
        self, state: OptimismState, arm: Any, reward: Any, sigma: Any, fixed: FixedArms = NO_ARMS
    ) -> bool:
        """Learn by the kernels where they serve; return whether that is done."""
        kernels, forms = state.kernels, state.forms
        if kernels is None or self.as_printed or self.radius != "adaptive":
            return False
        if not ready(arm) or is_array(reward) or not isinstance(sigma, float):
            return False
        if not 0 <= sigma <= self.noise_bound:
            return False
        places = self._places(sigma)
        n = self._forms()
        if len(forms.radii) != n * len(state.layers) or len(state.layers) <= places[-1]:
            self.check_state(state)
        if forms.radii[n * places[0]] == math.inf:  # its first reward
            return False
        self._begin(state, arm, reward, places)
        for place in places:
            layer = state.layers[place]
            try:
                todo = kernels.learn_guaranteed(
                    layer.array, state.numbers[place], forms.centres, forms.inverses, forms.radii,
                    n * place, arm, reward, 1.0, fixed.arms, fixed.quads,
                )  # fmt: skip
            except TypeError:  # not a row of floats
                return False
            if todo == kernels.BAD and place == places[0]:
                return False
            if todo == kernels.BAD:  # an earlier layer has learnt it
                FTRL(self.glm).update(layer, arm, reward)
            if todo != kernels.DONE:
                with Mending(self, state):
                    solver.settle(self.glm, layer)
                    forms.put(n * place, self._sets(state, place))
                fixed.renew(state, slice(n * place, n * place + n))
        state.rounds += 1
        state.begun = None
        return True

    def _sets(self, state: OptimismState, place: int) -> tuple[Ellipsoid, ...]:
        if self.as_printed:
            return (self._printed_set(state, place),)
        noise, delta = Bounded(self.noise_bound, self.scale(place)), self.delta / self.layers
        return ellipsoids(self.glm, state.layers[place], noise, delta, self.radius, local=True)

    def confidence(self, state: OptimismState) -> tuple[Ellipsoid, ...]:
        """Return sets that hold the parameter together, for all rounds, with 1 - delta.

        The published algorithm's are returned as they are, though not all of them hold.
        """
        return tuple(
            each
            for place, layer in enumerate(state.layers)
            if layer.count or self.as_printed
            for each in self._sets(state, place)
        )

    def _printed(self, state: OptimismState, x: Array) -> Array:
        if not self.layers:
            return np.zeros(len(x))
        return np.asarray(self.glm.mean(self._printed_uppers(state, x).min(axis=0)))

    def _printed_uppers(self, state: OptimismState, x: Array) -> Array:
        bounds = np.empty((self.layers, len(x)))
        for place in range(self.layers):
            centre, inverse = state.forms.centres[place], state.forms.inverses[place]
            each = Ellipsoid(centre, inverse, self._printed_radius(state, place))
            bounds[place] = matmul(x, centre) + self.radius_scale * each.width(x)
        return bounds

    def _printed_radius(self, state: OptimismState, place: int) -> float:
        layer = state.layers[place]
        noise = Bounded(self.noise_bound, 2.0 ** (place + 2) * self.noise_floor)
        at = {"dim": state.dim, "count": state.rounds + 1}
        return radii.printed(
            self.glm, noise, **at, ridge=layer.ridge, delta=self.delta / self.layers
        )

    def _printed_set(self, state: OptimismState, place: int) -> Ellipsoid:
        """Return what the paper takes for a confidence set, kappa missing from its matrix."""
        layer, kappa = state.layers[place], self.glm.min_slope
        start = 2 * layer.ridge * np.eye(state.dim)
        H = linalg.invert(linalg.factor(uniform(self.glm, layer)[0]))
        Sigma = start + (H - start) / kappa
        radius = self._printed_radius(state, place)
        return Ellipsoid(layer.theta, linalg.invert(linalg.factor(Sigma)), radius)
