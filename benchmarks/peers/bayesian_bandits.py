"""bayesianbandits: its shared learner with sample weights, and the index of its UCB policy.

The policy estimates a quantile (0.68 by default) of each arm's posterior mean from 1000 draws; the
posterior of a score is Gaussian and links increase, so it is computed here instead of drawn.
"""

import numpy as np
from bayesianbandits import BayesianGLM, InformationDirectedSampling, NormalRegressor
from scipy.special import ndtri


class Player:
    """Choose and learn with features of each arm; a weight is an inverse variance or a count."""

    def __init__(self, dim, linear, quantile=0.68):
        self.linear, self.width = linear, float(ndtri(quantile))
        self.learner = NormalRegressor(1.0, 1.0) if linear else BayesianGLM(1.0, link="logit")
        self.learner.partial_fit(np.zeros((1, dim)), np.zeros(1), np.array([1e-12]))

    def select(self, arms):
        """Return the arm of the largest quantile."""
        learner = self.learner
        square = np.einsum("ij,ji->i", arms, np.linalg.solve(learner.cov_inv_, arms.T))
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
