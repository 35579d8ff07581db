"""Bandit worlds: specs with ``draw(rng) -> BanditRounds``, and those that have a name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..inputs import integer, positive, probability
from ..model.glm import GLM
from ..protocols import Array, BanditRounds
from .draws import Draw, Gaussian, Sparse
from .features import Sphere
from .parameters import OnSphere
from .scales import LogUniform, MostlyHigh, Scales, geometric
from .streams import family_means, trials


@dataclass(frozen=True, kw_only=True)
class Arena:
    """Arms on the sphere of radius A and a parameter on that of radius B, both from the ``glm``.

    Arms are drawn afresh every round, or once where they are ``fixed``.
    """

    glm: GLM = field(default_factory=GLM)
    fixed: bool = False
    dim: int = 10
    arms: int = 20
    rounds: int = 5000

    def means(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Draw arms and parameter; return the arms, the means of their rewards, the parameter."""
        d, K, T = (integer(name, vars(self)[name]) for name in ("dim", "arms", "rounds"))
        shape = (K, d) if self.fixed else (T, K, d)
        x = Sphere(self.glm.feature_bound).draw(rng, int(np.prod(shape[:-1])), d).reshape(shape)
        theta = OnSphere(self.glm.parameter_bound).draw(rng, d)
        means = np.asarray(self.glm.mean(x @ theta))
        return x, (np.tile(means, (T, 1)) if self.fixed else means), theta


@dataclass(frozen=True)
class NoisyBandit(Arena):
    """Rewards that are the mean plus noise whose standard deviation comes from ``scales``.

    It is drawn per round and comes with the reward, or per arm (``tied``) and is known before
    choosing. A share ``misreported`` of the rounds has the largest deviation and reports the
    smallest.

    >>> world = NoisyBandit(rounds=3, arms=2, dim=4)
    >>> world.draw(np.random.default_rng(0)).arms.shape
    (3, 2, 4)
    """

    scales: Scales = field(default_factory=lambda: geometric(0.05, 0.5, 7))
    noise: Draw = field(default_factory=Gaussian)
    tied: bool = False
    misreported: float = 0.0

    def draw(self, rng: np.random.Generator) -> BanditRounds:
        """Draw the world."""
        x, means, theta = self.means(rng)
        T, K = means.shape
        sd = self.scales.draw(rng, K if self.tied else T)
        sd = np.tile(sd, (T, 1)) if self.tied else np.repeat(sd[:, None], K, axis=1)
        lie = rng.random((T, 1)) < probability("misreported", self.misreported, zero=True)
        told, sd = np.where(lie, sd.min(), sd), np.where(lie, sd.max(), sd)
        rewards = means + self.noise.draw(rng, sd)
        return BanditRounds(x, means, rewards, told if self.tied else told[:, 0], theta)


@dataclass(frozen=True)
class LogLinearBandit(Arena):
    r"""Rewards whose noise a log-linear function of the arm's features explains.

    .. math:: \sigma(a) = \sqrt{lh}\,e^{s\,g\cdot a/A}\quad\text{cut to } [l, h]

    with l ``low``, h ``high``, s ``strength`` and a direction g of length 1, drawn once. Standard
    deviations are known before choosing.
    """

    low: float = 0.05
    high: float = 0.5
    strength: float = 2.0
    noise: Draw = field(default_factory=Gaussian)

    def draw(self, rng: np.random.Generator) -> BanditRounds:
        """Draw the world."""
        x, means, theta = self.means(rng)
        low, high, s = (positive(n, vars(self)[n]) for n in ("low", "high", "strength"))
        g = OnSphere(s / self.glm.feature_bound).draw(rng, x.shape[-1])
        sd = np.clip(np.sqrt(low * high) * np.exp(x @ g), low, high)
        sd = np.tile(sd, (len(means), 1)) if self.fixed else sd
        return BanditRounds(x, means, means + self.noise.draw(rng, sd), sd, theta)


@dataclass(frozen=True)
class FamilyBandit(Arena):
    """Rewards that are means of n draws from the link's family, n uniform from 1 to ``most``.

    With ``log`` every order of magnitude of n is equally frequent. The standard deviation given
    with the reward is relative to the family's own: 1/sqrt(n).
    """

    glm: GLM = field(default_factory=lambda: GLM("logistic"))
    most: int = 100
    log: bool = False

    def draw(self, rng: np.random.Generator) -> BanditRounds:
        """Draw the world."""
        x, means, theta = self.means(rng)
        n = trials(rng, self.most, len(means), log=self.log)
        y = family_means(self.glm, rng, means, n[:, None])
        return BanditRounds(x, means, y, 1 / np.sqrt(n), theta)


World = NoisyBandit | LogLinearBandit | FamilyBandit


@dataclass(frozen=True)
class Corrupted:
    r"""A world whose first rewards an adversary mirrors, so that the best arm looks worst.

    A reward is moved by :math:`h + l - 2m`, m its mean, h and l the largest and the smallest mean
    of the round, and draws of a family are cut to its range. No reward of a round moves by more
    than :math:`h - l`; these add up to at most ``budget``.
    """

    world: World = field(default_factory=NoisyBandit)
    budget: float = 50.0

    def draw(self, rng: np.random.Generator) -> BanditRounds:
        """Draw the world, and corrupt it."""
        rounds = self.world.draw(rng)
        high, low = rounds.means.max(axis=1), rounds.means.min(axis=1)
        spent = np.cumsum(high - low) <= positive("budget", self.budget, zero=True)
        moved = (high + low)[:, None] - 2 * rounds.means
        rewards = rounds.rewards + np.where(spent[:, None], moved, 0.0)
        if isinstance(self.world, FamilyBandit):
            rewards = np.clip(rewards, *self.world.glm.link.mean(np.array([-np.inf, np.inf])))
        return replace(rounds, rewards=rewards)


def _named() -> dict[str, World]:
    worlds: dict[str, World] = {}
    for model, link in (("linear", "identity"), ("logistic", "logistic")):
        glm = GLM(link)
        worlds |= {
            f"fresh-{model}": NoisyBandit(glm=glm),
            f"fixed-{model}": NoisyBandit(glm=glm, fixed=True),
            f"log-uniform-{model}": NoisyBandit(LogUniform(0.05, 0.5), glm=glm, fixed=True),
            f"tied-{model}": NoisyBandit(glm=glm, fixed=True, tied=True),
            f"explained-{model}": LogLinearBandit(glm=glm, fixed=True),
            f"quiet-{model}": NoisyBandit(MostlyHigh(0.05, 0.5), glm=glm, fixed=True),
            f"long-{model}": NoisyBandit(glm=GLM(link, parameter_bound=4.0), fixed=True),
            f"sparse-{model}": NoisyBandit(noise=Sparse(1.0), glm=glm, fixed=True),
            f"misreported-{model}": NoisyBandit(misreported=0.1, glm=glm, fixed=True),
        }
    return worlds | {
        "fresh-binomial": FamilyBandit(),
        "fixed-binomial": FamilyBandit(fixed=True),
        "log-uniform-binomial": FamilyBandit(fixed=True, log=True),
    }


WORLDS = _named()
