"""Bandit worlds as practice has them: rewards late or in batches, wrong sds, offsets, drift.

A world here also says what the learner is given and when each reward arrives; see `Deliveries`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..inputs import integer, positive
from ..model.glm import GLM
from ..protocols import Array, BanditRounds
from ..support.printing import OneLine
from .draws import Draw, Gaussian, StudentT
from .features import Sphere
from .scales import Levels, Scales, geometric
from .streams import family_means, trials

SPREAD = 10.0  # of sds reported at random: from a tenth of the true one to ten times it


@dataclass(frozen=True, eq=False, repr=False)
class Deliveries(OneLine):
    """A drawn world with what a learner is given of it, and when.

    Attributes
    ----------
    rounds : BanditRounds
        ``rounds.sigma`` (T,) is the sd as it is reported with a reward, right or wrong, relative to
        the family's own for shares of trials: 1/sqrt(n); all 1 where none is given.
    family : "gaussian" or "binomial"
    sd_given : bool
        Whether rewards come with ``rounds.sigma``.
    arrival : (T,) of int
        The reward of decision t is learnt after decision ``arrival[t]`` >= t, never if that is T
        or later.
    """

    rounds: BanditRounds
    family: str
    sd_given: bool
    arrival: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Late:
    """When rewards arrive: at once, in batches, or each after a delay of its own.

    >>> Late(batch=3).arrival(np.random.default_rng(0), 7)
    array([2, 2, 2, 5, 5, 5, 8])
    """

    batch: int = 1
    mean_delay: float = 0.0

    def arrival(self, rng: np.random.Generator, rounds: int) -> NDArray[np.int64]:
        """Draw after which decision each reward arrives; delays are exponential, rounded down."""
        t, n = np.arange(rounds), integer("batch", self.batch)
        late = rng.exponential(positive("mean_delay", self.mean_delay, zero=True), size=rounds)
        return (t // n + 1) * n - 1 + np.floor(late).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class ScoredWorld:
    """Arms on a sphere, and a parameter of their scores that may be drawn again."""

    fixed: bool = True
    dim: int = 10
    arms: int = 20
    rounds: int = 3000
    offset: float = 0.0
    feature_norm: float = 1.0
    norm: float = 1.0
    nonzero: int | None = None
    switch: int | None = None
    late: Late = field(default_factory=Late)

    def draw_scores(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw arms, (K, d) or (T, K, d), and the scores x . theta of all rounds, (T, K)."""
        d, K, T = (integer(name, vars(self)[name]) for name in ("dim", "arms", "rounds"))
        A, B = positive("feature_norm", self.feature_norm), positive("norm", self.norm)
        shape = (K, d) if self.fixed else (T, K, d)
        x = Sphere(A).draw(rng, int(np.prod(shape[:-1])), d).reshape(shape)
        length = T if self.switch is None else integer("switch", self.switch)
        nonzero = d if self.nonzero is None else integer("nonzero", self.nonzero, most=d)
        scores = np.empty((T, K))
        for first in range(0, T, length):
            theta = np.zeros(d)
            theta[rng.permutation(d)[:nonzero]] = rng.normal(size=nonzero)
            theta *= B / A / np.linalg.norm(theta)
            block = slice(first, first + length)
            scores[block] = (x if self.fixed else x[block]) @ theta
        return x, scores


@dataclass(frozen=True, kw_only=True)
class PracticalLinear(ScoredWorld):
    r"""Rewards linear in the arm plus noise, arms on a sphere.

    .. math:: y = b + u\,(x\cdot\theta + \sigma\varepsilon),\qquad \|x\| = A,\ \|\theta\| = B/A

    Parameters
    ----------
    fixed : bool
        Arms are drawn once; otherwise afresh every round.
    offset, unit : float
        b and u > 0.
    feature_norm, norm : float > 0
        A and B: scores do not depend on A.
    nonzero : int, optional
        How many coordinates of the parameter are not zero; all by default.
    switch : int, optional
        After how many rounds the parameter is drawn again; never by default.
    scales, noise : Scales, Draw
        Of the noise, per round, or per arm where it is ``tied``.
    sd_given : bool
    sd_factor : float > 0 or "random"
        What the reported sd is of the true one; "random": log-uniform from 1/10 to 10, per round.

    Examples
    --------
    >>> drawn = PracticalLinear(rounds=4, arms=3).draw(np.random.default_rng(0))
    >>> drawn.rounds.means.shape, drawn.arrival
    ((4, 3), array([0, 1, 2, 3]))
    """

    unit: float = 1.0
    scales: Scales = field(default_factory=lambda: geometric(0.05, 0.5, 7))
    noise: Draw = field(default_factory=Gaussian)
    tied: bool = False
    sd_given: bool = True
    sd_factor: float | str = 1.0

    def draw(self, rng: np.random.Generator) -> Deliveries:
        """Draw the world."""
        x, scores = self.draw_scores(rng)
        T, K = scores.shape
        u = positive("unit", self.unit)
        sd = self.scales.draw(rng, K if self.tied else T)
        each = np.tile(sd, (T, 1)) if self.tied else np.repeat(sd[:, None], K, axis=1)
        means = self.offset + u * scores
        rewards = means + u * self.noise.draw(rng, each)
        given = np.ones(T)
        if self.sd_given:
            given = u * sd * self._factors(rng, T)
        table = BanditRounds(x, means, rewards, given)
        return Deliveries(table, "gaussian", self.sd_given, self.late.arrival(rng, T))

    def _factors(self, rng: np.random.Generator, rounds: int) -> Array:
        if self.tied:
            raise ValueError("sd_given is True and noise is tied to arms; pass sd_given=False")
        if isinstance(self.sd_factor, str):
            return np.exp(rng.uniform(-np.log(SPREAD), np.log(SPREAD), size=rounds))
        return np.full(rounds, positive("sd_factor", self.sd_factor))


@dataclass(frozen=True, kw_only=True)
class PracticalLogistic(ScoredWorld):
    r"""Rewards 0 or 1, or shares of n, with log-odds linear in the arm, arms on a sphere.

    .. math:: \log\frac{p}{1 - p} = b + x\cdot\theta,\qquad \|x\| = A,\ \|\theta\| = B/A

    Parameters as in `PracticalLinear`; n is log-uniform from 1 to ``most``.
    """

    most: int = 1

    def draw(self, rng: np.random.Generator) -> Deliveries:
        """Draw the world."""
        x, scores = self.draw_scores(rng)
        means = 1 / (1 + np.exp(-(self.offset + scores)))
        n = trials(rng, self.most, len(means))
        rewards = family_means(GLM("logistic"), rng, means, n[:, None])
        table = BanditRounds(x, means, rewards, 1 / np.sqrt(n))
        return Deliveries(table, "binomial", True, self.late.arrival(rng, len(means)))


@dataclass(frozen=True, kw_only=True)
class Variants:
    """An A/B/n test: arms are rows of the identity matrix, rates uniform from low to high.

    >>> Variants(arms=2, rounds=3).draw(np.random.default_rng(0)).rounds.arms
    array([[1., 0.],
           [0., 1.]])
    """

    low: float = 0.02
    high: float = 0.08
    arms: int = 5
    rounds: int = 3000
    late: Late = field(default_factory=Late)

    def draw(self, rng: np.random.Generator) -> Deliveries:
        """Draw the world."""
        K, T = integer("arms", self.arms), integer("rounds", self.rounds)
        if not 0 <= self.low <= self.high <= 1:
            raise ValueError(
                f"low is {self.low!r} and high {self.high!r}; pass two rates of [0, 1] in order"
            )
        means = np.tile(rng.uniform(self.low, self.high, size=K), (T, 1))
        rewards = (rng.random((T, K)) < means).astype(np.float64)
        table = BanditRounds(np.eye(K), means, rewards, np.ones(T))
        return Deliveries(table, "binomial", True, self.late.arrival(rng, T))


PracticalWorld = PracticalLinear | PracticalLogistic | Variants


def _named() -> dict[str, PracticalWorld]:
    linear, logistic = PracticalLinear, PracticalLogistic
    batches, delays = Late(batch=100), Late(mean_delay=100.0)
    hidden = partial(linear, sd_given=False)
    plain = partial(hidden, scales=Levels((0.3,)))
    rare = partial(logistic, offset=-3.0, norm=2.0)
    variants = partial(Variants, rounds=5000)
    return {
        "linear, fixed": linear(),
        "linear, fresh": linear(fixed=False),
        "Bernoulli, fixed": logistic(),
        "Bernoulli, fresh": logistic(fixed=False),
        "binomial": logistic(most=100),
        "offset": plain(offset=100.0, unit=5.0),
        "rates of 5 %, fixed": rare(),
        "rates of 5 %, fresh": rare(fixed=False),
        "norm 3": logistic(norm=3.0),
        "norm 10": logistic(norm=10.0),
        "small features": hidden(feature_norm=0.01),
        "batches, linear": linear(late=batches),
        "batches, Bernoulli": logistic(late=batches),
        "delays": plain(late=delays),
        "switches, linear": linear(switch=1000),
        "switches, logistic": logistic(switch=1000, norm=3.0),
        "sd a third": linear(sd_factor=1 / 3),
        "sd three times": linear(sd_factor=3.0),
        "sd at random": linear(sd_factor="random"),
        "t3, no sd": plain(noise=StudentT(3.0)),
        "Gaussian, no sd": plain(),
        "tied noise, no sd": hidden(tied=True),
        "A/B": variants(arms=2),
        "A/B/n, 5 arms": variants(arms=5),
        "A/B/n, 50 arms": variants(arms=50),
        "A/B/n, .3 to .7": variants(arms=50, low=0.3, high=0.7),
        "sparse": plain(dim=100, nonzero=5),
        "short": plain(rounds=200),
    }


PRACTICAL = _named()
