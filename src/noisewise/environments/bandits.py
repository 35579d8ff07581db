"""Bandit worlds: specs with ``draw(rng) -> BanditRounds``, and those that have a name."""

from dataclasses import dataclass, field

import numpy as np

from ..glm import GLM
from ..inputs import whole
from ..protocols import Array, BanditRounds
from .draws import Draw, Gaussian, Sparse
from .features import Sphere
from .glm import family_means, trials
from .parameters import OnSphere
from .scales import FewQuiet, Misreported, PerArm, PerRound, Scales


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

    def means(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw the arms and the parameter; return the arms and the means of their rewards."""
        d, K, T = whole("dim", self.dim), whole("arms", self.arms), whole("rounds", self.rounds)
        shape = (K, d) if self.fixed else (T, K, d)
        x = Sphere(self.glm.feature_bound).draw(rng, int(np.prod(shape[:-1])), d).reshape(shape)
        theta = OnSphere(self.glm.parameter_bound).draw(rng, d)
        means = np.asarray(self.glm.mean(x @ theta))
        return x, (np.tile(means, (T, 1)) if self.fixed else means)


@dataclass(frozen=True)
class NoisyBandit(Arena):
    """Rewards that are the mean plus noise, with standard deviations as ``scales`` says.

    >>> world = NoisyBandit(rounds=3, arms=2, dim=4)
    >>> world.draw(np.random.default_rng(0)).arms.shape
    (3, 2, 4)
    """

    scales: Scales = field(default_factory=PerRound)
    noise: Draw = field(default_factory=Gaussian)

    def draw(self, rng: np.random.Generator) -> BanditRounds:
        """Draw the world."""
        x, means = self.means(rng)
        told, true = self.scales.draw(rng, *means.shape)
        sd = true if true.ndim == 2 else np.repeat(true[:, None], means.shape[1], axis=1)
        return BanditRounds(x, means, means + self.noise.draw(rng, sd), told)


@dataclass(frozen=True)
class FamilyBandit(Arena):
    """Rewards that are means of n draws from the link's family, n log-uniform up to ``most``.

    The standard deviation told with the reward is relative to the family's own: 1/sqrt(n).
    """

    glm: GLM = field(default_factory=lambda: GLM("logistic"))
    most: int = 100

    def draw(self, rng: np.random.Generator) -> BanditRounds:
        """Draw the world."""
        x, means = self.means(rng)
        n = trials(rng, self.most, len(means))
        y = family_means(self.glm, rng, means, n[:, None])
        return BanditRounds(x, means, y, 1 / np.sqrt(n))


World = NoisyBandit | FamilyBandit


def _named() -> dict[str, World]:
    worlds: dict[str, World] = {}
    for model, link in (("linear", "identity"), ("logistic", "logistic")):
        glm = GLM(link)
        worlds |= {
            f"fresh-{model}": NoisyBandit(glm=glm),
            f"fixed-{model}": NoisyBandit(glm=glm, fixed=True),
            f"tied-{model}": NoisyBandit(PerArm(), glm=glm, fixed=True),
            f"quiet-{model}": NoisyBandit(FewQuiet(), glm=glm, fixed=True),
            f"long-{model}": NoisyBandit(glm=GLM(link, parameter_bound=4.0), fixed=True),
            f"sparse-{model}": NoisyBandit(noise=Sparse(1.0), glm=glm, fixed=True),
            f"misreported-{model}": NoisyBandit(Misreported(), glm=glm, fixed=True),
        }
    return worlds | {
        "fresh-binomial": FamilyBandit(),
        "fixed-binomial": FamilyBandit(fixed=True),
    }


WORLDS = _named()
