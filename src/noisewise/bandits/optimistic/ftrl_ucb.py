"""FTRLUCB: one weighted FTRL, optimism from its own regret."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from ...inputs import coerce_positive, one_of
from ...model.glm import GLM
from ...model.noise import Bounded, Likelihood, SubGaussian
from ...protocols import Array
from ...regression.ftrl.ftrl import FTRL
from ...regression.ftrl.moving import reweigh
from ...theory import radii
from ..checked_policy import check_optimism
from .guaranteed_index import GuaranteedIndex
from .optimism_state import OptimismState
from .optimistic import OptimisticPolicy
from .practical_index import PracticalIndex, bonus
from .reward_weights import CarefulWeights, EstimatedWeights, FamilyWeights, RewardWeights
from .variance import VarianceModel

NOISES = ("sub-gaussian", "bounded", "likelihood", "estimated")
RADII = (*radii.RADII, "practical")


@dataclass(frozen=True)
class FTRLUCB(OptimisticPolicy):
    r"""Optimism with one FTRL in which a reward of standard deviation sigma weighs 1/sigma^2.

    .. math:: \hat\theta = \arg\min_\theta \lambda\|\theta\|^2
              + \sum_s w_s\ell_s(\theta),\quad w_s = \max(\sigma_s, \text{floor})^{-2}

    Guaranteed index ("adaptive" and the other radii of `FTRL.ellipsoid`): the smallest upper bound
    over the confidence sets. "practical", without a regret proof:
    :math:`a\cdot\hat\theta + \sqrt{g h (3 + \log(1 + W h))}`,
    :math:`h = a^\top H^{-1}a`, H the Hessian at the estimate, W the sum of :math:`w\varphi'`, g
    = 1 for likelihood noise and :math:`1/\varphi'(0)` else. It knows no horizon, number of arms
    or delta, and its ridge moves: :math:`2\lambda = dg/N^2`, N the parameter bound and then the
    estimate's norm whenever that exceeds N by a tenth.

    Use it where the noise of every reward is known: the practical index to play, the
    guaranteed one where a proof is needed. Costs K d^2 per round, or K d where arms stay the same,
    and the update of `FTRL`.

    Parameters
    ----------
    glm : GLM
    noise : {"sub-gaussian", "bounded", "likelihood", "estimated"}
        What ``sigma`` means: a sub-Gaussian scale; an sd of noise within ``noise_bound``; or an sd
        relative to the family's own, 1/sqrt(n) for a mean of n trials (no floor, not zero).
        "estimated" looks at no ``sigma``: a `VarianceModel` of the arm's features says, before the
        reward is seen, what it counts with. **Without guarantee** that this is its variance. The
        radius must be "practical"; `confidence` relies on ``noise_bound`` alone and is wide.
    noise_bound : float > 0, optional
        Larger standard deviations are cut to it; needed for "bounded", and for "estimated", where
        it bounds every sub-Gaussian scale.
    noise_floor : float > 0
        Smaller standard deviations count as this one.
    radius : {"adaptive", "played", "self-normalised", "freedman", "printed", "practical"}
    ridge : float > 0, optional
        By default that for intervals, C d/(2 B^2); for "practical" the moving one; for bounded
        noise and with the radius "played" `GLM.ridge`.

    Examples
    --------
    >>> import numpy as np
    >>> policy = FTRLUCB(GLM(), radius="practical")
    >>> state = policy.start(dim=2)
    >>> policy.update(state, [1.0, 0.0], reward=1.0, sigma=0.1)
    >>> policy.select(state, np.eye(2), np.random.default_rng(0))  # the untried arm
    1

    References
    ----------
    The weighted form of MOR-UCB (Zhao, Zhou, He and Gu, 2022) with the regret of FTRL turned into
    a confidence set; regret at most `theory.ftrl_ucb_bound` on the event of the set.
    """

    glm: GLM = field(default_factory=GLM)
    noise: str = "sub-gaussian"
    noise_bound: float | None = None
    noise_floor: float = 0.05
    delta: float = 0.05
    radius: str = "adaptive"
    radius_scale: float = 1.0
    ridge: float | None = None

    def __post_init__(self) -> None:
        FTRL(self.glm, self.ridge)  # refuses what is no GLM or ridge
        one_of("noise", self.noise, NOISES)
        one_of("radius", self.radius, RADII)
        coerce_positive(
            self, "noise_floor", *(["noise_bound"] if self.noise_bound is not None else [])
        )
        if self.noise_bound is not None and self.noise_floor > self.noise_bound:
            raise ValueError(
                f"noise_floor is {self.noise_floor:g}, above noise_bound {self.noise_bound:g}; "
                "pass the least standard deviation to distinguish"
            )
        check_optimism(self)
        if self.noise in ("bounded", "estimated") and self.noise_bound is None:
            raise ValueError(
                f"noise is {self.noise!r}, but noise_bound is None; pass the largest noise"
            )
        if self.noise == "estimated" and self.radius != "practical":
            raise ValueError(
                f"noise is 'estimated' and radius {self.radius!r}; pass radius='practical', or for "
                "a guarantee noise='sub-gaussian' and tell noise_bound as every sigma, whose sets "
                "are smaller"
            )
        radii.check(self.glm, self.weights.noise, self.radius)

    @property
    def not_promised(self) -> tuple[str, ...]:
        """A moving ridge, and weights that look at the past, depend on the order of rewards."""
        late = self.moving or self.careful or self.noise == "estimated"
        return ("late rewards give the same estimate",) if late else ()

    @property
    def moving(self) -> bool:
        """Whether the ridge follows the estimate."""
        return self.radius == "practical" and self.ridge is None

    @property
    def careful(self) -> bool:
        """Whether weights shrink where the set is wide: see `CarefulWeights`."""
        return self.noise == "bounded" and self.radius == "adaptive"

    @property
    def spread(self) -> float:
        """The factor g of the practical index."""
        return 1.0 if self.noise == "likelihood" else 1 / float(self.glm.slope(0.0))

    @property
    def reward_range(self) -> tuple[float, float]:
        """The range of rewards, that of the family where it is relied on."""
        return self.weights.rewards

    @cached_property
    def variances(self) -> VarianceModel:
        """The model behind "estimated"; its state is ``state.variance``."""
        assert self.noise_bound is not None
        return VarianceModel(self.noise_bound, self.noise_floor, self.glm.feature_bound)

    @cached_property
    def weights(self) -> RewardWeights:  # type: ignore[override]
        """What a reward weighs."""
        glm, floor, bound = self.glm, self.noise_floor, self.noise_bound
        if self.noise == "likelihood":
            return FamilyWeights(glm, Likelihood())
        if bound is None:
            return RewardWeights(glm, SubGaussian(1.0), floor)
        if self.noise == "estimated":  # of a weight it is only known how large it may be
            return EstimatedWeights(glm, SubGaussian(bound / floor), model=self.variances)
        if self.noise == "sub-gaussian":
            return RewardWeights(glm, SubGaussian(1.0), floor, bound)
        kind = CarefulWeights if self.careful else RewardWeights
        return kind(glm, Bounded(bound, 1.0, max_weight=floor**-2.0), floor, bound)

    @cached_property
    def ranking(self) -> GuaranteedIndex:  # type: ignore[override]
        """The index that is maximised."""
        kind, radius, weights = GuaranteedIndex, self.radius, self.weights
        if radius == "practical":
            kind, radius = PracticalIndex, "adaptive"
        return kind(
            self.glm, (weights.noise,), (weights.constant,), delta=self.delta, radius=radius,
            scale=self.radius_scale, ridge=self.ridge, gain=self.spread,
        )  # fmt: skip

    def start(self, dim: int) -> OptimismState:
        """Make the state of a fresh learner."""
        state = self.ranking.start(dim)
        if self.noise == "estimated":
            state.variance = self.variances.start(dim)
        return state

    def check_state(self, state: OptimismState) -> None:
        """Raise unless the state is as this policy starts it."""
        super().check_state(state)
        if (state.variance is not None) != (self.noise == "estimated"):
            raise ValueError(f"noise is {self.noise!r}; only 'estimated' has a state of variances")

    def bonus(self, state: OptimismState, x: Array) -> Array:
        """Return what the practical index adds to the estimated score of every arm."""
        return bonus(self.glm, self.spread, state, x)

    def rebound(self, state: OptimismState, parameter_bound: float) -> FTRLUCB:
        """Return this policy for another bound of the parameter; the state goes along.

        For the identity link only: curved losses depend on the bound themselves.
        """
        self._needs_identity("rebound")
        policy = replace(self, glm=replace(self.glm, parameter_bound=parameter_bound))
        with self.ranking.writing(state):
            policy.ranking.rebound(state)
        return policy

    def reweigh(self, state: OptimismState, factor: float) -> None:
        """Let all rewards so far count ``factor`` times as much; for the identity link only."""
        self._needs_identity("reweigh")
        with self.ranking.writing(state):
            reweigh(self.glm, state.layers[0], factor)
            state.params[0].curvature *= factor
            self.ranking.renew(state, 0)

    def _needs_identity(self, what: str) -> None:
        if not self.glm.linear:
            raise ValueError(f"the link is {self.glm.link.name}; {what} needs the identity")
