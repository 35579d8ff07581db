"""GLOC: an online learner's predictions turned into a confidence set."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from ...inputs import coerce_positive
from ...model.glm import GLM
from ...numerics.blas import matmul
from ...protocols import Array
from ...regression.classics.newton_step import NewtonStep, NewtonStepState
from ...storage.states import NONNEGATIVE, check_fields
from ..linear import linear_state
from ..linear.linear_policy import LinearUCB
from ..linear.linear_state import LinearState


@dataclass(eq=False, repr=False, kw_only=True)
class GLOCState(LinearState):
    """What `GLOC` knows: a regression on the learner's own scores, and the learner.

    ``regret`` bounds the learner's regret, ``squares`` adds up its squared scores.
    """

    learner: NewtonStepState
    regret: float
    squares: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, learner=NewtonStepState, regret=NONNEGATIVE, squares=NONNEGATIVE)
        if self.learner.dim != self.dim:
            raise ValueError(
                f"GLOCState.learner has {self.learner.dim} features; {self.dim} belong there"
            )


@dataclass(frozen=True)
class GLOC(LinearUCB[GLOCState]):
    r"""Optimism around a regression on the scores that an online Newton step predicted.

    With :math:`z_s = x_s\cdot\theta_s` the learner's scores before each reward,
    :math:`V = 2\lambda I + \sum xx^\top,\ \hat\theta = V^{-1}\sum z_sx_s`,

    .. math:: \|\theta^* - \hat\theta\|_V^2 \le 2\lambda B^2 + q
              - \Big(\sum z_s^2 - \hat\theta\cdot\sum z_sx_s\Big)

    where q bounds :math:`\sum(z_s - x_s\cdot\theta^*)^2` and is the root `score_error` of an
    inequality in the learner's regret. Constants are derived here; the learner's matrix begins as V
    does. The reward's ``sigma`` is not used.

    Use it for any sub-Gaussian reward where the family is not known; it pays the least slope twice,
    so with steep links it explores more than `GLBOMD`. Measured at delta = 0.1, logistic, truth of
    norm B, 200 rounds of 3 features, the 0.9-quantile over 10,000 runs of the largest error/radius:
    0.27, where 1 would be calibrated (0.34 in 2000 rounds, 0.09 at B = 3). Costs K d^2 per
    round, and d^3 where the learner leaves the ball; no history.

    Parameters
    ----------
    glm : GLM
    sigma : float > 0
        The sub-Gaussian scale of every reward; 1/2 for rewards in [0, 1].
    radius_scale : float >= 0
        Multiplies the radius; only 1 is covered by theory.

    Examples
    --------
    >>> import numpy as np
    >>> policy = GLOC(GLM("logistic"), sigma=0.5)
    >>> state = policy.start(dim=2)
    >>> policy.update(state, [1.0, 0.0], 1.0)
    >>> policy.select(state, np.eye(2), np.random.default_rng(0))  # the untried arm
    1

    References
    ----------
    Jun, Bhargava, Nowak and Willett (2017), "Scalable generalized linear bandits: online
    computation and hashing": regret of order (K/kappa) d sqrt(T) log T.
    """

    not_promised: ClassVar[tuple[str, ...]] = ("late rewards give the same estimate",)

    glm: GLM = field(default_factory=GLM)
    sigma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        coerce_positive(self, "sigma")
        self.learner  # noqa: B018  refuses what is no GLM

    @cached_property
    def learner(self) -> NewtonStep:
        """The regressor whose scores are learnt."""
        return NewtonStep(self.glm, initial=2 * self.ridge)

    def start(self, dim: int) -> GLOCState:
        """Make the state of a fresh learner."""
        first = self.glm.min_slope * self.ridge * self.glm.parameter_bound**2
        fresh = linear_state.start(dim, self.ridge)
        return GLOCState(**vars(fresh), learner=self.learner.start(dim), regret=first)

    def radius(self, state: GLOCState, scale: float = 1.0) -> float:
        """Return the radius times ``scale``."""
        q = score_error(state.regret, self.sigma, self.glm.min_slope, self.delta)
        left = state.squares - float(matmul(state.b, state.inverse) @ state.b)
        return scale * math.sqrt(max(self.bias(self.glm.parameter_bound) ** 2 + q - left, 0.0))

    def learn(self, state: GLOCState, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward; all weigh the same."""
        z = float(x @ state.learner.theta)
        linear_state.refuse_overflow(x, z, 1.0)
        residual = float(self.learner.update(state.learner, x, y)) - y
        linear_state.learn(state, x, z)
        h = max(float(matmul(x, state.inverse) @ x), 0.0)
        state.regret += residual * residual * h / (2 * self.glm.min_slope)
        state.squares += z * z


def score_error(regret: float, sigma: float, slope: float, delta: float) -> float:
    r"""Return the root of :math:`q = \frac{2b}\kappa + \frac{2\sigma}\kappa
    \sqrt{2(1+q)\log(\sqrt{1+q}/\delta)}`, b the regret.

    The right side is concave and positive at 0, so there is one.

    >>> q = score_error(regret=1.0, sigma=1.0, slope=1.0, delta=0.1)
    >>> math.isclose(q, 2 + 2 * math.sqrt(2 * (1 + q) * math.log(math.sqrt(1 + q) / 0.1)))
    True
    """
    from scipy.optimize import brentq

    def miss(q: float) -> float:
        inside = 2 * (1 + q) * (0.5 * math.log1p(q) - math.log(delta))
        return q - 2 * regret / slope - 2 * sigma / slope * math.sqrt(inside)

    high = closed_score_error(regret, sigma, slope, delta)
    return float(brentq(miss, 0.0, high, xtol=1e-300, rtol=1e-13))


def closed_score_error(regret: float, sigma: float, slope: float, delta: float) -> float:
    r"""Return the paper's closed bound of `score_error`, mostly 1.3 to 2.2 times as large.

    :math:`1 + \frac{4b}\kappa + \frac{8\sigma^2}{\kappa^2}
    \log\big(\frac2\delta\sqrt{1 + \frac{2b}\kappa + \frac{4\sigma^4}{\kappa^4\delta^2}}\big)`
    """
    square = sigma / slope * (sigma / slope)
    root = math.hypot(math.sqrt(1 + 2 * regret / slope), 2 * square / delta)
    return 1 + 4 * regret / slope + 8 * square * (math.log(2 / delta) + math.log(root))
