"""MORUCB: rewards of similar noise in layers, one FTRL a layer, optimism over all of them."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...confidence import Ellipsoid
from ...inputs import coerce_positive, flag, one_of
from ...model.glm import GLM
from ...model.noise import Bounded, Noise, SubGaussian
from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array
from ...regression.ftrl.ftrl import FTRL
from ...regression.ftrl.sets import uniform
from ...theory import radii
from ..checked_policy import check_optimism
from .guaranteed_index import GuaranteedIndex
from .optimism_state import OptimismState
from .optimistic import OptimisticPolicy
from .reward_weights import EqualWeights, RewardWeights


@dataclass(frozen=True)
class MORUCB(OptimisticPolicy):
    r"""Multi-layer online regression with upper confidence bounds.

    .. math:: a_t = \arg\max_a \min_{l: n_l \ge 1} \hat\theta_l\cdot a
              + \beta_l\|a\|_{\underline H_l^{-1}},\quad
              \underline H_l = 2\lambda I + \kappa\sum_{s\in l} a_s a_s^\top

    Layer l of 0..L-1, :math:`L = \max(1, \lceil\log_2(R/\bar\sigma)\rceil)`, holds the rewards with
    :math:`2^l\bar\sigma < \sigma \le 2^{l+1}\bar\sigma` (layer 0 also those of smaller sd); its
    radius is for noise within R, sd :math:`\min(R, 2^{l+1}\bar\sigma)` and probability delta/L.
    Empty layers are skipped; the link is left out, since it does not change the maximum.

    Use it where noise is bounded and its standard deviation is known but is not a sub-Gaussian
    scale, or can't be trusted (``nested``); elsewhere `FTRLUCB` is better. Costs L K d^2 per round,
    L the number of layers.

    Parameters
    ----------
    glm : GLM
    noise_bound, noise_floor : float > 0
        R, and the smallest standard deviation distinguished; R/sqrt(d) is a sensible floor.
    delta : float in (0, 1)
    radius : {"adaptive", "played", "self-normalised", "freedman", "printed"}
    radius_scale : float >= 0
        Multiplies the radii; theory covers only 1.
    ridge : float > 0, optional
        `GLM.ridge` by default, which suits layers better than `theory.interval_ridge`.
    nested : bool
        Let a layer also learn rewards of smaller standard deviation, for standard deviations that
        can't be trusted.
    as_printed : bool
        The algorithm exactly as published, for study: layers 1..L, so that rewards below twice the
        floor are dropped, no kappa in the matrices, the same radius for all counts, empty layers
        kept, and the link in the index.
    noise : {"bounded", "sub-gaussian"}
        Whether a standard deviation is that of noise within ``noise_bound``, or a sub-Gaussian
        scale, for which sets are much smaller.

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
    noise: str = "bounded"

    def __post_init__(self) -> None:
        FTRL(self.glm, self.ridge)  # refuses what is no GLM or ridge
        coerce_positive(self, "noise_bound", "noise_floor")
        check_optimism(self)
        one_of("radius", self.radius, radii.RADII)
        flag("nested", self.nested)
        flag("as_printed", self.as_printed)
        one_of("noise", self.noise, ("bounded", "sub-gaussian"))
        if self.as_printed and self.noise != "bounded":
            raise ValueError("as_printed is True; the published algorithm is for noise='bounded'")
        if not self.layers:
            raise ValueError(
                f"noise_bound is {self.noise_bound:g} and noise_floor {self.noise_floor:g}; as "
                "published there is no layer then: pass a noise_bound above noise_floor"
            )
        radii.check(self.glm, self._noise(0), self.radius)

    @cached_property
    def weights(self) -> RewardWeights:  # type: ignore[override]
        """What a reward weighs: one as much as another."""
        return EqualWeights(self.glm, self._noise(0), most=self.noise_bound)

    @cached_property
    def ranking(self) -> GuaranteedIndex:  # type: ignore[override]
        """The index that is maximised."""
        kind = PrintedIndex if self.as_printed else GuaranteedIndex
        noises = tuple(map(self._noise, range(self.layers)))
        return kind(
            self.glm, noises, tuple(radii.conversion_constant(self.glm, each) for each in noises),
            delta=self.delta / max(1, self.layers), radius=self.radius, scale=self.radius_scale,
            ridge=self.ridge, split=self, nested=self.nested,
        )  # fmt: skip

    @cached_property
    def layers(self) -> int:
        """How many layers there are."""
        return max(0 if self.as_printed else 1, self._doublings(self.noise_bound))

    def layer(self, sigma: float) -> int:
        """Return the layer of a standard deviation; -1 where the published algorithm has none."""
        if self.as_printed:
            within = min(max(sigma, self.noise_floor), self.noise_bound)
            return max(self._doublings(within) - 2, -1)
        return bisect_left(self._ends, sigma)

    @cached_property
    def _ends(self) -> list[float]:
        """The largest standard deviation of each layer but the last, with room for rounding."""
        return [self.noise_floor * 2.0 ** (place + 1 + 1e-12) for place in range(self.layers - 1)]

    def _doublings(self, sigma: float) -> int:
        return math.ceil(math.log2(sigma / self.noise_floor) - 1e-12)

    def scale(self, layer: int) -> float:
        """Return the largest standard deviation of a layer; as published that in its radius."""
        if self.as_printed:
            return 2.0 ** (layer + 2) * self.noise_floor
        return float(min(self.noise_bound, 2.0 ** (layer + 1) * self.noise_floor))

    def _noise(self, layer: int) -> Noise:
        """Return what is assumed of the rewards of a layer."""
        sigma = min(self.noise_bound, self.scale(layer))
        return SubGaussian(sigma) if self.noise != "bounded" else Bounded(self.noise_bound, sigma)

    @property
    def index_of(self) -> str:
        """What the index bounds: a score, or as published a mean."""
        return self.ranking.index_of

    def upper_bounds(self, state: OptimismState, x: Array) -> Array:
        """Return the upper bound of every arm's score by each layer, infinite where it is empty."""
        return self.ranking.upper_bounds(state, x)


@dataclass(frozen=True)
class PrintedIndex(GuaranteedIndex):
    """As published: no kappa in the matrices, one radius for all counts, the link in the index."""

    index_of = "mean"
    compiled = False
    ellipsoids = 1

    def first_ridge(self, dim: int, place: int) -> float | None:
        """Return the ridge given, or None for that of the theorem."""
        return self.ridge

    def is_active(self, state: OptimismState, place: int) -> bool:
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
        return np.asarray(self.glm.mean(self.upper_bounds(state, x).min(axis=0)))

    def upper_bounds(self, state: OptimismState, x: Array) -> Array:
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
        policy = self.split
        assert policy is not None
        return radii.bernstein(
            self.glm, policy.noise_bound, policy.scale(place), dim=state.dim,
            count=state.rounds + 1, ridge=state.layers[place].ridge, delta=self.delta,
        )  # fmt: skip
