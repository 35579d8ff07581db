"""Policies together: the registry, that they learn, the loop that plays them, what they refuse."""

from importlib import import_module

import numpy as np
import pytest
from instances import POLICIES as INSTANCES
from instances import small

import noisewise as nw
from noisewise.bandits import POLICIES
from noisewise.simulate import turns
from noisewise.theory import bandit_regret

RNG = np.random.default_rng


def test_glm_ucb_on_the_identity_link_is_linucb():
    rounds = small(1)
    policy = nw.GLMUCB(radius_scale=0.01)
    state, other = policy.start(4), nw.LinUCB().start(4)
    for arms, rewards in zip(rounds.arms, rounds.rewards, strict=True):
        k = policy.select(state, arms, RNG(0))
        assert k == nw.LinUCB(width=policy.radius(state)).select(other, arms, RNG(0))
        policy.update(state, arms[k], rewards[k])
        nw.LinUCB().update(other, arms[k], rewards[k])
    np.testing.assert_allclose(state.theta, other.theta, atol=1e-10)


def test_the_registry_finds_every_policy():
    for name, target in POLICIES.items():
        module, _, attribute = target.partition(":")
        assert getattr(import_module(module), attribute) is getattr(nw, name)
    assert {type(policy).__name__ for policy in INSTANCES} == set(POLICIES)


LEARNERS = [
    nw.OFUL(0.3, radius_scale=0.3),
    nw.LinUCB(0.3),
    nw.WeightedLeastSquaresUCB(),
    nw.WeightedOFUL(radius_scale=0.01),
    nw.WeightedOFULPlus(radius_scale=0.001),
    nw.GLMUCB(radius_scale=0.01),
    nw.LinearThompson(),
    nw.LaplaceThompson(),
]


@pytest.mark.parametrize("policy", LEARNERS, ids=repr)
def test_learners_learn(policy):
    """On fixed arms, mean of five worlds: less than a fifth of the regret of random play."""
    regret, random = 0.0, 0.0
    for seed in range(5):
        rounds = small(seed, fixed=True, rounds=800)
        regret += bandit_regret(rounds, nw.choices(policy, rounds, RNG(seed)))[-1]
        random += bandit_regret(rounds, nw.choices(nw.Uniform(), rounds, RNG(seed)))[-1]
    assert regret < 0.2 * random


class Recorder:
    """Plays arm 1 and keeps what it was shown."""

    def start(self, dim):
        return []

    def select(self, state, arms, rng, sigma=None):
        state.append(sigma)
        return 1

    def update(self, state, arm, reward, sigma=1.0):
        state.append((arm, reward, sigma))


class Player(Recorder):
    def play(self, state, rounds, rng):
        return np.full(len(rounds.means), 2)


def test_the_loop_shows_noise_before_choosing_only_where_it_is_known(monkeypatch):
    rng = RNG(8)
    arms, means = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3))
    log = []
    monkeypatch.setattr(Recorder, "start", lambda self, dim: log)
    played = nw.choices(Recorder(), nw.BanditRounds(arms, means, 2 * means, [0.1, 0.2]), rng)
    assert played.dtype == np.int64
    assert played.tolist() == [1, 1]
    assert log[0] is None
    np.testing.assert_array_equal(log[1][0], arms[0, 1])
    assert log[1][1:] == (2 * means[0, 1], 0.1)
    log.clear()
    per_arm = np.arange(6.0).reshape(2, 3)
    nw.choices(Recorder(), nw.BanditRounds(arms[0], means, means, per_arm), rng)
    np.testing.assert_array_equal(log[2], per_arm[1])
    np.testing.assert_array_equal(log[3][0], arms[0, 1])
    assert log[3][2] == per_arm[1, 1]


def test_turns_are_seen_between_choosing_and_learning():
    rounds, state = small(rounds=3), []
    for t, arms, k in turns(Recorder(), state, rounds, RNG(0)):
        assert (k, len(state)) == (1, 2 * t + 1)
        np.testing.assert_array_equal(arms, rounds.arms[t])
    np.testing.assert_array_equal(state[-1][0], rounds.arms[2, 1])
    assert state[-1][1:] == (rounds.rewards[2, 1], rounds.sigma[2])


def test_a_compiled_loop_is_used_where_there_is_one():
    assert nw.choices(Player(), small(rounds=3), RNG(0)).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"arms": np.ones((2, 0, 2))}, "arms"),
        ({"arms": np.ones((4, 3, 2))}, "arms"),
        ({"arms": np.full((3, 2), np.nan)}, "arms"),
        ({"means": np.ones(3)}, "means"),
        ({"rewards": np.ones((2, 2))}, "rewards"),
        ({"rewards": np.full((2, 3), np.inf)}, "rewards"),
        ({"sigma": np.ones(3)}, "sigma"),
        ({"sigma": -np.ones(2)}, "sigma"),
    ],
)
def test_bad_rounds_are_refused(change, word):
    good = {
        "arms": np.ones((3, 2)),
        "means": np.ones((2, 3)),
        "rewards": np.ones((2, 3)),
        "sigma": np.ones(2),
    }
    nw.choices(nw.Uniform(), nw.BanditRounds(**good), RNG(0))
    with pytest.raises(ValueError, match=word):
        nw.choices(nw.Uniform(), nw.BanditRounds(**(good | change)), RNG(0))


def test_regret_of_choices():
    rounds = nw.BanditRounds(np.eye(2), np.array([[0.1, 0.7], [0.5, 0.2]]), np.eye(2), np.ones(2))
    np.testing.assert_allclose(bandit_regret(rounds, [0, 1]), [0.6, 0.9])
    for bad in ([0], [0, 2], [-1, 0], [0.0, 1.0]):
        with pytest.raises(ValueError, match="choices"):
            bandit_regret(rounds, bad)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: nw.OFUL(sigma=0.0), "sigma"),
        (lambda: nw.OFUL(delta=1.0), "delta"),
        (lambda: nw.OFUL(ridge=-1.0), "ridge"),
        (lambda: nw.LinUCB(width=-1.0), "width"),
        (lambda: nw.LinUCB(radius_scale=np.nan), "radius_scale"),
        (lambda: nw.WeightedLeastSquaresUCB(noise_floor=0.0), "noise_floor"),
        (lambda: nw.WeightedOFUL(noise_bound=np.inf), "noise_bound"),
        (lambda: nw.WeightedOFULPlus(horizon=0), "horizon"),
        (lambda: nw.GLMUCB("logistic"), "glm"),
        (lambda: nw.Greedy("logistic"), "glm"),
        (lambda: nw.LaplaceThompson(scale=-1.0), "scale"),
    ],
)
def test_bad_policies_are_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()
