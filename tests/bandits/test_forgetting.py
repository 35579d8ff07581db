"""Older rewards discounted as fast as the user says; the twin is in `test_self_tuned_ucb`."""

import itertools

import numpy as np
import pytest
from instances import close, sphere

import noisewise as nw
from noisewise.checks.comparison import same

RNG = np.random.default_rng
MAKE = {"gaussian": nw.Agent.for_continuous_rewards, "binomial": nw.Agent.for_binary_rewards}


def taught(policy, n, rng, dim=3):
    """The state after rewards of noise so small that none is an outlier."""
    state, theta = policy.start(dim), np.arange(1.0, dim + 1)
    x = sphere(rng, n, dim)
    y = x @ theta + 0.01 * rng.uniform(-1, 1, size=n)
    if policy.family == "binomial":
        y = (rng.random(n) < 1 / (1 + np.exp(-x @ theta))).astype(float)
    for row, reward in zip(x, y.tolist(), strict=True):
        policy.update(state, row, reward)
    return state, x, y


def test_a_reward_counts_less_and_less():
    """The sums of rewards are those of weights (1 - 1/n)^age, rows condensed or not."""
    policy = nw.SelfTunedUCB("gaussian", forget_after=20)
    state, x, _ = taught(policy, 500, RNG(0))
    z, w = np.c_[x, np.ones(500)], 0.95 ** np.arange(499.0, -1, -1)
    close(state.matrix.gram, z.T @ (w[:, None] * z), 1e-9)
    close([state.number.information, state.effective_count], [w.sum()] * 2, 1e-9)
    assert state.number.keep_rows == 160
    assert state.number.condensed > 0
    assert policy.learnt(state)["rewards count together as"] == 20.0


@pytest.mark.parametrize("family", MAKE)
def test_rows_that_are_condensed_count_as_before(family):
    """Exactly for continuous rewards; shares by a quadratic form around the estimate."""
    kept, few = (
        nw.SelfTunedUCB(family, keep_rows=rows, forget_after=200) for rows in (10_000, 400)
    )
    (one, x, _), (two, *_) = (taught(policy, 1500, RNG(1)) for policy in (kept, few))
    assert one.number.condensed < two.number.condensed
    close(kept.scores(one, x[:9]), few.scores(two, x[:9]), 1e-8 if family == "gaussian" else 0.03)


@pytest.mark.parametrize(("family", "lasting"), [("gaussian", 100), ("binomial", 400)])
def test_steady_drift_is_followed_by_those_who_know_it(family, lasting):
    """Coefficients turn by a radian in 1000 rewards: over four worlds less is lost.

    Twelve worlds have ratios of 0.64 and 0.60 on average, with sds of 0.07 and 0.10: if they are
    about normal, that of four is above 0.85 with probability below 1e-6.
    """
    lost = dict.fromkeys(("auto", lasting), 0.0)
    for seed, forget_after in itertools.product(range(4), lost):
        agent, rng = MAKE[family](dim=5, seed=seed, forget_after=forget_after), RNG(seed)
        for t in range(3000):
            arms = rng.normal(size=(5, 5))
            means = 0.7 * (np.cos(t / 1000) * arms[:, 0] + np.sin(t / 1000) * arms[:, 1])
            if family == "binomial":
                means = 1 / (1 + np.exp(-means))
            k, u, e = agent.choose(arms), rng.random(), rng.normal()
            agent.learn(None, means[k] + e / 2 if family == "gaussian" else float(u < means[k]))
            lost[forget_after] += means.max() - means[k]
    assert lost[lasting] < 0.85 * lost["auto"]


@pytest.mark.parametrize("family", MAKE)
def test_an_agent_that_forgets_is_saved_batched_and_taught_alike(family, tmp_path):
    arms = nw.Arms(["a", "b"], context={"age": float})
    one, two = (MAKE[family](arms=arms, forget_after=50, record=600) for _ in range(2))
    rng = RNG(3)
    for t in range(300):
        age = float(rng.normal(40, 10))
        one.choose({"age": age}, key=t)
        one.learn(t, float(rng.integers(2)))
    log = one.log()
    two.learn_table({name: log[name] for name in ("age", "action", "reward")})
    assert same(one.state, two.state)
    one.save(tmp_path / "agent.npz")
    again = nw.Agent.load(tmp_path / "agent.npz")
    assert again.policy.forget_after == 50
    assert same(again.state, one.state)
    for each in (one, again):
        each.choose_many([{"age": 30.0}] * 5, keys=range(5))
        each.learn(range(5), [1.0, 0.0, 1.0, 1.0, 0.0])
    assert same(again.state, one.state)
    assert one.health().of("restarts").value == 0


def test_pending_decisions_still_count():
    agent = nw.Agent.for_binary_rewards(dim=4, forget_after=30)
    for t in range(200):
        agent.learn(np.eye(4)[t % 4], float(t % 3 == 0))
    chosen = agent.choose_many([np.eye(4)] * 40, keys=range(40))
    assert set(chosen) == {0, 1, 2, 3}


def test_nothing_changes_the_default():
    """A number so large that nothing is forgotten gives the same estimates."""
    (one, x, _), (two, *_) = (
        taught(nw.SelfTunedUCB("gaussian", forget_after=lasting), 300, RNG(4))
        for lasting in ("auto", 1e12)
    )
    close(nw.SelfTunedUCB().scores(one, x), nw.SelfTunedUCB().scores(two, x), 1e-6)


@pytest.mark.parametrize("wrong", [5, 0, -1, np.nan, "never", True, None])
def test_bad_numbers(wrong):
    with pytest.raises(ValueError, match="forget_after is"):
        nw.Agent.for_means(dim=2, forget_after=wrong)


def test_guaranteed_agents_do_not_forget():
    for make in MAKE.values():
        with pytest.raises(ValueError, match="leave one of them out"):
            make(dim=2, guaranteed=True, forget_after=100)
