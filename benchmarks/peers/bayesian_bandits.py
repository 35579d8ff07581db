"""bayesianbandits: its shared learner with sample weights, and the index of its UCB policy.

The policy estimates a quantile (0.68 by default) of each arm's posterior mean from 1000 draws; the
posterior of a score is Gaussian and links increase, so it is computed here instead of drawn.
"""

import math

import numpy as np
from bayesianbandits import BayesianGLM, InformationDirectedSampling, NormalRegressor
from numba import njit
from scipy.linalg import solve
from scipy.special import ndtri


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
    curvature there. The first rounds are played by the package too, which must choose the same and
    come to the same mean: it stops its own iteration at steps of 1e-4.
    """
    arms = arms if arms.ndim == 3 else arms[None]
    width, first, agree = float(ndtri(quantile)), min(100, len(rewards)), 0
    _, mean = _play(arms, rewards[:first], weights[:first], width, linear)
    player = Player(arms.shape[2], linear, quantile)
    played, _ = _play(arms, rewards, weights, width, linear)
    for t, k in enumerate(played[:first]):
        x = arms[t % len(arms)]
        agree += player.select(x) == k
        player.update(x[k], rewards[t, k], weights[t])
    assert agree >= 0.9 * first, f"the package chooses otherwise in {first - agree} rounds"
    np.testing.assert_allclose(mean, player.learner.coef_, atol=1e-3)
    return played


@njit(cache=True)
def _play(arms, rewards, weights, width, linear):
    N, _, d = arms.shape
    T = len(rewards)
    P, m, played = np.eye(d), np.zeros(d), np.empty(T, dtype=np.int64)
    for t in range(T):
        x = arms[t % N]
        forms = (x @ P * x).sum(axis=1)
        k = np.argmax(x @ m + width * np.sqrt(forms))
        played[t] = k
        y, w, s, start = rewards[t, k], weights[t], forms[k], x[k] @ m
        # along P x: c + w (phi(start + c s) - y) = 0, increasing in c
        low, high, c = -w * 1e3, w * 1e3, 0.0
        slope = w
        for _ in range(100):
            z = start + c * s
            mean = z if linear else 1 / (1 + math.exp(-z))
            slope = w if linear else w * mean * (1 - mean)
            value = c + w * (mean - y)
            if value > 0:
                high = c
            else:
                low = c
            step = value / (1 + slope * s)
            if abs(step) * s < 1e-13:
                break
            c = c - step if low < c - step < high else 0.5 * (low + high)
        h = P @ x[k]
        m += c * h
        P -= np.outer(h, h) * (slope / (1 + slope * s))
    return played, m
