"""Who plays in the studies `agents` and `classification`."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...agent.agent import Agent
from ...agent.rewards.residuals import ResidualScale
from ...agent.rewards.reward_scale import LEAST_NOISE
from ...bandits.optimistic.ftrl_ucb import FTRLUCB
from ...environments.practical import Deliveries
from ...model.glm import GLM
from .. import gallery
from .fixed_settings import SETTINGS, BetaThompson

OURS, EARLIER, BETA = "noisewise", "practical FTRL-UCB", "Beta-Thompson"
PLAYERS = (OURS, EARLIER, *SETTINGS, BETA)

Make = Callable[[str, int, float, int], Agent]


def default_agent(family: str, dim: int, longest: float, seed: int) -> Agent:
    """Return what the constructor for these rewards returns."""
    made = Agent.for_binary_rewards if family == "binomial" else Agent.for_continuous_rewards
    return made(dim, seed, feature_bound=longest)


def earlier_agent(family: str, dim: int, longest: float, seed: int) -> Agent:
    """Return an agent of the practical index of FTRL-UCB, its parameter bound left at 1.

    For continuous rewards the largest reward stands in for that bound, and a running sd of the
    residuals for those not given.
    """
    if family == "binomial":
        glm = GLM("logistic", longest)
        likely = FTRLUCB(glm, "likelihood", radius="practical")
        return Agent(likely, dim, seed, rewards=(0.0, 1.0))
    glm = GLM("identity", longest)
    practical = FTRLUCB(glm, noise_floor=0.05 * longest, radius="practical")
    agent = Agent(practical, dim, seed, sigma="estimated")
    agent.scale = ResidualScale(longest**2, floor=LEAST_NOISE * longest)
    agent.unit = 0.0
    return agent


AGENTS: dict[str, Make] = {OURS: default_agent, EARLIER: earlier_agent}


def choices(
    player: str, drawn: Deliveries, rng: np.random.Generator, longest: float = 1.0
) -> NDArray[np.int64]:
    """Return the arms that a named player plays, (T,)."""
    if player in SETTINGS:
        return SETTINGS[player].choices(drawn, rng)
    if player == BETA:
        return gallery.choices(BetaThompson(), drawn, rng)
    dim, seed = drawn.rounds.arms.shape[-1], int(rng.integers(2**32))
    return gallery.choices(AGENTS[player](drawn.family, dim, longest, seed), drawn, rng)


def plays(player: str, drawn: Deliveries) -> bool:
    """Return whether a player can play here: one needs 0/1 rewards and arms without features."""
    if player != BETA:
        return True
    arms, rewards = drawn.rounds.arms, drawn.rounds.rewards
    unit = arms.ndim == 2 and np.array_equal(arms, np.eye(len(arms)))
    return bool(unit and np.isin(rewards, (0.0, 1.0)).all())
