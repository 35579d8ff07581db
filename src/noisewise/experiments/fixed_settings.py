"""Settings of other packages, each one fixed number, as practitioners pick them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..environments.practical import Deliveries
from ..protocols import Array


@dataclass(frozen=True)
class FixedSetting:
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

    def choices(self, drawn: Deliveries, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the arms played, (T,)."""
        return self.played(drawn, rng)[0]

    def played(
        self, drawn: Deliveries, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Array]:
        """Return the arms played and the posterior mean at the end."""
        from ..kernels.constant_width import play

        table = drawn.rounds
        T, d = len(table.means), table.arms.shape[-1]
        weights = table.sigma**-2.0 if self.weighted and drawn.sd_given else np.ones(T)
        normals = rng.standard_normal((T, d)) if self.scale else np.empty((0, d))
        due, queue = (
            np.array(each, dtype=np.float64)
            for each in (drawn.arrival, np.argsort(drawn.arrival, kind="stable"))
        )
        arms = np.ascontiguousarray(table.arms if table.arms.ndim == 3 else table.arms[None])
        logistic = self.logistic and drawn.family == "binomial"
        mean, played = np.zeros(d), np.empty(T)
        play(
            arms, table.rewards, weights, due, queue, normals, self.width, self.scale, logistic,
            mean, played,
        )  # fmt: skip
        return played.astype(np.int64), mean


# normal quantiles .68 and .95
SETTINGS = {
    "bayesianbandits .68": FixedSetting(0.4676987991145082, weighted=True, logistic=True),
    "bayesianbandits .95": FixedSetting(1.6448536269514722, weighted=True, logistic=True),
    "LinUCB 1": FixedSetting(1.0),
    "LinUCB .3": FixedSetting(0.3),
    "Thompson .3": FixedSetting(scale=0.3),
    "Thompson 1": FixedSetting(scale=1.0),
}


def beta_thompson(drawn: Deliveries, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the arms played by Thompson sampling with uniform priors, arms without features.

    For 0/1 rewards of arms that never change, each learnt when it arrives.
    """
    table, due = drawn.rounds, drawn.arrival
    T, K = table.means.shape
    counts = np.ones((2, K))
    queue, first, played = np.argsort(due, kind="stable"), 0, np.empty(T, dtype=np.int64)
    for t in range(T):
        played[t] = np.argmax(rng.beta(counts[1], counts[0]))
        while first < T and due[queue[first]] == t:
            s = queue[first]
            counts[int(table.rewards[s, played[s]]), played[s]] += 1
            first += 1
    return played
