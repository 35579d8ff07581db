"""FTRLUCB: one weighted FTRL, optimism from its own regret."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..blas import matmul
from ..confidence import Ellipsoid
from ..glm import GLM
from ..inputs import coerce_positive, dimension, is_array, one_of, positive, probability, ready
from ..kernels.policy_params import CURVATURE, GROWTH, NORM, PARAMETER
from ..noise import Bounded, Likelihood, Noise, SubGaussian
from ..protocols import Array
from ..regression import solver
from ..regression.ftrl import FTRL
from ..regression.moving import move_ridge, rebound, reweigh
from ..regression.sets import adaptive, curvature_inverse, ellipsoids
from ..theory import radii
from . import layers
from .arms import clip, observation
from .layers import NO_ARMS, FixedArms, Mending, OptimismState, OptimisticPolicy
from .likelihood import refuse_outside, reward_range
from .variance import VarianceModel

NOISES = ("sub-gaussian", "bounded", "likelihood", "estimated")
RADII = (*radii.RADII, "practical")
TINY = 1e-150  # sd whose weight can still be told, and refused


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

    Use it where the noise of every reward is told with it: the practical index to play, the
    guaranteed one where a proof is needed. Costs K d^2 a round, or K d where arms stay the same,
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
    radius : {"adaptive", "self-normalised", "freedman", "printed", "practical"}
    ridge : float > 0, optional
        `GLM.ridge` by default, for "practical" the moving one.

    Examples
    --------
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
                "pass the least standard deviation told apart"
            )
        coerce_positive(self, "delta", by=probability)
        coerce_positive(self, "radius_scale", zero=True)
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
        self.confidence(self.start(1))  # refuses a radius or family that does not fit the noise

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
    def spread(self) -> float:
        """The factor g of the practical index."""
        return 1.0 if self.noise == "likelihood" else 1 / float(self.glm.slope(0.0))

    def _assumed(self) -> Noise:
        if self.noise == "likelihood":
            return Likelihood()
        if self.noise == "bounded":
            assert self.noise_bound is not None
            return Bounded(self.noise_bound, 1.0, max_weight=self.noise_floor**-2.0)
        if self.noise == "estimated":  # of a weight it is only known how large it may be
            assert self.noise_bound is not None
            return SubGaussian(self.noise_bound / self.noise_floor)
        return SubGaussian(1.0)

    def start(self, dim: int) -> OptimismState:
        """Make the state of a fresh learner."""
        ridge = self.ridge
        if self.moving:
            ridge = dimension(dim) * self.spread / (2 * self.glm.parameter_bound**2)
        state = layers.start(
            self.glm, ridge, dim, [self._constant()], self._forms(),
            delta=self.delta, scale=self.radius_scale, gain=self.spread,
        )  # fmt: skip
        if not self.moving:  # no estimate outgrows it
            state.numbers[0, NORM] = math.inf
        if self.noise == "estimated":
            state.variance = self.variances.start(dim)
        self._renew(state)
        return state

    @cached_property
    def variances(self) -> VarianceModel:
        """The model behind "estimated"; its state is ``state.variance``."""
        assert self.noise_bound is not None
        return VarianceModel(self.noise_bound, self.noise_floor, self.glm.feature_bound)

    def _choose(self, state: OptimismState, arms: Array, fixed: FixedArms | None = None) -> int:
        """Return the best arm by the kernels; -1 where the arms are bad."""
        if state.kernels is None:
            return -1
        if self.radius != "practical":
            return layers.best(state, arms, None if fixed is None else fixed.quads)
        theta, inverse, s = state.first
        if fixed is not None:
            return int(state.kernels.best_practical(theta, fixed.own[0], s, arms))
        return int(state.kernels.choose_practical(theta, inverse, s, arms))

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the index of every arm."""
        if self.radius != "practical":
            return state.forms.upper(x, self.radius_scale)
        return matmul(x, state.theta) + self.radius_scale * self.bonus(state, x)

    def bonus(self, state: OptimismState, x: Array) -> Array:
        """Return what the practical index adds to the estimated score of every arm."""
        P = curvature_inverse(self.glm, state.layers[0])
        h = np.maximum(np.einsum("ij,ij->i", matmul(x, P), x), 0.0)
        return np.sqrt(self.spread * h * (3 + np.log1p(state.curvature * h)))

    def _learn(self, state: OptimismState, arm: ArrayLike, reward: float, sigma: float) -> None:
        """Learn a reward, weighed by the inverse of its variance."""
        x, y, sd = observation(arm, reward, sigma, state.dim, self.glm.feature_bound)
        refuse_outside(self.glm, self.reward_range, y)
        w, layer = self._weight(state, x, sd), state.layers[0]
        predicted = float(self.glm.mean(x @ layer.theta))
        curvature = w * float(self.glm.slope(x @ layer.views.anchor))
        FTRL(self.glm).update(layer, x, y, w)
        if state.variance is not None:
            self.variances.update(state.variance, x, y - predicted)
        state.numbers[0, CURVATURE] += curvature
        state.clipped += self._clips(sd)
        state.rounds += 1
        self._renew(state)

    def _teach(
        self, state: OptimismState, arm: Any, reward: Any, sigma: Any, fixed: FixedArms = NO_ARMS
    ) -> bool:
        """Learn by the kernels where they serve; return whether that is done."""
        kernels, forms = state.kernels, state.forms
        if kernels is None or self.radius not in ("adaptive", "practical"):
            return False
        if not ready(arm) or is_array(reward) or not isinstance(sigma, float):
            return False
        if len(forms.radii) != self._rooms:
            self.check_state(state)
        if not TINY < sigma < self._largest:
            return False
        if self.noise == "likelihood":
            low, high = self.reward_range
            if not isinstance(reward, float) or not low <= reward <= high:
                return False
        if state.variance is not None:
            if arm.shape != (state.dim,) or not np.isfinite(arm).all():
                return False
            sigma = self.variances.of_row(state.variance, arm)
            predicted = float(self.glm.mean(arm @ state.theta))
        if self.noise != "likelihood" and sigma < self.noise_floor:
            sigma = self.noise_floor
        a, (theta, inverse, s), w = state.layers[0].array, state.first, 1.0 / (sigma * sigma)
        try:
            if self.radius == "practical":
                todo = kernels.learn_practical(
                    a, s, theta, inverse, arm, reward, w, fixed.arms, fixed.own[0]
                )
            else:
                if self.careful:
                    w = self._temper(w, kernels.reach(forms.inverses[0], forms.radii[0], arm))
                todo = kernels.learn_guaranteed(
                    a, s, forms.centres, forms.inverses, forms.radii, 0, arm, reward, w,
                    fixed.arms, fixed.quads,
                )  # fmt: skip
        except TypeError:  # not a row of floats
            return False
        if todo == kernels.BAD:
            return False
        if state.variance is not None:
            self.variances.update(state.variance, arm, reward - predicted)
        state.rounds += 1
        if todo != kernels.DONE:
            with Mending(self, state):
                solver.settle(self.glm, state.layers[0])
                self._renew(state)
            fixed.renew(state)
        return True

    @cached_property
    def _rooms(self) -> int:
        """The number of ellipsoids the kernels write."""
        return self._forms()

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The range of rewards, that of the family where it is relied on."""
        return reward_range(self.glm) if self.noise == "likelihood" else (-math.inf, math.inf)

    @cached_property
    def _largest(self) -> float:
        """The least standard deviation that asks for the readable way."""
        if self.noise_bound is None or self.noise == "estimated":
            return 1e100
        return math.nextafter(self.noise_bound, math.inf)

    def _clips(self, sd: float) -> bool:
        """Return whether a standard deviation is looked at, and above its bound."""
        if self.noise_bound is None or self.noise in ("likelihood", "estimated"):
            return False
        return sd > self.noise_bound

    def _weight(self, state: OptimismState, x: Array, sd: float) -> float:
        if self.noise == "likelihood":
            return max(positive("sigma", sd), TINY) ** -2.0
        if state.variance is not None:
            return self.variances.of_row(state.variance, x) ** -2.0
        if self.noise_bound is not None:
            sd = clip(state, sd, self.noise_bound)
        w = max(sd, self.noise_floor, TINY) ** -2.0
        if self.careful:
            forms = state.forms
            width = math.sqrt(max(float(matmul(x, forms.inverses[0]) @ x), 0.0))
            w = self._temper(w, float(forms.radii[0]) * width)
        return w

    def _temper(self, w: float, reach: float) -> float:
        """Return a weight at most C over the largest noise times the most a score can be off."""
        assert self.noise_bound is not None
        most = min(2 * self.glm.score_bound, reach)
        return min(w, self._constant() / max(self.noise_bound * most, 1e-300))

    @property
    def careful(self) -> bool:
        """Whether weights shrink where the set is wide, for the adaptive radius of bounded noise.

        The practical index, which has no proof to keep, would lose by it.
        """
        return self.noise == "bounded" and self.radius == "adaptive"

    def _constant(self) -> float:
        """Return C of the adaptive radius."""
        if self.careful:
            return 2 * (math.e - 2) / self.glm.min_slope
        return radii.conversion_constant(self.glm, self._assumed())

    def _forms(self) -> int:
        """Return how many ellipsoids are kept up to date."""
        if self.radius == "practical":
            return 0
        return 1 + (self.radius == "adaptive" and layers.local(self.glm))

    def _learnt(self, state: OptimismState) -> int:
        """Return how many rewards the layer has learnt."""
        return state.layers[0].count

    def _size(self) -> tuple[int, int]:
        """Return the number of layers, and of ellipsoids in all."""
        return 1, self._forms()

    def check_state(self, state: OptimismState) -> None:
        """Raise unless the state is as this policy starts it."""
        super().check_state(state)
        if (state.variance is not None) != (self.noise == "estimated"):
            raise ValueError(f"noise is {self.noise!r}; only 'estimated' has a state of variances")

    def _renew(self, state: OptimismState) -> None:
        """Bring ridge, estimate and sets up to date with the solver."""
        layer, forms = state.layers[0], state.forms
        if self.moving:
            length = float(np.linalg.norm(layer.theta))
            if length > GROWTH * state.norm:
                self._move(state, length)
        if self._forms():
            forms.put(0, self.confidence(state))
        if self.radius == "practical":
            state.own.centres[0] = layer.theta
            state.own.inverses[0] = curvature_inverse(self.glm, layer)

    def _move(self, state: OptimismState, length: float) -> None:
        """Set N of the moving ridge."""
        state.numbers[0, NORM] = length
        move_ridge(self.glm, state.layers[0], state.dim * self.spread / (2 * length * length))

    def rebound(self, state: OptimismState, parameter_bound: float) -> "FTRLUCB":
        """Return this policy for another bound of the parameter; the state goes along.

        For the identity link only: curved losses depend on the bound themselves.
        """
        self._needs_identity("rebound")
        policy = replace(self, glm=replace(self.glm, parameter_bound=parameter_bound))
        with Mending(self, state):
            state.numbers[0, PARAMETER] = policy.glm.parameter_bound
            rebound(policy.glm, state.layers[0])
            if self.moving:
                length = float(np.linalg.norm(state.theta))
                self._move(state, max(policy.glm.parameter_bound, length))
            policy._renew(state)
        return policy

    def reweigh(self, state: OptimismState, factor: float) -> None:
        """Let all rewards so far count ``factor`` times as much; for the identity link only."""
        self._needs_identity("reweigh")
        with Mending(self, state):
            reweigh(self.glm, state.layers[0], factor)
            state.numbers[0, CURVATURE] *= factor
            self._renew(state)

    def _needs_identity(self, what: str) -> None:
        if not self.glm.linear:
            raise ValueError(f"the link is {self.glm.link.name}; {what} needs the identity")

    def confidence(self, state: OptimismState) -> tuple[Ellipsoid, ...]:
        """Return sets that hold the parameter together, for all rounds, with 1 - delta."""
        layer = state.layers[0]
        if self.careful:
            return adaptive(self.glm, layer, self._constant(), self.delta)
        radius = "adaptive" if self.radius == "practical" else self.radius
        return ellipsoids(self.glm, layer, self._assumed(), self.delta, radius, local=True)
