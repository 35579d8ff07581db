"""Rewards whose size or noise nobody told."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from histories import practical_agent, practical_shares
from instances import sphere

import noisewise as nw
from noisewise import environments as env
from noisewise.agent.rewards.reward_scale import RewardScaling

RNG = np.random.default_rng


def test_the_residual_scale_is_a_weighted_mean():
    r, scale = RNG(3).normal(size=50), nw.ResidualScale()
    for each in r:
        scale = scale.after(each)
    weight = np.arange(1, 52)
    assert scale.square == pytest.approx(np.average([1.0, *r**2], weights=weight), rel=1e-12)
    assert nw.ResidualScale(1e-9, 10).after(0.0).sd == 1e-3  # the floor


def test_a_mean_of_many_trials_counts_with_their_share_of_the_sd():
    """The sd of one trial after the residual, over the root of n: as if that had been told."""
    policy, x, scale = nw.FTRLUCB(radius="practical"), np.array([0.6, 0.8]), nw.ResidualScale()
    one, other = policy.start(2), policy.start(2)
    row = x, 0.4, None, 9
    after, sigma = RewardScaling(policy, None, scale).after(one, row, 1.0, copied=True)
    policy.update(one, x, 0.4, sigma)
    sd = np.sqrt(1 + 2 / 3 * (9 * 0.4**2 - 1))
    assert after.scale.sd == pytest.approx(sd)
    policy.update(other, x, 0.4, sd / 3)
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-12)


def test_the_running_sd_converges():
    """Noise 0.3, averages of n too: s^2 within six standard errors of 0.09.

    The relative variance of s^2 is 2 * 4/(3T); the estimate's own error adds about d log T / T, a
    tenth of the tolerance. False alarm below 1e-7.
    """
    agent, rng, T = practical_agent(dim=4, parameter_bound=1.0), RNG(12), 3000
    theta = sphere(rng, 1, 4)[0]
    assert agent.explain(np.eye(4))[0].note == ""
    for _ in range(T):
        arms, n = sphere(rng, 5, 4), int(rng.integers(1, 20))
        x = arms[agent.choose(arms)]
        agent.learn(None, x @ theta + 0.3 * rng.normal() / np.sqrt(n), trials=n)
    assert abs(agent.scale.square / 0.09 - 1) < 6 * np.sqrt(8 / (3 * T))
    note = agent.explain(np.eye(4))[0].note
    assert "3000 rewards" in note
    assert "not guaranteed" in note
    known = agent.scale
    agent.learn(arms[0], 0.0, sigma=0.1)  # a reward with its own sd tells nothing of the others
    assert agent.scale == replace(known, counted=None)


@pytest.mark.parametrize(("reward", "told"), [(50.0, True), (1.08, True), (1.02, False)])
def test_an_estimate_beyond_the_bound_is_told(reward, told):
    """By more than a twentieth, which an estimate at the bound may be off by chance."""
    agent = practical_agent(2, parameter_bound=1.0)
    for _ in range(200):
        agent.learn([0.6, 0.8], reward, sigma=0.1)
    reason = agent.explain(np.array([[0.6, 0.8]]))[0]
    assert ("outgrown parameter_bound" in reason.note) == told
    wanted = reward if told else reason.upper  # not held within what does not hold
    assert reason.estimate == pytest.approx(wanted, rel=1e-3)


def test_an_estimate_beyond_the_bound_by_noise_keeps_it():
    lucky = practical_shares(1)
    lucky.learn([1.0], 1.0, trials=5)  # five of five
    reason = lucky.explain([[1.0]])[0]
    assert lucky.state.theta[0] > 1.05
    assert "parameter_bound is 1" in reason.note
    assert reason.estimate == reason.upper
    shares = practical_shares(1)
    shares.learn([1.0], 0.02, trials=5000)  # of score -3.9
    reason = shares.explain([[1.0]])[0]
    assert "outgrown parameter_bound" in reason.note
    assert reason.estimate == pytest.approx(0.02, abs=0.005)


@pytest.mark.parametrize("told", [True, False])
def test_the_unit_of_rewards_does_not_matter(told, tmp_path):
    """In units of a power of two, where rounding is the same, all choices are the same."""
    rounds = replace(env.WORLDS["fixed-linear"], rounds=400).draw(RNG(5))
    played = []
    for unit in (1.0, 2.0**-20, 2.0**20):
        agent = practical_agent(dim=10)
        played.append([])
        for t in range(400):
            k = agent.choose(rounds.arms)
            sigma = unit * rounds.sigma[t] if told else None
            agent.learn(None, unit * rounds.rewards[t, k], sigma=sigma)
            played[-1].append(k)
            if t == 200:
                agent.save(tmp_path / "agent")
                agent = nw.Agent.load(tmp_path / "agent")
        largest = max(rounds.rewards[np.arange(400), played[-1]])
        assert unit * largest / 1.1 <= agent.unit <= unit * largest
        assert agent.policy.glm.parameter_bound == agent.unit
        reason = agent.explain(rounds.arms[:1])[0]
        assert "largest reward" in reason.note
    assert played[0] == played[1] == played[2]


def test_a_bound_found_later_is_as_if_known_from_the_start():
    """Ridge, estimate and set after `rebound` are those of a learner that had the bound."""
    rng = RNG(6)
    x, y = sphere(rng, 30, 3), rng.normal(size=30)
    for radius, ridge in (("practical", None), ("practical", 2.0), ("adaptive", 2.0)):
        early = nw.FTRLUCB(nw.GLM("identity", 1.0, 40.0), radius=radius, ridge=ridge)
        late = nw.FTRLUCB(nw.GLM(), radius=radius, ridge=ridge)
        first, second = early.start(3), late.start(3)
        for t in range(30):
            early.update(first, x[t], float(y[t]), 0.5)
            late.update(second, x[t], float(y[t]), 0.5)
            if t == 20:
                late = late.rebound(second, 40.0)
        assert late == early
        assert second.layers[0].ridge == pytest.approx(first.layers[0].ridge)
        np.testing.assert_allclose(first.theta, second.theta, rtol=1e-10)
        np.testing.assert_allclose(first.forms.radii, second.forms.radii, rtol=1e-9)  # compiled
        (one,), (two,) = early.confidence(first), late.confidence(second)
        np.testing.assert_allclose(one.inverse, two.inverse, rtol=1e-9)
        if not early.moving:  # else other points were played
            assert two.radius == pytest.approx(one.radius)
    with pytest.raises(ValueError, match="identity"):
        nw.FTRLUCB(nw.GLM("logistic")).rebound(nw.FTRLUCB(nw.GLM("logistic")).start(2), 2.0)


def test_a_refused_arm_leaves_units_alone():
    """A reward larger than all before, of an arm that is too long: nothing has moved."""
    agent = practical_agent(2)
    agent.learn([0.6, 0.8], 1.0)
    before = pickle.dumps((agent.state, agent.policy, agent.unit, agent.scale))
    with pytest.raises(ValueError, match="feature_bound"):
        agent.learn([3.0, 0.0], 1e6)
    assert pickle.dumps((agent.state, agent.policy, agent.unit, agent.scale)) == before


def test_purchases_that_begin_with_none_have_no_unit_either():
    """First rewards of zero tell no unit: they count as soon as the first other one tells it."""
    played, estimates = [], []
    for unit in (1.0, 2.0**-20, 2.0**20):
        rng, agent = RNG(8), practical_agent(dim=3)
        played.append([])
        for t in range(300):
            k = agent.choose(np.eye(3))
            agent.learn(None, unit * (t > 4) * (rng.random() < 0.1 * (k + 1)))
            played[-1].append(k)
        estimates.append(agent.state.theta / unit)
        assert agent.unit == unit
        assert agent.scale.count < 295  # zeros before it say nothing of the noise
    assert played[0] == played[1] == played[2]
    np.testing.assert_allclose(estimates[1:], np.tile(estimates[0], (2, 1)), rtol=1e-9)


def test_rewards_without_sd_count_with_one_sd():
    """The first residual is small by accident; its reward weighs no more than the later ones."""
    rng, agent = RNG(9), practical_agent(dim=2)
    agent.learn([1.0, 0.0], 1e-4)
    for _ in range(200):
        agent.learn([0.0, 1.0], 1.0 + 0.3 * rng.normal())
    nw.FTRL(agent.policy.glm).solve(agent.state.layers[0])
    weight = agent.state.layers[0].gram.diagonal() * agent.scale.sd**2
    np.testing.assert_array_less(np.abs(np.log(weight / [1, 200])), 2 * np.log(1.1))
    agent.learn([1.0, 0.0], 0.5, sigma=0.1)  # from now on sds differ, and weights stay
    assert agent.scale.counted is None
    agent.learn([0.0, 1.0], 1e3)
    assert agent.state.layers[0].head.heaviest >= 99


@pytest.mark.parametrize("guaranteed", [True, False])
def test_a_bound_that_was_passed_sets_the_unit(guaranteed):
    played = []
    for unit in (1.0, 2.0**-20, 2.0**20):
        rng = RNG(10)
        agent = practical_agent(2, parameter_bound=unit)
        if guaranteed:
            agent = nw.Agent.for_continuous_rewards(2, parameter_bound=unit, guaranteed=True)
        played.append([])
        for t in range(100):
            k = agent.choose(np.eye(2))
            sigma = None if t % 3 else 0.3 * unit
            agent.learn(None, unit * ([0.3, 0.6][k] + 0.3 * rng.normal()), sigma=sigma)
            played[-1].append(k)
    assert played[0] == played[1] == played[2]


def test_a_reward_next_to_nothing_is_one_of_zero():
    agent, other = (practical_agent(2) for _ in range(2))
    agent.learn([0.6, 0.8], 1e-200)
    other.learn([0.6, 0.8], 0.0)
    for each in (agent, other):
        each.learn([0.8, 0.6], 1e-30)
    np.testing.assert_allclose(agent.state.theta, other.state.theta, rtol=1e-12)
    assert agent.unit == 1e-30


def test_a_told_sd_is_a_unit_until_there_is_a_reward():
    agent = practical_agent(2)
    agent.learn([0.6, 0.8], 0.0, sigma=1e3)
    assert agent.unit == 1e3
    agent.learn([0.6, 0.8], 0.0, sigma=1e6)
    assert agent.unit == 1e3
    agent.learn([0.6, 0.8], -2e3, sigma=1e6)
    assert agent.unit == agent.policy.glm.parameter_bound == 2e3


def test_scores_played_under_a_bound_found_later_are_cut_there():
    """The set is that of a learner that had the bound, also where scores exceed the first one.

    The radius from its definition: losses ((z - y)^2 - y^2)/2 of the scores z played, clipped at
    the new bound, less the minimum of the regularised loss.
    """
    rng = RNG(13)
    x, theta = sphere(rng, 60, 3), np.array([20.0, -10.0, 5.0])
    y = x @ theta + rng.normal(size=60)
    early = nw.FTRLUCB(nw.GLM("identity", 1.0, 40.0), radius="played", ridge=0.5)
    late = nw.FTRLUCB(nw.GLM(), radius="played", ridge=0.5)
    first, second = early.start(3), late.start(3)
    late = late.rebound(second, 40.0)
    played = 0.0
    for row, label in zip(x, y, strict=True):
        z = np.clip(row @ second.theta, -40, 40)
        played += 0.5 * (z - label) ** 2 - 0.5 * label**2
        early.update(first, row, float(label), 1.0)
        late.update(second, row, float(label), 1.0)
    np.testing.assert_allclose(second.forms.radii, first.forms.radii, rtol=1e-9)
    H = np.eye(3) + x.T @ x
    least = -0.5 * (x.T @ y) @ np.linalg.solve(H, x.T @ y)
    level = 0.5 * 40.0**2 + played - least + np.log(1 / 0.05)
    assert second.forms.radii[0] == pytest.approx(np.sqrt(2 * level), rel=1e-6)


@pytest.mark.parametrize("make", [practical_agent, nw.Agent.for_continuous_rewards])
def test_an_agent_without_bounds_tells_an_interval_of_use(make):
    """Prices of 100, noise 5: within ten sds of the mean after a thousand of them, not hundreds."""
    rng, agent = RNG(14), make(2)
    for k in rng.integers(2, size=1000):
        agent.learn(np.eye(2)[k], [95.0, 105.0][k] + 5 * rng.normal())
    for reason, price in zip(agent.explain(np.eye(2)), (95.0, 105.0), strict=True):
        assert reason.lower < price < reason.upper < reason.lower + 50


@pytest.mark.parametrize("given", [True, False])
def test_choices_of_the_default_do_not_see_units_and_offsets(given, tmp_path):
    """Rewards a y + b, sds a sigma, features c x: the same choices, saved and loaded on the way."""
    rounds = replace(env.WORLDS["fixed-linear"], rounds=300).draw(RNG(5))
    played = []
    for a, b, c in ((1.0, 0.0, 1.0), (37.0, -1e4, 0.01), (1e-3, 5.0, 300.0)):
        agent = nw.Agent.for_continuous_rewards(dim=10)
        played.append([])
        for t in range(300):
            k = agent.choose(c * rounds.arms, key=t)
            played[-1].append(k)
            sigma = a * rounds.sigma[t] if given else None
            if t >= 3:  # three rewards are always pending
                agent.learn(t - 3, a * rounds.rewards[t - 3, played[-1][t - 3]] + b, sigma=sigma)
            if t == 100:
                agent.save(tmp_path / "agent")
                agent = nw.Agent.load(tmp_path / "agent")
    assert played[0] == played[1] == played[2]
    assert len(set(played[0][:50])) > 5
