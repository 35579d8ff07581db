"""Agents made by `for_means` and its kin: the policies they promise, and that they work untuned."""

from dataclasses import replace

import numpy as np
import pytest

import noisewise as nw
from noisewise import environments as env
from noisewise.theory import bandit_regret

RNG = np.random.default_rng


@pytest.mark.parametrize("door", ["for_binary_rewards", "for_means", "for_continuous_rewards"])
def test_doors_hold_the_policies_they_promise(door):
    make, linear = getattr(nw.Agent, door), door == "for_continuous_rewards"
    agent = make(3, 1, feature_bound=2.0, parameter_bound=3.0, guaranteed=True)
    glm = agent.policy.glm
    assert (agent.dim, glm.feature_bound, glm.parameter_bound) == (3, 2.0, 3.0)
    assert agent.policy.radius == "adaptive"
    assert glm.linear == linear
    assert linear or agent.policy.noise == "likelihood"
    default = make(3, 1, feature_bound=0.1)  # not used
    assert default.policy == nw.SelfTunedUCB("gaussian" if linear else "binomial")
    assert default.choose([[30.0, 0.0, 1.0]]) == 0
    assert default.scale is default.unit is None
    with pytest.raises(ValueError, match="parameter_bound"):
        make(3, parameter_bound=-1.0)


def regret(agent, rounds, tell):
    """Play a world with rewards that come five at a time."""
    choices, keys = [], []
    for t, rewards in enumerate(rounds.rewards):
        arms = rounds.arms if rounds.arms.ndim == 2 else rounds.arms[t]
        choices.append(agent.choose(arms, key=t))
        keys.append((t, rewards[choices[-1]], rounds.sigma[t]))
        if len(keys) == 5:
            told, values, sigma = zip(*keys, strict=True)
            agent.learn(told, values, **tell(np.array(sigma)))
            keys.clear()
    return bandit_regret(rounds, choices)[-1]


def by_sigma(sigma):
    return {"sigma": sigma}


def by_trials(sigma):
    return {"trials": np.round(sigma**-2)}


def untold(sigma):
    return {}


@pytest.mark.parametrize(
    ("door", "world", "tell"),
    [
        ("for_continuous_rewards", "fresh-linear", by_sigma),
        ("for_continuous_rewards", "fixed-linear", by_sigma),
        ("for_continuous_rewards", "fresh-linear", untold),
        ("for_continuous_rewards", "fixed-linear", untold),
        ("for_means", "fresh-binomial", by_trials),
        ("for_means", "fixed-binomial", by_trials),
        ("for_binary_rewards", "fixed-binomial", untold),
    ],
)
def test_doors_work_untuned(door, world, tell):
    """Six worlds of 600 rounds, for 0/1 rewards twelve of 2000: less than half of random play.

    Over 100 other worlds a world's regret less half of random play had a mean so far below 0 that
    such a sum is at least 5.3 of its standard deviations below: false alarm below 1e-6, taking
    sums for normal.
    """
    binary = door == "for_binary_rewards"
    change = {"rounds": 2000, "most": 1} if binary else {"rounds": 600}
    ours = random = 0.0
    for seed in range(12 if binary else 6):
        rounds = replace(env.WORLDS[world], **change).draw(RNG([seed, 4]))
        ours += regret(getattr(nw.Agent, door)(dim=10), rounds, tell)
        random += bandit_regret(rounds, nw.choices(nw.Uniform(), rounds, RNG(seed)))[-1]
    assert ours < 0.5 * random


def test_counts_are_no_shares():
    for agent in (nw.Agent.for_means(2), nw.Agent.for_binary_rewards(2)):
        for reward in (40, 5.0, -0.1):
            with pytest.raises(ValueError, match="reward"):
                agent.learn([0.6, 0.8], reward, trials=100)
        assert agent.state.count == 0
