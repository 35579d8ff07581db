"""MORUCB: rewards of similar noise in layers, one FTRL a layer, optimism over all of them."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .. import linalg
from ..confidence import Ellipsoid
from ..glm import GLM
from ..inputs import dimension, one_of, positive, probability, settle
from ..noise import Bounded
from ..protocols import Array
from ..regression.ftrl import FTRL
from ..regression.sets import ellipsoids, uniform
from ..regression.state import FTRLState
from ..theory import radii
from .arms import candidates, clip, first_best, observation
from .forms import Forms


@dataclass(eq=False)
class MORUCBState:
    """What the policy knows: an estimate and its confidence sets in every layer.

    ``rounds`` counts the rewards, ``clipped`` the standard deviations cut to the noise bound.
    """

    layers: list[FTRLState]
    forms: Forms
    rounds: int = 0
    clipped: int = 0

    @property
    def dim(self) -> int:
        """The number of features."""
        return int(self.forms.centres.shape[1])

    @property
    def count(self) -> int:
        """The number of rewards learnt."""
        return self.rounds


@dataclass(frozen=True)
class MORUCB:
    r"""Multi-layer online regression with upper confidence bounds.

    .. math:: a_t = \arg\max_a \min_{l: n_l \ge 1} \hat\theta_l\cdot a
              + \beta_l\|a\|_{\underline H_l^{-1}},\quad
              \underline H_l = 2\lambda I + \kappa\sum_{s\in l} a_s a_s^\top

    Layer l of 0..L-1, :math:`L = \max(1, \lceil\log_2(R/\bar\sigma)\rceil)`, holds the rewards with
    :math:`2^l\bar\sigma < \sigma \le 2^{l+1}\bar\sigma` (layer 0 the quieter ones too); its radius
    is for noise within R, sd :math:`\min(R, 2^{l+1}\bar\sigma)` and probability delta/L. Empty
    layers are skipped; the link is left out, since it changes no maximum.

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
        settle(self, "noise_bound", "noise_floor")
        probability("delta", self.delta)
        one_of("radius", self.radius, radii.RADII)
        positive("radius_scale", self.radius_scale, zero=True)

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

    def start(self, dim: int) -> MORUCBState:
        """Make the state of a fresh learner."""
        ftrl = FTRL(self.glm, self.ridge)
        layers = [ftrl.start(dim) for _ in range(self.layers)]
        state = MORUCBState(layers, Forms.empty(2 * len(layers), dimension(dim)))
        if self.as_printed:
            for place in range(self.layers):
                state.forms.put(2 * place, (self._printed_set(state, place),))
        return state

    def select(
        self,
        state: MORUCBState,
        arms: ArrayLike,
        rng: np.random.Generator,
        sigma: ArrayLike | None = None,
    ) -> int:
        """Return the arm of the largest index; nothing is random."""
        return first_best(self.index(state, candidates(arms, state.dim, self.glm.feature_bound)))

    def index(self, state: MORUCBState, x: Array) -> Array:
        """Return the index of every arm."""
        if self.as_printed:
            return self._printed(state, x)
        return state.forms.upper(x, self.radius_scale)

    def update(self, state: MORUCBState, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Learn a reward in the layer of its noise."""
        x, y, sd = observation(arm, reward, sigma, state.dim, self.glm.feature_bound)
        first = self.layer(clip(state, sd, self.noise_bound))
        state.rounds += 1
        if first < 0:
            return
        last = self.layers if self.nested else first + 1
        for place in range(first, last):
            FTRL(self.glm).update(state.layers[place], x, y)
            state.forms.put(2 * place, self._sets(state, place))

    def _sets(self, state: MORUCBState, place: int) -> tuple[Ellipsoid, ...]:
        if self.as_printed:
            return (self._printed_set(state, place),)
        noise, delta = Bounded(self.noise_bound, self.scale(place)), self.delta / self.layers
        return ellipsoids(self.glm, state.layers[place], noise, delta, self.radius, local=True)

    def confidence(self, state: MORUCBState) -> tuple[Ellipsoid, ...]:
        """Return sets that hold the parameter together, for all rounds, with 1 - delta.

        The published algorithm's are returned as they are, though not all of them hold.
        """
        return tuple(
            each
            for place, layer in enumerate(state.layers)
            if layer.count or self.as_printed
            for each in self._sets(state, place)
        )

    def _printed(self, state: MORUCBState, x: Array) -> Array:
        best = np.full(len(x), np.inf)
        for place in range(self.layers):
            centre, inverse = state.forms.centres[2 * place], state.forms.inverses[2 * place]
            each = Ellipsoid(centre, inverse, self._printed_radius(state, place))
            upper = x @ centre + self.radius_scale * each.width(x)
            best = np.minimum(best, self.glm.mean(upper))
        return best if self.layers else np.zeros(len(x))

    def _printed_radius(self, state: MORUCBState, place: int) -> float:
        layer = state.layers[place]
        noise = Bounded(self.noise_bound, 2.0 ** (place + 2) * self.noise_floor)
        at = {"dim": state.dim, "count": state.rounds + 1}
        return radii.printed(
            self.glm, noise, **at, ridge=layer.ridge, delta=self.delta / self.layers
        )

    def _printed_set(self, state: MORUCBState, place: int) -> Ellipsoid:
        """Return what the paper takes for a confidence set, kappa missing from its matrix."""
        layer, kappa = state.layers[place], self.glm.min_slope
        start = 2 * layer.ridge * np.eye(state.dim)
        H = linalg.invert(linalg.factor(uniform(self.glm, layer)[0]))
        Sigma = start + (H - start) / kappa
        radius = self._printed_radius(state, place)
        return Ellipsoid(layer.theta, linalg.invert(linalg.factor(Sigma)), radius)
