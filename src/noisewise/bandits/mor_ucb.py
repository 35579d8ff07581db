"""MORUCB: rewards of similar noise in layers, one FTRL a layer, optimism over all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ..glm import GLM
from ..inputs import coerce_positive, flag, one_of, probability
from ..protocols import Array
from ..regression.ftrl import FTRL
from ..states import ADDED
from ..theory import radii
from .guaranteed_index import GuaranteedIndex
from .noise_layers import NoiseLayers
from .optimism_state import OptimismState
from .optimistic import OptimisticPolicy
from .printed_mor_ucb import PrintedIndex, PrintedLayers
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
    noise: str = field(default="bounded", metadata=ADDED)

    def __post_init__(self) -> None:
        FTRL(self.glm, self.ridge)  # refuses what is no GLM or ridge
        coerce_positive(self, "noise_bound", "noise_floor")
        coerce_positive(self, "delta", by=probability)
        one_of("radius", self.radius, radii.RADII)
        coerce_positive(self, "radius_scale", zero=True)
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
        radii.check(self.glm, self._split.noise(0), self.radius)

    @cached_property
    def _split(self) -> NoiseLayers:
        kind = PrintedLayers if self.as_printed else NoiseLayers
        return kind(self.noise_bound, self.noise_floor, self.noise == "sub-gaussian")

    @cached_property
    def weights(self) -> RewardWeights:  # type: ignore[override]
        """What a reward weighs: one as much as another."""
        return EqualWeights(self.glm, self._split.noise(0), most=self.noise_bound)

    @cached_property
    def ranking(self) -> GuaranteedIndex:  # type: ignore[override]
        """The index that is maximised."""
        kind = PrintedIndex if self.as_printed else GuaranteedIndex
        noises = tuple(map(self._split.noise, range(self.layers)))
        return kind(
            self.glm, noises, tuple(radii.conversion_constant(self.glm, each) for each in noises),
            delta=self.delta / max(1, self.layers), radius=self.radius, scale=self.radius_scale,
            ridge=self.ridge, split=self._split, nested=self.nested,
        )  # fmt: skip

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return self._split.count

    def layer(self, sigma: float) -> int:
        """Return the layer of a standard deviation; -1 where the published algorithm has none."""
        return self._split.layer(sigma)

    def scale(self, layer: int) -> float:
        """Return the largest standard deviation of a layer."""
        return self._split.scale(layer)

    @property
    def index_of(self) -> str:
        """What the index bounds: a score, or as published a mean."""
        return self.ranking.index_of

    def uppers(self, state: OptimismState, x: Array) -> Array:
        """Return the upper bound of every arm's score by each layer, infinite where it is empty."""
        return self.ranking.uppers(state, x)
