"""Three worlds kept apart: no policy was designed, tuned or tried on them."""

from dataclasses import dataclass, field

import numpy as np

from noisewise.environments.features import unit_rows
from noisewise.environments.practical import Deliveries, Late
from noisewise.inputs import integer, positive, probability
from noisewise.protocols import BanditRounds


@dataclass(frozen=True, kw_only=True)
class Season:
    """Linear rewards whose parameter turns slowly, on top of a season common to all arms.

    The parameter of norm 1 makes a quarter turn over all rounds; every reward has the ``season``
    added, a sine of that amplitude and of ``period`` rounds. Arms are fixed, the sd is constant and
    not given.
    """

    dim: int = 8
    arms: int = 15
    rounds: int = 3000
    season: float = 1.0
    period: float = 700.0
    sd: float = 0.3

    def draw(self, rng: np.random.Generator) -> Deliveries:
        """Draw the world."""
        d, K, T = (integer(name, getattr(self, name)) for name in ("dim", "arms", "rounds"))
        x, (u, v) = unit_rows(rng, K, d), unit_rows(rng, 2, d)
        v -= (v @ u) * u
        angle = np.linspace(0, np.pi / 2, T)[:, None]
        theta = np.cos(angle) * u + np.sin(angle) * v / np.linalg.norm(v)
        swing = np.sin(2 * np.pi * np.arange(T) / positive("period", self.period))
        means = theta @ x.T + self.season * swing[:, None]
        rewards = means + positive("sd", self.sd) * rng.normal(size=(T, K))
        table = BanditRounds(x, means, rewards, np.ones(T))
        return Deliveries(table, "gaussian", False, np.arange(T))


@dataclass(frozen=True, kw_only=True)
class Revenue:
    """What visitors spend: mostly nothing, sometimes a log-normal basket, in a currency.

    Age in years, past spending in the currency and two flags describe a visitor, in these units;
    an arm is an offer, with the visitor's features and a 1 in a block of its own. Whether one buys
    and for how much depends on both. The mean is not linear, the noise is not symmetric, and its
    sd is not given.
    """

    arms: int = 6
    rounds: int = 3000
    rate: float = 0.2
    basket: float = 40.0

    def draw(self, rng: np.random.Generator) -> Deliveries:
        """Draw the world."""
        K, T = integer("arms", self.arms), integer("rounds", self.rounds)
        age, spent = rng.uniform(18, 75, size=T), rng.lognormal(4.0, 1.0, size=T)
        flags = rng.random((T, 2)) < [0.5, 0.1]
        row = np.column_stack([np.ones(T), age, spent, flags])
        units = np.column_stack([np.ones(T), (age - 45) / 15, np.log(spent) - 4.0, flags])
        p = probability("rate", self.rate)
        odds = np.log(p / (1 - p)) + units @ (0.5 * rng.normal(size=(5, K)))
        chance = 1 / (1 + np.exp(-odds))
        size = positive("basket", self.basket) * np.exp(units @ (0.2 * rng.normal(size=(5, K))))
        rewards = (rng.random((T, K)) < chance) * size * rng.lognormal(-0.32, 0.8, size=(T, K))
        arms = np.zeros((T, K, K, 5))
        arms[:, range(K), range(K)] = row[:, None]
        table = BanditRounds(arms.reshape(T, K, -1), chance * size, rewards, np.ones(T))
        return Deliveries(table, "gaussian", False, np.arange(T))


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Items that come and go, rare clicks that arrive in batches, and some that never do.

    In every ``turnover`` rounds one of the items on offer is replaced by a new one. A reward is the
    share of clicks among 1 to ``most`` views, log-odds linear in the item around ``offset``; a
    share ``lost`` of the rewards never arrives.
    """

    dim: int = 8
    arms: int = 25
    rounds: int = 3000
    turnover: int = 20
    offset: float = -2.2
    norm: float = 2.0
    most: int = 10
    lost: float = 0.2
    late: Late = field(default_factory=lambda: Late(batch=40, mean_delay=60.0))

    def draw(self, rng: np.random.Generator) -> Deliveries:
        """Draw the world."""
        d, K, T = (integer(name, getattr(self, name)) for name in ("dim", "arms", "rounds"))
        x, every = np.empty((T, K, d)), integer("turnover", self.turnover)
        offered = unit_rows(rng, K, d)
        for t in range(T):
            if t and t % every == 0:
                offered[rng.integers(K)] = unit_rows(rng, 1, d)[0]
            x[t] = offered
        theta = positive("norm", self.norm) * unit_rows(rng, 1, d)[0]
        means = 1 / (1 + np.exp(-(self.offset + x @ theta)))
        n = rng.integers(1, integer("most", self.most) + 1, size=T)
        rewards = rng.binomial(n[:, None], means) / n[:, None]
        arrival = self.late.arrival(rng, T)
        arrival[rng.random(T) < probability("lost", self.lost, zero=True)] = T
        table = BanditRounds(x, means, rewards, 1 / np.sqrt(n))
        return Deliveries(table, "binomial", True, np.maximum(arrival, np.arange(T)))


UNSEEN = {"slow turn with a season": Season(), "revenue": Revenue(), "catalogue": Catalogue()}
