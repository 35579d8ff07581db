"""Who plays in the study `bandits`: the worlds, the policies of each, why the others stay away."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ... import bandits
from ...environments import WORLDS, ClippedGaussian, Corrupted, MostlyHigh, NoisyBandit
from ...environments.bandit_worlds import World
from ...model.glm import GLM
from ...protocols import AnyPolicy

NOISE_BOUND, NOISE_FLOOR, LAYER_FLOOR, LARGEST_SD = 1.0, 0.05, 0.1, 0.5
FAMILY_FLOOR = 0.1  # of means of up to 100 draws, relative to one draw
BUDGET, CORRUPTED, INSURED = 50.0, ", corrupted", "GLB-OMD, corruption"
# what a policy may need of a world, and the reason it stays away without
REASONS = {
    "linear": "linear rewards only",
    "curved": "both losses are one here",
    "family": "noise not of its family",
    "fixed": "no features: fixed arms only",
    "tied": "needs σ before choosing",
    "time": "left out: 30 ms per decision",
}


def world(name: str, rounds: int) -> World | Corrupted:
    """Return a named world; noise is clipped to the bound.

    In ``"NAME, P% noisy"`` that share of the rounds has the largest sd, the others the smallest;
    in ``"NAME, corrupted"`` an adversary mirrors the first rewards.
    """
    base, _, special = name.partition(", ")
    if name.endswith(CORRUPTED):
        return Corrupted(_honest(base, rounds), BUDGET)
    return _honest(base, rounds, special)


def _honest(base: str, rounds: int, noisy: str = "") -> World:
    found = replace(WORLDS[base], rounds=rounds)
    if not isinstance(found, NoisyBandit):
        return found
    found = replace(found, noise=ClippedGaussian(NOISE_BOUND))
    if not noisy:
        return found
    share = float(noisy.removesuffix("% noisy")) / 100
    return replace(found, scales=MostlyHigh(NOISE_FLOOR, LARGEST_SD, 1 - share))


@dataclass(frozen=True)
class Setting:
    """What policies know of a world."""

    glm: GLM
    rounds: int
    has: frozenset[str]

    @property
    def binomial(self) -> bool:
        """Whether rewards are means of 0/1 draws, ``sigma`` relative to the family's own."""
        return "family" in self.has and not self.glm.linear

    @property
    def layers(self) -> bandits.MORUCB:
        """The policy of layers that others vary."""
        return bandits.MORUCB(self.glm, NOISE_BOUND, LAYER_FLOOR)

    def likelihood(self, policy: Callable[..., AnyPolicy], **more: str) -> AnyPolicy:
        """Return a policy of a known family, given the largest dispersion."""
        g = LARGEST_SD**2 if self.glm.linear else 1.0
        return policy(self.glm, dispersion=g, **more)

    def weighted(self, budget: float = 0.0) -> bandits.GLBOMD:
        """Return GLB-OMD with a weight per reward."""
        floor = NOISE_FLOOR if self.glm.linear else FAMILY_FLOOR
        return bandits.GLBOMD(self.glm, noise_floor=floor, corruption=budget)

    def ftrl(self, radius: str = "adaptive") -> bandits.FTRLUCB:
        """Return FTRL-UCB with what it may know of the noise."""
        kind = "likelihood" if self.binomial else "sub-gaussian"
        return bandits.FTRLUCB(self.glm, kind, noise_floor=NOISE_FLOOR, radius=radius)

    def self_tuned(self) -> bandits.SelfTunedUCB:
        """Return the index without a number to choose, which knows the family alone."""
        return bandits.SelfTunedUCB("binomial" if self.binomial else "gaussian")

    def thompson(self) -> AnyPolicy:
        """Return Thompson sampling for the link."""
        if self.glm.linear:
            return bandits.LinearThompson()
        return bandits.LaplaceThompson(self.glm, scale=1.0 if self.binomial else 2.0)


def setting(name: str, rounds: int) -> Setting:
    """Return what policies know of a named world."""
    found = _honest(name.partition(", ")[0], 1)
    linear, noisy = found.glm.linear, isinstance(found, NoisyBandit)
    has = {
        "linear": linear,
        "curved": not linear,
        # for the identity link the family's sets hold for any sub-Gaussian noise
        "family": linear or not noisy,
        "fixed": found.fixed,
        "tied": isinstance(found, NoisyBandit) and found.tied,
    }
    return Setting(found.glm, rounds, frozenset(key for key, yes in has.items() if yes))


class Entry:
    """A policy in the study: how to ``make`` it, and what it ``needs``."""

    def __init__(self, make: Callable[[Setting], AnyPolicy], *needs: str) -> None:
        self.make, self.needs = make, needs


USUAL = {
    "FTRL-UCB": Entry(lambda s: s.ftrl(radius="practical")),
    "FTRL-UCB, guaranteed": Entry(lambda s: s.ftrl()),
    "MOR-UCB": Entry(lambda s: s.layers),
    "MOR-UCB, nested": Entry(lambda s: replace(s.layers, nested=True)),
    "MOR-UCB, Freedman radius": Entry(
        lambda s: replace(s.layers, radius="freedman", noise_floor=NOISE_FLOOR)
    ),
    "MOR-UCB, printed radius": Entry(lambda s: replace(s.layers, radius="printed")),
    "OFUL": Entry(lambda s: bandits.OFUL(sigma=LARGEST_SD), "linear"),
    "LinUCB": Entry(lambda s: bandits.LinUCB(), "linear"),
    "weighted LinUCB": Entry(
        lambda s: bandits.WeightedLeastSquaresUCB(noise_floor=NOISE_FLOOR), "linear"
    ),
    "Thompson": Entry(lambda s: s.thompson()),
    "greedy": Entry(lambda s: bandits.Greedy(s.glm)),
    "uniform": Entry(lambda s: bandits.Uniform()),
}
# slow, of far too large a radius, or in need of more
EXTRA = {
    "self-tuned UCB": Entry(lambda s: s.self_tuned()),
    "MOR-UCB, as printed": Entry(lambda s: replace(s.layers, as_printed=True)),
    "GLM-UCB": Entry(lambda s: bandits.GLMUCB(s.glm, horizon=s.rounds)),
    "UCB-GLM": Entry(lambda s: bandits.UCBGLM(s.glm, sigma=LARGEST_SD, horizon=s.rounds)),
    "GLOC": Entry(lambda s: bandits.GLOC(s.glm, sigma=LARGEST_SD)),
    "Weighted OFUL": Entry(lambda s: bandits.WeightedOFUL(noise_bound=NOISE_BOUND), "linear"),
    "Weighted OFUL+": Entry(
        lambda s: bandits.WeightedOFULPlus(NOISE_BOUND, horizon=s.rounds), "linear"
    ),
    "LOSAN": Entry(lambda s: bandits.LOSAN(sigma=LARGEST_SD), "linear"),
    "SAVE": Entry(lambda s: bandits.SAVE(NOISE_BOUND, horizon=s.rounds), "linear"),
    "AdaOFUL": Entry(lambda s: bandits.AdaOFUL(horizon=s.rounds), "linear"),
    "IDS": Entry(lambda s: bandits.IDS(noise_floor=NOISE_FLOOR), "linear", "tied"),
    "IDS, randomised": Entry(
        lambda s: bandits.IDS(noise_floor=NOISE_FLOOR, randomised=True), "linear", "tied"
    ),
    "Normal-UCB": Entry(lambda s: bandits.NormalUCB(), "fixed"),
    "UCB1-Normal": Entry(lambda s: bandits.UCB1Normal(), "fixed"),
    "GLB-OMD": Entry(lambda s: s.likelihood(bandits.GLBOMD), "family"),
    "GLB-OMD, exact loss": Entry(
        lambda s: s.likelihood(bandits.GLBOMD, loss="exact"), "family", "curved"
    ),
    "GLB-OMD, weighted": Entry(lambda s: s.weighted(), "family"),
    INSURED: Entry(lambda s: s.weighted(BUDGET), "family"),
    "OFUGLB": Entry(lambda s: s.likelihood(bandits.OFUGLB), "family"),
    "OFUGLB, set": Entry(lambda s: s.likelihood(bandits.OFUGLB, form="set"), "family", "time"),
}
ENTRIES = USUAL | EXTRA
WITHOUT_BUDGET = ("FTRL-UCB", "FTRL-UCB, guaranteed", "MOR-UCB", "GLB-OMD, weighted")


def contestants(name: str, rounds: int, everyone: bool = False) -> dict[str, AnyPolicy]:
    """Return the policies that play in a named world."""
    told = setting(name, rounds)
    first = [*WITHOUT_BUDGET, INSURED] if name.endswith(CORRUPTED) else USUAL
    playing = dict.fromkeys([*first, *(ENTRIES if everyone else ())])
    return {
        policy: ENTRIES[policy].make(told)
        for policy in playing
        if told.has.issuperset(ENTRIES[policy].needs)
    }


def absent(name: str) -> dict[str, str]:
    """Return the policies that do not play in a named world, each with the reason."""
    has = setting(name, 1).has
    lacks = {policy: [n for n in entry.needs if n not in has] for policy, entry in ENTRIES.items()}
    return {policy: REASONS[lack[0]] for policy, lack in lacks.items() if lack}
