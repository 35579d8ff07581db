"""FTRLUCB: one weighted FTRL, optimism from its own regret."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ..confidence import Ellipsoid
from ..glm import GLM
from ..inputs import one_of, positive, probability, settle
from ..noise import Bounded, Likelihood, Noise, SubGaussian
from ..protocols import Array
from ..regression.ftrl import FTRL
from ..regression.moving import move_ridge
from ..regression.sets import adaptive, curvature_inverse, ellipsoids
from ..regression.state import FTRLState
from ..theory import radii
from .arms import candidates, clip, first_best, observation
from .forms import Forms

NOISES = ("sub-gaussian", "bounded", "likelihood")
RADII = (*radii.RADII, "practical")
GROWTH = 1.1


@dataclass(eq=False)
class FTRLUCBState:
    """What the policy knows: an estimate, its confidence sets, and how noisy the rewards were.

    ``norm`` is the length behind the moving ridge, ``curvature`` the sum of w phi' of the rewards
    as they were learnt, ``clipped`` counts standard deviations cut to the noise bound.
    """

    ftrl: FTRLState
    forms: Forms
    norm: float
    curvature: float = 0.0
    clipped: int = 0

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.ftrl.dim

    @property
    def theta(self) -> Array:
        """The current estimate."""
        return self.ftrl.theta

    @property
    def count(self) -> int:
        """The number of rewards learnt."""
        return self.ftrl.count


@dataclass(frozen=True)
class FTRLUCB:
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

    Parameters
    ----------
    glm : GLM
    noise : {"sub-gaussian", "bounded", "likelihood"}
        What ``sigma`` means: a sub-Gaussian scale; an sd of noise within ``noise_bound``; or an sd
        relative to the family's own, 1/sqrt(n) for a mean of n trials (no floor, not zero).
    noise_bound : float > 0, optional
        Larger standard deviations are cut to it; needed for "bounded".
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
        settle(self, "noise_floor", *(["noise_bound"] if self.noise_bound is not None else []))
        probability("delta", self.delta)
        positive("radius_scale", self.radius_scale, zero=True)
        if self.noise == "bounded" and self.noise_bound is None:
            raise ValueError("noise is 'bounded', but noise_bound is None; pass the largest noise")
        radii.conversion_constant(self.glm, self._assumed())

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
        return SubGaussian(1.0)

    def start(self, dim: int) -> FTRLUCBState:
        """Make the state of a fresh learner."""
        N = self.glm.parameter_bound
        ridge = dim * self.spread / (2 * N * N) if self.moving else self.ridge
        ftrl = FTRL(self.glm, ridge).start(dim)
        state = FTRLUCBState(ftrl, Forms.empty(2, ftrl.dim), N)
        if self._uses_sets():
            state.forms.put(0, self.confidence(state))
        return state

    def _uses_sets(self) -> bool:
        """Whether index or weights need the confidence sets after every reward."""
        return self.radius != "practical" or self.noise == "bounded"

    def select(
        self,
        state: FTRLUCBState,
        arms: ArrayLike,
        rng: np.random.Generator,
        sigma: ArrayLike | None = None,
    ) -> int:
        """Return the arm of the largest index; nothing is random."""
        return first_best(self.index(state, candidates(arms, state.dim, self.glm.feature_bound)))

    def index(self, state: FTRLUCBState, x: Array) -> Array:
        """Return the index of every arm."""
        if self.radius != "practical":
            return state.forms.upper(x, self.radius_scale)
        return x @ state.theta + self.radius_scale * self.bonus(state, x)

    def bonus(self, state: FTRLUCBState, x: Array) -> Array:
        """Return what the practical index adds to the estimated score of every arm."""
        P = curvature_inverse(self.glm, state.ftrl)
        h = np.maximum(np.einsum("ij,ij->i", x @ P, x), 0.0)
        return np.sqrt(self.spread * h * (3 + np.log1p(state.curvature * h)))

    def update(
        self, state: FTRLUCBState, arm: ArrayLike, reward: float, sigma: float = 1.0
    ) -> None:
        """Learn a reward, weighed by the inverse of its variance."""
        x, y, sd = observation(arm, reward, sigma, state.dim, self.glm.feature_bound)
        w = self._weight(state, x, sd)
        z = float(x @ state.theta)
        FTRL(self.glm).update(state.ftrl, x, y, w)
        state.curvature += w * float(self.glm.slope(z))
        if self.moving:
            self._move(state)
        if self._uses_sets():
            state.forms.put(0, self.confidence(state))

    def _weight(self, state: FTRLUCBState, x: Array, sd: float) -> float:
        if self.noise == "likelihood":
            return positive("sigma", sd) ** -2.0
        if self.noise_bound is not None:
            sd = clip(state, sd, self.noise_bound)
        w = max(sd, self.noise_floor) ** -2.0
        if self._careful():
            # the largest change of a score that the set allows, times the largest noise
            forms = state.forms
            width = math.sqrt(max(float(x @ forms.inverses[0] @ x), 0.0))
            most = min(2 * self.glm.score_bound, float(forms.radii[0]) * width)
            assert self.noise_bound is not None
            w = min(w, self._constant() / max(self.noise_bound * most, 1e-300))
        return w

    def _careful(self) -> bool:
        """Whether weights shrink where the set is wide, which bounded noise needs."""
        return self.noise == "bounded" and self.radius in ("adaptive", "practical")

    def _constant(self) -> float:
        return 2 * (math.e - 2) / self.glm.min_slope

    def _move(self, state: FTRLUCBState) -> None:
        length = float(np.linalg.norm(state.theta))
        if length > GROWTH * state.norm:
            state.norm = length
            move_ridge(self.glm, state.ftrl, state.dim * self.spread / (2 * length * length))

    def confidence(self, state: FTRLUCBState) -> tuple[Ellipsoid, ...]:
        """Return sets that hold the parameter together, for all rounds, with 1 - delta."""
        if self._careful():
            return adaptive(self.glm, state.ftrl, self._constant(), self.delta)
        radius = "adaptive" if self.radius == "practical" else self.radius
        return ellipsoids(self.glm, state.ftrl, self._assumed(), self.delta, radius, local=True)
