"""Settings of other packages, each one fixed number, as practitioners pick them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from scipy.special import expit

from ...bandits.arms import candidates, first_best
from ...bandits.checked_policy import CheckedPolicy
from ...bandits.linear import linear_state
from ...bandits.linear.linear_state import LinearState
from ...environments.practical import Deliveries
from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array
from .. import gallery

LEAST_SLOPE = 1e-12


@dataclass(frozen=True)
class FixedSetting(CheckedPolicy[LinearState]):
    r"""One Gaussian posterior :math:`N(m, P)`, first :math:`N(0, I)`, for all arms.

    .. math:: \arg\max_x\ x\cdot\tilde\theta + \text{width}\,\sqrt{x^\top P x},\qquad
              \tilde\theta \sim N(m, \text{scale}^2 P)

    Parameters
    ----------
    width : float >= 0
        Of the upper bound; bayesianbandits' UCB at a quantile q has the normal quantile.
    scale : float >= 0
        Of Thompson sampling; 0 takes m.
    weighted : bool
        Whether rewards weigh :math:`\sigma^{-2}` as reported (``sample_weight``), else 1.
    logistic : bool
        Whether 0/1 rewards and shares are learnt by a logistic model, the posterior taken as
        Gaussian after each (Laplace); else by the linear one.
    """

    width: float = 0.0
    scale: float = 0.0
    weighted: bool = False
    logistic: bool = False

    def start(self, dim: int) -> LinearState:
        """Return the posterior before the first reward."""
        return linear_state.start(dim, 0.5)

    def select(
        self,
        state: LinearState,
        arms: ArrayLike,
        rng: np.random.Generator,
        sigma: ArrayLike | None = None,
    ) -> int:
        """Return the arm of the largest index."""
        x = candidates(arms, state.dim)
        theta = state.theta
        if self.scale:
            theta = theta + self.scale * drawn_error(state, rng.standard_normal(state.dim))
        index = matmul(x, theta)
        return first_best(
            index + self.width * linear_state.widths(state, x) if self.width else index
        )

    def learn(self, state: LinearState, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward: by a logistic model as the label whose linear fit is the mode."""
        w = sigma**-2.0 if self.weighted else 1.0
        if self.logistic:
            score, form = float(x @ state.theta), float(linalg.forms(x[None], state.inverse)[0])
            shift = mode(score, form, y, w)
            p = expit(score + shift * form)
            w = max(float(w * p * (1 - p)), LEAST_SLOPE)
            y = score + shift * (1 + w * form) / w
        linear_state.learn(state, x, y, w)

    def choices(self, drawn: Deliveries, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the arms played, (T,)."""
        return self.played(drawn, rng)[0]

    def played(
        self, drawn: Deliveries, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Array]:
        """Return the arms played and the posterior mean at the end."""
        policy = replace(self, logistic=self.logistic and drawn.family == "binomial")
        seat = gallery.PolicySeat(policy, drawn.rounds.arms.shape[-1], rng)
        return gallery.play(seat, drawn), seat.state.theta


def drawn_error(state: LinearState, z: Array) -> Array:
    """Return a draw with the covariance of the posterior, from independent normal numbers."""
    return np.asarray(solve_triangular(linalg.factor(state.V), z, lower=True, trans=1))


def mode(score: float, form: float, y: float, w: float) -> float:
    """Return c with c + w (p(score + c form) - y) = 0, p logistic and y in [0, 1].

    The mode of w labels times the Gaussian before lies at m + c P x.
    """
    return float(brentq(lambda c: c + w * (expit(score + c * form) - y), -w, w, xtol=1e-14 * w))


# normal quantiles .68 and .95
SETTINGS = {
    "bayesianbandits .68": FixedSetting(0.4676987991145082, weighted=True, logistic=True),
    "bayesianbandits .95": FixedSetting(1.6448536269514722, weighted=True, logistic=True),
    "LinUCB 1": FixedSetting(1.0),
    "LinUCB .3": FixedSetting(0.3),
    "Thompson .3": FixedSetting(scale=0.3),
    "Thompson 1": FixedSetting(scale=1.0),
}


class BetaThompson:
    """Thompson sampling with uniform priors: 0/1 rewards of arms that are unit vectors.

    The state counts failures and successes of each arm, one more than there were.
    """

    def start(self, dim: int) -> Array:
        """Return the counts before the first reward."""
        return np.ones((2, dim))

    def select(
        self, state: Array, arms: ArrayLike, rng: np.random.Generator, sigma: object = None
    ) -> int:
        """Return the arm of the largest rate drawn."""
        return int(np.argmax(rng.beta(state[1], state[0])))

    def update(self, state: Array, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Count a reward."""
        state[int(reward), np.argmax(arm)] += 1
