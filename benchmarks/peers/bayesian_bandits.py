"""bayesianbandits: its shared learner with sample weights, and the index of its UCB policy.

The policy estimates a quantile (0.68 by default) of each arm's posterior mean from 1000 draws; the
posterior of a score is Gaussian and links increase, so it is computed here instead of drawn.
"""

from dataclasses import replace

import numpy as np
from bayesianbandits import BayesianGLM, InformationDirectedSampling, NormalRegressor
from scipy.linalg import solve
from scipy.special import ndtri

from noisewise.environments import Deliveries
from noisewise.experiments.ingredients.fixed_settings import FixedSetting
from noisewise.protocols import BanditRounds


class Player:
    """Choose and learn with features of each arm; a weight is an inverse variance or a count."""

    def __init__(self, dim, linear, quantile=0.68):
        self.linear, self.width = linear, float(ndtri(quantile))
        self.learner = NormalRegressor(1.0, 1.0) if linear else BayesianGLM(1.0, link="logit")
        self.learner.partial_fit(np.zeros((1, dim)), np.zeros(1), np.array([1e-12]))

    def select(self, arms):
        """Return the arm of the largest quantile."""
        learner = self.learner  # of its precision matrix the upper half is kept
        square = np.sum(arms.T * solve(learner.cov_inv_, arms.T, assume_a="pos"), axis=0)
        return int(np.argmax(arms @ learner.coef_ + self.width * np.sqrt(square)))

    def update(self, arm, reward, weight):
        """Learn one reward."""
        self.learner.partial_fit(arm[None], np.array([reward]), np.array([weight]))


def player(rounds, name):
    """Play its UCB, Thompson sampling (linear, logistic) or IDS, the draws as its policies take."""
    own = Player(rounds.arms.shape[2], linear=name != "TS, logistic")
    rng, chooser = np.random.default_rng(0), InformationDirectedSampling()
    tokens = list(range(rounds.arms.shape[1]))
    rewards = rounds.rewards if own.linear else (rounds.rewards > 0).astype(float)

    def select(arms):
        if name == "UCB":
            return own.select(arms)
        if name == "IDS":
            return chooser.select(own.learner.sample(arms, 1000).T[:, None], tokens, rng)[0]
        return int(np.argmax(own.learner.sample(arms, 1)))

    def play(first, last):
        for t in range(first, last):
            k = select(rounds.arms[t])
            own.update(rounds.arms[t, k], rewards[t, k], 1.0)

    return play


def whole(arms, rewards, weights, linear, quantile):
    """Return what `Player` chooses in a whole world, by its mathematics compiled.

    Its posterior after a reward is the mode of likelihood times the Gaussian before, with the
    curvature there. The first rounds are played by the package too: see `compared`.
    """
    T = len(rewards)
    table = BanditRounds(arms, rewards, rewards, weights**-0.5)
    drawn = Deliveries(table, "gaussian" if linear else "binomial", True, np.arange(T))
    agree = compared(drawn, quantile, min(100, T))
    assert agree >= 0.9, f"the package chooses otherwise in {1 - agree:.0%} of the rounds"
    return setting(quantile).choices(drawn, np.random.default_rng(0))


def setting(quantile):
    """Return the compiled twin of the package's UCB."""
    return FixedSetting(float(ndtri(quantile)), weighted=True, logistic=True)


def compared(drawn, quantile, rounds):
    """Return in which share of the first rounds the package chooses as its compiled twin.

    It learns what the twin chose, so one near tie does not change all that follows. Its mean at the
    end must be the twin's: it stops its own iteration at steps of 1e-4.
    """
    full = drawn.rounds
    arms = full.arms if full.arms.ndim == 2 else full.arms[:rounds]
    columns = full.means[:rounds], full.rewards[:rounds], full.sigma[:rounds]
    drawn = replace(drawn, rounds=BanditRounds(arms, *columns), arrival=drawn.arrival[:rounds])
    played, mean = setting(quantile).played(drawn, np.random.default_rng(0))
    weights = columns[2] ** -2.0 if drawn.sd_given else np.ones(rounds)
    player = Player(arms.shape[-1], drawn.family == "gaussian", quantile)
    agree, due = 0, drawn.arrival
    for t, k in enumerate(played):
        agree += player.select(arms if arms.ndim == 2 else arms[t]) == k
        for s in np.flatnonzero(due[: t + 1] == t):
            arm = (arms if arms.ndim == 2 else arms[s])[played[s]]
            player.update(arm, columns[1][s, played[s]], weights[s])
    np.testing.assert_allclose(mean, player.learner.coef_, atol=1e-3 * (1 + np.abs(mean).max()))
    return agree / rounds
