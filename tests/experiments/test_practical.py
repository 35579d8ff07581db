"""Practical worlds, the loop that plays them, and the fixed settings beside the agent."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from unseen import UNSEEN

import noisewise as nw
from noisewise import environments as env
from noisewise.experiments import gallery
from noisewise.experiments.ingredients import agent_lineup, fixed_settings, labelled_data
from noisewise.experiments.ingredients.fixed_settings import SETTINGS, FixedSetting
from noisewise.experiments.studies import agents

ALL = env.PRACTICAL | UNSEEN


def drawn(world, seed=0):
    return world.draw(np.random.default_rng(seed))


@pytest.mark.parametrize("name", ALL)
def test_a_world_is_what_it_says(name):
    """The mean of rewards less means is within six standard errors: false alarm 2e-9 a world."""
    world = replace(ALL[name], rounds=1500)
    found, again, other = drawn(world), drawn(world), drawn(world, 1)
    table, T = found.rounds, 1500
    assert table.means.shape == table.rewards.shape
    assert len(table.means) == len(table.sigma) == len(found.arrival) == T
    assert (found.arrival >= np.arange(T)).all()
    np.testing.assert_array_equal(table.rewards, again.rounds.rewards)
    assert not np.array_equal(table.rewards, other.rounds.rewards)
    away = (table.rewards - table.means)[:, 0]
    assert abs(away.mean()) < 6 * away.std() / np.sqrt(T)
    if found.family == "binomial":
        assert 0 <= table.rewards.min() <= table.rewards.max() <= 1
        n = table.sigma[:, None] ** -2.0
        assert np.abs(n * table.rewards - np.rint(n * table.rewards)).max() < 1e-9
    assert found.sd_given or (table.sigma == 1).all()


def test_worlds_differ_from_the_plain_one_as_they_say():
    plain, same = drawn(env.PRACTICAL["linear, fixed"]).rounds, np.testing.assert_allclose
    offset = drawn(env.PracticalLinear(offset=100.0, unit=5.0)).rounds
    same(offset.means, 100 + 5 * plain.means)
    same(offset.rewards, 100 + 5 * plain.rewards)
    small = drawn(env.PracticalLinear(feature_norm=0.01)).rounds
    same(small.arms, 0.01 * plain.arms)
    same(small.means, plain.means)
    for factor in (1 / 3, 3.0):
        wrong = drawn(env.PracticalLinear(sd_factor=factor)).rounds
        same(wrong.sigma, factor * plain.sigma)
        same(wrong.rewards, plain.rewards)
    spread = np.log10(drawn(env.PracticalLinear(sd_factor="random")).rounds.sigma / plain.sigma)
    assert -1 <= spread.min() < -0.99
    assert 0.99 < spread.max() <= 1
    changes = np.flatnonzero(np.diff(drawn(env.PRACTICAL["switches, linear"]).rounds.means[:, 0]))
    assert changes.tolist() == [999, 1999]
    sparse = drawn(env.PracticalLinear(dim=100, nonzero=5, arms=200, rounds=2)).rounds
    theta = np.linalg.lstsq(sparse.arms, sparse.means[0], rcond=None)[0]
    assert (np.abs(theta) > 1e-9).sum() == 5
    assert np.linalg.norm(theta) == pytest.approx(1)


def test_when_rewards_arrive():
    t = np.arange(3000)
    late = drawn(env.PRACTICAL["delays"]).arrival - t
    assert late.mean() == pytest.approx(99.5, abs=6 * 100 / np.sqrt(3000))  # rounded down
    assert (drawn(env.PRACTICAL["batches, linear"]).arrival == t // 100 * 100 + 99).all()
    assert (drawn(env.PRACTICAL["offset"]).arrival == t).all()


def test_bad_worlds_are_refused():
    for bad, word in (
        (env.PracticalLinear(unit=0.0), "unit"),
        (env.PracticalLinear(nonzero=11), "nonzero"),
        (env.PracticalLinear(tied=True), "sd_given"),
        (env.PracticalLinear(noise=env.StudentT(2.0)), "freedom"),
        (env.PracticalLogistic(norm=-1.0), "norm"),
        (env.PracticalLinear(late=env.Late(batch=0)), "batch"),
        (env.Variants(low=0.3, high=0.2), "low"),
    ):
        with pytest.raises(ValueError, match=word):
            drawn(bad)


class Recorder:
    """A policy that writes down what it is asked."""

    def __init__(self):
        self.calls, self.next = [], iter((1, 1, 0))

    def start(self, dim):
        return None

    def select(self, state, arms, rng, sigma=None):
        self.calls.append("select")
        return next(self.next)

    def update(self, state, arm, reward, sigma=1.0):
        self.calls.append(("update", reward, sigma))

    def expect(self, state, arm, sigma):
        self.calls.append(("expect", *arm, sigma))

    def release(self, state, arm):
        self.calls.append(("release", *arm))


def test_rewards_are_learnt_when_they_arrive():
    arms, rewards = np.array([[1.0], [2.0]]), np.arange(6.0).reshape(3, 2)
    table = nw.BanditRounds(arms, rewards, rewards, np.array([0.1, 0.2, 0.3]))
    player = Recorder()
    found = env.Deliveries(table, "gaussian", True, np.array([1, 1, 3]))
    played = gallery.choices(player, found, np.random.default_rng(0))
    assert played.tolist() == [1, 1, 0]
    assert player.calls == [
        "select", ("expect", 2.0, None),
        "select", ("release", 2.0), ("update", 1.0, 0.1), ("update", 3.0, 0.2),
        "select", ("expect", 1.0, None),
    ]  # fmt: skip
    hidden = Recorder()
    gallery.choices(hidden, replace(found, sd_given=False), np.random.default_rng(0))
    assert ("update", 3.0, 1.0) in hidden.calls


def test_without_delay_the_loop_is_that_of_choices_and_an_agent_plays_as_its_policy():
    world = drawn(env.PracticalLogistic(rounds=150, most=5))
    policy = nw.FTRLUCB(nw.GLM("logistic"), "likelihood", radius="practical")
    plain = nw.choices(policy, world.rounds, np.random.default_rng(0))
    played = gallery.choices(policy, world, np.random.default_rng(0))
    np.testing.assert_array_equal(played, plain)
    agent = nw.Agent(policy, 10)
    assert gallery.regret(agent, world, np.random.default_rng(0)) == pytest.approx(
        gallery.regret(policy, world, np.random.default_rng(0))
    )
    assert agent.waiting == ()
    late = drawn(env.PracticalLogistic(rounds=150, late=env.Late(batch=40)))
    agents_own = gallery.choices(nw.Agent(policy, 10), late, np.random.default_rng(0))
    np.testing.assert_array_equal(
        agents_own, gallery.choices(policy, late, np.random.default_rng(0))
    )


@pytest.mark.parametrize("late", [env.Late(), env.Late(batch=7), env.Late(mean_delay=9.0)])
@pytest.mark.parametrize("fixed", [True, False])
def test_a_setting_is_linucb(fixed, late):
    world = drawn(env.PracticalLinear(rounds=400, fixed=fixed, late=late))
    for width in (1.0, 0.3):
        ours = FixedSetting(width).choices(world, np.random.default_rng(0))
        theirs = gallery.choices(nw.LinUCB(width), world, np.random.default_rng(0))
        assert (ours == theirs).mean() > 0.99  # near ties may fall either way


def test_a_weighted_setting_is_weighted_thompson_without_its_draw():
    world = drawn(env.PracticalLinear(rounds=300, fixed=False))
    ours = FixedSetting(weighted=True).choices(world, np.random.default_rng(0))
    greedy = nw.LinearThompson(scale=0.0)
    assert (ours == gallery.choices(greedy, world, np.random.default_rng(0))).mean() > 0.99


def test_the_draw_of_thompson_has_its_covariance():
    rng = np.random.default_rng(0)
    x, V = rng.normal(size=(9, 4)), np.eye(4)
    setting = FixedSetting(scale=0.3, weighted=True)
    state = setting.start(4)
    for row, w in zip(x, rng.uniform(0.1, 9.0, size=9), strict=True):
        setting.update(state, row, rng.normal(), w**-0.5)
        V += w * np.outer(row, row)
    root = np.stack([fixed_settings.drawn_error(state, z) for z in np.eye(4)], axis=1)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(V), atol=1e-12)


def test_a_logistic_setting_takes_the_mode_after_each_reward():
    """The posterior of bayesianbandits: mode and curvature, against a general minimiser."""
    world = drawn(env.PracticalLogistic(rounds=12, dim=3, arms=4, most=20, fixed=False))
    setting = SETTINGS["bayesianbandits .68"]
    played, mean = setting.played(world, np.random.default_rng(0))
    m, V = np.zeros(3), np.eye(3)
    for t, k in enumerate(played):
        x, y, n = world.rounds.arms[t, k], world.rounds.rewards[t, k], world.rounds.sigma[t] ** -2

        def loss(theta, m=m, V=V, x=x, y=y, n=n):
            z = x @ theta
            return 0.5 * (theta - m) @ V @ (theta - m) + n * (np.logaddexp(0, z) - y * z)

        index = world.rounds.arms[t] @ m
        index += setting.width * np.sqrt(
            np.einsum("ki,ij,kj->k", world.rounds.arms[t], np.linalg.inv(V), world.rounds.arms[t])
        )
        assert index[k] == pytest.approx(index.max(), abs=1e-5)
        m = minimize(loss, m, method="BFGS", options={"gtol": 1e-9}).x
        p = 1 / (1 + np.exp(-x @ m))
        V = V + n * p * (1 - p) * np.outer(x, x)
    assert mean == pytest.approx(m, abs=1e-5)


def test_quantiles_of_the_settings():
    from scipy.special import ndtri

    for q in (0.68, 0.95):
        assert SETTINGS[f"bayesianbandits {f'{q:g}'[1:]}"].width == pytest.approx(ndtri(q))


def test_beta_thompson_finds_the_sure_arm():
    world = drawn(env.Variants(arms=3, rounds=200))
    sure = np.tile([0.0, 1.0, 0.0], (200, 1))
    world = replace(world, rounds=replace(world.rounds, means=sure, rewards=sure))
    played = gallery.choices(fixed_settings.BetaThompson(), world, np.random.default_rng(0))
    assert (played[100:] == 1).mean() > 0.9
    assert agent_lineup.plays(agent_lineup.BETA, world)
    assert not agent_lineup.plays(agent_lineup.BETA, drawn(env.PracticalLogistic(rounds=5)))


@pytest.fixture(scope="module")
def table():
    rows = []
    for cell in agents.cells(30):
        rows += agents.data(cell, np.random.default_rng(9))
    return pd.DataFrame(rows).assign(trial=0)


def test_everyone_plays_everywhere(table):
    found = {world: set(part["player"]) for world, part in table.groupby("world")}
    assert set(found) == set(env.PRACTICAL)
    for world, players in found.items():
        absent = set() if world.startswith("A/B") else {agent_lineup.BETA}
        assert players == set(agent_lineup.PLAYERS) - absent
    assert set(agents.TARGETS) | set(agents.PECULIAR) | set(agents.PLAIN) <= set(env.PRACTICAL)
    lines = agents.numbers(table)
    assert len(lines) == len(env.PRACTICAL) + 5
    assert set(agent_lineup.PLAYERS) <= set(lines)


def test_claims_by_hand(table):
    """Ours a quarter of everyone else's: all hold; then one world at twice LinUCB's."""
    made = pd.concat([table.assign(trial=i) for i in range(20)])
    ours = made["player"] == agents.OURS
    targets = made["world"].map(agents.TARGETS).fillna(10.0)
    made["regret"] = targets.where(ours, 4 * targets)
    assert all(agents.holds(made).values())
    np.testing.assert_allclose(agents.geometric(agents.ratios(made)), 0.25)
    made.loc[ours & (made["world"] == "A/B"), "regret"] = 80.0
    found = list(agents.holds(made).values())
    assert [bool(each) for each in found] == [True, True, True, True, False, True, True]
    assert found[4].measured.startswith("2.00 in A/B")
    few = made[made["trial"] < 2]
    assert list(agents.holds(few)) == list(agents.COUNTED)
    assert all(agents.holds(few).values())
    theirs = few["player"].isin([*fixed_settings.SETTINGS, agents.EARLIER])
    lost = few.assign(regret=few["regret"].where(~theirs, few["regret"] / 40))
    assert [each.held for each in agents.holds(lost).values()] == [False] * len(agents.COUNTED)


@pytest.mark.parametrize("name", labelled_data.LABELLED)
def test_labelled_data_as_bandits(name):
    for package in labelled_data.PACKAGES:
        pytest.importorskip(package)
    data = labelled_data.labelled(name)
    n, p = data.features.shape
    K = len(set(data.label))
    assert set(data.label) == set(range(K))
    table = data.bandit(np.random.default_rng(0), 2 * n).rounds
    assert table.arms.shape == (2 * n, K, K * (p + 1))
    assert (table.rewards.sum(axis=1) == 1).all()
    assert table.rewards.sum(axis=0) == pytest.approx(2 * np.bincount(data.label))
    blocks = table.arms.reshape(2 * n, K, K, p + 1)
    assert (blocks[:, range(K), range(K), 0] == 1).all()
    assert np.abs(blocks).sum() == pytest.approx(np.abs(blocks[:, range(K), range(K)]).sum())
    rows = blocks[:n, 0, 0, 1:]  # every row once, standardised
    assert rows.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert set(np.rint(rows.std(axis=0) * 1e6)) <= {0.0, 1e6}
