"""MORUCB: its layers, its index by hand, and the algorithm as published."""

import numpy as np
import pytest
from histories import play

import noisewise as nw
from noisewise import environments as env
from noisewise import theory


def test_one_layer_is_ftrl_ucb_with_weight_one():
    at = {"noise_bound": 1.0, "noise_floor": 1.0, "radius": "self-normalised", "ridge": 4.0}
    for link in ("identity", "logistic"):
        glm = nw.GLM(link)
        layered, weighted = nw.MORUCB(glm, **at), nw.FTRLUCB(glm, **at)
        assert layered.layers == 1
        rounds = env.NoisyBandit(glm=glm, dim=4, arms=9, rounds=300).draw(np.random.default_rng(1))
        a, first = play(layered, rounds)
        b, second = play(weighted, rounds)
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(a.theta, b.theta, atol=1e-12)
        assert layered.confidence(a)[0].radius == pytest.approx(weighted.confidence(b)[0].radius)


def test_layers_of_standard_deviations():
    policy = nw.MORUCB(noise_bound=1.0, noise_floor=0.1)
    assert policy.layers == 4
    found = [policy.layer(s) for s in (0.0, 0.1, 0.2, 0.2 * (1 + 1e-9), 0.4, 0.8, 0.81, 1.0, 7.0)]
    assert found == [0, 0, 0, 1, 1, 2, 3, 3, 3]
    assert [policy.scale(place) for place in range(4)] == pytest.approx([0.2, 0.4, 0.8, 1.0])
    for power in range(1, 30):  # rounding of the logarithm must not open another layer
        exact = nw.MORUCB(noise_bound=1.0, noise_floor=2.0**-power)
        assert exact.layers == power
        assert exact.layer(2.0 ** (1 - power)) == 0
    assert nw.MORUCB(noise_bound=1.0, noise_floor=2.0).layers == 1
    printed = nw.MORUCB(noise_bound=1.0, noise_floor=0.1, as_printed=True)
    assert [printed.layer(s) for s in (0.1, 0.2, 0.3, 0.5, 1.0)] == [-1, -1, 0, 1, 2]


def test_the_published_algorithm_drops_quiet_rewards_and_its_radius_costs():
    world = env.NoisyBandit(dim=5, arms=10, rounds=1500)
    rounds = world.draw(np.random.default_rng(2))
    printed = nw.MORUCB(noise_bound=1.0, noise_floor=0.1, as_printed=True)
    state, literal = play(printed, rounds)
    learnt = sum(layer.count for layer in state.layers)
    assert learnt == (rounds.sigma > 0.2).sum()
    with_radius = nw.MORUCB(noise_bound=1.0, noise_floor=0.1, radius="printed")
    regrets = [
        theory.bandit_regret(rounds, played)[-1]
        for played in (play(nw.MORUCB(noise_floor=0.1), rounds)[1], play(with_radius, rounds)[1],
                       literal)
    ]  # fmt: skip
    assert regrets[0] <= 0.1 * min(regrets[1:])


def test_quieter_rewards_reach_the_louder_layers_when_nested():
    policy = nw.MORUCB(noise_bound=1.0, noise_floor=0.1, nested=True)
    state = policy.start(2)
    for sigma in (0.1, 0.3, 0.9):
        policy.update(state, [0.6, 0.8], 0.5, sigma)
    assert [layer.count for layer in state.layers] == [1, 2, 2, 3]


def test_loud_rewards_are_cut_once_warned_and_counted():
    for policy in (nw.MORUCB(noise_bound=0.5), nw.FTRLUCB(noise_bound=0.5)):
        state = policy.start(2)
        with pytest.warns(UserWarning, match="noise_bound"):
            policy.update(state, np.array([0.6, 0.8]), 1.0, 2.0)
        policy.update(state, np.array([0.6, 0.8]), 1.0, 3.0)
        assert state.clipped == 2
        plain = policy.start(2)
        for _ in range(2):
            policy.update(plain, np.array([0.6, 0.8]), 1.0, 0.5)
        np.testing.assert_allclose(state.theta, plain.theta)


def test_radius_of_a_layer_by_hand():
    """Four layers share delta; the first reward of the loudest one, identity link."""
    policy = nw.MORUCB(noise_bound=1.0, noise_floor=0.1, delta=0.08)
    state = policy.start(2)
    policy.update(state, [0.6, 0.8], 0.5, 0.9)
    C = max(2 * (np.e - 2) * 1.0, 2 * 1.0)
    regret = 0.5 * 0.25 / 9  # played 0, less the minimum
    level = 4.0 + regret + C * np.log(4 / 0.08)
    (only,) = policy.confidence(state)
    assert only.radius == pytest.approx(np.sqrt(2 * level))


def test_published_index_by_hand():
    """Paper's beta with t the round and Sigma without kappa, for a logistic link."""
    glm = nw.GLM("logistic")
    policy = nw.MORUCB(glm, 1.0, 0.25, as_printed=True)
    state, x = policy.start(2), np.array([[0.6, 0.8], [1.0, 0.0]])
    for sigma in (0.3, 0.9, 0.9):  # the first one is dropped
        policy.update(state, x[0], 0.4, sigma)
    kappa, K, L, t, d = glm.min_slope, 0.25, 2, 4, 2
    lam = 4 * K**2 / kappa
    growth = d * np.log((2 * d * lam + t * kappa) / (2 * d * lam))
    log = np.log(4 * t**2 * L / 0.05)
    index = []
    for place, layer in enumerate(state.layers):
        l = place + 1  # noqa: E741
        beta = 16 * 2**l * 0.25 / np.sqrt(kappa) * np.sqrt(growth * log)
        beta += 4 / np.sqrt(kappa) * log + 2 * np.sqrt(2 / kappa) * K
        Sigma = 2 * lam * np.eye(2) + layer.count * np.outer(x[0], x[0])
        width = np.sqrt(np.einsum("ij,ij->i", x @ np.linalg.inv(Sigma), x))
        index.append(glm.mean(x @ layer.theta + beta * width))
    assert [layer.count for layer in state.layers] == [2, 0]
    np.testing.assert_allclose(policy.index(state, x), np.min(index, axis=0), rtol=1e-9)


def test_published_layers_need_a_bound_above_the_floor():
    assert nw.MORUCB(noise_bound=0.3, noise_floor=0.25, as_printed=True).layers == 1
    with pytest.raises(ValueError, match=r"noise_bound is 0\.25 .* no layer"):
        nw.MORUCB(noise_bound=0.25, noise_floor=0.25, as_printed=True)
