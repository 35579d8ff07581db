"""What an agent, its doors and its policies are told, to the number."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from histories import play, practical_agent

import noisewise as nw
from noisewise import environments as env

RNG = np.random.default_rng
FIXED = nw.FTRLUCB(nw.GLM(), radius="practical", ridge=0.5)


def test_a_range_has_two_ends_and_is_kept_in_the_file(tmp_path):
    agent = nw.Agent(nw.Uniform(), 2, rewards=(0.0, 1.0))
    agent.save(tmp_path / "a.npz")
    for each in (agent, nw.Agent.load(tmp_path / "a.npz")):
        for reward in (-0.1, 1.1):
            with pytest.raises(ValueError, match="reward"):
                each.learn([0.6, 0.8], reward)


def test_the_sigma_of_an_agent_is_kept_in_the_file(tmp_path):
    agent = nw.Agent(FIXED, 2, sigma=0.5)
    agent.save(tmp_path / "a.npz")
    again = nw.Agent.load(tmp_path / "a.npz")
    for each in (agent, again):
        each.learn([0.6, 0.8], 0.7)
    np.testing.assert_array_equal(agent.state.theta, again.state.theta)


def test_doors_say_what_is_guaranteed_before_the_first_reward():
    def explained(make, **known):
        return make(2, **known).explain(np.eye(2))

    assert "largest reward" in explained(practical_agent)[0].note
    assert explained(practical_agent, parameter_bound=2.0)[0].note == ""
    for make in (nw.Agent.for_continuous_rewards, nw.Agent.for_means):
        assert "approximate" in explained(make).promise
        assert "approximate" not in explained(make, guaranteed=True).promise
        assert explained(make, guaranteed=True)[0].note == ""


def test_a_mean_of_trials_counts_so_many_times_where_the_sd_is_estimated():
    """s^2 = 1 + 2/3 (16/4 - 1) = 3 for one trial, so the weight is 16/3; 2 lambda = 1."""
    agent = practical_agent(1, parameter_bound=1.0)
    agent.learn([1.0], 0.5, trials=16)
    assert agent.scale.square == pytest.approx(3.0)
    assert agent.state.theta[0] == pytest.approx(0.5 * (16 / 3) / (1 + 16 / 3))


def test_the_bound_that_stands_in_is_for_features_of_their_length():
    agent = practical_agent(2, feature_bound=4.0)
    agent.learn([2.0, 3.0], 10.0)
    assert agent.policy.glm.parameter_bound == 2.5
    assert agent.policy.glm.score_bound == 10.0


def test_an_arm_of_length_zero_contradicts_nothing():
    reason = nw.Agent.for_means(2, guaranteed=True).explain(np.zeros((1, 2)))[0]
    assert (reason.lower, reason.estimate, reason.upper) == (0.5, 0.5, 0.5)
    assert reason.note == ""


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_the_moving_ridge_knows_the_spread(link):
    """2 lambda = d g / N^2, g = 1/slope(0), also after N has moved."""
    policy = nw.FTRLUCB(nw.GLM(link, parameter_bound=0.2), radius="practical")
    state = policy.start(3)
    for _ in range(100):
        policy.update(state, np.array([1.0, 0.0, 0.0]), 1.0, 0.2)
    assert state.norm > 0.22
    gain = 1 / policy.glm.slope(0.0)
    assert 2 * state.layers[0].ridge == pytest.approx(3 * gain / state.norm**2)


def test_a_score_is_off_by_the_range_at_most():
    """A set wider than [-S, S] lets a reward of bounded noise weigh C/(R 2S), not less."""
    policy = nw.FTRLUCB(nw.GLM(), "bounded", noise_bound=1.0, noise_floor=0.05, ridge=1e-3)
    state, x = policy.start(2), np.array([0.6, 0.8])
    assert policy.confidence(state)[0].width(x) > 2
    assert policy.weights.of(state, x, 0.3, 0.05) == pytest.approx(2 * (math.e - 2) / 2)
    policy.update(state, x, 0.3, 0.05)  # the same by the kernels
    H = np.linalg.inv(state.forms.inverses[0])
    assert x @ H @ x == pytest.approx(2e-3 + (math.e - 2), rel=1e-6)


@pytest.mark.parametrize(
    ("noise", "constant"),
    [
        ("bounded", 2 * 0.5 * 3.0 * 0.1**-2),  # 2 R S / floor^2, above 2(e - 2)
        ("estimated", (0.5 / 0.1) ** 2),  # (R / floor)^2
        ("sub-gaussian", 1.0),
        ("likelihood", 1.0),
    ],
)
def test_the_price_of_confidence_by_hand(noise, constant):
    """Before any reward the radius is sqrt(2 (lambda B^2 + C log(1/delta)))."""
    glm = nw.GLM(parameter_bound=3.0)
    policy = nw.FTRLUCB(glm, noise, 0.5, 0.1, radius="practical", ridge=0.25, delta=0.02)
    (only,) = policy.confidence(policy.start(2))
    level = 0.25 * 9.0 + constant * math.log(50)
    assert only.radius == pytest.approx(math.sqrt(2 * level))


@pytest.mark.parametrize("radius", ["adaptive", "practical"])
def test_the_kernels_take_no_reward_outside_the_family(radius):
    policy = nw.FTRLUCB(nw.GLM("logistic"), "likelihood", radius=radius)
    state = policy.start(2)
    for reward in (-0.01, 1.01, 2):
        with pytest.raises(ValueError, match="reward"):
            policy.update(state, np.array([0.6, 0.8]), reward, 0.5)
    assert state.count == 0


@pytest.mark.parametrize("policy", [FIXED, nw.MORUCB()], ids=repr)
def test_whole_worlds_are_played_as_round_by_round(policy):
    """Also where every arm has an sd of its own; arms beyond the bound are refused."""
    world = env.NoisyBandit(fixed=True, tied=True, dim=3, arms=5, rounds=200)
    rounds = world.draw(RNG(3))
    _, wanted = play(policy, rounds)
    np.testing.assert_array_equal(nw.choices(policy, rounds, RNG(0)), wanted)
    with pytest.raises(ValueError, match="feature_bound"):
        nw.choices(policy, dataclasses.replace(rounds, arms=1.1 * rounds.arms), RNG(0))


def test_the_reach_of_sets_is_the_least_width():
    policy, x = nw.MORUCB(noise_floor=0.1), np.array([0.6, 0.8])
    state = policy.start(2)
    assert state.forms.reach(x) == np.inf
    for sigma in (0.1, 0.9, 0.9):
        policy.update(state, x, 0.5, sigma)
    wanted = min(each.width(x) for each in policy.confidence(state))
    assert state.forms.reach(x) == pytest.approx(wanted)


def test_noise_told_before_choosing_is_looked_at():
    agent = nw.Agent.for_means(dim=2)
    for sigma in ([-1.0, 1.0], [np.nan, 1.0], [1.0], [1.0, 1.0, 1.0], 1.0):
        with pytest.raises(ValueError, match="sigma"):
            agent.choose(np.eye(2), key=1, sigma=sigma)
    assert agent.waiting == ()


def test_waiting_keys_are_not_taken_for_features():
    agent = nw.Agent.for_binary_rewards(dim=2)
    for key in range(2):
        agent.choose(np.eye(2), key=key)
    with pytest.raises(ValueError, match="one reward per key"):
        agent.learn([0, 1], 1.0)
    assert agent.waiting == (0, 1)
    agent.learn(np.array([0, 1]), 1.0)  # an array is an arm
    agent.learn([0, 1], [1.0, 0.0])
    assert agent.waiting == ()


def test_a_bound_that_stands_in_does_not_cut_the_interval():
    """Arms shorter than the bound: the largest reward says little of the parameter."""
    rng, agent = np.random.default_rng(0), practical_agent(dim=2)
    for _ in range(300):
        x = rng.uniform(-0.5, 0.5, 2)
        agent.learn(x, x @ [0.8, -0.5] + 0.01 * rng.normal(), sigma=0.01)
    (reason,) = agent.explain([[0.5, -0.5]])
    assert reason.lower < 0.65 < reason.upper
    assert reason.lower < reason.estimate < reason.upper


@pytest.mark.parametrize(
    "reward",
    [np.ma.masked, np.ma.array(0.5, mask=True), np.ma.array(0.5), 10**400, 1j, "0.5", None, {0.5}],
    ids=repr,
)
def test_what_is_no_reward_is_refused(reward):
    agent = nw.Agent.for_continuous_rewards(2)
    agent.choose(np.eye(2), key=1)
    with pytest.raises(ValueError, match="reward"):
        agent.learn(1, reward)
    assert agent.waiting == (1,)
    assert agent.state.count == 0


@pytest.mark.parametrize("key", [np.array(1), np.array("a"), 1.5, True, b"a", 2**2000, {}], ids=str)
def test_what_is_no_key_is_refused(key):
    agent = nw.Agent.for_continuous_rewards(2)
    agent.choose(np.eye(2), key=1)
    with pytest.raises(ValueError, match="key"):
        agent.choose(np.eye(2), key=key)
    for reward in (0.5, [0.5], [0.5, 0.5]):
        with pytest.raises(ValueError, match=r"key|arm"):
            agent.learn(key, reward)
    assert agent.waiting == (1,)


def test_keys_come_with_a_length():
    agent = nw.Agent.for_continuous_rewards(2)
    for key in (1, 2):
        agent.choose(np.eye(2), key=key)
    for keys in ({1, 2}, {1: 0, 2: 0}, itertools.count(1)):
        with pytest.raises(ValueError, match="list of keys"):
            agent.learn(keys, [0.5, 0.5])
    agent.learn(range(1, 3), [0.5, 0.5])


@pytest.mark.parametrize(
    "policy",
    [nw.Uniform(), nw.UCBGLM(), nw.LinearThompson(), nw.LaplaceThompson(), nw.IDS(randomised=True)],
    ids=lambda policy: type(policy).__name__,
)
@pytest.mark.parametrize("rng", [None, 0, np.random, np.random.RandomState])
def test_random_policies_need_a_generator(policy, rng):
    with pytest.raises(ValueError, match=r"rng is .*Generator"):
        policy.select(policy.start(2), np.eye(2), rng, np.ones(2))


@pytest.mark.parametrize("delta", [1e-320, 1e-200, 0.0, 1.0, np.nan, 10**400, True, "0.1"])
def test_a_probability_can_be_computed_with(delta):
    for make in (nw.OFUL, nw.FTRLUCB, nw.MORUCB, nw.LinUCB, nw.IDS, nw.SAVE, nw.GLBOMD, nw.GLOC):
        with pytest.raises(ValueError, match="delta"):
            make(delta=delta)
    ftrl = nw.FTRL()
    with pytest.raises(ValueError, match="delta"):
        ftrl.interval(ftrl.start(2), [0.6, 0.8], nw.SubGaussian(), delta)


def test_parameters_are_kept_as_floats():
    policy = nw.OFUL(sigma=np.float32(0.5), delta=np.float64(0.25), radius_scale=1)
    assert all(type(getattr(policy, name)) is float for name in ("sigma", "delta", "radius_scale"))


def test_a_state_of_another_policy_is_refused_before_it_is_written():
    """The kernels write as many ellipsoids as the policy has, so the state must have them."""
    practical = nw.FTRLUCB(nw.GLM("logistic"), radius="practical")
    state = practical.start(2)
    with pytest.raises(ValueError, match="this policy started"):
        nw.FTRLUCB(nw.GLM("logistic")).update(state, np.array([0.6, 0.8]), 0.5, 0.5)
    one = nw.MORUCB(noise_floor=0.5).start(2)
    with pytest.raises(ValueError, match="this policy started"):
        nw.MORUCB(noise_floor=0.1).update(one, np.array([0.6, 0.8]), 0.5, 0.5)
