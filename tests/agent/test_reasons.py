"""Reasons for a choice: intervals, layers, and the index they add up to."""

import copy

import numpy as np
import pytest
from histories import arm_sets, played
from instances import CAUCHIT, POLICIES, sphere

import noisewise as nw

RNG = np.random.default_rng


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_every_policy_gives_reasons(policy):
    """The largest index is chosen; the interval holds the estimate; nothing is written."""
    for agent in (nw.Agent(policy, dim=3), played(nw.Agent(policy, dim=3))):
        before = copy.deepcopy(agent.state.theta) if hasattr(agent.state, "theta") else None
        for arms in arm_sets(6, seed=2, policy=policy):
            rows = agent.explain(arms)
            assert [row.arm for row in rows] == list(range(len(arms)))
            assert (rows[0].estimate is None) == isinstance(policy, nw.Uniform)
            unknown = policy == nw.SelfTunedUCB("gaussian") and agent.state.count == 0
            sure = hasattr(policy, "confidence") or hasattr(policy, "interval")
            assert (rows[0].lower is not None) == (sure and not unknown)
            assert (rows[0].layer is not None) == isinstance(policy, nw.MORUCB)
            for row in rows:
                free = row.lower is None or "outgrown" in row.note
                assert free or row.lower <= row.estimate <= row.upper
                assert row.bonus is None or row.bonus >= 0
            if hasattr(policy, "index"):
                index = np.array([-np.inf if row.index is None else row.index for row in rows])
                assert index.max() - index[agent.choose(arms)] <= 1e-9 * abs(index.max())
        if before is not None:
            np.testing.assert_array_equal(agent.state.theta, before)


@pytest.mark.parametrize("link", ["identity", "logistic", CAUCHIT], ids=str)
@pytest.mark.parametrize("radius", ["adaptive", "practical"])
def test_intervals_are_those_of_ftrl(link, radius):
    policy = nw.FTRLUCB(nw.GLM(link, 1.0, 2.0), radius=radius)
    agent, arms = played(nw.Agent(policy, dim=3), count=40), arm_sets(8)[7]
    rows = agent.explain(arms)
    ftrl, layer = nw.FTRL(policy.glm), agent.state.layers[0]
    lower, upper = ftrl.interval(layer, arms, nw.SubGaussian(1.0))
    np.testing.assert_array_equal([row.lower for row in rows], lower)
    np.testing.assert_array_equal([row.upper for row in rows], upper)
    means = np.clip(ftrl.predict(layer, arms), lower, upper)
    np.testing.assert_allclose([row.estimate for row in rows], means, rtol=1e-12)
    if radius == "practical":
        bonus = policy.bonus(agent.state, arms)
        np.testing.assert_allclose([row.bonus for row in rows], bonus, rtol=1e-9)


@pytest.mark.parametrize("as_printed", [False, True])
def test_the_layer_is_that_of_the_smallest_bound(as_printed):
    """Against the ellipsoids of each layer, asked one by one."""
    policy = nw.MORUCB(nw.GLM("logistic"), 1.0, 0.1, as_printed=as_printed, radius_scale=0.3)
    agent = nw.Agent(policy, dim=3)
    arms = arm_sets(8)[7]
    if not as_printed:
        assert {row.layer for row in agent.explain(arms)} == {-1}
    rng = RNG(9)
    for t in range(300):
        quiet = t % 10 == 0
        agent.learn([0.9, 0, 0] if quiet else 0.9 * sphere(rng, 1, 3)[0], 0.6, 0.3 if quiet else 1)
    sets = policy.confidence(agent.state)
    known = [place for place, each in enumerate(agent.state.layers) if each.count or as_printed]
    per = len(sets) // len(known)
    upper = np.array([arms @ e.centre + 0.3 * e.width(arms) for e in sets])
    if as_printed:  # its radii are of the number of all rewards
        upper = policy.upper_bounds(agent.state, arms)
    upper = upper.reshape(len(known), per, -1).min(axis=1)
    rows = agent.explain(arms)
    assert [row.layer for row in rows] == [known[i] for i in upper.argmin(axis=0)]
    np.testing.assert_allclose([row.index for row in rows], upper.min(axis=0), rtol=1e-9)
    theta = [agent.state.layers[row.layer].theta for row in rows]
    score = [a @ b for a, b in zip(arms, theta, strict=True)]
    np.testing.assert_allclose([row.index - row.bonus for row in rows], score, atol=1e-12)
    assert all(("published" in row.note) == as_printed for row in rows)
    if not as_printed:
        assert len({row.layer for row in agent.explain(np.array([[0.9, 0, 0], *arms]))}) > 1


def test_sets_that_contradict_each_other_are_noted():
    """Loud rewards told as quiet ones, with other means: the two layers can't both be right."""
    agent = nw.Agent(nw.MORUCB(nw.GLM(parameter_bound=5.0), 1.0, 0.25), dim=1)
    agent.learn(np.ones((2000, 1)), np.full(2000, 4.0), sigma=0.1)
    agent.learn(np.ones((2000, 1)), np.full(2000, -4.0), sigma=1.0)
    (row,) = agent.explain([[1.0]])
    assert "contradict" in row.note
    assert row.lower <= -3.5 < 3.5 <= row.upper  # what either layer says


def test_glm_ucb_explains_on_the_scale_of_scores():
    policy = nw.GLMUCB(nw.GLM("logistic"), radius_scale=0.01)
    agent, arms = played(nw.Agent(policy, dim=3)), arm_sets(4)[3]
    index = [row.index for row in agent.explain(arms)]
    np.testing.assert_allclose(policy.glm.mean(index), policy.index(agent.state, arms), rtol=1e-9)
