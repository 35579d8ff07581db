"""NormalUCB and UCB1Normal: arms without features."""

import numpy as np
import pytest
from scipy.optimize import brentq

import noisewise as nw
from noisewise.theory import bandit_regret

RNG = np.random.default_rng


def pulled(policy, seed=0, counts=(5, 9, 4), shift=0.0, scale=1.0):
    rng, state, rewards = RNG(seed), policy.start(len(counts)), []
    for arm, n in zip(np.eye(len(counts)), counts, strict=True):
        rewards.append(shift + scale * rng.normal(size=n))
        for reward in rewards[-1]:
            policy.update(state, arm, reward)
    return state, rewards


@pytest.mark.parametrize(("variant", "less"), [("corrected", 2), ("original", 0)])
def test_the_index_of_normal_ucb_is_a_root(variant, less):
    """(T - 2)/2 log(1 + (mu - mean)^2/S^2) = log n, solved by bisection from the raw rewards."""
    policy = nw.NormalUCB(variant)
    state, rewards = pulled(policy)
    for index, r in zip(policy.bounds(state), rewards, strict=True):

        def miss(mu, r=r):
            return (len(r) - less) / 2 * np.log1p((mu - r.mean()) ** 2 / r.var()) - np.log(18)

        assert index == pytest.approx(brentq(miss, r.mean(), r.mean() + 1e6, xtol=1e-13), rel=1e-9)


def test_the_index_of_ucb1_normal_written_out():
    """Round n = 301 with 100 plays each: none is forced, as 8 log 301 = 45.7."""
    policy = nw.UCB1Normal()
    state, rewards = pulled(policy, counts=(100, 100, 100))
    assert policy.enough(state) == 46
    for index, r in zip(policy.bounds(state), rewards, strict=True):
        spread = (np.sum(r**2) - 100 * r.mean() ** 2) / 99
        assert index == pytest.approx(
            r.mean() + np.sqrt(16 * spread * np.log(300) / 100), rel=1e-12
        )
    assert policy.select(state, np.eye(3), RNG(0)) == np.argmax(policy.bounds(state))


@pytest.mark.parametrize("policy", [nw.NormalUCB(), nw.UCB1Normal()], ids=repr)
def test_normal_bandits_follow_shift_and_scale(policy):
    """Even far from 0, where sums of squares would have lost the variance."""
    plain, moved = (pulled(policy, shift=a, scale=b)[0] for a, b in ((0, 1), (1e6, 0.5)))
    np.testing.assert_allclose(
        policy.bounds(moved), 1e6 + 0.5 * policy.bounds(plain), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize(("policy", "least"), [(nw.NormalUCB(), 3), (nw.UCB1Normal(), 2)], ids=repr)
def test_normal_bandits_force_rare_arms(policy, least):
    rng, state = RNG(0), policy.start(3)
    played = []
    for _ in range(3 * least):
        played.append(policy.select(state, np.eye(3), rng))
        policy.update(state, np.eye(3)[played[-1]], 0.5)
    assert played == [0, 1, 2] * least
    if least == 3:  # no variance: the index is the mean, and all are equal
        np.testing.assert_allclose(policy.bounds(state), 0.5)
        assert policy.select(state, np.eye(3)[::-1], rng) == 0
    assert policy.select(state, np.eye(3)[2:], rng) == 0


def test_normal_bandits_stop_forcing_at_the_count_itself():
    """Three plays each are enough; and 9 = ceil(8 log 3) in the third round, 12 in the fourth."""
    policy = nw.NormalUCB()
    state = policy.start(3)
    for k, mean in ((0, 0.0), (1, 5.0), (2, 1.0)):
        for away in (-0.1, 0.0, 0.1):
            policy.update(state, np.eye(3)[k], mean + away)
    assert policy.select(state, np.eye(3), RNG(0)) == 1
    assert policy.select(state, np.eye(3)[[2, 0, 1]], RNG(0)) == 2
    assert policy.select(state, np.eye(3)[[2, 0]], RNG(0)) == 0
    policy = nw.UCB1Normal()
    state = policy.start(1)
    enough = []
    for _ in range(4):
        enough.append(policy.enough(state))
        policy.update(state, [1.0], 0.5)
    assert enough == [2, 6, 9, 12]


@pytest.mark.parametrize("policy", [nw.NormalUCB(), nw.UCB1Normal()], ids=repr)
def test_normal_bandits_know_no_features(policy):
    state = policy.start(2)
    for bad in ([0.5, 0.0], [1.0, 1.0], [0.0, 0.0], [-1.0, 0.0]):
        with pytest.raises(ValueError, match="unit vector"):
            policy.select(state, [bad], RNG(0))
        with pytest.raises(ValueError, match="unit vector"):
            policy.update(state, bad, 1.0)
    assert state.count == 0


@pytest.mark.parametrize(
    "policy", [nw.NormalUCB(), nw.NormalUCB("original"), nw.UCB1Normal()], ids=repr
)
def test_normal_bandits_compiled_and_readable_agree(policy):
    """Lists go the readable way, arrays the compiled one; arms in changing order, some missing."""
    rng, fast, slow = RNG(3), policy.start(5), policy.start(5)
    for _ in range(400):
        arms = np.eye(5)[rng.permutation(5)[: rng.integers(1, 6)]]
        k = policy.select(fast, arms, rng)
        assert k == policy.select(slow, arms.tolist(), rng)
        reward = float(rng.normal(arms[k].argmax(), 2.0))
        policy.update(fast, arms[k], reward, 1.0)
        policy.update(slow, arms[k].tolist(), reward, 1.0)
    assert fast.count == slow.count == 400 == fast.pulls.sum()
    for name in ("pulls", "means", "squares"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-12)
    for bad in ([0.5, 0, 0, 0, 0.5], [1.0, 1, 0, 0, 0], [0.0] * 5, [np.nan, 1, 0, 0, 0]):
        with pytest.raises(ValueError, match=r"unit vector|index"):
            policy.select(fast, np.array([bad]), rng)
        with pytest.raises(ValueError, match=r"unit vector|index"):
            policy.update(fast, np.array(bad), 1.0, 1.0)
    with pytest.raises(ValueError, match="reward"):
        policy.update(fast, arms[k], np.nan, 1.0)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="sigma"):
            policy.update(fast, arms[k], 1.0, bad)
    assert fast.count == 400 == fast.pulls.sum()


def test_normal_ucb_learns():
    """Three arms, noise 0.3: a fifth of random play, and less than UCB1-Normal."""
    regret = {}
    for policy in (nw.NormalUCB(), nw.UCB1Normal(), nw.Uniform()):
        total = 0.0
        for seed in range(5):
            rng = RNG([seed, 6])
            means = np.tile([0.2, 0.5, 0.9], (1500, 1))
            rewards = means + 0.3 * rng.normal(size=means.shape)
            rounds = nw.BanditRounds(np.eye(3), means, rewards, np.full(1500, 0.3))
            total += bandit_regret(rounds, nw.choices(policy, rounds, rng))[-1]
        regret[type(policy).__name__] = total
    assert regret["NormalUCB"] < 0.2 * regret["Uniform"]
    assert regret["NormalUCB"] < regret["UCB1Normal"] < regret["Uniform"]
