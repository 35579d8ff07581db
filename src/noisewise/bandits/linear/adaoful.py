"""AdaOFUL: noise with a variance and nothing more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...inputs import coerce_positive, integer
from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array
from ...regression.history import History
from ...storage.states import check_fields
from . import linear_state
from .linear_policy import LinearUCB
from .linear_state import LinearState

ENOUGH, PASSES = 1e-9, 60


@dataclass(eq=False, repr=False, kw_only=True)
class AdaOFULState(LinearState):
    """A ridge state whose estimate is robust, with the history it is computed from.

    ``rows`` holds x / sd and, in place of weight and label, threshold and y / sd of each reward.
    """

    rows: History
    estimate: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, rows=History, estimate=(self.dim,))
        if self.rows.dim != self.dim:
            raise ValueError(
                f"AdaOFULState.rows has {self.rows.dim} features; {self.dim} belong there"
            )
        if not (self.rows.weights > 0).all():
            raise ValueError("AdaOFULState.rows holds a threshold that is not positive")

    @property
    def theta(self) -> Array:
        """The current estimate."""
        return self.estimate.copy()


@dataclass(frozen=True)
class AdaOFUL(LinearUCB[AdaOFULState]):
    r"""Optimism around an adaptive pseudo-Huber estimate.

    .. math:: \hat\theta = \arg\min_{\|\theta\|\le S} \lambda\|\theta\|^2
              + \sum_s \ell_{\tau_s}\Big(\frac{y_s - x_s\cdot\theta}{\sigma_s}\Big),\quad
              \ell_\tau(z) = \tau(\sqrt{\tau^2 + z^2} - \tau)

    Let :math:`V = 2\lambda I + \sum xx^\top/\sigma^2`, :math:`v = \|x\|_{V^{-1}}` before an update,
    :math:`\iota = \log(2T^2/\delta)`. A reward of standard deviation at most s counts with

    .. math:: \sigma = \max\big(s,\ T^{-1/2},\ 6\sqrt\iota\,v,\
              \sqrt{AS\,v}\,(42\,\iota/d)^{1/4}\big),\quad
              \tau = \tau_0\sqrt{1 + (\sigma/v)^2},

    :math:`\tau_0 = \max(\sqrt{2k}, 2\sqrt d)/\sqrt\iota,\ k = d\log(1 + T^2A^2/(2\lambda d))`, and
    the radius is :math:`32(k/\tau_0 + \sqrt{k\iota} + \tau_0\iota) + 5\sqrt{2\lambda}\,S`. These
    constants are recalled from the paper, some of them reconstructed, and not verified; the radius
    is so wide that coverage tells nothing about them. By the third term no reward adds more than
    :math:`1/36\iota` to log det V, so it takes about a thousand d rounds to learn anything: use
    ``doubt_scale`` and ``radius_scale`` to play well.

    Use it where rewards have outliers. Costs K d^2 per round, and t d^2 for each of a few Newton
    passes over all t rewards.

    Parameters
    ----------
    feature_bound, parameter_bound : float > 0
        A and S, bounds of the norms of arms and of the true parameter.
    horizon : int
        T, the number of rounds that will be played.
    threshold_scale : float > 0
        Multiplies tau_0; a large one gives weighted ridge regression on the ball.
    doubt_scale : float >= 0
        Multiplies the last two terms of the maximum above; only 1 is covered by theory.

    Examples
    --------
    Without doubt and with a threshold out of reach this is ridge regression, 1/(1 + 1):

    >>> policy = AdaOFUL(threshold_scale=1e6, doubt_scale=0.0)
    >>> state = policy.start(dim=1)
    >>> policy.update(state, [1.0], 1.0, sigma=1.0)
    >>> state.theta
    array([0.5])

    References
    ----------
    Li and Sun (2023), "Variance-aware decision making with linear function approximation under
    heavy-tailed rewards": regret of order d sqrt(sum sigma^2) + d for noise of finite variance.
    """

    not_promised: ClassVar[tuple[str, ...]] = ("late rewards give the same estimate",)

    feature_bound: float = 1.0
    parameter_bound: float = 1.0
    horizon: int = 10_000
    threshold_scale: float = 1.0
    doubt_scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        coerce_positive(self, "feature_bound", "parameter_bound", "threshold_scale")
        coerce_positive(self, "horizon", by=integer)
        coerce_positive(self, "doubt_scale", zero=True)

    @property
    def iota(self) -> float:
        """The logarithm log(2 T^2 / delta)."""
        return math.log(2 * self.horizon**2 / self.delta)

    def growth(self, dim: int) -> float:
        """Return k, the most that log det V can grow."""
        reach = (self.horizon * self.feature_bound) ** 2 / (2 * self.ridge * dim)
        return dim * math.log1p(reach)

    def threshold(self, dim: int) -> float:
        """Return tau_0 of the theorem."""
        return max(math.sqrt(2 * self.growth(dim)), 2 * math.sqrt(dim)) / math.sqrt(self.iota)

    def start(self, dim: int) -> AdaOFULState:
        """Make the state of a fresh learner."""
        fresh = linear_state.start(dim, self.ridge)
        d, rows = fresh.dim, History.start(fresh.dim)
        return AdaOFULState(**vars(fresh), rows=rows, estimate=np.zeros(d))

    def noise_radius(self, state: LinearState) -> float:
        """Return the part of the radius that is due to noise."""
        k, tau, iota = self.growth(state.dim), self.threshold(state.dim), self.iota
        return 32 * (k / tau + math.sqrt(k * iota) + tau * iota)

    def bias(self, parameter_bound: float) -> float:
        """Return what the ridge adds to a radius."""
        return 5 * super().bias(parameter_bound)

    def effective_sd(self, dim: int, width: float, sigma: float) -> float:
        """Return the standard deviation that a reward of an arm so wide counts with."""
        steep = self.feature_bound * self.parameter_bound * width
        doubt = max(
            6 * math.sqrt(self.iota) * width, math.sqrt(steep) * (42 * self.iota / dim) ** 0.25
        )
        return max(sigma, self.horizon**-0.5, self.doubt_scale * doubt)

    def learn(self, state: AdaOFULState, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward; its influence on the estimate is bounded."""
        width = linalg.norm(x, state.inverse)
        sd = self.effective_sd(state.dim, width, sigma)
        linear_state.learn(state, x, y, sd**-2.0)
        if width:  # the loss of x = 0 is constant
            tau = self.threshold_scale * self.threshold(state.dim) * math.hypot(1, sd / width)
            state.rows.extend(x[None] / sd, np.array([[tau], [y / sd]]))
            state.estimate = robust(
                state.rows, state.estimate, 2 * self.ridge, self.parameter_bound
            )


@one_thread
def robust(rows: History, theta: Array, penalty: float, bound: float) -> Array:
    """Return the minimiser of the regularised pseudo-Huber loss in the ball, begun at ``theta``."""
    loss, gradient, H = _model(rows, theta, penalty, 3)
    for _ in range(PASSES):
        new = _step(theta, gradient, H, bound)
        if linalg.norm(new - theta, H) <= ENOUGH:
            return new
        ahead = _model(rows, new, penalty, 3)
        if ahead[0] > loss + 1e-12 * abs(loss):  # too far: a model above the loss can't overshoot
            new = _step(theta, gradient, _model(rows, theta, penalty, 1)[2], bound)
            ahead = _model(rows, new, penalty, 3)
        theta, (loss, gradient, H) = new, ahead
    return theta


def _step(theta: Array, gradient: Array, H: Array, bound: float) -> Array:
    """Return the minimiser in the ball of the quadratic model."""
    return linalg.project_ball(H, theta - linalg.solve(linalg.factor(H), gradient), bound)


def _model(rows: History, theta: Array, penalty: float, power: int) -> tuple[float, Array, Array]:
    """Return loss, gradient and a matrix: the Hessian for power 3, a majorant's for power 1."""
    loss, gradient = 0.5 * penalty * float(theta @ theta), penalty * theta
    H = penalty * np.eye(len(theta))
    for x, tau, y, _ in rows:
        z = y - x @ theta
        root = np.hypot(1.0, z / tau)
        loss += float((z * z / (1 + root)).sum())
        gradient = gradient - x.T @ (z / root)
        H += x.T @ (x * (root**-power)[:, None])
    return loss, gradient, H
