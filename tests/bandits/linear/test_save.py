"""SAVE: layers, radius, elimination, what it plays."""

import numpy as np
import pytest
from instances import sphere

import noisewise as nw
from noisewise.bandits.linear import linear_state

RNG = np.random.default_rng


@pytest.mark.parametrize("practical", [False, True])
def test_save_learns_at_the_width_of_its_layer(practical):
    """w width = 2^-l and w <= 1; Var is the direct sum; layers hold no more than their bound."""
    policy = nw.SAVE(horizon=400, practical=practical)
    assert policy.depth == 13
    rng, state = RNG(1), policy.start(3)
    theta, seen = sphere(rng, 1, 3)[0] / 2, {}
    for _ in range(400):
        arms = sphere(rng, 6, 3)
        k = policy.select(state, arms, rng)
        before = [layer.V.copy() for layer in state.layers]
        reward = arms[k] @ theta + rng.choice([-0.1, 0.1])
        policy.update(state, arms[k], reward)
        changed = [
            i for i, (a, b) in enumerate(zip(before, state.layers, strict=True)) if (a != b.V).any()
        ]
        assert len(changed) == 1
        level = changed[0] + 1
        V = before[changed[0]]
        width = np.sqrt(arms[k] @ np.linalg.solve(V, arms[k]))
        w = np.sqrt(np.trace(state.layers[level - 1].V - V))  # arms have norm 1
        assert w * width == pytest.approx(2.0**-level, rel=1e-6)
        assert w <= 1
        seen.setdefault(level, []).append((w, arms[k], reward))
    assert max(seen) >= 2
    for level, rows in seen.items():
        w, x, r = (np.array(part) for part in zip(*rows, strict=True))
        layer = state.layers[level - 1]
        V = 4.0**-level * np.eye(3) + x.T @ (w[:, None] ** 2 * x)
        centre = np.linalg.solve(V, x.T @ (w**2 * r))
        np.testing.assert_allclose(layer.theta, centre, rtol=1e-6)
        direct = np.sum(w**2 * (r - x @ centre) ** 2)
        assert policy.variance(state, level) == pytest.approx(direct, rel=1e-6)
        assert layer.count == len(rows) <= 6 * 4**level * np.log1p(4**level * 400 / 3)


def test_the_radius_of_save_written_out():
    """Layer 1 counts R^2 a reward, a practical one its residuals, and layer 10 both alike."""
    policy, state = nw.SAVE(0.5, 1000, delta=0.1), nw.SAVE(0.5, 1000).start(2)
    assert [policy.radius(state, level) for level in (1, 2)] == [1.0, 0.5]
    for reward in (0.3, 0.7, 0.1):
        policy.update(state, [0.6, 0.0], reward)
    q, late = np.log(4 * 9 * 15 / 0.1), np.log(4 * 16 * 15 / 0.1)
    inside = 8 * 0.25 * 3 + 6 * 0.25 * late + 4
    radius = 8 * np.sqrt(inside * q) + 3 * 0.5 * q + 1
    assert policy.depth == 15
    assert policy.radius(state, 1) == pytest.approx(radius, rel=1e-12)
    assert policy.radius(state, 1, 0.0) == 1.0
    practical = nw.SAVE(0.5, 1000, practical=True, delta=0.1)
    inside += 8 * (policy.variance(state, 1) - 0.75)
    assert practical.radius(state, 1) == pytest.approx(
        8 * np.sqrt(inside * q) + 1.5 * q + 1, rel=1e-12
    )


def test_save_drops_arms_that_are_surely_worse():
    """With every arm narrow in layer 1, layer 2 is asked, without the arm of mean -1."""
    policy = nw.SAVE(0.01, 1000, radius_scale=0.01)
    state = policy.start(2)
    for _ in range(200):
        for arm, reward in (([1.0, 0.0], 1.0), ([0.0, 1.0], -1.0)):
            linear_state.learn(state.layers[0], np.array(arm), reward, 0.25)
    state.changed[0] = 1
    assert policy.select(state, [[0.0, 1.0], [0.9, 0.0]], RNG(0)) == 1  # the other is wider
    assert policy.select(state, [[0.0, 1.0], [0.0, 0.9]], RNG(0)) == 0


def narrowed(policy, arms_and_means, level=1, times=4000):
    """A state whose layer of that level knows the means of unit vectors well."""
    state = policy.start(2)
    for arm, mean in arms_and_means:
        linear_state.learn(state.layers[level - 1], np.array(arm), mean, float(times))
    return state


@pytest.mark.parametrize(("gap", "kept"), [(0.95, True), (1.05, False)])
def test_save_keeps_arms_within_twice_the_bound_of_its_layer(gap, kept):
    """Without noise beta_1 = 1: the margin is 2 (1/2) 1 = 1. Layer 2 plays the widest arm left."""
    policy = nw.SAVE(radius_scale=0.0)
    state = narrowed(policy, [([1.0, 0.0], 0.5), ([0.0, 1.0], 0.5 - gap)])
    assert policy.select(state, [[1.0, 0.0], [0.0, 1.0]], RNG(0)) == 0
    arms = [[0.99, 0.0], [0.0, 1.0]]  # the second is wider
    gap_here = 0.99 * 0.5 - (0.5 - gap)
    assert policy.select(state, arms, RNG(0)) == int(gap_here < 1)
    assert kept == (gap_here < 1)


def test_save_plays_the_widest_arm_and_its_practical_form_the_most_promising():
    for practical, best in ((False, 1), (True, 0)):
        policy = nw.SAVE(radius_scale=0.0, practical=practical)
        state = policy.start(2)
        linear_state.learn(state.layers[0], np.array([1.0, 0.0]), 100.0, 0.01)
        assert policy.select(state, np.eye(2), RNG(0)) == best


def test_save_takes_the_largest_upper_bound_once_all_arms_are_known():
    """Widths at most 2^-L in layer 1 (L = 2): its bounds decide, not the next layer's widths."""
    policy = nw.SAVE(horizon=2, radius_scale=0.0)
    assert policy.depth == 2
    state = narrowed(policy, [([1.0, 0.0], 0.5), ([0.0, 1.0], 0.4)])
    assert policy.select(state, [[0.0, 1.0], [0.9, 0.0]], RNG(0)) == 1
    linear_state.learn(
        state.layers[0], np.array([1.0, 0.0]), 0.4, 1e9
    )  # means 0.4, the first known best
    assert policy.select(state, [[1.0, 0.0], [0.0, 1.0]], RNG(0)) == 1


def test_save_calls_an_arm_wide_above_its_level_only():
    """|x| = 1/4 has width 1/2 in a fresh layer 1: layer 2 is asked, and learns the reward."""
    policy = nw.SAVE(radius_scale=0.0, practical=True)
    state = policy.start(2)
    linear_state.learn(state.layers[1], np.array([0.0, 1.0]), 100.0, 0.01)
    assert policy.select(state, [[0.25, 0.0], [0.0, 0.2]], RNG(0)) == 1
    policy.update(state, [0.25, 0.0], 1.0)
    assert [layer.count for layer in state.layers[:3]] == [0, 2, 0]


def test_residuals_count_from_where_two_to_the_level_reaches_64_roots():
    """At the first reward 64 sqrt(q') = 64 sqrt(log(16 L/delta)) = 184: layer 8, not layer 7."""
    policy = nw.SAVE(0.5, 1000)
    state = policy.start(2)
    sets = policy.confidence(state)
    assert [each.radius for each in sets] == [2.0 ** (1 - level) for level in range(1, 16)]
    for level in (7, 8):
        linear_state.learn(state.layers[level - 1], np.array([1.0, 0.0]), 0.0)  # no residual
        state.changed[level - 1] = 1
    q, late = np.log(4 * 15 / 0.05), np.log(16 * 15 / 0.05)
    assert 128 < 64 * np.sqrt(late) < 256
    for level, spread in ((7, 0.25), (8, 0.0)):
        inside = 8 * spread + 6 * 0.25 * late + 2.0 ** (4 - 2 * level)
        wanted = 2.0**-level * (16 * np.sqrt(inside * q) + 3 * q + 2)
        assert policy.confidence(state)[level - 1].radius == pytest.approx(wanted, rel=1e-12)
